"""The door of an edge: only its own cluster, and each answer finds those who asked for it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec
import pytest
from msgspec.structs import replace

from sevenhop.core.effects import Reply
from sevenhop.core.events import SwitchSet
from sevenhop.core.remediation.person import Person
from sevenhop.runtime.codec import Record, read
from sevenhop.runtime.scaled import decisions, edge_front
from sevenhop.runtime.scaled.decisions import LIVES, NoAnswerError
from sevenhop.runtime.scaled.edge_front import EdgeFront
from sevenhop.runtime.scaled.orders import ORDER_LIVES, REPLY, Letter, Order, write_order
from sevenhop.runtime.scaled.signing import edge_key, signing_orders
from sevenhop.runtime.scaled.topics import topics_of
from sevenhop.settings_scaled import KafkaSettings
from sevenhop.telemetry.table import OrderRefusal

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


def order(reply: Reply = FOLLOWED, key: str = "", **changes: Any) -> Letter:
    body = {"cluster": "prod", "request_id": "r1", "until": NOON, "method": REPLY, "path": "/", **changes}
    return write_order(Order(**{"body": msgspec.json.encode(reply), **body}), signing_orders(key))


@pytest.fixture
def topic() -> Topic:
    return Topic()


@pytest.fixture
def front(topic: Topic) -> EdgeFront:
    made = EdgeFront("prod", KAFKA, topics_of(KAFKA), lambda: NOON)
    made._orders = topic  # type: ignore[assignment]
    return made


async def asked(front: EdgeFront, topic: Topic, count: int) -> None:
    async with asyncio.timeout(30):
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


async def test_whoever_hears_nothing_at_an_edge_is_told_where_to_look(
    front: EdgeFront, topic: Topic, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A worker answers nothing that it does not believe: with another key the edge itself cannot know that."""
    monkeypatch.setattr(decisions, "PATIENCE_S", 0.1)
    with pytest.raises(
        NoAnswerError, match=r"no worker has answered yet; .*; `sevenhop doctor` at a worker says whether"
    ):
        await front.ask(ASKED)
    assert topic.records
    assert front._waiting == {}


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
    "no-order": Letter(b"nonsense"),
    "nothing": Letter(b""),
    "of-a-newer-version": order(v=99),
}


@pytest.mark.parametrize("value", OTHERS.values(), ids=OTHERS)
async def test_what_is_not_the_answer(front: EdgeFront, topic: Topic, value: Letter) -> None:
    """It answers nobody, and the door goes on."""
    asking = asyncio.create_task(front.ask(ASKED))
    await asked(front, topic, 1)
    front.hear(value)
    await asyncio.sleep(0.02)
    assert not asking.done()
    front.hear(order())
    assert await asking == FOLLOWED


KEY = "a key of the workers"
LATER = NOON + ORDER_LIVES + LIVES + timedelta(seconds=1)
FORGED = {
    "of-nobody": (order(), NOON, OrderRefusal.UNSIGNED),
    "with-another-key": (order(key="another"), NOON, OrderRefusal.FORGED),
    "changed": (replace(order(msgspec.structs.replace(FOLLOWED, accepted=False), key=KEY), value=order().value), NOON,
                OrderRefusal.FORGED),
    "of-long-ago": (order(key=KEY), LATER, OrderRefusal.LATE),
}  # fmt: skip


@pytest.mark.parametrize(("letter", "now", "why"), FORGED.values(), ids=FORGED)
async def test_an_answer_that_no_worker_gave(topic: Topic, letter: Letter, now: datetime, why: OrderRefusal) -> None:
    """Nobody is told that a stop is followed by whoever may write to Kafka; it is counted, and the true one counts."""
    refused: list[OrderRefusal] = []
    front = EdgeFront(
        "prod", KAFKA, topics_of(KAFKA), lambda: now, key=edge_key(KEY, "prod"), refused=refused.append
    )  # fmt: skip
    front._orders = topic  # type: ignore[assignment]
    asking = asyncio.create_task(front.ask(ASKED))
    await asked(front, topic, 1)
    front.hear(letter)
    await asyncio.sleep(0.02)
    assert (asking.done(), refused) == (False, [why])
    front.hear(order(key=KEY, until=now))
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

    async def orders(*_: object) -> AsyncIterator[Letter]:
        opened.append(1)
        if len(opened) < 3:
            raise AttributeError("a fault of a library")
        await asked(door, topic, 1)
        yield order()

    monkeypatch.setattr(edge_front, "AGAIN_AFTER_S", 0.01)
    monkeypatch.setattr(edge_front, "Orders", Producer)
    monkeypatch.setattr(edge_front, "orders_to", orders)
    monkeypatch.setattr(decisions, "LOST_AGAIN_S", 0.01)
    door = EdgeFront("prod", KAFKA, topics_of(KAFKA), lambda: NOON)
    running = asyncio.create_task(door.run())
    try:
        async with asyncio.timeout(30):
            assert await door.ask(ASKED) == FOLLOWED
    finally:
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)
