"""Kueue: whoever changes the replicas of what it has admitted as a whole gets it suspended and queued again."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from sevenhop.core.inventory.templates import LWS
from sevenhop.core.objects.base import Custom, Object
from sevenhop.core.objects.pod import Pod
from sevenhop.core.remediation.action import ObjectRef
from sevenhop.core.remediation.reduction import Conflict, ConflictReason, View
from sevenhop.frameworks.reading import text
from sevenhop.frameworks.scaling.quota import WORKLOAD
from sevenhop.frameworks.scaling.way import called

_QUEUE = "kueue.x-k8s.io/queue-name"
_MANAGED = "kueue.x-k8s.io/managed"
_ELASTIC = "kueue.x-k8s.io/elastic-job"

# Of these Kueue makes a Workload per pod or per group, and gives quota back when one goes.
_FREE = ("Deployment.apps", LWS)
# Of these it makes one Workload: kueue pkg/controller/jobframework/reconciler.go, ensureOneWorkload.
_WHOLE = ("RayCluster.ray.io", "RayService.ray.io", "RayJob.ray.io")


def queued(
    view: View, target: ObjectRef, objects: Iterable[tuple[ObjectRef, Object]], pods: Sequence[Pod]
) -> Conflict | str:
    """
    A conflict; or a note for the plan, empty where Kueue has no part in it.

    Args:
        objects: What is patched, what is above it and what is below: the label may stand on any, and is inherited.
    """
    seen = list(objects)
    teller = _teller(view, seen, pods)
    if not teller:
        return ""
    if target.kind in _FREE:
        return f"Kueue gives the quota of what goes to whoever waits in its queue ({teller})"
    elastic = any(obj.metadata.annotations.get(_ELASTIC) == "true" for _, obj in seen)
    hint = (
        "; its elastic-job annotation helps from Kueue 0.18 on, and which version runs is not known" if elastic else ""
    )
    return Conflict(
        ConflictReason.QUEUED,
        f"{teller}: Kueue would suspend all of {called(target)} and queue it again{hint}; it can only give as a whole",
    )


def _teller(view: View, seen: Sequence[tuple[ObjectRef, Object]], pods: Sequence[Pod]) -> str:
    for ref, obj in seen:
        queue = obj.metadata.labels.get(_QUEUE)
        if queue is not None:
            return f"{called(ref)} is in Kueue's queue {queue}"
        managed_by = text(obj.spec, "managedBy") if isinstance(obj, Custom) else ""
        if managed_by.startswith("kueue.x-k8s.io/"):
            return f"{called(ref)} is managed by {managed_by}"
    for pod in pods:
        labels = pod.metadata.labels
        if labels.get(_MANAGED) == "true" or _QUEUE in labels:
            return f"pod {pod.metadata.name} is in Kueue's queue {labels.get(_QUEUE, '')}".rstrip()
    # Kueue may also be told to manage what names no queue; then only its Workload says so.
    whole = {(ref.namespace, ref.kind.partition(".")[0], ref.name) for ref, _ in seen if ref.kind in _WHOLE}
    spaces = {namespace for namespace, _, _ in whole}
    if whole:
        for (namespace, _), workload in view.of(WORKLOAD).items():
            owner = workload.metadata.controller() if namespace in spaces else None
            if owner is not None and (namespace, owner.kind, owner.name) in whole:
                return f"{owner.kind} {owner.name} has Kueue's Workload {workload.metadata.name}"
    return ""
