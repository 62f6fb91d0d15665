"""
Real Kafka and Redis on loopback, and a worker as a process of its own, for the benchmarks of the scaled runtime.

A cluster lies in one partition, so there is one: what a worker does with several is that several times.
"""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Self

import redis

from bench.figures import Result, Skipped
from bench.rulebook import write_rules
from sevenhop.core.events import Event, Tick
from sevenhop.runtime.codec import Record, encode
from sevenhop.runtime.scaled.quiet import quieten
from sevenhop.runtime.scaled.reader import ends_of, read_range
from sevenhop.runtime.scaled.terms import FROM_EDGE, in_term
from sevenhop.runtime.scaled.topics import Topics, prepare
from sevenhop.settings_scaled import KafkaSettings
from tests.e2e.scaled_stage import WorkerProcess, wait_until
from tests.testbed.binaries import BuildFailed
from tests.testbed.kafka import Kafka
from tests.testbed.redis import Redis

CLUSTER = "bench"
RULES = 100
READY_WITHIN_S = 300.0
_IN_FLIGHT = 2_000
_CLOCK_TICKS = os.sysconf("SC_CLK_TCK")


class Bed:
    """
    Started servers with the topics of one cluster.

    Attributes:
        worker: Not started yet.
    """

    def __init__(self, folder: Path, kafka: Kafka, state: Redis, settings: dict[str, Any]) -> None:
        self.kafka = KafkaSettings(servers=kafka.servers.split(","), partitions=1, replicas=kafka.replicas)
        self.redis_url = state.url
        self.topics: Topics = asyncio.run(prepare(self.kafka))
        config = folder / "worker.yaml"
        config.write_text(json.dumps(self.settings() | settings))
        self.worker = WorkerProcess(folder / "worker", config)
        self._state = redis.Redis.from_url(state.url)

    def settings(self) -> dict[str, Any]:
        """What an edge and a worker have in common."""
        return {
            "cluster": CLUSTER,
            "incidents": {"group_wait": "0s", "recall_wait": "1s"},
            "receivers": {},  # what is told is another benchmark
            "kafka": {"servers": self.kafka.servers, "partitions": 1, "replicas": self.kafka.replicas},
            "redis": {"url": self.redis_url},
        }

    def produce(self, topic: str, records: Sequence[Record]) -> float:
        """Store records in the cluster's partition; seconds that it took."""
        return asyncio.run(_produce(self.kafka, topic, records))

    def end(self, topic: str) -> int:
        """The next offset that Kafka will give."""
        return asyncio.run(ends_of(self.kafka, topic, 0))[1]

    def stored(self, topic: str) -> int:
        """The next offset that the worker will take: everything below it is stored, with what came of it."""
        found: Any = self._state.hget("{sevenhop:p0}:offsets", topic)
        return int(found or 0)

    def start_worker(self) -> float:
        """Seconds from the start of the process until its partition is served."""
        began = time.monotonic()
        self.worker.start()
        wait_until("served", lambda: self.worker.partitions() == {0}, READY_WITHIN_S, self.worker.tail)
        return time.monotonic() - began

    def until_stored(self, topic: str, end: int) -> float:
        """Seconds until the worker has stored everything below `end`."""
        began = time.monotonic()
        while self.stored(topic) < end:
            if time.monotonic() - began > READY_WITHIN_S:
                raise TimeoutError(f"{topic}: {self.stored(topic)} of {end} are stored; {self.worker.tail()}")
            time.sleep(0.002)
        return time.monotonic() - began

    def close(self) -> None:
        self.worker.stop()
        self._state.close()


@contextmanager
def bed(folder: Path, *, rules: Sequence[Path] = (), **settings: Any) -> Iterator[Bed]:
    """
    Everything, ended with the block.

    Args:
        rules: Where they are; 100 rules if not given.
        settings: More of the worker's.

    Raises:
        BuildFailed: Kafka or Redis cannot be had here.
    """
    quieten()
    places = rules or write_rules(folder, RULES)
    with Redis() as state, Kafka(1) as kafka:
        made = Bed(folder, kafka, state, {"rules": [str(place) for place in places]} | settings)
        try:
            yield made
        finally:
            made.close()


class EdgeProcess:
    """``sevenhop run --role edge``, ended with the block."""

    def __init__(self, folder: Path, settings: dict[str, Any]) -> None:
        folder.mkdir()
        self._log = folder / "edge.log"
        config = folder / "edge.yaml"
        config.write_text(json.dumps(settings | {"state": str(folder / "state")}))
        self._command = [sys.executable, "-m", "sevenhop.cli.main", "run", "--role", "edge", "--config", str(config)]

    def __enter__(self) -> Self:
        with self._log.open("wb") as log:
            self._process = subprocess.Popen(self._command, stdout=log, stderr=log)
        return self

    def __exit__(self, *_: object) -> None:
        self._process.kill()
        self._process.wait()

    def tail(self) -> str:
        """Its last words."""
        return "\n".join(self._log.read_text(errors="replace").splitlines()[-20:])


def or_skipped(bench: str, what: str, run: Callable[[], list[Result]]) -> list[Result]:
    """The results, or why there are none: no Java, no Debian packages."""
    try:
        return run()
    except BuildFailed as error:
        return [Skipped(bench=bench, what=what, why=str(error).splitlines()[0])]


def records_of(events: Iterable[Event], *, tick_every: int = 0, term: int = 1) -> list[Record]:
    """As an edge would send them; a tick behind every so many, as it tells one each second."""
    made: list[Record] = []
    for number, event in enumerate(events, 1):
        made.append(encode(CLUSTER, in_term(event, term) if isinstance(event, FROM_EDGE) else event))
        if tick_every and number % tick_every == 0:
            made.append(encode(CLUSTER, in_term(Tick(at=datetime.now(UTC)), term)))
    return made


def cpu_s(pid: int) -> float:
    """Processor time of a process, in seconds."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / _CLOCK_TICKS


def memory_mib(pid: int, row: str = "VmRSS") -> float:
    """Of a process, as the kernel counts; ``VmHWM`` is the most that it ever had."""
    rows = Path(f"/proc/{pid}/status").read_text().splitlines()
    return int(next(each for each in rows if each.startswith(f"{row}:")).split()[1]) / 1024


async def read_all(settings: KafkaSettings, topic: str, start: int, end: int) -> list[Any]:
    """Nothing but `getmany`, as the reader of rebuilds asks for it."""
    found: list[Any] = []
    async for batch in read_range(settings, topic, 0, start, end):
        found += batch
    return found


async def _produce(settings: KafkaSettings, topic: str, records: Sequence[Record]) -> float:
    from aiokafka import AIOKafkaProducer

    producer = AIOKafkaProducer(bootstrap_servers=settings.servers, acks="all", linger_ms=5, max_batch_size=512 * 1024)
    await producer.start()
    began = time.perf_counter()
    try:
        for at in range(0, len(records), _IN_FLIGHT):
            sent = [
                await producer.send(topic, key=each.key, value=each.value, headers=each.headers, partition=0)
                for each in records[at : at + _IN_FLIGHT]
            ]
            await asyncio.gather(*sent)
        return time.perf_counter() - began
    finally:
        await producer.stop()
