"""What is told of an incident, to whom, and why not?"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime

from msgspec.structs import replace

from sevenhop.core.effects import Effect
from sevenhop.core.incidents.addressing import receivers_for, silence_over
from sevenhop.core.incidents.cause import MAINTENANCE
from sevenhop.core.incidents.context import Contexts
from sevenhop.core.incidents.draft import Draft, notify_of, told_after
from sevenhop.core.incidents.incident import Incident, NotifyReason
from sevenhop.core.incidents.members import Member
from sevenhop.core.incidents.message import Situation, in_order, summary_of
from sevenhop.core.incidents.notify import Decision, Loud, Quiet, is_flapping, notify_reason
from sevenhop.core.incidents.state import DeskState
from sevenhop.core.subject import Hop

_DETAILS_KEPT = 20
FOR_EVER = datetime.max.replace(tzinfo=UTC)


def tell(
    state: DeskState,
    incident: Incident,
    causes: Sequence[Member],
    symptoms: Sequence[Member],
    contexts: Contexts,
    now: datetime,
) -> list[Effect]:
    """Decide for each receiver whether a message is due, and note why or why not; returns the messages."""
    silence = silence_over(incident, [*causes, *symptoms], state.silences.values(), now) if causes else None
    plan = state.plans.words(incident.key)
    quiet = Quiet(
        maintenance=incident.family == MAINTENANCE and now < maintenance_until(state, [*causes, *symptoms]),
        silence=silence is not None,
        flapping=is_flapping(incident.openings, now, state.settings),
        own_change=own_change_until(state, causes, now) is not None,
    )
    situation = Situation(
        causes=tuple(causes),
        symptoms=tuple(symptoms),
        silence=silence,
        is_flapping=quiet.flapping,
        is_unseen=bool(causes) and all(_is_unseen(state, member) for member in causes),
        elsewhere=_explaining_title(state, incident),
        plan=plan,
    )
    draft = Draft(incident, situation, contexts, now, state.settings)
    decided = _decide(state, incident, draft, situation, quiet, now)
    if not decided:
        return []
    incident = replace(incident, revision=incident.revision + 1)
    if incident.is_open:
        written = draft.message
        incident = replace(
            incident,
            title=draft.title,
            heading=written.title,
            lines=written.lines,
            details=written.details[:_DETAILS_KEPT],
        )
    effects: list[Effect] = []
    for receiver, decision in decided:
        notify = notify_of(incident, receiver, decision.reason, draft.message)
        effects.append(notify)
        incident = replace(incident, told=told_after(incident, notify, decision.reason, draft.shown(), now, plan.asks))
    state.put(incident)
    return effects


def _decide(
    state: DeskState, incident: Incident, draft: Draft, situation: Situation, quiet: Quiet, now: datetime
) -> list[tuple[str, Decision]]:
    """(receiver, decision) of those who are told something; every decision is noted, with its reason."""
    notes = state.decisions
    if not incident.is_open and not incident.told:
        notes.note(now, incident.id, "", NotifyReason.NOT_DUE_NEVER_TOLD)
    loud = [
        Loud(m.alert.rule_id, m.severity, holds=m.alert.false_since is None and m.alert.blind_since is None)
        for m in situation.causes
    ]
    decided: list[tuple[str, Decision]] = []
    for receiver in receivers_for(incident, [*situation.causes, *situation.symptoms], state.settings):
        told, asks = incident.told_to(receiver), situation.plan.asks
        decision = notify_reason(incident, told, draft.shown, loud, quiet, now, state.settings, asks=asks)
        silence = situation.silence if decision.reason is NotifyReason.NOT_DUE_SILENCED else None
        notes.note(now, incident.id, receiver, decision.reason, silence.id if silence is not None else "")
        if decision.withheld is not None:
            notes.note(now, incident.id, f"{receiver} (anew)", decision.withheld)
        if decision.reason.is_due:
            decided.append((receiver, decision))
    return decided


def maintenance_until(state: DeskState, members: Iterable[Member]) -> datetime:
    """
    Until when work on a node keeps these back; for ever, unless users feel any of them.

    What is critical and does less than it must for longer than moved pods take is not what whoever works there meant.
    """
    felt = [member.alert.since + state.settings.maintenance_hides for member in members if member.hits_users]
    return min(felt, default=FOR_EVER)


def own_change_until(state: DeskState, causes: Sequence[Member], now: datetime) -> datetime | None:
    """Until when all of it is explained by what we changed under approval; None where it is not."""
    times = []
    for member in causes:
        labels = member.alert.labels
        about_count = member.hop is Hop.SCHEDULING or (member.rule and "component.ready" in member.rule.reads)
        place = (labels.get("namespace", ""), labels.get("workload", ""), labels.get("component", ""))
        until = state.plans.own_change_until(*place) if about_count and place[1] else None
        if until is None or until <= now:
            return None
        times.append(until)
    return min(times, default=None)


def _is_unseen(state: DeskState, member: Member) -> bool:
    """Whether the cluster does not show now what it is about: nobody can see, or it fires on for a while only."""
    if member.alert.false_since is not None:
        return True
    return member.alert.blind_since is not None or state.members.is_unseen(member.alert.fingerprint)


def _explaining_title(state: DeskState, incident: Incident) -> str:
    causes = state.causes(state.elsewhere.get(incident.key, ""))
    return summary_of(in_order(causes)[0]) if causes and not incident.is_open else ""
