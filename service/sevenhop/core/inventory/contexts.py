"""One subject as it is now, for whoever writes about it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime
from itertools import islice

from sevenhop.core.facts.component import NotCreated, failure_reason
from sevenhop.core.facts.schema import LABELS, Facts
from sevenhop.core.hops.diagnosis import Diagnosis
from sevenhop.core.hops.gather import Reach, Short, gather, trouble
from sevenhop.core.hops.report import HopReport
from sevenhop.core.incidents.context import SubjectContext
from sevenhop.core.inventory.blocked import missing_of, told_of
from sevenhop.core.inventory.capacity import Change
from sevenhop.core.inventory.gpu_sight import device_sight, devices_of, gpu_diagnosis, hits, rows_of_gpu
from sevenhop.core.inventory.leftovers import without_history
from sevenhop.core.inventory.objects import Key
from sevenhop.core.inventory.pools import capacity
from sevenhop.core.inventory.rows import PodRow
from sevenhop.core.inventory.state import Slot, State, component_subject, slot_of
from sevenhop.core.inventory.workloads import Registration
from sevenhop.core.subject import Subject, SubjectKind

CHANGES_SHOWN = 20


def context(state: State, subject: Subject, now: datetime, *, brief: bool = False) -> SubjectContext | None:
    """Everything that a message needs, or all but pool and changes; None for a subject that is gone."""
    facts = state.facts.get(subject)
    if facts is None:
        return None
    labels = {name: str(facts.get(name, "")) for name in LABELS}
    slots = slots_about(state, subject, labels)
    rows = _rows(state, subject, slots)
    devices = devices_of(state, subject, now)
    has_pods = subject.kind in (SubjectKind.POD, SubjectKind.COMPONENT, SubjectKind.WORKLOAD, SubjectKind.SERVICE)
    missing = _missing(state, slots) if subject.kind is not SubjectKind.POD else []
    report = _report(state, subject, slots, rows, missing) if has_pods else None
    pool = labels["product"]
    # Only who waits in it, or consists of it: with a thousand holders a pool costs many milliseconds.
    asks = subject.kind is SubjectKind.POOL or any(row.waiting for row in rows)
    known_pool = asks and (pool in state.ledger.pools() or pool in state.waiting_in)
    # Those that live first: of a finished or leaving one there may soon be nothing to look at.
    all_broken = subject.kind is SubjectKind.GPU and bool(devices)
    broken = sorted(
        (row for row in rows if all_broken or trouble(row) is not None or row.waiting), key=lambda row: not row.live
    )
    of_gpus = gpu_diagnosis(state, subject) if subject.kind in (SubjectKind.GPU, SubjectKind.NODE) else None
    return SubjectContext(
        labels=labels,
        report=report,
        diagnosis=of_gpus or worst(rows, missing, report) or _told(state, subject, facts),
        desired=_count(facts, "component.desired"),
        ready=_count(facts, "component.ready"),
        minimum=_count(facts, "component.min"),
        pods=tuple((row.key[1], row.node) for row in broken),
        pod_keys=tuple(row.key for row in broken),
        pool=capacity(state, pool) if known_pool and not brief else None,
        changes=() if brief else tuple(islice(_changes(state, slots, rows, subject, pool, now), CHANGES_SHOWN)),
        parents=_parents(labels, subject),
        watching_since=state.started,
        maintenance=_maintenance(state, subject, rows),
        devices=devices,
        hits=hits(state, subject) if of_gpus is not None else (),
    )


def slots_about(state: State, subject: Subject, labels: dict[str, str]) -> tuple[Slot, ...]:
    """The components that a subject is about, in order of name; of a pool, those that wait for it."""
    if subject.kind is SubjectKind.COMPONENT:
        return (slot_of(subject),)
    if subject.kind is SubjectKind.POOL:
        return tuple(sorted(state.waiting_in.get(subject.name, ())))
    workload = (subject.namespace, labels["workload"])
    if subject.kind is SubjectKind.POD or (subject.kind is SubjectKind.SERVICE and labels["component"]):
        return ((workload, labels["component"]),)
    if subject.kind in (SubjectKind.WORKLOAD, SubjectKind.SERVICE):
        return tuple((workload, name) for name in sorted(state.slots_of.get(workload, ())))
    return ()


def _rows(state: State, subject: Subject, slots: Iterable[Slot]) -> list[PodRow]:
    if subject.kind is SubjectKind.POD:
        row = state.rows.get((subject.namespace, subject.name))
        return [row] if row is not None else []
    if subject.kind is SubjectKind.NODE:
        keys = sorted(pod.metadata.key for pod in state.objects.pods_on(subject.name))
        return [row for key in keys if (row := state.rows.get(key)) is not None]
    if subject.kind is SubjectKind.GPU:
        return rows_of_gpu(state, subject)
    return [row for slot in slots for row in without_history(state.part(slot), _in_order(state, slot))]


def _in_order(state: State, slot: Slot) -> list[PodRow]:
    return [row for _, row in sorted(state.rows_of.get(slot, {}).items())]


def _missing(state: State, slots: Iterable[Slot]) -> list[NotCreated]:
    return [
        missing
        for slot in slots
        if (part := state.part(slot)) is not None
        for missing in missing_of(state, slot, part, state.pods_of(slot))
    ]


def _told(state: State, subject: Subject, facts: Facts) -> Diagnosis | None:
    """What an operator says of a component that lacks replicas and whose pods say nothing."""
    if subject.kind is not SubjectKind.COMPONENT:
        return None
    ready, desired = _count(facts, "component.ready"), _count(facts, "component.desired")
    if ready is None or desired is None or ready >= desired:
        return None
    return told_of(state, slot_of(subject))


def _report(
    state: State, subject: Subject, slots: Sequence[Slot], rows: Sequence[PodRow], missing: Sequence[NotCreated]
) -> HopReport:
    workload = state.workloads.get(slots[0][0]) if slots else None
    pools = {state.pool_of[slot] for slot in slots if slot in state.pool_of}
    return gather(
        rows,
        missing=missing,
        reaches=_reaches(state, subject, slots, rows),
        short=_short(state, pools),
        devices=device_sight(state, rows, pools),
        registers=workload.registers if workload is not None else Registration.ENDPOINTS,
        pods_unknown=state.gate("Pod"),
    )


def _reaches(state: State, subject: Subject, slots: Sequence[Slot], rows: Sequence[PodRow]) -> list[Reach]:
    """Services that select any of the pods, or that lead to the workload and select nothing."""
    keys = {row.key for row in rows}
    workloads = {slot[0] for slot in slots}
    found: list[Reach] = []
    for service in sorted(k for k, workload in state.service_of.items() if workload in workloads):
        facts = state.facts.get(Subject(SubjectKind.SERVICE, *service))
        selected = set(state.services.selects(service))
        if facts is None or (subject.kind is SubjectKind.SERVICE and service != (subject.namespace, subject.name)):
            continue
        if selected & keys or not selected:
            not_ready = sorted(key[1] for key in selected & keys if not state.rows[key].ready)
            found.append(Reach(service, facts, tuple(not_ready)))
    return found


def _short(state: State, pools: set[str]) -> list[Short]:
    return [
        Short(name, has, expected)
        for name, (has, expected) in sorted(state.short_of_gpus.items())
        if not pools.isdisjoint(state.ledger.pools_of(name))
    ]


def worst(rows: Sequence[PodRow], missing: Sequence[NotCreated], report: HopReport | None) -> Diagnosis | None:
    """
    The diagnosis to show: of the hop that broke first, the commonest cause, of the pod that has it longest.
    """
    first = report.first_broken if report is not None else None
    troubled = [(row, why) for row in rows if (why := trouble(row)) is not None]
    here = [(row, why) for row, why in troubled if first is None or why.hop is first] or troubled
    counts: dict[str, int] = {}
    for _, why in here:
        counts[why.cause] = counts.get(why.cause, 0) + 1
    refused = max(missing, key=lambda blocked: blocked.pods, default=None)
    if refused is not None and refused.pods > max(counts.values(), default=0):
        return refused.diagnosis
    if not here:
        return failure_reason(rows)
    return min(here, key=lambda found: (-counts[found[1].cause], str(found[0].created or "~"), found[0].key))[1]


def _changes(
    state: State, slots: Sequence[Slot], rows: Sequence[PodRow], subject: Subject, pool: str, now: datetime
) -> Iterable[Change]:
    """Of its workloads, of its pods' nodes and of its pool's nodes, the newest first."""
    workloads: set[Key | None] = {slot[0] for slot in slots}
    nodes = {row.node for row in rows if row.node} if subject.kind is not SubjectKind.NODE else {subject.name}
    in_pool = subject.kind is not SubjectKind.NODE and bool(pool)
    for change in state.changes.newest_first(now):
        if change.kind == "Node":
            if change.name in nodes or (in_pool and pool in state.ledger.pools_of(change.name)):
                yield change
        elif change.workload is not None and change.workload in workloads:
            yield change


def _parents(labels: dict[str, str], subject: Subject) -> tuple[Subject, ...]:
    namespace, workload, component = labels["namespace"], labels["workload"], labels["component"]
    parents: list[Subject] = []
    if component and subject.kind in (SubjectKind.POD, SubjectKind.SERVICE):
        parents.append(component_subject(((namespace, workload), component)))
    if workload and subject.kind is not SubjectKind.WORKLOAD:
        parents.append(Subject(SubjectKind.WORKLOAD, namespace, workload))
    if labels["node"] and subject.kind in (SubjectKind.POD, SubjectKind.GPU):
        parents.append(Subject(SubjectKind.NODE, "", labels["node"]))
    if labels["product"] and subject.kind is not SubjectKind.POOL:
        parents.append(Subject(SubjectKind.POOL, "", labels["product"]))
    return tuple(parents)


def _maintenance(state: State, subject: Subject, rows: Iterable[PodRow]) -> tuple[str, ...]:
    nodes = {subject.name} if subject.kind is SubjectKind.NODE else {row.node for row in rows if row.node}
    if subject.kind is SubjectKind.GPU:
        nodes = {str(state.facts.get(subject, {}).get("node", ""))}
    worked_on = (name for name in nodes if _node_fact(state, name, "node.maintenance") is True)
    return tuple(sorted(worked_on))


def _node_fact(state: State, node: str, name: str) -> object:
    return state.facts.get(Subject(SubjectKind.NODE, "", node), {}).get(name)


def _count(facts: Facts, name: str) -> int | None:
    value = facts.get(name)
    return value if isinstance(value, int) and not isinstance(value, bool) else None
