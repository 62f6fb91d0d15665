"""
One process of the scaled runtime, watched: what is measured of it, whether it is well, and who is told that it lives.

    worker   the stream's partitions, and of each cluster what the embedded runtime says of its one
    edge     its cluster's sources, and what waits for Kafka; a replica that waits says that it does
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from functools import partial
from typing import Any, Protocol

import msgspec

from sevenhop.channels.door import Handler
from sevenhop.core.effects import Effect
from sevenhop.core.engine import Step
from sevenhop.core.events import Event
from sevenhop.runtime.listening import MAY_TAKE_S
from sevenhop.runtime.scaled.cell import Cell
from sevenhop.runtime.scaled.edge import Edge
from sevenhop.runtime.scaled.partition import Partition
from sevenhop.runtime.scaled.worker import Worker
from sevenhop.sources.kubernetes.source import KubernetesSource
from sevenhop.telemetry.gpu_sources import Looked, Pushed, gpu_source_samples
from sevenhop.telemetry.heartbeat import Heartbeat
from sevenhop.telemetry.levels import Levels, Sample, outbox_samples, source_samples
from sevenhop.telemetry.meter import Meter
from sevenhop.telemetry.scrape import Scrape
from sevenhop.telemetry.settings import TelemetrySettings
from sevenhop.telemetry.table import Claim, DeadLetterReason, DeliveryOutcome, OrderRefusal
from sevenhop.telemetry.times import StepTimes
from sevenhop.telemetry.traces import NEEDS_EXTRA, Traces, build_tracer

Now = Callable[[], datetime]


class Part(Protocol):
    """A worker or an edge within a process."""

    @property
    def beats(self) -> Heartbeat | None:
        """Its heartbeat; None while there is none to wait for."""

    def why_not_well(self) -> str:
        """Empty while it is well, else why not."""

    async def samples(self) -> list[Sample]: ...


class Watched:
    """
    Of one process, whatever runs in it.

    Attributes:
        meter: Counts for all parts; `Meter.of` names the cluster.
    """

    def __init__(self, settings: TelemetrySettings, now: Now) -> None:
        self._settings = settings
        self._now = now
        self._parts: list[Part] = []
        self.meter = Meter("")
        self.traces = build_tracer(settings.traces, "")

    def worker(self, worker: Worker, partitions: int) -> WatchedWorker:
        """Measure a worker, from before it runs; `partitions` is how many the stream has."""
        made = WatchedWorker(self._settings, self.meter, self.traces, worker, partitions, self._now, self.why_not_well)
        worker.reports.append(lambda: {**self.report(), "heartbeat": report_of(made.heartbeat)})
        self._parts.append(made)
        return made

    def edge(self, cluster: str, push: Pushed | None) -> WatchedEdge:
        """Measure the edge of a cluster, over all its terms."""
        made = WatchedEdge(self._settings, self.meter, cluster, push, self._now, self.why_not_well)
        self._parts.append(made)
        return made

    def routes(self) -> Mapping[str, Handler]:
        """Paths to serve; none where no metrics are wanted."""
        return {"/metrics": Scrape(self.meter.registry, self.samples).serve} if self._settings.metrics else {}

    async def samples(self) -> list[Sample]:
        """All levels of this moment."""
        found = [sample for part in self._parts for sample in await part.samples()]
        return [*found, *_beats([part.beats for part in self._parts if part.beats is not None])]

    def why_not_well(self) -> str:
        """
        Empty while every part is well.

        Who listens for heartbeats hears one process: if one part of it beat for itself alone, nobody would notice that
        the other one has stopped.
        """
        return next((why for part in self._parts if (why := part.why_not_well())), "")

    def report(self) -> dict[str, Any]:
        """For `doctor`."""
        wanted = self._settings.traces
        return {"traces": {"to": bool(wanted), "problem": NEEDS_EXTRA if wanted and self.traces is None else ""}}

    def close(self) -> None:
        """Send the traces that are left."""
        if self.traces is not None:
            self.traces.close()


class WatchedWorker:
    """
    See `Watched.worker`.

    Attributes:
        heartbeat: Withheld while its process is not well; an Alertmanager is told of each cluster that is served.
    """

    def __init__(
        self,
        settings: TelemetrySettings,
        meter: Meter,
        traces: Traces | None,
        worker: Worker,
        partitions: int,
        now: Now,
        unwell: Callable[[], str],
    ) -> None:
        self._settings = settings
        self._meter = meter
        self._traces = traces
        self._worker = worker
        self._partitions = partitions
        self._now = now
        self._levels: dict[str, tuple[Cell, Levels]] = {}
        self._waits_since: dict[int, datetime] = {}  # partitions that are not rebuilt
        self.heartbeat = Heartbeat(settings.heartbeat, "", meter, unwell, now, role="worker", clusters=self.served)
        worker.on_partition.append(self._begin)

    @property
    def beats(self) -> Heartbeat:
        return self.heartbeat

    def served(self) -> list[str]:
        """Clusters of which people would be told now: rebuilt, and their edge speaks."""
        return sorted(cell.cluster for cell in self._cells() if not cell.sight.is_blind)

    def why_not_well(self) -> str:
        """Empty while people would be told; else why not."""
        if self._worker.stalled:
            return f"state is not stored: {self._worker.stalled}"
        now, waiting = self._now(), [n for n, partition in self._worker.partitions.items() if not partition.is_ready]
        self._waits_since = {number: self._waits_since.get(number, now) for number in waiting}
        late = sorted(n for n, since in self._waits_since.items() if (now - since).total_seconds() > MAY_TAKE_S)
        return f"partitions are not rebuilt: {', '.join(map(str, late))}" if late else ""

    async def samples(self) -> list[Sample]:
        """Of the stream, and of each cluster."""
        worker = self._worker
        found: list[Sample] = [
            ("sevenhop_partitions", (), self._partitions),
            ("sevenhop_input_stalled", (), float(bool(worker.stalled))),
            ("sevenhop_partition_claims_total", (Claim.KEPT,), worker.kept),
            ("sevenhop_partition_claims_total", (Claim.REBUILT,), worker.rebuilds),
            # With those that never happened: else the first of a kind would be no increase.
            *(("sevenhop_dead_letters_total", (why,), worker.dead_letters.get(why, 0)) for why in DeadLetterReason),
        ]
        lag = worker.lag()
        for number, partition in sorted(worker.partitions.items()):
            place = (str(number),)
            found += [
                ("sevenhop_partition_ready", place, float(partition.is_ready)),
                ("sevenhop_store_forgotten_total", place, partition.fence.forgotten),
            ]
            if partition.is_ready:  # else nobody knows where it goes on
                found.append(("sevenhop_partition_lag_records", place, lag.get(number, 0) + partition.waiting))
        return [*found, *await self._of_clusters()]

    async def _of_clusters(self) -> list[Sample]:
        now, pods_left = self._now(), self._settings.pod_info_limit
        cells = {cell.cluster: cell for cell in self._cells()}
        self._levels = {name: row for name, row in self._levels.items() if cells.get(name) is row[0]}
        found: list[Sample] = []
        for name, cell in cells.items():
            _, levels = self._levels.setdefault(name, (cell, Levels(cell.engine, tuple, self._now, pod_limit=0)))
            levels.pod_limit = max(0, pods_left)  # one page, one limit
            its = await levels.samples()
            pods_left -= sum(metric == "sevenhop_pod_info" for metric, *_ in its)
            outbox, sight = cell.outbox, cell.sight
            found += its
            found += outbox_samples(
                name, cell.store.waiting_for(), outbox.waiting_since, outbox.failures, outbox.receivers, now
            )
            found += [
                ("sevenhop_edge_silence_seconds", (name,), max(0.0, (now - sight.heard_at).total_seconds())),
                ("sevenhop_edge_silent", (name,), float(sight.is_blind)),
                ("sevenhop_edge_key_differs", (name,), float(bool(self._worker.keys.doubt(name)))),
                ("sevenhop_edge_stale_records_total", (name,), sight.stale_records),
            ]
        return found

    def _cells(self) -> Iterator[Cell]:
        for _, partition in sorted(self._worker.partitions.items()):
            if partition.is_ready:
                yield from list(partition.cells.values())

    # What it is told

    def _begin(self, partition: Partition) -> None:
        partition.watches.append(self._stepped)
        partition.on_cell.append(self._watch_outbox)

    def _watch_outbox(self, cell: Cell) -> None:
        cell.outbox.watches.append(partial(self._delivered, cell.cluster))

    def _stepped(self, events: Mapping[str, Sequence[Event]], steps: Mapping[str, Step], times: StepTimes) -> None:
        self._meter.took(times)
        for cluster, step in steps.items():
            taken = events.get(cluster, ())
            self._meter.of(cluster).counted(taken, step, times.stored)
            if self._traces is not None:
                self._traces.of(cluster).stepped(taken, step, times)

    def _delivered(self, cluster: str, receiver: str, effect: Effect, outcome: DeliveryOutcome, took_s: float) -> None:
        self._meter.of(cluster).delivered(receiver, outcome, took_s)
        if self._traces is not None:
            self._traces.of(cluster).delivered(receiver, effect, outcome, self._now(), took_s)


class WatchedEdge:
    """
    See `Watched.edge`.

    Attributes:
        heartbeat: To be run within each term: a replica that waits is not the one whose end matters.
    """

    def __init__(
        self,
        settings: TelemetrySettings,
        meter: Meter,
        cluster: str,
        push: Pushed | None,
        now: Now,
        unwell: Callable[[], str],
    ) -> None:
        self._cluster = cluster
        self._push = push
        self._now = now
        self._edge: Edge | None = None
        self._source: KubernetesSource | None = None
        self._dcgm: tuple[Looked, ...] = ()
        self._began = now()
        self._sent_before = 0  # in earlier terms
        self._orders_refused = dict.fromkeys(OrderRefusal, 0)
        self.heartbeat = Heartbeat(settings.heartbeat, cluster, meter, unwell, now, role="edge")

    @property
    def beats(self) -> Heartbeat | None:
        """None of a replica that waits: nobody would miss it."""
        return self.heartbeat if self._edge is not None else None

    def begin(self, edge: Edge, source: KubernetesSource, dcgm: Iterable[Looked]) -> None:
        """A term begins."""
        self._edge, self._source, self._dcgm, self._began = edge, source, tuple(dcgm), self._now()

    def end(self) -> None:
        """The term is over: this replica waits, or begins another."""
        self._sent_before += self._edge.sent if self._edge is not None else 0
        self._edge = self._source = None
        self._dcgm = ()

    def order_refused(self, reason: OrderRefusal) -> None:
        """One more; in whatever term, and at the door too."""
        self._orders_refused[reason] += 1

    def why_not_well(self) -> str:
        """Empty while what is seen reaches the workers."""
        return self._edge.stalled if self._edge is not None else ""

    async def samples(self) -> list[Sample]:
        """Of a replica that waits little more than that it does."""
        edge, place = self._edge, (self._cluster,)
        found: list[Sample] = [
            ("sevenhop_leading", place, float(edge is not None)),
            ("sevenhop_edge_events_sent_total", place, self._sent_before + (edge.sent if edge is not None else 0)),
            # With those that never happened: else the first of a kind would be no increase.
            *(("sevenhop_edge_orders_refused_total", (*place, why), n) for why, n in self._orders_refused.items()),
            *gpu_source_samples(self._cluster, self._push, self._dcgm),
        ]
        if edge is not None and self._source is not None:
            found += [
                ("sevenhop_edge_buffered_events", place, edge.buffered),
                ("sevenhop_edge_stalled", place, float(bool(edge.stalled))),
                *source_samples(self._cluster, self._source.status(), self._now(), self._began),
            ]
        return found


def report_of(heartbeat: Heartbeat) -> Any:
    """For `doctor`."""
    return msgspec.to_builtins(heartbeat.status())


def _beats(heartbeats: Sequence[Heartbeat]) -> list[Sample]:
    """One pair for the process: of several, since the one that was taken longest ago."""
    if not heartbeats:
        return []
    taken = [beat.last_success_at.timestamp() if beat.last_success_at is not None else 0.0 for beat in heartbeats]
    return [
        ("sevenhop_heartbeat_configured", (), float(any(beat.is_configured for beat in heartbeats))),
        ("sevenhop_heartbeat_last_success_timestamp_seconds", (), min(taken)),
    ]
