"""Who has a GPU: whoever a source named, for as long as the cluster has this very pod on the node."""

from __future__ import annotations

from typing import Any

import pytest

from sevenhop.core.events import SyncState
from sevenhop.core.inventory.gpu_holders import holders_of
from sevenhop.core.inventory.pools import capacity
from sevenhop.core.objects.pod import Pod
from tests.builders import H100, NOON, at, dynamo, dynamo_pod, node, pod
from tests.unit.inventory.gpu_agents import Agent, uuid
from tests.unit.inventory.scenes import Scene

LOST: dict[str, Any] = {"error": "GPU is lost"}
HOLDER = pod("p", node="n", gpus=1)
KEY = ("prod", "p")


def lost_with_holder() -> tuple[Scene, Agent]:
    """A node of four GPUs, of which the last was lost with the pod that has it."""
    scene, agent = Scene(node("n", gpus=4), node("m", gpus=4), HOLDER), Agent("n", 4)
    agent.pods[3] = [HOLDER]
    scene.tell([agent.sample(10)])
    agent.changes[3] = LOST
    scene.wait(20)
    scene.tell([agent.sample(20), agent.xid(20, 79, 3)])
    return scene, agent


def told(scene: Scene, name: str = uuid("n", 3)) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
    return holders_of(scene.inventory.state, scene.inventory.state.gpus.agents["n"].gpus[name])


def test_a_holder_that_lives_has_its_lost_gpu() -> None:
    """The kubelet gave it the device, and goes on counting it."""
    scene, _ = lost_with_holder()

    assert told(scene) == ((KEY,), ())


@pytest.mark.parametrize(
    "after",
    [
        pytest.param(None, id="deleted"),
        pytest.param(pod("p", node="m", gpus=1), id="anew on another node"),
        pytest.param(pod("p"), id="anew and without a node"),
        pytest.param(pod("p", node="n", gpus=1, created=at(30)), id="anew on this node, later"),
        pytest.param(pod("p", node="n", gpus=1, phase="Failed"), id="finished"),
    ],
)
def test_a_holder_that_is_gone_had_it(after: Pod | None) -> None:
    """Whatever the agent goes on saying of a GPU that nobody can ask any more."""
    scene, agent = lost_with_holder()
    scene.delete(HOLDER, seconds=30)
    if after is not None:
        scene.put(after, seconds=31)
    scene.tell([agent.sample(32)])

    assert told(scene) == ((), (KEY,))


def test_one_that_is_being_ended_still_has_it() -> None:
    """Releasing is not released."""
    scene, _ = lost_with_holder()
    scene.put(pod("p", node="n", gpus=1, deleted=NOON), seconds=30)

    assert told(scene) == ((KEY,), ())


def test_where_pods_cannot_be_seen_the_agents_word_stands() -> None:
    """Unknown is not gone."""
    scene, _ = lost_with_holder()
    scene.delete(HOLDER, seconds=30)
    scene.source("Pod", state=SyncState.FORBIDDEN)

    assert told(scene) == ((KEY,), ())


def test_the_last_word_of_an_agent_that_fell_silent() -> None:
    """Its node goes on: a pod that was deleted since has nothing, and one that stays has what it had."""
    first, second = pod("first", node="n", gpus=1), pod("second", node="n", gpus=1)
    scene, agent = Scene(node("n", gpus=4), first, second), Agent("n", 4)
    agent.pods = {0: [first], 1: [second]}
    scene.tell([agent.sample(10)])

    scene.delete(first, seconds=100)
    scene.put(pod("first", node="n", gpus=1, created=at(101)), seconds=101)

    assert told(scene, uuid("n", 0)) == ((), (("prod", "first"),))
    assert told(scene, uuid("n", 1)) == ((("prod", "second"),), ())


def test_instances_of_a_lost_gpu() -> None:
    """The rule for MIG is the same."""
    resource = "nvidia.com/mig-1g.10gb"
    stays, goes = pod("stays", node="n"), pod("goes", node="n")
    scene, agent = Scene(node("n", gpus=2, resource=resource), stays, goes), Agent("n", 3)
    for index in (1, 2):
        agent.changes[index] = {"uuid": f"MIG-{index}", "parent": uuid("n", 0), "profile": "1g.10gb"}
    agent.pods = {1: [stays], 2: [goes]}
    scene.tell([agent.sample(10)])
    agent.changes = dict.fromkeys(range(3))
    scene.tell([agent.sample(20)])

    scene.delete(goes, seconds=30)

    assert told(scene, "MIG-1") == ((("prod", "stays"),), ())
    assert told(scene, "MIG-2") == ((), (("prod", "goes"),))


def test_a_lost_gpu_is_not_held_by_who_took_the_name() -> None:
    """A pod that came back under its old name has another GPU: the lost one is nobody's, and not free."""
    scene, _ = lost_with_holder()
    assert capacity(scene.inventory.state, H100).free == 3 + 4

    scene.delete(HOLDER, seconds=30)
    assert capacity(scene.inventory.state, H100).free == 3 + 4

    scene.put(pod("p", node="n", gpus=1, created=at(31)), seconds=31)
    assert capacity(scene.inventory.state, H100).free == 2 + 4


def test_who_took_the_name_does_not_fail_of_the_lost_gpu() -> None:
    """What it fails of is its own."""
    graph = dynamo("llama", decode=1)
    first = dynamo_pod(graph, "decode", "0", node="n")
    scene, agent = Scene(node("n", gpus=4), graph, first), Agent("n", 4)
    agent.pods = {2: [first], 3: [first]}
    scene.tell([agent.sample(10)])
    agent.changes[3] = LOST
    scene.wait(20)
    scene.tell([agent.sample(20), agent.xid(20, 79, 3)])
    failing: dict[str, Any] = {"node": "n", "waiting": "CrashLoopBackOff", "restarts": 1}

    scene.put(dynamo_pod(graph, "decode", "0", last_end=at(25), **failing), seconds=26)
    assert scene.fact("pod:prod/llama-decode-0", "failure.cause") == "gpu-lost"

    scene.delete(first, seconds=30)
    scene.put(dynamo_pod(graph, "decode", "0", created=at(31), last_end=at(35), **failing), seconds=36)
    assert scene.fact("pod:prod/llama-decode-0", "failure.cause") != "gpu-lost"


def test_a_source_that_does_not_tell_holders_names_nobody_who_is_gone() -> None:
    """What an earlier sample said of holders stands as long as its pods do: a page of metrics may not name any."""
    scene, agent = Scene(node("n", gpus=4), HOLDER), Agent("n", 4)
    agent.pods[3] = [HOLDER]
    scene.tell([agent.sample(10)])
    agent.pods.clear()
    scene.tell([agent.sample(20, has_holders=False)])
    assert told(scene) == ((KEY,), ())

    scene.delete(HOLDER, seconds=30)
    scene.tell([agent.sample(40, has_holders=False)])

    assert told(scene) == ((), (KEY,))
