"""What time it is for the desk, and what it does not conclude from time that nobody saw."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from sevenhop.core.remediation.case import Asked, Case, Stage
from sevenhop.core.remediation.permit import Purpose
from sevenhop.core.remediation.settings import RemediationSettings
from sevenhop.core.remediation.states import PlanState
from sevenhop.core.remediation.waking import LATE, Waking
from tests.guard_questions import plan

NOON = datetime(2026, 3, 4, 12, tzinfo=UTC)
SETTINGS = RemediationSettings()
TICK = timedelta(microseconds=1)
ASKED = Asked(id="p/1-apply", purpose=Purpose.APPLY, number=1, at=NOON)
CASE = Case(plan=plan(), state=PlanState.RUNNING, since=NOON, stage=Stage.APPLYING, asked=ASKED)


def s(seconds: float) -> timedelta:
    return timedelta(seconds=seconds)


def at_noon() -> Waking:
    waking = Waking()
    assert not waking.told(NOON, None, [])
    return waking


@pytest.mark.parametrize(
    ("now", "due", "slept"),
    [
        pytest.param(s(600), None, False, id="nothing was due"),
        pytest.param(s(600), s(600), False, id="on time"),
        pytest.param(s(60), s(0), False, id="as late as may be"),
        pytest.param(s(60) + TICK, s(0), True, id="too late"),
        pytest.param(s(100) + LATE, s(100), False, id="a minute after it was due"),
        pytest.param(s(100) + LATE + TICK, s(100), True, id="longer than a minute after it was due"),
        pytest.param(s(30), s(-300), False, id="what was due long ago is due now, and nobody slept"),
        pytest.param(s(-60), s(0), False, id="an event that comes late"),
        pytest.param(s(-60) - TICK, s(0), True, id="the clock was set back"),
        pytest.param(s(-60) - TICK, None, True, id="set back with nothing due"),
    ],
)
def test_whether_it_slept(now: timedelta, due: timedelta | None, slept: bool) -> None:
    """Called long after it was due, or long before it was called last."""
    waking = at_noon()
    assert waking.told(NOON + now, NOON + due if due is not None else None, []) is slept
    assert waking.is_set_back is (slept and now < s(0))
    assert waking.now == (NOON + now if slept else max(NOON, NOON + now))


def test_the_first_time_is_what_it_is() -> None:
    """After a start nothing was due, and nobody slept."""
    waking = Waking()
    assert not waking.is_set_back
    assert waking.as_of(NOON, SETTINGS) == NOON
    assert waking.told(NOON, NOON - s(9999), []) is False
    assert waking.now == NOON
    assert not waking.is_set_back


def test_set_back_is_said_once() -> None:
    """The next call of the new clock is an ordinary one."""
    waking = at_noon()
    waking.told(NOON - s(3600), None, [])
    assert waking.is_set_back
    assert not waking.told(NOON - s(3590), NOON - s(3595), [])
    assert not waking.is_set_back


def test_just_awake_what_is_known_is_of_before() -> None:
    """For as long as sources may take to catch up, and to the microsecond no longer."""
    waking = at_noon()
    assert waking.as_of(NOON + s(5), SETTINGS) == NOON
    woke = NOON + s(1000)
    waking.told(woke, NOON + s(2), [])
    assert waking.as_of(woke, SETTINGS) == NOON
    assert waking.as_of(woke + SETTINGS.seen_within - TICK, SETTINGS) == NOON
    assert waking.as_of(woke + SETTINGS.seen_within, SETTINGS) == woke
    assert waking.as_of(woke - TICK, SETTINGS) == woke


def test_a_clock_that_was_set_back_says_nothing_of_what_is_known() -> None:
    """What was heard is as new as it was; its times are of another clock."""
    waking = at_noon()
    waking.told(NOON - s(3600), None, [])
    assert waking.as_of(NOON - s(3600), SETTINGS) == NOON - s(3600)


def test_an_answer_may_come_late_where_nobody_could_hear_it() -> None:
    """A step that was asked for before the sleep waits for another minute; one of afterwards as ever."""
    waking, by = at_noon(), NOON + s(600)
    assert waking.answer_by(ASKED, by, SETTINGS) == by
    woke = NOON + s(5000)
    idle = Case(plan=plan(), state=PlanState.PROPOSED, since=NOON, stage=Stage.DECISION)
    waking.told(woke, by, [idle, CASE])
    assert waking.answer_by(ASKED, by, SETTINGS) == woke + SETTINGS.answer_after_start
    assert waking.answer_by(ASKED, woke + s(300), SETTINGS) == woke + s(300)
    later = Asked(id="p/2-read-back", purpose=Purpose.READ_BACK, number=2, at=woke)
    assert waking.answer_by(later, woke + s(9000), SETTINGS) == woke + s(9000)


def test_no_answer_is_waited_for_until_an_old_clock_comes_round() -> None:
    """Set back by hours: as long as for any step from now on."""
    waking = at_noon()
    back = NOON - s(36_000)
    waking.told(back, None, [CASE])
    assert waking.answer_by(ASKED, NOON + s(600), SETTINGS) == back + SETTINGS.answer_within
