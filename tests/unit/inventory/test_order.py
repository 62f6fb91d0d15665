"""Which observation is news."""

from __future__ import annotations

import pytest

from sevenhop.core.inventory.order import GRAVES_KEPT, Order

KEY = ("prod", "a")


@pytest.mark.parametrize(
    ("epoch", "seq", "expected"),
    [
        pytest.param(2, 4, False, id="earlier in the epoch"),
        pytest.param(2, 5, True, id="the same again"),
        pytest.param(2, 6, True, id="later in the epoch"),
        pytest.param(1, 99, False, id="an older epoch"),
        pytest.param(3, 0, True, id="a newer epoch"),
    ],
)
def test_news_of_a_known_object(epoch: int, seq: int, expected: bool) -> None:
    """
    Only what is not older than what is known of this object is news.
    """
    order = Order()
    order.exists("Pod", KEY, 2, 5)

    assert order.is_news("Pod", KEY, epoch, seq) is expected


def test_a_late_duplicate_does_not_bring_back_what_was_deleted() -> None:
    """
    A deletion is remembered with its position.
    """
    order = Order()
    order.exists("Pod", KEY, 1, 5)
    order.is_gone("Pod", KEY, 1, 7)

    assert not order.is_news("Pod", KEY, 1, 5)
    assert not order.is_news("Pod", KEY, 1, 7)
    assert order.is_news("Pod", KEY, 1, 8)


def test_one_late_object_does_not_shut_out_the_others() -> None:
    """
    Positions are compared per object.
    """
    order = Order()
    order.exists("Pod", ("prod", "b"), 1, 100)

    assert order.is_news("Pod", KEY, 1, 3)


def test_what_a_newer_list_did_not_mention_is_not_there() -> None:
    """
    An object that only an older epoch knows of is no news once a newer list has begun.
    """
    order = Order()
    order.exists("Pod", ("prod", "b"), 2, 1)

    assert not order.is_news("Pod", KEY, 1, 50)


def test_deletions_are_remembered_within_bounds() -> None:
    """
    Churn of a day does not fill the memory.
    """
    order = Order()
    for number in range(GRAVES_KEPT + 10):
        order.is_gone("Pod", ("prod", str(number)), 1, number + 1)

    assert order.is_news("Pod", ("prod", "0"), 1, 1)
    assert not order.is_news("Pod", ("prod", str(GRAVES_KEPT)), 1, 1)


def test_sources_without_positions_replace() -> None:
    """
    A file of objects has no positions: the later word counts.
    """
    order = Order()
    order.exists("Pod", KEY, 0, 0)
    order.is_gone("Pod", KEY, 0, 0)

    assert order.is_news("Pod", KEY, 0, 0)
