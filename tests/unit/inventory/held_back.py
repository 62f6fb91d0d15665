"""Workloads whose pods are held back, and what holds them."""

from __future__ import annotations

from typing import Any

from sevenhop.core.objects import cluster as c
from sevenhop.core.objects.base import Custom
from tests import builders as b

USED_UP = (
    'pods "x" is forbidden: exceeded quota: gpu, requested: requests.nvidia.com/gpu=2, '
    "used: requests.nvidia.com/gpu=2, limited: requests.nvidia.com/gpu=2"
)
WORKERS = "component:prod/ray/workers"


def ray(*, replicas: int = 2, says: str = "", suspend: bool = False) -> Custom:
    def group(gpus: int) -> dict[str, Any]:
        limits = {"nvidia.com/gpu": str(gpus)} if gpus else {}
        return {"spec": {"containers": [{"name": "ray", "image": "ray", "resources": {"limits": limits}}]}}

    failure = {
        "type": "ReplicaFailure",
        "status": "True",
        "reason": "FailedCreateWorkerPod",
        "message": says,
        "lastTransitionTime": "2026-11-30T12:00:30Z",
    }
    return Custom(
        kind="RayCluster",
        api_version="ray.io/v1",
        metadata=b.meta("ray"),
        spec={
            "suspend": suspend,
            "headGroupSpec": {"template": group(0)},
            "workerGroupSpecs": [{"groupName": "workers", "replicas": replicas, "template": group(2)}],
        },
        status={"conditions": [failure] if says else []},
    )


def ray_pod(of: Custom, name: str, kind: str, group: str, **changes: Any) -> Any:
    labels = {"ray.io/cluster": of.metadata.name, "ray.io/node-type": kind, "ray.io/group": group}
    return b.pod(name, labels=labels, owners=(b.owner(of, "RayCluster.ray.io"),), node="gpu-0", **changes)


def quota(hard: int, used: int) -> c.ResourceQuota:
    name = "requests.nvidia.com/gpu"
    return c.ResourceQuota(
        metadata=b.meta("gpu"),
        spec={"hard": {name: str(hard)}},
        status=c.QuotaAmounts(hard={name: str(hard)}, used={name: str(used)}),
    )


def kueue(of: Custom, message: str) -> Custom:
    return Custom(
        kind="Workload",
        api_version="kueue.x-k8s.io/v1beta1",
        metadata=b.meta("raycluster-ray-1", owners=(b.owner(of, "RayCluster.ray.io"),)),
        spec={"queueName": "team", "podSets": [{"name": "workers", "count": 2}]},
        status={
            "conditions": [
                {
                    "type": "QuotaReserved",
                    "status": "False",
                    "reason": "Pending",
                    "message": message,
                    "lastTransitionTime": "2026-11-30T12:00:20Z",
                }
            ]
        },
    )
