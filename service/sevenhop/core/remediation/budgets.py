"""
PodDisruptionBudgets over the pods of a plan: which hold, and how many of their pods would go.

Of pods that a controller removes, those that are not ready count for no budget: that they go disrupts nobody.  Of pods
that are evicted it is as the API server reads them, in pkg/registry/core/pod/storage/eviction.go.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from sevenhop.core.facts.schema import Unknown
from sevenhop.core.inventory.read_component import PDBS
from sevenhop.core.inventory.rows import is_ready
from sevenhop.core.inventory.state import State
from sevenhop.core.objects.cluster import PodDisruptionBudget
from sevenhop.core.objects.pod import Pod
from sevenhop.core.placement.selectors import compile_selector
from sevenhop.core.remediation.action import EvictPod
from sevenhop.core.remediation.guards_question import PodBudget
from sevenhop.core.remediation.live import live_pods
from sevenhop.core.remediation.plan import Plan

ALWAYS_ALLOW = "AlwaysAllow"
"""https://kubernetes.io/docs/tasks/run-application/configure-pdb/#unhealthy-pod-eviction-policy"""


def over(state: State, pod: Pod) -> list[tuple[str, PodDisruptionBudget]]:
    """(name, budget) of those that select a pod, in order of name."""
    here = state.budgets.get(pod.metadata.namespace, {})
    labels = pod.metadata.labels
    return [
        (key[1], budget)
        for key, budget in sorted(here.items())
        if compile_selector(budget.spec.selector).matches(labels)
    ]


def cannot_be_evicted(state: State, pod: Pod) -> str:
    """Why the API server would not evict a pod whatever its budgets have room for; empty if it would."""
    found = [] if _is_passed_over(pod) else over(state, pod)
    if len(found) < 2:
        return ""
    names = ", ".join(name for name, _ in found)
    who = f"pod {'/'.join(pod.metadata.key)} is in {len(found)} PodDisruptionBudgets ({names})"
    return f"{who}, and the API server evicts no such pod; let one budget select it"


def budgets_of(state: State, plan: Plan) -> tuple[PodBudget, ...] | Unknown:
    """Every budget over pods of a plan that are still to go, in order of name."""
    unknown = state.gate(PDBS)
    if unknown is not None:
        return unknown
    found: dict[str, PodDisruptionBudget] = {}
    counts: Counter[str] = Counter()
    for most, pods in _groups(state, plan):
        here: Counter[str] = Counter()
        for pod, is_evicted in pods:
            for name, budget in over(state, pod):
                full = f"{pod.metadata.namespace}/{name}"
                found[full] = budget
                here[full] += _is_disrupted(pod, budget, is_evicted=is_evicted)
        for full, count in here.items():
            counts[full] += min(count, most)
    return tuple(
        PodBudget(name=full, allowed=found[full].status.disruptions_allowed, victims=counts[full])
        for full in sorted(found)
        if counts[full]
    )


def _groups(state: State, plan: Plan) -> Iterator[tuple[int, list[tuple[Pod, bool]]]]:
    """(how many go at most, pods that may and whether they are evicted)"""
    pods = state.objects.pods()
    evicted = {(action.pod.namespace, action.pod.name) for action in plan.actions if isinstance(action, EvictPod)}
    if plan.helps_in[1] == 1:
        named = [(pod, key in evicted) for key in plan.victims if (pod := pods.get(key)) is not None]
        yield len(named), named
        return
    # Their controller chooses, so any of a donor's pods may go.
    for scale in plan.scales:
        most = (scale.before - scale.after) * scale.unit_pods
        yield most, [(pod, False) for pod in live_pods(state, scale.workload, scale.component)]


def _is_disrupted(pod: Pod, budget: PodDisruptionBudget, *, is_evicted: bool) -> bool:
    """Whether a budget has to have room for it."""
    if pod.is_terminating or (is_evicted and _is_passed_over(pod)):
        return False
    if is_ready(pod):
        return True
    if not is_evicted or budget.spec.unhealthy_pod_eviction_policy == ALWAYS_ALLOW:
        return False
    status = budget.status
    return not status.current_healthy >= status.desired_healthy > 0


def _is_passed_over(pod: Pod) -> bool:
    """Budgets are not asked about what does not run."""
    return pod.is_terminating or pod.is_finished or pod.status.phase == "Pending"
