"""
Pods whose amounts change while they run, and pods that state them as a whole: what comes free is what the scheduler
counts, the most of what is asked, what is set up and what was promised.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
from msgspec.structs import replace

from sevenhop.core.objects.base import Condition
from sevenhop.core.objects.pod import Pod, Resources
from tests import builders as b
from tests.unit.remediation.planning.planning_scene import World, names

NEEDY = (("prod", "needy"), "engine")
NODE_CPUS = 64


def _asks(pod: Pod, cpus: int) -> Pod:
    container = pod.spec.containers[0]
    resources = replace(container.resources, requests={**container.resources.requests, "cpu": str(cpus)})
    return replace(pod, spec=replace(pod.spec, containers=(replace(container, resources=resources),)))


def _resized(pod: Pod, *, asks: int, has: int, promised: int, pending: str = "") -> Pod:
    """In the middle of a resize; `pending` is the kubelet's word for why it has not begun."""
    pod = _asks(pod, asks)
    rest = pod.spec.containers[0].resources.requests  # devices are never resized, and stand there all the same
    status = replace(
        pod.status.container_statuses[0],
        resources=Resources(requests={**rest, "cpu": str(has)}),
        allocated_resources={**rest, "cpu": str(promised)},
    )
    said = (Condition(type="PodResizePending", status="True", reason=pending),) if pending else ()
    status_of_pod = replace(pod.status, container_statuses=(status,), conditions=(*pod.status.conditions, *said))
    return replace(pod, status=status_of_pod)


def _as_a_whole(pod: Pod, cpus: int) -> Pod:
    return replace(pod, spec=replace(pod.spec, resources=Resources(requests={"cpu": str(cpus)})))


def _world(changes: Mapping[str, Pod | None]) -> World:
    """A donor of two, a neighbour who stays, and who waits, on one node of 64 processors."""
    world = World()
    world.nodes(gpu_1=6)
    world.donor("giver", ["gpu-1", "gpu-1"])
    world.donor("stays", ["gpu-1"], tier="critical")
    world.waits("needy")
    for place, each in enumerate(world.objects):
        if isinstance(each, Pod) and each.metadata.name in changes:
            world.objects[place] = changes[each.metadata.name] or each
    return world


def _pod(world: World, name: str) -> Pod:
    return next(each for each in world.objects if isinstance(each, Pod) and each.metadata.name == name)


def _needs(cpus: int, *, whole: bool = False) -> Pod:
    pod = _pod(_world({}), "needy-aaaa-0")
    return _as_a_whole(pod, cpus) if whole else _asks(pod, cpus)


@pytest.mark.parametrize(
    ("neighbour", "needs", "is_offered"),
    [
        # Each of the donor's two pods holds 1, so 62 less the neighbour's are there.
        pytest.param({"asks": 10, "has": 10, "promised": 10}, 52, True, id="at rest"),
        pytest.param({"asks": 10, "has": 10, "promised": 10}, 53, False, id="at rest, one too many"),
        pytest.param({"asks": 20, "has": 10, "promised": 10, "pending": "Deferred"}, 42, True, id="wants more"),
        pytest.param({"asks": 20, "has": 10, "promised": 10, "pending": "Deferred"}, 43, False, id="is put off"),
        pytest.param({"asks": 10, "has": 20, "promised": 20}, 43, False, id="has not shrunk yet"),
        pytest.param({"asks": 10, "has": 10, "promised": 20}, 43, False, id="was promised more"),
        pytest.param({"asks": 60, "has": 10, "promised": 10, "pending": "Infeasible"}, 52, True, id="is refused more"),
    ],
)
def test_who_stays_keeps_the_most_that_it_may_hold(neighbour: dict[str, Any], needs: int, is_offered: bool) -> None:
    """A resize in flight is not taken for room."""
    stays = _resized(_pod(_world({}), "stays-aaaa-0"), **neighbour)
    answer = _world({"stays-aaaa-0": stays, "needy-aaaa-0": _needs(needs)}).answer(NEEDY)
    assert (answer.plan is not None) is is_offered, answer.text


@pytest.mark.parametrize(("needs", "is_offered"), [(52, True), (53, False)], ids=["as much as there is", "one more"])
def test_amounts_of_a_whole_pod_are_what_counts(needs: int, is_offered: bool) -> None:
    """On either side, whatever its containers say."""
    stays = _as_a_whole(_pod(_world({}), "stays-aaaa-0"), 10)
    answer = _world({"stays-aaaa-0": stays, "needy-aaaa-0": _needs(needs, whole=True)}).answer(NEEDY)
    assert (answer.plan is not None) is is_offered, answer.text


@pytest.mark.parametrize(
    "resize",
    [
        {"asks": 30, "has": 5, "promised": 5},
        {"asks": 5, "has": 30, "promised": 5},
        {"asks": 5, "has": 5, "promised": 30},
    ],
    ids=["grows", "shrinks", "was promised more"],
)
def test_who_goes_gives_all_that_it_holds(resize: dict[str, Any]) -> None:
    """The victim is steered as ever, and the node counts with it until it is gone."""
    giver = _resized(_pod(_world({}), "giver-aaaa-1"), **resize)
    world = _world({"giver-aaaa-1": giver})
    assert names(world.plan(NEEDY)) == ["giver-aaaa-0"]
    view = world.state.placement.views["gpu-1"]
    assert view.residents["prod", "giver-aaaa-1"].holds["cpu"] == 30_000
    assert view.free["cpu"] == (NODE_CPUS - 30 - 2) * 1_000


def test_the_node_is_as_large_as_it_is_said_to_be() -> None:
    """Guards the numbers above."""
    assert b.node("n", gpus=4).status.allocatable["cpu"] == str(NODE_CPUS)
