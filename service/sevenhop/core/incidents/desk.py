"""
The desk where alerts become incidents, and incidents become messages.

    alert changes → where each belongs (`joining`) → how incidents go on (`attending`) → who is told (`telling`)

Deterministic: no clock, identities derived from causes; the same changes again ask for nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime

import msgspec

from sevenhop.core.alerts.alert import AlertChanged
from sevenhop.core.alerts.rule import Rule
from sevenhop.core.effects import Effect, Row
from sevenhop.core.events import Outcome, Recalled, Silenced
from sevenhop.core.incidents import attending, hearing, joining, restart
from sevenhop.core.incidents.addressing import labels_of
from sevenhop.core.incidents.context import Contexts
from sevenhop.core.incidents.decisions import DecisionLog, Noted
from sevenhop.core.incidents.incident import Incident
from sevenhop.core.incidents.keeping import BEGAN
from sevenhop.core.incidents.members import Member
from sevenhop.core.incidents.plans import Plans
from sevenhop.core.incidents.settings import DeskSettings
from sevenhop.core.incidents.silences import Silence, silencing
from sevenhop.core.incidents.state import DeskState


class Standing(msgspec.Struct, frozen=True, kw_only=True):
    """
    Where one firing alert stands, for `explain`.

    Attributes:
        incident: The incident in which it counts; None before the desk has seen it.
        is_cause: False: it is a symptom, `explained_by` names the alerts that explain it (rule and subject).
        maintained_node: The node under maintenance that it is folded under; empty if none.
        silence: The one that covers this alert now.
        decisions: The last ones about its incident.
    """

    incident: Incident | None
    is_cause: bool
    explained_by: tuple[str, ...] = ()
    maintained_node: str = ""
    silence: Silence | None = None
    decisions: tuple[Noted, ...] = ()


class IncidentDesk:
    """
    The incidents of one cluster.

    Mutable, owned by one caller.  Every firing alert is a cause or a symptom in exactly one open incident.
    """

    def __init__(self, settings: DeskSettings, cluster: str, rules: Iterable[Rule] = ()) -> None:
        self._state = DeskState(settings, cluster, rules)

    # What it answers

    @property
    def settings(self) -> DeskSettings:
        return self._state.settings

    @property
    def decisions(self) -> DecisionLog:
        return self._state.decisions

    @property
    def problems(self) -> list[str]:
        """What could not be made sense of, the newest last."""
        return self._state.problems

    @property
    def incidents(self) -> Mapping[str, Incident]:
        """By key: the open ones, and those that ended lately."""
        return self._state.incidents

    @property
    def next_wake(self) -> datetime | None:
        """When `step` has something to do even if nothing changes; None if never."""
        state = self._state
        expiry = min((silence.expires_at for silence in state.silences.values()), default=None)
        times = [at for at in (state.wakes.next, expiry) if at is not None]
        if state.touched or state.unsettled:
            times += [state.began_at] if state.began_at is not None else []
        return min(times, default=None)

    def silences(self, now: datetime) -> list[Silence]:
        """Those in force, the first to expire first."""
        active = [silence for silence in self._state.silences.values() if silence.is_active(now)]
        return sorted(active, key=lambda silence: (silence.expires_at, silence.id))

    def causes(self, key: str) -> list[Member]:
        """Firing alerts whose cause an incident is; empty for an unknown one."""
        return self._state.causes(key)

    def may_have_forgotten(self, now: datetime) -> bool:
        """Whether the state began empty lately: a channel may show incidents that we know nothing of."""
        return self._state.may_have_forgotten(now)

    def standing(self, fingerprint: str, now: datetime) -> Standing:
        """Why a firing alert is told as it is, or not told."""
        state = self._state
        member = state.members.get(fingerprint)
        place = state.places.of(fingerprint)
        if member is None or place is None:
            return Standing(incident=None, is_cause=False)
        key, is_cause = place
        incident = state.incidents.get(key)
        by = [state.members[fp].alert for fp in state.members.explanation(fingerprint) if fp in state.members]
        labels = labels_of(member, key, incident.severity if incident else member.severity)
        return Standing(
            incident=incident,
            is_cause=is_cause,
            explained_by=tuple(f"{alert.rule_id} on {alert.subject}" for alert in by),
            maintained_node=state.members.maintained_node(fingerprint),
            silence=silencing(state.silences.values(), labels, now),
            decisions=state.decisions.of(incident.id) if incident is not None else (),
        )

    # What changes it

    def hear(self, event: Silenced | Outcome | Recalled) -> None:
        """What a person, or a channel, says; the next `step` acts on it."""
        if isinstance(event, Silenced):
            hearing.hear_silence(self._state, event)
        elif isinstance(event, Recalled):
            hearing.hear_recalled(self._state, event)
        else:
            hearing.hear_outcome(self._state, event)

    def reload(self, rules: Iterable[Rule]) -> None:
        """Go on with other rules; alerts that they change come as changes."""
        self._state.rules = {rule.id: rule for rule in rules}

    def step(self, changes: Sequence[AlertChanged], contexts: Contexts, now: datetime) -> list[Effect]:
        """
        Take in changes of alerts, and the passing of time up to `now`.

        Args:
            contexts: The inventory as it is now.
        """
        return self.tell(self.take(changes, contexts, now), contexts, now)

    def take(self, changes: Sequence[AlertChanged], contexts: Contexts, now: datetime) -> set[str]:
        """
        The first half of `step`: put every alert where it belongs.

        Returns:
            Keys of incidents that are to be told, or not; for `tell`.
        """
        state = self._state
        if state.began_empty and state.empty_since is None:
            state.empty_since = now
            state.dirty[(BEGAN, "")] = None
        if not (changes or state.touched or state.unsettled or state.loaded) and not self._is_due(now):
            return set()
        state.began_at = state.began_at or now
        attending.appoint_loaded(state, now)
        due = state.wakes.due(now)
        for name in [silence.id for silence in state.silences.values() if silence.expires_at <= now]:
            state.drop_silence(name)
        touched, state.touched = state.touched, set()
        unsettled, state.unsettled = state.unsettled, set()
        for fingerprint in state.members.unseen() if changes else ():
            # After a start: a new alert may be the symptom of a stored cause whose pods nobody has looked at yet.
            unsettled |= state.members.look(fingerprint, contexts, now)
        for change in changes:
            joining.take(state, change, touched, unsettled, contexts, now)
        for key in due:
            if key in state.incidents and state.incidents[key].is_open:
                unsettled |= joining.look_again(state, key, contexts, now)
        touched |= joining.settle(state, unsettled, contexts, now)
        return {*touched, *due}

    def tell(self, keys: Iterable[str], contexts: Contexts, now: datetime, plans: Plans | None = None) -> list[Effect]:
        """The second half of `step`: incidents open, change and end, and people are told, or not."""
        self._state.plans = plans or self._state.plans
        effects: list[Effect] = []
        for key in sorted(set(keys)):
            effects += attending.attend(self._state, key, contexts, now)
        return effects

    def _is_due(self, now: datetime) -> bool:
        at = self._state.wakes.next
        return (at is not None and at <= now) or any(s.expires_at <= now for s in self._state.silences.values())

    # What is kept

    def load(self, rows: Iterable[Row]) -> list[str]:
        """
        Take over what was kept, alerts included, before the first `step`.

        Nothing is told because of it: what is known of the cluster comes later, and until then everything stands as it
        was.

        Returns:
            ``table/key: why`` of rows that could not be read.
        """
        return restart.load(self._state, rows)

    def dirty(self) -> list[Row]:
        """Rows that changed since the last call."""
        return restart.changed_rows(self._state)
