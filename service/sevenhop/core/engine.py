"""
The core as one machine: events in, effects and rows out.

    inventory.apply → settle → alerts → incidents → plans → messages and steps

No clock, no I/O: the same engine runs under the embedded runtime, in replays, in rule tests and in benchmarks.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta

import msgspec

from sevenhop.core.alerts.alert import Alert, AlertChanged
from sevenhop.core.alerts.book import AlertBook, Reloaded
from sevenhop.core.alerts.explain import Explanation as RuleExplanation
from sevenhop.core.alerts.explain import explain
from sevenhop.core.alerts.rule import Rule
from sevenhop.core.effects import Act, Effect, Reply, Row
from sevenhop.core.events import (
    Applied,
    BreakerReset,
    Decided,
    Deleted,
    Event,
    GpusSampled,
    Outcome,
    Recalled,
    Silenced,
    StepDone,
    SwitchSet,
)
from sevenhop.core.facts.schema import LABELS, FactValue, Unknown
from sevenhop.core.incidents.context import SubjectContext
from sevenhop.core.incidents.desk import IncidentDesk
from sevenhop.core.incidents.settings import DeskSettings
from sevenhop.core.inventory.framework import FrameworkSpec
from sevenhop.core.inventory.inventory import Inventory
from sevenhop.core.inventory.policy import Policy
from sevenhop.core.keeping import ALERTS, LAST_SEEN, alert_row, history_rows, load_histories, read_alert, read_time
from sevenhop.core.remediation.audit import AuditRecord, Head
from sevenhop.core.remediation.desk import RemediationDesk
from sevenhop.core.remediation.permit import Permit, Refusal
from sevenhop.core.remediation.reduction import ScalingTable
from sevenhop.core.remediation.settings import RemediationSettings
from sevenhop.core.subject import Subject

STORED_EVERY = timedelta(seconds=30)
"""
How often histories, and the time itself, are stored: a crash loses at most this much of them, and at most this much of
a running `for:` counts as blind.
"""


_OBSERVATIONS = frozenset((Applied, Deleted, GpusSampled))
"""Nearly all events: only the inventory takes them in."""


class Step(msgspec.Struct, frozen=True, kw_only=True):
    """
    What came of some events; stored in one transaction before anything else is done with it.

    Attributes:
        effects: What is asked for, in order.
        saves: Rows that changed.
        changes: Alerts that changed, for those who watch.
        replies: To those who asked; handed on once the step is stored, and not kept.
        records: Of the audit trail, in order; appended in the same transaction.
        next_wake: When the engine wants to be called even if nothing happens; None if never.
    """

    effects: tuple[Effect, ...] = ()
    saves: tuple[Row, ...] = ()
    changes: tuple[AlertChanged, ...] = ()
    replies: tuple[Reply, ...] = ()
    records: tuple[AuditRecord, ...] = ()
    next_wake: datetime | None = None


class Explanation(msgspec.Struct, frozen=True, kw_only=True):
    """
    Everything about one subject.

    Attributes:
        labels: Those that are not empty.
        facts: In order of name; unknown ones with their reason.
        rules: Of every rule about such subjects, whether it fires and why or why not.
        context: Its hop report, pods, pool and changes; None for one that is gone.
    """

    subject: Subject
    labels: dict[str, str]
    facts: dict[str, FactValue | Unknown]
    rules: tuple[RuleExplanation, ...]
    context: SubjectContext | None


class Engine:
    """One cluster.  Mutable, owned by one caller; equal events again change nothing and ask for nothing."""

    def __init__(
        self,
        cluster: str,
        frameworks: Sequence[FrameworkSpec],
        rules: Iterable[Rule],
        policy: Policy,
        settings: DeskSettings,
        remediation: RemediationSettings | None = None,
        scaling: ScalingTable | None = None,
    ) -> None:
        """
        Args:
            remediation: Without it nothing is ever offered.
            scaling: What rules the replicas of each framework's components.
        """
        rules = tuple(rules)
        self.inventory = Inventory(cluster, frameworks, policy)
        self.alerts = AlertBook(rules, cluster)
        self.desk = IncidentDesk(settings, cluster, rules)
        self.remediation = RemediationDesk(remediation or RemediationSettings(), cluster, scaling or {})
        self.problems: list[str] = []
        self._stored_at: datetime | None = None

    def handle(self, events: Sequence[Event], now: datetime) -> Step:
        """Take in events, or, without any, the passing of time up to `now`."""
        for event in events:
            self.inventory.apply(event)
            if type(event) in _OBSERVATIONS:
                continue
            if isinstance(event, Silenced | Outcome | Recalled):
                self.desk.hear(event)
            if isinstance(event, Decided | SwitchSet | BreakerReset | StepDone | Outcome):
                self.remediation.hear(event)
        settled = self.inventory.settle(now)
        changes = self.alerts.evaluate(settled.changed, settled.gone, now)
        self.inventory.rules_broken(len(self.alerts.broken()))
        return self._step(changes, now)

    def reload(self, rules: Iterable[Rule], now: datetime) -> tuple[Step, Reloaded]:
        """Go on with other rules; alerts of rules that stay the same keep their state."""
        rules = tuple(rules)
        self.desk.reload(rules)
        reloaded = self.alerts.reload(rules, self.inventory.facts, now)
        return self._step(reloaded.changes, now), reloaded

    def permit(self, act: Act, now: datetime) -> Permit | Refusal:
        """Leave for one step in the cluster, asked by whoever does it, at the moment of the step."""
        return self.remediation.permit(act, now)

    def load(self, rows: Iterable[Row], now: datetime, last_record: AuditRecord | Head | None = None) -> Step:
        """
        Take over what an earlier process stored, before the first event.

        Rows that cannot be read are left out, and named in `problems`.
        """
        rows = list(rows)
        alerts, down_since = self._read(rows)
        self.problems += load_histories(self.inventory.state, rows)
        self.problems += self.desk.load(rows)
        self.problems += self.remediation.load(rows, last_record)
        changes = self.alerts.load(alerts, now, down_since)
        self.inventory.expect(self.alerts.subjects())
        return self._step(changes, now)

    def explain(self, subject: Subject, now: datetime) -> Explanation:
        """Why what is told of a subject is told, and why not."""
        facts = self.inventory.facts.get(subject)
        rules = [rule for rule in self.alerts.rules.values() if rule.subject is subject.kind]
        return Explanation(
            subject=subject,
            labels={name: str(facts[name]) for name in LABELS if facts[name]} if facts is not None else {},
            facts={name: value for name, value in sorted((facts or {}).items()) if name not in LABELS},
            rules=tuple(
                explain(rule, subject, self.alerts.alert(rule.id, subject), facts, now)
                for rule in sorted(rules, key=lambda rule: rule.id)
            ),
            context=self.inventory.context(subject, now),
        )

    def _step(self, changes: Sequence[AlertChanged], now: datetime) -> Step:
        touched = self.desk.take(changes, self.inventory, now)
        acts = self.remediation.step(self.desk, self.inventory.state, touched, now)
        touched |= self.remediation.take_touched()
        effects = [*self.desk.tell(touched, self.inventory, now, self.remediation), *acts]
        saves = [alert_row(change.alert) for change in changes]
        saves += self.desk.dirty()
        saves += self.remediation.dirty()
        if self._is_due(now):
            self._stored_at = now
            saves += history_rows(self.inventory.state)
            saves.append(Row(LAST_SEEN.table, LAST_SEEN.key, msgspec.json.encode(now)))
        return Step(
            effects=tuple(effects),
            saves=tuple(saves),
            changes=tuple(changes),
            replies=self.remediation.replies(),
            records=self.remediation.records(),
            next_wake=self._next_wake(),
        )

    def _is_due(self, now: datetime) -> bool:
        if not self._has_to_store():
            return False
        return self._stored_at is None or now >= self._stored_at + STORED_EVERY

    def _has_to_store(self) -> bool:
        return bool(self.inventory.state.changed_histories) or self.alerts.has_active()

    def _next_wake(self) -> datetime | None:
        store_at = self._stored_at + STORED_EVERY if self._stored_at is not None and self._has_to_store() else None
        wakes = (
            self.inventory.next_wake,
            self.alerts.next_wake,
            self.desk.next_wake,
            self.remediation.next_wake,
            store_at,
        )
        return min((at for at in wakes if at is not None), default=None)

    def _read(self, rows: Iterable[Row]) -> tuple[list[Alert], datetime | None]:
        alerts: list[Alert] = []
        down_since: datetime | None = None
        for row in rows:
            if row.value is None:
                continue
            try:
                if row.table == ALERTS:
                    alerts.append(read_alert(row.value))
                elif (row.table, row.key) == (LAST_SEEN.table, LAST_SEEN.key):
                    down_since = read_time(row.value)
            except msgspec.MsgspecError as error:
                self.problems.append(f"{row.table}/{row.key}: {error}")
        return alerts, down_since
