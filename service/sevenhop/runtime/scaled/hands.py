"""
Steps in a cluster, decided on a worker and carried out at the cluster's edge.

The executor and its permit stay where the guards are, on the worker; what travels is each single request to the API
server.  The edge sends it with its own credentials, so no worker holds any, and the edge's role bounds what can happen.

    worker: executor ─► RemoteTransport ─► orders ─► edge: Hands ─► API server
                              ▲                          │
                              └──────── signals ◄────────┘

Orders also bring the answer to a decision that came in at the edge's own door (see `decisions`).
"""

from __future__ import annotations

import asyncio
import logging
import secrets
import zlib
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from datetime import UTC, datetime, timedelta
from itertools import count
from typing import Annotated, Any

import msgspec

from sevenhop.actions.transport import AnsweredError, LostAnswerError, NotSentError, Transport
from sevenhop.core.effects import Reply
from sevenhop.runtime.codec import MOST_BYTES, VERSION, Answered, Record
from sevenhop.runtime.leader import DURATION_S
from sevenhop.runtime.scaled.topics import Topics, client_options, partition_of
from sevenhop.settings_scaled import KafkaSettings

log = logging.getLogger("sevenhop.hands")

ANSWER_WITHIN_S = 25.0
"""Longer than the API server's own 15 s."""

GONE_AFTER_S = DURATION_S + 2.0
"""An edge that said nothing for so long: it speaks every second, and after its Lease another may have its place."""

OTHERS_ORDERS_S = 5.0
"""After another edge has begun its term: what was ordered before it listened it never hears."""

LOOK_S = 0.5

ORDER_LIVES = timedelta(seconds=20)
"""An order that is found later is not carried out: nobody waits for it any more, and it may have been given anew."""

REPLY = "REPLY"
"""An order that asks for nothing: the answer to a decision that came in at the edge's door."""

PACKED_FROM = 64 * 1024
"""A list of all ReplicaSets of a namespace has megabytes, and becomes a tenth of that."""

MOST_UNPACKED = 64 * 1024 * 1024

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


class Heard(msgspec.Struct, frozen=True):
    """
    What a worker hears of the edge of a cluster.

    Attributes:
        silent_s: For how long it has said nothing; 0 while we ourselves do not listen.
        term: Of the edge that spoke last; 0 if none has yet.
    """

    silent_s: float
    term: int


class Waiting:
    """Requests of this worker that are not answered yet."""

    def __init__(self) -> None:
        self._futures: dict[str, asyncio.Future[Answered]] = {}

    def expect(self, request_id: str) -> asyncio.Future[Answered]:
        future: asyncio.Future[Answered] = asyncio.get_running_loop().create_future()
        self._futures[request_id] = future
        return future

    def forget(self, request_id: str) -> None:
        self._futures.pop(request_id, None)

    def answered(self, event: Answered) -> None:
        """Of a request that nobody waits for, nothing happens."""
        future = self._futures.pop(event.request_id, None)
        if future is not None and not future.done():
            future.set_result(event)


class RemoteTransport:
    """
    A `Transport` to the API server of a cluster, by way of its edge.

    Args:
        heard: The edge as it is heard now; an edge that has gone is not waited for.
    """

    def __init__(
        self,
        cluster: str,
        send: Send,
        waiting: Waiting,
        now: Callable[[], datetime],
        heard: Callable[[], Heard] = lambda: Heard(silent_s=0.0, term=0),
    ) -> None:
        self._cluster = cluster
        self._send = send
        self._waiting = waiting
        self._now = now
        self._heard = heard
        self._name = secrets.token_hex(6)
        self._numbers = count(1)

    async def send(
        self, method: str, path: str, params: Mapping[str, str], *, body: bytes | None = None, content_type: str = ""
    ) -> bytes:
        """See `Transport.send`."""
        before = self._heard()
        if before.silent_s > GONE_AFTER_S:
            raise NotSentError(f"{self._silence(before)}; nothing was sent")
        request_id = f"{self._name}-{next(self._numbers)}"
        order = Order(
            cluster=self._cluster,
            request_id=request_id,
            until=self._now() + ORDER_LIVES,
            method=method,
            path=path,
            params=dict(params),
            body=body,
            content_type=content_type,
        )
        answer = self._waiting.expect(request_id)
        try:
            await self._send(self._cluster, order)
            return _result(await self._answered(answer, before.term))
        finally:
            self._waiting.forget(request_id)

    async def _answered(self, answer: asyncio.Future[Answered], term: int) -> Answered:
        """
        Raises:
            LostAnswerError: None comes, or none can come any more.
        """
        loop = asyncio.get_running_loop()
        until = loop.time() + ANSWER_WITHIN_S
        is_others = False
        while (left_s := until - loop.time()) > 0:
            done, _ = await asyncio.wait([answer], timeout=min(left_s, LOOK_S))
            if done:
                return answer.result()
            heard = self._heard()
            if heard.silent_s > GONE_AFTER_S:
                raise LostAnswerError(f"{self._silence(heard)}; whether it had done this is looked at once one is back")
            if term and heard.term != term and not is_others:
                # It may have heard the order: then it answers like any edge does.
                is_others, until = True, min(until, loop.time() + OTHERS_ORDERS_S)
        if is_others:
            raise LostAnswerError(
                f"another edge of {self._cluster} took over before this was answered; what the one before it had done "
                "is looked at"
            )
        raise LostAnswerError(f"the edge of {self._cluster} did not answer within {ANSWER_WITHIN_S:g} s")

    def _silence(self, heard: Heard) -> str:
        return (
            f"the edge of {self._cluster} has said nothing for {heard.silent_s:.0f} s: it has ended, or Kafka does not "
            "bring what it says; look at its pods"
        )


def _result(answer: Answered) -> bytes:
    if answer.outcome == "good":
        return _unpacked(answer.body) if answer.is_packed else answer.body
    if answer.outcome == "answered":
        raise AnsweredError(answer.status, answer.reason, answer.message, answer.causes, answer.retry_after_s)
    if answer.outcome == "not_sent":
        raise NotSentError(answer.message)
    raise LostAnswerError(answer.message)


def _unpacked(body: bytes) -> bytes:
    unpacking = zlib.decompressobj()
    try:
        found = unpacking.decompress(body, MOST_UNPACKED)
    except zlib.error as error:
        raise LostAnswerError(f"the answer cannot be unpacked: {error}") from None
    if not unpacking.eof:
        raise LostAnswerError("the answer is cut off, or has more than 64 MiB")
    return found


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
