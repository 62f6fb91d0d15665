"""How much of a pool went bad within ten minutes, and when that is known."""

from __future__ import annotations

import pytest

from sevenhop.core.facts.schema import Unknown, UnknownReason
from tests.builders import H100, node
from tests.unit.inventory.gpu_agents import Agent, uuid
from tests.unit.inventory.scenes import Scene

POOL = f"pool:{H100}"


class Pool:
    """Nodes of two GPUs each, with their agents, that speak every 15 seconds."""

    def __init__(self, nodes: int) -> None:
        self.scene = Scene(*(node(f"n-{i}", gpus=2) for i in range(nodes)))
        self.agents = [Agent(f"n-{i}", 2) for i in range(nodes)]
        self.silent: set[int] = set()
        self.now = 15

    def until(self, seconds: int) -> None:
        while self.now <= seconds:
            agents = [agent for i, agent in enumerate(self.agents) if i not in self.silent]
            self.scene.wait(self.now)
            self.scene.tell([agent.sample(self.now) for agent in agents])
            self.now += 15
        self.scene.wait(seconds)

    def ratio(self) -> object:
        value = self.scene.fact(POOL, "bad_ratio_10m")
        return value.reason if isinstance(value, Unknown) else value

    def lose(self, number: int) -> None:
        self.agents[number].changes = {0: None, 1: None}


def test_unknown_until_the_window_is_covered() -> None:
    """
    No agent, then ten minutes of watching, to the second.
    """
    pool = Pool(2)
    assert pool.ratio() is UnknownReason.NO_SOURCE

    pool.until(614)
    assert pool.ratio() is UnknownReason.WINDOW

    pool.until(615)
    assert pool.ratio() == 0.0


def test_what_went_bad_counts_for_ten_minutes() -> None:
    """
    From when it was seen to go, and only while it is bad.
    """
    pool = Pool(4)
    pool.until(705)
    pool.lose(0)

    pool.until(720)
    assert pool.ratio() == 0.25

    pool.until(1319)
    assert pool.ratio() == 0.25
    pool.until(1320)
    assert pool.ratio() == 0.0


def test_gpus_that_come_back_are_not_bad() -> None:
    """
    Nor are those that were bad at first sight known to have gone bad within the window.
    """
    pool = Pool(4)
    pool.lose(1)
    pool.agents[1].changes = {0: {"error": "GPU is lost"}}
    pool.until(705)
    assert pool.ratio() == 0.0

    pool.lose(0)
    pool.until(720)
    assert pool.ratio() == 0.25
    pool.agents[0].changes = {}
    pool.until(735)
    assert pool.ratio() == 0.0


@pytest.mark.parametrize(("silent", "expected"), [(1, 0.0), (2, 0.0), (3, UnknownReason.STALE)], ids=str)
def test_agents_that_fall_silent(silent: int, expected: object) -> None:
    """
    They are neither bad nor well; with more than half of the GPUs unseen the ratio is unknown.
    """
    pool = Pool(4)
    pool.until(705)

    pool.silent = set(range(silent))
    pool.until(780)

    assert pool.ratio() == expected


def test_an_xid_of_before_the_samples_began_counts_by_its_own_time() -> None:
    """
    It says when it was.
    """
    pool = Pool(4)
    pool.scene.tell([pool.agents[0].xid(10, 79, 0)])
    pool.until(615)
    assert pool.ratio() == 0.0
    pool.scene.tell([pool.agents[1].xid(616, 79, 0)])
    pool.scene.wait(617)
    assert pool.ratio() == 0.125


def test_a_new_node_does_not_make_it_unknown() -> None:
    """
    It counts once it was watched for as long.
    """
    pool = Pool(4)
    pool.until(705)
    pool.scene.put(node("n-4", gpus=2))
    pool.agents.append(Agent("n-4", 2))
    pool.agents[4].changes = {0: {"error": "GPU is lost"}}

    pool.until(720)

    assert pool.ratio() == 0.0


def test_a_gap_begins_the_window_anew() -> None:
    """
    What happened in it is not known.
    """
    pool = Pool(1)
    pool.until(705)
    pool.silent = {0}
    pool.until(900)
    pool.silent = set()

    pool.until(915)

    assert pool.ratio() is UnknownReason.WINDOW


def test_a_node_that_goes_takes_its_share_along() -> None:
    """
    With the last one nothing is known of the pool.
    """
    pool = Pool(2)
    pool.until(705)
    pool.lose(0)
    pool.until(720)
    assert pool.ratio() == 0.5

    pool.scene.delete(node("n-0", gpus=2), seconds=721)
    pool.scene.wait(722)

    assert pool.ratio() == 0.0
    assert pool.scene.inventory.state.gpu_states.keys() == {"n-1"}
    assert not pool.scene.knows(f"gpu:{uuid('n-0', 0)}")
