"""Pods that a real quota forbids: told by a real ReplicaSet controller and by the real KubeRay operator."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from tests.e2e.scenes import Scene, scene
from tests.e2e.service import sevenhop
from tests.testbed import build
from tests.testbed.cluster import Cluster
from tests.testbed.waiting import eventually

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(180)]


@pytest.fixture
def here(testbed: Cluster) -> Iterator[Scene]:
    """A namespace that may have no GPU at all, on a cluster with free ones."""
    with scene(testbed) as here:
        here.pool.add_gpu_nodes(1)
        here.client.create(
            {
                "apiVersion": "v1",
                "kind": "ResourceQuota",
                "metadata": {"name": "gpus", "namespace": here.namespace},
                "spec": {"hard": {"requests.nvidia.com/gpu": "0"}},
            }
        )
        # Admission knows of a quota only once its controller has counted.
        here.client.wait_for(
            "v1", "ResourceQuota", "gpus", here.namespace, until=lambda quota: quota.get("status", {}).get("hard")
        )
        yield here


def scanned(testbed: Cluster, here: Scene) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """(components, findings) of the namespace."""
    answer = sevenhop("scan", "--kubeconfig", str(testbed.kubeconfig()), "-n", here.namespace, "-o", "json")
    assert answer.returncode == 0, answer.stderr
    report = json.loads(answer.stdout)
    return report["workloads"], [row for row in report["findings"] if row["namespace"] == here.namespace]


@pytest.mark.parametrize("framework", ["plain", "kuberay"])
def test_scan_says_why_pods_were_not_created(testbed: Cluster, here: Scene, framework: str) -> None:
    """The component has the quota as its cause on the hop of scheduling, and a finding names whose words these are."""
    selector = here.pool.node_selector
    here.client.create(
        build.vllm_deployment("chat", here.namespace, "org/chat", replicas=1, gpus=2, node_selector=selector)
        if framework == "plain"
        else build.ray_cluster("chat", here.namespace, workers=1, gpus=2)
    )

    def look() -> tuple[dict[str, Any], list[dict[str, Any]]] | None:
        rows, findings = scanned(testbed, here)
        short = [row for row in rows if row["cause"] == "resource-quota"]
        return (short[0], findings) if short and findings else None

    row, findings = eventually(look, timeout=60, every=1, what="the quota as the cause")

    assert (row["framework"], row["ready"], row["first_broken"], row["waiting"]) == (framework, 0, "scheduling", 1)
    kind = {"plain": "ReplicaSet", "kuberay": "RayCluster"}[framework]
    assert [(f["cause"], f["workload"]) for f in findings if f["kind"] == kind] == [("resource-quota", "chat")]
