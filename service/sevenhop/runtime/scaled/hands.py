"""
Steps in a cluster, decided on a worker and carried out at the cluster's edge: the edge's half.

The executor and its permit stay where the guards are, on the worker (`remote`); what travels is each single request to
the API server.  The edge sends it with its own credentials, so no worker holds any, and the edge's role bounds what can
happen.

    worker: executor ─► RemoteTransport ─► orders ─► edge: Hands ─► API server
                              ▲                          │
                              └──────── signals ◄────────┘

With a key the edge carries out what a worker signed for its cluster, once, and while it is fresh; and its answers are
signed, and name the order that they answer.
"""

from __future__ import annotations

import asyncio
import logging
import zlib
from collections.abc import Awaitable, Callable
from datetime import datetime, timedelta
from typing import Any

from sevenhop.actions.transport import AnsweredError, LostAnswerError, NotSentError, Transport
from sevenhop.runtime.codec import MOST_BYTES, Answered
from sevenhop.runtime.scaled.orders import REPLY, Letter, Order, OrderError, check_order, orders_to, read_order
from sevenhop.runtime.scaled.topics import Topics
from sevenhop.settings_scaled import KafkaSettings
from sevenhop.telemetry.table import OrderRefusal

log = logging.getLogger("sevenhop.hands")

LOOK_BACK = timedelta(minutes=2)
"""An edge that begins knows by the topic what was ordered before: longer than an order lives, and clocks may differ."""

FORGET_EVERY = timedelta(seconds=30)

_LONGEST_KEPT = timedelta(days=1)
"""So long the topic keeps an order, whatever it says of its own end."""

PACKED_FROM = 64 * 1024
"""A list of all ReplicaSets of a namespace has megabytes, and becomes a tenth of that."""

_MOST_BODY = (MOST_BYTES - 10_000) * 3 // 4
"""In a record it is text, and a third longer."""

_MOST_ID = 100
"""Characters of an id that is answered; ours have some twenty."""

METHODS = frozenset(("GET", "POST", "PUT", "PATCH"))

Emit = Callable[[list[Any]], Awaitable[None]]
Refused = Callable[[OrderRefusal], None]


class Hands:
    """
    A source at the edge: takes orders for its cluster, from now on, and tells what came of them.

    Args:
        key: Of this edge; with an empty one it is not looked who has given an order.
        refused: Told of each order for this cluster that is not carried out.
    """

    def __init__(
        self,
        cluster: str,
        settings: KafkaSettings,
        topics: Topics,
        transport: Transport,
        now: Callable[[], datetime],
        key: str = "",
        refused: Refused = lambda _reason: None,
    ) -> None:
        self._cluster = cluster
        self._settings = settings
        self._topics = topics
        self._transport = transport
        self._now = now
        self._key = key
        self._refused = refused
        self._seen: dict[str, datetime] = {}  # id of an order to when it may be forgotten
        self._forgot_at = now()
        self._is_said = False

    async def run(self, emit: Emit) -> None:
        async with asyncio.TaskGroup() as tasks:
            since = self._now() - LOOK_BACK
            async for letter in orders_to(self._cluster, self._settings, self._topics, since):
                found = self.take(letter)
                if isinstance(found, Answered):
                    await emit([found])
                elif found is not None:
                    tasks.create_task(self._carry_out(found, letter.seal, emit))

    def take(self, letter: Letter) -> Order | Answered | None:
        """
        The order to carry out, or the answer that it is not; None of one that nobody waits for.

        Whether somebody copied an order, or Kafka stored it twice: it is carried out once, and answered once.
        """
        order: Order | None = None
        try:
            order = read_order(letter)
            if order.cluster != self._cluster or order.method == REPLY:
                return None
            check_order(self._key, letter)
            if letter.is_old:
                self._remember(order)
                return None
            self._check(order)
        except OrderError as error:
            return None if letter.is_old else self._refuse(error, order, letter)
        if letter.signature and not self._key and not self._is_said:
            self._is_said = True
            log.warning("orders are signed, and this edge has no runtime.decision_key to check them with")
        return order

    def _check(self, order: Order) -> None:
        """
        Raises:
            OrderError: It came before, came too late, or is no request that is sent.
        """
        if order.request_id in self._seen:
            raise OrderError(OrderRefusal.REPLAYED, "it came before, and was carried out or answered then")
        self._remember(order)
        now = self._now()
        if now > order.until:
            late_s = (now - order.until).total_seconds()
            text = f"the order came {late_s:.0f} s too late (or the clocks of worker and edge differ)"
            raise OrderError(OrderRefusal.LATE, text)
        if order.method not in METHODS or not order.path.startswith(("/api/", "/apis/")) or ".." in order.path:
            raise OrderError(OrderRefusal.NOT_A_REQUEST, f"{order.method[:10]}: not a request that is sent")

    def _remember(self, order: Order) -> None:
        now = self._now()
        if now - self._forgot_at >= FORGET_EVERY:
            self._forgot_at = now
            self._seen = {each: until for each, until in self._seen.items() if until >= now}
        # Longer than it lives: one that is copied after its end would else be answered as late, while the worker still
        # waits for what came of the first.
        self._seen[order.request_id] = min(order.until, now + _LONGEST_KEPT) + LOOK_BACK

    def _refuse(self, error: OrderError, order: Order | None, letter: Letter) -> Answered | None:
        self._refused(error.reason)
        if order is None:
            log.error("an order is refused: %s", error)
            return None
        log.error("an order (%.10r, id %.40r) is refused: %s", order.method, order.request_id, error)
        if error.reason is OrderRefusal.REPLAYED or len(order.request_id) > _MOST_ID:
            return None  # the first one is answered, and by that alone it is known what was done
        text = f"the edge of {self._cluster} refused the order: {error}"
        return Answered(
            at=self._now(), request_id=order.request_id, order=letter.seal, outcome="not_sent", message=text
        )

    async def _carry_out(self, order: Order, seal: str, emit: Emit) -> None:
        await emit([await self.answer(order, seal)])

    async def answer(self, order: Order, seal: str) -> Answered:
        """Carry out one order."""
        common: dict[str, Any] = {"at": self._now(), "request_id": order.request_id, "order": seal}
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
