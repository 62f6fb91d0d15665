"""
GPU samples by way of Kafka: 2,000 nodes with 8 GPUs each on one worker, every agent every 15 seconds.

First at the pace of life, a fifteenth of them each second: how long until the worker has stored them, with what came of
them.  Then all agents at the same moment.
"""

from __future__ import annotations

import signal
import tempfile
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from random import Random

from bench.engines import Feed
from bench.figures import Figure, Result, percentile
from bench.gpu import EVERY_S, GPUS, gpu_nodes, sample
from bench.scaled_bed import Bed, bed, cpu_s, or_skipped, records_of
from sevenhop.core.events import Applied, Tick
from sevenhop.runtime.codec import Record

ROUNDS = 2


def measure(*, quick: bool) -> list[Result]:
    """A tenth of the nodes when `quick`."""
    nodes = 200 if quick else 2_000
    with tempfile.TemporaryDirectory() as name:
        return or_skipped("gpu_scaled", "a worker", lambda: _measure(Path(name), nodes))


def _measure(folder: Path, nodes: int) -> list[Result]:
    listed = Feed().listed(gpu_nodes(nodes), datetime.now(UTC))
    pods = dict(enumerate(sorted(e.obj.metadata.key for e in listed if isinstance(e, Applied) and e.kind == "Pod")))
    chance = Random(7)
    with bed(folder) as at, _edge(at):
        at.produce(at.topics.objects, records_of(listed))
        at.start_worker()
        signals = at.topics.signals
        at.produce(
            signals, _round(nodes, 0, pods, chance)
        )  # the first sample of each node is more work than the others
        at.until_stored(signals, nodes)
        used = cpu_s(at.worker.pid)
        lags = _at_pace(at, nodes, [_round(nodes, seq, pods, chance) for seq in range(1, ROUNDS + 1)])
        busy = 100 * (cpu_s(at.worker.pid) - used) / (ROUNDS * EVERY_S)
        burst = _round(nodes, ROUNDS + 1, pods, chance)
        at.worker.signal(signal.SIGSTOP)
        at.produce(signals, burst)
        used, began = cpu_s(at.worker.pid), time.monotonic()
        at.worker.signal(signal.SIGCONT)
        at.until_stored(signals, (ROUNDS + 2) * nodes)
        took_s, cpu = time.monotonic() - began, cpu_s(at.worker.pid) - used
    name = f"{nodes:,} nodes × {GPUS} GPUs"
    return [
        Figure(bench="gpu_scaled", what=f"{name}: lag at their pace, p99", value=percentile(lags, 99), unit="s",
               aim=1.0, better="less", note=f"median {percentile(lags, 50):.3f} s; {busy:.0f} % of a core"),
        Figure(bench="gpu_scaled", what=f"{name}: lag when all agents send at once", value=took_s, unit="s",
               aim=float(EVERY_S), better="less", note="the aim is the time until they send again"),
        Figure(bench="gpu_scaled", what=f"{name}: samples told", value=nodes / cpu, unit="samples/s",
               aim=nodes / EVERY_S, note=f"by its own CPU time; by the clock {nodes / took_s:,.0f}"),
    ]  # fmt: skip


@contextmanager
def _edge(at: Bed) -> Iterator[None]:
    """
    Its edge lives, and says so each second.

    Of one that is silent for `runtime.edge_silence` everything becomes unknown, and later known again: seconds of work.
    """
    is_over = threading.Event()

    def tell() -> None:
        while not is_over.wait(1.0):
            at.produce(at.topics.objects, records_of([Tick(at=datetime.now(UTC))]))

    with ThreadPoolExecutor(1) as threads:
        told = threads.submit(tell)
        try:
            yield
        finally:
            is_over.set()
            told.result()


def _round(nodes: int, seq: int, pods: dict[int, tuple[str, str]], chance: Random) -> list[Record]:
    now = datetime.now(UTC)
    return records_of(sample(number, seq, now, pods, chance) for number in range(nodes))


def _at_pace(at: Bed, nodes: int, rounds: list[list[Record]]) -> list[float]:
    """Seconds until each second's samples were stored."""
    lags, sent, began = [], nodes, time.monotonic()
    for number, records in enumerate(rounds):
        for second in range(EVERY_S):
            time.sleep(max(0.0, began + number * EVERY_S + second - time.monotonic()))
            some = records[second * nodes // EVERY_S : (second + 1) * nodes // EVERY_S]
            at.produce(at.topics.signals, some)
            sent += len(some)
            lags.append(at.until_stored(at.topics.signals, sent))
    return lags
