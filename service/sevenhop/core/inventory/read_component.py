"""From a component's pods, its root and its controllers to its facts, its labels and its place in a queue."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any

import msgspec

from sevenhop.core.facts import component as facts
from sevenhop.core.facts.labels import of_component, of_workload
from sevenhop.core.facts.schema import Facts, Unknown, UnknownReason
from sevenhop.core.inventory.blocked import missing_of
from sevenhop.core.inventory.capacity import Waiting
from sevenhop.core.inventory.claims_wanted import Asked, asked_by_claims
from sevenhop.core.inventory.leftovers import without_history
from sevenhop.core.inventory.pool_names import is_of, pool_name
from sevenhop.core.inventory.pools_waiting import claims_on, may_wait_by_claim, place_in_queue
from sevenhop.core.inventory.products import Product, wanted_products
from sevenhop.core.inventory.rows import PodRow
from sevenhop.core.inventory.state import Labelled, Slot, State
from sevenhop.core.inventory.waiting import spell
from sevenhop.core.inventory.workloads import Component, Tier, Workload
from sevenhop.core.objects.base import LabelSelector, Object, condition
from sevenhop.core.objects.cluster import Controller, HorizontalPodAutoscaler, PodDisruptionBudget
from sevenhop.core.objects.pod import Pod
from sevenhop.core.placement.constraints import NODE_AFFINITY, SELECTOR, TAINT
from sevenhop.core.placement.demand import demand_of
from sevenhop.core.placement.selectors import compile_selector
from sevenhop.core.words import whole

CANARY = "sevenhop.dev/canary"
HPAS = "HorizontalPodAutoscaler.autoscaling"
PDBS = "PodDisruptionBudget.policy"


class Read(msgspec.Struct, frozen=True, gc=False):
    """
    Attributes:
        tier: Of its workload.
        queue: Its place among those that wait for the pool; None if it does not.
        wake: When the facts change by time alone.
    """

    facts: Facts
    labels: dict[str, str]
    tier: Tier
    pool: str
    queue: Waiting | None
    wake: datetime | None


class Sight(msgspec.Struct, frozen=True, gc=False):
    """What of all components cannot be seen now, and why; the same for a whole pass."""

    pods: Unknown | None
    scalers: Unknown | None


def sight(state: State) -> Sight:
    return Sight(state.gate("Pod") or state.belonging_gate(), state.gate(HPAS))


def read_component(state: State, workload: Workload, part: Component, seen: Sight, now: datetime) -> Read:
    """
    Everything about one component as of `now`; its spell of waiting in `state` takes this look into account.
    """
    slot = (workload.key, part.name)
    rows = state.pods_of(slot)
    missing = missing_of(state, slot, part, rows)
    waiting = [row for row in rows if row.waits_since is not None and row.waiting]
    since, wake = _since(state, slot, rows, waiting, missing, now)
    pool = pool_of(state, part, rows, waiting)
    state.priority_of[slot] = max([row.priority for row in rows], default=0)
    tier = state.tier(workload)
    labels = _labels(state, slot, workload, part, tier, pool)
    roots = [obj for kind, key in workload.roots if (obj := state.objects.at(kind, key)) is not None]
    own = facts.derive(
        part,
        without_history(part, rows),
        missing=missing,
        since=since,
        rolling=is_rolling(state, workload.namespace, rows, roots),
        minimum=_stated_minimum(state, workload, part, rows),
        scaler_maxed=_scaler_maxed(state, workload, part, rows) if seen.scalers is None else seen.scalers,
        canary=part.canary or _is_canary(roots),
        pods_unknown=seen.pods or _unread(rows),
        root_unknown=_root_unknown(state, workload),
    )
    queue = place_in_queue(slot, tier, waiting, since, claims_on(state, waiting, pool)) if pool else None
    return Read({**labels, **own}, labels, tier, pool, queue, wake)


def _labels(state: State, slot: Slot, workload: Workload, part: Component, tier: Tier, pool: str) -> dict[str, str]:
    known = state.labelled.get(slot)
    if known is not None and known.workload is workload and known.tier is tier and known.pool == pool:
        return known.labels
    whose = of_workload(state.cluster, workload, tier=tier.value, owner=state.owner(workload))
    labels = of_component(whose, part, product=pool)
    state.labelled[slot] = Labelled(workload, tier, pool, labels)
    return labels


def _unread(rows: Sequence[PodRow]) -> Unknown | None:
    unread = min((row.key[1] for row in rows if row.unreadable), default=None)
    return None if unread is None else Unknown(UnknownReason.UNREADABLE, f"Pod {unread}")


def _root_unknown(state: State, workload: Workload) -> Unknown | None:
    for kind, key in workload.roots:
        unknown = state.gate(kind) or state.unreadable_gate(kind, key)
        if unknown is not None:
            return unknown
    return None


def _since(
    state: State,
    slot: Slot,
    rows: Iterable[PodRow],
    waiting: Iterable[PodRow],
    missing: Iterable[facts.NotCreated],
    now: datetime,
) -> tuple[datetime | None, datetime | None]:
    times = {row.uid: row.waits_since for row in waiting if row.waits_since is not None}
    times |= {blocked.controller: blocked.since for blocked in missing if blocked.since is not None}
    before = state.spells.get(slot)
    if before is None and not times:
        return None, None
    placed = {row.uid: row.placed_at for row in rows if row.node}
    after = spell(before, times, placed, now)
    if after != before:
        state.changed_histories.add(("spells", "/".join((*slot[0], slot[1]))))
    if after is None:
        state.spells.pop(slot, None)
        return None, None
    state.spells[slot] = after
    return (after.since if times else None), after.ends_at()


# Which pool


def pool_of(state: State, part: Component, rows: Sequence[PodRow], waiting: Sequence[PodRow]) -> str:
    """
    The pool that a component runs in or waits for; empty without GPUs, and while nothing tells which devices by claims
    it would get.

    What the pods ask for decides: the product where they name one, else the nodes that selectors, affinity and taints
    leave to those that wait; of several pools that where their siblings run, else the largest: a pod that takes any
    product waits for all of them, and is told once.
    """
    by_claim = _by_claim(state, rows, waiting)
    if by_claim:
        return by_claim
    resource = part.gpu_resource or min((row.resource for row in rows if row.resource), default="")
    if not resource:
        return ""
    pools = {name: sums for name, sums in state.ledger.pools().items() if sums.resource == resource}
    products = (part.product,) if part.product else _wanted(state, waiting or rows)
    if products:
        named = {name: sums for name, sums in pools.items() if any(is_of(name, product) for product in products)}
        if not named:
            return pool_name(Product(name=products[0]), resource)
        pools = named
    if len(pools) > 1 and waiting:
        reachable = _reachable(state, waiting, pools)
        pools = {name: sums for name, sums in pools.items() if name in reachable} or pools
    if len(pools) == 1:
        return next(iter(pools))
    siblings = Counter(name for row in rows if (name := state.ledger.pool_of_pod(row.key)) in pools)
    if siblings:
        return min(siblings, key=lambda name: (-siblings[name], name))
    return min(pools, key=lambda name: (-pools[name].allocatable, name), default=resource)


def _by_claim(state: State, rows: Sequence[PodRow], waiting: Sequence[PodRow]) -> str:
    """
    The pool whose devices waiting pods could get by claims, else that of those which the others hold; empty for pods
    that ask a device plugin.
    """
    pools: Mapping[str, Asked] = {}
    first = min((row for row in waiting if may_wait_by_claim(row)), key=lambda row: row.key, default=None)
    if first is not None:
        pools = asked_by_claims(state, first)
    if not pools and any(row.resource for row in rows):
        return ""
    held = Counter(name for row in rows if (name := state.ledger.pool_of_pod(row.key)) in pools or (name and not pools))
    if held:
        return min(held, key=lambda name: (-held[name], name))
    sums = state.ledger.pools()
    return min(pools, key=lambda name: (-sums[name].allocatable, name), default="")


def _reachable(state: State, waiting: Sequence[PodRow], pools: Collection[str]) -> set[str]:
    """Those of the pools that have a node which nothing but time and other pods keeps the waiting pod from."""
    pod = _any_pod(state, waiting)
    found: set[str] = set()
    if pod is None:
        return found
    cluster = state.placement
    demand = demand_of(pod, cluster.namespace_labels(pod.metadata.namespace))
    never = SELECTOR | NODE_AFFINITY | TAINT
    for view, mask in zip(cluster.order, cluster.static_masks(demand.static), strict=True):
        if not mask & never:
            found.update(name for name in state.ledger.pools_of(view.name) if name in pools)
            if len(found) == len(pools):
                break
    return found


def _wanted(state: State, rows: Sequence[PodRow]) -> tuple[str, ...]:
    pod = _any_pod(state, rows)
    return wanted_products(pod.spec) if pod is not None else ()


def _any_pod(state: State, rows: Iterable[PodRow]) -> Pod | None:
    """One that speaks for all: of several that differ always the same, in whatever order they came."""
    key = min([row.key for row in rows], default=None)
    return state.objects.pods().get(key) if key is not None else None


# Rollouts


def is_rolling(state: State, namespace: str, rows: Iterable[PodRow], roots: Iterable[Object]) -> bool:
    """
    Whether a rollout is under way.

    Pods of two revisions of one controller; or a controller that has not yet seen its newest spec, or has not made
    all its pods from it.
    """
    revisions = {(row.family, row.revision) for row in rows if row.live and row.family}
    named = [family for family, revision in revisions if revision]
    if len(named) > len(set(named)):
        return True
    controllers = [_controller(state, namespace, family) for family in {family for family, _ in revisions}]
    return any(_is_behind(obj) for obj in (*controllers, *roots) if obj is not None)


def _controller(state: State, namespace: str, family: str) -> Any:
    kind, _, name = family.rpartition("/")
    return state.objects.get(kind, namespace, name)


def _is_behind(obj: Any) -> bool:
    if not isinstance(obj, Controller):
        status = getattr(obj, "status", None)
        observed = status.get("observedGeneration") if isinstance(status, dict) else None
        return isinstance(observed, int) and 0 < observed < obj.metadata.generation
    status = obj.status
    if obj.spec.paused or not obj.spec.replicas:
        return False
    if 0 < status.observed_generation < obj.metadata.generation:
        return True
    # Pods of the old template are still there; missing pods of the new one alone are a scale-up.
    old = status.replicas - status.updated_replicas
    return old > 0 and (not status.current_revision or status.current_revision != status.update_revision)


def _is_canary(roots: Iterable[Object]) -> bool:
    return any(CANARY in obj.metadata.annotations for obj in roots)


# Floors and ceilings


def _stated_minimum(state: State, workload: Workload, part: Component, rows: Sequence[PodRow]) -> int | None:
    by_policy = state.policy.minimum(workload.namespace, workload.name, part.name)
    if by_policy is not None or part.minimum is not None:
        return by_policy
    budgets = state.budgets.get(workload.namespace)
    pod = _any_pod(state, rows) if budgets else None
    if not budgets or pod is None or part.pods_per_replica > 1:
        return None
    floors = [
        floor
        for budget in budgets.values()
        if budget_selects(budget.spec.selector, pod.metadata.labels)
        and (floor := budget_floor(budget, part.desired)) is not None
    ]
    return max(floors, default=None)


def budget_selects(selector: LabelSelector | None, labels: dict[str, str]) -> bool:
    return selector is not None and compile_selector(selector).matches(labels)


def budget_floor(budget: PodDisruptionBudget, desired: int | None) -> int | None:
    """Kubernetes rounds percentages up, of both kinds."""
    if desired is None:
        return None
    if budget.spec.min_available is not None:
        return min(_amount(budget.spec.min_available, desired), desired)
    if budget.spec.max_unavailable is not None:
        return max(0, desired - _amount(budget.spec.max_unavailable, desired))
    return None


def _amount(value: int | str, of: int) -> int:
    text = str(value)
    if text.endswith("%"):
        return -(-max(0, whole(text[:-1]) or 0) * of // 100)
    return max(0, whole(text) or 0)


def _scaler_maxed(state: State, workload: Workload, part: Component, rows: Sequence[PodRow]) -> bool:
    scalers = state.scalers.get(workload.namespace)
    if not scalers:
        return False
    targets = {(kind, name) for row in rows for kind, _, name in [row.family.rpartition("/")]}
    if part.scale is not None:
        targets.add((part.scale.kind, part.scale.name))
    names = {(kind.partition(".")[0], name) for kind, name in targets}
    for hpa in scalers.values():
        target = hpa.spec.scale_target_ref
        if (target.kind, target.name) in names and _is_maxed(hpa):
            return True
    return False


def _is_maxed(hpa: HorizontalPodAutoscaler) -> bool:
    limited = condition(hpa.status.conditions, "ScalingLimited")
    return (
        limited is not None
        and limited.status == "True"
        and limited.reason == "TooManyReplicas"
        and hpa.status.desired_replicas >= hpa.spec.max_replicas
    )


def wants_to_run(part: Component) -> bool:
    """Whether a replica is meant to run; what states no count is taken to run."""
    return not part.intended_zero and part.desired != 0
