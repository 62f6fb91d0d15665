"""What the owner wants to keep stays."""

from __future__ import annotations

from typing import Any

import pytest

from sevenhop.core.remediation.reduction import ConflictReason
from tests.unit.frameworks.running import NAMESPACE, Manifest
from tests.unit.scaling import scenes
from tests.unit.scaling.case import Case, beside, check, lws, stateful, touched
from tests.unit.scaling.world import other

R = ConflictReason
plain, isvc = scenes.plain, scenes.isvc


def budget(allowed: int, selector: dict[str, Any] | None = None) -> Manifest:
    spec = {"minAvailable": 3, "selector": selector if selector is not None else {"matchLabels": {"app": "summarizer"}}}
    return other("policy/v1", "PodDisruptionBudget", "keep", spec=spec, status={"disruptionsAllowed": allowed})


def elsewhere(manifest: Manifest) -> Manifest:
    return {**manifest, "metadata": {**manifest["metadata"], "namespace": "other"}}


STATEFUL = ("StatefulSet", "qwen")
LEADERS, WORKERS = ("StatefulSet", "llama-405b"), ("StatefulSet", "llama-405b-0")


def kept(when_scaled: str, when_deleted: str = "Retain") -> dict[str, Any]:
    return {"persistentVolumeClaimRetentionPolicy": {"whenScaled": when_scaled, "whenDeleted": when_deleted}}


UNREADY: dict[str, Any] = {"conditions": [{"type": "Ready", "status": "False"}]}

GOING: Manifest = {
    "apiVersion": "v1",
    "kind": "Namespace",
    "metadata": {"name": NAMESPACE, "deletionTimestamp": "2026-11-30T12:00:00Z"},
}

FLOORS = [
    Case("budget", beside(plain, budget(0)), "engine", R.BUDGET, ("keep", "0", "1 pod ")),
    Case("budget elsewhere", beside(plain, elsewhere(budget(0))), "engine", None),
    Case("budget with room", beside(plain, budget(1)), "engine", None),
    Case("budget of others", beside(plain, budget(0, {"matchLabels": {"app": "other"}})), "engine", None),
    Case("budget of everything", beside(plain, budget(0, {})), "engine", R.BUDGET),
    Case(
        "budget without room, and one that is not ready",
        touched(beside(plain, budget(0)), "Pod", "summarizer-abc-1", status=UNREADY),
        "engine",
        None,
    ),
    Case(
        "budget without room, and one of two that go is not ready",
        touched(beside(lws, budget(0, {})), "Pod", "llama-405b-0-1", status=UNREADY),
        "engine",
        R.BUDGET,
    ),
    Case("budget with room for half a group", beside(lws, budget(1, {})), "engine", R.BUDGET, ("2 pods",)),
    Case(
        "minAvailable",
        lambda: scenes.dynamo_with(lambda parts: parts[1].update(minAvailable=2)),
        "VllmDecodeWorker",
        R.FLOOR,
        ("2",),
    ),
    Case("the last prefill", scenes.pair, "Prefill", R.FLOOR, ("1",)),
    Case("KServe at its least", lambda: isvc(least=1, most=1, running_now=1), "predictor", R.FLOOR),
    Case("volumes go too", touched(stateful, *STATEFUL, spec=kept("Delete")), "engine", R.VOLUMES, ("qwen",)),
    Case("volumes go with all of it", touched(stateful, *STATEFUL, spec=kept("Retain", "Delete")), "engine", None),
    Case("volumes of leaders", touched(lws, *LEADERS, spec=kept("Delete")), "engine", R.VOLUMES, ("whenScaled",)),
    Case("volumes of workers", touched(lws, *WORKERS, spec=kept("Retain", "Delete")), "engine", R.VOLUMES),
    Case("its namespace goes", beside(plain, GOING), "engine", R.NO_TARGET, ("Namespace prod", "being deleted")),
    Case("nothing runs", lambda: plain(0), "engine", R.FLOOR, ("no replicas",)),
]


@pytest.mark.parametrize("case", FLOORS, ids=lambda case: case.id)
def test_floors(case: Case) -> None:
    """
    A budget without room, or a floor, refuses.
    """
    check(case)
