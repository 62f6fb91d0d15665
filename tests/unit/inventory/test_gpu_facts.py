"""What GPU samples make known of GPUs, nodes, pods and sources, and what stays unknown."""

from __future__ import annotations

from typing import Any

import pytest

from sevenhop.core.events import GpusSampled, SyncState
from sevenhop.core.facts.schema import LABELS, FactType, Unknown, UnknownReason
from sevenhop.core.facts.table import facts_of
from sevenhop.core.gpu_sample import ContainerUsage, Holder, Throttle
from sevenhop.core.subject import Subject, SubjectKind
from tests.builders import at, dynamo, dynamo_pod, node, pod
from tests.unit.inventory.gpu_agents import Agent, uuid
from tests.unit.inventory.scenes import Scene

LLAMA = dynamo("llama-70b", decode=1, annotations={"sevenhop.dev/tier": "critical"})
DECODE = dynamo_pod(LLAMA, "decode", "0", node="gpu-05")
GPU0 = f"gpu:{uuid('gpu-05', 0)}"
NODE = "node:gpu-05"


def sampled(agent: Agent | None = None) -> tuple[Scene, Agent]:
    """One node of four GPUs, two of them held by the decode worker; the agent has spoken at 10 s."""
    scene = Scene(node("gpu-05", gpus=4), LLAMA, DECODE)
    agent = agent or Agent("gpu-05", 4)
    agent.pods = {0: [DECODE], 1: [DECODE]}
    scene.wait(10)
    scene.tell([agent.sample(10)])
    return scene, agent


def reason(value: object) -> object:
    return value.reason if isinstance(value, Unknown) else value


def test_every_fact_of_a_sampled_gpu_is_known() -> None:
    """
    Of its type, with every label there is.
    """
    scene, _ = sampled()

    facts = scene.inventory.facts[Subject.parse(GPU0)]

    assert facts.keys() == {*facts_of(SubjectKind.GPU), *LABELS}
    python = {FactType.BOOL: bool, FactType.INT: int, FactType.DOUBLE: float, FactType.STRING: str}
    for name, spec in facts_of(SubjectKind.GPU).items():
        assert type(facts[name]) is python[spec.type], f"{name}: {facts[name]!r}"


@pytest.mark.parametrize(
    ("changes", "name", "value"),
    [
        ({"throttle": Throttle.THERMAL}, "gpu.throttle", "thermal"),
        ({"sm_active": 0.876}, "gpu.sm_active_ratio", 0.88),
        ({"sm_occupancy": 0.5}, "gpu.sm_occupancy_ratio", 0.5),
        ({"utilization": 0.333}, "gpu.utilization_ratio", 0.33),
        ({"memory_used_mib": 20_000}, "gpu.mem_used_ratio", 0.25),
        ({"remap_failed": True}, "gpu.remap_failed", True),
        ({"remap_failed": True}, "gpu.xid_class", "replace"),
        ({"error": "GPU is lost"}, "gpu.present", False),
        ({"error": "GPU requires reset"}, "gpu.xid_class", "reset"),
        ({"error": "GPU requires restart"}, "gpu.xid_class", "reset"),
        ({"error": "no answer within 5 s"}, "gpu.present", UnknownReason.UNREADABLE),
        ({"sm_active": None}, "gpu.sm_active_ratio", UnknownReason.NO_SOURCE),
        ({"throttle": None}, "gpu.throttle", UnknownReason.NO_SOURCE),
        ({"memory_total_mib": None}, "gpu.mem_used_ratio", UnknownReason.NO_SOURCE),
        ({"remap_failed": None}, "gpu.remap_failed", UnknownReason.NO_SOURCE),
    ],
    ids=lambda value: str(value),
)
def test_a_reading_says(changes: dict[str, Any], name: str, value: object) -> None:
    """
    What was read; what was not is unknown, never zero.
    """
    agent = Agent("gpu-05", 4)
    agent.changes[0] = changes
    scene, _ = sampled(agent)

    assert reason(scene.fact(GPU0, name.removeprefix("gpu."))) == value


def test_a_gpu_carries_the_labels_of_who_has_it() -> None:
    """
    So that routes and silences about a workload find its GPUs; one that nobody has names nobody.
    """
    scene, _ = sampled()

    held, free = (scene.inventory.facts[Subject.parse(f"gpu:{uuid('gpu-05', i)}")] for i in (0, 2))

    assert (held["namespace"], held["workload"], held["component"]) == ("prod", "llama-70b", "decode")
    assert (held["tier"], held["pod"], held["node"]) == ("critical", "llama-70b-decode-0", "gpu-05")
    assert (free["workload"], free["tier"], free["node"]) == ("", "", "gpu-05")
    assert held["product"] == free["product"] == "NVIDIA-H100-80GB-HBM3"
    assert held["gpu.hits"] == "prod/llama-70b decode (llama-70b-decode-0)"
    assert free["gpu.hits"] == "no pod"


def test_a_silent_agent_is_not_a_lost_gpu() -> None:
    """
    After 60 s everything that it told is stale; a sample makes it known again.
    """
    scene, agent = sampled()
    scene.wait(69)
    assert scene.fact(GPU0, "present") is True
    assert scene.inventory.next_wake == at(70)

    scene.wait(70)

    names = facts_of(SubjectKind.GPU)
    facts = scene.inventory.facts[Subject.parse(GPU0)]
    assert {reason(facts[name]) for name in names} == {UnknownReason.STALE}
    assert reason(scene.fact(NODE, "gpu.visible")) is UnknownReason.STALE
    assert reason(scene.fact(NODE, "gpu.unhealthy_allocatable")) is UnknownReason.STALE
    scene.tell([agent.sample(80)])
    assert scene.fact(GPU0, "present") is True
    assert scene.fact(NODE, "gpu.visible") == 4


def test_a_gpu_that_vanishes_from_whole_samples_is_gone_and_one_left_out_of_a_partial_is_not() -> None:
    """
    Only a sample of all GPUs says that one is not there; when it comes back it is.
    """
    scene, agent = sampled()
    agent.changes[0] = None
    scene.tell([agent.sample(11, only=[1])])
    assert scene.fact(GPU0, "present") is True

    scene.tell([agent.sample(12)])

    assert scene.fact(GPU0, "present") is False
    assert scene.fact(NODE, "gpu.visible") == 3
    assert scene.fact(GPU0, "hits") == "prod/llama-70b decode (llama-70b-decode-0)"
    agent.changes[0] = {}
    scene.tell([agent.sample(13)])
    assert scene.fact(GPU0, "present") is True


def test_a_driver_that_does_not_answer_has_lost_nothing() -> None:
    """
    A sample without any GPU and with a problem says nothing about them; one without a problem says that none is there.
    """
    scene, agent = sampled()
    agent.changes = dict.fromkeys(range(4))

    scene.tell([agent.sample(20, problems=("NVML: driver not loaded",))])
    assert scene.fact(GPU0, "present") is True

    scene.tell([agent.sample(30)])
    assert scene.fact(GPU0, "present") is False


def test_a_gpu_that_was_exchanged_is_no_more() -> None:
    """
    Where another one answers, the old one is not missing.
    """
    scene, agent = sampled()
    agent.changes[0] = {"uuid": "GPU-new"}

    scene.tell([agent.sample(20)])

    assert not scene.knows(GPU0)
    assert scene.fact("gpu:GPU-new", "present") is True
    assert scene.fact(NODE, "gpu.visible") == 4


def test_gpus_go_with_their_node() -> None:
    """
    No node, no GPUs; a late sample of it brings none back.
    """
    scene, agent = sampled()

    scene.delete(node("gpu-05", gpus=4))
    late = agent.sample(scene.seconds)
    scene.tell([late])

    assert not [s for s in scene.inventory.facts if s.kind is SubjectKind.GPU]
    scene.wait(200)
    assert not scene.inventory.state.gpus.agents


HELD = {"processes": 1, "memory_used_mib": 5_000}


@pytest.mark.parametrize(
    ("changes", "value"),
    [
        (HELD, True),
        ({**HELD, "processes": 0}, False),
        ({**HELD, "memory_used_mib": 12}, False),
        ({**HELD, "processes": None}, UnknownReason.NO_SOURCE),
    ],
    ids=["held", "nobody", "a tool that reads counters", "processes unknown"],
)
def test_memory_held_without_a_pod(changes: dict[str, Any], value: object) -> None:
    """
    A process with memory of a GPU that no pod has.
    """
    agent = Agent("gpu-05", 4)
    agent.changes[2] = changes
    scene, _ = sampled(agent)

    assert reason(scene.fact(f"gpu:{uuid('gpu-05', 2)}", "held_without_pod")) == value
    assert scene.fact(GPU0, "held_without_pod") is False


def test_nothing_is_said_to_be_held_while_a_pod_is_ending() -> None:
    """
    Its process may be the one that is still there.
    """
    agent = Agent("gpu-05", 4)
    agent.changes[2] = HELD
    scene, _ = sampled(agent)

    scene.put(pod("ending", node="gpu-05", gpus=1, deleted=at(0)))
    scene.tell([agent.sample(20)])

    assert scene.fact(f"gpu:{uuid('gpu-05', 2)}", "held_without_pod") is False


def test_a_kubelet_that_does_not_say_who_has_what() -> None:
    """
    Who has it stays what was known, and whether somebody else does is unknown.
    """
    scene, agent = sampled()
    agent.pods = {}

    scene.tell([agent.sample(20, has_holders=False)])

    assert reason(scene.fact(GPU0, "held_without_pod")) is UnknownReason.NO_SOURCE
    assert scene.fact(GPU0, "hits") == "prod/llama-70b decode (llama-70b-decode-0)"


def test_a_mig_instance_is_a_gpu_of_its_own_until_the_gpu_is_cut_anew() -> None:
    """
    Gone with another cut of a GPU that is there; lost with a GPU that is lost.
    """
    scene, agent = sampled()
    part = {"index": 3, "uuid": "MIG-1", "parent": uuid("gpu-05", 3), "profile": "1g.10gb"}
    agent.gpus, agent.changes[4] = 5, part
    scene.tell([agent.sample(20)])
    assert scene.fact("gpu:MIG-1", "present") is True
    assert scene.fact(NODE, "gpu.visible") == 4

    agent.changes[3], agent.changes[4] = {"error": "GPU is lost"}, None
    scene.tell([agent.sample(30)])
    assert scene.fact("gpu:MIG-1", "present") is False

    agent.changes[3] = {}
    scene.tell([agent.sample(40)])
    assert not scene.knows("gpu:MIG-1")


def usage(**known: Any) -> ContainerUsage:
    return ContainerUsage(holder=Holder("prod", "llama-70b-decode-0", "main"), **known)


def test_cpu_and_memory_of_a_pod() -> None:
    """
    The worst of its containers counts; without a limit nothing of it is used; stale with the agent.
    """
    scene, agent = sampled()
    told = (
        usage(cpu_throttled=0.2, memory_bytes=80, memory_limit_bytes=100),
        usage(cpu_throttled=0.65, memory_bytes=90, memory_limit_bytes=None),
    )
    scene.tell([agent.sample(20, usage=told)])

    place = "pod:prod/llama-70b-decode-0"
    assert scene.fact(place, "cpu_throttled_ratio") == 0.65
    assert scene.fact(place, "mem_used_ratio") == 0.8

    scene.wait(80)
    assert reason(scene.fact(place, "mem_used_ratio")) is UnknownReason.STALE


def test_the_clock_that_differs_most_is_a_fact_of_the_source() -> None:
    """
    Two seconds are nobody's business; minutes make neither our time run ahead nor a sample look old.
    """
    scene, agent = sampled()
    assert scene.fact("source:gpu-agent", "clock_skew_s") == 0.0

    scene.tell([agent.sample(20, skew=300)])

    assert scene.fact("source:gpu-agent", "clock_skew_s") == 300.0
    scene.wait(25)
    assert scene.fact(GPU0, "present") is True
    scene.wait(80)
    assert reason(scene.fact(GPU0, "present")) is UnknownReason.STALE


def test_a_sample_that_was_held_up_is_as_old_as_it_is() -> None:
    """
    Sent from a buffer after an outage, it is no slow clock, and makes nothing fresh.
    """
    scene, agent = sampled()
    held: list[GpusSampled] = [agent.sample(400, at=at(30 + i)) for i in range(2)]

    scene.wait(400)
    scene.tell(held)

    assert reason(scene.fact(GPU0, "present")) is UnknownReason.STALE
    assert scene.fact("source:gpu-agent", "clock_skew_s") == 0.0


def test_agents_that_are_silent_on_ready_nodes_are_our_own_blindness() -> None:
    """
    The source is stale while more than a tenth of them are, and says which.
    """
    scene = Scene(*(node(f"n-{i}", gpus=1) for i in range(11)))
    agents = [Agent(f"n-{i}", 1) for i in range(11)]
    scene.tell([agent.sample(10) for agent in agents])
    scene.wait(20)
    assert scene.fact("source:gpu-agent", "fresh") is True

    scene.tell([agent.sample(60) for agent in agents[1:]])
    scene.wait(80)
    assert scene.fact("source:gpu-agent", "fresh") is True

    scene.tell([agent.sample(110) for agent in agents[2:]])
    scene.wait(130)
    assert scene.fact("source:gpu-agent", "fresh") is False
    assert scene.inventory.state.objects.states["gpu-agent"] is SyncState.STALE
    assert scene.inventory.state.objects.details["gpu-agent"] == "2 of 11 silent: n-0, n-1"
