"""What people and channels say: a silence, what came of a message, what a channel still shows that we forgot."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta

from msgspec.structs import replace

from sevenhop.core.alerts.rule import Rule, Severity, Verdict
from sevenhop.core.events import Outcome, Recalled, Silenced
from sevenhop.core.incidents.context import Contexts
from sevenhop.core.incidents.incident import Incident, NotifyReason, Told
from sevenhop.core.incidents.lifecycle import opened
from sevenhop.core.incidents.members import Home
from sevenhop.core.incidents.settings import DeskSettings
from sevenhop.core.incidents.silences import silence_of
from sevenhop.core.incidents.state import DeskState
from sevenhop.core.subject import Subject


def hear_silence(state: DeskState, event: Silenced) -> None:
    """A person sets a silence, changes it, or ends it."""
    try:
        silence = silence_of(event)
    except ValueError as error:
        state.complain(f"silence {event.silence_id} of {event.author}: {error}")
        return
    if silence.expires_at > event.at:
        if state.silences.get(silence.id) != silence:
            state.put_silence(silence)
    elif silence.id in state.silences:
        state.drop_silence(silence.id)


def hear_outcome(state: DeskState, event: Outcome) -> None:
    """A channel answered a message; what it refused for good is tried again later."""
    key, receiver = address_of(event)
    incident = state.incidents.get(key)
    after = after_outcome(incident, event) if incident is not None else None
    if incident is None or after is None:
        return
    state.put(after)
    if not event.delivered:
        state.decisions.note(event.at, incident.id, receiver, NotifyReason.NOT_DUE_REFUSED, event.detail[:200])
        state.wakes.put_at_latest(key, event.at + state.settings.refused_retry)


def hear_recalled(state: DeskState, event: Recalled) -> None:
    """A channel shows an incident that we may have forgotten."""
    known = state.episodes.get(event.key)
    if known is None or known.count < event.episode:
        state.count(event.key, event.episode, event.at)
    try:
        incident = after_recall(state.incidents.get(event.key), event, state.cluster, state.settings)
    except ValueError as error:
        state.complain(f"{event.receiver} shows an incident that cannot be read: {error}")
        return
    if incident is not None:
        if not incident.members:
            incident = replace(incident, tell_at=event.at + seen_within(incident, state.rules, state.settings))
        state.put(incident)
        state.touched.add(event.key)


def address_of(event: Outcome) -> tuple[str, str]:
    """(key of the incident, receiver) of the effect that an outcome is about."""
    place, _, _ = event.effect_id.rpartition("/")
    incident_id, _, receiver = place.partition("/")
    return incident_id.rpartition("-")[0], receiver


def after_outcome(incident: Incident, event: Outcome) -> Incident | None:
    """
    The incident with what its receiver answered; None where the outcome is about another episode, or says nothing new.

    What was refused for good counts as not shown: it is sent again later, while it is still true.
    """
    _, receiver = address_of(event)
    told = incident.told_to(receiver)
    if told is None or not event.effect_id.startswith(f"{incident.id}/"):
        return None
    if event.delivered:
        after = replace(told, reference=event.reference or told.reference, refused_at=None)
    else:
        after = replace(told, content="", fine="", refused_at=event.at)
    if after == told:
        return None
    return replace(incident, told=tuple(after if each is told else each for each in incident.told))


def after_recall(known: Incident | None, event: Recalled, cluster: str, settings: DeskSettings) -> Incident | None:
    """
    An incident as a channel still shows it, waiting for its alerts to be seen again; None where we know better.

    Raises:
        ValueError: What was kept with the message cannot be read.
    """
    if not event.is_open or (known is not None and known.episode > event.episode):
        return None
    home = Home(Subject.parse(event.cause), event.family)
    if home.key(cluster) != event.key:
        return None  # another cluster's Sevenhop speaks in the same channel
    incident = known
    if incident is None or incident.episode < event.episode:
        incident = opened(event.key, cluster, home, event.episode, event.at, settings.recall_wait, adopt=False)
        incident = replace(
            incident, opened_at=event.opened_at, since=event.opened_at, title=event.title, rules=event.causes
        )
    if incident.told_to(event.receiver) is not None:
        return None
    severity = Severity(event.severity)
    told = Told(
        receiver=event.receiver,
        revision=event.revision,
        at=event.at,
        severity=severity,
        causes=event.causes,
        content="",
        reference=event.reference,
        loud_at=event.at,
    )
    return replace(
        incident,
        told=(*incident.told, told),
        revision=max(incident.revision, event.revision),
        severity=max(incident.severity, severity, key=lambda each: each.rank),
    )


def is_hidden(incident: Incident, rules: Mapping[str, Rule], contexts: Contexts) -> bool:
    """
    Whether nobody can say now that an incident that was read back is over.

    Its alerts are forgotten, so its cause is asked: what cannot be seen, or what its rules find unknown, is not well.
    """
    if contexts.is_hidden(incident.cause):
        return True
    facts = contexts.facts.get(incident.cause)
    if facts is None:
        return False  # it is gone, or a rule about something else names it: then that something is visible
    own = [rules[name] for name in incident.rules if name in rules and rules[name].subject is incident.cause.kind]
    return any(rule.evaluate(facts).verdict is Verdict.UNKNOWN for rule in own)


def seen_within(incident: Incident, rules: Mapping[str, Rule], settings: DeskSettings) -> timedelta:
    """How long it may take an incident that was read back to fire again: its rules' clocks began anew."""
    holds = [rules[name].hold for name in incident.rules if name in rules]
    return settings.recall_wait + max(holds, default=timedelta(0))
