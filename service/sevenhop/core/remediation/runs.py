"""
How a run goes on: dry run → patch → (read back) → verify → succeeded, or undone.

Each function takes a case and what is true now, and returns the case as it goes on.  Every step is asked for once; what
is not known is read back before anything else is done.
"""

from __future__ import annotations

from datetime import datetime, timedelta

from msgspec.structs import replace

from sevenhop.core.effects import Borrow
from sevenhop.core.events import StepDone, StepResult
from sevenhop.core.facts.schema import Unknown
from sevenhop.core.remediation.action import EvictPod
from sevenhop.core.remediation.case import Case, Stage, ask, moved, noted
from sevenhop.core.remediation.live import held, marked_by
from sevenhop.core.remediation.moment import Moment
from sevenhop.core.remediation.permit import GuardName, Purpose
from sevenhop.core.remediation.playbook import Playbook
from sevenhop.core.remediation.progress import Look, begun, look, new_failures, overdue_at, unseen, watched
from sevenhop.core.remediation.settings import RemediationSettings
from sevenhop.core.remediation.states import PlanState

STALE = frozenset({GuardName.STILL_NEEDED, GuardName.UNCHANGED, GuardName.NOT_WIDER})
"""Refusals that say that the plan is not of this world any more."""

READ_BACKS = 3
"""How often an uncertain patch is read back before a person is told to look."""


def can_give_back(case: Case) -> bool:
    """Whether anything of it can be taken back: a pod that was removed cannot."""
    return any(not isinstance(action, EvictPod) for action in case.plan.actions)


def stays(case: Case) -> bool:
    """Whether it helped, has no lease, and can still be taken back by a person, as a cordon can."""
    return case.state is PlanState.SUCCEEDED and case.is_over and not case.others and can_give_back(case)


def after_step(case: Case, event: StepDone, at: Moment) -> Case:
    """
    The case after an answer.

    An answer to another step than the one that is waited for is late or doubled, and changes nothing.
    """
    asked = case.asked
    if asked is None or asked.id != event.effect_id:
        return case
    answer = replace(case, asked=None)
    answer = noted(
        answer, at.now, f"step.{event.result}", f"step {asked.number} {asked.purpose} {event.result}: {event.detail}"
    )
    return _after(answer, asked.purpose, event.result, event.detail[:300], at)


def unanswered(case: Case, at: Moment) -> Case:
    """The case whose step was not answered for too long: as if the answer had been that it is not known."""
    asked = case.asked
    if asked is None:
        return case
    after = noted(
        replace(case, asked=None), at.now, "step.unanswered", f"step {asked.number} {asked.purpose} not answered"
    )
    return _after(after, asked.purpose, StepResult.UNKNOWN, "it was not answered", at)


def verify(case: Case, at: Moment) -> Case:
    """A run whose patch is done, after another look at the cluster."""
    applied_at, watch = case.applied_at or case.since, case.watch
    if watch is None:
        return case
    against, holds = _stick(case, applied_at, at)
    watch = replace(watch, holds=watch.holds or holds)
    if against:
        others = next(iter(held(at.state, case.plan).others), "")
        return not_reached(replace(case, watch=watch, others=others), f"it was set back: {against}", at.now)
    seen = look(at.state, case.plan, at.goal, watch)
    was = watch.words
    watch = watched(watch, seen, at.now)
    case = replace(case, watch=watch)
    if isinstance(seen, Unknown):
        return _lease_over(case, at.now)
    if watch.words != was:
        case = noted(case, at.now, "run.progress", watch.words)
    if seen.reached:
        return _succeeded(case, watch.words, at.now)
    why = _why_not(case, seen, at)
    return not_reached(case, why, at.now) if why else _lease_over(case, at.now)


def not_reached(case: Case, why: str, now: datetime) -> Case:
    """Back to how it was, where that can be; else said that it cannot."""
    if can_give_back(case):
        return give_back(case, Purpose.UNDO, why, now)
    return moved(case, PlanState.FAILED, Stage.OVER, now, f"{why}; what was done cannot be undone")


def give_back(case: Case, purpose: Purpose, why: str, now: datetime) -> Case:
    """The case with its undo or its restore asked for, for the first time."""
    stage = Stage.UNDOING if purpose is Purpose.UNDO else Stage.RESTORING
    after = replace(
        case, undo_why=why, attempts=0, extend_asked_at=None, extend_until=None, extensions=(), extended_from=None
    )
    after = noted(after, now, f"run.{purpose}", why)
    return ask(after, purpose, stage, now)


def next_look(case: Case, playbook: Playbook | None, settings: RemediationSettings, now: datetime) -> datetime | None:
    """When time alone has something to do; None where only people or answers do."""
    if case.stage is Stage.OVER:
        return None
    if case.asked is not None:
        return case.asked.at + settings.answer_within
    if case.retry_at is not None:
        return case.retry_at
    if case.stage is Stage.DECISION:
        due = [case.plan.expires_at]
        if case.reminded_at is None and playbook is not None:
            due.append(case.plan.proposed_at + playbook.remind_after)
        return min(due)
    if case.stage in (Stage.LENT, Stage.EXTENSION):
        over = case.extend_until or case.lease_until
        soon = now + settings.lent_every
        return min(soon, over) if over is not None and over > now else soon
    if case.stage is Stage.SHADOW:
        return None  # its incident is looked at
    return now + settings.look_every


def retry(case: Case, now: datetime) -> Case:
    """The case with its undo, restore or read-back asked for again."""
    purposes = {Stage.UNDOING: Purpose.UNDO, Stage.RESTORING: Purpose.RESTORE, Stage.READING: Purpose.READ_BACK}
    return ask(case, purposes[case.stage], case.stage, now)


def _after(case: Case, purpose: Purpose, result: StepResult, detail: str, at: Moment) -> Case:
    if purpose is Purpose.DRY_RUN:
        return _after_dry_run(case, result, detail, at)
    if purpose is Purpose.APPLY:
        return _after_apply(case, result, detail, at)
    if purpose is Purpose.READ_BACK:
        return _after_read_back(case, result, detail, at)
    if purpose is Purpose.EXTEND:
        return _after_extending(case, result, detail, at)
    return _after_giving_back(case, purpose, result, detail, at)


def _after_dry_run(case: Case, result: StepResult, detail: str, at: Moment) -> Case:
    if result is not StepResult.DONE and any(each.guard in STALE for each in at.against):
        return moved(case, PlanState.SUPERSEDED, Stage.OVER, at.now, f"nothing was changed: {at.against[0].text}")
    if result is not StepResult.DONE:
        case = replace(case, is_stopped=bool(at.against))
        return moved(case, PlanState.FAILED, Stage.OVER, at.now, f"nothing was changed: {detail}")
    case = moved(case, PlanState.RUNNING, Stage.APPLYING, at.now, f"dry run passed; {case.plan.title}")
    case = replace(
        case,
        borrow=_borrow(case, at.now),
        watch=begun(at.state, case.plan, look(at.state, case.plan, at.goal), at.now),
        lease_until=at.now + case.plan.lease if case.plan.lease else None,
    )
    return ask(case, Purpose.APPLY, Stage.APPLYING, at.now)


def _after_apply(case: Case, result: StepResult, detail: str, at: Moment) -> Case:
    if result is StepResult.DONE:
        return _applied(case, at)
    if result is StepResult.UNKNOWN:
        return ask(case, Purpose.READ_BACK, Stage.READING, at.now)
    return _not_applied(case, detail, at)


def _after_read_back(case: Case, result: StepResult, detail: str, at: Moment) -> Case:
    if result is StepResult.DONE:
        return _applied(case, at)
    if result is StepResult.REFUSED:
        return _not_applied(case, detail, at)
    if case.attempts + 1 < READ_BACKS:
        return replace(
            case, stage=Stage.READING, attempts=case.attempts + 1, retry_at=at.now + at.settings.give_back_retry
        )
    if can_give_back(case):
        # Undoing reads before it writes, so it is right whichever way it went.
        return give_back(case, Purpose.UNDO, f"whether it was changed could not be read back: {detail}", at.now)
    return moved(
        case, PlanState.UNKNOWN, Stage.OVER, at.now, f"whether it was changed is not known ({detail}); please look"
    )


def _applied(case: Case, at: Moment) -> Case:
    watch = case.watch
    if watch is not None:
        watch = replace(watch, progress_at=at.now, seen_at=at.now, is_blind=False, unseen=timedelta(0))
    case = replace(
        case,
        stage=Stage.VERIFYING,
        applied_at=at.now,
        attempts=0,
        watch=watch,
        held_until=at.now + at.settings.own_change_hold,
    )
    return noted(case, at.now, "run.applied", "changed; waiting for the goal")


def _not_applied(case: Case, detail: str, at: Moment) -> Case:
    """Nothing was changed, unless the cluster shows a part of it: then that part is taken back."""
    if can_give_back(case) and (marked_by(at.state, case.plan) or held(at.state, case.plan).ours):
        return give_back(case, Purpose.UNDO, f"only a part could be done: {detail}", at.now)
    case = replace(case, is_stopped=bool(at.against))
    return moved(case, PlanState.FAILED, Stage.OVER, at.now, f"nothing was changed: {detail}")


def _after_extending(case: Case, result: StepResult, detail: str, at: Moment) -> Case:
    """
    The lease holds as it was decided, whatever became of the date on the marks.

    Only what the guards say against it, such as a switch that was turned meanwhile, takes the extension back.
    """
    before, case = case.extended_from, replace(case, extensions=(), extended_from=None)
    if result is StepResult.DONE:
        return case
    if result is StepResult.REFUSED and at.against:
        borrow = replace(case.borrow, until=before) if case.borrow is not None and before is not None else case.borrow
        text = f"the lease is not extended: {at.against[0].text}"
        case = replace(case, lease_until=before or case.lease_until, borrow=borrow, why=text)
        return noted(case, at.now, "lease.kept", text)
    text = f"the marks may still name the old end ({detail}); should our state be lost, it is given back then"
    return noted(case, at.now, "lease.mark", text)


def _after_giving_back(case: Case, purpose: Purpose, result: StepResult, detail: str, at: Moment) -> Case:
    if result is StepResult.DONE:
        return _given_back(case, purpose, detail, at)
    seen = held(at.state, case.plan)
    if seen.gone and not (seen.ours or seen.before or seen.others or seen.unseen):
        return _given_back(case, purpose, f"{', '.join(seen.gone)} is gone: nothing to give back to", at)
    if result is StepResult.REFUSED and seen.others and not (seen.ours or seen.unseen):
        case = replace(case, others=seen.others[0])
        return _given_back(case, purpose, f"somebody else changed it since, which stays: {seen.others[0]}", at)
    if seen.others and not case.others:
        # One of several places: it stays, and must not keep the others from getting theirs back.
        case = replace(case, others=seen.others[0])
    attempts = case.attempts + 1
    wait = min(at.settings.give_back_retry * 2 ** min(attempts - 1, 16), at.settings.give_back_longest)
    case = replace(case, attempts=attempts, retry_at=at.now + wait)
    if attempts == at.settings.give_back_attempts and PlanState.UNKNOWN is not case.state:
        text = f"{purpose} failed {attempts} times ({detail}); it is tried on, and a person should look"
        if case.state in (PlanState.RUNNING, PlanState.SUCCEEDED):
            return moved(case, PlanState.UNKNOWN, case.stage, at.now, text)
        return noted(case, at.now, "run.stuck", text)
    return case


def _given_back(case: Case, purpose: Purpose, detail: str, at: Moment) -> Case:
    case = replace(case, lease_until=None, retry_at=None, attempts=0, held_until=at.now + at.settings.own_change_hold)
    said = f"; {detail}" if detail else ""
    if case.state in (PlanState.RUNNING, PlanState.UNKNOWN) and purpose is Purpose.UNDO:
        return moved(case, PlanState.UNDONE, Stage.OVER, at.now, f"{case.undo_why}{said}")
    if case.state is PlanState.SUCCEEDED and case.others:
        return noted(replace(case, stage=Stage.OVER), at.now, "lease.over", f"lease ended: {case.others}; that stays")
    if case.state in (PlanState.SUCCEEDED, PlanState.UNKNOWN):
        return moved(case, PlanState.RESTORED, Stage.OVER, at.now, f"{case.undo_why}{said}")
    return noted(replace(case, stage=Stage.OVER), at.now, "run.cleaned", f"what was left is taken back{said}")


def _stick(case: Case, applied_at: datetime, at: Moment) -> tuple[str, bool]:
    """(who set it back, in words; whether our change was seen)"""
    seen = held(at.state, case.plan)
    holds = case.watch is not None and case.watch.holds
    if seen.others:
        return seen.others[0], bool(seen.ours)
    if seen.before and (holds or is_long_ago(case, applied_at, at)):
        return "somebody else, such as its owner or an autoscaler, put the old value back", False
    return "", bool(seen.ours)


def is_long_ago(case: Case, applied_at: datetime, at: Moment) -> bool:
    """Whether the cluster has had time to show the patch: it may show the old value for a moment."""
    slept = case.watch.unseen + unseen(case.watch, at.now) if case.watch is not None else timedelta(0)
    return at.now >= applied_at + slept + at.settings.seen_within


def _why_not(case: Case, seen: Look, at: Moment) -> str:
    watch = case.watch
    if watch is None:
        return ""
    if not seen.is_wanted:
        return seen.words
    if watch.failing_since is not None and at.now >= watch.failing_since + at.settings.failing_for:
        (_, pod), cause = new_failures(watch, seen)[0]
        return f"pod {pod} fails: {cause}"
    no_progress = at.playbook.no_progress if at.playbook is not None else timedelta(minutes=15)
    over = overdue_at(watch, seen, no_progress)
    if over is not None and at.now >= over:
        not_counted = ", not counting time in which nobody could look" if watch.unseen else ""
        return f"no progress since {watch.progress_at:%H:%M:%S} UTC{not_counted}: {seen.words}"
    return ""


def _lease_over(case: Case, now: datetime) -> Case:
    if case.lease_until is not None and now >= case.lease_until:
        return not_reached(case, "the lease ended before the goal was reached", now)
    return case


def _succeeded(case: Case, words: str, now: datetime) -> Case:
    lent = case.lease_until is not None and can_give_back(case)
    why = f"goal reached: {words}" + (f"; lease until {case.lease_until:%Y-%m-%d %H:%M:%S} UTC" if lent else "")
    return moved(case, PlanState.SUCCEEDED, Stage.LENT if lent else Stage.OVER, now, why)


def _borrow(case: Case, now: datetime) -> Borrow | None:
    """What the first donor's mark says; the executor writes each donor's own numbers."""
    if not case.plan.lease or not case.plan.scales:
        return None
    scale = case.plan.scales[0]
    return Borrow(
        plan=case.id,
        hash=case.plan.hash,
        incident=case.plan.incident,
        workload="/".join(scale.workload),
        component=scale.component,
        before=scale.before,
        after=scale.after,
        until=now + case.plan.lease,
        by=case.decided_by,
        terms=replace(case.plan, considered=(), notes=(), not_preempted=""),
    )
