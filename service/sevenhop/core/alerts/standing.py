"""The alerts that are not inactive: by rule and by subject, and when time alone changes each of them."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from heapq import heapify, heappop, heappush

import msgspec

from sevenhop.core.alerts.alert import Alert, AlertState
from sevenhop.core.alerts.history import AlertKey
from sevenhop.core.alerts.rule import Rule
from sevenhop.core.alerts.step import LONGEST_BLIND_WAIT, due
from sevenhop.core.subject import Subject

_STALE_WAKES = 1_000


class BrokenRule(msgspec.Struct, frozen=True):
    """A rule whose expression fails although every fact is there."""

    rule_id: str
    subjects: int
    example: Subject
    error: str


class StandingAlerts:
    """
    Mutable, owned by one book.

    Attributes:
        rules: Enabled ones, by id; the book sets them.
        alerts: By rule and subject.
        active: Subject to the rules that have an alert on it.
        broken: What failed where a rule cannot be evaluated, though every fact is there; also without an alert.
        unresumed: Loaded from the store, and not known again since.
        loaded_at: When that was; None without.
    """

    def __init__(self) -> None:
        self.rules: Mapping[str, Rule] = {}
        self.alerts: dict[AlertKey, Alert] = {}
        self.active: dict[Subject, set[str]] = {}
        self.broken: dict[AlertKey, str] = {}
        self.unresumed: set[AlertKey] = set()
        self.loaded_at: datetime | None = None
        self._wake: list[tuple[datetime, str, Subject]] = []
        self._appointed: dict[AlertKey, datetime] = {}  # the entry of `_wake` that counts

    @property
    def next_wake(self) -> datetime | None:
        """When `pop_due` has one; None if never."""
        while self._wake:
            at, rule_id, subject = self._wake[0]
            if self._due((rule_id, subject)) == at:
                return at
            heappop(self._wake)  # an earlier appointment, changed since
            if self._appointed.get((rule_id, subject)) == at:
                del self._appointed[(rule_id, subject)]
        return None

    def pop_due(self, now: datetime, *, inclusive: bool) -> tuple[datetime, Alert] | None:
        """
        The next alert whose time has come before `now`, or at it, with its moment; None if there is none.

        Its appointment is over: it has to be put again.
        """
        at = self.next_wake
        if at is None or not (at < now or (inclusive and at == now)):
            return None
        _, rule_id, subject = heappop(self._wake)
        del self._appointed[(rule_id, subject)]
        return at, self.alerts[(rule_id, subject)]

    def put(self, alert: Alert) -> None:
        """In place of what stood there; an inactive one is forgotten, and that its rule is broken with it."""
        if alert.state is AlertState.INACTIVE:
            self._drop((alert.rule_id, alert.subject))
        else:
            self._keep((alert.rule_id, alert.subject), alert)

    def broken_rules(self) -> list[BrokenRule]:
        """In order of rule."""
        found: dict[str, BrokenRule] = {}
        for (rule_id, subject), error in sorted(self.broken.items()):
            known = found.get(rule_id)
            if known is None:
                found[rule_id] = BrokenRule(rule_id, 1, subject, error)
            else:
                found[rule_id] = BrokenRule(rule_id, known.subjects + 1, known.example, known.error)
        return list(found.values())

    def _keep(self, key: AlertKey, alert: Alert) -> None:
        self.alerts[key] = alert
        self.active.setdefault(alert.subject, set()).add(alert.rule_id)
        at = self._due(key)
        if at is not None and self._appointed.get(key) != at:
            self._appointed[key] = at
            heappush(self._wake, (at, *key))
            if len(self._wake) > _STALE_WAKES + 2 * len(self.alerts):
                self._wake = [(when, *which) for which, when in self._appointed.items()]
                heapify(self._wake)

    def _drop(self, key: AlertKey) -> None:
        self.alerts.pop(key, None)
        self.broken.pop(key, None)
        self._appointed.pop(key, None)
        self.unresumed.discard(key)
        rule_id, subject = key
        if subject in self.active:
            self.active[subject].discard(rule_id)
            if not self.active[subject]:
                del self.active[subject]

    def _due(self, key: AlertKey) -> datetime | None:
        alert, rule = self.alerts.get(key), self.rules.get(key[0])
        if alert is None or rule is None or key in self.broken:
            return None
        if key in self.unresumed and self.loaded_at is not None and alert.state is AlertState.PENDING:
            return self.loaded_at + max(rule.hold, LONGEST_BLIND_WAIT)  # downtime is not time in which we looked
        return due(alert, rule)
