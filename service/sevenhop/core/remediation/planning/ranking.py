"""
In which order a ReplicaSet removes its pods.

As kube-controller-manager 1.36 ranks them: `ActivePodsWithRanks.Less` in pkg/controller/controller_utils.go, with its
feature gates as they are by default (PodDeletionCost and LogarithmicScaleDown are on).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import datetime
from functools import cmp_to_key
from math import log2

from sevenhop.core.inventory.objects import Key
from sevenhop.core.objects.base import condition
from sevenhop.core.objects.pod import Pod
from sevenhop.core.words import whole

DELETION_COST = "controller.kubernetes.io/pod-deletion-cost"
_PHASES = {"Pending": 0, "Unknown": 1, "Running": 2}
_LOWEST, _HIGHEST = -(2**31), 2**31 - 1


def standing(pod: Pod) -> tuple[bool, int, bool]:
    """
    What no deletion cost outweighs: (has a node, phase, is ready); lower goes first.

    >>> standing(Pod()) < (True, 2, False) < (True, 2, True)
    True
    """
    return (bool(pod.spec.node_name), _PHASES.get(pod.status.phase, 0), _is_ready(pod))


def deletion_cost(pod: Pod) -> int:
    """As annotated; a value that the controller's own parser refuses (``+5``, ``05``, not 32 bits) counts as 0."""
    text = pod.metadata.annotations.get(DELETION_COST, "")
    digits = text.removeprefix("-")
    if not (digits.isascii() and digits.isdecimal()) or (text.startswith("0") and text != "0"):
        return 0
    cost = whole(text) or 0
    return cost if _LOWEST <= cost <= _HIGHEST else 0


def removal_order(pods: Sequence[Pod], now: datetime, steered: Mapping[Key, int] | None = None) -> list[Pod]:
    """
    The pods of one ReplicaSet, the first to be removed first.

    Args:
        pods: Active ones: neither finished nor being deleted.
        now: Ages are compared by their logarithm, so the order of pods that nothing else tells apart moves with time.
        steered: Deletion costs that are about to be annotated.
    """
    together = Counter(pod.spec.node_name for pod in pods)
    costs = {pod.metadata.key: deletion_cost(pod) for pod in pods} | dict(steered or {})

    def compare(a: Pod, b: Pod) -> int:
        # More of the same on one node goes first.
        left = (*standing(a), costs[a.metadata.key], -together[a.spec.node_name])
        right = (*standing(b), costs[b.metadata.key], -together[b.spec.node_name])
        if left != right:
            return -1 if left < right else 1
        return _by_age(a, b, now)

    return sorted(sorted(pods, key=lambda pod: pod.metadata.key), key=cmp_to_key(compare))


def _by_age(a: Pod, b: Pod, now: datetime) -> int:
    if _is_ready(a) and _is_ready(b):
        since_a, since_b = _ready_since(a), _ready_since(b)
        if since_a != since_b:
            return _younger_first(a, b, since_a, since_b, now)
    restarts_a, restarts_b = _restarts(a), _restarts(b)
    if restarts_a != restarts_b:
        return -1 if restarts_a > restarts_b else 1
    made_a, made_b = a.metadata.creation_timestamp, b.metadata.creation_timestamp
    return _younger_first(a, b, made_a, made_b, now) if made_a != made_b else 0


def _younger_first(a: Pod, b: Pod, at_a: datetime | None, at_b: datetime | None, now: datetime) -> int:
    if at_a is None or at_b is None:
        return -1 if at_a is None else 1  # no time at all counts as now
    bucket_a, bucket_b = _bucket(at_a, now), _bucket(at_b, now)
    if bucket_a == bucket_b:
        return -1 if a.metadata.uid < b.metadata.uid else 1
    return -1 if bucket_a < bucket_b else 1


def _bucket(at: datetime, now: datetime) -> int:
    nanoseconds = (now - at).total_seconds() * 1e9
    return int(log2(nanoseconds)) if nanoseconds > 0 else -1


def _is_ready(pod: Pod) -> bool:
    said = condition(pod.status.conditions, "Ready")
    return said is not None and said.status == "True"


def _ready_since(pod: Pod) -> datetime | None:
    said = condition(pod.status.conditions, "Ready")
    return said.last_transition_time if said is not None and said.status == "True" else None


def _restarts(pod: Pod) -> tuple[int, int]:
    """Most restarts of a container, and of a sidecar."""
    sidecars = {each.name for each in pod.spec.init_containers if each.restart_policy == "Always"}
    status = pod.status
    return (
        max((each.restart_count for each in status.container_statuses), default=0),
        max((each.restart_count for each in status.init_container_statuses if each.name in sidecars), default=0),
    )
