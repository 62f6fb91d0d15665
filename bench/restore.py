"""
A partition of 150,000 objects, read back by a worker: 5,000 nodes, 20,000 pods of 2,500 models, and others.

Twice: the first start finds the topic alone; the second one, after a kill, also its own state in Redis.  The time is
the worker's own word in its log, from the claim of the partition until it is served; it takes no input meanwhile.
"""

from __future__ import annotations

import asyncio
import re
import tempfile
import time
from datetime import UTC, datetime
from pathlib import Path

from bench.engines import Feed
from bench.figures import Figure, Result
from bench.generate import deployment, pod
from bench.lines import cluster_objects
from bench.scaled_bed import Bed, bed, cpu_s, memory_mib, or_skipped, read_all, records_of
from sevenhop.runtime.codec import Record, read

NO_PROGRESS_S = 60.0
"""`runtime.no_progress`: a worker that stands still for so long ends itself."""

WHOLE = 150_000
_REBUILT = re.compile(r"rebuilt in ([0-9.]+) s")
_PER_WEB = 50


def measure(*, quick: bool) -> list[Result]:
    """A tenth of it when `quick`."""
    nodes, deployments, others = (500, 250, 11_500) if quick else (5_000, 2_500, 115_400)
    with tempfile.TemporaryDirectory() as name:
        return or_skipped("restore", "a worker", lambda: _measure(Path(name), nodes, deployments, others))


def _measure(folder: Path, nodes: int, deployments: int, others: int) -> list[Result]:
    records = partition_records(nodes, deployments, others)
    count = len(records)
    with bed(folder) as at:
        topic = at.topics.objects
        at.produce(topic, records)
        del records
        first_s, first_cpu, first_mib = _start(at)
        at.worker.kill()
        again_s, again_cpu, again_mib = _start(at)
        rejoined = len(_REBUILT.findall(at.worker.log.read_text())) - 2
        began = time.perf_counter()
        found = asyncio.run(read_all(at.kafka, topic, 0, at.end(topic)))
        fetch_s = time.perf_counter() - began
    began = time.perf_counter()
    for record in found:
        read(record.value, record.headers)
    decode_s = time.perf_counter() - began
    name = f"{count:,} objects"
    note = f"; REBUILT {rejoined} MORE TIMES" if rejoined else ""
    return [
        Figure(bench="restore", what=f"{name}: from the topic alone", value=first_s, unit="s", aim=NO_PROGRESS_S,
               better="less", note=f"{first_cpu:.1f} s of CPU time, the start of the process included{note}"),
        Figure(bench="restore", what=f"{name}: with state in Redis, after a kill", value=again_s, unit="s",
               aim=NO_PROGRESS_S, better="less", note=f"{again_cpu:.1f} s of CPU; {count / again_s:,.0f} objects/s"),
        Figure(bench="restore", what=f"{name}: resident", value=max(first_mib, again_mib) / 1024, unit="GiB",
               aim=1.5 if count >= WHOLE else None, better="less", note="the most that the process ever had"),
        Figure(bench="restore", what=f"{name}: getmany alone", value=fetch_s, unit="s", better="less"),
        Figure(bench="restore", what=f"{name}: decode alone", value=decode_s, unit="s", better="less",
               note=f"a restore takes {again_s / (fetch_s + decode_s):.1f} times both"),
    ]  # fmt: skip


def _start(at: Bed) -> tuple[float, float, float]:
    """Seconds of the rebuild, those of the process' CPU so far, and the most MiB that it ever had."""
    at.start_worker()
    used = cpu_s(at.worker.pid)
    time.sleep(1)
    return float(_REBUILT.findall(at.worker.log.read_text())[-1]), used, memory_mib(at.worker.pid, "VmHWM")


def partition_records(nodes: int, deployments: int, others: int) -> list[Record]:
    """A cluster with so many nodes, models of eight pods, and pods that are no inference, as its edge lists it."""
    objects = cluster_objects(nodes, deployments, 8)
    for number in range(others):
        if number % _PER_WEB == 0:
            objects += deployment(number // _PER_WEB, min(_PER_WEB, others - number), gpus=0)
        objects.append(pod(10_000_000 + number, number // _PER_WEB, gpus=0, node_name=f"node-{number % nodes:05}"))
    return records_of(Feed().listed(objects, datetime.now(UTC)))
