"""Everyday life of GPU nodes, told by their agents: no rule of the gpu or discovery hop may fire."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from sevenhop.core.gpu_sample import Throttle
from tests.builders import deployment, node, pod_of, replicaset
from tests.unit.engine.machines import Machine, shipped_rules
from tests.unit.inventory.gpu_agents import Agent, uuid

APP = deployment("app", replicas=2, gpus=4)
REPLICAS = replicaset(APP)
PODS = [pod_of(REPLICAS, str(n), node="n-0") for n in (0, 1)]
HOPS = {rule.id for rule in shipped_rules() if rule.hop is not None and rule.hop.value in ("gpu", "discovery")}


class Day:
    """Three nodes of eight GPUs, two replicas on the first, agents that speak every 15 seconds."""

    def __init__(self) -> None:
        self.machine = Machine()
        self.machine.put(*(node(f"n-{i}", gpus=8) for i in range(3)), APP, REPLICAS, *PODS, seconds=0)
        self.machine.tell(self.machine.feed.synced(), 1)
        self.agents = {f"n-{i}": Agent(f"n-{i}", 8) for i in range(3)}
        self.agents["n-0"].pods = {index: [PODS[index // 4]] for index in range(8)}
        self.silent: set[str] = set()
        self.now = 15
        self.until(660)

    def until(self, seconds: int) -> None:
        while self.now <= seconds:
            self.machine.until(self.now)
            speaking = [agent for name, agent in self.agents.items() if name not in self.silent]
            self.machine.tell([agent.sample(self.now) for agent in speaking], self.now)
            self.now += 15

    def fired(self) -> set[str]:
        return {c.alert.rule_id for step in self.machine.steps for c in step.changes if c.alert.fired_at} & HOPS


def xids(*numbers: int) -> Callable[[Day], None]:
    def told(day: Day) -> None:
        for index, number in enumerate(numbers):
            day.machine.tell([day.agents["n-0"].xid(700 + 60 * index, number, index)], 700 + 60 * index)

    return told


def readings(**changes: Any) -> Callable[[Day], None]:
    def told(day: Day) -> None:
        day.agents["n-0"].changes = dict.fromkeys(range(8), changes)

    return told


def agent_starts_anew(day: Day) -> None:
    day.agents["n-0"].epoch, day.agents["n-0"].seq = 2, 0


def all_agents_are_upgraded(day: Day) -> None:
    day.silent = set(day.agents)
    day.until(900)
    day.silent = set()
    for agent in day.agents.values():
        agent.epoch, agent.seq = 2, 0


def driver_is_reloaded(day: Day) -> None:
    day.agents["n-0"].changes = {index: {"error": "Driver Not Loaded"} for index in range(8)}
    day.until(720)
    day.agents["n-0"].changes = {}


def gpu_is_cut_anew(day: Day) -> None:
    agent = day.agents["n-1"]
    agent.gpus = 10
    for index in (8, 9):
        agent.changes[index] = {"uuid": f"MIG-{index}", "parent": uuid("n-1", 7), "profile": "3g.40gb"}
    day.until(720)
    agent.changes = {8: None, 9: {"uuid": "MIG-x", "parent": uuid("n-1", 7), "profile": "7g.80gb"}}


def gpu_is_exchanged(day: Day) -> None:
    day.agents["n-1"].changes = {3: {"uuid": "GPU-new"}}


def node_is_removed(day: Day) -> None:
    day.machine.delete(node("n-2", gpus=8), seconds=700)
    del day.agents["n-2"]


def node_joins(day: Day) -> None:
    day.machine.put(node("n-3", gpus=8), seconds=700)
    day.agents["n-3"] = Agent("n-3", 8)


def rollout(day: Day) -> None:
    agent = day.agents["n-0"]
    day.machine.delete(PODS[1], seconds=700)
    agent.pods = {index: [PODS[0]] for index in range(4)}
    day.until(720)
    new = pod_of(REPLICAS, "2", node="n-0")
    day.machine.put(new, seconds=725)
    agent.pods |= {index: [new] for index in range(4, 8)}


def clock_is_wrong(day: Day) -> None:
    for _ in range(40):
        day.machine.until(day.now)
        day.machine.tell([agent.sample(day.now, skew=-420) for agent in day.agents.values()], day.now)
        day.now += 15


@pytest.mark.parametrize(
    "happens",
    [
        xids(13, 31, 32, 69),
        xids(43, 45, 43, 45),
        xids(63, 92, 94, 121),
        readings(throttle=Throttle.POWER, sm_active=1.0),
        readings(ecc_corrected=40_000, remap_pending=True),
        readings(sm_active=None, sm_occupancy=None, throttle=None, processes=None, remap_failed=None),
        readings(error="no answer within 5 s"),
        agent_starts_anew,
        all_agents_are_upgraded,
        driver_is_reloaded,
        gpu_is_cut_anew,
        gpu_is_exchanged,
        node_is_removed,
        node_joins,
        rollout,
        clock_is_wrong,
    ],
    ids=[
        "programs fail",
        "programs are ended",
        "ageing memory",
        "power cap",
        "corrected errors",
        "an old driver",
        "NVML hangs",
        "an agent starts anew",
        "agents are upgraded",
        "the driver is reloaded",
        "MIG",
        "an exchanged GPU",
        "a node goes",
        "a node joins",
        "a rollout",
        "a wrong clock",
    ],
)
def test_nothing_fires(happens: Callable[[Day], None]) -> None:
    """
    Within a quarter of an hour of it, longer than any rule holds.
    """
    day = Day()

    happens(day)
    day.until(1_500)

    assert day.fired() == set()


def test_the_day_would_tell_of_a_gpu_that_is_lost() -> None:
    """
    Or the quiet would prove nothing.
    """
    day = Day()

    day.agents["n-0"].changes = {2: None}
    day.until(720)

    assert day.fired() == {"gpu-lost"}
