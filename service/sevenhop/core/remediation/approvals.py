"""
What a person's decision does to a plan: taken once, by those who may, for exactly what they saw; everything else is
answered with the reason, and changes nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta

import msgspec
from msgspec.structs import replace

from sevenhop.core.events import Decided, Verb
from sevenhop.core.incidents.text import plain
from sevenhop.core.remediation.case import Case, Stage, answered, ask, moved, noted
from sevenhop.core.remediation.guards_people import cannot_be_compared, humans
from sevenhop.core.remediation.guards_question import Approval, GuardLimits
from sevenhop.core.remediation.permit import GuardName, Purpose, Refusal
from sevenhop.core.remediation.person import Person
from sevenhop.core.remediation.playbook import Playbook
from sevenhop.core.remediation.runs import STALE, can_give_back, give_back, stays
from sevenhop.core.remediation.states import PlanState

NAME_MOST = 80
COMMENT_MOST = 200

NOT_COMPARED = (
    "who decides in Slack and who decides elsewhere may be the same person: decide in the same way, or with "
    "identities that carry an e-mail address"
)

Guards = Callable[[Case, Purpose], tuple[Refusal, ...]]
"""What stands against the next step of a case, for this purpose, were everything decided as it is."""

_GOOD_FOR = GuardLimits().approval_good_for

_LATER = frozenset({GuardName.APPROVED})
"""What the first of two approvers cannot fulfil alone."""


class Decision(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """
    Attributes:
        case: As it is afterwards.
        is_stale: The plan does not fit the cluster any more; another may.
        is_stranger: Whoever asked may not decide at all: that is for the audit, and no part of the plan's history.
    """

    case: Case
    accepted: bool
    text: str
    is_stale: bool = False
    is_stranger: bool = False


def decide(
    case: Case,
    event: Decided,
    playbook: Playbook | None,
    guards: Guards,
    now: datetime,
    *,
    good_for: timedelta = _GOOD_FOR,
) -> Decision:
    """
    Take one decision into account; the same request again is told the same, and does nothing.

    Args:
        now: When it is taken; not before `event.at`.
        good_for: So long one person's yes to lend for longer waits for another's.
    """
    known = case.answer_to(event.request_id)
    if known is not None:
        return Decision(case=case, accepted=known.accepted, text=known.text)
    against = _not_allowed(event.person, playbook, case, event)
    if against:
        return Decision(case=case, accepted=False, text=against, is_stranger=True)
    if event.plan_hash and event.plan_hash != case.plan.hash:
        return _refused(case, event, now, f"plan {case.id} is not what you saw; look at it again")
    if event.verb is Verb.APPROVE:
        decision = _approve(case, event, playbook, guards, now)
    elif event.verb is Verb.REJECT:
        decision = _reject(case, event, now)
    elif event.verb is Verb.UNDO:
        decision = _undo(case, event, now)
    elif event.verb is Verb.EXTEND:
        decision = _extend(case, event, playbook, guards, now, good_for)
    else:
        decision = _restore(case, event, now)
    if not decision.accepted:
        return decision
    kept = answered(decision.case, event.request_id, decision.text, accepted=True)
    return replace(decision, case=kept)


def name_of(person: Person) -> str:
    """As people call them, on one line: anybody may choose their name."""
    return plain(person.name or person.id, NAME_MOST)


def who_of(person: Person, via: str) -> str:
    """As the audit names a person: the verified id first."""
    who, name = plain(person.id), name_of(person)
    named = f"{who} ({name})" if name != who else who
    return f"{named} via {via}" if via else named


def _not_allowed(person: Person, playbook: Playbook | None, case: Case, event: Decided) -> str:
    if playbook is None:
        return f"playbook {case.plan.playbook} is off or no more, so nobody may decide about plan {case.id}"
    if not playbook.approvers:
        return f"{name_of(person)} may not {event.verb} plans of {playbook.id}: it names no approvers, so nobody may"
    if not person.is_one_of(playbook.approvers):
        return f"{name_of(person)} may not {event.verb} plans of {playbook.id}; ask one of its approvers"
    return ""


def _refused(case: Case, event: Decided, now: datetime, text: str, *, is_stale: bool = False) -> Decision:
    who = who_of(event.person, event.via)
    after = noted(case, now, "decision.refused", f"{event.verb} by {name_of(event.person)} refused: {text}", who)
    after = answered(after, event.request_id, text, accepted=False)
    return Decision(case=after, accepted=False, text=text, is_stale=is_stale)


def _approve(case: Case, event: Decided, playbook: Playbook | None, guards: Guards, now: datetime) -> Decision:
    name, who = name_of(event.person), who_of(event.person, event.via)
    if case.state is not PlanState.PROPOSED or playbook is None:
        return _refused(case, event, now, f"{_as_it_is(case)}; nothing was done")
    if now >= case.plan.expires_at:
        return _refused(case, event, now, f"plan {case.id} expired at {case.plan.expires_at:%H:%M:%S} UTC")
    before = _still_allowed(case.approvals, playbook)
    if any(not approval.person.ids.isdisjoint(event.person.ids) for approval in before):
        return _refused(case, event, now, f"{name} has approved plan {case.id} already; another person is needed")
    approval = Approval(person=event.person, plan_id=case.id, plan_hash=case.plan.hash, at=event.at, via=event.via)
    approvals = (*before, approval)
    needed = max(1, playbook.approvals)
    count = humans(each.person for each in approvals)
    names = ", ".join(name_of(each.person) for each in approvals)
    with_it = replace(case, approvals=approvals, decided_by=names)
    against = [each for each in guards(with_it, Purpose.DRY_RUN) if count >= needed or each.guard not in _LATER]
    if against:
        first = against[0]
        return _refused(case, event, now, first.text, is_stale=any(each.guard in STALE for each in against))
    if count < needed:
        text = f"approved by {name}; {needed - count} more of {needed} people must agree to plan {case.id}"
        if cannot_be_compared([each.person for each in approvals]):
            text += f"; {NOT_COMPARED}"
        return Decision(case=noted(with_it, now, "decision.approve", text, who), accepted=True, text=text)
    after = moved(with_it, PlanState.APPROVED, Stage.TRYING, now, f"approved by {names}", who)
    after = ask(replace(after, started_at=now), Purpose.DRY_RUN, Stage.TRYING, now)
    return Decision(case=after, accepted=True, text=f"plan {case.id} is approved by {names} and begins with a dry run")


def _reject(case: Case, event: Decided, now: datetime) -> Decision:
    if case.state is not PlanState.PROPOSED:
        return _refused(case, event, now, f"{_as_it_is(case)}; nothing was done")
    name = name_of(event.person)
    why = f"rejected by {name}" + (f": {plain(event.comment, COMMENT_MOST)}" if event.comment else "")
    after = moved(case, PlanState.REJECTED, Stage.OVER, now, why, who_of(event.person, event.via))
    return Decision(case=replace(after, decided_by=name), accepted=True, text=f"plan {case.id} is rejected")


def _undo(case: Case, event: Decided, now: datetime) -> Decision:
    name, who = name_of(event.person), who_of(event.person, event.via)
    why = f"undone by {name}"
    if case.state is PlanState.APPROVED:
        after = moved(case, PlanState.FAILED, Stage.OVER, now, f"stopped by {name}; nothing was changed", who)
        return Decision(
            case=replace(after, asked=None, is_stopped=True),
            accepted=True,
            text=f"plan {case.id} is stopped; nothing was changed",
        )
    if case.stage in (Stage.LENT, Stage.EXTENSION) or stays(case):
        return _restore(case, event, now)
    if case.stage in (Stage.UNDOING, Stage.RESTORING):
        return _refused(case, event, now, f"plan {case.id} is being given back already")
    if case.state not in (PlanState.RUNNING, PlanState.UNKNOWN):
        return _refused(case, event, now, f"{_as_it_is(case)}; there is nothing to undo")
    if not can_give_back(case):
        return _refused(case, event, now, f"the steps of plan {case.id} cannot be undone")
    noted_case = noted(case, now, "decision.undo", why, who)
    return Decision(
        case=give_back(noted_case, Purpose.UNDO, why, now), accepted=True, text=f"plan {case.id} is being undone"
    )


def _extend(
    case: Case, event: Decided, playbook: Playbook | None, guards: Guards, now: datetime, good_for: timedelta
) -> Decision:
    """
    Lend for longer: decided by as many people as the plan was, and not while everything is stopped.

    The owner was promised it back by now, so this takes; only giving back is one person's to say.
    """
    if case.stage not in (Stage.LENT, Stage.EXTENSION) or case.lease_until is None or playbook is None:
        return _refused(case, event, now, f"{_as_it_is(case)}; there is no lease to extend")
    name, who = name_of(event.person), who_of(event.person, event.via)
    before = tuple(each for each in _still_allowed(case.extensions, playbook) if now - each.at <= good_for)
    if any(not each.person.ids.isdisjoint(event.person.ids) for each in before):
        return _refused(case, event, now, f"{name} has agreed to that already; another person is needed")
    agreed = Approval(person=event.person, plan_id=case.id, plan_hash=case.plan.hash, at=event.at, via=event.via)
    with_it = replace(case, extensions=(*before, agreed))
    needed = max(1, playbook.approvals)
    count = humans(each.person for each in with_it.extensions)
    against = [each for each in guards(with_it, Purpose.EXTEND) if count >= needed or each.guard not in _LATER]
    if against:
        return _refused(case, event, now, f"the lease is not extended: {against[0].text}")
    if count < needed:
        text = f"{name} would extend the lease; {needed - count} more of {needed} people must agree"
        if cannot_be_compared([each.person for each in with_it.extensions]):
            text += f"; {NOT_COMPARED}"
        return Decision(case=noted(with_it, now, "decision.extend", text, who), accepted=True, text=text)
    # From now on: two who click at once, or one who clicks often, do not add up.
    until = max(case.lease_until, now + case.plan.lease)
    names = ", ".join(name_of(each.person) for each in with_it.extensions)
    text = f"lease extended by {names} until {until:%Y-%m-%d %H:%M:%S} UTC"
    after = replace(
        with_it,
        stage=Stage.LENT,
        lease_until=until,
        extended_from=case.extended_from or case.lease_until,
        extend_asked_at=None,
        extend_until=None,
        why=text,
    )
    after = noted(after, now, "decision.extend", text, who)
    if after.borrow is None:
        return Decision(case=replace(after, extensions=(), extended_from=None), accepted=True, text=text)
    # The marks say until when, too: with our state lost they are all that is known.
    after = ask(replace(after, borrow=replace(after.borrow, until=until)), Purpose.EXTEND, Stage.LENT, now)
    return Decision(case=after, accepted=True, text=text)


def _restore(case: Case, event: Decided, now: datetime) -> Decision:
    lent = case.stage in (Stage.LENT, Stage.EXTENSION) or stays(case)
    if not lent and case.state is not PlanState.UNKNOWN:
        return _refused(case, event, now, f"{_as_it_is(case)}; there is nothing to give back")
    if not can_give_back(case):
        return _refused(case, event, now, f"the steps of plan {case.id} cannot be taken back")
    why = f"given back by {name_of(event.person)}"
    after = noted(case, now, f"decision.{event.verb}", why, who_of(event.person, event.via))
    after = give_back(after, Purpose.RESTORE, why, now)
    return Decision(case=after, accepted=True, text=f"plan {case.id} is being taken back")


def _still_allowed(given: tuple[Approval, ...], playbook: Playbook) -> tuple[Approval, ...]:
    """Without those of people who were taken off the list since: these count no more, and must not block others'."""
    return tuple(each for each in given if each.person.is_one_of(playbook.approvers))


def _as_it_is(case: Case) -> str:
    return f"plan {case.id} is {case.state} since {case.since:%H:%M:%S} UTC ({case.why})"
