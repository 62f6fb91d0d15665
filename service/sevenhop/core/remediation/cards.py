"""What a message says of plans: the lines, the card with its buttons, and why there is none."""

from __future__ import annotations

from typing import Protocol

from sevenhop.core.effects import Line, PlanCard, Role
from sevenhop.core.events import Verb
from sevenhop.core.incidents.plans import NO_WORDS, PlanWords
from sevenhop.core.incidents.text import plain, shorten
from sevenhop.core.remediation.case import Case, Stage, lines_of
from sevenhop.core.remediation.plan import Answer, NoPlanReason, Plan, changed
from sevenhop.core.remediation.runs import stays
from sevenhop.core.remediation.states import PlanState

QUESTION_MOST = 299
LABEL = "PLAN"


class PlanLines(Protocol):
    """A plan in plain, short lines."""

    def __call__(self, plan: Plan) -> list[str]: ...


def words_of_case(case: Case, plan_lines: PlanLines) -> PlanWords:
    if case.state is PlanState.SHADOWED:
        # Nobody is asked, so there is nothing to click on.
        line = Line(Role.PLAN, f"Shadow plan {case.id}", plain(f"{case.plan.title}; recorded, nobody is asked", 300))
        return PlanWords(lines=(line,), history=tuple(lines_of(case)))
    lines = [Line(Role.PLAN, f"{LABEL} {case.id}", plain(text, 400)) for text in plan_lines(case.plan)[:12]]
    state = Line(Role.PLAN, "Plan is", plain(state_text(case), 300))
    shown = [*lines, state] if case.state is PlanState.PROPOSED else [*lines[:1], state]
    return PlanWords(card=card_of(case), lines=tuple(shown), history=tuple(lines_of(case)), asks=_asks(case))


def words_of_answer(answer: Answer) -> PlanWords:
    """Why nothing is offered; nothing at all where nobody asked for it."""
    if answer.reason in (None, NoPlanReason.OFF, NoPlanReason.NO_PLAYBOOK) or not answer.text:
        return NO_WORDS
    lines = [Line(Role.PLAN, "No plan", plain(answer.text, 300))]
    looked = [f"{plain(each.who, 60)} ({plain(each.text, 80)})" for each in answer.considered]
    if looked:
        more = f" (+{len(looked) - 4})" if len(looked) > 4 else ""
        lines.append(Line(Role.PLAN, "Also looked at", " · ".join(looked[:4]) + more))
    return PlanWords(lines=tuple(lines))


def lines_of_end(case: Case) -> tuple[Line, ...]:
    """How the last plan ended, beside why there is no other; nothing of one that was only overtaken."""
    if case.state in (PlanState.SUPERSEDED, PlanState.SHADOWED):
        return ()
    return (Line(Role.PLAN, f"Last plan {case.id}", plain(f"{case.plan.title}: {state_text(case)}", 300)),)


def card_of(case: Case) -> PlanCard:
    until = case.extend_until or case.lease_until or case.plan.expires_at
    return PlanCard(
        plan_id=case.id,
        plan_hash=case.plan.hash,
        state=case.state,
        question=question_of(case),
        buttons=buttons_of(case),
        expires_at=until,
    )


def buttons_of(case: Case) -> tuple[str, ...]:
    if case.stage is Stage.DECISION:
        return (Verb.APPROVE, Verb.REJECT)
    if case.stage is Stage.EXTENSION:
        return (Verb.EXTEND, Verb.RESTORE)
    if case.stage is Stage.LENT:
        return (Verb.RESTORE,)
    if case.stage is Stage.VERIFYING or stays(case):
        return (Verb.UNDO,)
    return ()


def question_of(case: Case) -> str:
    """What a person agrees to: objects and numbers."""
    plan = case.plan
    whom = f" for {'/'.join(plan.need.workload)}/{plan.need.component}" if plan.need is not None else ""
    lease = f"; given back after {_hours(plan.lease.total_seconds())}" if plan.lease else ""
    helps, cases = plan.helps_first
    lease += f"; helps in {helps} of {cases} cases of who is tried first" if helps < cases else ""
    objects = ", ".join(str(ref) for ref in changed(plan))
    text = f"{plan.title}{whom}{lease}. Changes: {objects}" if objects else f"{plan.title}{whom}{lease}"
    if case.stage is Stage.EXTENSION:
        text = f"The lease of {plan.title}{whom} has ended in a shortage: extend it, or restore the donor?"
    return shorten(plain(text), QUESTION_MOST)


def state_text(case: Case) -> str:
    """Where it stands, for people."""
    if case.state is PlanState.PROPOSED:
        text = f"waits for a decision until {case.plan.expires_at:%H:%M:%S} UTC"
        return f"{text}; approved so far by {case.decided_by}" if case.approvals else text
    if case.stage is Stage.TRYING:
        return f"approved by {case.decided_by}; tried on the API server first"
    if case.stage in (Stage.APPLYING, Stage.READING):
        return f"approved by {case.decided_by}; being carried out"
    if case.stage is Stage.VERIFYING:
        return f"carried out, approved by {case.decided_by}; {case.watch.words if case.watch else ''}"
    if case.stage in (Stage.UNDOING, Stage.RESTORING):
        return f"being given back: {case.undo_why}"
    if case.stage is Stage.EXTENSION:
        return f"the lease has ended in a shortage: extend or restore? Without an answer it is restored{_so_far(case)}"
    if case.state is PlanState.SHADOWED:
        return "shadow mode: recorded, nobody is asked"
    said = f"{case.state}: {case.why}"
    told = not case.decided_by or case.decided_by in said
    return said if told else f"{said}; approved by {case.decided_by}"


def asks_after(case: Case) -> str:
    """
    What is asked aloud once a run has failed: whoever agreed may have gone back to sleep, and nobody else was woken.

    Nothing after what a person took back, or what was stopped before anything was changed: they know.
    """
    failed = case.state in (PlanState.FAILED, PlanState.UNDONE, PlanState.UNKNOWN) and case.started_at is not None
    is_by_person = case.is_stopped or any(entry.what == "decision.undo" for entry in case.entries)
    return f"{case.id} {case.state}" if failed and not is_by_person else ""


def title_lines(plan: Plan) -> list[str]:
    """The least that must be said of a plan."""
    lines = [plan.title]
    if plan.not_preempted:
        lines.append(f"not preempted: {plan.not_preempted}")
    if plan.considered:
        lines.append("also looked at: " + " · ".join(f"{each.who} ({each.text})" for each in plan.considered[:4]))
    return lines


def _so_far(case: Case) -> str:
    names = ", ".join(plain(each.person.name or each.person.id, 80) for each in case.extensions)
    return f"; {names} would extend it, and not enough people yet" if names else ""


def _asks(case: Case) -> str:
    if case.stage is Stage.EXTENSION and case.extend_asked_at is not None:
        return f"{case.id} extend {case.extend_asked_at.isoformat()}"
    if case.stage is Stage.DECISION and case.reminded_at is not None:
        return f"{case.id} reminder"
    return ""


def _hours(seconds: float) -> str:
    return f"{seconds / 3600:g} h" if seconds >= 3600 else f"{seconds / 60:g} min"
