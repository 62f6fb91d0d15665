"""Recorded scheduler cases as `Objects`; shared by the tests of placement and of the scheduling hop."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator
from typing import Any

from sevenhop.core.events import SyncState
from sevenhop.core.inventory.objects import Objects
from sevenhop.core.objects.decode import convert
from sevenhop.core.objects.kinds import KINDS, kind_of
from tests.shared import shared_path

_KINDS = {
    "nodes": "Node",
    "pods": "Pod",
    "namespaces": "Namespace",
    "priorityClasses": "PriorityClass.scheduling.k8s.io",
    "replicaSets": "ReplicaSet.apps",
    "persistentVolumes": "PersistentVolume",
    "persistentVolumeClaims": "PersistentVolumeClaim",
    "storageClasses": "StorageClass.storage.k8s.io",
    "resourceQuotas": "ResourceQuota",
    "limitRanges": "LimitRange",
    "podDisruptionBudgets": "PodDisruptionBudget.policy",
    "runtimeClasses": "RuntimeClass.node.k8s.io",
    "deviceClasses": "DeviceClass.resource.k8s.io",
    "resourceSlices": "ResourceSlice.resource.k8s.io",
    "resourceClaims": "ResourceClaim.resource.k8s.io",
    "resourceClaimTemplates": "ResourceClaimTemplate.resource.k8s.io",
    "events": "Event",
}


def synced() -> Objects:
    """No objects, every kind fully known."""
    objects = Objects()
    objects.states = dict.fromkeys(KINDS, SyncState.SYNCED)
    return objects


def put(objects: Objects, data: dict[str, Any]) -> None:
    """One object as the API server writes it."""
    kind = kind_of(data["apiVersion"], data["kind"])
    assert kind is not None, data["kind"]
    objects.put(kind.name, convert(kind, data))


def objects_of(case: dict[str, Any], *, stripped: bool = False) -> Objects:
    """The case's cluster; `stripped` of conditions and events, so that nothing gives the answer away."""
    objects = synced()
    for plural, items in case["objects"].items():
        kind = KINDS[_KINDS[plural]]
        if stripped and plural == "events":
            continue
        for item in items:
            data = item
            if stripped and plural in ("pods", "replicaSets") and "conditions" in item.get("status", {}):
                data = {**item, "status": {k: v for k, v in item["status"].items() if k != "conditions"}}
            objects.put(kind.name, convert(kind, data))
    return objects


def cases(name: str) -> Iterator[dict[str, Any]]:
    """Recorded cases of ``verdicts`` or ``whatif``; the asking test is skipped where they are absent."""
    path = shared_path(f"data/scheduler/{name}.jsonl.gz")
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        for line in lines:
            yield json.loads(line)
