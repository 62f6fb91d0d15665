"""What Kafka will never take, for its size, holds up nothing that comes behind it."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from aiokafka.errors import MessageSizeTooLargeError

from sevenhop.core.events import Applied, Unreadable, XidSeen
from sevenhop.runtime.codec import MOST_BYTES, encode, read
from sevenhop.runtime.scaled.dead_letters import DeadLetters
from sevenhop.runtime.scaled.edge import Edge
from sevenhop.runtime.scaled.topics import topics_of
from sevenhop.settings_scaled import KafkaSettings
from tests.builders import node

NOON = datetime(2026, 11, 30, 12, tzinfo=UTC)
KAFKA = KafkaSettings(servers=["unused:9092"])


def test_an_object_is_told_of_as_unreadable() -> None:
    """At the same place, so that what was known of it before does not stay as it was."""
    edge = Edge("prod", 1, KAFKA, topics_of(KAFKA), lambda: NOON)
    large = Applied(at=NOON, epoch=7, seq=3, kind="Node", obj=node("n1", labels={"x": "y" * MOST_BYTES}))
    record = edge._record(large)
    assert record is not None
    assert (record.key, record.is_kept) == (encode("prod", large).key, True)
    event = read(record.value).event
    assert isinstance(event, Unreadable)
    assert (event.kind, event.name, event.epoch, event.seq) == ("Node", "n1", 7, 3)
    assert "more than Kafka takes" in event.error


def test_what_passes_is_left_out() -> None:
    """And what is not too large is as it was."""
    edge = Edge("prod", 1, KAFKA, topics_of(KAFKA), lambda: NOON)
    assert edge._record(XidSeen(at=NOON, node="n1", xid=79, text="x" * MOST_BYTES)) is None
    small = XidSeen(at=NOON, node="n1", xid=79)
    assert edge._record(small) == encode("prod", small)


class Producer:
    """Takes what has a thousand bytes at most."""

    def __init__(self) -> None:
        self.sent: list[dict[str, Any]] = []

    async def send_and_wait(self, _topic: str, **record: Any) -> None:
        if len(record["value"] or b"") > 1000:
            raise MessageSizeTooLargeError
        self.sent.append(record)


async def test_a_dead_letter_is_kept_without_what_it_held() -> None:
    """Why, and where it stood; else the stream would wait for ever."""
    dead, producer = DeadLetters(KAFKA, topics_of(KAFKA)), Producer()
    dead._producer = producer
    await dead.put("t", 3, 9, "unsigned: by nobody", key=b"k", value=b"x" * 2000, headers=[("e", b"x")])
    [record] = producer.sent
    assert record["value"] is None
    assert record["headers"] == [("reason", b"unsigned: by nobody"), ("where", b"t/3@9")]
