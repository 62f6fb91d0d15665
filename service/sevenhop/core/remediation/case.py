"""
One plan, and all that has become of it: what is kept over a restart, and what people are shown.

A value; every change of its state goes through `moved`, which knows the table of states.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from enum import StrEnum

import msgspec
from msgspec.structs import replace

from sevenhop.core.effects import Act, Borrow
from sevenhop.core.inventory.objects import Key
from sevenhop.core.remediation.guards_question import Approval
from sevenhop.core.remediation.permit import Purpose
from sevenhop.core.remediation.plan import Plan
from sevenhop.core.remediation.states import NEXT, PlanState

HISTORY_KEPT = 20
ANSWERS_KEPT = 20


class Stage(StrEnum):
    """What an open plan waits for; each has a time at which something happens even if nobody comes."""

    DECISION = "decision"  # of a person, until it expires
    TRYING = "trying"  # the answer to the dry run
    APPLYING = "applying"  # the answer to the patch
    READING = "reading"  # what the cluster says became of the patch
    VERIFYING = "verifying"  # the goal, or no progress
    UNDOING = "undoing"  # the answer to the undo
    LENT = "lent"  # the end of the lease, or room
    EXTENSION = "extension"  # a person: extend or restore
    RESTORING = "restoring"  # the answer to the restore
    SHADOW = "shadow"  # what happens without it
    OVER = "over"  # nothing


class Asked(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """The step that was asked for last, and is not answered."""

    id: str
    purpose: Purpose
    number: int
    at: datetime


class Watch(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """
    How a run goes on towards its goal.

    Attributes:
        score: Counts up with every pod that gets further; `words` say where they are.
        progress_at: When the score last rose.
        seen_at: When it was last looked at while it could be seen.
        is_blind: Whether it could not be seen at the last look; that time does not count.
        unseen: Time since the change in which nobody could look, or the clock was set: it counts for nothing.
        failures: (pod, cause) that were there before anything was changed.
        ready_before: Ready pods of whom it is for, or of the owner's other pods, before anything was changed.
        slot: The component of the pod that is made again; None for other plans.
        failing_since: Since when there is new failure evidence; None while there is none.
        holds: Our change was seen in the cluster.
    """

    score: int = 0
    words: str = ""
    progress_at: datetime
    seen_at: datetime
    is_blind: bool = False
    unseen: timedelta = timedelta(0)
    failures: tuple[tuple[Key, str], ...] = ()
    ready_before: int = 0
    slot: tuple[Key, str] | None = None
    failing_since: datetime | None = None
    holds: bool = False


class Answered(msgspec.Struct, frozen=True, gc=False):
    """What one request was told: asked again, it is told the same, and nothing is done twice."""

    request_id: str
    accepted: bool
    text: str


class Entry(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """
    One thing that happened: a line for people, and a record of the audit.

    Attributes:
        what: ``plan.approved``, ``decision.refused``, ``step.asked``, ``step.done``, …
        who: Verified id and name of the person who decided; empty where nobody did.
    """

    at: datetime
    what: str
    text: str
    who: str = ""


class Case(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """
    Attributes:
        since: When it came into its state; `why` are the words for people.
        decided_by: Names of those who decided, for people.
        steps: Steps asked for so far.
        started_at: When the first one was.
        has_applied: The one APPLY that a plan may have was asked for.
        applied_at: When the cluster was changed, as far as is known.
        attempts, retry_at: Of giving back.
        lease_until: When capacity is given back; None for what is not lent, or not any more.
        extensions: Who agreed to lend for longer, until that is written or too long ago.
        extended_from: The end of the lease before it was extended, until the new one is written.
        extend_asked_at, extend_until: Since when people are asked: extend or restore; and how long they may take.
        room_since: Since when there is room for the donor's replicas.
        others: Who changed the donor after us, in words; what they set stays.
        undo_why: Why it is undone.
        held_until: Until when alerts about the donors are explained by our own change.
        is_stopped: A person or a guard stopped it before anything was changed, which is no failure.
        cleanups: How often a mark that was left behind was taken off.
        pool: The pool whose waiting list it is for; empty for plans that mend one object.
        is_adopted: Found by its mark on the donor; the plan itself is not known to us.
        instead: Of a plan that was never carried out: what happened without it, and when.
        episode: `Incident.id` and how often it was opened then: a plan is for one opening.
        entries: The last things that happened to it, of `entered` in all.
    """

    plan: Plan
    state: PlanState
    since: datetime
    stage: Stage
    why: str = ""
    approvals: tuple[Approval, ...] = ()
    decided_by: str = ""
    reminded_at: datetime | None = None
    steps: int = 0
    asked: Asked | None = None
    has_applied: bool = False
    started_at: datetime | None = None
    applied_at: datetime | None = None
    attempts: int = 0
    retry_at: datetime | None = None
    borrow: Borrow | None = None
    watch: Watch | None = None
    lease_until: datetime | None = None
    extensions: tuple[Approval, ...] = ()
    extended_from: datetime | None = None
    extend_asked_at: datetime | None = None
    extend_until: datetime | None = None
    room_since: datetime | None = None
    others: str = ""
    undo_why: str = ""
    held_until: datetime | None = None
    is_stopped: bool = False
    cleanups: int = 0
    pool: str = ""
    is_adopted: bool = False
    instead: str = ""
    instead_at: datetime | None = None
    episode: str = ""
    answered: tuple[Answered, ...] = ()
    entries: tuple[Entry, ...] = ()
    entered: int = 0

    @property
    def id(self) -> str:
        return self.plan.id

    @property
    def is_over(self) -> bool:
        """Whether nothing comes of it by itself any more."""
        return self.stage is Stage.OVER

    @property
    def is_running(self) -> bool:
        """Whether it holds room, or is about to change something."""
        return self.state in (PlanState.APPROVED, PlanState.RUNNING)

    def answer_to(self, request_id: str) -> Answered | None:
        return next((each for each in self.answered if each.request_id == request_id), None)


def moved(case: Case, state: PlanState, stage: Stage, now: datetime, why: str, who: str = "") -> Case:
    """
    The case in another state.

    Raises:
        ValueError: The table of states does not allow it: a fault of ours, never to be stored.
    """
    if state is not case.state and state not in NEXT[case.state]:
        raise ValueError(f"plan {case.id}: {case.state} does not become {state}")
    since = case.since if state is case.state else now
    after = replace(case, state=state, stage=stage, since=since, why=why)
    return noted(after, now, f"plan.{state}", f"{state}: {why}", who)


def noted(case: Case, now: datetime, what: str, text: str, who: str = "") -> Case:
    """The case with one more thing that happened."""
    entry = Entry(at=now, what=what, text=text, who=who)
    return replace(case, entries=(*case.entries, entry)[-HISTORY_KEPT:], entered=case.entered + 1)


def lines_of(case: Case) -> list[str]:
    """What happened, for the history of the incident."""
    return [f"{entry.at:%H:%M:%S} plan {case.id} {entry.text}" for entry in case.entries]


def answered(case: Case, request_id: str, text: str, *, accepted: bool) -> Case:
    kept = (*case.answered, Answered(request_id, accepted, text))[-ANSWERS_KEPT:]
    return replace(case, answered=kept)


def ask(case: Case, purpose: Purpose, stage: Stage, now: datetime) -> Case:
    """
    The case with its next step asked for.

    Raises:
        ValueError: A second APPLY: a fault of ours, never to be stored.
    """
    if purpose is Purpose.APPLY and case.has_applied:
        raise ValueError(f"plan {case.id}: a plan is applied once")
    number = case.steps + 1
    asked = Asked(id=f"{case.id}/{number}-{purpose}", purpose=purpose, number=number, at=now)
    after = replace(
        case,
        stage=stage,
        steps=number,
        asked=asked,
        retry_at=None,
        has_applied=case.has_applied or purpose is Purpose.APPLY,
    )
    return noted(after, now, "step.asked", f"step {number} asked for: {purpose}")


def act_of(case: Case) -> Act | None:
    """The step that is asked for and not answered; asked for again, it has the same id and content."""
    asked = case.asked
    if asked is None:
        return None
    lends = asked.purpose is not Purpose.DRY_RUN
    return Act(
        id=asked.id,
        incident=case.plan.incident,
        revision=asked.number,
        plan=case.plan,
        purpose=asked.purpose,
        number=asked.number,
        borrow=case.borrow if lends else None,
        note=_note(case, asked.purpose),
        needs_mark=case.is_adopted or case.cleanups > 0,
        was_applied=case.applied_at is not None,
    )


def _note(case: Case, purpose: Purpose) -> str:
    by = f", approved by {case.decided_by}" if case.decided_by else ""
    for_whom = ""
    if case.plan.need is not None:
        for_whom = f" for {'/'.join(case.plan.need.workload)}/{case.plan.need.component}"
    until = f"{case.lease_until:%Y-%m-%d %H:%M:%S} UTC" if case.lease_until is not None else ""
    done = {
        Purpose.UNDO: f"undone: {case.undo_why}",
        Purpose.RESTORE: f"given back: {case.undo_why}",
        Purpose.EXTEND: f"the lease was extended until {until}",
    }.get(purpose)
    return f"{case.plan.title}{for_whom} (plan {case.id}{by})" + (f"; {done}" if done else "")
