"""The message that says who could give, and the plan, speak of the same floor."""

from __future__ import annotations

import pytest

from sevenhop.core.events import Applied
from sevenhop.core.inventory.pools import giving_floor
from sevenhop.core.inventory.state import State
from sevenhop.core.objects.kinds import KINDS
from sevenhop.core.remediation.planning.donors import floor_of
from sevenhop.core.remediation.reduction import Ruler
from tests.builders import at
from tests.unit.inventory.scenes import Scene
from tests.unit.scaling import scenes
from tests.unit.scaling.test_rulers import Case, each_case
from tests.unit.scaling.world import World


def seen(world: World) -> State:
    scene = Scene()
    found = [(kind, obj) for kind in KINDS for obj in world.of(kind).values()]
    scene.tell(Applied(at=at(1), epoch=1, seq=1_000 + n, kind=kind, obj=obj) for n, (kind, obj) in enumerate(found))
    return scene.inventory.state


def floors(world: World, component: str) -> tuple[int, int]:
    """(of the message, of the plan)"""
    state = seen(world)
    ruler = world.rule(component)
    assert isinstance(ruler, Ruler)
    workload, part = world.find(component)
    slot = (workload.key, component)
    told = state.part(slot)
    assert told is not None
    said = giving_floor(state, slot, told, ruler.replicas)
    return said, floor_of(state, workload, part, ruler, state.pods_of(slot))[0]


@each_case
def test_the_same_floor_for_every_way(case: Case) -> None:
    """Whatever rules the replicas: what could be given is what a plan would take at most."""
    said, planned = floors(case.world, case.component)
    assert said == planned


@pytest.mark.parametrize(("least", "running", "floor"), [(4, 4, 1), (2, 4, 2), (1, 4, 1)], ids=["all", "some", "one"])
def test_the_least_of_a_range(least: int, running: int, floor: int) -> None:
    """KServe's minReplicas is a floor while more than that run; where all are meant to run it is lowered with them."""
    assert floors(scenes.isvc("hpa", least, 6, running), "predictor") == (floor, floor)
