"""Which incident does this alert join, and does it open one?"""

from __future__ import annotations

from datetime import datetime, timedelta

from msgspec.structs import replace

from sevenhop.core.alerts.alert import Alert, AlertChanged, AlertState
from sevenhop.core.incidents import lifecycle
from sevenhop.core.incidents.cause import MAINTENANCE
from sevenhop.core.incidents.context import Contexts
from sevenhop.core.incidents.incident import NotifyReason
from sevenhop.core.incidents.members import Home
from sevenhop.core.incidents.state import DeskState

_LOOKED_AT = 200
"""Members of an incident that a refresh looks at."""


def take(
    state: DeskState, change: AlertChanged, touched: set[str], unsettled: set[str], contexts: Contexts, now: datetime
) -> None:
    """
    One alert fires, fires on or ended.

    Args:
        touched: Keys of incidents that it changes are added.
        unsettled: Fingerprints of alerts that may belong elsewhere because of it are added.
    """
    alert = change.alert
    fingerprint = alert.fingerprint
    if alert.state is AlertState.FIRING:
        state.members.put(alert, state.rules.get(alert.rule_id))
        unsettled |= state.members.look(fingerprint, contexts, now)
        place = state.places.of(fingerprint)
        if place is not None:
            _tell_sooner(state, place[0], alert, now)
            _mark_urgent(state, fingerprint, place[0])
            touched.add(place[0])
    elif fingerprint in state.members:
        unsettled |= state.members.following(state.members.drop(fingerprint))
        unsettled.discard(fingerprint)
        place = state.places.leave(fingerprint)
        if place is not None:
            state.places.note_end(place[0], str(change.reason))
            touched.add(place[0])


def look_again(state: DeskState, key: str, contexts: Contexts, now: datetime) -> set[str]:
    """See which pods the alerts of an incident are about now; returns those to be settled again."""
    unsettled: set[str] = set()
    for fingerprint in [*state.places.causes(key), *state.places.symptoms(key)][:_LOOKED_AT]:
        unsettled |= state.members.look(fingerprint, contexts, now)
    return unsettled


def settle(state: DeskState, unsettled: set[str], contexts: Contexts, now: datetime) -> set[str]:
    """Move alerts to where they belong; returns the keys of incidents that they left or joined."""
    if not unsettled:
        return set()
    state.members.settle(unsettled, lambda key: _stands(state, key, now), contexts, now)
    touched: set[str] = set()
    for fingerprint in sorted(state.members.following(unsettled)):
        home, is_cause = state.members.place(fingerprint)
        key = home.key(state.cluster)
        before = state.places.leave(fingerprint)
        if before is not None and before != (key, is_cause):
            _note_move(state, before, key)
            touched.add(before[0])
        state.places.join(fingerprint, key, is_cause=is_cause)
        if before == (key, is_cause):
            continue
        _mark_urgent(state, fingerprint, key)
        touched.add(key)
        is_rehomed = before is not None and not before[1]
        wait = _rehome_wait(state, fingerprint, now) if is_rehomed else state.settings.group_wait
        _begin(state, key, home, now, wait)
        _note_place(state, fingerprint, home, now, is_cause=is_cause)
    return touched


def _stands(state: DeskState, key: str, now: datetime) -> bool:
    """Whether an incident is open and past its first wait."""
    incident = state.incidents.get(key)
    return incident is not None and incident.is_open and incident.tell_at is not None and incident.tell_at <= now


def _note_move(state: DeskState, before: tuple[str, bool], key: str) -> None:
    left, was_cause = before
    if left == key:
        return
    if was_cause:
        state.places.note_end(left, lifecycle.EXPLAINED)
        state.elsewhere[left] = key
    else:
        state.places.note_orphan(left)


def _note_place(state: DeskState, fingerprint: str, home: Home, now: datetime, *, is_cause: bool) -> None:
    if not is_cause:
        by = [state.members[fp].alert for fp in state.members.explanation(fingerprint)]
        named = [f"{alert.rule_id} on {alert.subject}" for alert in by]
        state.decisions.note(now, fingerprint, "", NotifyReason.NOT_DUE_INHIBITED, ", ".join(named[:3]))
    elif home.family == MAINTENANCE:
        state.decisions.note(now, fingerprint, "", NotifyReason.NOT_DUE_MAINTENANCE, home.cause.name)


def _rehome_wait(state: DeskState, fingerprint: str, now: datetime) -> timedelta:
    """
    How long a symptom whose cause has ended waits before it is told by itself.

    One that is not true any more, and only kept, ends by itself: telling it then would be about nothing.
    """
    member = state.members[fingerprint]
    wait = max(state.settings.rehome_wait, state.settings.group_wait)
    if member.alert.false_since is None or member.rule is None:
        return wait
    return max(wait, member.alert.false_since + member.rule.keep_firing - now + state.settings.group_wait)


def _tell_sooner(state: DeskState, key: str, alert: Alert, now: datetime) -> None:
    """What was to end by itself is true again."""
    incident = state.incidents.get(key)
    if incident is None or incident.told or incident.tell_at is None or alert.false_since is not None:
        return
    if incident.tell_at > now + state.settings.rehome_wait:
        state.put(replace(incident, tell_at=now + state.settings.group_wait))


def _mark_urgent(state: DeskState, fingerprint: str, key: str) -> None:
    """An alert that is louder than the incident, or of a rule that it was not told of, is not to wait."""
    incident, member = state.incidents.get(key), state.members[fingerprint]
    is_louder = incident is None or member.severity.rank > incident.severity.rank
    if is_louder or (incident and any(member.alert.rule_id not in told.causes for told in incident.told)):
        state.urgent.add(key)


def _begin(state: DeskState, key: str, home: Home, now: datetime, wait: timedelta) -> None:
    """Open an incident, or the same episode of it again, unless it is open."""
    incident = state.incidents.get(key)
    if incident is not None and incident.is_open:
        return
    if incident is not None and lifecycle.is_same_episode(incident, now, state.settings):
        state.put(lifecycle.reopened(incident, now, wait))
        return
    known = state.episodes.get(key)
    opened = lifecycle.opened(
        key,
        state.cluster,
        home,
        (known.count if known else 0) + 1,
        now,
        wait,
        adopt=known is None and state.may_have_forgotten(now),
    )
    if incident is not None:
        recent = tuple(at for at in incident.openings if at > now - state.settings.flap_window)
        opened = replace(opened, openings=(*recent, now))
    state.put(opened)
    state.count(key, opened.episode, now)
