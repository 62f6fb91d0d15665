"""A pod that works much less than its busy peers is told; where nothing can be compared, nothing is claimed."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import median

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sevenhop.core.facts.schema import Unknown, UnknownReason
from sevenhop.core.inventory.objects import Key
from sevenhop.core.inventory.stragglers import BUSY, PEERS, SHARE, Level, lagging
from tests.builders import dynamo, dynamo_pod, node
from tests.unit.inventory.gpu_agents import Agent
from tests.unit.inventory.scenes import Scene

SILENT = Unknown(UnknownReason.STALE, "silent")


def named(levels: Sequence[Level]) -> dict[Key, Level]:
    return {("prod", f"p-{i}"): level for i, level in enumerate(levels)}


@pytest.mark.parametrize(
    ("levels", "expected"),
    [
        pytest.param([0.8, 0.8, 0.8, 0.3], [False, False, False, True], id="one of four"),
        pytest.param([0.8, 0.8, 0.8, 0.4], [False] * 4, id="half as much is not less than half"),
        pytest.param([0.8, 0.8, 0.1], [False] * 3, id="two others say nothing"),
        pytest.param([0.2, 0.25, 0.2, 0.0], [False] * 4, id="nobody is busy"),
        pytest.param([0.9, 0.9, 0.1, 0.1], [False, False, False, False], id="two camps"),
        pytest.param([0.9, 0.9, 0.9, 0.1, 0.1], [False, False, False, True, True], id="two of five"),
        pytest.param([0.9, 0.2, 0.2, 0.2, 0.2], [False] * 5, id="one that works more"),
        pytest.param([0.8, 0.8, 0.8, 0.1, SILENT], [False, False, False, True, SILENT], id="one is not known"),
        pytest.param([0.8, 0.8, 0.1, SILENT], [SILENT] * 4, id="too few are known"),
        pytest.param([0.8] * 3 + [0.1] + [SILENT] * 5, [SILENT] * 9, id="most are not known"),
        pytest.param([SILENT, 0.5], [False, False], id="nothing to compare, known or not"),
        pytest.param([], [], id="nobody"),
    ],
)
def test_who_lags(levels: Sequence[Level], expected: Sequence[object]) -> None:
    """Less than half of the others' median, while they are busy, and while most of them are known."""
    assert list(lagging(named(levels)).values()) == expected


@given(st.lists(st.floats(0, 1).map(lambda value: round(value, 2)), min_size=PEERS + 1, max_size=12))
def test_the_median_is_of_the_others(levels: list[float]) -> None:
    """As if it had been computed for each pod by itself; half of them are no stragglers."""
    others = [median([*levels[:index], *levels[index + 1 :]]) for index in range(len(levels))]
    slow = [other >= BUSY and level < SHARE * other for level, other in zip(levels, others, strict=True)]
    expected = slow if 2 * sum(slow) < len(slow) else [False] * len(slow)
    assert list(lagging(named(levels)).values()) == expected


LLAMA = dynamo("llama-70b", decode=4)


class Cluster:
    """Four decode workers with one GPU each, on a node each; their agents speak every 15 s."""

    def __init__(self, count: int = 4) -> None:
        self.pods = [dynamo_pod(LLAMA, "decode", str(i), node=f"n-{i}", gpus=1) for i in range(count)]
        self.agents = [Agent(f"n-{i}", 1) for i in range(count)]
        self.scene = Scene(*(node(f"n-{i}", gpus=1) for i in range(count)), LLAMA, *self.pods)
        for agent, pod in zip(self.agents, self.pods, strict=True):
            agent.pods = {0: [pod]}

    def work(self, *active: float | None, until: float, silent: int = -1) -> None:
        """From the present until then."""
        while self.scene.seconds + 15 <= until:
            now = self.scene.seconds + 15
            for i, (agent, level) in enumerate(zip(self.agents, active, strict=True)):
                agent.changes[0] = {"sm_active": level}
                if i != silent:
                    self.scene.tell([agent.sample(now)])
            self.scene.wait(now)

    def lags(self, index: int) -> object:
        told = self.scene.fact(f"pod:prod/llama-70b-decode-{index}", "straggler")
        return str(told.reason) if isinstance(told, Unknown) else told

    @property
    def all(self) -> list[object]:
        return [self.lags(i) for i in range(len(self.pods))]


def test_a_worker_that_is_left_out() -> None:
    """
    Told once it was read for long enough, and no more once it works again, over the same two minutes.
    """
    cluster = Cluster()
    cluster.work(0.8, 0.8, 0.8, 0.1, until=50)
    assert cluster.all == ["window"] * 4
    cluster.work(0.8, 0.8, 0.8, 0.1, until=65)
    assert cluster.all == [False, False, False, True]
    cluster.work(0.8, 0.8, 0.8, 0.8, until=80)
    assert cluster.lags(3) is True
    cluster.work(0.8, 0.8, 0.8, 0.8, until=200)
    assert cluster.all == [False] * 4


def test_a_moment_of_rest_is_no_lag() -> None:
    """
    One reading out of eight.
    """
    cluster = Cluster()
    cluster.work(0.8, 0.8, 0.8, 0.8, until=120)
    cluster.work(0.8, 0.8, 0.8, 0.0, until=135)
    assert cluster.all == [False] * 4


def test_changes_in_between_do_not_shorten_the_time() -> None:
    """
    An agent that tells every second what changed is averaged over two minutes all the same.
    """
    cluster = Cluster()
    cluster.work(0.8, 0.8, 0.8, 0.8, until=120)
    agent = cluster.agents[3]
    agent.changes[0] = {"sm_active": 0.0}
    for second in range(121, 131):
        cluster.scene.tell([agent.sample(second, only=[0])])
    assert cluster.lags(3) is False


def test_what_is_not_read_is_not_judged() -> None:
    """
    A silent agent, and a GPU that tells no SM activity, leave their own pod unknown; the others are still compared.
    """
    cluster = Cluster(5)
    cluster.work(0.8, 0.8, 0.8, 0.1, None, until=90)
    assert cluster.all == [False, False, False, True, "no_source"]
    cluster.work(0.8, 0.8, 0.8, 0.1, 0.8, until=180, silent=3)
    assert cluster.all == [False, False, False, "stale", False]


def test_peers_that_end_leave_nothing_to_compare() -> None:
    """
    With two others left, the one that lagged is like any; its peers' facts are told anew.
    """
    cluster = Cluster()
    cluster.work(0.8, 0.8, 0.8, 0.1, until=90)
    cluster.scene.delete(cluster.pods[0])
    assert cluster.lags(3) is False


def test_one_that_is_not_ready_is_not_compared() -> None:
    """
    It loads, or is on its way out: low activity is what is expected of it.
    """
    cluster = Cluster(5)
    cluster.work(0.8, 0.8, 0.8, 0.8, 0.1, until=90)
    assert cluster.lags(4) is True
    cluster.scene.put(dynamo_pod(LLAMA, "decode", "4", node="n-4", gpus=1, ready=False))
    assert cluster.all == [False] * 5


def test_another_pod_on_the_gpu_begins_anew() -> None:
    """
    What its predecessor did is not its own.
    """
    cluster = Cluster()
    cluster.work(0.8, 0.8, 0.8, 0.1, until=90)
    other = dynamo_pod(LLAMA, "decode", "9", node="n-3", gpus=1)
    cluster.scene.put(other)
    cluster.agents[3].pods = {0: [other]}
    cluster.work(0.8, 0.8, 0.8, 0.8, until=cluster.scene.seconds + 15)
    assert str(cluster.scene.fact("pod:prod/llama-70b-decode-9", "straggler")).startswith("unknown (window")


def test_without_agents_it_is_unknown_only_where_there_is_something_to_compare() -> None:
    """
    A component of one pod has no straggler, whether or not anybody looks.
    """
    assert Cluster(1).all == [False]
    assert Cluster(4).all == ["no_source"] * 4
