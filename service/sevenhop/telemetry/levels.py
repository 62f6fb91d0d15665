"""
What is read when somebody asks: levels of the engine, its sources and its outbox, as they are at that moment.

A large cluster has many pods and facts: they are looked at in slices, so that a scrape holds up no event for longer
than a step does, and not more often than every `FACTS_EVERY_S`.
"""

from __future__ import annotations

import asyncio
import time
from collections import Counter as Tally
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime
from functools import lru_cache
from typing import Any, Protocol

from sevenhop.core.engine import Engine
from sevenhop.core.events import SyncState
from sevenhop.core.facts.schema import Facts, Unknown
from sevenhop.core.facts.source import OUTBOX, RULEBOOK
from sevenhop.core.hops.failures_quote import mask
from sevenhop.core.objects.kinds import KINDS
from sevenhop.core.subject import Subject, SubjectKind
from sevenhop.telemetry.table import METRICS, OTHER

FACTS_EVERY_S = 10.0
SLICE = 100
"""Subjects looked at in one go: about a millisecond."""

OURS = (RULEBOOK, OUTBOX)
"""Parts of ourselves, which have metrics of their own."""

Sample = tuple[str, tuple[str, ...], float]
"""(metric's name, label values, value)"""

_POD_LABELS = ("node", "workload", "component", "model", "model_version", "tier")


class SourceStatus(Protocol):
    """How the source of one kind is doing, such as `sources.kubernetes.status.KindStatus`."""

    @property
    def kind(self) -> str: ...
    @property
    def state(self) -> SyncState: ...
    @property
    def objects(self) -> int: ...
    @property
    def errors(self) -> int: ...
    @property
    def lists(self) -> int: ...
    @property
    def unreadable(self) -> int: ...
    @property
    def last_success_at(self) -> datetime | None: ...


class Levels:
    """
    Levels of one engine.

    Args:
        pod_limit: Most pods in `sevenhop_pod_info`; may be changed between two calls.
        started: What counts as last heard of a source that never said anything.
    """

    def __init__(
        self,
        engine: Engine,
        statuses: Callable[[], Iterable[SourceStatus]],
        now: Callable[[], datetime],
        *,
        pod_limit: int,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._engine = engine
        self._statuses = statuses
        self._now = now
        self.pod_limit = pod_limit
        self._monotonic = monotonic
        self._started = now()
        self._from_facts: list[Sample] = []
        self._facts_at: float | None = None

    async def samples(self) -> list[Sample]:
        """All of them; costs no more than some milliseconds at a time."""
        cluster = self._engine.inventory.state.cluster
        return [
            *source_samples(cluster, self._statuses(), self._now(), self._started),
            *engine_samples(cluster, self._engine),
            *await self._of_facts(cluster),
        ]

    async def _of_facts(self, cluster: str) -> list[Sample]:
        if self._facts_at is None or self._monotonic() - self._facts_at >= FACTS_EVERY_S:
            facts = list(self._engine.inventory.facts.items())
            self._from_facts = await fact_samples(cluster, facts, self.pod_limit)
            self._facts_at = self._monotonic()
        return self._from_facts


def source_samples(cluster: str, statuses: Iterable[SourceStatus], now: datetime, started: datetime) -> list[Sample]:
    """Of each kind that the API server serves."""
    found: list[Sample] = []
    for status in statuses:
        if status.state is SyncState.ABSENT:
            continue
        place = (cluster, status.kind)
        heard = status.last_success_at or started
        found += [
            *_state(place, status.state),
            ("sevenhop_source_staleness_seconds", place, max(0.0, (now - heard).total_seconds())),
            ("sevenhop_source_objects", place, status.objects),
            ("sevenhop_source_unreadable_objects", place, status.unreadable),
            ("sevenhop_source_errors_total", place, status.errors),
            ("sevenhop_source_lists_total", place, status.lists),
        ]
    return found


def engine_samples(cluster: str, engine: Engine) -> list[Sample]:
    """Rules, alerts, incidents, plans, guards; words that could be there and are not are 0, so that alerts can fire."""
    state, desk, plans = engine.inventory.state, engine.desk, engine.remediation
    incidents = [incident for incident in desk.incidents.values() if incident.is_open]
    answers = [plans.answer(incident.key) for incident in incidents]
    reasons = [answer.reason for answer in answers if answer is not None and answer.reason is not None]
    switch = plans.switch
    rulebook = engine.inventory.facts.get(Subject(SubjectKind.SOURCE, "", RULEBOOK), {})
    problems = rulebook.get("source.rulebook_problems", 0)
    found: list[Sample] = [
        ("sevenhop_rules", (cluster,), len(engine.alerts.rules)),
        ("sevenhop_rules_broken", (cluster,), len({broken.rule_id for broken in engine.alerts.broken()})),
        ("sevenhop_rulebook_problems", (cluster,), problems if isinstance(problems, int) else 0),
        ("sevenhop_pods_disagreeing", (cluster,), state.pending.disagreeing()),
        ("sevenhop_scheduler_disagreements_total", (cluster,), state.pending.disagreements),
        ("sevenhop_kill_switch_on", (cluster,), float(switch.is_on or switch.by_settings)),
        ("sevenhop_circuit_breaker_open", (cluster,), float(plans.breaker.is_open)),
    ]
    beside = {kind: its for kind, its in state.objects.states.items() if kind not in KINDS and kind not in OURS}
    return [
        *found,
        *(sample for kind, its in beside.items() for sample in _state((cluster, kind), its)),
        *_by_word("sevenhop_alerts", cluster, Tally(alert.state for alert in engine.alerts.snapshot())),
        *_by_word("sevenhop_incidents_open", cluster, Tally(incident.severity for incident in incidents)),
        *_by_word("sevenhop_incidents_without_plan", cluster, Tally(reasons)),
        *_by_word("sevenhop_plans", cluster, Tally(case.state for case in plans.cases)),
        *_by_word("sevenhop_notify_decisions_total", cluster, desk.decisions.counts),
    ]


def _state(place: tuple[str, str], state: SyncState) -> list[Sample]:
    return [("sevenhop_source_state", (*place, each), float(each is state)) for each in SyncState]


def _by_word(name: str, cluster: str, counts: Mapping[Any, int]) -> list[Sample]:
    words = METRICS[name].labels[-1].values or frozenset()
    return [(name, (cluster, word), counts.get(word, 0)) for word in sorted(words - {OTHER})]


async def fact_samples(cluster: str, facts: Sequence[tuple[Subject, Facts]], pod_limit: int) -> list[Sample]:
    """Unknown facts by reason, and one row for each pod of a workload, up to a limit."""
    unknown: Tally[tuple[str, str]] = Tally()
    pods: list[Sample] = []
    left_out = 0
    for number, (subject, its) in enumerate(facts):
        if number % SLICE == SLICE - 1:
            await asyncio.sleep(0)
        for value in its.values():
            if type(value) is Unknown:
                unknown[subject.kind, value.reason] += 1
        if subject.kind is not SubjectKind.POD:
            continue
        if len(pods) < pod_limit:
            labels = [_text(its.get(name, "")) for name in _POD_LABELS]
            pods.append(("sevenhop_pod_info", (cluster, subject.namespace, subject.name, *labels), 1.0))
        else:
            left_out += 1
    return [
        *(("sevenhop_unknown_facts", (cluster, *what), float(count)) for what, count in unknown.items()),
        *pods,
        ("sevenhop_pod_info_left_out", (cluster,), float(left_out)),
    ]


def outbox_samples(
    cluster: str, waiting: Mapping[str, int], since: Mapping[str, datetime], failing: Iterable[str],
    receivers: Iterable[str], now: datetime,
) -> list[Sample]:  # fmt: skip
    """
    Of each receiver.

    Args:
        waiting: Receiver to the number of parcels.
        since: Receiver to since when it has something to take and takes nothing.
        receivers: Those that have nothing to do show 0.
    """
    failed = set(failing)
    found: list[Sample] = []
    for name in sorted({*receivers, *waiting}):
        age = (now - since[name]).total_seconds() if name in since and waiting.get(name) else 0.0
        found += [
            ("sevenhop_outbox_messages", (cluster, name), waiting.get(name, 0)),
            ("sevenhop_outbox_age_seconds", (cluster, name), max(0.0, age)),
            ("sevenhop_outbox_failing", (cluster, name), float(name in failed)),
        ]
    return found


@lru_cache(maxsize=10_000)
def _masked(text: str) -> str:
    # A model may be named by an address, and an address may carry a password.
    return mask(text)


def _text(value: object) -> str:
    return _masked(value) if isinstance(value, str) else ""
