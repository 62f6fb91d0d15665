"""What guards are made of: the breaker, freeze windows, and counting humans."""

from __future__ import annotations

from datetime import UTC, datetime, time, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sevenhop.core.remediation.guards_breaker import COUNTS, Breaker, BreakerLimits, after_run, closed
from sevenhop.core.remediation.guards_freeze import WEEKDAYS, Freeze, frozen_until
from sevenhop.core.remediation.guards_people import cannot_be_compared, humans, reached_at
from sevenhop.core.remediation.person import Person
from sevenhop.core.remediation.states import PlanState
from tests.guard_questions import ANN, BOB, NOW, approval, plan

LIMITS = BreakerLimits(most_failures=3, window=timedelta(hours=1))
MINUTE = timedelta(minutes=1)


def after(*ends: tuple[float, str, PlanState], breaker: Breaker | None = None) -> Breaker:
    """The breaker after runs ended, at minutes."""
    found = breaker or Breaker()
    for minutes, plan_id, state in ends:
        found = after_run(found, plan_id, state, NOW + minutes * MINUTE, LIMITS)
    return found


@pytest.mark.parametrize("state", PlanState, ids=str)
def test_what_counts_as_a_failure(state: PlanState) -> None:
    """
    Failed, undone and unknown count; what was never done, or helped, does not.
    """
    expected = state in {PlanState.FAILED, PlanState.UNDONE, PlanState.UNKNOWN}

    assert (state in COUNTS) is expected
    assert bool(after((0, "a", state)).failures) is expected


def test_it_opens_at_the_limit_and_not_before() -> None:
    """
    The third failure within the window opens it, at its time.
    """
    two = after((0, "a", PlanState.FAILED), (1, "b", PlanState.UNDONE))
    three = after((2, "c", PlanState.UNKNOWN), breaker=two)

    assert not two.is_open
    assert three.is_open
    assert three.opened_at == NOW + 2 * MINUTE
    assert [who for _, who in three.failures] == ["a", "b", "c"]


def test_a_run_counts_once_and_a_success_takes_nothing_back() -> None:
    """
    Hearing of one end again is not another failure; a run that helped in between does not clear the count.
    """
    again = after((0, "a", PlanState.FAILED), (1, "a", PlanState.FAILED), (2, "a", PlanState.UNKNOWN))
    mixed = after(
        (0, "a", PlanState.FAILED),
        (1, "b", PlanState.FAILED),
        (2, "ok", PlanState.SUCCEEDED),
        (3, "c", PlanState.FAILED),
    )

    assert not again.is_open
    assert len(again.failures) == 1
    assert mixed.is_open


@pytest.mark.parametrize(("minutes", "is_open"), [(59.99, True), (60, False)], ids=["within", "as-old-as-the-window"])
def test_old_failures_are_forgotten(minutes: float, is_open: bool) -> None:
    """
    Only what failed within the window counts.
    """
    found = after((0, "a", PlanState.FAILED), (1, "b", PlanState.FAILED), (minutes, "c", PlanState.FAILED))

    assert found.is_open is is_open


def test_its_limits_by_default() -> None:
    """
    Three within a day, as the settings say too.
    """
    assert BreakerLimits() == BreakerLimits(most_failures=3, window=timedelta(hours=24))


def test_days_of_the_week() -> None:
    """
    In the order in which Python counts them, from Monday.
    """
    assert WEEKDAYS == ("mon", "tue", "wed", "thu", "fri", "sat", "sun")


def test_only_a_person_closes_it() -> None:
    """
    It stays open, since the first time, whatever runs do and however long it takes; closed, it counts from zero.
    """
    ends = [(float(i), f"r{i}", PlanState.FAILED) for i in range(5)]
    opened = after(*ends, (10_000, "good", PlanState.SUCCEEDED))
    reset = closed(opened, "slack:U1", NOW)

    assert opened.opened_at == NOW + 2 * MINUTE
    assert (reset.is_open, reset.failures, reset.closed_by, reset.closed_at) == (False, (), "slack:U1", NOW)
    assert not after((10_001, "x", PlanState.FAILED), (10_002, "y", PlanState.FAILED), breaker=reset).is_open


def test_what_does_not_count_never_opens_it() -> None:
    """
    Failures that are there already do not open it when a run succeeds, even where the limit was lowered since.
    """
    two = after((0, "a", PlanState.FAILED), (1, "b", PlanState.FAILED))
    found = after_run(two, "c", PlanState.SUCCEEDED, NOW, BreakerLimits(most_failures=1))

    assert not found.is_open


DATES = Freeze(name="quarter end", start=NOW, end=NOW + timedelta(hours=1))
NIGHT = Freeze(name="nights", weekdays=(0, 1, 2, 3, 4), since=time(22), until=time(6))
DAY = Freeze(name="friday", weekdays=(4,), since=time(9), until=time(17))
WHOLE = Freeze(name="sunday", weekdays=(6,))


@pytest.mark.parametrize(
    ("window", "at", "until"),
    [
        (DATES, NOW, NOW + timedelta(hours=1)),
        (DATES, NOW - timedelta(microseconds=1), None),
        (DATES, NOW + timedelta(hours=1), None),
        (DATES, NOW + timedelta(minutes=59), NOW + timedelta(hours=1)),
        (DAY, datetime(2026, 3, 6, 9, tzinfo=UTC), datetime(2026, 3, 6, 17, tzinfo=UTC)),
        (DAY, datetime(2026, 3, 6, 8, 59, 59, tzinfo=UTC), None),
        (DAY, datetime(2026, 3, 6, 17, tzinfo=UTC), None),
        (DAY, datetime(2026, 3, 5, 12, tzinfo=UTC), None),
        (DAY, datetime(2026, 3, 7, 12, tzinfo=UTC), None),
        (NIGHT, datetime(2026, 3, 6, 22, tzinfo=UTC), datetime(2026, 3, 7, 6, tzinfo=UTC)),
        (NIGHT, datetime(2026, 3, 7, 5, 59, tzinfo=UTC), datetime(2026, 3, 7, 6, tzinfo=UTC)),
        (NIGHT, datetime(2026, 3, 7, 6, tzinfo=UTC), None),
        (NIGHT, datetime(2026, 3, 7, 23, tzinfo=UTC), None),
        (NIGHT, datetime(2026, 3, 9, 3, tzinfo=UTC), None),
        (NIGHT, datetime(2026, 3, 6, 12, tzinfo=UTC), None),
        (WHOLE, datetime(2026, 3, 8, 0, tzinfo=UTC), datetime(2026, 3, 9, 0, tzinfo=UTC)),
        (WHOLE, datetime(2026, 3, 8, 23, 59, tzinfo=UTC), datetime(2026, 3, 9, 0, tzinfo=UTC)),
        (WHOLE, datetime(2026, 3, 9, 0, tzinfo=UTC), None),
        (
            Freeze(name="overlap", weekdays=(5, 6), since=time(12), until=time(12)),
            datetime(2026, 3, 8, 12, tzinfo=UTC),
            datetime(2026, 3, 9, 12, tzinfo=UTC),
        ),
        (Freeze(name="never"), NOW, None),
        (Freeze(name="half", start=NOW), NOW, None),
        (Freeze(name="half", end=NOW + MINUTE), NOW, None),
    ],
    ids=[
        "dates: first moment", "dates: before", "dates: end is free", "dates: inside", "day: begins", "day: before",
        "day: end is free", "day: the day before", "day: the day after", "night: begins", "night: next morning",
        "night: over", "night: not on saturdays", "night: after sunday", "night: noon", "whole day: begins",
        "whole day: last minute", "whole day: over", "24 hours twice", "no days", "no end", "no start",
    ],
)  # fmt: skip
def test_freeze_windows(window: Freeze, at: datetime, until: datetime | None) -> None:
    """
    A window is open from its first moment until just before its end, over midnight too.
    """
    assert frozen_until(window, at) == until


@given(st.integers(-12, 14), st.datetimes(datetime(2026, 1, 1), datetime(2026, 12, 31)))
def test_freeze_windows_are_utc(hours: int, at: datetime) -> None:
    """
    The same moment, written in another time zone, is frozen or not alike.
    """
    moment = at.replace(tzinfo=UTC)
    elsewhere = moment.astimezone(timezone(timedelta(hours=hours)))

    for window in (DAY, NIGHT, WHOLE, DATES):
        assert frozen_until(window, elsewhere) == frozen_until(window, moment)


@given(st.lists(st.sets(st.integers(0, 8), min_size=1, max_size=3), max_size=8))
def test_humans_are_groups_of_shared_ids(ids: list[set[int]]) -> None:
    """
    Identities connected by shared ids, directly or through others, are one human; order does not matter.
    """
    people = [Person(id=f"p:{min(s)}", is_same_as=tuple(f"p:{i}" for i in s)) for s in ids]
    roots: dict[int, int] = {}

    def root(i: int) -> int:
        while roots.setdefault(i, i) != i:
            i = roots[i]
        return i

    for some in ids:
        for i in some:
            roots[root(i)] = root(min(some))

    assert humans(people) == len({root(min(some)) for some in ids})
    assert humans(reversed(people)) == humans(people)


@pytest.mark.parametrize(
    ("ids", "count", "doubt"),
    [
        ([], 0, False),
        ([("slack:1",)], 1, False),
        ([("slack:1",), ("slack:2",)], 2, False),
        ([("slack:1",), ("unix:root",)], 1, True),
        ([("slack:1", "email:a"), ("kubernetes:b", "email:b")], 2, False),
        ([("slack:1", "email:a"), ("kubernetes:a", "email:a")], 1, False),
        ([("slack:1", "email:a"), ("kubernetes:a", "email:a"), ("kubernetes:b",)], 2, False),
        ([("slack:1",), ("unix:root",), ("slack:2",)], 2, True),
        ([("slack:1",), ("unix:root",), ("kubernetes:a",)], 1, True),
    ],
)
def test_who_cannot_be_compared_counts_once(ids: list[tuple[str, ...]], count: int, doubt: bool) -> None:
    """
    Without a kind of id that both have nobody can say that they are two.
    """
    people = [Person(id=first, is_same_as=tuple(more)) for first, *more in ids]

    assert (humans(people), cannot_be_compared(people)) == (count, doubt)


def test_when_enough_had_approved() -> None:
    """
    It is the time of the approval that made it enough, whatever came later and in whatever order they are kept.
    """
    of = plan()
    first = approval(ANN, of, at=NOW - 3 * MINUTE)
    again = approval(ANN, of, at=NOW - 2 * MINUTE)
    second = approval(BOB, of, at=NOW - MINUTE)

    assert reached_at([second, again, first], 1) == first.at
    assert reached_at([second, again, first], 2) == second.at
    with pytest.raises(ValueError, match="fewer than 3"):
        reached_at([second, first], 3)
