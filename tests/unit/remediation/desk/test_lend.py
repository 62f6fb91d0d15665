"""What becomes of a lease at each look, case by case: what the cluster shows is given."""

from __future__ import annotations

from contextlib import ExitStack
from datetime import timedelta
from typing import Any
from unittest.mock import patch

import pytest
from msgspec.structs import replace

from sevenhop.core.inventory.inventory import Inventory
from sevenhop.core.inventory.policy import Policy
from sevenhop.core.remediation import leases
from sevenhop.core.remediation.case import Case, Stage, Watch
from sevenhop.core.remediation.live import Held
from sevenhop.core.remediation.moment import Moment
from sevenhop.core.remediation.permit import Purpose
from sevenhop.core.remediation.playbook import Goal
from sevenhop.core.remediation.settings import RemediationSettings
from sevenhop.core.remediation.states import PlanState
from tests.guard_questions import NOW, PLAYBOOK, plan

SETTINGS = RemediationSettings()
STATE = Inventory("prod-eu", (), Policy()).state
OURS: dict[str, Any] = {"ours": 1}
HOUR, SECOND = timedelta(hours=1), timedelta(seconds=1)
SEEN = Watch(progress_at=NOW - HOUR, seen_at=NOW - SECOND, holds=True)
LENT = Case(
    plan=plan(), state=PlanState.SUCCEEDED, since=NOW - HOUR, stage=Stage.LENT, lease_until=NOW + HOUR,
    applied_at=NOW - HOUR, watch=SEEN,
)  # fmt: skip
ENDED = replace(LENT, lease_until=NOW)


def looked(case: Case, room: bool | None = False, **held: Any) -> Case:
    """The lease after a look at which the cluster shows this."""
    seen = Held(**(held or OURS))
    at = Moment(now=NOW, state=STATE, settings=SETTINGS, playbook=PLAYBOOK, goal=Goal.BENEFICIARY_READY)
    with ExitStack() as stack:
        stack.enter_context(patch.object(leases, "held", lambda *_: seen))
        stack.enter_context(patch.object(leases, "room_for", lambda *_: room))
        return leases.lend(case, at)


def asked(case: Case) -> Purpose | None:
    return case.asked.purpose if case.asked is not None else None


def test_nothing_is_due() -> None:
    """Before the end and in a shortage nothing happens, but that it was looked at."""
    after = looked(LENT)
    assert replace(after, watch=SEEN) == LENT
    assert after.watch is not None
    assert after.watch.seen_at == NOW


def test_without_an_end_it_is_over() -> None:
    """What is not lent any more is not looked at again."""
    assert looked(replace(LENT, lease_until=None)).stage is Stage.OVER


@pytest.mark.parametrize("kind", ["ours", "before", "others", "unseen"])
def test_gone_is_gone_only_where_nothing_is_left(kind: str) -> None:
    """All that gave is gone: nothing to give back to; one that is left gets back what it gave."""
    after = looked(LENT, gone=("a", "b"))
    assert (after.state, after.stage, after.lease_until) == (PlanState.RESTORED, Stage.OVER, None)
    assert after.why == "a, b is gone: nothing to give back to"
    left: dict[str, Any] = {kind: ("c",) if kind == "others" else 1}
    assert looked(LENT, gone=("a",), **left).state is PlanState.SUCCEEDED


def test_our_change_is_remembered_once_it_was_seen() -> None:
    """From then on the old value is somebody's doing."""
    unseen = replace(LENT, watch=replace(SEEN, holds=False))
    after = looked(unseen)
    assert after.watch is not None
    assert after.watch.holds
    assert looked(unseen, unseen=1).watch == replace(SEEN, holds=False, seen_at=NOW)


@pytest.mark.parametrize(
    ("since", "holds", "taken"),
    [
        pytest.param(SETTINGS.seen_within - SECOND, False, False, id="may not be shown yet"),
        pytest.param(SETTINGS.seen_within, False, True, id="would be shown by now"),
        pytest.param(timedelta(0), True, True, id="was shown before"),
    ],
)
def test_the_old_value_is_back(since: timedelta, holds: bool, taken: bool) -> None:
    """Put back by somebody else, which stays: only our mark is taken off."""
    case = replace(LENT, applied_at=NOW - since, watch=replace(SEEN, holds=holds))
    after = looked(case, before=1)
    assert (asked(after) is Purpose.RESTORE) is taken
    assert after.others == ("somebody else put the old value back" if taken else "")
    assert not taken or "our mark is taken off" in after.undo_why


def test_since_when_it_would_be_shown_where_nobody_knows_when_it_was_applied() -> None:
    """As of an adopted lease: from when it came into its state."""
    case = replace(LENT, applied_at=None, watch=replace(SEEN, holds=False))
    assert asked(looked(case, before=1)) is Purpose.RESTORE
    assert asked(looked(replace(case, since=NOW), before=1)) is None


def test_what_others_set_stays() -> None:
    """Whatever it is, and by name."""
    after = looked(LENT, others=("Deployment a asks for 9",), ours=1)
    assert (after.others, asked(after), after.stage) == ("Deployment a asks for 9", Purpose.RESTORE, Stage.RESTORING)
    assert after.undo_why == "the donor was changed by others (Deployment a asks for 9); our mark is taken off"
    assert looked(LENT, others=("a", "b")).others == "a"


@pytest.mark.parametrize(
    ("since", "given_back"),
    [(None, False), (timedelta(0), False), (SETTINGS.room_for - SECOND, False), (SETTINGS.room_for, True)],
)
def test_room_has_to_stay(since: timedelta | None, given_back: bool) -> None:
    """Given back early once there was room for so long."""
    case = replace(LENT, room_since=None if since is None else NOW - since)
    after = looked(case, room=True)
    assert (asked(after) is Purpose.RESTORE) is given_back
    assert after.room_since == (NOW if since is None else NOW - since)
    assert not given_back or after.undo_why == "there is room again"


@pytest.mark.parametrize("room", [False, None])
def test_room_that_goes_is_forgotten(room: bool | None) -> None:
    """And so is room that nobody can see."""
    assert looked(replace(LENT, room_since=NOW - HOUR), room=room).room_since is None


def test_room_that_nobody_saw_stay() -> None:
    """Time between two looks that lie far apart does not count."""
    slept = replace(LENT, room_since=NOW - HOUR - 10 * SECOND, watch=replace(SEEN, seen_at=NOW - HOUR))
    after = looked(slept, room=True)
    assert (asked(after), after.room_since) == (None, NOW - 10 * SECOND)
    assert after.watch is not None
    assert after.watch.unseen == HOUR


def test_at_the_end_people_are_asked_in_a_shortage() -> None:
    """On the second; with how long they have; nothing is given back yet."""
    after = looked(ENDED)
    assert (after.stage, asked(after)) == (Stage.EXTENSION, None)
    assert (after.extend_asked_at, after.extend_until) == (NOW, NOW + SETTINGS.extend_wait)
    assert after.entries[-1].what == "lease.asked"
    assert "extend or restore? Without an answer it is restored in 15 min" in after.entries[-1].text
    assert looked(replace(LENT, lease_until=NOW + SECOND)).stage is Stage.LENT


@pytest.mark.parametrize("room", [True, None])
def test_at_the_end_without_a_shortage_nobody_is_asked(room: bool | None) -> None:
    """Also where nobody can tell: the promise holds."""
    after = looked(ENDED, room=room)
    assert (asked(after), after.undo_why) == (Purpose.RESTORE, "the lease has ended")


def test_silence_gives_back() -> None:
    """On the second at which the wait is over; asked once."""
    waiting = replace(ENDED, stage=Stage.EXTENSION, extend_asked_at=NOW - HOUR, extend_until=NOW + SECOND)
    assert replace(looked(waiting), watch=SEEN) == waiting
    after = looked(replace(waiting, extend_until=NOW))
    assert (asked(after), after.undo_why) == (Purpose.RESTORE, "the lease has ended and nobody extended it")
    lost = looked(replace(waiting, extend_until=None))
    assert lost.extend_until == NOW + SETTINGS.extend_wait


def test_an_adopted_lease_asks_nobody() -> None:
    """Whom to ask is not known: given back at the end that the mark says, and not for room before."""
    adopted = replace(LENT, is_adopted=True, room_since=NOW - HOUR)
    assert asked(looked(adopted, room=True)) is None
    after = looked(replace(adopted, lease_until=NOW))
    assert (asked(after), after.undo_why) == (Purpose.RESTORE, "the lease has ended")


def test_a_case_without_a_watch_is_looked_at_all_the_same() -> None:
    """A row of an earlier version: its lease ends as any other."""
    old = replace(ENDED, watch=None)
    assert looked(old).stage is Stage.EXTENSION
    assert asked(looked(replace(old, applied_at=NOW), before=1)) is None
