"""Visible, allocatable and bound are three numbers; what is bad is not free, and a difference is evidence."""

from __future__ import annotations

from typing import Any

import pytest

from sevenhop.core.facts.schema import Unknown
from sevenhop.core.hops.report import HopState
from sevenhop.core.inventory.pools import capacity
from sevenhop.core.subject import Hop, Subject
from tests.builders import H100, at, copy_of, dynamo, dynamo_pod, node, pod
from tests.unit.inventory.gpu_agents import Agent, uuid
from tests.unit.inventory.scenes import SHORT, Scene

POOL = f"pool:{H100}"
LLAMA = dynamo("llama-70b", decode=2, annotations={"sevenhop.dev/tier": "critical"})
DECODE = "component:prod/llama-70b/decode"


def numbers(scene: Scene) -> tuple[int, int, int, int, int]:
    """(allocatable, bound, free, unhealthy, largest free block) of the pool."""
    pool = capacity(scene.inventory.state, H100)
    return (pool.allocatable, pool.bound, pool.free, pool.unhealthy, pool.largest_free_block)


def bad(index: int, agent: Agent) -> None:
    agent.changes[index] = {"error": "GPU is lost"}


def test_a_bad_gpu_that_nobody_has_is_not_free() -> None:
    """
    It still counts as allocatable, for the scheduler may place a pod on it.
    """
    scene, agent = Scene(node("n", gpus=4)), Agent("n", 4)
    scene.tell([agent.sample(2)])
    assert numbers(scene) == (4, 0, 4, 0, 4)

    bad(3, agent)
    scene.tell([agent.sample(3)])

    assert numbers(scene) == (4, 0, 3, 1, 3)
    assert scene.fact(POOL, "free") == 3
    assert scene.fact("node:n", "gpu.unhealthy_allocatable") == 1
    assert scene.fact("node:n", "gpu.visible") == 3
    agent.changes = {}
    scene.tell([agent.sample(4)])
    assert numbers(scene) == (4, 0, 4, 0, 4)


def test_a_bad_gpu_that_a_pod_has_is_not_taken_off_twice() -> None:
    """
    The pod's share is bound already; once the pod is gone the GPU is still not free.
    """
    held = pod("p", node="n", gpus=1)
    scene, agent = Scene(node("n", gpus=4), held), Agent("n", 4)
    agent.pods[3] = [held]
    bad(3, agent)

    scene.tell([agent.sample(2)])
    assert numbers(scene) == (4, 1, 3, 1, 3)

    scene.delete(held)
    assert numbers(scene) == (4, 0, 3, 1, 3)


def test_what_the_device_plugin_took_out_is_not_taken_off_again() -> None:
    """
    Whether the node's capacity stays or follows.
    """
    scene, agent = Scene(node("n", gpus=4)), Agent("n", 4)
    bad(3, agent)
    scene.tell([agent.sample(2)])

    scene.put(node("n", gpus=3, capacity=4))
    assert numbers(scene) == (3, 0, 3, 1, 3)
    assert scene.fact("node:n", "gpu.unhealthy_allocatable") == 0

    scene.put(node("n", gpus=3, capacity=3))
    assert numbers(scene) == (3, 0, 3, 1, 3)
    assert scene.fact("node:n", "gpu.expected") == 4


def test_a_silent_agent_takes_back_nothing() -> None:
    """
    What was bad when it was last heard is not free because nobody looks.
    """
    scene, agent = Scene(node("n", gpus=4)), Agent("n", 4)
    bad(3, agent)
    scene.tell([agent.sample(2)])

    scene.wait(100)

    assert numbers(scene) == (4, 0, 3, 1, 3)
    assert isinstance(scene.fact("node:n", "gpu.visible"), Unknown)


def test_shares_of_a_gpu_that_is_bad() -> None:
    """
    Under time-slicing all its shares are.
    """
    labels = {"nvidia.com/gpu.replicas": "4", "nvidia.com/gpu.product": f"{H100}-SHARED"}
    scene, agent = Scene(node("n", gpus=8, labels=labels)), Agent("n", 2)
    bad(1, agent)
    scene.tell([agent.sample(2)])

    pool = capacity(scene.inventory.state, f"{H100}-SHARED")
    assert (pool.allocatable, pool.free, pool.unhealthy) == (8, 4, 4)
    assert scene.fact("node:n", "gpu.expected") == 8


def test_instances_of_a_gpu_that_is_bad() -> None:
    """
    Each of its MIG instances is one device of its profile's pool.
    """
    resource = "nvidia.com/mig-1g.10gb"
    scene, agent = Scene(node("n", gpus=2, resource=resource)), Agent("n", 4)
    for index, parent in ((2, 0), (3, 1)):
        agent.changes[index] = {"uuid": f"MIG-{index}", "parent": uuid("n", parent), "profile": "1g.10gb"}
    agent.changes[0] = {"remap_failed": True}
    scene.tell([agent.sample(2)])

    pool = capacity(scene.inventory.state, f"{H100}-MIG-1g.10gb")
    assert (pool.allocatable, pool.free, pool.unhealthy) == (2, 1, 1)


def test_an_agent_that_sees_more_than_the_node_offers() -> None:
    """
    On a node without labels that count them, the difference is what the discovery hop shows.
    """
    waits = dynamo_pod(LLAMA, "decode", "1", unschedulable=SHORT)
    scene, agent = Scene(node("n", gpus=2), LLAMA, waits), Agent("n", 4)
    assert scene.fact("node:n", "gpu.expected") == 2

    scene.tell([agent.sample(2)])

    assert scene.fact("node:n", "gpu.expected") == 4
    context = scene.inventory.context(Subject.parse(DECODE), at(3))
    assert context is not None
    assert context.report is not None
    (said,) = context.report.line(Hop.DISCOVERY).evidence
    assert (said.source, said.text) == ("node/n", "advertises 2 of 4 GPUs")


def worker(suffix: str, where: str) -> Any:
    return dynamo_pod(LLAMA, "decode", suffix, node=where)


def gpu_line(scene: Scene) -> tuple[HopState, int, tuple[str, ...], str]:
    context = scene.inventory.context(Subject.parse(DECODE), at(scene.seconds))
    assert context is not None
    assert context.report is not None
    line = context.report.line(Hop.GPU)
    return (line.state, line.broken, line.pods, line.reason)


def test_the_gpu_hop_is_known_where_agents_speak() -> None:
    """
    Unknown without one, with the node where only one is missing; well where all of them say so; stale with them.
    """
    pods = [worker("0", "n-0"), worker("1", "n-1")]
    scene = Scene(node("n-0", gpus=2), node("n-1", gpus=2), LLAMA, *pods)
    assert gpu_line(scene) == (HopState.UNKNOWN, 0, (), "no_source (gpu agent)")

    first, second = Agent("n-0", 2), Agent("n-1", 2)
    scene.wait(10)
    scene.tell([first.sample(10)])
    assert gpu_line(scene) == (HopState.UNKNOWN, 0, (), "no_source (gpu agent on n-1)")

    scene.tell([second.sample(10)])
    assert gpu_line(scene) == (HopState.OK, 0, (), "")

    scene.wait(100)
    assert gpu_line(scene)[0] is HopState.UNKNOWN
    assert gpu_line(scene)[3].startswith("stale (")


def test_pods_on_a_bad_gpu_break_the_gpu_hop_even_while_they_are_ready() -> None:
    """
    And it is the first that broke.
    """
    pods = [worker("0", "n-0"), worker("1", "n-1")]
    scene = Scene(node("n-0", gpus=2), node("n-1", gpus=2), LLAMA, *pods)
    agent = Agent("n-0", 2)
    agent.pods = {0: [pods[0]], 1: [pods[0]]}
    scene.wait(10)
    scene.tell([agent.sample(10), agent.xid(11, 95, 1)])

    assert gpu_line(scene) == (HopState.BROKEN, 1, ("llama-70b-decode-0",), "")
    context = scene.inventory.context(Subject.parse(DECODE), at(12))
    assert context is not None
    assert context.report is not None
    assert context.report.first_broken is Hop.GPU


@pytest.mark.parametrize(
    ("number", "cause", "hop"),
    [(79, "gpu-lost", "gpu"), (48, "gpu-ecc", "gpu"), (119, "gpu-xid", "gpu"), (31, None, None)],
    ids=str,
)
def test_a_pod_that_fails_on_a_bad_gpu_fails_of_it(number: int, cause: str | None, hop: str | None) -> None:
    """
    Whatever its engine says last; an application's XID explains no failure.
    """
    ready = worker("0", "n")
    scene, agent = Scene(node("n", gpus=2), LLAMA, ready), Agent("n", 2)
    agent.pods = {0: [ready], 1: [ready]}
    scene.wait(10)
    scene.tell([agent.sample(10), agent.xid(11, number, 0)])

    agent.pods = {}
    scene.tell([agent.sample(12)])
    scene.put(dynamo_pod(LLAMA, "decode", "0", node="n", waiting="CrashLoopBackOff", restarts=1, last_end=at(12)))

    place = "pod:prod/llama-70b-decode-0"
    if cause is None:
        assert scene.fact(place, "failure.hop") not in ("", "gpu")
    else:
        assert (scene.fact(place, "failure.cause"), scene.fact(place, "failure.hop")) == (cause, hop)
        assert scene.fact(DECODE, "failure.hop") == hop


def test_an_image_that_cannot_be_pulled_is_no_fault_of_the_gpu() -> None:
    """
    What a pod fails of before it touches a device stays what it is.
    """
    agent = Agent("n", 2)
    failing = dynamo_pod(
        LLAMA, "decode", "0", node="n", waiting="ImagePullBackOff", message="Back-off pulling image: manifest unknown"
    )
    scene = Scene(node("n", gpus=2), LLAMA, failing)
    agent.pods = {0: [failing]}
    scene.wait(10)
    scene.tell([agent.sample(10), agent.xid(11, 79, 0)])

    assert scene.fact("pod:prod/llama-70b-decode-0", "failure.hop") == "pod"


def pending_cause(scene: Scene) -> object:
    scene.wait(scene.seconds + 1)
    return scene.fact(DECODE, "waiting.cause")


@pytest.mark.parametrize(
    ("capacity_left", "busy", "expected"),
    [(7, 6, "gpus-unhealthy"), (7, 7, "gpu-shortage")],
    ids=["it would fit with the bad one", "it would not fit anyway"],
)
def test_a_shortage_that_is_a_bad_gpu(capacity_left: int, busy: int, expected: str) -> None:
    """
    The device plugin takes the GPU out, and its restart out of the capacity too: only the agent knows that it is there.
    """
    others = pod("busy", node="n", gpus=busy)
    waits = dynamo_pod(LLAMA, "decode", "1", unschedulable=SHORT.replace("2 Insuff", "1 Insuff").replace("0/2", "0/1"))
    bare = node("n", gpus=8)
    scene, agent = Scene(bare, LLAMA, others, waits), Agent("n", 8)
    left = copy_of(node("n", gpus=capacity_left))
    left.metadata.labels.pop("nvidia.com/gpu.present")
    scene.put(left)
    assert pending_cause(scene) == "gpu-shortage"

    agent.changes[7] = {"error": "GPU is lost"}
    scene.tell([agent.sample(scene.seconds), agent.xid(scene.seconds, 79, 7)])

    assert pending_cause(scene) == expected


def test_a_pod_goes_on_failing_of_its_gpu_when_the_agent_falls_silent() -> None:
    """
    Nodes with a bad GPU often take their agent along; the cause does not change with that.
    """
    ready = worker("0", "n")
    scene, agent = Scene(node("n", gpus=2), LLAMA, ready), Agent("n", 2)
    agent.pods = {0: [ready], 1: [ready]}
    scene.wait(10)
    scene.tell([agent.sample(10), agent.xid(11, 79, 0)])
    scene.put(dynamo_pod(LLAMA, "decode", "0", node="n", waiting="CrashLoopBackOff", restarts=1, last_end=at(12)))

    scene.wait(200)
    scene.put(dynamo_pod(LLAMA, "decode", "0", node="n", waiting="CrashLoopBackOff", restarts=2, last_end=at(201)))

    assert scene.fact("pod:prod/llama-70b-decode-0", "failure.cause") == "gpu-lost"
    assert gpu_line(scene)[0] is HopState.BROKEN


@pytest.mark.parametrize(
    ("number", "booted_s", "expected"),
    [
        pytest.param(94, None, "GPU 1: XID 94, contained memory error", id="a contained error"),
        pytest.param(63, None, "GPU 1: XID 63, a memory row was remapped", id="a note"),
        pytest.param(31, None, None, id="one that the device plugin leaves alone"),
        pytest.param(94, 5.0, None, id="before the node, and the device plugin, were started"),
    ],
)
def test_a_gpu_that_works_and_was_withdrawn(number: int, booted_s: float | None, expected: str | None) -> None:
    """
    The XID is what the node's alert says of it, also when it no longer stands.
    """
    scene = Scene(node("n", gpus=4))
    agent = Agent("n", 4)
    scene.tell([agent.sample(10), agent.xid(11, number, 1)])
    scene.put(node("n", gpus=3, capacity=4), seconds=20)
    scene.tell([agent.sample(1000, up_s=booted_s)])

    context = scene.inventory.context(Subject.parse("node:n"), at(1000))

    assert context is not None
    why = context.diagnosis
    assert (why.summary.split(";")[0] if why is not None else None) == expected
    assert why is None or (why.cause, str(why.confidence)) == ("gpus-unhealthy", "likely")
