"""Appointments of incidents."""

from __future__ import annotations

from sevenhop.core.incidents.wakes import Wakes
from tests.unit.incidents.scene import at


def test_the_earliest_appointment_of_each_counts() -> None:
    """A later wish does not put off an earlier appointment, unless it takes its place."""
    wakes = Wakes()
    wakes.put("a", at(10))
    wakes.put_at_latest("a", at(20))
    wakes.put("b", at(15))
    wakes.put_at_latest("b", at(5))

    assert wakes.next == at(5)
    assert wakes.due(at(12)) == ["b", "a"]
    assert wakes.next is None


def test_a_moved_or_cancelled_appointment_is_not_kept() -> None:
    """The old time passes without a call."""
    wakes = Wakes()
    wakes.put("a", at(5))
    wakes.put("a", at(30))
    wakes.put("b", at(6))
    wakes.put("b", None)

    assert wakes.due(at(29)) == []
    assert wakes.next == at(30)
