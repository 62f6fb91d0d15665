"""What only Events tell of pods that an operator could not create, in an inventory that goes on."""

from __future__ import annotations

from itertools import permutations
from typing import Any

from sevenhop.core.objects import cluster as c
from sevenhop.core.objects.base import Custom
from tests import builders as b
from tests.unit.inventory.held_back import USED_UP, WORKERS, ray, ray_pod
from tests.unit.inventory.scenes import Scene


def refusal(of: Custom, seconds: float = 30) -> c.Event:
    about = c.ObjectRef(kind="RayCluster", api_version="ray.io/v1", namespace="prod", name="ray", uid=of.metadata.uid)
    return c.Event(
        metadata=b.meta("ray.refused", created=b.at(seconds)),
        involved_object=about,
        type="Warning",
        reason="FailedToCreateWorkerPod",
        message=f"Failed to create worker Pod for the cluster prod/ray, {USED_UP}",
        first_timestamp=b.at(seconds),
        last_timestamp=b.at(seconds),
    )


def waiting(scene: Scene) -> tuple[Any, Any]:
    return scene.fact(WORKERS, "waiting"), scene.fact(WORKERS, "waiting.cause")


def test_an_event_says_why_pods_are_missing() -> None:
    """Missing stands in the objects, why in the Event; in whatever order they come."""
    cluster = ray()
    head = ray_pod(cluster, "head", "head", "headgroup")
    for order in permutations([cluster, head, refusal(cluster)]):
        scene = Scene(b.node("gpu-0", gpus=8))
        for each in order:
            scene.put(each)

        assert waiting(scene) == (2, "resource-quota")
        assert scene.fact(WORKERS, "waiting.since") == b.at(30)


def test_pods_that_came_later_take_it_back() -> None:
    """The quota was raised: what the Event said is over, although it is kept for an hour."""
    cluster = ray()
    scene = Scene(b.node("gpu-0", gpus=8), cluster, refusal(cluster))
    assert waiting(scene) == (2, "resource-quota")

    scene.put(ray_pod(cluster, "w0", "worker", "workers", gpus=2, created=b.at(60)))

    assert waiting(scene) == (0, "")


def test_an_event_alone_makes_nothing_wait() -> None:
    """All pods are there: nothing is missing, whatever it says."""
    cluster = ray()
    pods = [ray_pod(cluster, f"w{n}", "worker", "workers", gpus=2) for n in range(2)]
    scene = Scene(b.node("gpu-0", gpus=8), cluster, *pods, refusal(cluster))

    assert waiting(scene) == (0, "")


def test_pods_that_go_again_end_where_a_start_would() -> None:
    """What counts is what is there: a pod that came after the Event, and went, has never been."""
    cluster = ray()
    worker = ray_pod(cluster, "w0", "worker", "workers", gpus=2, created=b.at(60))
    scene = Scene(b.node("gpu-0", gpus=8), cluster, worker, refusal(cluster))
    assert waiting(scene) == (0, "")

    scene.delete(worker)

    assert waiting(scene) == waiting(Scene(b.node("gpu-0", gpus=8), cluster, refusal(cluster))) == (2, "resource-quota")
