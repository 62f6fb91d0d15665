"""
Whom the scheduler would serve before the pods that a plan is for.

What is assumed of kube-scheduler (1.36, `PrioritySort` and the queue in pkg/scheduler/backend/queue):

- When a pod leaves its node, every waiting pod that this could help goes to the active queue: highest priority first,
  then who was put into the queue earlier.  A pod that is tried and fails is put in anew, so among equals it is the last
  attempt that counts, not age: whoever sat out its back-off while the others were tried comes later from then on
  (kubernetes/kubernetes#140439 would have kept the order of arrival, and was closed).  So an older pod of the same
  priority counts as ahead, in the worst case, and a younger one as `level`: it may come first, or not.
- A pod that was tried a moment ago sits out up to ten seconds of back-off, and one of a lower priority may be tried
  before it.  That is not assumed: who has waited for minutes has no back-off left when room appears, unless the cluster
  is in uproar.  Such pods are `behind`: a plan that holds even if they come first is preferred, and where it does not,
  its notes count them.  Where more than one pod leaves, one departure is the uproar of the next, and they may come
  first.
- Which of several nodes a pod gets depends on scores and chance: any that fits.
- Pods of another scheduler that is at work here may take room at any time; of one that placed nothing here, never.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec

from sevenhop.core.inventory.objects import Key
from sevenhop.core.objects.pod import Pod
from sevenhop.core.placement.cluster import Cluster
from sevenhop.core.placement.fit import HeldBack, held_back


class Queue(msgspec.Struct, frozen=True, gc=False):
    """
    Attributes:
        ahead: Served before somebody of the need, or perhaps: of a higher priority, or of the same and not younger.
        level: Of the same priority and younger: before or after it.
        behind: Of a lower priority.
        anytime: Of another scheduler, which keeps an order of its own.
    """

    ahead: tuple[Pod, ...]
    level: tuple[Pod, ...]
    behind: tuple[Pod, ...]
    anytime: tuple[Pod, ...]


def queue_of(cluster: Cluster, need: Sequence[Pod], alike: Iterable[Key]) -> Queue:
    """
    Args:
        need: Pods that the plan is for.
        alike: Pods of the same component that are as good as these and that the plan is not for: whoever of them comes
            first takes its place.
    """
    mine, same = {pod.metadata.key for pod in need}, frozenset(alike)
    last = max(turn(pod)[:2] for pod in need)
    ahead: list[Pod] = []
    level: list[Pod] = []
    behind: list[Pod] = []
    anytime: list[Pod] = []
    for key, pod in cluster.pending.items():
        if key in mine or key in same:
            continue
        held = held_back(pod)
        if held is HeldBack.OTHER_SCHEDULER and cluster.placed_by(pod.spec.scheduler_name):
            anytime.append(pod)
        elif held is None:
            place = turn(pod)[:2]
            (ahead if place <= last else level if place[0] == last[0] else behind).append(pod)
    return Queue(*(tuple(sorted(pods, key=turn)) for pods in (ahead, level, behind, anytime)))


def turn(pod: Pod) -> tuple[int, float, Key]:
    """Lower is tried earlier: priority, then age."""
    created = pod.metadata.creation_timestamp
    return (-(pod.spec.priority or 0), created.timestamp() if created else 0.0, pod.metadata.key)
