"""Room on a node whose agent calls a GPU bad: nobody is moved so that somebody important is given that one."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from sevenhop.core.objects.pod import Pod
from sevenhop.core.remediation.plan import NoPlanReason
from sevenhop.core.remediation.planning.sick import sick_place
from tests.builders import H100, node
from tests.unit.inventory.gpu_agents import Agent
from tests.unit.remediation.planning.planning_scene import World, names

NEEDY = (("prod", "needy"), "engine")


def _world(bad: int | None, *, chooser: str = "replica-set", on: Sequence[str] = ("gpu-1", "gpu-1")) -> World:
    """Two pods of a donor have two GPUs each, in order; one of the four GPUs of gpu-1 is bad, and offered still."""
    world = World()
    world.nodes(gpu_1=4, gpu_2=4)
    world.donor("giver", on, chooser=chooser)
    others = [name for name in ("gpu-1", "gpu-2") for _ in range(2 - list(on).count(name))]
    world.donor("full", others, tier="critical")
    world.waits("needy")
    pods = [each for each in world.objects if isinstance(each, Pod) and each.metadata.name.startswith("giver")]
    agent = Agent("gpu-1", 4)
    for place, pod in enumerate(pod for pod in pods if pod.spec.node_name == "gpu-1"):
        agent.pods |= {2 * place: [pod], 2 * place + 1: [pod]}
    if bad is not None:
        agent.changes[bad] = {"error": "GPU is lost"}
    world.live.tell([agent.sample(600)])
    return world


@pytest.mark.parametrize(
    ("bad", "goes"),
    [(None, "giver-aaaa-0"), (3, "giver-aaaa-0"), (0, "giver-aaaa-1")],
    ids=["none is bad", "the other one has it", "the first one has it"],
)
def test_who_has_the_bad_gpu_keeps_it(bad: int | None, goes: str) -> None:
    """The replica that frees two good ones goes; who sits on a bad one keeps it from the others."""
    assert names(_world(bad).plan(NEEDY)) == [goes]


def test_another_node_is_chosen() -> None:
    """One pod of the donor is on a node with a bad GPU that nobody is known to have, one on a good one."""
    assert names(_world(3, on=["gpu-1", "gpu-2"]).plan(NEEDY)) == ["giver-aaaa-1"]


@pytest.mark.parametrize("chooser", ["any", "highest"])
def test_no_plan_where_a_bad_one_may_come_free(chooser: str) -> None:
    """The controller chooses, and one of its choices has the bad GPU: nothing is offered, and the words say why."""
    answer = _world(2, chooser=chooser).answer(NEEDY)
    assert (answer.plan, answer.reason) == (None, NoPlanReason.NOT_SAFE)
    assert "gpu-1 may give it a bad GPU" in answer.text
    assert "cordon the node" in answer.text


def test_what_its_pod_left_counts_as_free() -> None:
    """The agent names a pod that has the bad GPU, and that pod has gone: whoever comes next may be given it."""
    world = _world(0)
    assert sick_place(world.state, frozenset(), ["gpu-1", "gpu-2"]) == ""
    world.live.delete(next(each for each in world.objects if each.metadata.name == "giver-aaaa-0"))
    assert sick_place(world.state, frozenset(), ["gpu-1"]).startswith("gpu-1 may give it a bad GPU")


def test_of_a_shared_gpu_a_part_is_always_free() -> None:
    """One of several that share a bad GPU stays, and the next may be given another share of it."""
    world = _world(0)
    shared = node("gpu-1", gpus=16, labels={"nvidia.com/gpu.replicas": "4", "nvidia.com/gpu.product": f"{H100}-SHARED"})
    world.live.put(shared)
    assert sick_place(world.state, frozenset(), ["gpu-1"])
