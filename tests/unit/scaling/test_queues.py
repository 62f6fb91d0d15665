"""What Kueue has admitted as a whole is not reduced in part."""

from __future__ import annotations

import pytest

from sevenhop.core.remediation.reduction import ConflictReason
from tests.unit.scaling import scenes
from tests.unit.scaling.case import DEPLOYMENT, GRAPH, RAY, Case, beside, check, lws, ray, stateful, touched
from tests.unit.scaling.world import other

R = ConflictReason
plain, dynamo = scenes.plain, scenes.dynamo
QUEUE = {"kueue.x-k8s.io/queue-name": "team-a"}
KUEUE = other(
    "kueue.x-k8s.io/v1beta2",
    "Workload",
    "raycluster-batch-1",
    owner=scenes.ray_cluster().manifest("RayCluster", "batch"),
)


QUEUED = [
    Case(
        "Kueue on a RayCluster",
        touched(scenes.ray_cluster, "RayCluster", "batch", labels=QUEUE),
        "gpu",
        R.QUEUED,
        ("team-a", "RayCluster batch"),
    ),
    Case("Kueue on the RayService above", touched(ray, *RAY, labels=QUEUE), "h100", R.QUEUED, ("RayService chat",)),
    Case(
        "elastic job",
        touched(
            scenes.ray_cluster, "RayCluster", "batch", labels=QUEUE, annotations={"kueue.x-k8s.io/elastic-job": "true"}
        ),
        "gpu",
        R.QUEUED,
        ("elastic",),
    ),
    Case(
        "Kueue's Workload without a label", beside(scenes.ray_cluster, KUEUE), "gpu", R.QUEUED, ("raycluster-batch-1",)
    ),
    Case(
        "MultiKueue",
        touched(scenes.ray_cluster, "RayCluster", "batch", spec={"managedBy": "kueue.x-k8s.io/multikueue"}),
        "gpu",
        R.QUEUED,
        ("multikueue",),
    ),
    Case("Kueue on a graph", touched(dynamo, *GRAPH, labels=QUEUE), "VllmDecodeWorker", R.QUEUED),
    Case(
        "Kueue on the pods alone",
        touched(dynamo, "Pod", "llama-70b-vllmdecodeworker-abc-0", labels={"kueue.x-k8s.io/managed": "true"}),
        "VllmDecodeWorker",
        R.QUEUED,
        ("llama-70b-vllmdecodeworker-abc-0",),
    ),
    Case("Kueue on a StatefulSet", touched(stateful, "StatefulSet", "qwen", labels=QUEUE), "engine", R.QUEUED),
    Case("Kueue on a Deployment", touched(plain, *DEPLOYMENT, labels=QUEUE), "engine", None),
    Case("Kueue on an LWS", touched(lws, "LeaderWorkerSet", "llama-405b", labels=QUEUE), "engine", None),
]


@pytest.mark.parametrize("case", QUEUED, ids=lambda case: case.id)
def test_queues(case: Case) -> None:
    """
    Kueue refuses what it would suspend, wherever it says that it manages it.
    """
    check(case)
