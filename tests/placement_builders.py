"""Small clusters for tests of placement and of the scheduling hop, written as the API server writes them."""

from __future__ import annotations

from typing import Any

from sevenhop.core.inventory.objects import Objects
from sevenhop.core.objects.decode import convert
from sevenhop.core.objects.kinds import KINDS
from sevenhop.core.objects.pod import Pod
from tests.scheduler_cases import synced

GPU = "nvidia.com/gpu"


def node(
    name: str,
    *,
    gpus: int = 0,
    cpu: str = "32",
    memory: str = "128Gi",
    capacity: int | None = None,
    labels: dict[str, str] | None = None,
    taints: list[dict[str, str]] | None = None,
    cordoned: bool = False,
    pods: int = 110,
) -> dict[str, Any]:
    """A node; with GPUs it carries the labels that GPU Feature Discovery writes."""
    found = (
        {"nvidia.com/gpu.present": "true", "nvidia.com/gpu.count": str(capacity or gpus)} if gpus or capacity else {}
    )
    amounts: dict[str, str] = {"cpu": cpu, "memory": memory, "pods": str(pods)}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": {"kubernetes.io/hostname": name, **found, **(labels or {})}},
        "spec": {"unschedulable": cordoned, "taints": taints or []},
        "status": {
            "allocatable": {**amounts, **({GPU: str(gpus)} if gpus or capacity else {})},
            "capacity": {**amounts, **({GPU: str(capacity or gpus)} if gpus or capacity else {})},
        },
    }


def pod(
    name: str,
    *,
    on: str = "",
    namespace: str = "prod",
    gpus: int = 0,
    cpu: str = "1",
    memory: str = "1Gi",
    priority: int = 0,
    labels: dict[str, str] | None = None,
    phase: str = "",
    owner: tuple[str, str, str] | None = None,
    message: str = "",
    status: dict[str, Any] | None = None,
    **spec: Any,
) -> dict[str, Any]:
    """
    A pod, bound if `on` names a node, else pending.

    Args:
        owner: (kind, name, uid) of its controller.
        message: Text of its condition PodScheduled.
    """
    requests = {"cpu": cpu, "memory": memory, **({GPU: str(gpus)} if gpus else {})}
    meta: dict[str, Any] = {"name": name, "namespace": namespace, "uid": f"uid-{name}", "labels": labels or {}}
    if owner is not None:
        meta["ownerReferences"] = [{"kind": owner[0], "name": owner[1], "uid": owner[2], "controller": True}]
    conditions = [{"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": message}]
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": meta,
        "spec": {
            **({"nodeName": on} if on else {}),
            "priority": priority,
            "containers": [{"name": "main", "resources": {"requests": requests}}],
            **spec,
        },
        "status": {
            "phase": phase or ("Running" if on else "Pending"),
            **({"conditions": conditions} if message else {}),
            **(status or {}),
        },
    }


def world(*items: dict[str, Any]) -> Objects:
    """Objects of one cluster, every kind fully known."""
    objects = synced()
    for item in items:
        add(objects, item)
    return objects


def add(objects: Objects, item: dict[str, Any]) -> tuple[str, tuple[str, str]]:
    """Put one object; returns its kind's name and its key."""
    group = item["apiVersion"].rpartition("/")[0]
    kind = KINDS[f"{item['kind']}.{group}" if group else item["kind"]]
    obj = convert(kind, item)
    objects.put(kind.name, obj)
    return kind.name, obj.key


def the_pod(objects: Objects, name: str, namespace: str = "prod") -> Pod:
    return objects.pods()[(namespace, name)]


def custom(api_version: str, kind: str, name: str, namespace: str = "", **fields: Any) -> dict[str, Any]:
    """Any other object."""
    meta = {"name": name, "namespace": namespace, "uid": f"uid-{name}", **fields.pop("metadata", {})}
    return {"apiVersion": api_version, "kind": kind, "metadata": meta, **fields}


def event(
    about: str, reason: str, text: str, *, component: str = "default-scheduler", kind: str = "Pod"
) -> dict[str, Any]:
    """An Event about an object of namespace ``prod``."""
    return {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"name": f"{about}.{reason}", "namespace": "prod"},
        "involvedObject": {"kind": kind, "namespace": "prod", "name": about},
        "reason": reason,
        "message": text,
        "reportingComponent": component,
        "lastTimestamp": "2026-11-30T04:30:00Z",
    }
