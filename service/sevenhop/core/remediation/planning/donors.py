"""Who could give: components of a lower tier that hold what is needed, and how far each may be reduced."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from sevenhop.core.facts.schema import Unknown
from sevenhop.core.incidents.text import plain
from sevenhop.core.inventory.read_component import budget_floor, budget_selects
from sevenhop.core.inventory.rows import PodRow
from sevenhop.core.inventory.state import Slot, State, component_subject
from sevenhop.core.inventory.workloads import Component, Tier, Workload
from sevenhop.core.objects.cluster import Controller
from sevenhop.core.objects.pod import Pod
from sevenhop.core.remediation.consent import refusal_in
from sevenhop.core.remediation.plan import Considered
from sevenhop.core.remediation.planning.reservations import Reservations
from sevenhop.core.remediation.planning.victims import Unit, units_of
from sevenhop.core.remediation.planning.words import slot_name
from sevenhop.core.remediation.reduction import (
    Chooser,
    Conflict,
    ConflictReason,
    Ruler,
    ScalingSpec,
    ScalingTable,
    View,
)
from sevenhop.core.remediation.view import view_of

BORROWED = "sevenhop.dev/borrowed"


class Donor(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """
    A component that may be reduced.

    Attributes:
        units: Its replicas, in order of name.
        spare: Most replicas that it may lose.
        floor: Replicas that stay, whatever happens.
        pods: Live ones, as the table of scaling is given them.
    """

    slot: Slot
    tier: Tier
    workload: Workload
    part: Component
    ruler: Ruler
    spec: ScalingSpec
    units: tuple[Unit, ...]
    spare: int
    floor: int
    pods: tuple[Pod, ...]


def donor_of(
    state: State, slot: Slot, scaling: ScalingTable, reserved: Reservations, own: str = ""
) -> Donor | Considered:
    """
    What the component of a slot could give, or why it gives nothing.

    Its tier is not asked for: that it ranks lower is known already.

    Args:
        own: Id of the plan that is looked at again: its own mark, left by a step that was cut off, is no loan.
    """
    view = view_of(state, own)
    workload, part = state.workloads.get(slot[0]), state.part(slot)
    if workload is None or part is None:
        return _no(slot, "unknown", "it is not known as a workload any more")
    rows = [row for row in state.pods_of(slot) if row.live]
    pods = [pod for row in rows if (pod := state.objects.pods().get(row.key)) is not None]
    refused = _said_no(view, workload) or _in_motion(state, slot, workload, part, rows, reserved)
    if refused is not None:
        return refused
    spec = scaling.get(workload.framework)
    if spec is None:
        return _no(slot, ConflictReason.NOT_PROVEN, f"scaling {workload.framework} is not proven")
    ruled = spec.rule(view, workload, part, pods)
    if isinstance(ruled, Conflict):
        return _no(slot, ruled.reason, ruled.text)
    return _reducible(state, view, workload, part, spec, ruled, rows, pods)


def _reducible(
    state: State,
    view: View,
    workload: Workload,
    part: Component,
    spec: ScalingSpec,
    ruler: Ruler,
    rows: Sequence[PodRow],
    pods: Sequence[Pod],
) -> Donor | Considered:
    slot = (workload.key, part.name)
    marked = _annotation_of(view, ruler)
    if marked is not None:
        return _no(slot, *marked)
    units = units_of(rows, {pod.metadata.key: pod for pod in pods}, ruler.unit_pods)
    if units is None:
        return _no(
            slot, ConflictReason.INDIVISIBLE, f"its pods cannot be told apart by replica ({ruler.unit_pods} each)"
        )
    gang = _gang_across(rows, units) if ruler.chooser in (Chooser.REPLICA_SET, Chooser.HIGHEST) else ""
    if gang:
        text = f"its replicas are one gang ({plain(gang, 40)}): with fewer, one that restarts may wait for ever"
        return _no(slot, ConflictReason.INDIVISIBLE, text)
    if len(units) != ruler.replicas:
        text = f"it has {len(units)} of the {ruler.replicas} replicas that it asks for: a cut frees nothing for certain"
        return _no(slot, "in-motion", text)
    floor, why = floor_of(state, workload, part, ruler, rows)
    ready = sum(unit.ready for unit in units)
    spare = len(units) - floor
    if spare <= 0:
        return _no(slot, ConflictReason.FLOOR, f"at its floor of {floor}: {why}")
    if ready < floor:
        return _no(slot, ConflictReason.FLOOR, f"{ready} ready, fewer than its floor of {floor}: {why}")
    if ruler.chooser is Chooser.HIGHEST:
        blocked = _waits_in_order(state, pods)
        if blocked:
            return _no(slot, "in-motion", blocked)
    if ruler.chooser is Chooser.REPLICA_SET and len({_maker(pod) for pod in pods}) > 1:
        return _no(slot, "in-motion", "its pods are of several ReplicaSets: which of these shrinks is not known")
    tier = state.tier_of[workload.key]
    return Donor(
        slot=slot,
        tier=tier,
        workload=workload,
        part=part,
        ruler=ruler,
        spec=spec,
        units=units,
        spare=spare,
        floor=floor,
        pods=tuple(pods),
    )


def floor_of(
    state: State, workload: Workload, part: Component, ruler: Ruler, rows: Sequence[PodRow]
) -> tuple[int, str]:
    """
    Replicas that must stay, and what says so: the highest of all that is stated, and never the last replica, unless
    the owner states a minimum of 0.

    A component's own minimum is not asked: where it is a limit the ruler's floor has it, and where it is the lower end
    of a range (KServe's minReplicas) it is the very field that is lowered.
    """
    stated = state.policy.minimum(workload.namespace, workload.name, part.name)
    floors = [(ruler.floor, f"{ruler.target} states it")]
    if stated is not None:
        floors.append((stated, "the policy states it"))
    if (stated if stated is not None else part.minimum) != 0:
        floors.append((1, "never to zero, unless a minimum of 0 is stated"))
    size = max(1, ruler.unit_pods)
    labels = [pod.metadata.labels for row in rows if (pod := state.objects.pods().get(row.key)) is not None]
    for budget in state.budgets.get(workload.namespace, {}).values():
        if any(budget_selects(budget.spec.selector, each) for each in labels):
            pods = budget_floor(budget, ruler.replicas * size)
            if pods is not None:
                floors.append((-(-pods // size), f"PodDisruptionBudget {budget.metadata.name}"))
    # Of equal floors the one that says most: what is stated before what is our own habit.
    return max(floors, key=lambda each: each[0])


def _said_no(view: View, workload: Workload) -> Considered | None:
    objects = [(kind, view.get(kind, *key)) for kind, key in workload.roots]
    objects.append(("Namespace", view.get("Namespace", "", workload.namespace)))
    for kind, obj in objects:
        if obj is None:
            continue
        found = _reads(obj.metadata.annotations, f"{kind.partition('.')[0]} {obj.metadata.name}")
        if found is not None:
            return Considered(slot_name((workload.key, "")), *found)
    return None


def _annotation_of(view: View, ruler: Ruler) -> tuple[str, str] | None:
    target = ruler.target
    obj = view.get(target.kind, target.namespace, target.name)
    return _reads(obj.metadata.annotations, str(target)) if obj is not None else None


def _reads(annotations: dict[str, str], where: str) -> tuple[str, str] | None:
    no = refusal_in(annotations, where)
    if no:
        return ConflictReason.OPTED_OUT, no
    if annotations.get(BORROWED):
        return ConflictReason.BORROWED, f"it has given already ({BORROWED} on {where})"
    return None


def _in_motion(
    state: State, slot: Slot, workload: Workload, part: Component, rows: Sequence[PodRow], reserved: Reservations
) -> Considered | None:
    taker = reserved.taker(slot)
    if taker:
        return _no(slot, ConflictReason.BORROWED, f"plan {taker} takes from it already")
    if part.intended_zero:
        return _no(slot, "in-motion", f"it is not meant to run ({part.intended_zero})")
    for kind, key in workload.roots:
        unknown = state.gate(kind) or state.unreadable_gate(kind, key)
        if unknown is not None:
            return _no(slot, ConflictReason.UNKNOWN, f"its {kind.partition('.')[0]} is {unknown}")
    if any(row.unreadable for row in rows):
        return _no(slot, ConflictReason.UNKNOWN, "one of its pods could not be read")
    rolling = state.facts.get(component_subject(slot), {}).get("component.rolling")
    if isinstance(rolling, Unknown):
        return _no(slot, ConflictReason.UNKNOWN, f"whether it is being rolled out is {rolling}")
    if rolling is True:
        return _no(slot, ConflictReason.ROLLOUT, "a rollout is under way")
    return None


def _gang_across(rows: Sequence[PodRow], units: Sequence[Unit]) -> str:
    """
    A gang that several replicas belong to: its least is stated on it, and nobody lowers that with the replicas.

    Operators that make the gang themselves, as Grove does, are asked for their least where their replicas are ruled.
    """
    gangs = {row.key: row.gang for row in rows}
    seen: set[str] = set()
    for unit in units:
        here = {gangs[key] for key in unit.pods} - {""}
        if both := sorted(here & seen):
            return both[0]
        seen |= here
    return ""


def _maker(pod: Pod) -> str:
    owner = pod.metadata.controller()
    return owner.uid if owner is not None else ""


def _waits_in_order(state: State, pods: Sequence[Pod]) -> str:
    """
    An OrderedReady StatefulSet does nothing at all while one of its pods that stays is not ready.

    `updateStatefulSet` in pkg/controller/statefulset/stateful_set_control.go returns at the first replica that is not
    running and ready, before it looks at those that are too many.
    """
    for pod in sorted(pods, key=lambda each: each.metadata.key):
        owner = pod.metadata.controller()
        found = state.objects.by_uid(owner.uid) if owner is not None else None
        if found is None or found[0] != "StatefulSet.apps" or not isinstance(found[1], Controller):
            continue
        row = state.rows.get(pod.metadata.key)
        if row is not None and not row.ready and found[1].spec.pod_management_policy != "Parallel":
            return f"its StatefulSet removes nothing in order while {pod.metadata.name} is not ready"
    return ""


def _no(slot: Slot, reason: str, text: str) -> Considered:
    return Considered(slot_name(slot), str(reason), text)
