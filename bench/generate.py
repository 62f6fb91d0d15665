"""Clusters and watch lines of realistic size, generated from nothing: the same seed, the same bytes."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from typing import Any

PRODUCT = "NVIDIA-H100-80GB-HBM3"
TIME = "2026-11-30T03:00:00Z"
BEGIN = datetime(2026, 11, 30, 3, 5, tzinfo=UTC)
"""When the changes begin: everything that runs has run for five minutes."""


STARTING = 600
"""About so many pods are not ready at any time: more than a slice of events, in which a flip and its reverse cancel."""


class Every(StrEnum):
    """What every generated line does."""

    MIXED = "mix 80/15/5"
    FACTS = "every line changes facts"
    ALERTS = "every line changes alerts"


def node(number: int, *, gpus: int = 8) -> dict[str, Any]:
    """A node with `gpus` H100s, or a CPU node for 0."""
    labels = {"kubernetes.io/hostname": f"node-{number:05}", "topology.kubernetes.io/zone": f"zone-{number % 3}"}
    amounts = {"cpu": "192", "memory": "2000Gi", "pods": "110", "ephemeral-storage": "1000Gi"}
    if gpus:
        labels |= {
            "nvidia.com/gpu.product": PRODUCT,
            "nvidia.com/gpu.count": str(gpus),
            "nvidia.com/gpu.present": "true",
        }
        amounts["nvidia.com/gpu"] = str(gpus)
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {
            "name": f"node-{number:05}",
            "uid": f"node-uid-{number}",
            "resourceVersion": "1",
            "creationTimestamp": TIME,
            "labels": labels,
        },
        "spec": {},
        "status": {
            "capacity": amounts,
            "allocatable": amounts,
            "conditions": [{"type": "Ready", "status": "True", "lastTransitionTime": TIME}],
        },
    }


def deployment(number: int, replicas: int, *, gpus: int) -> list[dict[str, Any]]:
    """A vLLM Deployment (or a web one, for 0 GPUs) and its ReplicaSet."""
    name = f"model-{number:05}" if gpus else f"web-{number:05}"
    template = {"metadata": {"labels": {"app": name}}, "spec": {"containers": [_container(name, gpus)]}}
    spec = {"replicas": replicas, "selector": {"matchLabels": {"app": name}}, "template": template}
    namespace = f"team-{number % 50}"
    made = []
    for kind, suffix, owner in (("Deployment", "", None), ("ReplicaSet", "-aaaaa", ("Deployment", name))):
        metadata: dict[str, Any] = {
            "name": name + suffix,
            "namespace": namespace,
            "uid": f"{kind}-{name}",
            "resourceVersion": "1",
            "creationTimestamp": TIME,
            "labels": {"app": name},
        }
        if owner:
            metadata["ownerReferences"] = [_owner("apps/v1", owner[0], owner[1], f"{owner[0]}-{owner[1]}")]
        status = {"replicas": replicas, "readyReplicas": replicas, "availableReplicas": replicas}
        made.append({"apiVersion": "apps/v1", "kind": kind, "metadata": metadata, "spec": spec, "status": status})
    return made


def pod(
    number: int,
    of: int,
    *,
    gpus: int,
    node_name: str,
    ready: bool = True,
    version: int = 1,
    fails: bool = False,
    priority: int = 0,
    started: str = TIME,
) -> dict[str, Any]:
    """
    Pod `number` of deployment `of`, about 8 KB as JSON; without a node it is Pending and Unschedulable.

    One that is not ready is starting, within the hour that its startup probe grants; one that `fails` crashes in a
    loop.  Every version differs in a condition that no fact is derived from, as status-only updates do.
    """
    name = f"model-{of:05}" if gpus else f"web-{of:05}"
    conditions = [{"type": "PodScheduled", "status": "True", "lastTransitionTime": TIME}]
    status: dict[str, Any] = {
        "phase": "Running",
        "podIP": f"10.{number >> 16 & 255}.{number >> 8 & 255}.{number & 255}",
    }
    if node_name:
        conditions.append(
            {"type": "Ready", "status": "True" if ready and not fails else "False", "lastTransitionTime": TIME}
        )
        status["containerStatuses"] = [
            {
                "name": "engine",
                "ready": ready,
                "restartCount": 0,
                "image": "vllm/vllm-openai:v0.11.0",
                "imageID": "docker.io/vllm/vllm-openai@sha256:" + "a" * 64,
                "state": {"running": {"startedAt": started}},
            }
        ]
        if fails:
            status["containerStatuses"][0] |= {"ready": False, "state": {"waiting": {"reason": "CrashLoopBackOff"}}}
        probed = {"type": "example.com/Probed", "status": "True", "message": f"probe {version}"}
        conditions.append(probed)
    else:
        conditions[0] |= {
            "status": "False",
            "reason": "Unschedulable",
            "message": "0/5000 nodes are available: 5000 Insufficient nvidia.com/gpu. no new claims to deallocate, "
            "preemption: 0/5000 nodes are available: 5000 No preemption victims found for incoming pod.",
        }
        status["phase"] = "Pending"
    status["conditions"] = conditions
    spec: dict[str, Any] = {
        "containers": [_container(name, gpus)],
        "schedulerName": "default-scheduler",
        "priority": priority,
    }
    if node_name:
        spec["nodeName"] = node_name
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": f"{name}-aaaaa-{number:06}",
            "namespace": f"team-{of % 50}",
            "uid": f"pod-uid-{number}",
            "resourceVersion": str(version),
            "creationTimestamp": TIME,
            "labels": {"app": name, "pod-template-hash": "aaaaa"},
            "ownerReferences": [_owner("apps/v1", "ReplicaSet", f"{name}-aaaaa", f"ReplicaSet-{name}")],
            "managedFields": _managed_fields(),
        },
        "spec": spec,
        "status": status,
    }


def line(kind: str, obj: dict[str, Any]) -> bytes:
    """One watch line."""
    return json.dumps({"type": kind, "object": obj}, separators=(",", ":")).encode() + b"\n"


def mixed_lines(
    count: int,
    *,
    deployments: int,
    replicas: int,
    every: Every = Every.MIXED,
    nodes: int = 1000,
    begin: datetime = BEGIN,
    per_s: float = 10_000,
    seed: int = 7,
) -> Iterator[bytes]:
    """
    Watch lines of a busy cluster, 8 KB each, `per_s` a second from `begin` on.

    Mixed: 80 % status-only, 15 % a fact changes (readiness flips), 5 % create or delete.  Else every line changes
    facts, or begins and ends alerts (pods crash and recover).
    """
    rng = random.Random(seed)
    starting: dict[int, str] = {}  # pods that are not ready, and since when their container runs
    extra = 10_000_000
    alive: list[tuple[int, int]] = []
    for version in range(2, count + 2):
        number = rng.randrange(deployments * replicas)
        chance = rng.random() if every is Every.MIXED else 0.9
        if 0.80 <= chance < 0.95 and starting and rng.random() < len(starting) / STARTING:
            number = next(iter(starting))
        of = number // replicas
        host = f"node-{number // 4 % nodes:05}"
        if chance < 0.95:
            if chance >= 0.80 and starting.pop(number, None) is None:
                starting[number] = _time(begin + timedelta(seconds=version / per_s))
            since = starting.get(number)
            bad = every is Every.ALERTS and since is not None
            made = pod(
                number, of, gpus=2, node_name=host, version=version, ready=since is None, fails=bad,
                started=since or TIME,
            )  # fmt: skip
            yield line("MODIFIED", made)
        elif alive and rng.random() < 0.5:
            gone, its = alive.pop()
            yield line("DELETED", pod(gone, its, gpus=2, node_name=host, version=version))
        else:
            extra += 1
            alive.append((extra, of))
            yield line("ADDED", pod(extra, of, gpus=2, node_name="", version=version))


def _owner(api_version: str, kind: str, name: str, uid: str) -> dict[str, Any]:
    return {"apiVersion": api_version, "kind": kind, "name": name, "uid": uid, "controller": True}


def _container(name: str, gpus: int) -> dict[str, Any]:
    resources: dict[str, Any] = {"requests": {"cpu": "4", "memory": "32Gi"}, "limits": {"memory": "32Gi"}}
    if not gpus:
        return {"name": "web", "image": "nginx:1.27", "resources": resources, "env": _env()}
    resources["requests"]["nvidia.com/gpu"] = resources["limits"]["nvidia.com/gpu"] = str(gpus)
    return {
        "name": "engine",
        "image": "vllm/vllm-openai:v0.11.0",
        "args": ["--model", f"org/{name}", "--tensor-parallel-size", str(gpus)],
        "resources": resources,
        "startupProbe": {"httpGet": {"path": "/health", "port": 8000}, "periodSeconds": 30, "failureThreshold": 120},
        "env": _env(),
    }


def _time(at: datetime) -> str:
    return at.strftime("%Y-%m-%dT%H:%M:%SZ")


def _managed_fields() -> list[dict[str, Any]]:
    """Who wrote what, as the API server keeps it: a third of a pod's bytes, of no use to us."""
    env: dict[str, Any] = {f'k:{{"name":"SETTING_{i}"}}': {".": {}, "f:name": {}, "f:value": {}} for i in range(27)}
    engine = {".": {}, "f:image": {}, "f:args": {}, "f:resources": {"f:limits": {}, "f:requests": {}}, "f:env": env}
    spec = {"f:containers": {'k:{"name":"engine"}': engine}, "f:dnsPolicy": {}, "f:schedulerName": {}}
    kinds = ("ContainersReady", "Initialized", "PodReadyToStartContainers", "Ready")
    condition: dict[str, Any] = {
        ".": {},
        "f:lastProbeTime": {},
        "f:lastTransitionTime": {},
        "f:status": {},
        "f:type": {},
    }
    conditions = {f'k:{{"type":"{kind}"}}': condition for kind in kinds}
    status = {"f:conditions": conditions, "f:containerStatuses": {}, "f:hostIP": {}, "f:phase": {}, "f:podIPs": {}}
    return [
        {"manager": manager, "operation": "Update", "apiVersion": "v1", "time": TIME, "fieldsType": "FieldsV1"}
        | {"fieldsV1": fields}
        for manager, fields in (("kube-controller-manager", {"f:spec": spec}), ("kubelet", {"f:status": status}))
    ]


def _env() -> list[dict[str, str]]:
    return [{"name": f"SETTING_{i}", "value": "v" * 90} for i in range(27)]
