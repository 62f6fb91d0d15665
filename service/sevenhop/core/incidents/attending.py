"""How does an incident go on: what is in it now, is it over, and when is it looked at again?"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta

from msgspec.structs import replace

from sevenhop.core.effects import Effect
from sevenhop.core.incidents import lifecycle
from sevenhop.core.incidents.cause import MAINTENANCE
from sevenhop.core.incidents.context import Contexts
from sevenhop.core.incidents.hearing import is_hidden, seen_within
from sevenhop.core.incidents.incident import Incident, NotifyReason
from sevenhop.core.incidents.members import Member
from sevenhop.core.incidents.notify import next_look
from sevenhop.core.incidents.state import DeskState
from sevenhop.core.incidents.telling import FOR_EVER, maintenance_until, own_change_until, tell

SETTLING = timedelta(seconds=10)
"""After a start a first message waits so long for the cluster to be seen again; what is seen before is told before."""

LARGE = 50
"""Causes from which on an incident is looked at as a whole only once in `edit_interval`, unless something is urgent."""

LOOKS_WHILE_UNSEEN = 5
"""How often within `recall_wait` it is looked whether what a channel still shows can be seen."""


def attend(state: DeskState, key: str, contexts: Contexts, now: datetime) -> list[Effect]:
    """Bring one incident up to what is in it now, tell people or not, and say when it is looked at again."""
    incident = state.incidents.get(key)
    if incident is None or _can_wait(state, incident, now):
        return []
    causes, symptoms = state.causes(key), state.symptoms(key)
    left = state.places.take_departures(key)
    if causes:
        incident = state.put(lifecycle.with_members(incident, causes, symptoms, now))
        state.elsewhere.pop(key, None)
    elif incident.is_open and _waits_to_be_seen(state, incident, contexts, now):
        _appoint(state, state.incidents[key], causes, now)
        return []
    elif incident.is_open:
        # Where nothing left it, it was read back from a channel, and nothing of it ever fired again.
        incident = state.put(
            lifecycle.resolved(incident, left.reasons or [lifecycle.STATE_LOST], now, orphans=left.orphans)
        )
    elif not incident.is_open and _is_over(state, incident, now):
        state.forget(key)
        return []
    effects = tell(state, incident, causes, symptoms, contexts, now)
    _appoint(state, state.incidents[key], causes, now)
    return effects


def appoint_loaded(state: DeskState, now: datetime) -> None:
    """After a start everything stands as it was until its facts are known again, or known to be unknown."""
    settings = state.settings
    for key in state.loaded:
        incident = state.incidents[key]
        state.wakes.put(key, now + settings.refresh_interval)
        if not incident.told and incident.tell_at is not None:
            state.wakes.put(key, max(incident.tell_at, now + SETTLING))
        if incident.is_open and not incident.members and incident.told:
            # Read back from a channel by an earlier process: its wait begins anew, for nothing was seen since.
            incident = state.put(replace(incident, tell_at=now + seen_within(incident, state.rules, settings)))
            state.wakes.put(key, now + settings.recall_wait / LOOKS_WHILE_UNSEEN)
        if incident.resolved_at is not None:
            state.wakes.put(key, incident.resolved_at + settings.flap_window)
    state.loaded.clear()


def _can_wait(state: DeskState, incident: Incident, now: datetime) -> bool:
    """
    Whether a large incident was looked at as a whole a moment ago, and what is new is nothing that people wait for.

    Its row may then lag behind the alerts' rows; `load` puts alerts that are in no incident where they belong.
    """
    key = incident.key
    size = state.places.count(key)
    until = state.attended.get(key, now) + state.settings.edit_interval
    if size < LARGE or not incident.is_open or key in state.urgent or now >= until or key not in state.attended:
        state.urgent.discard(key)
        state.attended.pop(key, None)
        if size >= LARGE:
            state.attended[key] = now
        return False
    state.wakes.put_at_latest(key, until)
    return True


def _waits_to_be_seen(state: DeskState, incident: Incident, contexts: Contexts, now: datetime) -> bool:
    """Whether it was read back from a channel, and what it is about may still be found broken."""
    if incident.alerts or incident.tell_at is None or not incident.told:
        return False
    if is_hidden(incident, state.rules, contexts):
        incident = state.put(replace(incident, tell_at=now + seen_within(incident, state.rules, state.settings)))
    waits = incident.tell_at is not None and now < incident.tell_at
    if waits:
        state.decisions.note(now, incident.id, "", NotifyReason.NOT_DUE_UNSEEN)
    return waits


def _is_over(state: DeskState, incident: Incident, now: datetime) -> bool:
    if incident.resolved_at is None or state.plans.holds(incident.key):
        return False
    return now >= incident.resolved_at + state.settings.flap_window


def _appoint(state: DeskState, incident: Incident, causes: Sequence[Member], now: datetime) -> None:
    settings = state.settings
    receivers = dict.fromkeys([*(told.receiver for told in incident.told), ""])
    times = [next_look(incident, incident.told_to(r), now, settings) for r in receivers]
    if not incident.is_open:
        over = incident.resolved_at + settings.flap_window if incident.resolved_at else now
        # What is kept only for its plans is told by these, and looked at now and then.
        times.append(over if over > now else now + settings.refresh_interval)
    elif not causes:
        # While it waits to be seen: time counts from when it was last hidden, so look now and then.
        times += [incident.tell_at, now + settings.recall_wait / LOOKS_WHILE_UNSEEN]
    else:
        times.append(now + settings.refresh_interval * (1 + _share(incident.key)))
        blind = [m.alert.blind_since + settings.blind_grace for m in causes if m.alert.blind_since]
        ending = [m.alert.false_since + settings.ending_grace for m in causes if m.alert.false_since]
        times += [at for at in (*blind, *ending) if at > now]
        times.append(own_change_until(state, causes, now))
        felt = maintenance_until(state, causes) if incident.family == MAINTENANCE else FOR_EVER
        times.append(felt if now < felt < FOR_EVER else None)
    state.wakes.put(incident.key, min((at for at in times if at is not None), default=None))


def _share(key: str) -> float:
    """From 0 to 1, always the same for a key: incidents that opened together are not all looked at together."""
    return int(key[:4], 16) / 0x10000
