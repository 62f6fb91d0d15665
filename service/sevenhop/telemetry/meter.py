"""
What is counted as it happens: events, steps, decisions, deliveries, refusals, heartbeats.

The hooks are called by the runtime, in its loop; each costs microseconds, and one step is counted as a whole.
"""

from __future__ import annotations

import platform
from collections import Counter as Tally
from collections.abc import Callable, Sequence
from copy import copy
from datetime import datetime
from typing import Self

import prometheus_client
from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

from sevenhop.core.effects import Act
from sevenhop.core.engine import Step
from sevenhop.core.events import Applied, Deleted, Event, SourceChanged, StepDone, Unreadable
from sevenhop.core.remediation.permit import Permit, Refusal
from sevenhop.telemetry.table import METRICS, DeliveryOutcome, HeartbeatOutcome, Metric, event_name
from sevenhop.telemetry.times import StepTimes
from sevenhop.version import __version__

AskPermit = Callable[[Act, datetime], Permit | Refusal]

# Creation times as series of their own would double every counter, and nothing of ours reads them.
prometheus_client.disable_created_metrics()  # type: ignore[no-untyped-call]


class Meter:
    """
    Counts for one process, with a registry of its own: two in one process (tests) do not meet.

    Attributes:
        registry: What /metrics serves.
    """

    def __init__(self, cluster: str) -> None:
        self.cluster = cluster
        self.registry = CollectorRegistry()
        prometheus_client.ProcessCollector(registry=self.registry)
        prometheus_client.GCCollector(registry=self.registry)
        build = METRICS["sevenhop_build_info"]
        Gauge(build.name, build.doc, build.label_names, registry=self.registry).labels(
            __version__, platform.python_version()
        ).set(1)
        self._events = self._counter("sevenhop_events_total")
        self._lag = self._histogram("sevenhop_event_lag_seconds")
        self._steps = self._histogram("sevenhop_step_duration_seconds")
        self._changes = self._counter("sevenhop_alert_changes_total")
        self._refusals = self._counter("sevenhop_guard_refusals_total")
        self._acted = self._counter("sevenhop_action_steps_total")
        self._records = self._counter("sevenhop_audit_records_total")
        self._deliveries = self._counter("sevenhop_deliveries_total")
        self._delivering = self._histogram("sevenhop_delivery_duration_seconds")
        self._heartbeats = self._counter("sevenhop_heartbeats_total")

    def of(self, cluster: str) -> Self:
        """The same counters, for what happens in another cluster."""
        made = copy(self)
        made.cluster = cluster
        return made

    # Hooks

    def stepped(self, events: Sequence[Event], step: Step, times: StepTimes) -> None:
        """One step is stored."""
        self.counted(events, step, times.stored)
        self.took(times)

    def took(self, times: StepTimes) -> None:
        """So long a step took, of one cluster or of several at once."""
        self._steps[0].labels("engine").observe(times.engine_s)
        self._steps[0].labels("store").observe(times.store_s)

    def counted(self, events: Sequence[Event], step: Step, stored: datetime) -> None:
        """What a stored step of this cluster was made of."""
        for (kind_of_event, kind), count in Tally(map(_what, events)).items():
            self._add(self._events, self.cluster, event_name(kind_of_event), kind, by=count)
        if events:
            oldest = min(event.at for event in events)
            # What is dated in our future is of another clock: it says nothing of our lag.
            lag_s = max(0.0, (stored - oldest).total_seconds())
            self._lag[0].labels(*self._lag[1].values([self.cluster])).observe(lag_s)
        for change in step.changes:
            if change.was is not change.alert.state:
                self._add(self._changes, self.cluster, change.alert.state, change.reason)
        for record in step.records:
            self._add(self._records, self.cluster, record.what)
        for event in events:
            if type(event) is StepDone:
                self._add(self._acted, self.cluster, event.result)

    def delivered(self, receiver: str, outcome: DeliveryOutcome, took_s: float) -> None:
        """One call of a receiver ended."""
        self._add(self._deliveries, self.cluster, receiver, outcome)
        self._delivering[0].labels(receiver).observe(took_s)

    def heartbeat(self, outcome: HeartbeatOutcome) -> None:
        """One heartbeat was due."""
        self._add(self._heartbeats, outcome)

    def counting(self, permit: AskPermit) -> AskPermit:
        """The same question to the guards, with refusals counted."""

        def ask(act: Act, now: datetime) -> Permit | Refusal:
            answer = permit(act, now)
            if isinstance(answer, Refusal):
                self._add(self._refusals, self.cluster, answer.guard)
            return answer

        return ask

    # How

    def _add(self, counter: tuple[Counter, Metric], *labels: str, by: int = 1) -> None:
        made, metric = counter
        made.labels(*metric.values([str(label) for label in labels])).inc(by)

    def _counter(self, name: str) -> tuple[Counter, Metric]:
        metric = METRICS[name]
        return Counter(name, metric.doc, metric.label_names, registry=self.registry), metric

    def _histogram(self, name: str) -> tuple[Histogram, Metric]:
        metric = METRICS[name]
        made = Histogram(name, metric.doc, metric.label_names, registry=self.registry, buckets=metric.buckets)
        return made, metric


def _what(event: Event) -> tuple[type[Event], str]:
    """Type, and kind of object; empty for what is about none."""
    kind = event.kind if isinstance(event, Applied | Deleted | Unreadable | SourceChanged) else ""
    return type(event), kind
