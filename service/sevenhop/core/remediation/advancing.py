"""How a plan goes on by the passing of time: what it waits for may be overdue, reached, or over."""

from __future__ import annotations

from datetime import datetime

from msgspec.structs import replace

from sevenhop.core.remediation.case import Case, Stage, moved, noted
from sevenhop.core.remediation.leases import lend
from sevenhop.core.remediation.moment import Moment
from sevenhop.core.remediation.playbook import Goal
from sevenhop.core.remediation.runs import retry, unanswered, verify
from sevenhop.core.remediation.states import PlanState


def advance(case: Case, at: Moment, answer_by: datetime) -> Case:
    """
    The case after another look; the same one where nothing is due.

    Args:
        answer_by: Until when the step that was asked for may stay unanswered.
    """
    if case.asked is not None:
        return unanswered(case, at) if at.now >= answer_by else case
    if case.retry_at is not None:
        # Further ahead than anything is put off: the clock was set back, and that must not keep back what is owed.
        is_lost = case.retry_at > at.now + at.settings.give_back_longest
        return retry(case, at.now) if is_lost or at.now >= case.retry_at else case
    if case.stage is Stage.DECISION:
        return _waited(case, at)
    if case.stage is Stage.VERIFYING:
        return verify(case, at)
    if case.stage in (Stage.LENT, Stage.EXTENSION):
        return lend(case, at)
    return case


def goal_of(case: Case) -> Goal:
    """Of a plan whose playbook is no more."""
    if case.plan.need is not None or case.plan.scales:
        return Goal.BENEFICIARY_READY
    return Goal.NODE_CORDONED if not case.plan.victims else Goal.OWNER_READY


def _waited(case: Case, at: Moment) -> Case:
    if at.now >= case.plan.expires_at:
        return moved(case, PlanState.EXPIRED, Stage.OVER, at.now, "nobody decided in time; nothing was done")
    remind = at.playbook is not None and at.now >= case.plan.proposed_at + at.playbook.remind_after
    if remind and case.reminded_at is None:
        return noted(replace(case, reminded_at=at.now), at.now, "plan.reminder", "still waits for a decision")
    return case
