"""
Kafka is gone while the cluster goes on: the edge holds what it may, its watches wait, and what the API server has
forgotten meanwhile is listed anew.  Real Kafka, the real source, a simulated API server.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any

import pytest

from sevenhop.core.events import Event
from sevenhop.core.objects.kinds import KINDS
from sevenhop.runtime.clock import Clock
from sevenhop.runtime.codec import read
from sevenhop.runtime.scaled.edge import Edge
from sevenhop.runtime.scaled.reader import ends_of, read_range
from sevenhop.runtime.scaled.topics import prepare
from sevenhop.settings_scaled import KafkaSettings
from sevenhop.simulation.clock import VirtualClock
from sevenhop.simulation.server import ApiServerSimulation
from sevenhop.simulation.store import Store
from sevenhop.sources.kubernetes.api import Access, ApiServer
from sevenhop.sources.kubernetes.source import KubernetesSource
from tests.testbed.kafka import Kafka
from tests.unit.sources.harness import NODE, Heard, now

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(300)]

NODES = 50
BOUND = 100
BATCH = 100
"""What a source hands on at once, at most (`Limits.slice_objects`)."""


@pytest.fixture(scope="module")
def kafka() -> Iterator[Kafka]:
    with Kafka(1) as running:
        yield running


def node(number: int, ready: bool) -> dict[str, Any]:
    condition = {"type": "Ready", "status": "True" if ready else "False"}
    return {
        "apiVersion": "v1", "kind": "Node", "metadata": {"name": f"n{number}"}, "status": {"conditions": [condition]},
    }  # fmt: skip


def turn(store: Store, numbers: range, *, ready: bool) -> None:
    for number in numbers:
        store.update("Node", node(number, ready))


async def topic_of(settings: KafkaSettings, topic: str) -> Heard:
    """What a worker would know that reads the topic now."""
    heard = Heard()
    _, end = await ends_of(settings, topic, 0)
    async for batch in read_range(settings, topic, 0, 0, end):
        events = [read(record.value, record.headers).event for record in batch]
        await heard.emit([event for event in events if isinstance(event, Event)])
    return heard


async def until_told(settings: KafkaSettings, topic: str, store: Store) -> None:
    """
    Raises:
        TimeoutError: The topic never came to say what is true.
    """
    async with asyncio.timeout(90):
        while True:
            true = {
                ("Node", "", data["metadata"]["name"]): (data["metadata"]["uid"], data["metadata"]["resourceVersion"])
                for data in store.all("Node")
            }
            if (await topic_of(settings, topic)).level == true:
                return
            await asyncio.sleep(0.2)


async def test_what_is_not_known_any_more_is_listed_anew(kafka: Kafka) -> None:
    """No more than the bound is held, also of thousands of changes; after that the topic says what is true."""
    settings = KafkaSettings(servers=kafka.servers.split(","), prefix="outage", partitions=1, replicas=1)
    topics = await prepare(settings)
    store = Store(VirtualClock(now()), [KINDS["Node"]], history=20)
    for number in range(NODES):
        store.create("Node", node(number, ready=True))
    server = ApiServerSimulation(store)
    async with server.serve() as url, ApiServer(Access(base_url=url)) as api:
        edge = Edge("c", 1, settings, topics, Clock(), buffered_events=BOUND)
        running = asyncio.create_task(edge.run([KubernetesSource(api, [NODE], clock=now)]))
        try:
            await until_told(settings, topics.objects, store)
            lists = _lists(server)

            kafka.brokers[0].kill()
            most = 0
            for turns in range(40):
                turn(store, range(NODES), ready=turns % 2 == 1)
                await asyncio.sleep(0.05)
                most = max(most, edge.buffered)
            async with asyncio.timeout(30):
                while not edge.stalled:  # noqa: ASYNC110
                    await asyncio.sleep(0.05)
            assert edge.why_not_ready().startswith("Kafka: ")
            assert BOUND <= most <= BOUND + BATCH
            server.drop_connections()
            for number in range(10):
                store.delete("Node", "", f"n{number}", grace_s=0)
            store.forget_history("Node")
            assert edge.buffered <= BOUND + BATCH

            kafka.brokers[0].start(wait_s=0)  # in this thread: with its own the kernel would end it
            await asyncio.to_thread(kafka.brokers[0].wait)
            await until_told(settings, topics.objects, store)
            assert _lists(server) > lists
            assert edge.stalled == ""
        finally:
            running.cancel()
            await asyncio.wait([running])


def _lists(server: ApiServerSimulation) -> int:
    return sum("/nodes" in path and "watch=" not in path for method, path in server.requests if method == "GET")
