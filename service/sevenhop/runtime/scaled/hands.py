"""
Steps in a cluster, decided on a worker and carried out at the cluster's edge: the orders, and the edge's half.

The executor and its permit stay where the guards are, on the worker (`remote`); what travels is each single request to
the API server.  The edge sends it with its own credentials, so no worker holds any, and the edge's role bounds what can
happen.

    worker: executor ─► RemoteTransport ─► orders ─► edge: Hands ─► API server
                              ▲                          │
                              └──────── signals ◄────────┘

Orders also bring the answer to a decision that came in at the edge's own door (see `decisions`).
"""

from __future__ import annotations

import asyncio
import logging
import zlib
from collections.abc import AsyncIterator, Awaitable, Callable
from datetime import UTC, datetime, timedelta
from typing import Annotated, Any

import msgspec

from sevenhop.actions.transport import AnsweredError, LostAnswerError, NotSentError, Transport
from sevenhop.core.effects import Reply
from sevenhop.runtime.codec import MOST_BYTES, VERSION, Answered, Record
from sevenhop.runtime.scaled.topics import Topics, client_options, partition_of
from sevenhop.settings_scaled import KafkaSettings

log = logging.getLogger("sevenhop.hands")

ORDER_LIVES = timedelta(seconds=20)
"""An order that is found later is not carried out: nobody waits for it any more, and it may have been given anew."""

REPLY = "REPLY"
"""An order that asks for nothing: the answer to a decision that came in at the edge's door."""

PACKED_FROM = 64 * 1024
"""A list of all ReplicaSets of a namespace has megabytes, and becomes a tenth of that."""

_MOST_BODY = (MOST_BYTES - 10_000) * 3 // 4
"""In a record it is text, and a third longer."""

METHODS = frozenset(("GET", "POST", "PUT", "PATCH"))


class Order(msgspec.Struct, frozen=True, kw_only=True):
    """One request to the API server of a cluster."""

    v: int = VERSION
    cluster: str
    request_id: str
    until: Annotated[datetime, msgspec.Meta(tz=True)]
    method: str
    path: str
    params: dict[str, str] = {}
    body: bytes | None = None
    content_type: str = ""


_orders = msgspec.json.Decoder(Order)

Send = Callable[[str, Order], Awaitable[None]]
"""Puts an order where its cluster's edge reads; `NotSentError`: surely not there, `LostAnswerError`: perhaps."""


class Orders:
    """A worker's way into the topic of orders."""

    def __init__(self, settings: KafkaSettings, topics: Topics) -> None:
        self._settings = settings
        self._topics = topics
        self._producer: Any = None

    async def start(self) -> None:
        from aiokafka import AIOKafkaProducer

        self._producer = AIOKafkaProducer(**client_options(self._settings), acks="all", request_timeout_ms=10_000)
        await self._producer.start()

    async def close(self) -> None:
        if self._producer is not None:
            await self._producer.stop()

    async def send(self, cluster: str, order: Order) -> None:
        """See `Send`."""
        record = Record(cluster.encode(), msgspec.json.encode(order), [], False)
        try:
            await self.put(self._topics.orders, cluster, record)
        except LostAnswerError as error:
            raise LostAnswerError(f"the order may not have reached the edge: {error}") from None

    async def reply(self, cluster: str, reply: Reply) -> None:
        """Tell the door of a cluster's edge what came of a decision; see `Send` for what may go wrong."""
        body, until = msgspec.json.encode(reply), datetime.now(UTC) + ORDER_LIVES
        order = Order(cluster=cluster, request_id=reply.request_id, until=until, method=REPLY, path="/", body=body)
        await self.send(cluster, order)

    async def put(self, topic: str, cluster: str, record: Record) -> int:
        """
        The offset of a record that Kafka has stored in a cluster's partition.

        Raises:
            LostAnswerError: It may be there.
        """
        from aiokafka.errors import KafkaError

        place = partition_of(cluster, self._settings.partitions)
        try:
            stored = await self._producer.send_and_wait(
                topic, key=record.key, value=record.value, headers=record.headers, partition=place
            )
        except KafkaError as error:
            raise LostAnswerError(f"Kafka may not have stored it: {type(error).__name__}") from None
        return int(stored.offset)


async def orders_to(cluster: str, settings: KafkaSettings, topics: Topics) -> AsyncIterator[bytes | None]:
    """
    What comes into the partition of a cluster's orders, from now on.

    Raises:
        KafkaError: It cannot be read.
    """
    from aiokafka import AIOKafkaConsumer, TopicPartition

    place = TopicPartition(topics.orders, partition_of(cluster, settings.partitions))
    consumer = AIOKafkaConsumer(
        **client_options(settings), group_id=None, enable_auto_commit=False, auto_offset_reset="latest"
    )
    try:
        await consumer.start()
        consumer.assign([place])
        consumer.seek(place, (await consumer.end_offsets([place]))[place])
        async for record in consumer:
            yield record.value
    finally:
        await consumer.stop()


def read_order(value: bytes | None) -> Order | None:
    """None if it cannot be read, which is said in the log."""
    try:
        order = _orders.decode(value or b"")
    except msgspec.MsgspecError as error:
        log.error("an order that cannot be read is left out: %s", error)
        return None
    if order.v > VERSION:
        log.error("an order of format %d is left out: upgrade the edges", order.v)
        return None
    return order


class Hands:
    """A source at the edge: takes orders for its cluster, from now on, and tells what came of them."""

    def __init__(
        self, cluster: str, settings: KafkaSettings, topics: Topics, transport: Transport, now: Callable[[], datetime]
    ) -> None:
        self._cluster = cluster
        self._settings = settings
        self._topics = topics
        self._transport = transport
        self._now = now

    async def run(self, emit: Callable[[list[Any]], Awaitable[None]]) -> None:
        async with asyncio.TaskGroup() as tasks:
            async for value in orders_to(self._cluster, self._settings, self._topics):
                order = self._read(value)
                if order is not None:
                    tasks.create_task(self._carry_out(order, emit))

    def _read(self, value: bytes | None) -> Order | None:
        order = read_order(value)
        return order if order is not None and order.cluster == self._cluster and order.method != REPLY else None

    async def _carry_out(self, order: Order, emit: Callable[[list[Any]], Awaitable[None]]) -> None:
        await emit([await self.answer(order)])

    async def answer(self, order: Order) -> Answered:
        """Carry out one order."""
        now = self._now()
        common: dict[str, Any] = {"at": now, "request_id": order.request_id}
        if now > order.until:
            late_s = (now - order.until).total_seconds()
            text = f"the order came {late_s:.0f} s too late (or the clocks of worker and edge differ)"
            return Answered(**common, outcome="not_sent", message=text)
        if order.method not in METHODS or not order.path.startswith(("/api/", "/apis/")) or ".." in order.path:
            return Answered(**common, outcome="not_sent", message=f"{order.method[:10]}: not a request that is sent")
        try:
            body = await self._transport.send(
                order.method, order.path, order.params, body=order.body, content_type=order.content_type
            )
        except AnsweredError as error:
            return Answered(
                **common,
                outcome="answered",
                status=error.status,
                reason=error.reason,
                message=error.message,
                causes=error.causes,
                retry_after_s=error.retry_after_s,
            )
        except NotSentError as error:
            return Answered(**common, outcome="not_sent", message=str(error))
        except LostAnswerError as error:
            return Answered(**common, outcome="lost", message=str(error))
        except Exception as error:  # one order must not end what watches the cluster
            log.exception("an order (%s) failed", order.method)
            return Answered(**common, outcome="lost", message=f"the edge failed: {type(error).__name__}")
        if len(body) < PACKED_FROM:
            return Answered(**common, outcome="good", body=body)
        packed = await asyncio.to_thread(zlib.compress, body, 1)
        if len(packed) > _MOST_BODY:
            text = f"the answer has {len(body):,} bytes, more than Kafka takes in one record"
            return Answered(**common, outcome="lost", message=text)
        return Answered(**common, outcome="good", body=packed, is_packed=True)
