"""Who waits for a pool, who has it, and who could give some of it up."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from sevenhop.core.facts import pool as facts
from sevenhop.core.facts.labels import labels
from sevenhop.core.facts.schema import Facts, Unknown, UnknownReason
from sevenhop.core.inventory.capacity import Holding, PoolCapacity, Waiting
from sevenhop.core.inventory.holds import Held
from sevenhop.core.inventory.objects import Key
from sevenhop.core.inventory.read_component import budget_floor, budget_selects, wants_to_run
from sevenhop.core.inventory.state import Slot, State, component_subject
from sevenhop.core.inventory.workloads import Component, Framework, Tier
from sevenhop.core.placement.devices import CLAIMS, SLICES

_HARD_MINIMUM = frozenset({Framework.DYNAMO, Framework.GROVE})
"""Whose minimum (`minAvailable`) ends the whole gang where it is not kept; elsewhere it is the end of a range."""

NO_WORKLOAD = "no inference workload: pods that nothing we know could scale"


class _Gift(msgspec.Struct, frozen=True, gc=False):
    """GPUs that a component could give, and why not more."""

    gpus: int
    reason: str


def read_pool(state: State, name: str, bad_ratio: float | Unknown = facts.NO_AGENT) -> Facts:
    """Labels and facts of one pool; `bad_ratio` is what agents tell."""
    queue = list(state.waiting_in.get(name, {}).values())
    top = highest_tier(queue)
    sums = state.ledger.pools().get(name)
    kinds = ("Node", "Pod", SLICES, CLAIMS) if sums is not None and sums.by_claim else ("Node", "Pod")
    unknown = state.gate(*kinds) or state.belonging_gate()
    own = facts.derive(
        sums,
        waiting_gpus=waiting_gpus(queue),
        waiting_on_repair=sum(each.on_repair for each in queue),
        waiting_tier=top.value if top is not None else "",
        reclaimable=_reclaimable(state, name, top) if top is not None else 0,
        autoscaler=_autoscaler(state, name),
        bad_ratio=bad_ratio,
        unknown=unknown,
    )
    return {**labels(state.cluster, product=name), **own}


def waiting_gpus(queue: Iterable[Waiting]) -> int | Unknown:
    """What all of them ask for together; unknown where one cannot be told."""
    total = 0
    for each in sorted(queue, key=lambda each: (each.workload, each.component)):
        if each.unclear:
            who = f"{'/'.join(each.workload)} {each.component}"
            return Unknown(UnknownReason.NO_SOURCE, f"{who} asks for {each.unclear}")
        total += each.gpus
    return total


def highest_tier(queue: Iterable[Waiting]) -> Tier | None:
    return max((Tier(each.tier) for each in queue), key=lambda tier: tier.rank, default=None)


def capacity(state: State, name: str) -> PoolCapacity:
    """
    One pool with everyone in it.

    Holdings are one per workload, the largest first; what belongs to no workload is one holding of its own.  Computed
    once for as long as nothing in the pool changes: a pool of thousands of nodes costs milliseconds.
    """
    known = state.capacities.get(name)
    if known is None:
        known = state.capacities[name] = _capacity(state, name)
    return known


def _capacity(state: State, name: str) -> PoolCapacity:
    queue = sorted(
        state.waiting_in.get(name, {}).values(),
        key=lambda each: (-Tier(each.tier).rank, str(each.since or ""), each.workload, each.component),
    )
    return msgspec.structs.replace(
        state.ledger.capacity(name),
        holdings=tuple(_holdings(state, name, highest_tier(queue))),
        waiting=tuple(queue),
        reserved=state.reserved.get(name, 0),
    )


def _holdings(state: State, name: str, top: Tier | None) -> list[Holding]:
    total: dict[Key | None, Held] = {}
    gives: dict[Key | None, int] = {}
    reasons: dict[Key | None, list[str]] = {}
    for slot, (gpus, pods), gift in _gifts(state, name, top):
        workload = slot[0] if slot is not None else None
        had = total.get(workload, (0, 0))
        total[workload] = (had[0] + gpus, had[1] + pods)
        gives[workload] = gives.get(workload, 0) + gift.gpus
        if gift.reason:
            reasons.setdefault(workload, []).append(f"{slot[1]}: {gift.reason}" if slot is not None else gift.reason)
    found: list[Holding] = []
    for workload, (gpus, pods) in total.items():
        known = state.workloads.get(workload) if workload is not None else None
        could = gives[workload]
        words = f"could give {could}" if could else "; ".join(reasons.get(workload, ()))
        tier = state.tier_of[known.key].value if known is not None else ""
        found.append(Holding(workload, tier, gpus, pods, could > 0, words, could))
    return sorted(found, key=lambda each: (-each.gpus, each.workload or ("~", "~")))


def _reclaimable(state: State, name: str, top: Tier) -> int:
    """Asked at every change of the pool: the thousands of the same tier are passed over at a glance."""
    lower = {tier for tier in Tier if tier.rank < top.rank}
    tiers = state.tier_of
    return sum(
        _gift(state, slot, gpus, top).gpus
        for slot, (gpus, _) in state.ledger.held_in(name).items()
        if slot is not None and tiers.get(slot[0]) in lower
    )


def _gifts(state: State, name: str, top: Tier | None) -> list[tuple[Slot | None, Held, _Gift]]:
    ordered = sorted(state.ledger.held_in(name).items(), key=lambda item: item[0] or (("~", "~"), ""))
    return [(slot, held, _gift(state, slot, held[0], top)) for slot, held in ordered]


def _gift(state: State, slot: Slot | None, held: int, top: Tier | None) -> _Gift:
    """What a component could give to the highest tier that waits, in whole replicas above its floor."""
    part = state.part(slot) if slot is not None else None
    if slot is None or part is None:
        return _Gift(0, NO_WORKLOAD)
    if top is None:
        return _Gift(0, "nobody waits")
    tier = state.tier_of[slot[0]]
    if tier.rank >= top.rank:
        same = "the same tier as" if tier is top else "a higher tier than"
        return _Gift(0, f"{tier.value}, {same} who waits")
    if part.scale is None or not part.scale.path:
        why = part.scale.note if part.scale is not None and part.scale.note else "nothing that could be scaled"
        return _Gift(0, why)
    return _above_floor(state, slot, part, held) or _Gift(0, "its replicas are not known")


def _above_floor(state: State, slot: Slot, part: Component, held: int) -> _Gift | None:
    own = state.facts.get(component_subject(slot), {})
    desired, ready = own.get("component.desired"), own.get("component.ready")
    if not isinstance(desired, int) or not isinstance(ready, int):
        return None
    floor = giving_floor(state, slot, part, desired)
    return _spare(part, held, spare=min(desired, max(ready, floor)) - floor, minimum=floor)


def giving_floor(state: State, slot: Slot, part: Component, desired: int) -> int:
    """
    Replicas that stay when a component gives, as a plan would have it (`planning.donors.floor_of`).

    That is not `component.min`: a range whose lower end is what runs only says how many are meant to run, and is
    lowered with the number; with nothing stated all but the last may go.
    """
    workload = state.workloads[slot[0]]
    stated = state.policy.minimum(workload.namespace, workload.name, part.name)
    least = part.minimum or 0
    floors = [stated or 0, least if least < desired or workload.framework in _HARD_MINIMUM else 0]
    if (stated if stated is not None else part.minimum) != 0:
        floors.append(1)
    budgets = state.budgets.get(workload.namespace, {})
    pods = (state.objects.pods().get(row.key) for row in state.pods_of(slot)) if budgets else ()
    pod = next(filter(None, pods), None)
    size = max(1, part.pods_per_replica)
    for budget in budgets.values():
        if pod is not None and budget_selects(budget.spec.selector, pod.metadata.labels):
            floors.append(-(-(budget_floor(budget, desired * size) or 0) // size))
    return max(floors)


def _spare(part: Component, held: int, *, spare: int, minimum: int) -> _Gift:
    if spare <= 0 or not wants_to_run(part):
        return _Gift(0, f"at its minimum of {minimum}")
    return _Gift(min(spare * part.gpus_per_replica, held), "")


def _autoscaler(state: State, name: str) -> str | Unknown:
    """What was last said about the pods that wait here; `adding` for any of them is what all of them wait for."""
    words: set[str] = set()
    for slot in state.waiting_in.get(name, {}):
        for row in state.pods_of(slot):
            if row.waiting:
                said = state.evidence.autoscaler(row.key, row.uid, row.waits_since)
                words.update({said.word} if said is not None else ())
    for word in ("adding", "backoff", "maxed"):
        if word in words:
            return word
    if state.evidence.seen_autoscaler:
        return "idle"
    return state.gate("Event") or "none"


def reclaimable_of(state: State, slot: Slot) -> int | None:
    """
    GPUs that a component could give and stay above its minimum, to whoever would be worth it; None where unknown.

    Who may take them is another question: a plan asks for tiers, owners and guards.
    """
    part = state.part(slot)
    if part is None or part.scale is None or not part.scale.path:
        return 0
    held = state.ledger.held_in(state.pool_of.get(slot, "")).get(slot, (0, 0))[0]
    gift = _above_floor(state, slot, part, held)
    return gift.gpus if gift is not None else None
