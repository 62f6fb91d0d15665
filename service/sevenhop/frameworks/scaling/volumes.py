"""Volumes that go with the replicas: what they held is gone when the replicas are given back."""

from __future__ import annotations

from collections.abc import Iterable

from sevenhop.core.objects.base import Object
from sevenhop.core.objects.cluster import Controller
from sevenhop.core.remediation.action import ObjectRef
from sevenhop.core.remediation.reduction import Conflict, ConflictReason
from sevenhop.frameworks.scaling.way import called


def lost_volumes(objects: Iterable[tuple[ObjectRef, Object]]) -> Conflict | None:
    """
    The first StatefulSet that deletes the claims of pods that go; by default it keeps them.

    https://kubernetes.io/docs/concepts/workloads/controllers/statefulset/#persistentvolumeclaim-retention
    """
    for ref, obj in objects:
        if ref.kind != "StatefulSet.apps" or not isinstance(obj, Controller):
            continue
        policy = obj.spec.persistent_volume_claim_retention_policy or {}
        owner = obj.metadata.controller()
        # The StatefulSet of a group's workers belongs to the group's leader, and is deleted with it.
        event = "whenDeleted" if owner is not None and owner.kind == "Pod" else "whenScaled"
        if policy.get(event) == "Delete":
            return Conflict(
                ConflictReason.VOLUMES,
                f"{called(ref)} deletes the volumes of pods that go, which cannot be given back; set "
                f"persistentVolumeClaimRetentionPolicy.{event} to Retain",
            )
    return None
