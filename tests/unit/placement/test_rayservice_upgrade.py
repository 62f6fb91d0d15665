"""A RayService makes a second cluster before the first one goes: it may wait for what it holds itself."""

from __future__ import annotations

from typing import Any

import pytest

from sevenhop.core.hops.diagnosis import Diagnosis
from sevenhop.core.hops.scheduling import why_pending
from sevenhop.core.placement.cluster import Cluster
from tests.placement_builders import custom, node, pod, the_pod, world

RAY = "ray.io/v1"


def owned(kind: str, name: str) -> dict[str, Any]:
    return {
        "ownerReferences": [{"apiVersion": RAY, "kind": kind, "name": name, "uid": f"uid-{name}", "controller": True}]
    }


def upgrade(*, active: str, held_by: str = "old", gpus: int = 8, on: str = "a") -> Diagnosis:
    """A worker of cluster ``new`` waits for as many GPUs as a pod of another cluster holds."""
    status = {"activeServiceStatus": {"rayClusterName": active}} if active else {}
    clusters = [custom(RAY, "RayCluster", name, "prod", metadata=owned("RayService", "svc")) for name in ("old", "new")]
    waits = pod("w", gpus=gpus, owner=("RayCluster", "new", "uid-new"))
    holds = pod("h", on=on, gpus=8, owner=("RayCluster", held_by, f"uid-{held_by}"))
    objects = world(node("a", gpus=8), custom(RAY, "RayService", "svc", "prod", status=status), *clusters, waits, holds)
    return why_pending(Cluster(objects), the_pod(objects, "w"))


def test_an_upgrade_that_waits_for_itself() -> None:
    """The active cluster holds what the pending one needs: nobody else's capacity is short."""
    found = upgrade(active="old")

    assert found.cause == "rollout-surge"
    assert "svc" in found.summary
    assert "maxSurge" not in " ".join((found.summary, *found.next_steps, *found.would_help))


@pytest.mark.parametrize(
    ("case", "cause"),
    [
        pytest.param({"active": "old", "held_by": "other"}, "gpu-shortage", id="somebody else has them"),
        pytest.param({"active": "new"}, "gpu-shortage", id="it is the active one itself"),
        pytest.param({"active": ""}, "gpu-shortage", id="nothing is active yet"),
        pytest.param({"active": "old", "gpus": 16}, "gpu-never-fits", id="it would not fit without it either"),
    ],
)
def test_what_is_no_upgrade_that_waits_for_itself(case: dict[str, Any], cause: str) -> None:
    """Only what its own active cluster holds, and what would be enough."""
    assert upgrade(**case).cause == cause
