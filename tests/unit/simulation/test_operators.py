"""The simulated operators give and take replicas as the real ones do."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from sevenhop.simulation.clock import VirtualClock
from sevenhop.simulation.cluster import SimulatedCluster, gpu_node
from sevenhop.simulation.operators import GRAPH, INFERENCE_SERVICE, RAY_CLUSTER, SCALER, Dynamo, KServe, KubeRay
from sevenhop.simulation.store import Data

NOON = datetime(2026, 11, 30, 12, tzinfo=UTC)
TEMPLATE = {"spec": {"containers": [{"name": "main", "resources": {"limits": {"nvidia.com/gpu": "1"}}}]}}


@pytest.fixture
def cluster() -> SimulatedCluster:
    made = SimulatedCluster(VirtualClock(NOON), controllers=(KServe, Dynamo, KubeRay))
    made.apply("Node", gpu_node("gpu-1", "NVIDIA-H100-80GB-HBM3", 8))
    return made


def deployment(cluster: SimulatedCluster, name: str, replicas: int) -> None:
    labels = {"app": name}
    spec = {"replicas": replicas, "selector": {"matchLabels": labels}}
    template = {"metadata": {"labels": labels}, **TEMPLATE}
    meta = {"name": name, "namespace": "chat"}
    cluster.apply("Deployment.apps", {"metadata": meta, "spec": {**spec, "template": template}})


def change(cluster: SimulatedCluster, kind: str, name: str, **spec: Any) -> None:
    cluster.store.change(kind, "chat", name, lambda data: {**data, "spec": {**data["spec"], **spec}})
    cluster.advance(timedelta(seconds=60))


def pods(cluster: SimulatedCluster, node_type: str = "") -> set[str]:
    """Names of those that stay; of one of Ray's node types."""
    return {
        str(pod["metadata"]["name"])
        for pod in cluster.store.all("Pod", "chat")
        if not pod["metadata"].get("deletionTimestamp")
        if not node_type or pod["metadata"]["labels"]["ray.io/node-type"] == node_type
    }


def test_kserve_cuts_to_its_limits_and_gives_back(cluster: SimulatedCluster) -> None:
    """Fewer at most means fewer pods; with the old limits the load is served by as many as before."""
    meta = {"name": "summarizer", "namespace": "chat"}
    cluster.apply(INFERENCE_SERVICE, {"metadata": meta, "spec": {"predictor": {"minReplicas": 2, "maxReplicas": 4}}})
    target = {"kind": "Deployment", "name": "summarizer-predictor"}
    limits = {"scaleTargetRef": target, "minReplicas": 2, "maxReplicas": 4}
    cluster.apply(SCALER, {"metadata": {"name": "summarizer-predictor", "namespace": "chat"}, "spec": limits})
    deployment(cluster, "summarizer-predictor", 4)
    cluster.advance(timedelta(seconds=60))
    assert len(pods(cluster)) == 4
    change(cluster, INFERENCE_SERVICE, "summarizer", predictor={"minReplicas": 2, "maxReplicas": 3})
    assert len(pods(cluster)) == 3
    change(cluster, INFERENCE_SERVICE, "summarizer", predictor={"minReplicas": 2, "maxReplicas": 4})
    assert len(pods(cluster)) == 4
    change(cluster, "Deployment.apps", "summarizer-predictor", replicas=1)
    assert len(pods(cluster)) == 2


@pytest.mark.parametrize("version", ["components", "services"])
def test_dynamo_follows_changes_of_its_graph(cluster: SimulatedCluster, version: str) -> None:
    """What the graph says at first is taken to be so; a change goes to the component's Deployment."""

    def graph(replicas: int) -> Data:
        decode = {"replicas": replicas}
        return (
            {"components": [{"name": "decode", **decode}]}
            if version == "components"
            else {"services": {"decode": decode}}
        )

    cluster.apply(GRAPH, {"metadata": {"name": "llama", "namespace": "chat"}, "spec": graph(4)})
    deployment(cluster, "llama-decode", 3)
    cluster.advance(timedelta(seconds=60))
    assert len(pods(cluster)) == 3
    change(cluster, GRAPH, "llama", **graph(2))
    assert len(pods(cluster)) == 2


def test_kuberay_deletes_whom_it_is_told_to(cluster: SimulatedCluster) -> None:
    """The worker that is named goes, whichever it is; without a name the newest does."""
    group: Data = {"groupName": "gpu", "replicas": 3, "template": TEMPLATE}
    spec = {"headGroupSpec": {"template": {"spec": {"containers": []}}}, "workerGroupSpecs": [group]}
    cluster.apply(RAY_CLUSTER, {"metadata": {"name": "ray", "namespace": "chat"}, "spec": spec})
    cluster.advance(timedelta(seconds=60))
    workers = pods(cluster, node_type="worker")
    assert (len(workers), len(pods(cluster, node_type="head"))) == (3, 1)
    named = min(workers)
    strategy = {"workersToDelete": [named]}
    change(cluster, RAY_CLUSTER, "ray", workerGroupSpecs=[{**group, "replicas": 2, "scaleStrategy": strategy}])
    assert pods(cluster, node_type="worker") == workers - {named}
    change(cluster, RAY_CLUSTER, "ray", workerGroupSpecs=[{**group, "replicas": 3}])
    assert len(pods(cluster, node_type="worker")) == 3
