"""From a workload's root, its changes and its components to its facts."""

from __future__ import annotations

from datetime import datetime, timedelta

from sevenhop.core.facts import workload as facts
from sevenhop.core.facts.labels import of_workload
from sevenhop.core.facts.schema import Facts, Unknown, UnknownReason
from sevenhop.core.inventory.read_component import wants_to_run
from sevenhop.core.inventory.state import State, component_subject
from sevenhop.core.inventory.workloads import Workload
from sevenhop.core.objects.base import Custom

CHANGED_WITHIN = timedelta(minutes=30)


def read_workload(state: State, workload: Workload, now: datetime) -> tuple[Facts, datetime | None]:
    """Labels and facts as of `now`, and when they change by time alone."""
    changed, wake = _changed(state, workload, now)
    slots = [(workload.key, part.name) for part in workload.components]
    rows = [row for slot in slots for row in state.rows_of.get(slot, {}).values()]
    unread = next((row.key[1] for row in rows if row.unreadable), "")
    own = facts.derive(
        changed=changed,
        operator_says_ready=_operator_says_ready(state, workload),
        without_ready=any(
            wants_to_run(part)
            and state.facts.get(component_subject((workload.key, part.name)), {}).get("component.ready") == 0
            for part in workload.components
        ),
        rows=rows,
        pods_unknown=state.gate("Pod") or (Unknown(UnknownReason.UNREADABLE, f"Pod {unread}") if unread else None),
        root_unknown=next(
            (u for kind, key in workload.roots if (u := state.gate(kind) or state.unreadable_gate(kind, key))), None
        ),
    )
    labels = of_workload(state.cluster, workload, tier=state.tier(workload).value, owner=state.owner(workload))
    return {**labels, **own}, wake


def _changed(state: State, workload: Workload, now: datetime) -> tuple[bool | Unknown, datetime | None]:
    last = state.last_change.get(workload.key)
    if last is not None and now - last < CHANGED_WITHIN:
        return True, last + CHANGED_WITHIN
    covered_at = (state.started or now) + CHANGED_WITHIN
    if now < covered_at:
        return facts.NOT_LOOKED_LONG_ENOUGH, covered_at
    return False, None


def _operator_says_ready(state: State, workload: Workload) -> bool:
    roots = (state.objects.get(kind, *key) for kind, key in workload.roots)
    return any(isinstance(root, Custom) and facts.operator_says_ready(root.status) for root in roots)
