"""
Operators of the simulated cluster, as far as giving and taking replicas needs them; added to it one by one.

They follow changes: what their object says when they first see it is taken to be so, since the clusters of the demo and
of tests are built as their operators would have left them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from sevenhop.simulation.controllers import DEPLOYMENT, POD, owner_reference
from sevenhop.simulation.store import Data, Store

INFERENCE_SERVICE = "InferenceService.serving.kserve.io"
GRAPH = "DynamoGraphDeployment.nvidia.com"
COMPONENT_DEPLOYMENT = "DynamoComponentDeployment.nvidia.com"
RAY_CLUSTER = "RayCluster.ray.io"
SCALER = "HorizontalPodAutoscaler.autoscaling"


class KServe:
    """
    InferenceService in Standard mode → HorizontalPodAutoscaler → Deployment ``<name>-predictor``.

    The autoscaler has no load to go by: it wants what it last saw within its limits, and the limits cut that.
    """

    def __init__(self, store: Store) -> None:
        self._store = store
        self._wish: dict[str, int] = {}
        self._set: dict[str, int] = {}

    def step(self) -> datetime | None:
        for service in self._store.all(INFERENCE_SERVICE):
            meta, predictor = service["metadata"], (service.get("spec") or {}).get("predictor") or {}
            least, most = int(predictor.get("minReplicas", 1)), int(predictor.get("maxReplicas", 0))
            child = f"{meta['name']}-predictor"
            self._limit(meta["namespace"], child, {"minReplicas": least, "maxReplicas": max(most, least)})
        for scaler in self._store.all(SCALER):
            self._scale(scaler)
        return None

    def _limit(self, namespace: str, name: str, limits: Mapping[str, int]) -> None:
        scaler = self._store.find(SCALER, namespace, name)
        if scaler is not None and any(scaler["spec"].get(key) != value for key, value in limits.items()):
            self._store.change(SCALER, namespace, name, lambda d: {**d, "spec": {**d["spec"], **limits}})

    def _scale(self, scaler: Data) -> None:
        spec, meta = scaler["spec"], scaler["metadata"]
        target = self._store.find(DEPLOYMENT, meta["namespace"], spec["scaleTargetRef"]["name"])
        if target is None or spec["scaleTargetRef"]["kind"] != "Deployment":
            return
        now, uid = int(target["spec"].get("replicas", 1)), target["metadata"]["uid"]
        if self._set.get(uid) != now:
            self._wish[uid] = now  # new to us, or somebody else has scaled it
        self._set[uid] = max(int(spec.get("minReplicas", 1)), min(self._wish[uid], int(spec["maxReplicas"])))
        _scale(self._store, DEPLOYMENT, target, self._set[uid])


class Dynamo:
    """DynamoGraphDeployment → DynamoComponentDeployment and Deployment ``<name>-<component>``, without Grove."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._seen: dict[tuple[str, str], int] = {}

    def step(self) -> datetime | None:
        for graph in self._store.all(GRAPH):
            meta = graph["metadata"]
            for name, replicas in _components(graph.get("spec") or {}):
                key = (meta["uid"], name)
                if self._seen.setdefault(key, replicas) == replicas:
                    continue
                self._seen[key] = replicas
                for kind in (COMPONENT_DEPLOYMENT, DEPLOYMENT):
                    child = self._store.find(kind, meta["namespace"], f"{meta['name']}-{name.lower()}")
                    if child is not None:
                        _scale(self._store, kind, child, replicas)
        return None


class KubeRay:
    """RayCluster → pods of its worker groups: who is named in `workersToDelete` goes first, then the newest."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def step(self) -> datetime | None:
        for cluster in self._store.all(RAY_CLUSTER):
            spec = cluster.get("spec") or {}
            if (head := (spec.get("headGroupSpec") or {}).get("template")) is not None:
                self._fill(cluster, "headgroup", "head", head, wanted=1, leaving=())
            for group in spec.get("workerGroupSpecs") or ():
                leaving = (group.get("scaleStrategy") or {}).get("workersToDelete") or ()
                wanted = int(group.get("replicas", 1)) * int(group.get("numOfHosts", 1))
                self._fill(cluster, group["groupName"], "worker", group.get("template") or {}, wanted, leaving)
        return None

    def _fill(
        self, cluster: Data, group: str, node_type: str, template: Data, wanted: int, leaving: Sequence[str]
    ) -> None:
        meta = cluster["metadata"]
        labels = {"ray.io/cluster": meta["name"], "ray.io/node-type": node_type, "ray.io/group": group}
        pods = [pod for pod in self._store.all(POD, meta["namespace"]) if _carries(pod, labels)]
        for pod in [pod for pod in pods if pod["metadata"]["name"] in leaving]:
            self._store.delete(POD, meta["namespace"], pod["metadata"]["name"])
            pods.remove(pod)
        pods.sort(key=lambda pod: (pod["metadata"]["creationTimestamp"], pod["metadata"]["name"]))
        for pod in pods[wanted:]:
            self._store.delete(POD, meta["namespace"], pod["metadata"]["name"])
        inner: Data = template.get("metadata") or {}
        for _ in range(wanted - len(pods)):
            own = {
                "generateName": f"{meta['name']}-{group}-{node_type}-",
                "namespace": meta["namespace"],
                "labels": {**(inner.get("labels") or {}), **labels},
                "annotations": dict(inner.get("annotations") or {}),
                "ownerReferences": [owner_reference(cluster)],
            }
            self._store.create(POD, {"metadata": own, "spec": template.get("spec") or {"containers": []}})


def _components(spec: Data) -> list[tuple[str, int]]:
    """Names and replicas, in both versions of the kind."""
    components: Sequence[Any] = spec.get("components") or ()
    services: Mapping[str, Any] = spec.get("services") or {}
    found = [(str(c["name"]), int(c.get("replicas", 1))) for c in components]
    return found + [(name, int(service.get("replicas", 1))) for name, service in services.items()]


def _carries(pod: Data, labels: Mapping[str, str]) -> bool:
    meta = pod["metadata"]
    own = meta.get("labels") or {}
    return not meta.get("deletionTimestamp") and all(own.get(key) == value for key, value in labels.items())


def _scale(store: Store, kind: str, data: Data, replicas: int) -> None:
    meta = data["metadata"]
    if (data.get("spec") or {}).get("replicas") != replicas:
        spec = {**(data.get("spec") or {}), "replicas": replicas}
        store.change(kind, meta["namespace"], meta["name"], lambda current: {**current, "spec": spec})
