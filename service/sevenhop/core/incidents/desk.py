"""
The desk where alerts become incidents, and incidents become messages.

    alert changes → where each alert belongs (cause, explained, folded) → incidents open, change, end → who is told, why

Deterministic: no clock, identities derived from causes; the same changes again ask for nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta

import msgspec
from msgspec.structs import replace

from sevenhop.core.alerts.alert import Alert, AlertChanged, AlertState
from sevenhop.core.alerts.rule import Rule
from sevenhop.core.effects import Effect, Row
from sevenhop.core.events import Outcome, Recalled, Silenced
from sevenhop.core.incidents import lifecycle
from sevenhop.core.incidents.addressing import labels_of, receivers_for, silence_over
from sevenhop.core.incidents.cause import MAINTENANCE
from sevenhop.core.incidents.context import Contexts
from sevenhop.core.incidents.decisions import DecisionLog, Noted
from sevenhop.core.incidents.draft import Draft, notify_of, told_after
from sevenhop.core.incidents.hearing import address_of, after_outcome, after_recall, is_hidden, seen_within
from sevenhop.core.incidents.incident import Incident, NotifyReason
from sevenhop.core.incidents.keeping import (
    BEGAN,
    EPISODES,
    EPISODES_KEPT,
    INCIDENTS,
    SILENCES,
    Episode,
    KeptIncident,
    began_row,
    episode_row,
    incident_row,
    read_row,
    silence_row,
)
from sevenhop.core.incidents.members import Home, Member, Members
from sevenhop.core.incidents.message import Situation, in_order, summary_of
from sevenhop.core.incidents.notify import Decision, Loud, Quiet, is_flapping, next_look, notify_reason
from sevenhop.core.incidents.places import Places
from sevenhop.core.incidents.plans import NoPlans, Plans
from sevenhop.core.incidents.settings import DeskSettings
from sevenhop.core.incidents.silences import Silence, silence_of, silencing
from sevenhop.core.incidents.wakes import Wakes
from sevenhop.core.keeping import ALERTS, read_alert
from sevenhop.core.subject import Hop

SETTLING = timedelta(seconds=10)
"""After a start a first message waits so long for the cluster to be seen again; what is seen before is told before."""

LARGE = 50
"""Causes from which on an incident is looked at as a whole only once in `edit_interval`, unless something is urgent."""

LOOKS_WHILE_UNSEEN = 5
"""How often within `recall_wait` it is looked whether what a channel still shows can be seen."""

ADOPT_WITHIN = timedelta(hours=1)
"""After an empty start: what opens within this may have been told before, and is looked for in the channel."""

PROBLEMS_KEPT = 50
_DETAILS_KEPT = 20
_LOOKED_AT = 200
"""Members of an incident that a refresh looks at."""


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
        self.settings = settings
        self.cluster = cluster
        self.decisions = DecisionLog()
        self.problems: list[str] = []
        self._rules = {rule.id: rule for rule in rules}
        self._members = Members(cluster)
        self._incidents: dict[str, Incident] = {}
        self._episodes: dict[str, Episode] = {}
        self._silences: dict[str, Silence] = {}
        self._places = Places()
        self._elsewhere: dict[str, str] = {}  # key → key of the incident that explains what it was about
        self._touched: set[str] = set()
        self._unsettled: set[str] = set()
        self._dirty: dict[tuple[str, str], None] = {}
        self._wakes = Wakes()
        self._loaded: list[str] = []  # appointments of these are still to be made
        self._attended: dict[str, datetime] = {}  # of large incidents: when they were last looked at as a whole
        self._urgent: set[str] = set()
        self._plans: Plans = NoPlans()
        self._began_empty = True
        self._empty_since: datetime | None = None  # kept: a crash soon after an empty start must not end the doubt
        self._began_at: datetime | None = None

    @property
    def incidents(self) -> Mapping[str, Incident]:
        """By key: the open ones, and those that ended lately."""
        return self._incidents

    @property
    def next_wake(self) -> datetime | None:
        """When `step` has something to do even if nothing changes; None if never."""
        expiry = min((silence.expires_at for silence in self._silences.values()), default=None)
        times = [at for at in (self._wakes.next, expiry) if at is not None]
        if self._touched or self._unsettled:
            times += [self._began_at] if self._began_at is not None else []
        return min(times, default=None)

    def silences(self, now: datetime) -> list[Silence]:
        """Those in force, the first to expire first."""
        active = [silence for silence in self._silences.values() if silence.is_active(now)]
        return sorted(active, key=lambda silence: (silence.expires_at, silence.id))

    def may_have_forgotten(self, now: datetime) -> bool:
        """Whether the state began empty lately: a channel may show incidents that we know nothing of."""
        return self._began_empty and (self._empty_since is None or now <= self._empty_since + ADOPT_WITHIN)

    def standing(self, fingerprint: str, now: datetime) -> Standing:
        """Why a firing alert is told as it is, or not told."""
        member = self._members.get(fingerprint)
        place = self._places.of(fingerprint)
        if member is None or place is None:
            return Standing(incident=None, is_cause=False)
        key, is_cause = place
        incident = self._incidents.get(key)
        by = [self._members[fp].alert for fp in self._members.explanation(fingerprint) if fp in self._members]
        labels = labels_of(member, key, incident.severity if incident else member.severity)
        return Standing(
            incident=incident,
            is_cause=is_cause,
            explained_by=tuple(f"{alert.rule_id} on {alert.subject}" for alert in by),
            maintained_node=self._members.maintained_node(fingerprint),
            silence=silencing(self._silences.values(), labels, now),
            decisions=self.decisions.of(incident.id) if incident is not None else (),
        )

    def hear(self, event: Silenced | Outcome | Recalled) -> None:
        """What a person, or a channel, says; the next `step` acts on it."""
        if isinstance(event, Silenced):
            self._hear_silence(event)
        elif isinstance(event, Recalled):
            self._hear_recalled(event)
        else:
            self._hear_outcome(event)

    def reload(self, rules: Iterable[Rule]) -> None:
        """Go on with other rules; alerts that they change come as changes."""
        self._rules = {rule.id: rule for rule in rules}

    def causes(self, key: str) -> list[Member]:
        """Firing alerts whose cause an incident is; empty for an unknown one."""
        return [self._members[fp] for fp in self._places.causes(key)]

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
        if self._began_empty and self._empty_since is None:
            self._empty_since = now
            self._dirty[(BEGAN, "")] = None
        if not (changes or self._touched or self._unsettled or self._loaded) and not self._is_due(now):
            return set()
        self._began_at = self._began_at or now
        self._appoint_loaded(now)
        due = self._wakes.due(now)
        self._expire_silences(now)
        touched, self._touched = self._touched, set()
        unsettled, self._unsettled = self._unsettled, set()
        for fingerprint in self._members.unseen() if changes else ():
            # After a start: a new alert may be the symptom of a stored cause whose pods nobody has looked at yet.
            unsettled |= self._members.look(fingerprint, contexts, now)
        for change in changes:
            self._take(change, touched, unsettled, contexts, now)
        for key in due:
            if key in self._incidents and self._incidents[key].is_open:
                self._look_again(key, unsettled, contexts, now)
        touched |= self._settle(unsettled, contexts, now)
        return {*touched, *due}

    def tell(self, keys: Iterable[str], contexts: Contexts, now: datetime, plans: Plans | None = None) -> list[Effect]:
        """The second half of `step`: incidents open, change and end, and people are told, or not."""
        self._plans = plans or self._plans
        effects: list[Effect] = []
        for key in sorted(set(keys)):
            effects += self._attend(key, contexts, now)
        return effects

    def load(self, rows: Iterable[Row]) -> list[str]:
        """
        Take over what was kept, alerts included, before the first `step`.

        Nothing is told because of it: what is known of the cluster comes later, and until then everything stands as it
        was.

        Returns:
            ``table/key: why`` of rows that could not be read.
        """
        rows = list(rows)
        self._began_empty = not rows
        alerts: dict[str, Alert] = {}
        kept: list[KeptIncident] = []
        problems: list[str] = []
        for row in rows:
            try:
                if row.table == ALERTS and row.value is not None:
                    alert = read_alert(row.value)
                    if alert.state is AlertState.FIRING:
                        alerts[alert.fingerprint] = alert
                    continue
                found = read_row(row)
            except (msgspec.MsgspecError, ValueError) as error:
                problems.append(f"{row.table}/{row.key}: {error}")
                continue
            if isinstance(found, KeptIncident):
                kept.append(found)
            elif isinstance(found, Episode):
                self._episodes[row.key] = found
            elif isinstance(found, Silence):
                self._silences[row.key] = found
            elif isinstance(found, datetime):
                self._began_empty, self._empty_since = True, found
        for each in kept:
            self._load_incident(each, alerts)
        self._unsettled |= self._members.forget_missing()
        # Firing, and in no incident: the incident's row was damaged.
        for fingerprint, alert in alerts.items():
            self._members.load(alert, self._rules.get(alert.rule_id), (), "")
            self._unsettled.add(fingerprint)
        self.problems += problems
        return problems

    def dirty(self) -> list[Row]:
        """Rows that changed since the last call."""
        rows = []
        for table, key in self._dirty:
            if table == INCIDENTS:
                rows.append(incident_row(key, self._kept(key)))
            elif table == EPISODES:
                rows.append(episode_row(key, self._episodes.get(key)))
            elif table == BEGAN:
                rows += [began_row(self._empty_since)] if self._empty_since is not None else []
            else:
                rows.append(silence_row(key, self._silences.get(key)))
        self._dirty.clear()
        return rows

    # What comes in

    def _take(
        self, change: AlertChanged, touched: set[str], unsettled: set[str], contexts: Contexts, now: datetime
    ) -> None:
        alert = change.alert
        fingerprint = alert.fingerprint
        if alert.state is AlertState.FIRING:
            self._members.put(alert, self._rules.get(alert.rule_id))
            unsettled |= self._members.look(fingerprint, contexts, now)
            place = self._places.of(fingerprint)
            if place is not None:
                self._tell_sooner(place[0], alert, now)
                self._mark_urgent(fingerprint, place[0])
                touched.add(place[0])
        elif fingerprint in self._members:
            unsettled |= self._members.following(self._members.drop(fingerprint))
            unsettled.discard(fingerprint)
            place = self._places.leave(fingerprint)
            if place is not None:
                self._places.note_end(place[0], str(change.reason))
                touched.add(place[0])

    def _look_again(self, key: str, unsettled: set[str], contexts: Contexts, now: datetime) -> None:
        for fingerprint in [*self._places.causes(key), *self._places.symptoms(key)][:_LOOKED_AT]:
            unsettled |= self._members.look(fingerprint, contexts, now)

    def _settle(self, unsettled: set[str], contexts: Contexts, now: datetime) -> set[str]:
        """Move alerts to where they belong; returns the keys of incidents that they left or joined."""
        if not unsettled:
            return set()
        self._members.settle(unsettled, lambda key: self._stands(key, now), contexts, now)
        touched: set[str] = set()
        for fingerprint in sorted(self._members.following(unsettled)):
            home, is_cause = self._members.place(fingerprint)
            key = home.key(self.cluster)
            before = self._places.leave(fingerprint)
            if before is not None and before != (key, is_cause):
                self._note_move(before, key)
                touched.add(before[0])
            self._places.join(fingerprint, key, is_cause=is_cause)
            if before == (key, is_cause):
                continue
            self._mark_urgent(fingerprint, key)
            touched.add(key)
            is_rehomed = before is not None and not before[1]
            self._begin(key, home, now, self._rehome_wait(fingerprint, now) if is_rehomed else self.settings.group_wait)
            self._note_place(fingerprint, home, now, is_cause=is_cause)
        return touched

    def _stands(self, key: str, now: datetime) -> bool:
        """Whether an incident is open and past its first wait."""
        incident = self._incidents.get(key)
        return incident is not None and incident.is_open and incident.tell_at is not None and incident.tell_at <= now

    def _note_move(self, before: tuple[str, bool], key: str) -> None:
        left, was_cause = before
        if left == key:
            return
        if was_cause:
            self._places.note_end(left, lifecycle.EXPLAINED)
            self._elsewhere[left] = key
        else:
            self._places.note_orphan(left)

    def _note_place(self, fingerprint: str, home: Home, now: datetime, *, is_cause: bool) -> None:
        if not is_cause:
            by = self._members.explanation(fingerprint)
            named = [f"{self._members[fp].alert.rule_id} on {self._members[fp].alert.subject}" for fp in by]
            self.decisions.note(now, fingerprint, "", NotifyReason.NOT_DUE_INHIBITED, ", ".join(named[:3]))
        elif home.family == MAINTENANCE:
            self.decisions.note(now, fingerprint, "", NotifyReason.NOT_DUE_MAINTENANCE, home.cause.name)

    # Incidents open, change and end

    def _rehome_wait(self, fingerprint: str, now: datetime) -> timedelta:
        """
        How long a symptom whose cause has ended waits before it is told by itself.

        One that is not true any more, and only kept, ends by itself: telling it then would be about nothing.
        """
        member = self._members[fingerprint]
        wait = max(self.settings.rehome_wait, self.settings.group_wait)
        if member.alert.false_since is None or member.rule is None:
            return wait
        return max(wait, member.alert.false_since + member.rule.keep_firing - now + self.settings.group_wait)

    def _tell_sooner(self, key: str, alert: Alert, now: datetime) -> None:
        """What was to end by itself is true again."""
        incident = self._incidents.get(key)
        if incident is None or incident.told or incident.tell_at is None or alert.false_since is not None:
            return
        if incident.tell_at > now + self.settings.rehome_wait:
            self._put(replace(incident, tell_at=now + self.settings.group_wait))

    def _begin(self, key: str, home: Home, now: datetime, wait: timedelta) -> None:
        incident = self._incidents.get(key)
        if incident is not None and incident.is_open:
            return
        if incident is not None and lifecycle.is_same_episode(incident, now, self.settings):
            self._put(lifecycle.reopened(incident, now, wait))
            return
        known = self._episodes.get(key)
        opened = lifecycle.opened(
            key,
            self.cluster,
            home,
            (known.count if known else 0) + 1,
            now,
            wait,
            adopt=known is None and self.may_have_forgotten(now),
        )
        if incident is not None:
            recent = tuple(at for at in incident.openings if at > now - self.settings.flap_window)
            opened = replace(opened, openings=(*recent, now))
        self._put(opened)
        self._count(key, opened.episode, now)

    def _attend(self, key: str, contexts: Contexts, now: datetime) -> list[Effect]:
        incident = self._incidents.get(key)
        if incident is None or self._can_wait(incident, now):
            return []
        causes = [self._members[fp] for fp in self._places.causes(key)]
        symptoms = [self._members[fp] for fp in self._places.symptoms(key)]
        left = self._places.take_departures(key)
        if causes:
            incident = self._put(lifecycle.with_members(incident, causes, symptoms, now))
            self._elsewhere.pop(key, None)
        elif incident.is_open and self._waits_to_be_seen(incident, contexts, now):
            self._appoint(self._incidents[key], causes, now)
            return []
        elif incident.is_open:
            # Where nothing left it, it was read back from a channel, and nothing of it ever fired again.
            incident = self._put(
                lifecycle.resolved(incident, left.reasons or [lifecycle.STATE_LOST], now, orphans=left.orphans)
            )
        elif not incident.is_open and self._is_over(incident, now):
            self._forget(key)
            return []
        effects = self._tell(incident, causes, symptoms, contexts, now)
        self._appoint(self._incidents[key], causes, now)
        return effects

    def _can_wait(self, incident: Incident, now: datetime) -> bool:
        """
        Whether a large incident was looked at as a whole a moment ago, and what is new is nothing that people wait for.

        Its row may then lag behind the alerts' rows; `load` puts alerts that are in no incident where they belong.
        """
        key = incident.key
        size = self._places.count(key)
        until = self._attended.get(key, now) + self.settings.edit_interval
        if size < LARGE or not incident.is_open or key in self._urgent or now >= until or key not in self._attended:
            self._urgent.discard(key)
            self._attended.pop(key, None)
            if size >= LARGE:
                self._attended[key] = now
            return False
        self._wakes.put_at_latest(key, until)
        return True

    def _mark_urgent(self, fingerprint: str, key: str) -> None:
        """An alert that is louder than the incident, or of a rule that it was not told of, is not to wait."""
        incident, member = self._incidents.get(key), self._members[fingerprint]
        is_louder = incident is None or member.severity.rank > incident.severity.rank
        if is_louder or (incident and any(member.alert.rule_id not in told.causes for told in incident.told)):
            self._urgent.add(key)

    def _waits_to_be_seen(self, incident: Incident, contexts: Contexts, now: datetime) -> bool:
        """Whether it was read back from a channel, and what it is about may still be found broken."""
        if incident.alerts or incident.tell_at is None or not incident.told:
            return False
        if is_hidden(incident, self._rules, contexts):
            incident = self._put(replace(incident, tell_at=now + seen_within(incident, self._rules, self.settings)))
        waits = incident.tell_at is not None and now < incident.tell_at
        if waits:
            self.decisions.note(now, incident.id, "", NotifyReason.NOT_DUE_UNSEEN)
        return waits

    def _is_over(self, incident: Incident, now: datetime) -> bool:
        if incident.resolved_at is None or self._plans.holds(incident.key):
            return False
        return now >= incident.resolved_at + self.settings.flap_window

    def _forget(self, key: str) -> None:
        del self._incidents[key]
        self._places.take_departures(key)
        self._elsewhere.pop(key, None)
        self._attended.pop(key, None)
        self._urgent.discard(key)
        self._wakes.put(key, None)
        self._dirty[(INCIDENTS, key)] = None

    def _put(self, incident: Incident) -> Incident:
        if self._incidents.get(incident.key) != incident:
            self._incidents[incident.key] = incident
            self._dirty[(INCIDENTS, incident.key)] = None
        return incident

    def _count(self, key: str, episode: int, now: datetime) -> None:
        self._episodes.pop(key, None)
        self._episodes[key] = Episode(episode, now)
        self._dirty[(EPISODES, key)] = None
        if len(self._episodes) > EPISODES_KEPT:
            oldest = min(self._episodes, key=lambda k: (k in self._incidents, self._episodes[k].at, k))
            del self._episodes[oldest]
            self._dirty[(EPISODES, oldest)] = None

    # Who is told

    def _tell(
        self,
        incident: Incident,
        causes: Sequence[Member],
        symptoms: Sequence[Member],
        contexts: Contexts,
        now: datetime,
    ) -> list[Effect]:
        silence = silence_over(incident, [*causes, *symptoms], self._silences.values(), now) if causes else None
        quiet = Quiet(
            maintenance=incident.family == MAINTENANCE,
            silence=silence is not None,
            flapping=is_flapping(incident.openings, now, self.settings),
            own_change=self._own_change_until(causes, now) is not None,
        )
        plan = self._plans.words(incident.key)
        situation = Situation(
            causes=tuple(causes),
            symptoms=tuple(symptoms),
            silence=silence,
            is_flapping=quiet.flapping,
            is_unseen=bool(causes) and all(self._is_unseen(member) for member in causes),
            elsewhere=self._explaining_title(incident),
            plan=plan,
        )
        draft = Draft(incident, situation, contexts, now, self.settings)
        loud = [
            Loud(m.alert.rule_id, m.severity, holds=m.alert.false_since is None and m.alert.blind_since is None)
            for m in causes
        ]
        decided: list[tuple[str, Decision]] = []
        if not incident.is_open and not incident.told:
            self.decisions.note(now, incident.id, "", NotifyReason.NOT_DUE_NEVER_TOLD)
        for receiver in receivers_for(incident, [*causes, *symptoms], self.settings):
            decision = notify_reason(
                incident, incident.told_to(receiver), draft.shown, loud, quiet, now, self.settings, asks=plan.asks
            )
            detail = silence.id if silence is not None and decision.reason is NotifyReason.NOT_DUE_SILENCED else ""
            self.decisions.note(now, incident.id, receiver, decision.reason, detail)
            if decision.withheld is not None:
                self.decisions.note(now, incident.id, f"{receiver} (anew)", decision.withheld)
            if decision.reason.is_due:
                decided.append((receiver, decision))
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
            incident = replace(
                incident, told=told_after(incident, notify, decision.reason, draft.shown(), now, plan.asks)
            )
        self._put(incident)
        return effects

    def _own_change_until(self, causes: Sequence[Member], now: datetime) -> datetime | None:
        """Until when all of it is explained by what we changed under approval; None where it is not."""
        times = []
        for member in causes:
            labels = member.alert.labels
            about_count = member.hop is Hop.SCHEDULING or (member.rule and "component.ready" in member.rule.reads)
            place = (labels.get("namespace", ""), labels.get("workload", ""), labels.get("component", ""))
            until = self._plans.own_change_until(*place) if about_count and place[1] else None
            if until is None or until <= now:
                return None
            times.append(until)
        return min(times, default=None)

    def _is_unseen(self, member: Member) -> bool:
        """Whether the cluster does not show now what it is about: nobody can see, or it fires on for a while only."""
        if member.alert.false_since is not None:
            return True
        return member.alert.blind_since is not None or self._members.is_unseen(member.alert.fingerprint)

    def _explaining_title(self, incident: Incident) -> str:
        key = self._elsewhere.get(incident.key, "")
        causes = [self._members[fp] for fp in self._places.causes(key)]
        return summary_of(in_order(causes)[0]) if causes and not incident.is_open else ""

    def _appoint(self, incident: Incident, causes: Sequence[Member], now: datetime) -> None:
        times = [next_look(incident, incident.told_to(r), now, self.settings) for r in self._awaiting(incident)]
        if not incident.is_open:
            over = incident.resolved_at + self.settings.flap_window if incident.resolved_at else now
            # What is kept only for its plans is told by these, and looked at now and then.
            times.append(over if over > now else now + self.settings.refresh_interval)
        elif not causes:
            # While it waits to be seen: time counts from when it was last hidden, so look now and then.
            times += [incident.tell_at, now + self.settings.recall_wait / LOOKS_WHILE_UNSEEN]
        else:
            times.append(now + self.settings.refresh_interval * (1 + _share(incident.key)))
            blind = [m.alert.blind_since + self.settings.blind_grace for m in causes if m.alert.blind_since]
            ending = [m.alert.false_since + self.settings.ending_grace for m in causes if m.alert.false_since]
            times += [at for at in (*blind, *ending) if at > now]
            times.append(self._own_change_until(causes, now))
        self._wakes.put(incident.key, min((at for at in times if at is not None), default=None))

    def _appoint_loaded(self, now: datetime) -> None:
        """After a start everything stands as it was until its facts are known again, or known to be unknown."""
        for key in self._loaded:
            incident = self._incidents[key]
            self._wakes.put(key, now + self.settings.refresh_interval)
            if not incident.told and incident.tell_at is not None:
                self._wakes.put(key, max(incident.tell_at, now + SETTLING))
            if incident.is_open and not incident.members and incident.told:
                # Read back from a channel by an earlier process: its wait begins anew, for nothing was seen since.
                within = seen_within(incident, self._rules, self.settings)
                incident = self._put(replace(incident, tell_at=now + within))
                self._wakes.put(key, now + self.settings.recall_wait / LOOKS_WHILE_UNSEEN)
            if incident.resolved_at is not None:
                self._wakes.put(key, incident.resolved_at + self.settings.flap_window)
        self._loaded.clear()

    def _awaiting(self, incident: Incident) -> list[str]:
        return list(dict.fromkeys([*(told.receiver for told in incident.told), ""]))

    # Silences, outcomes, what channels remember

    def _is_due(self, now: datetime) -> bool:
        at = self._wakes.next
        return (at is not None and at <= now) or any(s.expires_at <= now for s in self._silences.values())

    def _expire_silences(self, now: datetime) -> None:
        for silence in [s for s in self._silences.values() if s.expires_at <= now]:
            del self._silences[silence.id]
            self._dirty[(SILENCES, silence.id)] = None
            self._touch_open()

    def _complain(self, problem: str) -> None:
        self.problems.append(problem)
        del self.problems[:-PROBLEMS_KEPT]

    def _touch_open(self) -> None:
        self._touched |= {key for key, incident in self._incidents.items() if incident.is_open}

    def _hear_silence(self, event: Silenced) -> None:
        try:
            silence = silence_of(event)
        except ValueError as error:
            self._complain(f"silence {event.silence_id} of {event.author}: {error}")
            return
        if silence.expires_at <= event.at:
            if self._silences.pop(silence.id, None) is None:
                return
        elif self._silences.get(silence.id) == silence:
            return
        else:
            self._silences[silence.id] = silence
        self._dirty[(SILENCES, silence.id)] = None
        self._touch_open()

    def _hear_outcome(self, event: Outcome) -> None:
        key, receiver = address_of(event)
        incident = self._incidents.get(key)
        after = after_outcome(incident, event) if incident is not None else None
        if incident is None or after is None:
            return
        self._put(after)
        if not event.delivered:
            self.decisions.note(event.at, incident.id, receiver, NotifyReason.NOT_DUE_REFUSED, event.detail[:200])
            self._wakes.put_at_latest(key, event.at + self.settings.refused_retry)

    def _hear_recalled(self, event: Recalled) -> None:
        known = self._episodes.get(event.key)
        if known is None or known.count < event.episode:
            self._count(event.key, event.episode, event.at)
        try:
            incident = after_recall(self._incidents.get(event.key), event, self.cluster, self.settings)
        except ValueError as error:
            self._complain(f"{event.receiver} shows an incident that cannot be read: {error}")
            return
        if incident is not None:
            if not incident.members:
                incident = replace(incident, tell_at=event.at + seen_within(incident, self._rules, self.settings))
            self._put(incident)
            self._touched.add(event.key)

    # What is kept

    def _kept(self, key: str) -> KeptIncident | None:
        incident = self._incidents.get(key)
        if incident is None:
            return None
        nodes = {fp: self._members.maintained_node(fp) for fp in incident.members}
        return KeptIncident(
            incident=incident,
            explained={fp: self._members.explanation(fp) for fp in incident.symptoms},
            folded={fp: node for fp, node in nodes.items() if node},
        )

    def _load_incident(self, kept: KeptIncident, alerts: dict[str, Alert]) -> None:
        incident = kept.incident
        if incident.is_open and incident.told and alerts.keys().isdisjoint(incident.members):
            # The rows of all its alerts are damaged, or of another version.  That says nothing of the cluster: it
            # stands like one that was read back from a channel, until what it is about is seen.
            incident = replace(incident, alerts=(), symptoms=())
        self._incidents[incident.key] = incident
        for fingerprint in incident.members:
            alert = alerts.pop(fingerprint, None)
            if alert is None:
                self._places.note_end(incident.key, lifecycle.STATE_LOST)
                self._touched.add(incident.key)
                continue
            rule = self._rules.get(alert.rule_id)
            explained = kept.explained.get(fingerprint, ())
            self._members.load(alert, rule, explained, kept.folded.get(fingerprint, ""))
            self._places.join(fingerprint, incident.key, is_cause=fingerprint in incident.alerts)
        self._loaded.append(incident.key)


def _share(key: str) -> float:
    """From 0 to 1, always the same for a key: incidents that opened together are not all looked at together."""
    return int(key[:4], 16) / 0x10000
