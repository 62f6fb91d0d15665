"""The field of one need: nodes where it could run, who holds GPUs there, and which of them may give."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime

import msgspec

from sevenhop.core.inventory.objects import Key
from sevenhop.core.inventory.pools import NO_WORKLOAD
from sevenhop.core.inventory.products import is_gpu_resource
from sevenhop.core.inventory.state import Slot, State
from sevenhop.core.inventory.workloads import Tier
from sevenhop.core.objects.pod import Pod
from sevenhop.core.placement import constraints as c
from sevenhop.core.placement.evaluation import class_of, evaluate
from sevenhop.core.placement.nodes import NodeView
from sevenhop.core.remediation.plan import Answer, Considered, Need, NoPlanReason
from sevenhop.core.remediation.planning.donors import Donor, donor_of
from sevenhop.core.remediation.planning.drains import grace_of, too_late
from sevenhop.core.remediation.planning.reservations import Reservations
from sevenhop.core.remediation.planning.victims import Reducible
from sevenhop.core.remediation.planning.words import count, short_product, slot_name, some
from sevenhop.core.remediation.playbook import Playbook
from sevenhop.core.remediation.reduction import ScalingTable

_FIXED = c.UNRESOLVABLE & ~c.DEVICES
"""What keeps a pod from a node whoever leaves it; devices may be what a victim holds."""

MOST_DONORS = 200
"""Lower-tier components that are looked at, those on the nodes that lack least first."""

MOST_NAMED = 40
"""Holders of the same or a higher tier that are listed by name."""


class Field(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """
    Attributes:
        useful: Nodes where victims could make room, those that lack fewest GPUs first, and how many these are.
        reducible: Who goes from each of `donors`.
        considered: Holders that give nothing, with the reason.
        others: Waiting pods of the same component that need no group: any is as good as another of its class.
    """

    useful: dict[str, int]
    donors: tuple[Donor, ...]
    reducible: tuple[Reducible, ...]
    considered: tuple[Considered, ...]
    others: tuple[Key, ...]


def candidates(
    state: State,
    need: Need,
    pods: Sequence[Pod],
    scaling: ScalingTable,
    reserved: Reservations,
    playbook: Playbook,
    now: datetime,
    own: str = "",
) -> Field | Answer:
    """Everybody who holds GPUs where the pods could run; an `Answer` if nobody ranks lower.  `own` as in `donor_of`."""
    views = _usable(state, pods)
    slot = (need.workload, need.component)
    holders = _holders(state, views, need.workload)
    rank = Tier(need.tier).rank
    lower = [held for held in holders if state.tier_of[held[0]].rank < rank]
    not_lower = [held for held in holders if state.tier_of[held[0]].rank >= rank]
    considered = [*_ranked(state, need, not_lower), *_of_no_workload(state, views)]
    if not lower:
        return _nobody_lower(state, need, holders, considered)
    missing = _missing(state, views, lower, pods)
    near, passed = _nearest(state, lower, missing)
    donors: list[Donor] = []
    refused: list[Considered] = []
    for each in near:
        found = donor_of(state, each, scaling, reserved, own)
        if isinstance(found, Donor) and (why := _all_too_late(found, playbook)):
            found = Considered(slot_name(each), "slow", why)
        if isinstance(found, Considered):
            refused.append(found)
        else:
            donors.append(found)
    refused += passed
    known = state.objects.pods()
    reducible = tuple(Reducible(donor.ruler.chooser, donor.units, known, now) for donor in donors)
    return Field(
        useful={name: missing[name] for name in sorted(missing, key=lambda name: (missing[name], name))},
        donors=tuple(donors),
        reducible=reducible,
        considered=(*refused, *considered),
        others=_alike(state, slot, pods),
    )


def _all_too_late(donor: Donor, playbook: Playbook) -> str:
    """Where each of its replicas is: of some, the others may do, and that is seen when victims are chosen."""
    pods = {pod.metadata.key: pod for pod in donor.pods}
    soonest = min(grace_of(pods[key] for key in unit.pods) for unit in donor.units)
    return too_late(soonest, playbook)


def _usable(state: State, pods: Sequence[Pod]) -> list[NodeView]:
    """Nodes on which one of the pods could run, if only others were not there."""
    cluster = state.placement
    found: dict[int, NodeView] = {}
    for wanted in dict.fromkeys(class_of(cluster, pod) for pod in pods):
        needs = wanted.demand.needs
        for mask, indexes in evaluate(cluster, wanted).groups().items():
            if mask & _FIXED:
                continue
            for index in indexes:
                view = cluster.order[index]
                if all(amount <= view.allocatable.get(name, 0) or _is_by_claim(state, name) for name, amount in needs):
                    found[index] = view
    return [found[index] for index in sorted(found)]


def _is_by_claim(state: State, resource: str) -> bool:
    return "/" in resource and state.placement.ledger.class_for_resource(resource) is not None


def _holders(state: State, views: Sequence[NodeView], mine: Key) -> list[Slot]:
    pools = {pool for view in views for pool in state.ledger.pools_of(view.name)}
    slots = {slot for pool in pools for slot in state.ledger.held_in(pool) if slot is not None}
    return sorted(slot for slot in slots if slot[0] != mine and slot[0] in state.tier_of)


def _ranked(state: State, need: Need, slots: Sequence[Slot]) -> list[Considered]:
    found = []
    for slot in slots[:MOST_NAMED]:
        tier = state.tier_of[slot[0]]
        word = "the same tier" if tier.value == need.tier else "a higher tier"
        found.append(Considered(slot_name(slot), "tier", f"{word}: {tier.value}"))
    if len(slots) > MOST_NAMED:
        more = len(slots) - MOST_NAMED
        found.append(Considered(f"{more} more", "tier", f"none of them ranks lower than {need.tier}"))
    return found


def _of_no_workload(state: State, views: Sequence[NodeView]) -> list[Considered]:
    pools = {pool for view in views for pool in state.ledger.pools_of(view.name)}
    pods = sum(state.ledger.held_in(pool).get(None, (0, 0))[1] for pool in pools)
    return [Considered(count(pods, "other pod"), "not-reducible", NO_WORKLOAD)] if pods else []


def _nobody_lower(state: State, need: Need, holders: Sequence[Slot], considered: list[Considered]) -> Answer:
    names = list(dict.fromkeys(slot[0] for slot in holders))
    product = short_product(need.product)
    if not names:
        text = f"no inference workload holds {product} where {need.component} could run"
        return Answer(reason=NoPlanReason.NO_DONOR, text=text, considered=tuple(considered))
    hold = f"{count(len(names), 'workload')} hold{'s' if len(names) == 1 else ''} {product}, none ranks lower"
    if not any(_states_rank(state, key) for key in (need.workload, *names)):
        who = some("/".join(key) for key in (need.workload, *names))
        text = f"{hold}; set sevenhop.dev/tier (critical, standard or batch) on {who}"
        return Answer(reason=NoPlanReason.NO_TIERS, text=text, considered=tuple(considered))
    text = f"{hold} than {'/'.join(need.workload)} ({need.tier})"
    return Answer(reason=NoPlanReason.NO_DONOR, text=text, considered=tuple(considered))


def _states_rank(state: State, key: Key) -> bool:
    """Whether anybody said what it is worth: annotation, policy, or a priority that is not everybody's."""
    workload = state.workloads.get(key)
    if workload is None:
        return False
    if workload.tier is not None or any(part.priority_class for part in workload.components):
        return True
    return any(state.priority_of.get((key, part.name), 0) for part in workload.components)


def _missing(state: State, views: Sequence[NodeView], lower: Iterable[Slot], pods: Sequence[Pod]) -> dict[str, int]:
    """Node to the GPUs that it lacks for the smallest of the pods, where those of lower tier hold as many."""
    gives: dict[str, int] = {}
    for slot in lower:
        for row in state.pods_of(slot):
            if row.live and row.node:
                gives[row.node] = gives.get(row.node, 0) + row.gpus
    smallest = min((_gpus(state, pod) for pod in pods), key=lambda each: each[1])
    resource, amount = smallest
    found: dict[str, int] = {}
    for view in views:
        if view.name not in gives:
            continue
        lacks = amount - view.free.get(resource, 0) if resource else 0
        if lacks <= gives[view.name]:
            found[view.name] = max(lacks, 0)
    return found


def _gpus(state: State, pod: Pod) -> tuple[str, int]:
    """The resource that counts, and how much; empty where claims ask for devices."""
    needs = class_of(state.placement, pod).demand.needs
    asked = [(name, amount) for name, amount in needs if is_gpu_resource(name) and not _is_by_claim(state, name)]
    return max(asked, key=lambda each: each[1], default=("", 0))


def _nearest(state: State, lower: Sequence[Slot], missing: dict[str, int]) -> tuple[list[Slot], list[Considered]]:
    best: list[tuple[int, int, Slot]] = []
    passed: list[Considered] = []
    for slot in lower:
        lacks = [missing[row.node] for row in state.pods_of(slot) if row.live and row.node in missing]
        if lacks:
            best.append((min(lacks), state.tier_of[slot[0]].rank, slot))
        else:
            text = "its pods are not where enough could come free for a pod that waits"
            passed.append(Considered(slot_name(slot), "no-help", text))
    best.sort()
    if len(best) > MOST_DONORS:
        more = len(best) - MOST_DONORS
        passed.append(Considered(f"{more} more", "farther", "more would have to leave their nodes"))
    return [slot for _, _, slot in best[:MOST_DONORS]], _cut(passed)


def _cut(passed: list[Considered]) -> list[Considered]:
    if len(passed) <= MOST_NAMED:
        return passed
    more = len(passed) - MOST_NAMED
    return [*passed[:MOST_NAMED], Considered(f"{more} more", "no-help", "they free nothing where it helps")]


def _alike(state: State, slot: Slot, pods: Sequence[Pod]) -> tuple[Key, ...]:
    part = state.part(slot)
    if part is None or part.pods_per_replica > 1:
        return ()
    classes = {class_of(state.placement, pod) for pod in pods}
    pending = state.placement.pending
    return tuple(
        sorted(
            row.key
            for row in state.pods_of(slot)
            if row.key in pending and not row.gang and class_of(state.placement, pending[row.key]) in classes
        )
    )
