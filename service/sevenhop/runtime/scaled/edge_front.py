"""
The door of a cluster's edge: the only one that can ask the cluster's API server who somebody is.

A decision goes the same way as from any worker's door, and only about the edge's own cluster; its answer comes back
with the orders.  Every replica of an edge has the door, also one that waits for the Lease.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Callable
from datetime import datetime

import msgspec

from sevenhop.actions.transport import LostAnswerError
from sevenhop.core.effects import Reply
from sevenhop.runtime.codec import encode
from sevenhop.runtime.scaled.decisions import LIVES, NoAnswerError, Request, until_answered
from sevenhop.runtime.scaled.hands import Refused
from sevenhop.runtime.scaled.orders import REPLY, Letter, OrderError, Orders, check_order, orders_to, read_order
from sevenhop.runtime.scaled.signing import Sign, unsigned
from sevenhop.runtime.scaled.topics import Topics
from sevenhop.settings_scaled import KafkaSettings
from sevenhop.telemetry.table import OrderRefusal

log = logging.getLogger("sevenhop.decisions")

AGAIN_AFTER_S = 2.0

_replies = msgspec.json.Decoder(Reply)


class EdgeFront:
    """
    A `channels.door.Decider`; `run` beside it.

    Args:
        sign: Signs decisions.
        key: Of this edge, with which answers are checked; an empty one takes any.
        refused: Told of each answer that is not taken.
    """

    def __init__(
        self,
        cluster: str,
        kafka: KafkaSettings,
        topics: Topics,
        now: Callable[[], datetime],
        sign: Sign = unsigned,
        key: str = "",
        refused: Refused = lambda _reason: None,
    ) -> None:
        self._now = now
        self._sign = sign
        self._key = key
        self._refused = refused
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
                async for letter in orders_to(self._cluster, self._kafka, self._topics):
                    self.hear(letter)
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
        except NoAnswerError as error:
            # A worker answers nothing that it does not believe, and we believe no answer of one with another key.
            raise NoAnswerError(
                f"{error}; `sevenhop doctor` at a worker says whether our key belongs to theirs"
            ) from None
        finally:
            waiting = self._waiting[event.request_id]
            waiting.remove(answer)
            if not waiting:
                del self._waiting[event.request_id]

    def hear(self, letter: Letter) -> None:
        """One record of the topic of orders."""
        try:
            order = read_order(letter)
        except OrderError:
            return  # said where orders are carried out
        if order.method != REPLY or order.cluster != self._cluster:
            return
        try:
            check_order(self._key, letter)
            if self._key and self._now() - LIVES > order.until:  # as far as clocks may differ
                raise OrderError(OrderRefusal.LATE, "the answer was given long ago")
        except OrderError as error:
            self._refused(error.reason)
            log.error("the answer to a decision (%.40r) is refused: %s", order.request_id, error)
            return
        try:
            reply = _replies.decode(order.body or b"")
        except msgspec.MsgspecError as error:
            log.error("the answer to a decision cannot be read: %s", error)
            return
        for answer in self._waiting.get(reply.request_id, ()):
            if not answer.done():
                answer.set_result(reply)
