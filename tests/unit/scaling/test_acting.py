"""What is asked of a ruler is checked once more before it becomes a patch."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest

from sevenhop.core.inventory.workloads import Framework
from sevenhop.core.remediation.reduction import Conflict, ConflictReason, Ruler
from sevenhop.frameworks.scaling import SCALING
from tests.unit.scaling import scenes
from tests.unit.scaling.case import DEPLOYMENT, beside
from tests.unit.scaling.test_floors import budget
from tests.unit.scaling.world import World

R = ConflictReason
plain = scenes.plain


def test_actions_see_a_change_since() -> None:
    """
    A ruler from a moment ago is not acted on once the object asks for another number.
    """
    world = scenes.plain()
    ruler = world.rule("engine")
    assert isinstance(ruler, Ruler)
    world.manifest(*DEPLOYMENT)["spec"]["replicas"] = 5
    world.read()
    workload, component = world.find("engine")

    found = SCALING[Framework.PLAIN].actions(world, workload, component, ruler, 2, [])

    assert isinstance(found, Conflict)
    assert "5 replicas" in found.text


def test_actions_keep_the_floor() -> None:
    """
    Nothing goes below the floor, whoever asks.
    """
    found = scenes.dynamo().act("VllmDecodeWorker", 0)

    assert isinstance(found, Conflict)
    assert found.reason is R.FLOOR


def test_actions_keep_the_budget() -> None:
    """
    A budget with room for one lets one go, and not two.
    """
    world = beside(plain, budget(1))()

    assert isinstance(world.act("engine", 1), Conflict)
    assert not isinstance(world.act("engine", 2), Conflict)


@pytest.mark.parametrize("take", [slice(0, 1), slice(0, 3), slice(1, 3)], ids=["too few", "too many", "two halves"])
def test_ray_names_whole_replicas(take: slice) -> None:
    """
    Pods named must be exactly the replicas that go: the operator would pick the rest at random.
    """
    world = scenes.ray_cluster(hosts=2)
    found = world.act("gpu", 2, victims=world.pods("gpu")[take])

    assert isinstance(found, Conflict)
    assert found.reason is R.INDIVISIBLE


@pytest.mark.parametrize(
    ("make", "kind", "name", "component"),
    [
        (scenes.ray_cluster, "RayCluster", "batch", "gpu"),
        (scenes.dynamo, "DynamoGraphDeployment", "llama-70b", "VllmDecodeWorker"),
        (scenes.isvc, "InferenceService", "qwen", "predictor"),
    ],
    ids=["ray", "dynamo", "kserve"],
)
def test_a_component_that_went(make: Callable[[], World], kind: str, name: str, component: str) -> None:
    """
    What was a component a moment ago, and is none now, is not scaled, nor is another in its place.
    """
    world = make()
    workload, part = world.find(component)
    text = json.dumps(world.manifest(kind, name)["spec"])
    world.manifest(kind, name)["spec"] = json.loads(text.replace(f'"{component}"', '"renamed"'))
    world.read()

    found = SCALING[workload.framework].rule(world, workload, part, [])

    assert isinstance(found, Conflict)
    assert found.reason is ConflictReason.NO_TARGET
    assert component in found.text
