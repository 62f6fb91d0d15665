"""Pods that do not exist: what controllers, operators and queues say becomes the component's cause."""

from __future__ import annotations

from itertools import permutations
from typing import Any

import pytest

from sevenhop.core.objects.base import Condition
from sevenhop.core.subject import Hop, Subject
from tests import builders as b
from tests.unit.inventory.held_back import USED_UP, WORKERS, kueue, quota, ray, ray_pod
from tests.unit.inventory.scenes import Scene


def waiting(scene: Scene, component: str) -> tuple[Any, Any]:
    return scene.fact(component, "waiting"), scene.fact(component, "waiting.cause")


def test_what_the_operator_may_not_create_waits() -> None:
    """A RayCluster makes its pods itself: its own condition is all that tells why they are missing."""
    cluster = ray(says=USED_UP)
    scene = Scene(b.node("gpu-0", gpus=8), cluster, ray_pod(cluster, "head", "head", "headgroup"))

    assert waiting(scene, WORKERS) == (2, "resource-quota")
    assert waiting(scene, "component:prod/ray/headgroup") == (0, "")
    assert scene.fact(WORKERS, "waiting.category") == "quota"
    assert scene.fact(WORKERS, "waiting.gpus") == 4
    assert scene.fact(WORKERS, "waiting.since") == b.at(30)
    context = scene.inventory.context(Subject.parse(WORKERS), b.at(60))
    assert context is not None
    assert context.report is not None
    assert context.diagnosis is not None
    assert context.report.first_broken is Hop.SCHEDULING
    assert context.diagnosis.evidence[0].source == "condition ReplicaFailure"


def test_words_that_outlive_their_cause_count_for_nothing() -> None:
    """The pods are there, so nothing is missing, whatever the condition still says."""
    cluster = ray(says=USED_UP)
    scene = Scene(b.node("gpu-0", gpus=8), cluster, ray_pod(cluster, "head", "head", "headgroup"))
    scene.put(*(ray_pod(cluster, f"w{n}", "worker", "workers", gpus=2) for n in range(2)))

    assert waiting(scene, WORKERS) == (0, "")


def test_one_that_is_missing_beside_one_that_runs() -> None:
    """Only those that do not exist wait for the quota."""
    cluster = ray(says=USED_UP)
    scene = Scene(b.node("gpu-0", gpus=8), cluster, ray_pod(cluster, "w0", "worker", "workers", gpus=2))

    assert waiting(scene, WORKERS) == (1, "resource-quota")


def test_the_operator_takes_it_back() -> None:
    """Without its condition nothing holds the pods back."""
    scene = Scene(ray(says=USED_UP))
    scene.put(ray())

    assert waiting(scene, WORKERS) == (0, "")


def test_what_stands_still_on_purpose_does_not_wait() -> None:
    """A suspended cluster wants no pods, whatever an old condition says."""
    assert waiting(Scene(ray(says=USED_UP, suspend=True)), WORKERS) == (0, "")


@pytest.mark.parametrize(
    ("message", "cause"),
    [
        pytest.param(
            "couldn't assign flavors to pod set workers: insufficient quota for nvidia.com/gpu in flavor h100, "
            "request > maximum capacity (4 > 2)",
            "kueue-exceeds-max",
            id="never",
        ),
        pytest.param(
            "couldn't assign flavors to pod set workers: insufficient unused quota for nvidia.com/gpu in flavor h100, "
            "2 more needed",
            "kueue-waiting",
            id="not yet",
        ),
    ],
)
def test_what_a_queue_holds_waits_for_it(message: str, cause: str) -> None:
    """Kueue suspends the cluster, so no pod tells that it waits: the Workload does."""
    cluster = ray(suspend=True)
    scene = Scene(cluster, kueue(cluster, message))

    assert waiting(scene, WORKERS) == (2, cause)
    assert scene.fact(WORKERS, "waiting.since") == b.at(20)


def test_two_tellers_of_the_same_pods_count_once() -> None:
    """An operator that repeats what its ReplicaSet says adds nothing."""
    graph = b.dynamo("llama", decode=2)
    graph.status["conditions"] = [{"type": "Ready", "status": "False", "reason": "FailedCreate", "message": USED_UP}]
    below = b.deployment("llama-decode", replicas=2, gpus=2, total=0)
    labels = b.dynamo_pod(graph, "decode", "0").metadata.labels
    below.spec.template.metadata.labels |= labels
    below.metadata.owner_references = (b.owner(graph, "DynamoGraphDeployment.nvidia.com"),)
    replicas = b.replicaset(below, created=0)
    replicas.status.conditions = (Condition(type="ReplicaFailure", status="True", message=USED_UP),)

    assert waiting(Scene(graph, below, replicas), "component:prod/llama/decode") == (2, "resource-quota")
    assert waiting(Scene(graph), "component:prod/llama/decode") == (2, "resource-quota")


@pytest.mark.parametrize("order", list(permutations(("deployment", "replicas", "quota"))), ids="-".join)
def test_the_order_of_lists_does_not_matter(order: tuple[str, ...]) -> None:
    """A ReplicaSet may be listed before the Deployment that makes it a workload, and before the quota."""
    deployment = b.deployment("chat", replicas=1, gpus=2, total=0)
    objects = {
        "deployment": deployment,
        "replicas": b.replicaset(deployment, created=0),
        "quota": quota(hard=2, used=2),
    }
    scene = Scene()
    for name in order:
        scene.put(objects[name])

    assert waiting(scene, "component:prod/chat/engine") == (1, "resource-quota")


def test_a_quota_that_is_raised_holds_nothing_back() -> None:
    """The ReplicaSet itself says nothing new until its next try, minutes later."""
    deployment = b.deployment("chat", replicas=1, gpus=2, total=0)
    scene = Scene(deployment, b.replicaset(deployment, created=0), quota(hard=2, used=2))
    scene.put(quota(hard=8, used=2))

    assert waiting(scene, "component:prod/chat/engine") == (0, "")


def test_a_pod_that_is_there_before_its_controller_says_so() -> None:
    """The pod took the last of the quota: what it left is nobody's reason to wait."""
    deployment = b.deployment("chat", replicas=1, gpus=2, total=0)
    replicas = b.replicaset(deployment, created=0)
    scene = Scene(deployment, replicas, quota(hard=2, used=2))
    assert waiting(scene, "component:prod/chat/engine") == (1, "resource-quota")

    scene.put(b.pod_of(replicas, "x", node="gpu-0"))
    assert waiting(scene, "component:prod/chat/engine") == (0, "")


def test_an_operator_that_speaks_of_another_hop_is_the_cause_where_pods_say_nothing() -> None:
    """It does not make pods wait, and yet the component is not without a cause."""
    cluster = ray(says="")
    cluster.status["conditions"] = [
        {
            "type": "Failed",
            "status": "True",
            "reason": "Failed",
            "message": "torch.OutOfMemoryError: CUDA out of memory.",
        }
    ]
    scene = Scene(cluster)

    assert waiting(scene, WORKERS) == (0, "")
    context = scene.inventory.context(Subject.parse(WORKERS), b.at(60))
    assert context is not None
    assert context.diagnosis is not None
    assert context.diagnosis.hop is not Hop.SCHEDULING
