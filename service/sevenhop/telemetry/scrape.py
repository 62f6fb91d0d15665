"""
GET /metrics: the counters of the meter and the levels of the moment, in Prometheus' text form or as OpenMetrics.

    honor_labels: true     # in the scrape's config, else Prometheus renames the labels `namespace` and `pod`
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence

from aiohttp import web
from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.exposition import choose_encoder
from prometheus_client.registry import Collector

from sevenhop.telemetry.levels import Sample
from sevenhop.telemetry.table import METRICS, MetricType

Snapshot = Callable[[], Awaitable[Sequence[Sample]]]

MOST_AT_ONCE = 4
"""Scrapes that may wait; further ones are turned away: several Prometheus servers are normal, a crowd is not."""


class Taken(Collector):
    """Samples that were taken before, as a collector of prometheus_client."""

    def __init__(self, samples: Iterable[Sample]) -> None:
        self._samples = list(samples)

    def collect(self) -> Iterator[Metric]:
        return iter(families(self._samples))


def families(samples: Iterable[Sample]) -> list[Metric]:
    """
    Samples as families, in the order of the table; what a closed set makes equal (`other`) is summed up.

    Raises:
        KeyError: A sample of a metric that the table does not have.
    """
    summed: dict[str, dict[tuple[str, ...], float]] = {}
    for name, labels, value in samples:
        series = summed.setdefault(name, {})
        key = tuple(METRICS[name].values(labels))
        series[key] = series.get(key, 0.0) + value
    found: list[Metric] = []
    for name in (name for name in METRICS if name in summed):
        row = METRICS[name]
        made = CounterMetricFamily if row.type is MetricType.COUNTER else GaugeMetricFamily
        family = made(name, row.doc, labels=list(row.label_names))
        for key, value in summed[name].items():
            family.add_metric(key, value)
        found.append(family)
    return found


class Scrape:
    """`serve` is the handler; one scrape at a time, and its text is written in a thread."""

    def __init__(self, registry: CollectorRegistry, snapshot: Snapshot) -> None:
        self._registry = registry
        self._snapshot = snapshot
        self._turn = asyncio.Lock()
        self._waiting = 0

    async def serve(self, request: web.Request) -> web.Response:
        if self._waiting >= MOST_AT_ONCE:
            return web.Response(status=429, text=f"{MOST_AT_ONCE} scrapes are under way; ask again\n")
        self._waiting += 1
        try:
            async with self._turn:
                samples = await self._snapshot()
                encode, content_type = choose_encoder(request.headers.get("Accept", ""))
                # A large cluster's page is megabytes: written here, it would hold up every event meanwhile.
                body = await asyncio.to_thread(self._page, encode, samples)
        finally:
            self._waiting -= 1
        return web.Response(body=body, headers={"Content-Type": content_type})

    def _page(self, encode: Callable[[Collector], bytes], samples: Sequence[Sample]) -> bytes:
        return encode(Both(self._registry, samples))


class Both(CollectorRegistry):
    """What is counted, and what was taken, as one page."""

    def __init__(self, counted: CollectorRegistry, samples: Sequence[Sample]) -> None:
        super().__init__()
        self._counted = counted
        self.register(Taken(samples))

    def collect(self) -> Iterator[Metric]:
        yield from self._counted.collect()
        yield from super().collect()


def page(registry: CollectorRegistry, samples: Sequence[Sample]) -> bytes:
    """The page in the text form, for tests and tools."""
    return generate_latest(Both(registry, samples))
