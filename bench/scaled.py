"""
How many pod events one worker takes in a second, from records in Kafka to state in Redis; embedded beside it.

The same records in the same run, in turns; each by the CPU time of its own process, which others do not slow much, and
by the clock in the note:

    getmany      aiokafka alone: records fetched and thrown away
    decode       the same records to events, in memory
    embedded     decode → 100 rules → SQLite
    a worker     Kafka → Faust → decode → 100 rules → Redis, a process of its own, on a backlog

1,000 nodes and 4,000 pods of 500 workloads; 80 % status-only, 15 % a fact changes, 5 % create or delete.
"""

from __future__ import annotations

import asyncio
import signal
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import NamedTuple

from bench.engines import Feed
from bench.figures import Figure, Result, median
from bench.generate import mixed_lines
from bench.lines import DEPLOYMENTS, NODES, REPLICAS, cluster_objects
from bench.rulebook import rulebook_of
from bench.scaled_bed import CLUSTER, RULES, Bed, bed, cpu_s, or_skipped, read_all, records_of
from sevenhop.app import build_embedded, build_engine
from sevenhop.core.events import Event
from sevenhop.runtime.clock import Clock
from sevenhop.runtime.codec import Record, read
from sevenhop.runtime.embedded import SLICE_EVENTS, Embedded
from sevenhop.settings import Settings
from sevenhop.stores.sqlite import SqliteStore

TICK_EVERY = 500
"""An edge's tick a second, at 500 changes a second."""


def measure(*, quick: bool) -> list[Result]:
    """Three rounds of 20,000 events; of 3,000 when `quick`."""
    count = 3_000 if quick else 20_000
    with tempfile.TemporaryDirectory() as name:
        return or_skipped("scaled", "a worker on Kafka and Redis", lambda: _measure(Path(name), 3, count))


def _measure(folder: Path, rounds: int, count: int) -> list[Result]:
    now = datetime.now(UTC) - timedelta(minutes=10)
    feed = Feed()
    listed = records_of(feed.listed(cluster_objects(NODES, DEPLOYMENTS, REPLICAS), now))
    parts = _changes(feed, now, rounds, count)
    with bed(folder) as at:
        at.produce(at.topics.objects, listed)
        at.start_worker()
        works = [_worker(at, part) for part in parts]
        embedded = asyncio.run(_embedded(folder, listed, parts))
    size = sum(len(record.value or b"") for record in parts[0]) / len(parts[0]) / 1024
    fetch, decode, worker = ([turn[number] for turn in works] for number in range(3))
    return [
        _rate("getmany alone", count, fetch, f"{size:.1f} KiB a record"),
        _rate("decode alone", count, decode),
        _rate("embedded: records to SQLite", count, embedded, f"{RULES} rules"),
        _rate("a worker: Kafka to Redis", count, worker, f"{RULES} rules"),
        _share("a worker: of embedded", worker, embedded),
        _share("a worker: of getmany", worker, fetch),
        _share("a worker: of decode", worker, decode),
    ]


class Took(NamedTuple):
    """Seconds of one round."""

    cpu_s: float
    clock_s: float


@contextmanager
def _timed(into: list[Took], cpu: Callable[[], float] = time.process_time) -> Iterator[None]:
    used, began = cpu(), time.perf_counter()
    yield
    into.append(Took(cpu() - used, time.perf_counter() - began))


def _rate(what: str, count: int, rounds: Sequence[Took], note: str = "") -> Figure:
    clock = median(count / each.clock_s for each in rounds)
    return Figure(bench="scaled", what=what, value=median(count / each.cpu_s for each in rounds), unit="events/s",
                  note=f"by the clock {clock:,.0f}" + (f"; {note}" if note else ""))  # fmt: skip


def _share(what: str, ours: Sequence[Took], theirs: Sequence[Took]) -> Figure:
    shares = [100 * other.cpu_s / one.cpu_s for one, other in zip(ours, theirs, strict=True)]
    clock = median(100 * other.clock_s / one.clock_s for one, other in zip(ours, theirs, strict=True))
    return Figure(bench="scaled", what=what, value=median(shares), unit="%", note=f"by the clock {clock:.0f} %")


def _changes(feed: Feed, begin: datetime, rounds: int, count: int) -> list[list[Record]]:
    """Rounds of records, each of `count` changes of pods."""
    pods, parts = feed.kinds["Pod"], []
    lines = mixed_lines(
        rounds * count, deployments=DEPLOYMENTS, replicas=REPLICAS, nodes=NODES, begin=begin, per_s=TICK_EVERY
    )
    for _ in range(rounds):
        events: list[Event] = []
        while len(events) < count:
            pods.line(next(lines)[:-1], begin, events)
        parts.append(records_of(events, tick_every=TICK_EVERY))
    return parts


def _worker(at: Bed, part: list[Record]) -> tuple[Took, Took, Took]:
    """One backlog: fetched and thrown away, decoded, and handled by the worker."""
    took: list[Took] = []
    fetch: list[Took] = []
    decode: list[Took] = []
    topic = at.topics.objects
    at.until_stored(topic, at.end(topic))
    begin = at.end(topic)
    at.worker.signal(signal.SIGSTOP)  # for less than its session: it stays a member
    try:
        at.produce(topic, part)
    finally:
        with _timed(took, lambda: cpu_s(at.worker.pid)):
            at.worker.signal(signal.SIGCONT)
            at.until_stored(topic, begin + len(part))
    with _timed(fetch):
        found = asyncio.run(read_all(at.kafka, topic, begin, begin + len(part)))
    with _timed(decode):
        for record in found:
            read(record.value, record.headers)
    return fetch[0], decode[0], took[0]


async def _embedded(folder: Path, listed: list[Record], parts: list[list[Record]]) -> list[Took]:
    """Each round in the embedded runtime, decoding included."""
    settings = Settings.model_validate(
        {"cluster": CLUSTER, "state": folder / "embedded", "incidents": {"group_wait": "0s"}, "receivers": {}}
    )
    clock, store = Clock(), SqliteStore(folder / "embedded")
    engine = build_engine(settings, rulebook_of(RULES), CLUSTER)
    embedded = build_embedded(settings, engine, store, clock)
    running = asyncio.create_task(embedded.run([]))
    try:
        await embedded.emit(_read(listed))
        await _until_idle(embedded)
        took: list[Took] = []
        for part in parts:
            with _timed(took):
                for at in range(0, len(part), SLICE_EVENTS):
                    await embedded.emit(_read(part[at : at + SLICE_EVENTS]))
                await _until_idle(embedded)
        return took
    finally:
        running.cancel()
        await asyncio.wait([running])
        await embedded.close()
        store.close()


def _read(records: Sequence[Record]) -> list[Event]:
    found = [read(record.value, record.headers).event for record in records]
    return [event for event in found if isinstance(event, Event)]


async def _until_idle(embedded: Embedded) -> None:
    while not embedded.is_idle:  # noqa: ASYNC110  what is waited for has no event
        await asyncio.sleep(0.005)
