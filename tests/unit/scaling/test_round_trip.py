"""A change that is carried out is what was asked for, and giving it back leaves nothing behind."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sevenhop.core.remediation.reduction import Conflict
from tests.unit.scaling import scenes
from tests.unit.scaling.test_rulers import Case, each_case
from tests.unit.scaling.world import World, reversed_scale


def without_leftovers(data: Any) -> Any:
    """Empty lists and tables that were made on the way say nothing."""
    if isinstance(data, dict):
        plain = {key: without_leftovers(value) for key, value in data.items()}
        return {key: value for key, value in plain.items() if value not in ({}, [])}
    return [without_leftovers(value) for value in data] if isinstance(data, list) else data


@each_case
def test_there_and_back(case: Case) -> None:
    """
    The way back, field by field, leaves the objects as they were.
    """
    world = World(case.world.manifests.values())
    before = copy.deepcopy(world.manifests)
    scale = world.scale(case.component, case.replicas - 1)

    world.carry_out(scale)
    assert world.manifests != before

    world.carry_out(reversed_scale(scale))
    assert without_leftovers(world.manifests) == without_leftovers(before)


@pytest.mark.parametrize("wanted", [1, 0])
def test_more_than_one_at_once(wanted: int) -> None:
    """
    Any number down to the floor can be asked for, not just one fewer.
    """
    scale = scenes.plain(3).scale("engine", wanted)

    assert (scale.before, scale.after, scale.edits[0].after) == (3, wanted, wanted)


@given(
    least=st.none() | st.integers(0, 6),
    most=st.none() | st.integers(0, 9),
    now=st.integers(1, 9),
    fewer=st.integers(1, 3),
)
def test_an_autoscaler_is_held(least: int | None, most: int | None, now: int, fewer: int) -> None:
    """
    Whatever stood in the limits: afterwards the HPA that KServe makes from them can only want the new number.
    """
    world = scenes.isvc("hpa", least, most, now)
    found = world.rule("predictor")
    after = now - fewer
    if isinstance(found, Conflict) or after < found.floor:
        return
    world.carry_out(world.scale("predictor", after))
    spec = world.manifest(scenes.ISVC, "qwen")["spec"]["predictor"]
    bottom = max(spec.get("minReplicas", 1), 1)

    assert max(spec.get("maxReplicas", 0), bottom) == after


@given(
    replicas=st.none() | st.integers(0, 6),
    least=st.none() | st.integers(0, 6),
    most=st.none() | st.integers(0, 6),
    after=st.integers(0, 5),
    autoscaler=st.booleans(),
)
def test_ray_asks_for_the_new_number(
    replicas: int | None, least: int | None, most: int | None, after: int, autoscaler: bool
) -> None:
    """
    Whatever the three counts of a group were: the operator, which clamps them, then wants exactly the new number.
    """
    stated = {"replicas": replicas, "minReplicas": least, "maxReplicas": most}
    group = {name: value for name, value in stated.items() if value is not None}
    world = scenes.ray_cluster(autoscaler=autoscaler)
    cluster = world.manifest("RayCluster", "batch")
    entry = cluster["spec"]["workerGroupSpecs"][1]
    for name in stated:
        entry.pop(name)
    entry.update(group)
    world.read()
    found = world.rule("gpu")
    if isinstance(found, Conflict) or not found.floor <= after < found.replicas:
        return
    answer = world.act("gpu", after, victims=[])
    assert not isinstance(answer, Conflict), answer
    world.carry_out(answer[-1])  # type: ignore[arg-type]  # a Scale comes last
    now = world.manifest("RayCluster", "batch")["spec"]["workerGroupSpecs"][1]
    wanted = max(now.get("replicas", 0), now.get("minReplicas", 0))

    assert min(wanted, now.get("maxReplicas", wanted)) == after
    assert not autoscaler or now.get("maxReplicas", after) == after
