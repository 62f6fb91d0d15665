"""
Traces of the way from an observation to a person: one per message or step in the cluster, not one per event.

    sevenhop.event              observed ──────────────────────────► stored
      ├─ sevenhop.wait          observed ──► taken up by the engine
      ├─ sevenhop.engine                    ──► decided
      ├─ sevenhop.store                                ──► stored
      └─ sevenhop.deliver       each call of the receiver, with its outcome

Spans are made afterwards, from times that are known anyway, so that a step which tells nobody anything costs nothing.
Without OpenTelemetry (the extra `otel`), or without an address, `build_tracer` gives None and nothing is done.
"""

from __future__ import annotations

import logging
import threading
from collections import OrderedDict
from collections.abc import Callable, Sequence
from copy import copy
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, Self

from sevenhop.core.effects import Act, Effect, Notify
from sevenhop.core.engine import Step
from sevenhop.core.events import Event
from sevenhop.telemetry.table import DeliveryOutcome, event_name
from sevenhop.telemetry.times import StepTimes
from sevenhop.version import __version__

if TYPE_CHECKING:
    from opentelemetry.trace import SpanContext, Tracer

log = logging.getLogger("sevenhop.traces")

MOST_UNDER_WAY = 10_000
"""Effects whose trace is remembered until they are delivered; the oldest are forgotten first."""

CLOSE_WITHIN_S = 1.0

NEEDS_EXTRA = "telemetry.traces is set, and OpenTelemetry is not installed; install sevenhop[otel], or unset it"


class Traces:
    """
    Args:
        tracer: Of OpenTelemetry.
        flush: Sends what is left; called once, at the end.
    """

    def __init__(self, tracer: Tracer, cluster: str, flush: Callable[[], object] = lambda: None) -> None:
        self._tracer = tracer
        self._cluster = cluster
        self._flush = flush
        self._under_way: OrderedDict[str, SpanContext] = OrderedDict()

    def of(self, cluster: str) -> Self:
        """The same traces, for what happens in another cluster."""
        made = copy(self)
        made._cluster = cluster  # noqa: SLF001  another of ours
        return made

    def stepped(self, events: Sequence[Event], step: Step, times: StepTimes) -> None:
        """One step is stored; traced if something is asked for."""
        if not step.effects:
            return
        # The newest event is the one that tipped it, as far as can be told; what is dated later is of other clocks.
        newest = max(events, key=lambda event: event.at, default=None)
        observed = min(newest.at, times.began) if newest is not None else times.began
        decided = times.began + timedelta(seconds=times.engine_s)
        stored = max(times.stored, decided)
        for effect in step.effects:
            attributes = {
                **_attributes(effect, self._cluster),
                "sevenhop.event": event_name(type(newest)) if newest is not None else "tick",
                "sevenhop.events": len(events),
            }
            root = self._span("sevenhop.event", observed, stored, attributes, None)
            self._span("sevenhop.wait", observed, times.began, {}, root)
            self._span("sevenhop.engine", times.began, decided, {}, root)
            self._span("sevenhop.store", decided, stored, {}, root)
            self._under_way[effect.id] = root
        while len(self._under_way) > MOST_UNDER_WAY:
            self._under_way.popitem(last=False)

    def delivered(
        self, receiver: str, effect: Effect, outcome: DeliveryOutcome, ended: datetime, took_s: float
    ) -> None:
        """
        One call of a receiver ended.

        After a restart the observation is not known any more; the call is then a trace of its own.
        """
        attributes = {
            **_attributes(effect, self._cluster),
            "sevenhop.receiver": receiver,
            "sevenhop.outcome": str(outcome),
        }
        began = ended - timedelta(seconds=took_s)
        context = self._under_way.get(effect.id)
        is_good = outcome is DeliveryOutcome.DELIVERED
        self._span("sevenhop.deliver", began, ended, attributes, context, failed=not is_good)
        if outcome in (DeliveryOutcome.DELIVERED, DeliveryOutcome.REFUSED):
            self._under_way.pop(effect.id, None)

    def close(self) -> None:
        """Send what is left, if that is quick: a stop does not wait for a receiver that is gone."""
        flushing = threading.Thread(target=self._flush, name="traces", daemon=True)
        flushing.start()
        flushing.join(CLOSE_WITHIN_S)

    def _span(
        self,
        name: str,
        began: datetime,
        ended: datetime,
        attributes: dict[str, Any],
        parent: SpanContext | None,
        *,
        failed: bool = False,
    ) -> SpanContext:
        from opentelemetry import trace

        context = trace.set_span_in_context(trace.NonRecordingSpan(parent)) if parent is not None else None
        # An empty context, not None: a trace of ours has nothing to do with whatever is under way around us.
        span = self._tracer.start_span(
            name, context=context or trace.set_span_in_context(trace.INVALID_SPAN), start_time=_ns(began),
            attributes=attributes,
        )  # fmt: skip
        if failed:
            span.set_status(trace.StatusCode.ERROR)
        span.end(end_time=_ns(max(ended, began)))
        return span.get_span_context()


def build_tracer(address: str, cluster: str) -> Traces | None:
    """Traces to an OTLP/HTTP receiver; None where nothing is asked for, or OpenTelemetry is not installed (said)."""
    if not address:
        return None
    try:
        from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
        from opentelemetry.sdk.resources import Resource
        from opentelemetry.sdk.trace import TracerProvider
        from opentelemetry.sdk.trace.export import BatchSpanProcessor
    except ImportError:
        log.warning(NEEDS_EXTRA)
        return None
    ours = {"service.name": "sevenhop", "service.version": __version__}
    if cluster:  # a worker of many says it of each span
        ours["k8s.cluster.name"] = cluster
    resource = Resource.create(ours)
    provider = TracerProvider(resource=resource, shutdown_on_exit=False)
    # Sends from a thread of its own, keeps a bounded queue, and drops what no receiver takes.
    provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter(f"{address.rstrip('/')}/v1/traces", timeout=5)))
    return Traces(provider.get_tracer("sevenhop", __version__), cluster, provider.shutdown)


def _attributes(effect: Effect, cluster: str) -> dict[str, Any]:
    found: dict[str, Any] = {"k8s.cluster.name": cluster, "sevenhop.effect": effect.id}
    if isinstance(effect, Notify):
        labels = effect.message.labels
        found |= {
            "sevenhop.incident": effect.incident,
            "sevenhop.reason": effect.reason,
            "k8s.namespace.name": labels.get("namespace", ""),
            "inference_workload": labels.get("inference_workload", ""),
            "inference_workload_component": labels.get("inference_workload_component", ""),
        }
    elif isinstance(effect, Act):
        found |= {
            "sevenhop.incident": effect.incident,
            "sevenhop.plan": effect.plan.id,
            "sevenhop.purpose": str(effect.purpose),
        }
    return {name: value for name, value in found.items() if value != ""}


def _ns(at: datetime) -> int:
    return int(at.timestamp() * 1_000_000) * 1_000
