"""The door of an edge: only its own cluster, and each answer finds those who asked for it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from datetime import UTC, datetime
from typing import Any

import msgspec
import pytest

from sevenhop.core.effects import Reply
from sevenhop.core.events import SwitchSet
from sevenhop.core.remediation.person import Person
from sevenhop.runtime.codec import Record, read
from sevenhop.runtime.scaled import decisions, edge_front
from sevenhop.runtime.scaled.edge_front import EdgeFront
from sevenhop.runtime.scaled.hands import REPLY, Order
from sevenhop.runtime.scaled.topics import topics_of
from sevenhop.settings_scaled import KafkaSettings

NOON = datetime(2026, 11, 30, 12, tzinfo=UTC)
KAFKA = KafkaSettings(servers=["unused:9092"])
ASKED = SwitchSet(at=NOON, request_id="r1", person=Person(id="kubernetes:ann", verified_at=NOON), is_on=True)
FOLLOWED = Reply(request_id="r1", accepted=True, text="the kill switch is on")


class Topic:
    """What was put into signals."""

    def __init__(self) -> None:
        self.records: list[tuple[str, str, Record]] = []

    async def put(self, topic: str, cluster: str, record: Record) -> int:
        self.records.append((topic, cluster, record))
        return len(self.records)


def order(reply: Reply = FOLLOWED, **changes: Any) -> bytes:
    body = {"cluster": "prod", "request_id": "r1", "until": NOON, "method": REPLY, "path": "/", **changes}
    return msgspec.json.encode(Order(**{"body": msgspec.json.encode(reply), **body}))


@pytest.fixture
def topic() -> Topic:
    return Topic()


@pytest.fixture
def front(topic: Topic) -> EdgeFront:
    made = EdgeFront("prod", KAFKA, topics_of(KAFKA))
    made._orders = topic  # type: ignore[assignment]
    return made


async def asked(front: EdgeFront, topic: Topic, count: int) -> None:
    async with asyncio.timeout(5):
        while len(topic.records) < count:  # noqa: ASYNC110  what is waited for has no event
            await asyncio.sleep(0.001)


async def test_it_is_put_beside_what_the_edge_sees_and_answered(front: EdgeFront, topic: Topic) -> None:
    """Into the signals of the edge's own cluster, with the person whom the API server named."""
    asking = asyncio.create_task(front.ask(ASKED))
    await asked(front, topic, 1)
    front.hear(order())
    assert await asking == FOLLOWED
    [(where, cluster, record)] = topic.records
    assert (where, cluster) == (topics_of(KAFKA).signals, "prod")
    assert read(record.value).event == ASKED


async def test_two_who_ask_the_same_are_both_answered(front: EdgeFront, topic: Topic) -> None:
    """A command that was sent again while the first one waits."""
    asking = [asyncio.create_task(front.ask(ASKED)) for _ in range(2)]
    await asked(front, topic, 2)
    front.hear(order())
    assert await asyncio.gather(*asking) == [FOLLOWED, FOLLOWED]
    front.hear(order())  # again: nobody waits any more


OTHERS = {
    "of-another-request": order(msgspec.structs.replace(FOLLOWED, request_id="r2")),
    "of-another-cluster": order(cluster="lab"),
    "a-step-to-carry-out": order(method="PATCH"),
    "no-reply-in-it": order(body=b"{"),
    "no-order": b"nonsense",
    "nothing": None,
    "of-a-newer-version": order(v=99),
}


@pytest.mark.parametrize("value", OTHERS.values(), ids=OTHERS)
async def test_what_is_not_the_answer(front: EdgeFront, topic: Topic, value: bytes | None) -> None:
    """It answers nobody, and the door goes on."""
    asking = asyncio.create_task(front.ask(ASKED))
    await asked(front, topic, 1)
    front.hear(value)
    await asyncio.sleep(0.02)
    assert not asking.done()
    front.hear(order())
    assert await asking == FOLLOWED


async def test_another_cluster_is_not_decided_about(front: EdgeFront, topic: Topic) -> None:
    """The API server that named the person is this cluster's."""
    reply = await front.ask(ASKED, cluster="lab")
    assert not reply.accepted
    assert "this is the edge of prod; ask at the edge of lab" in reply.text
    assert topic.records == []


async def test_a_door_that_fails_opens_again(topic: Topic, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever fails there: nobody else looks after it, and each decision would wait in vain."""
    opened = []

    class Producer:
        def __init__(self, *_: object) -> None:
            self.put = topic.put

        async def start(self) -> None:
            """Nothing to do."""

        async def close(self) -> None:
            raise RuntimeError("nor can it be closed")

    async def orders(*_: object) -> AsyncIterator[bytes]:
        opened.append(1)
        if len(opened) < 3:
            raise AttributeError("a fault of a library")
        await asked(door, topic, 1)
        yield order()

    monkeypatch.setattr(edge_front, "AGAIN_AFTER_S", 0.01)
    monkeypatch.setattr(edge_front, "Orders", Producer)
    monkeypatch.setattr(edge_front, "orders_to", orders)
    monkeypatch.setattr(decisions, "LOST_AGAIN_S", 0.01)
    door = EdgeFront("prod", KAFKA, topics_of(KAFKA))
    running = asyncio.create_task(door.run())
    try:
        async with asyncio.timeout(5):
            assert await door.ask(ASKED) == FOLLOWED
    finally:
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)
