"""
The promise to give back: at the end of the lease, or earlier where there is room; in a shortage people are asked first.

Nobody answers: the promise holds.  What somebody else set on a donor meanwhile stays as they set it.
"""

from __future__ import annotations

from msgspec.structs import replace

from sevenhop.core.remediation.case import Case, Stage, moved, noted
from sevenhop.core.remediation.live import held
from sevenhop.core.remediation.moment import Moment
from sevenhop.core.remediation.permit import Purpose
from sevenhop.core.remediation.progress import awake, unseen
from sevenhop.core.remediation.room import room_for
from sevenhop.core.remediation.runs import give_back, is_long_ago
from sevenhop.core.remediation.states import PlanState


def lend(case: Case, at: Moment) -> Case:
    """A lease after another look at the cluster."""
    until = case.lease_until
    if until is None:
        return replace(case, stage=Stage.OVER)
    seen = held(at.state, case.plan)
    if seen.gone and not (seen.ours or seen.before or seen.others or seen.unseen):
        after = replace(case, lease_until=None)
        why = f"{', '.join(seen.gone)} is gone: nothing to give back to"
        return moved(after, PlanState.RESTORED, Stage.OVER, at.now, why)
    holds = case.watch is not None and case.watch.holds
    since = case.applied_at or case.since
    is_set_back = bool(seen.before) and (holds or is_long_ago(case, since, at))
    case = _looked_at(case, at)
    if seen.ours and case.watch is not None and not holds:
        case = replace(case, watch=replace(case.watch, holds=True))
    if seen.others or is_set_back:
        others = seen.others[0] if seen.others else "somebody else put the old value back"
        case = replace(case, others=others)
        return give_back(
            case, Purpose.RESTORE, f"the donor was changed by others ({others}); our mark is taken off", at.now
        )
    return _by_time_or_room(case, at)


def _looked_at(case: Case, at: Moment) -> Case:
    """Room that nobody could look at meanwhile has not been there for so long."""
    watch = case.watch
    if watch is None:
        return case
    gap = unseen(watch, at.now)
    room_since = case.room_since + gap if case.room_since is not None else None
    return replace(case, watch=awake(watch, at.now), room_since=room_since)


def _by_time_or_room(case: Case, at: Moment) -> Case:
    until = case.lease_until or at.now
    if case.is_adopted:
        # Whom to ask is not known any more; the mark on the donor says until when.
        return give_back(case, Purpose.RESTORE, "the lease has ended", at.now) if at.now >= until else case
    room = room_for(at.state, case.plan)
    if room is not True:
        case = replace(case, room_since=None)
    elif case.room_since is None:
        case = replace(case, room_since=at.now)
    elif at.now >= case.room_since + at.settings.room_for:
        return give_back(case, Purpose.RESTORE, "there is room again", at.now)
    if at.now < until:
        return case
    if room is not False:
        return give_back(case, Purpose.RESTORE, "the lease has ended", at.now)
    if case.stage is not Stage.EXTENSION or case.extend_until is None:
        asked = replace(
            case, stage=Stage.EXTENSION, extend_asked_at=at.now, extend_until=at.now + at.settings.extend_wait
        )
        text = (
            f"the lease has ended in a shortage: extend or restore? Without an answer it is restored in {_minutes(at)}"
        )
        return noted(asked, at.now, "lease.asked", text)
    if at.now >= case.extend_until:
        return give_back(case, Purpose.RESTORE, "the lease has ended and nobody extended it", at.now)
    return case


def _minutes(at: Moment) -> str:
    return f"{at.settings.extend_wait.total_seconds() / 60:g} min"
