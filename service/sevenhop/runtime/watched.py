"""The service, watched: what is measured of it, whether it is well, and who is told that it lives."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from sevenhop.channels.door import Handler
from sevenhop.core.effects import Effect
from sevenhop.runtime.embedded import Embedded
from sevenhop.runtime.listening import why_not_well
from sevenhop.sources.kubernetes.source import KubernetesSource
from sevenhop.stores.store import Store
from sevenhop.telemetry.gpu_sources import Looked, Pushed, gpu_source_samples
from sevenhop.telemetry.heartbeat import Heartbeat
from sevenhop.telemetry.levels import Levels, Sample, outbox_samples
from sevenhop.telemetry.meter import Meter
from sevenhop.telemetry.scrape import Scrape
from sevenhop.telemetry.settings import TelemetrySettings
from sevenhop.telemetry.table import DeliveryOutcome
from sevenhop.telemetry.traces import NEEDS_EXTRA, build_tracer


class Watched:
    """
    Measures a runtime from when it is made.

    Attributes:
        heartbeat: To be run beside the sources; it ends at once where nobody is to be told.
    """

    def __init__(
        self,
        settings: TelemetrySettings,
        meter: Meter,
        embedded: Embedded,
        source: KubernetesSource,
        store: Store,
        *,
        push: Pushed | None = None,
        dcgm: Iterable[Looked] = (),
    ) -> None:
        self._settings = settings
        self._push = push
        self._dcgm = tuple(dcgm)
        self._meter = meter
        self._embedded = embedded
        self._store = store
        self._levels = Levels(embedded.engine, source.status, embedded.now, pod_limit=settings.pod_info_limit)
        self.heartbeat = Heartbeat(
            settings.heartbeat, meter.cluster, meter, lambda: why_not_well(embedded), embedded.now
        )
        self._traces = build_tracer(settings.traces, meter.cluster)
        embedded.watches.append(meter.stepped)
        embedded.outbox.watches.append(self._delivered)
        if self._traces is not None:
            embedded.watches.append(self._traces.stepped)

    def routes(self) -> Mapping[str, Handler]:
        """Paths to serve; none where no metrics are wanted."""
        return {"/metrics": Scrape(self._meter.registry, self.samples).serve} if self._settings.metrics else {}

    async def samples(self) -> list[Sample]:
        """All levels of this moment."""
        embedded, beat = self._embedded, self.heartbeat
        outbox = embedded.outbox
        last = beat.last_success_at
        return [
            *await self._levels.samples(),
            *gpu_source_samples(self._meter.cluster, self._push, self._dcgm),
            *outbox_samples(
                self._meter.cluster,
                self._store.waiting_for(),
                outbox.waiting_since,
                outbox.failures,
                outbox.receivers,
                embedded.now(),
            ),
            ("sevenhop_leading", (self._meter.cluster,), 1.0),
            ("sevenhop_inbox_batches", (), embedded.inbox_batches),
            ("sevenhop_engine_behind_seconds", (), embedded.behind_s),
            ("sevenhop_input_stalled", (), float(bool(embedded.stalled))),
            ("sevenhop_heartbeat_configured", (), float(beat.is_configured)),
            ("sevenhop_heartbeat_last_success_timestamp_seconds", (), last.timestamp() if last is not None else 0.0),
        ]

    def report(self) -> dict[str, Any]:
        """For `doctor`."""
        wanted = self._settings.traces
        return {
            "heartbeat": msgspec.to_builtins(self.heartbeat.status()),
            "traces": {"to": bool(wanted), "problem": NEEDS_EXTRA if wanted and self._traces is None else ""},
        }

    def close(self) -> None:
        """Send the traces that are left."""
        if self._traces is not None:
            self._traces.close()

    def _delivered(self, receiver: str, effect: Effect, outcome: DeliveryOutcome, took_s: float) -> None:
        self._meter.delivered(receiver, outcome, took_s)
        if self._traces is not None:
            self._traces.delivered(receiver, effect, outcome, self._embedded.now(), took_s)
