"""PodDisruptionBudgets over a donor: which of its pods they count, and how many of these may go at most."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from sevenhop.core.events import SyncState
from sevenhop.core.facts.schema import Unknown
from sevenhop.core.objects import cluster as c
from sevenhop.core.objects.base import LabelSelector
from sevenhop.core.remediation.budgets import budgets_of
from sevenhop.core.remediation.guards_question import PodBudget
from tests import builders as b
from tests.unit.remediation.planning.planning_scene import World, names

NEEDY = (("prod", "needy"), "engine")


def _world(**giver: Any) -> World:
    """Three replicas of two GPUs on one node, a budget that keeps two of them, and somebody who waits."""
    world = World()
    world.nodes(gpu_1=6)
    world.donor("giver", ["gpu-1"] * 3, **giver)
    world.waits("needy")
    selector = LabelSelector(match_labels={"app": "giver"})
    for name, least in (("half", "50%"), ("two", 2)):
        world.objects.append(
            c.PodDisruptionBudget(
                metadata=b.meta(name),
                spec=c.PdbSpec(selector=selector, min_available=least),
                status=c.PdbStatus(disruptions_allowed=1),
            )
        )
    return world


@pytest.mark.parametrize(
    ("giver", "against"),
    [
        pytest.param({}, {"prod/half": 1, "prod/two": 1}, id="a ready one goes"),
        pytest.param({"unready": [1]}, {}, id="the one that is not ready goes, which disrupts nobody"),
        pytest.param({"chooser": "any"}, {"prod/half": 1, "prod/two": 1}, id="any goes"),
    ],
)
def test_what_budgets_have_to_have_room_for(giver: dict[str, Any], against: dict[str, int]) -> None:
    """Both budgets are asked, percentages too; where nobody knows who goes, for the most that may."""
    world = _world(**giver)
    plan = world.plan(NEEDY)
    found = budgets_of(world.state, plan)
    assert found == tuple(PodBudget(name=name, allowed=1, victims=n) for name, n in sorted(against.items()))


def test_of_what_is_not_ready_none_is_counted_whoever_goes() -> None:
    """Two of three go and one is ready: at most that one is disrupted, whichever the controller chooses."""
    world = _world(unready=[0, 1])
    world.objects = [each for each in world.objects if each.metadata.name != "two"]
    (scale,) = _world().plan(NEEDY).scales
    plan = replace(_world().plan(NEEDY), actions=(replace(scale, after=1),), helps_in=(3, 3))
    assert budgets_of(world.state, plan) == (PodBudget(name="prod/half", allowed=1, victims=1),)


def test_budgets_that_nobody_sees_are_unknown() -> None:
    """Forbidden is not "none"."""
    world = _world()
    plan = world.plan(NEEDY)
    world.state.objects.states["PodDisruptionBudget.policy"] = SyncState.FORBIDDEN
    assert isinstance(budgets_of(world.state, plan), Unknown)


def test_percentages_round_up() -> None:
    """Half of three is two: one may go, and not two; https://kubernetes.io/docs/tasks/run-application/configure-pdb."""
    world = _world()
    world.objects = [each for each in world.objects if each.metadata.name != "two"]
    assert len(names(world.plan(NEEDY))) == 1
    world = World()
    world.nodes(gpu_1=6)
    world.donor("giver", ["gpu-1"] * 3)
    world.waits("needy", gpus=4)
    assert len(names(world.plan(NEEDY))) == 2
    world.objects.append(
        c.PodDisruptionBudget(
            metadata=b.meta("half"),
            spec=c.PdbSpec(selector=LabelSelector(match_labels={"app": "giver"}), min_available="50%"),
        )
    )
    world.scene = None
    assert world.answer(NEEDY).plan is None
