"""What no list returns: restarts, GPUs once seen, how long loads take."""

from __future__ import annotations

from datetime import timedelta

import pytest

from sevenhop.core.inventory.history import LOAD_UNKNOWN, Loads, Restarts, loads, restarts, seen_gpus
from tests.builders import at, node, pod


def crashed(count: int, ended: float | None, created: float = -7_200) -> Restarts | None:
    seen = pod("a", node="n", restarts=count, last_end=None if ended is None else at(ended), created=at(created))
    return restarts(None, seen, at(0))


@pytest.mark.parametrize(
    ("count", "ended", "expected"),
    [
        pytest.param(0, None, 0, id="never restarted"),
        pytest.param(1, -60, 1, id="one, a minute ago"),
        pytest.param(7, -601, 0, id="many, all over ten minutes ago"),
        pytest.param(2, -60, None, id="two, and the first may be hours old"),
        pytest.param(1, None, None, id="one, at a time that nothing tells"),
    ],
)
def test_restarts_at_the_first_look(count: int, ended: float | None, expected: int | None) -> None:
    """
    What may or may not lie in the window is unknown; what surely does is counted.
    """
    history = crashed(count, ended)

    assert (history.within(at(0)) if history else 0) == expected


def test_restarts_of_a_young_pod_all_lie_in_the_window() -> None:
    """
    A pod that is five minutes old has no earlier life.
    """
    history = crashed(4, -60, created=-300)

    assert history is not None
    assert history.within(at(0)) == 4


def test_unknown_restarts_become_known_by_time_alone() -> None:
    """
    Ten minutes after the last one that we did not see, none of them can lie in the window.
    """
    history = crashed(5, -60)

    assert history is not None
    assert history.changes_at(at(0)) == at(540)
    assert history.within(at(539)) is None
    assert history.within(at(540)) == 0


def test_restarts_that_we_saw_leave_the_window_one_by_one() -> None:
    """
    Each counts for ten minutes from the end of the run that it ended.
    """
    first = restarts(None, pod("a", node="n", restarts=1, last_end=at(0)), at(1), known_pod=True)
    second = restarts(first, pod("a", node="n", restarts=3, last_end=at(300)), at(301))

    assert second is not None
    assert [second.within(at(s)) for s in (301, 599, 600, 899, 900)] == [3, 3, 2, 2, 0]


def test_the_same_look_twice_counts_once() -> None:
    """
    The kubelet's count is a level.
    """
    seen = pod("a", node="n", restarts=2, last_end=at(0))
    first = restarts(None, seen, at(1), known_pod=True)

    assert restarts(first, seen, at(5)) is first


def test_the_most_gpus_a_node_showed_are_remembered() -> None:
    """
    A node that advertises fewer than before still should advertise those.
    """
    full = seen_gpus(None, node("n", gpus=8), 8)

    assert seen_gpus(full, node("n", gpus=6), 6).most == 8


def test_another_setup_is_another_promise() -> None:
    """
    A node that was cut into other slices owes nobody its earlier count.
    """
    shared = node("n", gpus=32, labels={"nvidia.com/gpu.replicas": "4"})

    assert seen_gpus(seen_gpus(None, shared, 32), node("n", gpus=8), 8).most == 8


def test_a_load_may_take_twice_what_loads_took() -> None:
    """
    Before three were seen, forty-five minutes.
    """
    known = loads(loads(None, "a", 100.0), "b", 200.0)

    assert known.budget() == LOAD_UNKNOWN
    assert loads(known, "c", 300.0).budget() == timedelta(seconds=600)


def test_one_pod_teaches_one_load() -> None:
    """
    A pod that becomes ready again did not load again.
    """
    known = loads(None, "a", 100.0)

    assert loads(known, "a", 5_000.0) == Loads((("a", 100.0),))
