"""Would the scheduler make room by itself: its default preemption, without doing it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from enum import StrEnum
from typing import cast

import msgspec

from sevenhop.core.inventory.objects import Key
from sevenhop.core.objects.cluster import PodDisruptionBudget
from sevenhop.core.objects.pod import Pod
from sevenhop.core.placement import constraints as c
from sevenhop.core.placement.cluster import Cluster
from sevenhop.core.placement.evaluation import Evaluation, Evictable, class_of, masks_of
from sevenhop.core.placement.nodes import NodeView, Resident
from sevenhop.core.placement.selectors import compile_selector

BUDGETS = "PodDisruptionBudget.policy"


_MOST_COSTLY = 100
_ENOUGH = 500

_Budgets = list[tuple[PodDisruptionBudget, set[Key]]]
"""Each budget with the keys of the pods that it covers."""


class PreemptionReason(StrEnum):
    """Why preemption helps or does not; the first that applies."""

    HELPS = "helps"
    UNDER_WAY = "under_way"
    NEVER = "policy_never"
    NOT_HELPFUL = "not_helpful"
    NO_LOWER_PRIORITY = "no_lower_priority"
    NOT_ENOUGH = "not_enough"


class Preemption(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """
    Attributes:
        node: Where the scheduler would make room; None if nowhere.
        victims: Whom it would evict there.
        nodes: Every node where eviction would do.
        over_budget: Victims whose eviction breaks a PodDisruptionBudget: the scheduler avoids that, but does it.
        candidates: Nodes that an eviction could help at all.
        lowest: Lowest priority bound on them; None without candidates or without pods there.
    """

    reason: PreemptionReason
    node: str | None = None
    victims: tuple[Key, ...] = ()
    nodes: tuple[str, ...] = ()
    over_budget: tuple[Key, ...] = ()
    candidates: int = 0
    lowest: int | None = None


class _Candidate(msgspec.Struct, frozen=True, gc=False):
    view: NodeView
    victims: tuple[Resident, ...]
    violations: tuple[Key, ...]


def preempt(cluster: Cluster, pod: Pod, evaluation: Evaluation) -> Preemption:
    """
    What the scheduler's PostFilter would do for a pod that fits nowhere.

    As in kube-scheduler's default preemption: only nodes whose refusal an eviction can change; all pods of lower
    priority leave in thought, then as many as possible come back, those under a disruption budget first.

    Args:
        evaluation: Of this pod, current.
    """
    priority = pod.spec.priority or 0
    if _is_under_way(cluster, pod, priority):
        node = pod.status.nominated_node_name
        return Preemption(reason=PreemptionReason.UNDER_WAY, node=node, nodes=(node,))
    where = _evictable(cluster, pod, evaluation)
    possible, lowest = where.views, where.lowest
    if pod.spec.preemption_policy == "Never":
        return Preemption(reason=PreemptionReason.NEVER, candidates=len(possible), lowest=lowest)
    if not possible:
        return Preemption(reason=PreemptionReason.NOT_HELPFUL)
    if lowest is None or lowest >= priority:
        return Preemption(reason=PreemptionReason.NO_LOWER_PRIORITY, candidates=len(possible), lowest=lowest)
    lower = [v for v in possible if v.lowest_priority is not None and v.lowest_priority < priority]
    budgets = _budgets(cluster)
    found = _candidates(cluster, pod, evaluation, lower, budgets)
    if not found:
        return Preemption(reason=PreemptionReason.NOT_ENOUGH, candidates=len(possible), lowest=lowest)
    best = min(found, key=_cost)
    return Preemption(
        reason=PreemptionReason.HELPS,
        node=best.view.name,
        victims=tuple(r.key for r in best.victims),
        nodes=tuple(each.view.name for each in found),
        over_budget=best.violations,
        candidates=len(possible),
        lowest=lowest,
    )


def _is_under_way(cluster: Cluster, pod: Pod, priority: int) -> bool:
    view = cluster.views.get(pod.status.nominated_node_name)
    return view is not None and any(r.terminating and r.priority < priority for r in view.residents.values())


def _evictable(cluster: Cluster, pod: Pod, evaluation: Evaluation) -> Evictable:
    """The same for all priorities of a class, so it is kept with the class's evaluation."""
    if evaluation.evictable is None:
        needs = dict(class_of(cluster, pod).demand.needs)
        views = tuple(sorted(_resolvable(cluster, evaluation, needs), key=lambda view: view.index))
        lowest = min((v.lowest_priority for v in views if v.lowest_priority is not None), default=None)
        evaluation.evictable = Evictable(views, lowest)
    return evaluation.evictable


def _resolvable(cluster: Cluster, evaluation: Evaluation, needs: Mapping[str, int]) -> Iterator[NodeView]:
    """Nodes whose refusal an eviction can change, and that could hold the pod if they were empty."""
    for mask, indexes in evaluation.groups().items():
        if not mask or mask & c.UNRESOLVABLE:
            continue
        short = [(name, needs[name]) for name in (evaluation.resources[i] for i in c.resource_indexes(mask))]
        for index in indexes:
            view = cluster.order[index]
            if all(need <= view.allocatable.get(name, 0) for name, need in short):
                yield view


def _candidates(
    cluster: Cluster, pod: Pod, evaluation: Evaluation, lower: Sequence[NodeView], budgets: _Budgets
) -> list[_Candidate]:
    """
    Nodes where eviction would do, enough of them: kube-scheduler itself looks at a tenth of the nodes, at least 100.

    Where more than room is in the way each try is costly, so fewer are enough.
    """
    demand = class_of(cluster, pod).demand
    needs = demand.needs
    priority = pod.spec.priority or 0
    out: list[_Candidate] = []
    costly = 0
    for view in lower:
        is_room = not evaluation.masks[view.index] & ((1 << c.RESOURCE_SHIFT) - 1) & ~c.TOO_MANY_PODS
        # Whom the pod wants beside it may be among those that leave: then room alone does not do.
        if is_room and not view.nominated and not demand.affinity:
            each = _make_room(view, needs, priority, budgets)
        elif costly < _MOST_COSTLY:
            with cluster.hushed():
                each = _try_node(cluster, pod, view, priority, budgets)
            costly += each is not None
        else:
            continue
        if each is not None:
            out.append(each)
        if len(out) >= _ENOUGH:
            break
    return out


def _make_room(view: NodeView, needs: Sequence[tuple[str, int]], priority: int, budgets: _Budgets) -> _Candidate | None:
    """By arithmetic alone, where only resources and the pod limit are in the way."""
    lower = [r for r in view.residents.values() if r.priority < priority]
    room = {name: view.free.get(name, 0) + sum(r.holds.get(name, 0) for r in lower) for name, _ in needs}
    places = view.max_pods - len(view.residents) + len(lower)
    spare = {name: room[name] - need for name, need in needs}
    places -= 1
    if places < 0 or any(value < 0 for value in spare.values()):
        return None
    violating = _violations(lower, budgets)
    victims: list[Resident] = []
    for each in _reprieve_order(lower, violating):
        if places > 0 and all(each.holds.get(name, 0) <= value for name, value in spare.items()):
            places -= 1
            for name in spare:
                spare[name] -= each.holds.get(name, 0)
        else:
            victims.append(each)
    if not victims:
        return None
    return _Candidate(view, tuple(victims), tuple(r.key for r in victims if r.key in violating))


def _reprieve_order(lower: Iterable[Resident], violating: frozenset[Key]) -> list[Resident]:
    """The more important come back first; what a budget protects before what none does."""
    return sorted(lower, key=lambda r: (r.key not in violating, *_importance(r)))


def _try_node(cluster: Cluster, pod: Pod, view: NodeView, priority: int, budgets: _Budgets) -> _Candidate | None:
    """By asking all filters again, with the pods in thought gone."""
    lower = [r for r in view.residents.values() if r.priority < priority]
    undo: list[Callable[[], None]] = []
    try:
        for each in lower:
            cluster.remove(each.key, undo)
        if not _fits_on(cluster, pod, view):
            return None
        violating = _violations(lower, budgets)
        victims: list[Resident] = []
        for each in _reprieve_order(lower, violating):
            back = _readmit(cluster, each)
            if _fits_on(cluster, pod, view):
                continue
            back()
            victims.append(each)
        if not victims:
            return None
        return _Candidate(view, tuple(victims), tuple(r.key for r in victims if r.key in violating))
    finally:
        for each in lower:
            _drop(cluster, each)
        for back in reversed(undo):
            back()


def _importance(each: Resident) -> tuple[int, str, Key]:
    """The scheduler's order; of equals it takes any, and we by name, so that a replay says the same."""
    return -each.priority, str(each.started or ""), each.key


def _readmit(cluster: Cluster, each: Resident) -> Callable[[], None]:
    cluster.admit(each)
    return lambda: _drop(cluster, each)


def _drop(cluster: Cluster, each: Resident) -> None:
    if cluster.where(each.key) is not None:
        cluster.evict(each.key)


def _fits_on(cluster: Cluster, pod: Pod, view: NodeView) -> bool:
    wanted = class_of(cluster, pod)
    return not wanted.trouble and masks_of(cluster, wanted, (view,)) == [0]


def _cost(each: _Candidate) -> tuple[int, int, int, int, float]:
    """The scheduler's order: fewest broken budgets, least important victims, fewest, youngest."""
    priorities = [r.priority for r in each.victims]
    highest = max(priorities)
    started = min((r.started.timestamp() for r in each.victims if r.priority == highest and r.started), default=0.0)
    return (len(each.violations), highest, sum(p + 2**31 for p in priorities), len(priorities), -started)


def _budgets(cluster: Cluster) -> _Budgets:
    out = []
    for budget in cast("Mapping[Key, PodDisruptionBudget]", cluster.objects.of(BUDGETS)).values():
        selector = compile_selector(budget.spec.selector)
        if selector.is_everything:
            continue  # the scheduler takes an empty selector to cover nobody
        covered = {
            key
            for key, pod in cluster.objects.pods().items()
            if key[0] == budget.metadata.namespace and selector.matches(pod.metadata.labels)
        }
        out.append((budget, covered))
    return out


def _violations(victims: Iterable[Resident], budgets: Sequence[tuple[PodDisruptionBudget, set[Key]]]) -> frozenset[Key]:
    """Those whose eviction would take more than a budget allows, the more important ones spared first."""
    allowed = [budget.status.disruptions_allowed for budget, _ in budgets]
    out = set()
    for each in sorted(victims, key=_importance):
        for i, (_, covered) in enumerate(budgets):
            if each.key in covered:
                allowed[i] -= 1
                if allowed[i] < 0:
                    out.add(each.key)
    return frozenset(out)
