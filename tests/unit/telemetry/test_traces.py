"""Traces of one event's way, with the real OpenTelemetry and its exporter in memory."""

from __future__ import annotations

import subprocess
import sys
import threading
from pathlib import Path

import pytest
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from sevenhop.core.engine import Step
from sevenhop.core.events import Tick
from sevenhop.telemetry import traces as traces_module
from sevenhop.telemetry.table import DeliveryOutcome
from sevenhop.telemetry.times import StepTimes
from sevenhop.telemetry.traces import Traces, build_tracer
from tests.builders import NOON, at, node, notify
from tests.shared import ROOT
from tests.unit.runtime.harness import Script, running, until

TIMES = StepTimes(at(2), at(2.5), 0.1, 0.2)


class Recorded:
    """A tracer whose spans are kept."""

    def __init__(self) -> None:
        self._kept = InMemorySpanExporter()
        provider = TracerProvider(shutdown_on_exit=False)
        provider.add_span_processor(SimpleSpanProcessor(self._kept))
        self.traces = Traces(provider.get_tracer("test"), "prod-eu")

    @property
    def spans(self) -> list[ReadableSpan]:
        return list(self._kept.get_finished_spans())

    def one(self, name: str) -> ReadableSpan:
        (found,) = [span for span in self.spans if span.name == name]
        return found


def seconds(span: ReadableSpan) -> tuple[float, float]:
    """(start, end) after noon"""
    assert span.start_time is not None
    assert span.end_time is not None
    return tuple(round(each / 1e9 - NOON.timestamp(), 3) for each in (span.start_time, span.end_time))  # type: ignore[return-value]


def test_the_way_of_an_event_to_a_person() -> None:
    """Waited, decided, stored, delivered: one trace, with times that follow each other."""
    recorded = Recorded()
    recorded.traces.stepped([Tick(at=at(1)), Tick(at=at(0))], Step(effects=(notify(1),)), TIMES)
    recorded.traces.delivered("slack", notify(1), DeliveryOutcome.DELIVERED, at(4), 1.0)

    assert {s.name: seconds(s) for s in recorded.spans} == {
        "sevenhop.event": (1, 2.5),
        "sevenhop.wait": (1, 2),
        "sevenhop.engine": (2, 2.1),
        "sevenhop.store": (2.1, 2.5),
        "sevenhop.deliver": (3, 4),
    }
    root = recorded.one("sevenhop.event")
    assert root.parent is None
    assert root.context is not None
    assert {s.parent.span_id for s in recorded.spans if s.parent is not None} == {root.context.span_id}
    assert {s.context.trace_id for s in recorded.spans if s.context is not None} == {root.context.trace_id}
    assert root.attributes is not None
    assert root.attributes["sevenhop.incident"] == "i-1"
    assert root.attributes["k8s.cluster.name"] == "prod-eu"


def test_a_clock_ahead_of_ours_makes_no_span_that_ends_before_it_begins() -> None:
    """What was observed in our future counts as observed now."""
    recorded = Recorded()
    recorded.traces.stepped([Tick(at=at(99))], Step(effects=(notify(1),)), TIMES)

    assert seconds(recorded.one("sevenhop.event")) == (2, 2.5)
    assert seconds(recorded.one("sevenhop.wait")) == (2, 2)


def test_a_worker_says_of_each_span_which_cluster_it_is_of() -> None:
    """One tracer for many clusters; a delivery belongs to the trace that its cluster's step began."""
    recorded = Recorded()
    recorded.traces.of("us").stepped([Tick(at=at(1))], Step(effects=(notify(1),)), TIMES)
    recorded.traces.of("us").delivered("slack", notify(1), DeliveryOutcome.DELIVERED, at(4), 1.0)

    told = {span.name: (span.attributes or {}).get("k8s.cluster.name") for span in recorded.spans}
    assert (told["sevenhop.event"], told["sevenhop.deliver"]) == ("us", "us")
    assert len({span.context.trace_id for span in recorded.spans if span.context is not None}) == 1


def test_what_tells_nobody_is_not_traced() -> None:
    """Ten thousand events a second would drown what matters, and cost."""
    recorded = Recorded()
    recorded.traces.stepped([Tick(at=NOON)], Step(), TIMES)

    assert recorded.spans == []


def test_each_call_is_in_the_trace_until_it_arrives() -> None:
    """A failed call is an error in the trace; after the last one nothing is remembered."""
    recorded = Recorded()
    recorded.traces.stepped([Tick(at=at(1))], Step(effects=(notify(1),)), TIMES)
    for outcome in (DeliveryOutcome.RETRIED, DeliveryOutcome.DELIVERED):
        recorded.traces.delivered("slack", notify(1), outcome, at(4), 1.0)

    calls = [span for span in recorded.spans if span.name == "sevenhop.deliver"]
    assert [span.status.is_ok for span in calls] == [False, True]
    assert len({span.context.trace_id for span in calls if span.context is not None}) == 1
    assert recorded.traces._under_way == {}


def test_what_was_asked_for_by_an_earlier_process_is_a_trace_of_its_own() -> None:
    """After a restart the observation is not known any more; the call is still seen."""
    recorded = Recorded()
    recorded.traces.delivered("slack", notify(1), DeliveryOutcome.DELIVERED, at(4), 1.0)

    assert recorded.one("sevenhop.deliver").parent is None


def test_memory_does_not_grow_with_what_is_never_delivered(monkeypatch: pytest.MonkeyPatch) -> None:
    """Superseded messages are never delivered: the oldest are forgotten."""
    monkeypatch.setattr(traces_module, "MOST_UNDER_WAY", 3)
    recorded = Recorded()
    for number in range(9):
        recorded.traces.stepped([], Step(effects=(notify(number),)), TIMES)

    assert list(recorded.traces._under_way) == ["i-1/slack/6", "i-1/slack/7", "i-1/slack/8"]


async def test_the_runtime_traces_its_messages(tmp_path: Path) -> None:
    """A real loop, store and outbox: the spans of one message share one trace, from the observation on."""
    recorded = Recorded()
    async with running(tmp_path, {"slack": (slack := Script())}) as plant:
        plant.embedded.watches.append(recorded.traces.stepped)
        plant.embedded.outbox.watches.append(
            lambda receiver, effect, outcome, took_s: recorded.traces.delivered(
                receiver, effect, outcome, plant.embedded.now(), took_s
            )
        )
        plant.told.synced(node("n1"))
        plant.told.node("n1", ready=False)
        await until(lambda: len(slack.messages) == 1 and plant.embedded.is_idle)

    traces = {span.context.trace_id for span in recorded.spans if span.context is not None}
    assert {span.name for span in recorded.spans} >= {"sevenhop.event", "sevenhop.deliver"}
    assert len(traces) == 1


def test_without_an_address_nothing_is_loaded() -> None:
    """Who wants no traces does not pay for OpenTelemetry, not even for its import."""
    code = (
        "import sys; from sevenhop.telemetry.traces import build_tracer; assert build_tracer('', 'c') is None; "
        "assert not [m for m in sys.modules if m.startswith('opentelemetry')]"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, timeout=60)

    assert done.returncode == 0, done.stderr


def test_without_the_extra_it_is_said(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    """Asked for and not installed: a line in the log, and the service goes on."""
    monkeypatch.setitem(sys.modules, "opentelemetry.sdk.trace", None)

    assert build_tracer("http://localhost:4318", "c") is None
    assert "sevenhop[otel]" in caplog.text


def test_a_stop_does_not_wait_for_a_receiver_that_is_gone(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its spans are lost, which harms nobody; a stop takes no longer for it."""
    monkeypatch.setattr(traces_module, "CLOSE_WITHIN_S", 0.05)
    recorded = Recorded()
    answers, left = threading.Event(), threading.Event()

    def flush() -> None:
        answers.wait(60)
        left.set()

    Traces(recorded.traces._tracer, "c", flush=flush).close()

    assert not left.is_set()
    answers.set()
