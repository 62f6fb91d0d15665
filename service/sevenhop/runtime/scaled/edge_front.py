"""
The door of a cluster's edge: the only one that can ask the cluster's API server who somebody is.

A decision goes the same way as from any worker's door, and only about the edge's own cluster; its answer comes back
with the orders.  Every replica of an edge has the door, also one that waits for the Lease.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging

import msgspec

from sevenhop.actions.transport import LostAnswerError
from sevenhop.core.effects import Reply
from sevenhop.runtime.codec import encode
from sevenhop.runtime.scaled.decisions import Request, until_answered
from sevenhop.runtime.scaled.hands import REPLY, Orders, orders_to, read_order
from sevenhop.runtime.scaled.signing import Sign, unsigned
from sevenhop.runtime.scaled.topics import Topics
from sevenhop.settings_scaled import KafkaSettings

log = logging.getLogger("sevenhop.decisions")

AGAIN_AFTER_S = 2.0

_replies = msgspec.json.Decoder(Reply)


class EdgeFront:
    """A `channels.door.Decider`; `run` beside it."""

    def __init__(self, cluster: str, kafka: KafkaSettings, topics: Topics, sign: Sign = unsigned) -> None:
        self._sign = sign
        self._cluster = cluster
        self._kafka = kafka
        self._topics = topics
        self._orders: Orders | None = None
        self._waiting: dict[str, list[asyncio.Future[Reply]]] = {}

    async def run(self) -> None:
        """Until cancelled; a connection that is lost is made again."""
        from aiokafka.errors import KafkaError

        while True:
            orders = Orders(self._kafka, self._topics)
            try:
                await orders.start()
                self._orders = orders
                async for value in orders_to(self._cluster, self._kafka, self._topics):
                    self.hear(value)
            except (KafkaError, OSError) as error:
                log.warning("decisions at this door wait for Kafka: %s", type(error).__name__)
            except Exception:  # whatever it is, nobody else would open the door again
                log.exception("decisions at this door wait")
            finally:
                self._orders = None
                with contextlib.suppress(Exception):  # it is given up in any case
                    await orders.close()
            await asyncio.sleep(AGAIN_AFTER_S)

    async def ask(self, event: Request, cluster: str = "") -> Reply:
        if cluster not in ("", self._cluster):
            text = f"this is the edge of {self._cluster}; ask at the edge of {cluster[:80]}, nothing was done"
            return Reply(request_id=event.request_id, accepted=False, text=text)
        answer: asyncio.Future[Reply] = asyncio.get_running_loop().create_future()
        self._waiting.setdefault(event.request_id, []).append(answer)

        async def send() -> int:
            if self._orders is None:
                raise LostAnswerError("Kafka is away")
            record = self._sign(self._cluster, encode(self._cluster, event))
            return await self._orders.put(self._topics.signals, self._cluster, record)

        async def answered(seconds: float, _offset: int) -> Reply:
            async with asyncio.timeout(seconds):
                return await asyncio.shield(answer)

        try:
            return await until_answered(send, answered)
        finally:
            waiting = self._waiting[event.request_id]
            waiting.remove(answer)
            if not waiting:
                del self._waiting[event.request_id]

    def hear(self, value: bytes | None) -> None:
        """One record of the topic of orders."""
        order = read_order(value)
        if order is None or order.method != REPLY or order.cluster != self._cluster:
            return
        try:
            reply = _replies.decode(order.body or b"")
        except msgspec.MsgspecError as error:
            log.error("the answer to a decision cannot be read: %s", error)
            return
        for answer in self._waiting.get(reply.request_id, ()):
            if not answer.done():
                answer.set_result(reply)
