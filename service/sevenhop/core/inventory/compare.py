"""What of an object discovery reads: whether two versions of it say the same."""

from __future__ import annotations

from typing import cast

import msgspec

from sevenhop.core.inventory.templates import LWS_NAME
from sevenhop.core.objects.base import Custom, Meta, Object, condition
from sevenhop.core.objects.cluster import Controller, HorizontalPodAutoscaler
from sevenhop.core.objects.pod import Pod

QUEUE_GATES = ("kueue.x-k8s.io/",)
"""Scheduling gates that mean: waits for quota on purpose."""


def same_pod(before: Pod | None, after: Pod | None) -> bool:
    """Whether nothing changed that membership is read from; the status never counts."""
    if before is None or after is None:
        return before is after
    a, b = before.metadata, after.metadata
    return (
        a.uid == b.uid
        and a.labels == b.labels
        and a.owner_references == b.owner_references
        and a.annotations == b.annotations
        and (
            before.spec.containers is after.spec.containers  # as with most updates: they are shared
            or [c.image for c in before.spec.containers] == [c.image for c in after.spec.containers]
        )
    )


def same_object(before: Object | None, after: Object | None) -> bool:
    """Whether nothing changed that readers read; of Deployments and the like the status is never read."""
    if before is None or after is None:
        return before is after
    a, b = before.metadata, after.metadata
    if (a.uid, a.labels, a.annotations, a.owner_references) != (b.uid, b.labels, b.annotations, b.owner_references):
        return False
    if isinstance(before, Controller) and isinstance(after, Controller):
        return before.spec == after.spec
    if isinstance(before, HorizontalPodAutoscaler) and isinstance(after, HorizontalPodAutoscaler):
        return before.spec == after.spec
    if isinstance(before, Custom):
        return before == after or msgspec.structs.replace(after, metadata=a) == before
    return _bare(before) == _bare(after)


def _bare(obj: Object) -> Object:
    return msgspec.structs.replace(obj, metadata=Meta())


def moves_children(before: Object | None, after: Object | None) -> bool:
    if before is None or after is None:
        return True
    a, b = before.metadata, after.metadata
    return (a.uid, a.owner_references, a.labels) != (b.uid, b.owner_references, b.labels)


def owns_pods(obj: Object | None) -> bool:
    """A LeaderWorkerSet's leader owns the StatefulSet of its workers."""
    return obj is not None and LWS_NAME in obj.metadata.labels


def gates_of(pod: Object) -> list[str]:
    return [gate.name for gate in cast("Pod", pod).spec.scheduling_gates]


def is_queued(pod: Pod) -> bool:
    return any(gate.name.startswith(QUEUE_GATES) for gate in pod.spec.scheduling_gates)


def is_ready(pod: Pod) -> bool:
    ready = condition(pod.status.conditions, "Ready")
    return ready is not None and ready.status == "True" and not pod.is_terminating
