"""
Both runtimes around the same core, in step with a clock that the test moves.

What arrives together is one step in both: how a stream is cut into steps is a matter of speed, and two changes that are
handled together are told once, not twice.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, Protocol

import pytest
import redis.asyncio as aioredis

from sevenhop.app import build_engine
from sevenhop.core.alerts.rule import Rule
from sevenhop.core.effects import Notify
from sevenhop.core.events import Event, Outcome, Tick
from sevenhop.rulebook.load import Rulebook
from sevenhop.runtime.clock import Clock
from sevenhop.runtime.embedded import Embedded
from sevenhop.runtime.outbox import Outbox
from sevenhop.runtime.scaled.cell import Parts
from sevenhop.runtime.scaled.edge import Edge
from sevenhop.runtime.scaled.partition import Incoming, Own, Partition
from sevenhop.runtime.scaled.topics import partition_of, prepare
from sevenhop.runtime.scaled.worker import Worker
from sevenhop.settings import Settings
from sevenhop.settings_scaled import KafkaSettings, RuntimeSettings
from sevenhop.stores.redis_fence import connect
from sevenhop.stores.sqlite import SqliteStore
from tests.unit.runtime.harness import Script

CLUSTER = "conformance"
PATIENCE_S = 60.0
NEVER_S = 3600.0
SETTLES_AFTER = (timedelta(seconds=1), timedelta(seconds=2))
"""When the engine is called after a piece of the story: what it put off for 100 ms is done before the next piece."""

Chunk = tuple[datetime, list[Event]]


class HandClock(Clock):
    """Stands until it is set; nobody is woken by it."""

    def __init__(self, start: datetime) -> None:
        super().__init__()
        self.now = start

    def __call__(self) -> datetime:
        return self.now

    def real_s(self, seconds: float) -> float:
        return max(seconds, NEVER_S)


class Runtime(Protocol):
    """What a story needs of a runtime; `told` has what arrived, in order."""

    told: list[Notify]

    async def take(self, now: datetime, events: Sequence[Event]) -> None:
        """Hand in what arrived by then; returns once it is stored and told."""
        ...

    async def reload(self, rules: Iterable[Rule]) -> None: ...

    async def rebalance(self) -> None:
        """Another process takes over, where there is such a thing."""
        ...


class EmbeddedRuntime:
    """Embedded, with SQLite."""

    def __init__(self, embedded: Embedded, clock: HandClock, script: Script) -> None:
        self._embedded = embedded
        self._clock = clock
        self.told = script.messages

    async def take(self, now: datetime, events: Sequence[Event]) -> None:
        self._clock.now = now
        await self._embedded.emit([*events, Tick(at=now)])
        await until(lambda: self._embedded.is_idle)
        for moment in SETTLES_AFTER:
            self._clock.now = now + moment
            await self._embedded.emit([Tick(at=now + moment)])
            await until(lambda: self._embedded.is_idle)

    async def reload(self, rules: Iterable[Rule]) -> None:
        await self._embedded.reload(rules)
        await until(lambda: self._embedded.is_idle)

    async def rebalance(self) -> None:
        """There is one process."""


@asynccontextmanager
async def embedded(
    folder: Path, rulebook: Rulebook, start: datetime, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[Runtime]:
    """The embedded runtime at work."""
    clock, script, store = HandClock(start), Script(), SqliteStore(folder)
    monkeypatch.setattr("sevenhop.runtime.embedded.SLICE_EVENTS", 100_000)
    engine = build_engine(Settings(), rulebook, CLUSTER)
    step = engine.load(store.rows(), clock())
    store.commit(step.saves, step.effects, step.records, now=clock().timestamp())
    runtime = Embedded(engine, store, Outbox(store, {"console": script}, clock), clock)
    task = asyncio.create_task(runtime.run([]))
    try:
        yield EmbeddedRuntime(runtime, clock, script)
    finally:
        await ended(task)
        store.close()


class ScaledRuntime:
    """An edge and workers on real Kafka and Redis, in this process."""

    def __init__(self, kafka: KafkaSettings, rulebook: Rulebook, clock: HandClock, client: aioredis.Redis) -> None:
        self._kafka = kafka
        self._rules = rulebook
        self._clock = clock
        self._client = client
        self._script = Script()
        self._workers: list[tuple[Worker, asyncio.Task[None]]] = []
        self._edge: Edge | None = None
        self._edge_task: asyncio.Task[None] | None = None
        self.told = self._script.messages
        self.ended: list[str] = []
        self.rebuilds = 0
        self._outcomes = 0

    async def start(self) -> None:
        topics = await prepare(self._kafka)
        self._edge = Edge(CLUSTER, 1, self._kafka, topics, self._clock)
        self._edge._tick = _never  # type: ignore[method-assign]  # the story has its own ticks
        objects, signals = topics.inputs
        # A tick goes to both topics; one that comes before its piece of the story would be a step of its own.
        self._edge._to = lambda record: (objects if record.key else signals,)  # type: ignore[method-assign]
        self._edge_task = asyncio.create_task(self._edge.run([]))
        await self.add_worker()

    async def add_worker(self) -> None:
        topics = await prepare(self._kafka)
        parts = Parts(
            build_engine=lambda cluster: build_engine(Settings(), self._rules, cluster),
            channels={"console": self._script},
            clock=self._clock,
            silence=timedelta(days=365),
        )
        worker = Worker(self._kafka, RuntimeSettings(role="worker"), topics, parts, self._client, self.ended.append)
        worker.on_partition.append(_step_at_ticks)
        worker.on_partition.append(self._count_outcomes)
        task = asyncio.create_task(worker.run())
        self._workers.append((worker, task))
        await until(lambda: task.done() or self._is_served())

    async def take(self, now: datetime, events: Sequence[Event]) -> None:
        assert self._edge is not None
        self._clock.now = now
        await self._edge.emit([*events, Tick(at=now)])
        await until(self._is_idle)
        for moment in SETTLES_AFTER:
            self._clock.now = now + moment
            await self._edge.emit([Tick(at=now + moment)])
            await until(self._is_idle)

    async def reload(self, rules: Iterable[Rule]) -> None:
        rules = tuple(rules)
        self._rules = Rulebook(rules, ())
        for worker, _ in self._workers:
            await worker.reload(rules)
        await until(self._is_idle)

    async def rebalance(self) -> None:
        """Another worker joins, and the one before it leaves."""
        before = self._workers[0]
        await self.add_worker()
        await ended(before[1])
        self._workers.remove(before)
        await until(self._is_served)
        self.rebuilds += sum(worker.rebuilds for worker, _ in self._workers)

    async def close(self) -> None:
        for _, task in self._workers:
            await ended(task)
        if self._edge_task is not None:
            await ended(self._edge_task)

    def _count_outcomes(self, partition: Partition) -> None:
        emit = partition.emit

        async def counting(cluster: str, events: list[Event]) -> None:
            await emit(cluster, events)
            self._outcomes += sum(isinstance(event, Outcome) for event in events)

        partition.emit = counting  # type: ignore[method-assign]

    def _is_served(self) -> bool:
        ready = [number for worker, _ in self._workers for number, p in worker.partitions.items() if p.is_ready]
        return sorted(ready) == list(range(self._kafka.partitions))

    def _is_idle(self) -> bool:
        assert self._edge is not None
        if self.ended:
            return True
        if self._edge.buffered or self._outcomes < len(self._script.delivered):
            return False
        number = partition_of(CLUSTER, self._kafka.partitions)
        for worker, _ in self._workers:
            partition = worker.partitions.get(number)
            if partition is not None and partition.is_idle:
                return all(partition.fence.offsets.get(t, 0) >= offset for t, offset in self._edge.stored.items())
        return False


def _step_at_ticks(partition: Partition) -> None:
    """Records wait for the tick that ends their piece of the story."""
    next_batch = partition._next

    def is_open(batch: Sequence[Incoming | Own]) -> bool:
        kept = [item for item in batch if isinstance(item, Incoming) and item.topic.endswith(".objects")]
        return bool(kept) and not isinstance(kept[-1].event, Tick)

    async def gathered() -> list[Incoming | Own]:
        batch = await next_batch()
        while is_open(batch):
            batch += await next_batch()
        return batch

    partition._next = gathered  # type: ignore[method-assign]


async def _never() -> None:
    await asyncio.Event().wait()


@asynccontextmanager
async def scaled(
    servers: str, redis_url: str, prefix: str, rulebook: Rulebook, start: datetime
) -> AsyncIterator[ScaledRuntime]:
    """The scaled runtime at work."""
    async with AsyncExitStack() as stack:
        client = connect(redis_url)
        stack.push_async_callback(client.aclose)
        kafka = KafkaSettings(servers=servers.split(","), prefix=prefix, partitions=2, replicas=1)
        # One Redis for all cases: what one kept is not the other's.
        await client.flushall()
        runtime = ScaledRuntime(kafka, rulebook, HandClock(start), client)
        stack.push_async_callback(runtime.close)
        await runtime.start()
        yield runtime
        assert not runtime.ended, runtime.ended


async def until(is_true: Callable[[], Any]) -> None:
    """
    Raises:
        TimeoutError: It never was.
    """
    async with asyncio.timeout(PATIENCE_S):
        while not is_true():  # noqa: ASYNC110  what is waited for has no event
            await asyncio.sleep(0.001)


async def ended(task: asyncio.Task[Any]) -> None:
    """Cancelled, and over; what it had failed with is raised."""
    task.cancel()
    await asyncio.wait([task])
    if not task.cancelled() and (error := task.exception()) is not None:
        raise error
