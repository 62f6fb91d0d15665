"""A worker in this process, on real Kafka and Redis: poison, a broker that goes away, and how long a change takes."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import asynccontextmanager
from datetime import datetime, timedelta
from statistics import quantiles
from typing import Any

import pytest

from sevenhop.core.engine import Engine, Step
from sevenhop.core.events import Applied, Event
from sevenhop.core.incidents.settings import DeskSettings
from sevenhop.core.inventory.policy import Policy
from sevenhop.runtime.clock import Clock
from sevenhop.runtime.scaled.cell import Parts
from sevenhop.runtime.scaled.edge import Edge
from sevenhop.runtime.scaled.topics import prepare
from sevenhop.runtime.scaled.worker import Worker
from sevenhop.settings_scaled import KafkaSettings, RuntimeSettings
from sevenhop.stores.redis_fence import connect
from tests.builders import node
from tests.saying import Say
from tests.testbed.kafka import Kafka
from tests.testbed.redis import Redis
from tests.unit.runtime.harness import Script, Told, node_rule

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(300)]

CHANGES = 200


@pytest.fixture(scope="module")
def redis() -> Iterator[Redis]:
    with Redis() as running:
        yield running


@pytest.fixture(scope="module")
def kafka() -> Iterator[Kafka]:
    with Kafka(1) as running:
        yield running


class Fragile(Engine):
    """An engine that fails on one object, as ours must not, and might."""

    def handle(self, events: Sequence[Event], now: datetime) -> Step:
        step = super().handle(events, now)
        if any(isinstance(event, Applied) and event.obj.metadata.name == "poison" for event in events):
            raise ZeroDivisionError("a fault of ours")
        return step


class Works:
    """An edge that the test plays, a worker, and what was told."""

    def __init__(
        self, kafka: KafkaSettings, edge: Edge, worker: Worker, script: Script, told: Told, ended: list[str]
    ) -> None:
        self.kafka = kafka
        self.edge = edge
        self.worker = worker
        self.script = script
        self.told = told
        self.ended = ended

    async def until(self, is_true: Callable[[], Any], seconds: float = 60.0) -> None:
        async with asyncio.timeout(seconds):
            while not is_true():  # noqa: ASYNC110  what is waited for has no event
                await asyncio.sleep(0.001)


@asynccontextmanager
async def works(kafka: Kafka, redis: Redis, prefix: str, engine: type[Engine] = Engine) -> AsyncIterator[Works]:
    settings = KafkaSettings(servers=kafka.servers.split(","), prefix=prefix, partitions=2, replicas=1)
    topics, clock, script, told, ended = await prepare(settings), Clock(), Script(), Told(), list[str]()
    desk = DeskSettings(receivers=("slack",), group_wait=timedelta(0), flap_limit=100_000)
    parts = Parts(
        build_engine=lambda cluster: engine(cluster, (), [node_rule()], Policy(), desk),
        channels={"slack": script},
        clock=clock,
        silence=timedelta(minutes=5),
    )
    client = connect(redis.url)
    await client.flushall()
    worker = Worker(settings, RuntimeSettings(role="worker"), topics, parts, client, ended.append)
    edge = Edge("test", int(time.time()), settings, topics, clock, buffered_events=100)
    tasks = [asyncio.create_task(worker.run()), asyncio.create_task(edge.run([told]))]
    play = Works(settings, edge, worker, script, told, ended)
    try:
        told.synced(*(node(f"n{number}", ready=True) for number in range(10)))
        await play.until(lambda: any("test" in partition.cells for partition in worker.partitions.values()))
        await play.until(lambda: all(partition.is_ready for partition in worker.partitions.values()))
        yield play
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.wait(tasks)
        await client.aclose()


async def test_a_record_that_the_engine_fails_on_is_buried_alone(kafka: Kafka, redis: Redis) -> None:
    """Records before, beside and behind it are told, once; and after that the stream goes on as ever."""
    async with works(kafka, redis, "poison", Fragile) as play:
        feed = play.told.feed
        play.told.tell(
            [
                *feed.applied(node("n1", ready=False)),
                *feed.applied(node("poison", ready=False)),
                *feed.applied(node("n2", ready=False)),
            ]
        )
        await play.until(lambda: len(play.script.delivered) >= 2)
        play.told.node("n3", ready=False)
        await play.until(lambda: len(play.script.delivered) >= 3)
        titles = sorted(notify.message.title for notify in play.script.messages)

        assert titles == [f"n{number} is not ready" for number in (1, 2, 3)]
        assert sum(play.worker.dead_letters.values()) == 1
        assert not play.ended


async def test_kafka_gone_for_a_while_loses_nothing_and_holds_no_more_than_the_bound(
    kafka: Kafka, redis: Redis, say: Say
) -> None:
    """The edge keeps what it sees up to its bound, then its sources wait; all of it is told when Kafka is back."""
    async with works(kafka, redis, "gone") as play:
        broker = kafka.brokers[0]
        broker.kill()
        for turn in range(40):
            for number in range(10):
                play.told.node(f"n{number}", ready=turn % 2 == 1)
        play.told.node("n0", ready=False)
        await play.until(lambda: play.edge.stalled)
        await asyncio.sleep(2)
        assert play.edge.buffered <= 101
        assert play.told.waiting > 0
        broker.start(wait_s=0)  # in this thread: with its own the kernel would end it
        await asyncio.to_thread(broker.wait)
        back_at = time.monotonic()

        await play.until(lambda: not play.edge.buffered and not play.told.waiting, 90)
        await play.until(lambda: _last(play) == {"n0": "firing"}, 60)
        say(f"Kafka back: all told after {time.monotonic() - back_at:.1f} s")
        assert not play.ended


async def test_redis_gone_stops_the_input_and_loses_nothing(kafka: Kafka, redis: Redis) -> None:
    """It says so, sends nothing of what is not stored, is no hang to the watchdog, and goes on by itself."""
    async with works(kafka, redis, "stateless") as play:
        redis.pause()
        try:
            for number in range(10):
                play.told.node(f"n{number}", ready=False)
            await play.until(lambda: play.worker.stalled)
            play.told.node("n0", ready=True)
            await asyncio.sleep(2)

            assert play.worker.stalled.startswith("Redis: ")
            assert play.worker.why_not_ready().startswith("state is not stored")
            assert play.worker.progress()[1] is False
            assert play.script.delivered == []
        finally:
            redis.resume()

        await play.until(lambda: _last(play) == {f"n{number}": "firing" for number in range(1, 10)})
        assert play.worker.stalled == ""
        assert len(set(play.script.delivered)) == len(play.script.delivered)
        assert not play.ended


async def test_of_two_edges_the_later_one_counts(kafka: Kafka, redis: Redis) -> None:
    """The earlier one goes on talking, is counted, and changes nothing, not even by a list of its own."""
    async with works(kafka, redis, "two-edges") as play:
        (cell,) = [
            partition.cells["test"] for partition in play.worker.partitions.values() if "test" in partition.cells
        ]
        later = Told()
        edge = Edge("test", play.edge.term + 1, play.kafka, await prepare(play.kafka), Clock())
        running = asyncio.create_task(edge.run([later]))
        try:
            later.synced(*(node(f"n{number}", ready=number != 1) for number in range(10)))
            await play.until(lambda: _last(play) == {"n1": "firing"})
            before = cell.sight.stale_records
            play.told.node("n2", ready=False)
            play.told.synced(*(node(f"n{number}", ready=False) for number in range(10)))
            await play.until(lambda: cell.sight.stale_records >= before + 12)
            later.node("n3", ready=False)
            await play.until(lambda: _last(play) == {"n1": "firing", "n3": "firing"})

            assert {notify.cause for notify in play.script.messages} == {"node:n1", "node:n3"}
            assert cell.sight.term == edge.term
        finally:
            running.cancel()
            await asyncio.wait([running])


def _last(play: Works) -> dict[str, str]:
    """Node to what was told of it last, of those that are not well."""
    last: dict[str, str] = {}
    for notify in play.script.messages:
        last[notify.cause.removeprefix("node:")] = notify.message.status
    return {name: status for name, status in last.items() if status != "resolved"}


@pytest.mark.soak
async def test_how_long_a_change_takes(kafka: Kafka, redis: Redis, say: Say) -> None:
    """From an edge to a channel, by way of Kafka and Redis: printed, not asserted but for its order of magnitude."""
    async with works(kafka, redis, "latency") as play:
        took: list[float] = []
        for turn in range(CHANGES):
            before, began = len(play.script.delivered), time.perf_counter()
            play.told.node("n0", ready=turn % 2 == 1)
            await play.until(lambda known=before: len(play.script.delivered) > known)  # type: ignore[misc]
            took.append((time.perf_counter() - began) * 1000)
        cuts = quantiles(took, n=100)
        say(f"change at the edge → channel, {CHANGES} times: p50 {cuts[49]:.1f} ms, p99 {cuts[98]:.1f} ms")
        assert cuts[49] < 1000
