"""XID 79 from the agent to the message: one incident that names who is hit, and what follows folded under it."""

from __future__ import annotations

from collections.abc import Iterable

from sevenhop.core.events import Event
from sevenhop.core.subject import Subject
from tests.builders import H100, at, dynamo, dynamo_pod, node, pod
from tests.unit.engine.machines import Machine
from tests.unit.inventory.gpu_agents import Agent, uuid

LLAMA = dynamo("llama-70b", decode=4, annotations={"sevenhop.dev/tier": "critical"})
WORKERS = [dynamo_pod(LLAMA, "decode", str(n), node="gpu-05") for n in range(4)]
WAITS = "0/2 nodes are available: 2 Insufficient nvidia.com/gpu."
LOST = f"gpu:{uuid('gpu-05', 7)}"
DECODE = "component:prod/llama-70b/decode"


class Story:
    """Four decode workers on one node of eight GPUs, a full one beside it, and agents that speak every 15 seconds."""

    def __init__(self) -> None:
        self.machine = Machine()
        self.machine.tell(self.machine.feed.synced(), 0)
        others = pod("busy", "other", node="gpu-06", gpus=2)
        self.machine.put(node("gpu-05", gpus=8), node("gpu-06", gpus=2), LLAMA, *WORKERS, others, seconds=1)
        self.agents = [Agent("gpu-05", 8), Agent("gpu-06", 2)]
        self.agents[0].pods = {index: [WORKERS[index // 2]] for index in range(8)}
        self.agents[1].pods = {index: [others] for index in range(2)}
        self.now = 15
        self.until(90)

    def until(self, seconds: int) -> None:
        while self.now <= seconds:
            self.machine.until(self.now)
            self.tell([agent.sample(self.now) for agent in self.agents], self.now)
            self.now += 15
        self.machine.until(seconds)

    def tell(self, events: Iterable[Event], seconds: float) -> None:
        self.machine.tell(list(events), seconds)

    def xid_79(self) -> None:
        """A GPU falls off the bus; its pod goes, its replacement waits, and the device plugin takes the GPU out."""
        agent = self.agents[0]
        self.tell([agent.xid(95, 79, 7, text="GPU has fallen off the bus."), agent.xid(95, 45, 7)], 95)
        agent.changes[7] = {"error": "GPU is lost"}
        self.tell([agent.sample(96, only=[7]), agent.xid(96, 74, 6)], 96)
        self.machine.delete(WORKERS[3], seconds=97)
        self.machine.put(node("gpu-05", gpus=7, capacity=8), seconds=97)
        self.machine.put(dynamo_pod(LLAMA, "decode", "7", unschedulable=WAITS, since=at(98)), seconds=98)
        agent.pods[6] = agent.pods[7] = []

    def fact(self, subject: str, name: str) -> object:
        return self.machine.engine.inventory.facts[Subject.parse(subject)][name]

    def titles(self) -> list[str]:
        return [title for _, title, _ in self.machine.said()]


def test_one_message_names_who_is_hit_and_what_follows_is_folded() -> None:
    """
    Posted once, edited afterwards: the node that advertises fewer and the worker that waits explain themselves.
    """
    story = Story()
    story.xid_79()

    story.until(600)

    (incident,) = story.machine.engine.desk.incidents.values()
    assert (str(incident.cause), incident.family, len(incident.symptoms)) == ("node:gpu-05", "gpu", 2)
    assert [notify.anew for notify in story.machine.sent] == [True, *[False] * (len(story.machine.sent) - 1)]
    assert story.machine.sent[0].message.severity == "critical"
    title = "gpu-05 lost GPU 7: XID 79, fallen off the bus (then XID 45)"
    assert set(story.titles()) == {f"{title}; hits prod/llama-70b decode (llama-70b-decode-3; 1 waits)"}
    lines = {line.label: line.text for line in story.machine.sent[-1].message.lines}
    assert lines["First broken hop"].startswith("gpu   ✖ gpu 3/4")
    assert "decode 3/4 ready" in lines["Who is hit"]


def test_capacity_drops_and_the_worker_waits_for_an_unhealthy_device() -> None:
    """
    No shortage: with the GPU that is lost it would fit.
    """
    story = Story()
    assert story.fact(f"pool:{H100}", "pool.allocatable") == 10

    story.xid_79()
    story.until(120)

    assert story.fact(f"pool:{H100}", "pool.allocatable") == 9
    assert story.fact(f"pool:{H100}", "pool.free") == 1
    assert story.fact(DECODE, "component.waiting.cause") == "gpus-unhealthy"
    assert story.fact("node:gpu-05", "node.gpu.visible") == 7
    assert story.fact(f"gpu:{uuid('gpu-05', 6)}", "gpu.xid") == 0


def test_it_ends_when_the_gpu_is_back() -> None:
    """
    Recovered, not forgotten: five minutes after the node's reboot.
    """
    story = Story()
    story.xid_79()
    story.until(300)
    story.agents[0].changes = {}
    story.machine.put(node("gpu-05", gpus=8), seconds=301)
    story.machine.put(dynamo_pod(LLAMA, "decode", "7", node="gpu-05", since=at(302)), seconds=302)

    story.until(900)

    assert {incident.is_open for incident in story.machine.engine.desk.incidents.values()} == {False}
    assert story.fact(LOST, "gpu.trouble") == ""


def test_an_agent_that_falls_silent_ends_nothing_and_loses_nothing() -> None:
    """
    The incident stays open, unconfirmed; the other node's GPUs are not lost.
    """
    story = Story()
    story.xid_79()
    story.until(300)
    agents, story.agents = story.agents, []

    story.machine.until(900)

    open_ones = [i for i in story.machine.engine.desk.incidents.values() if i.is_open]
    assert ("node:gpu-05", "gpu") in {(str(i.cause), i.family) for i in open_ones}
    assert not [i for i in open_ones if "gpu-06" in str(i.cause)]
    assert agents[1].node == "gpu-06"


def test_a_restart_forgets_neither_the_xid_nor_who_was_hit() -> None:
    """
    What no sample returns is stored: the GPU is lost, and its victim is named though both are gone.
    """
    story = Story()
    story.xid_79()
    story.until(180)

    again = Machine(story.machine.store, seconds=185)
    again.feed.epoch = 2
    waits = dynamo_pod(LLAMA, "decode", "7", unschedulable=WAITS, since=at(98))
    nodes = [node("gpu-05", gpus=7, capacity=8), node("gpu-06", gpus=2)]
    again.put(*nodes, LLAMA, *WORKERS[:3], waits, pod("busy", "other", node="gpu-06", gpus=2), seconds=186)
    again.tell(again.feed.synced(), 187)

    facts = again.engine.inventory.facts[Subject.parse(LOST)]
    assert str(facts["gpu.present"]).startswith("unknown (no_source")
    agent = story.agents[0]
    again.tell([agent.sample(188), story.agents[1].sample(188)], 188)

    facts = again.engine.inventory.facts[Subject.parse(LOST)]
    assert (facts["gpu.present"], facts["gpu.xid"]) == (False, 79)
    assert facts["gpu.hits"] == "prod/llama-70b decode (llama-70b-decode-3; 1 waits)"
    assert not [notify for notify in again.sent if notify.anew]


def test_a_pool_that_turns_bad_is_one_incident_about_its_source() -> None:
    """
    Every GPU's own alert is folded under it, though it came first.
    """
    machine = Machine()
    machine.tell(machine.feed.synced(), 0)
    machine.put(*(node(f"n-{i}", gpus=2) for i in range(6)), seconds=1)
    agents = [Agent(f"n-{i}", 2) for i in range(6)]
    for beat in range(1, 60):
        if beat == 50:
            agents[0].changes = {0: {"remap_failed": True}}
        if beat == 51:
            agents[1].changes = agents[2].changes = {0: {"remap_failed": True}, 1: {"remap_failed": True}}
        machine.until(15 * beat)
        machine.tell([agent.sample(15 * beat) for agent in agents], 15 * beat)

    open_ones = [i for i in machine.engine.desk.incidents.values() if i.is_open]

    assert [(str(i.cause), len(i.symptoms) > 4) for i in open_ones] == [(f"pool:{H100}", True)]
