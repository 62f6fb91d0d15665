"""Servers that refuse, and people who write at the same time."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from sevenhop.simulation.faults import Refuse
from tests.unit.actions import scene
from tests.unit.actions.scene import (
    DEPLOYMENT,
    RAY_CLUSTER,
    SERVICE,
    SHAPES,
)

EACH_SHAPE = pytest.mark.parametrize("shape", SHAPES.values(), ids=SHAPES)


class Nth(Refuse):
    """Refuses one patch: the one after `skip` others."""

    def __init__(self, skip: int, **more: object) -> None:
        super().__init__(verbs=("patch",), times=None, **more)  # type: ignore[arg-type]
        self._skip = skip

    async def before(self, call: object) -> object:  # type: ignore[override]
        self._skip -= 1
        return await super().before(call) if self._skip == -1 else None  # type: ignore[arg-type]


def patches(c: scene.Cluster) -> list[str]:
    """Paths of those that were asked for."""
    return [path for method, path in c.server.requests if method == "PATCH"]


def without_empty(looks: dict[str, object]) -> dict[str, object]:
    cluster = looks["RayCluster.ray.io ray-x"]
    assert isinstance(cluster, dict)
    for group in cluster["spec"]["workerGroupSpecs"]:
        if group.get("scaleStrategy") == {"workersToDelete": []}:
            del group["scaleStrategy"]
    return looks


def scaled_by_somebody(c: scene.Cluster, replicas: int) -> None:
    c.change(DEPLOYMENT, "donor", lambda d: {**d, "spec": {"replicas": replicas}})
    c.change(SERVICE, "summarizer", lambda d: {**d, "spec": {"predictor": {"minReplicas": replicas, "maxReplicas": 9}}})

    def group(groups: list[dict[str, object]]) -> list[dict[str, object]]:
        return [{**g, "replicas": replicas} if g["groupName"] == "gpu" else g for g in groups]

    c.change(RAY_CLUSTER, "ray-x", lambda d: {**d, "spec": {"workerGroupSpecs": group(d["spec"]["workerGroupSpecs"])}})


def annotated(data: dict[str, object], annotations: dict[str, str] | None) -> dict[str, object]:
    meta = data["metadata"]
    assert isinstance(meta, dict)
    return {**data, "metadata": {**meta, "annotations": annotations or {}}}


class Interferes(Refuse):
    """Somebody else writes when one of our patches has arrived, and before it is carried out."""

    def __init__(self, skip: int, write: Callable[[], None]) -> None:
        super().__init__(status=0, verbs=("patch",), times=None)
        self._skip, self._write = skip, write

    async def before(self, call: object) -> None:
        self._skip -= 1
        if self._skip == -1:
            self._write()
