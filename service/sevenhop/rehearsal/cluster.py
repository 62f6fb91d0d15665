"""The small cluster of a scene: nodes, workloads and device plugins, and what happens to them."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any

from sevenhop.rulebook.playbook_scene import PlaybookScene, SceneMoment, SceneWorkload, Stuck
from sevenhop.simulation.clock import VirtualClock
from sevenhop.simulation.cluster import SimulatedCluster, gpu_node
from sevenhop.simulation.controllers import owner_reference
from sevenhop.simulation.patches import merge_patch
from sevenhop.simulation.store import Data, Store

NAMESPACE = "test"
PRODUCT = "NVIDIA-H100-80GB-HBM3"
PLUGIN = "device-plugin"

BUILT_BEFORE = timedelta(hours=3)
"""The cluster is that old when a scene begins, so that nothing of it counts as a recent change."""

_GPU = "nvidia.com/gpu"
_LOADS_S, _STUCK = "rehearsal/loads-s", "rehearsal/stuck"
_NEVER_S = 10.0**8
_PLUGIN_NAME, _PLUGIN_SPACE = "nvidia-device-plugin-daemonset", "kube-system"


class SceneError(ValueError):
    """The scene cannot be played as it is written; one line."""


def open_cluster(scene: PlaybookScene, begins: datetime) -> SimulatedCluster:
    """
    The cluster as it stands when a scene begins.

    Raises:
        SceneError: Not all of it runs by then.
    """
    clock = VirtualClock(begins - BUILT_BEFORE)
    cluster = SimulatedCluster(clock, load_s=_load_s, controllers=(_DaemonSets,))
    cluster.store.create("Namespace", {"metadata": {"name": NAMESPACE}})
    for name, gpus in scene.cluster.nodes.items():
        cluster.store.create("Node", gpu_node(name, PRODUCT, gpus))
    cluster.store.create("DaemonSet.apps", _plugin())
    for name, workload in scene.cluster.workloads.items():
        cluster.store.create("Deployment.apps", _deployment(name, workload))
    cluster.advance(begins - clock())
    waiting = [pod["metadata"]["name"] for pod in cluster.store.all("Pod") if not _is_ready(pod)]
    if waiting:
        raise SceneError(f"when the scene begins these pods are not Ready: {', '.join(waiting)}")
    return cluster


def happen(cluster: SimulatedCluster, moment: SceneMoment) -> None:
    """
    What is done to the cluster at one moment; decisions of people are not.

    Raises:
        SceneError: There is no such object or pod.
    """
    store = cluster.store
    for name, gpus in moment.nodes.items():
        store.create("Node", gpu_node(name, PRODUCT, gpus))
    for name, gpus in moment.advertises.items():
        _merge(store, "Node", "", name, {"status": {"allocatable": {_GPU: str(gpus)}}})
    for name, replicas in moment.replicas.items():
        _merge(store, "Deployment.apps", NAMESPACE, name, {"spec": {"replicas": replicas}})
    for stuck in moment.stuck:
        _stick(cluster, stuck)
    for patch in moment.patch:
        namespaced = next(kind for kind in store.kinds() if kind.name == patch.kind).namespaced
        namespace = (patch.namespace or NAMESPACE) if namespaced else ""
        _merge(store, patch.kind, namespace, patch.name, patch.set)


def replicas_of(cluster: SimulatedCluster, name: str) -> int:
    """What a workload asks for."""
    found = cluster.store.find("Deployment.apps", NAMESPACE, name)
    return int(found["spec"]["replicas"]) if found is not None else 0


def ready_of(cluster: SimulatedCluster, name: str) -> int:
    """Ready pods of a workload."""
    return sum(_is_ready(pod) for pod in _pods(cluster.store, name))


def cordoned(cluster: SimulatedCluster) -> list[str]:
    return sorted(n["metadata"]["name"] for n in cluster.store.all("Node") if n["spec"].get("unschedulable"))


def _merge(store: Store, kind: str, namespace: str, name: str, patch: Mapping[str, Any]) -> None:
    if store.find(kind, namespace, name) is None:
        raise SceneError(f"there is no {kind} {'/'.join(part for part in (namespace, name) if part)}")
    store.change(kind, namespace, name, lambda data: dict(merge_patch(data, patch)))


def _pods(store: Store, name: str) -> list[Data]:
    pods = [pod for pod in store.all("Pod") if not pod["metadata"].get("deletionTimestamp")]
    return [pod for pod in pods if (pod["metadata"].get("labels") or {}).get("app") == name]


def _stick(cluster: SimulatedCluster, stuck: Stuck) -> None:
    pods = [pod for pod in _pods(cluster.store, stuck.workload) if pod["spec"].get("nodeName") == stuck.node]
    if not pods:
        raise SceneError(f"no pod of {stuck.workload} runs on {stuck.node}")
    now = f"{cluster.clock():%Y-%m-%dT%H:%M:%SZ}"
    ended = {"exitCode": stuck.exit_code, "reason": "Error", "finishedAt": now, "startedAt": now}
    states = [
        {
            **status,
            "ready": False,
            "started": False,
            "restartCount": stuck.restarts,
            "state": {"waiting": {"reason": "CrashLoopBackOff", "message": "back-off restarting failed container"}},
            "lastState": {"terminated": ended},
        }
        for status in pods[0]["status"].get("containerStatuses") or ()
    ]
    conditions = [
        {**each, "status": "False", "reason": "ContainersNotReady", "lastTransitionTime": now}
        if each["type"] in ("Ready", "ContainersReady")
        else each
        for each in pods[0]["status"].get("conditions") or ()
    ]
    meta = pods[0]["metadata"]
    patch = {
        "metadata": {"annotations": {_STUCK: "true"}},
        "status": {"containerStatuses": states, "conditions": conditions},
    }
    _merge(cluster.store, "Pod", meta["namespace"], meta["name"], patch)


def _is_ready(pod: Data) -> bool:
    return any(c["type"] == "Ready" and c["status"] == "True" for c in pod["status"].get("conditions") or ())


def _load_s(pod: Data) -> float:
    notes = pod["metadata"].get("annotations") or {}
    return _NEVER_S if _STUCK in notes else float(notes.get(_LOADS_S, 3))


def _deployment(name: str, workload: SceneWorkload) -> Data:
    labels = {"app": name}
    resources = {"cpu": "1", "memory": "1Gi", **({_GPU: str(workload.gpus)} if workload.gpus else {})}
    probe = {"httpGet": {"path": "/health", "port": 8000}, "periodSeconds": 10}
    container = {
        "name": "engine",
        "image": "vllm/vllm-openai:v0.11.0",
        "args": ["--model", f"org/{name}"],
        "ports": [{"containerPort": 8000}],
        "resources": {"requests": resources, "limits": resources},
        "startupProbe": {**probe, "failureThreshold": 60},
        "readinessProbe": probe,
    }
    tier = {"sevenhop.dev/tier": workload.tier} if workload.tier else {}
    loads = {_LOADS_S: str(workload.loads.total_seconds())}
    return {
        "metadata": {
            "name": name,
            "namespace": NAMESPACE,
            "labels": labels,
            "annotations": {**tier, **workload.annotations},
        },
        "spec": {
            "replicas": workload.replicas,
            "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels, "annotations": loads}, "spec": {"containers": [container]}},
        },
    }


def _plugin() -> Data:
    labels = {"app": PLUGIN, "app.kubernetes.io/name": "nvidia-device-plugin"}
    container = {"name": "plugin", "image": "nvcr.io/nvidia/k8s-device-plugin:v0.17.4"}
    return {
        "metadata": {"name": _PLUGIN_NAME, "namespace": _PLUGIN_SPACE, "labels": labels},
        "spec": {
            "selector": {"matchLabels": labels},
            "template": {
                "metadata": {"labels": labels},
                "spec": {"containers": [container], "tolerations": [{"operator": "Exists"}]},
            },
        },
    }


class _DaemonSets:
    """DaemonSet → one pod a node; which node is written into the pod, for no scheduler is asked."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def step(self) -> datetime | None:
        for owner in self._store.all("DaemonSet.apps"):
            meta, template = owner["metadata"], owner["spec"]["template"]
            pods = self._store.all("Pod", meta["namespace"])
            served = {p["spec"].get("nodeName") for p in pods if _is_of(p, meta["uid"])}
            for node in self._store.all("Node"):
                if node["metadata"]["name"] not in served:
                    self._create(owner, template, node["metadata"]["name"])
        return None

    def _create(self, owner: Data, template: Data, node: str) -> None:
        meta = {
            **template["metadata"],
            "generateName": f"{owner['metadata']['name']}-",
            "namespace": owner["metadata"]["namespace"],
            "ownerReferences": [owner_reference(owner)],
        }
        self._store.create("Pod", {"metadata": meta, "spec": {**template["spec"], "nodeName": node}})


def _is_of(pod: Data, owner: str) -> bool:
    references = pod["metadata"].get("ownerReferences") or ()
    return not pod["metadata"].get("deletionTimestamp") and any(r.get("uid") == owner for r in references)
