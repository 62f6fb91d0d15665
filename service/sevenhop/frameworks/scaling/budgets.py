"""
PodDisruptionBudgets, read as what the owner wants to keep.

They do not apply when a controller removes pods.  But their owner stated a floor, and no approval of ours overrules it.
"""

from __future__ import annotations

from collections.abc import Sequence

from sevenhop.core.objects.base import condition
from sevenhop.core.objects.cluster import PodDisruptionBudget
from sevenhop.core.objects.pod import Pod
from sevenhop.core.placement.selectors import compile_selector
from sevenhop.core.remediation.reduction import Conflict, ConflictReason, View
from sevenhop.frameworks.scaling.way import in_namespace

BUDGET = "PodDisruptionBudget.policy"


def no_room(view: View, pods: Sequence[Pod], leaving: int, *, is_choice_known: bool = False) -> Conflict | None:
    """
    The first budget that allows fewer disruptions than pods leave.

    Args:
        pods: Of whom some go; all of the component's, or the victims.
        leaving: How many of them go at most.
        is_choice_known: Who goes is known once it is chosen, and asked again then: as long as pods that no budget
            guards could be the ones, there is room.
    """
    if not pods:
        return None
    namespace = pods[0].metadata.namespace
    for name, budget in in_namespace(view, BUDGET, namespace):
        if not isinstance(budget, PodDisruptionBudget):
            continue
        selector = compile_selector(budget.spec.selector)
        # What is not ready counts for no budget: that it goes disrupts nobody.
        guarded = sum(1 for pod in pods if selector.matches(pod.metadata.labels) and _is_ready(pod))
        allowed = budget.status.disruptions_allowed
        must = leaving - (len(pods) - guarded) if is_choice_known else min(leaving, guarded)
        if allowed < must:
            pods_word = "pod" if leaving == 1 else "pods"
            return Conflict(
                ConflictReason.BUDGET,
                f"PodDisruptionBudget {name} lets {allowed} of its pods go now, and {leaving} {pods_word} would",
            )
    return None


def _is_ready(pod: Pod) -> bool:
    ready = condition(pod.status.conditions, "Ready")
    return ready is not None and ready.status == "True" and not pod.is_terminating
