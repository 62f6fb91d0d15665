"""All rules over all subjects of one cluster: which to evaluate, what each alert's state is, when to look again."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime

import msgspec

from sevenhop.core.alerts.alert import Alert, AlertChanged, AlertState, ChangeReason
from sevenhop.core.alerts.digest import COUNT, Digest, digest_rule, digest_subject, is_digest
from sevenhop.core.alerts.history import AlertKey, Histories
from sevenhop.core.alerts.rule import Evaluation, Rule, Verdict
from sevenhop.core.alerts.standing import BrokenRule, StandingAlerts
from sevenhop.core.alerts.step import (
    as_loaded,
    elapse,
    ended,
    frozen,
    looks_different,
    resumed,
    step,
)
from sevenhop.core.alerts.watched_facts import Seen, WatchedFacts
from sevenhop.core.facts.schema import Facts
from sevenhop.core.subject import Subject, SubjectKind

MOST_AT_ONCE = 20
"""A rule that is new in a running service and true of more subjects than this is told as one digest."""


class Reloaded(msgspec.Struct, frozen=True, kw_only=True):
    """
    What a reload did.

    Attributes:
        added, changed, removed: Rule ids.
        demoted: (rule id, subjects that it is true of) of new rules that are told as one digest.
    """

    changes: list[AlertChanged]
    added: tuple[str, ...] = ()
    changed: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()
    demoted: tuple[tuple[str, int], ...] = ()


class AlertBook:
    """
    The alerts of one cluster.

    Mutable, owned by one caller.  What it returns is what has to be told and stored; equal inputs again return
    nothing.  Time is what the caller says, and never runs back: an input with an older `now` counts as of the newest.
    A list in `Facts` is replaced when it changes, not mutated.

    Per subject it keeps the values that rules of its kind look at, and beside them only alerts that are not inactive.
    """

    def __init__(self, rules: Iterable[Rule], cluster: str, *, most_at_once: int = MOST_AT_ONCE) -> None:
        self.cluster = cluster
        self.most_at_once = most_at_once
        self.histories = Histories()
        self._standing = StandingAlerts()
        self._seen: dict[Subject, Seen] = {}
        self._digests: dict[str, Digest] = {}
        self._now: datetime | None = None
        self._take(rules)

    @property
    def rules(self) -> Mapping[str, Rule]:
        """Enabled ones, by id."""
        return self._rules

    @property
    def off(self) -> tuple[Rule, ...]:
        """Those that are off by default, in order of id: they never run."""
        return self._off

    @property
    def next_wake(self) -> datetime | None:
        """When `tick` has something to do even if nothing happens; None if never."""
        return self._standing.next_wake

    def evaluate(self, changed: Mapping[Subject, Facts], gone: Iterable[Subject], now: datetime) -> list[AlertChanged]:
        """
        Take in what changed.

        Timers that ran out before `now` come first, those of `now` itself last: what holds up to the second of `for`
        and no longer does not fire.

        Args:
            changed: Subjects with all their facts, not only those that changed.
            gone: Subjects that are no more; their alerts end as `SUBJECT_GONE`.
        """
        now = self._advance(now)
        changes = self._elapse(now, inclusive=False)
        for subject in gone:
            self._forget(subject, changes, now)
        for subject, facts in changed.items():
            self._look(subject, facts, changes, now)
        changes += self._step_digests(now)
        changes += self._elapse(now, inclusive=True)
        return changes

    def tick(self, now: datetime) -> list[AlertChanged]:
        """What the passing of time alone changes up to `now`, each at its own moment."""
        return self._elapse(self._advance(now), inclusive=True)

    def reload(self, rules: Iterable[Rule], current: Mapping[Subject, Facts], now: datetime) -> Reloaded:
        """
        Go on with other rules.

        Alerts of a rule with the same digest keep their state.  A rule that is new or changed and true of more than
        `most_at_once` subjects becomes one digest alert until it is true of none.

        Args:
            current: All subjects with their facts, for the new rules have not seen them.
        """
        now = self._advance(now)
        changes = self._elapse(now, inclusive=True)
        before = dict(self._rules)
        self._take(rules)
        removed = [i for i in before if i not in self._rules]
        altered = [i for i, r in self._rules.items() if i in before and before[i].digest != r.digest]
        added = [i for i in self._rules if i not in before]
        demoted = self._demote([*added, *altered], current)
        for rule_id in (*removed, *altered):
            reason = ChangeReason.RULE_CHANGED if rule_id in self._rules else ChangeReason.RULE_REMOVED
            self._end_rule(rule_id, reason, changes, now)
        self._seen.clear()
        changes += self._retell(before, now)
        changes += self.evaluate(current, (), now)
        return Reloaded(
            changes=changes,
            added=tuple(added),
            changed=tuple(altered),
            removed=tuple(removed),
            demoted=tuple(demoted),
        )

    def load(self, alerts: Iterable[Alert], now: datetime, down_since: datetime | None = None) -> list[AlertChanged]:
        """
        Take over alerts from the store, before the first `evaluate`.

        They are blind until their facts are known again.  Alerts of rules that are no more, or are others now, end.

        Args:
            down_since: The last moment that the store knows of; without it, each alert's last confirmation.
        """
        now = self._standing.loaded_at = self._advance(now)
        changes: list[AlertChanged] = []
        for alert in alerts:
            if alert.state is AlertState.INACTIVE:
                continue
            key = (alert.rule_id, alert.subject)
            rule = self._rules.get(alert.rule_id)
            if rule is None:
                self._tell(*ended(alert, ChangeReason.RULE_REMOVED), alert.state, changes, now)
                continue
            if rule.digest != alert.rule_digest:
                self._tell(*ended(alert, ChangeReason.RULE_CHANGED), alert.state, changes, now)
                continue
            if is_digest(alert.subject):
                count = alert.values.get(COUNT, 0)
                self._digests[alert.rule_id] = Digest(count if isinstance(count, int) else 0, now)
            start = down_since or alert.confirmed_at or alert.since
            self._standing.put(as_loaded(alert, min(start, now)))
            self._standing.unresumed.add(key)
        return changes

    def snapshot(self) -> list[Alert]:
        """Every alert that is not inactive, ordered by rule and subject."""
        return [self._standing.alerts[key] for key in sorted(self._standing.alerts)]

    def has_active(self) -> bool:
        """Whether any alert is not inactive."""
        return bool(self._standing.alerts)

    def alert(self, rule_id: str, subject: Subject) -> Alert | None:
        """None while inactive."""
        return self._standing.alerts.get((rule_id, subject))

    def subjects(self) -> set[Subject]:
        """
        Subjects that have alerts.

        Those that the inventory does not know once their kind is synced went away while nobody looked: `gone`.
        """
        return {subject for subject in self._standing.active if not is_digest(subject)}

    def broken(self) -> list[BrokenRule]:
        """Rules that fail at run time, for the alert about ourselves."""
        return self._standing.broken_rules()

    def demoted(self) -> dict[str, int]:
        """Rules that are told as one digest → number of subjects that they are true of."""
        return {rule_id: digest.count for rule_id, digest in sorted(self._digests.items())}

    def _take(self, rules: Iterable[Rule]) -> None:
        rules = tuple(rules)
        self._rules = self._standing.rules = {rule.id: rule for rule in rules if rule.enabled}
        self._off = tuple(sorted((rule for rule in rules if not rule.enabled), key=lambda rule: rule.id))
        kinds: dict[SubjectKind, list[Rule]] = {}
        for rule in self._rules.values():
            kinds.setdefault(rule.subject, []).append(rule)
        self._watched = {kind: WatchedFacts(of_kind) for kind, of_kind in kinds.items()}

    def _advance(self, now: datetime) -> datetime:
        if self._now is None or now > self._now:
            self._now = now
        return self._now

    def _look(self, subject: Subject, facts: Facts, changes: list[AlertChanged], now: datetime) -> None:
        watched, standing = self._watched.get(subject.kind), self._standing
        if watched is None:
            return
        get = facts.get
        after: Seen = [get(name) for name in watched.names]
        affected = watched.affected(self._seen.get(subject), after)
        self._seen[subject] = after
        is_quiet = subject not in standing.active and not self._digests and not standing.broken
        for rule in affected:
            found = rule.evaluate(facts)
            if is_quiet and found.verdict is Verdict.FALSE:
                continue  # as nearly always: there is nothing that could end
            self._step(rule, subject, facts, found, changes, now)
        if subject not in standing.active:
            return
        stepped = {rule.id for rule in affected}
        for rule_id in sorted(standing.active[subject] - stepped):
            rule = self._rules[rule_id]
            if looks_different(standing.alerts[(rule_id, subject)], rule, facts):
                self._step(rule, subject, facts, rule.evaluate(facts), changes, now)

    def _step(
        self, rule: Rule, subject: Subject, facts: Facts, found: Evaluation, changes: list[AlertChanged], now: datetime
    ) -> None:
        if rule.id in self._digests:
            self._digests[rule.id].note(subject, found.verdict)
            return
        key, standing = (rule.id, subject), self._standing
        alert = standing.alerts.get(key)
        if found.verdict is Verdict.BROKEN:
            self._break(key, alert, found.error, changes, now)
            return
        if standing.broken:
            standing.broken.pop(key, None)
        if alert is None and found.verdict is not Verdict.TRUE:
            return
        if alert is not None and key in standing.unresumed and found.verdict is not Verdict.UNKNOWN:
            standing.unresumed.discard(key)
            alert = resumed(alert, rule, facts)
        self._apply(alert, step(alert, rule, subject, self.cluster, found, facts, now), changes, now)

    def _step_digests(self, now: datetime) -> list[AlertChanged]:
        changes: list[AlertChanged] = []
        for rule_id, digest in sorted(self._digests.items()):
            subject = digest_subject(rule_id)
            key = (rule_id, subject)
            alert, found = self._standing.alerts.get(key), digest.evaluation(now)
            rule = digest_rule(self._rules[rule_id])
            self._standing.unresumed.discard(key)
            self._apply(alert, step(alert, rule, subject, self.cluster, found, digest.facts(), now), changes, now)
            if found.verdict is Verdict.FALSE and key not in self._standing.alerts:
                del self._digests[rule_id]  # from here on the rule speaks of each subject
        return changes

    def _break(
        self, key: AlertKey, alert: Alert | None, error: str, changes: list[AlertChanged], now: datetime
    ) -> None:
        is_new = key not in self._standing.broken
        self._standing.broken[key] = error
        if alert is not None and is_new:
            self._apply(alert, (frozen(alert, error, now), ChangeReason.RULE_BROKEN), changes, now)

    def _apply(
        self,
        alert: Alert | None,
        change: tuple[Alert, ChangeReason] | None,
        changes: list[AlertChanged],
        now: datetime,
    ) -> None:
        if change is not None:
            self._tell(*change, AlertState.INACTIVE if alert is None else alert.state, changes, now)
        elif alert is not None:
            self._standing.put(alert)

    def _tell(
        self, alert: Alert, reason: ChangeReason, was: AlertState, changes: list[AlertChanged], at: datetime
    ) -> None:
        self._standing.put(alert)
        change = AlertChanged(alert=alert, was=was, reason=reason, at=at)
        self.histories.note(change)
        changes.append(change)

    def _elapse(self, now: datetime, *, inclusive: bool) -> list[AlertChanged]:
        changes: list[AlertChanged] = []
        while (found := self._standing.pop_due(now, inclusive=inclusive)) is not None:
            at, alert = found
            self._tell(*elapse(alert, at), alert.state, changes, at)
        return changes

    def _forget(self, subject: Subject, changes: list[AlertChanged], now: datetime) -> None:
        self._seen.pop(subject, None)
        for rule_id in sorted(self._standing.active.get(subject, ())):
            alert = self._standing.alerts[(rule_id, subject)]
            self._tell(*ended(alert, ChangeReason.SUBJECT_GONE), alert.state, changes, now)
        for key in [key for key in self._standing.broken if key[1] == subject]:
            del self._standing.broken[key]
        for digest in self._digests.values():
            digest.forget(subject)

    def _end_rule(self, rule_id: str, reason: ChangeReason, changes: list[AlertChanged], now: datetime) -> None:
        for key in sorted(key for key in self._standing.alerts if key[0] == rule_id):
            alert = self._standing.alerts[key]
            self._tell(*ended(alert, reason), alert.state, changes, now)
        for key in [key for key in self._standing.broken if key[0] == rule_id]:
            del self._standing.broken[key]
        if rule_id not in self._rules:
            self._digests.pop(rule_id, None)

    def _demote(self, rule_ids: Iterable[str], current: Mapping[Subject, Facts]) -> list[tuple[str, int]]:
        demoted = []
        for rule_id in sorted(rule_ids):
            rule = self._rules[rule_id]
            self._digests.pop(rule_id, None)
            fresh = [
                subject
                for subject, facts in current.items()
                if subject.kind is rule.subject
                and (rule_id, subject) not in self._standing.alerts
                and rule.evaluate(facts).verdict is Verdict.TRUE
            ]
            if len(fresh) > self.most_at_once:
                self._digests[rule_id] = Digest()
                demoted.append((rule_id, len(fresh)))
        return demoted

    def _retell(self, before: Mapping[str, Rule], now: datetime) -> list[AlertChanged]:
        """Firing alerts whose rule only says it in other words now: the message is to be written again."""
        changes: list[AlertChanged] = []
        for (rule_id, _), alert in sorted(self._standing.alerts.items()):
            old, new = before.get(rule_id), self._rules[rule_id]
            if alert.state is AlertState.FIRING and old is not None and _words(old) != _words(new):
                self._tell(alert, ChangeReason.RULE_CHANGED, alert.state, changes, now)
        return changes


def _words(rule: Rule) -> tuple[object, ...]:
    return rule.annotations, rule.severity, rule.cause, rule.playbook, rule.hop, rule.triage, rule.description
