"""Since when a component waits."""

from __future__ import annotations

from datetime import datetime

import pytest

from sevenhop.core.inventory.waiting import REPLACED_WITHIN, Spell, spell
from tests.builders import at


def waiting(**since: float) -> dict[str, datetime]:
    return {uid: at(seconds) for uid, seconds in since.items()}


def test_the_earliest_of_its_pods_counts() -> None:
    """
    A second pod that waits later does not begin the spell anew.
    """
    assert spell(None, waiting(a=10, b=40), {}, at(50)) == Spell(at(10), frozenset("ab"))


def test_it_goes_on_while_any_pod_waits() -> None:
    """
    The first pod found a node; the second, which waited beside it, carries the spell on.
    """
    before = spell(None, waiting(a=10, b=40), {}, at(50))

    after = spell(before, waiting(b=40), {"a": at(60)}, at(61))

    assert after is not None
    assert after.since == at(10)


def test_a_pod_that_takes_the_place_of_a_deleted_one_carries_it_on() -> None:
    """
    The controller re-created the pod under another name: the same wait.
    """
    before = spell(None, waiting(a=10), {}, at(20))
    gap = spell(before, {}, {}, at(30))

    after = spell(gap, waiting(b=31), {}, at(32))

    assert gap is not None
    assert gap.ends_at() == at(30) + REPLACED_WITHIN
    assert after is not None
    assert after.since == at(10)


def test_a_new_name_in_the_same_batch_carries_it_on() -> None:
    """
    Whether anybody looked between the deletion and the new pod makes no difference.
    """
    before = spell(None, waiting(a=10), {}, at(20))

    after = spell(before, waiting(b=31), {}, at(32))

    assert after is not None
    assert after.since == at(10)


def test_a_wait_that_ended_with_a_node_is_over() -> None:
    """
    Another pod that begins to wait after that begins another spell.
    """
    before = spell(None, waiting(a=10), {}, at(20))

    placed = spell(before, {}, {"a": at(25)}, at(26))
    together = spell(before, waiting(b=30), {"a": at(25)}, at(31))

    assert placed is None
    assert together is not None
    assert together.since == at(30)


def test_two_waits_that_overlap_are_one_whoever_looks() -> None:
    """
    Their own timestamps tell that they overlapped, although both changes came at once.
    """
    before = spell(None, waiting(a=10), {}, at(20))

    after = spell(before, waiting(b=22), {"a": at(25)}, at(31))

    assert after is not None
    assert after.since == at(10)


@pytest.mark.parametrize(
    ("seconds", "since"),
    [
        pytest.param(0, 10, id="at once"),
        pytest.param(REPLACED_WITHIN.total_seconds() - 1, 10, id="just within"),
        pytest.param(REPLACED_WITHIN.total_seconds(), None, id="too late"),
    ],
)
def test_the_place_is_kept_for_a_moment(seconds: float, since: float | None) -> None:
    """
    After that nobody takes the deleted pod's place any more.
    """
    gap = spell(spell(None, waiting(a=10), {}, at(20)), {}, {}, at(30))

    after = spell(gap, {}, {}, at(30 + seconds))

    assert (after.since if after else None) == (at(since) if since is not None else None)
