"""
5,000 nodes and 150,000 pods: listed over loopback from a server in another process, built, and then an hour of churn.

The hour is virtual: a step a second of ten changes, through the decoding of the source and the engine, as fast as they
go.
"""

from __future__ import annotations

import asyncio
import gc
import os
import tempfile
import time
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from itertools import islice
from pathlib import Path

from bench.engines import Feed
from bench.figures import Figure, Result
from bench.generate import mixed_lines
from bench.service import Server, Service, api_server, running_service, until_listed
from sevenhop.core.events import Event
from sevenhop.runtime.embedded import SLICE_EVENTS

CHANGES_PER_S = 10
PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")
REPLICAS = 8
REPLACEMENTS = 3
GIB = 1024**3
GROWTH_PERCENT = 2.0
"""What is kept of each alert, its last twenty transitions, fills up; more would be a leak."""


def measure(*, quick: bool) -> list[Result]:
    """A tenth of the cluster and five minutes of churn when `quick`."""
    nodes, deployments, others, minutes = (500, 250, 13_000, 5) if quick else (5_000, 2_500, 130_000, 60)
    with (
        tempfile.TemporaryDirectory() as name,
        api_server(nodes=nodes, deployments=deployments, replicas=REPLICAS, others=others) as server,
    ):
        return asyncio.run(_measure(server, Path(name), nodes, deployments, others, minutes))


async def _measure(
    server: Server, folder: Path, nodes: int, deployments: int, others: int, minutes: int
) -> list[Result]:
    begin, cpu = time.monotonic(), time.process_time()
    async with running_service(server, folder) as service:
        ticks = asyncio.create_task(service.watch_pauses())
        await until_listed(service, 300)
        took_s, cpu_s = time.monotonic() - begin, time.process_time() - cpu
        ticks.cancel()
        longest_ms = max(service.pauses_ms)
        pods = len(service.engine.inventory.state.objects.pods())
        await asyncio.sleep(1)  # the collector's freeze
    if pods != deployments * REPLICAS + others:
        raise RuntimeError(f"{pods} pods were listed")
    gc.collect()
    resident = resident_bytes()
    name = f"{nodes:,} nodes, {pods:,} pods"
    early, late = _churn(service, nodes, deployments, minutes)
    return [
        Figure(bench="large", what=f"{name}: list and build", value=took_s, unit="s", aim=60, better="less",
               note=f"{cpu_s:.0f} s of CPU; longest pause of the loop {longest_ms:.0f} ms"),
        Figure(bench="large", what=f"{name}: resident", value=resident / GIB, unit="GiB", aim=1.5, better="less",
               note=f"{resident / pods / 1024:.1f} KiB a pod"),
        Figure(bench="large", what=f"{minutes} min of churn, {minutes * 60 * CHANGES_PER_S:,} changes: growth",
               value=max(0.0, 100 * (late - early) / early), unit="%", aim=GROWTH_PERCENT, better="less",
               note=f"GiB listed {resident / GIB:.3f}, all replaced {early / GIB:.3f}, at the end {late / GIB:.3f}"),
    ]  # fmt: skip


def _churn(service: Service, nodes: int, deployments: int, minutes: int) -> tuple[int, int]:
    """Resident bytes before and after the hour, once every pod has been replaced several times."""
    # A feed of its own: epochs later than the source's, so that every line is news.
    feed, engine = Feed(), service.engine
    pods = feed.kinds["Pod"]
    pods.epoch = 1_000
    at = datetime.now(tz=UTC)
    # The first replacement of each pod leaves gaps among the objects of the list; they are filled ever after.
    replaced, counted = REPLACEMENTS * deployments * REPLICAS, minutes * 60 * CHANGES_PER_S
    lines = mixed_lines(
        replaced + counted, deployments=deployments, replicas=REPLICAS, nodes=nodes, begin=at, per_s=CHANGES_PER_S
    )
    slices = [SLICE_EVENTS] * (replaced // SLICE_EVENTS) + [CHANGES_PER_S] * (minutes * 60)
    early = 0
    for number, size in enumerate(slices):
        if number == replaced // SLICE_EVENTS:
            gc.collect()
            early = resident_bytes()
        events: list[Event] = []
        for each in islice(lines, size):
            pods.line(each[:-1], at, events)
        engine.handle(events, at)
        at += timedelta(seconds=size / CHANGES_PER_S)
    gc.collect()
    return early, resident_bytes()


def resident_bytes() -> int:
    """Of this process, as the kernel counts."""
    return _pages(Path("/proc/self/statm").read_text().split())


def _pages(fields: Sequence[str]) -> int:
    return int(fields[1]) * PAGE_BYTES
