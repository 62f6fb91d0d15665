"""
Orders of workers to the edges, as they travel: one request to a cluster's API server each, signed (`signing`).

Orders also bring the answer to a decision that came in at the edge's own door (see `decisions`).
"""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Awaitable, Callable
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from typing import Annotated, Any

import msgspec

from sevenhop.actions.transport import LostAnswerError
from sevenhop.core.effects import Reply
from sevenhop.runtime.codec import VERSION, Record
from sevenhop.runtime.scaled.signing import HEADER, SignOrder, is_workers_order, not_signed, signature_in
from sevenhop.runtime.scaled.topics import Topics, client_options, partition_of
from sevenhop.settings_scaled import KafkaSettings
from sevenhop.telemetry.table import OrderRefusal

log = logging.getLogger("sevenhop.hands")

ORDER_LIVES = timedelta(seconds=20)
"""An order that is found later is not carried out: nobody waits for it any more, and it may have been given anew."""

REPLY = "REPLY"
"""An order that asks for nothing: the answer to a decision that came in at the edge's door."""


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


class Letter(msgspec.Struct, frozen=True):
    """
    An order as its bytes.

    Attributes:
        signature: Over the value; empty of one that nobody signed.
        is_old: It was there before we listened.
    """

    value: bytes
    signature: bytes = b""
    is_old: bool = False

    @property
    def seal(self) -> str:
        """What the answer to this order names, so that it is taken for the answer to no other."""
        return sha256(self.signature + b"\n" + self.value).hexdigest()


class OrderError(ValueError):
    """
    An order that is not carried out.

    Attributes:
        reason: Its word.
    """

    def __init__(self, reason: OrderRefusal, text: str) -> None:
        super().__init__(f"{reason}: {text}")
        self.reason = reason


_orders = msgspec.json.Decoder(Order)

Send = Callable[[str, Letter], Awaitable[None]]
"""Puts an order where its cluster's edge reads; `NotSentError`: surely not there, `LostAnswerError`: perhaps."""

Write = Callable[[Order], Letter]
"""The order as this worker sends it."""


def write_order(order: Order, sign: SignOrder = not_signed) -> Letter:
    """With the signature of a worker; whatever is in it cannot be changed without that being noticed."""
    value = msgspec.json.encode(order)
    return Letter(value, sign(order.cluster, value))


def read_order(letter: Letter) -> Order:
    """
    Raises:
        OrderError: It cannot be read.
    """
    try:
        order = _orders.decode(letter.value)
    except (msgspec.MsgspecError, RecursionError, UnicodeDecodeError) as error:
        raise OrderError(OrderRefusal.UNREADABLE, f"not an order of sevenhop: {error}") from None
    if order.v > VERSION:
        raise OrderError(OrderRefusal.NEWER_FORMAT, f"format {order.v}, this edge reads up to {VERSION}: upgrade it")
    return order


def check_order(key: str, letter: Letter) -> None:
    """
    Args:
        key: Of the cluster's edge; an empty one takes everything.

    Raises:
        OrderError: No worker signed it for this cluster, as it is now.
    """
    if not key:
        return
    if not letter.signature:
        text = "it has no signature; the workers need runtime.decision_key, or somebody else wrote it"
        raise OrderError(OrderRefusal.UNSIGNED, text)
    if not is_workers_order(key, letter.value, letter.signature):
        text = (
            "its signature is not that of a worker for this cluster: it was changed, is another's, or the keys differ "
            "(`sevenhop edge-key` makes that of the edge)"
        )
        raise OrderError(OrderRefusal.FORGED, text)


class Orders:
    """A worker's way into the topic of orders, and that of every door into the topic of signals."""

    def __init__(self, settings: KafkaSettings, topics: Topics, sign: SignOrder = not_signed) -> None:
        self._settings = settings
        self._topics = topics
        self._sign = sign
        self._producer: Any = None

    async def start(self) -> None:
        from aiokafka import AIOKafkaProducer

        self._producer = AIOKafkaProducer(**client_options(self._settings), acks="all", request_timeout_ms=10_000)
        await self._producer.start()

    async def close(self) -> None:
        if self._producer is not None:
            await self._producer.stop()

    def write(self, order: Order) -> Letter:
        """See `Write`."""
        return write_order(order, self._sign)

    async def send(self, cluster: str, letter: Letter) -> None:
        """See `Send`."""
        headers = [(HEADER, letter.signature)] if letter.signature else []
        try:
            await self.put(self._topics.orders, cluster, Record(cluster.encode(), letter.value, headers, False))
        except LostAnswerError as error:
            raise LostAnswerError(f"the order may not have reached the edge: {error}") from None

    async def reply(self, cluster: str, reply: Reply) -> None:
        """Tell the door of a cluster's edge what came of a decision; see `Send` for what may go wrong."""
        body, until = msgspec.json.encode(reply), datetime.now(UTC) + ORDER_LIVES
        order = Order(cluster=cluster, request_id=reply.request_id, until=until, method=REPLY, path="/", body=body)
        await self.send(cluster, self.write(order))

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


async def orders_to(
    cluster: str, settings: KafkaSettings, topics: Topics, since: datetime | None = None
) -> AsyncIterator[Letter]:
    """
    What comes into the partition of a cluster's orders, from now on.

    Args:
        since: What was put there since then is brought too, first, as old.

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
        end = (await consumer.end_offsets([place]))[place]
        start = end
        if since is not None:
            found = (await consumer.offsets_for_times({place: int(since.timestamp() * 1000)}))[place]
            start = end if found is None else min(found.offset, end)
        consumer.seek(place, start)
        async for record in consumer:
            yield Letter(record.value or b"", signature_in(record.headers), record.offset < end)
    finally:
        await consumer.stop()
