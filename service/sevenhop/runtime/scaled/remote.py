"""
The worker's half of steps in a cluster (see `hands`): a request to the API server, by way of the cluster's edge.

What was ordered may be carried out for as long as an order lives, also when nobody waits for it any more: an edge that
had only stalled comes back.  Until then nothing else is asked there: a look could say "not done" just before it is.
"""

from __future__ import annotations

import asyncio
import logging
import secrets
import zlib
from collections.abc import Callable, Mapping
from datetime import datetime, timedelta
from itertools import count

import msgspec

from sevenhop.actions.transport import AnsweredError, LostAnswerError, NotSentError
from sevenhop.runtime.codec import Answered
from sevenhop.runtime.leader import DURATION_S
from sevenhop.runtime.scaled.orders import ORDER_LIVES, Order, Send, Write, write_order

log = logging.getLogger("sevenhop.hands")

ANSWER_WITHIN_S = 25.0
"""Longer than the API server's own 15 s."""

GONE_AFTER_S = DURATION_S + 2.0
"""An edge that said nothing for so long: it speaks every second, and after its Lease another may have its place."""

OTHERS_ORDERS_S = 5.0
"""After another edge has begun its term: what was ordered before it listened it never hears."""

LOOK_S = 0.5

MOST_UNPACKED = 64 * 1024 * 1024

_MOST_SAID = 300
"""Characters of what an edge says of an order that is not ours."""


class Heard(msgspec.Struct, frozen=True):
    """
    What a worker hears of the edge of a cluster.

    Attributes:
        silent_s: For how long it has said nothing; 0 while we ourselves do not listen.
        term: Of the edge that spoke last; 0 if none has yet.
    """

    silent_s: float
    term: int


class Asked:
    """
    One request that is not answered yet.

    Attributes:
        seal: Of its order.
        doubt: What came instead of an answer, for whoever reads why none did; empty if nothing has.
    """

    def __init__(self, seal: str) -> None:
        self.seal = seal
        self.doubt = ""
        self.answer: asyncio.Future[Answered] = asyncio.get_running_loop().create_future()


class Waiting:
    """Requests of this worker that are not answered yet."""

    def __init__(self) -> None:
        self._asked: dict[str, Asked] = {}

    def expect(self, request_id: str, seal: str = "") -> Asked:
        """
        Args:
            seal: Of the order; an answer that names another one is none to it.
        """
        asked = self._asked[request_id] = Asked(seal)
        return asked

    def forget(self, request_id: str) -> None:
        self._asked.pop(request_id, None)

    def answered(self, event: Answered) -> None:
        """Of a request that nobody waits for, nothing happens."""
        asked = self._asked.get(event.request_id)
        if asked is None or asked.answer.done():
            return
        if event.order and event.order != asked.seal:
            # Ours may have been carried out all the same, whatever became of the other.
            said = event.message[:_MOST_SAID] or "it was answered"
            asked.doubt = f"somebody gave another order under the same id, and {said}"
            log.error("an order %s that is not ours was answered: %s", event.request_id, said)
            return
        del self._asked[event.request_id]
        asked.answer.set_result(event)

    def doubted(self, request_id: str) -> None:
        """An answer came of which nobody knows who gave it: it counts for nothing, and is told if none comes."""
        asked = self._asked.get(request_id)
        if asked is not None:
            asked.doubt = (
                "an answer without the edge's signature was refused: runtime.decision_key of the edge is not what "
                "`sevenhop edge-key` makes of that of the workers, or somebody else wrote it"
            )


class RemoteTransport:
    """
    A `Transport` to the API server of a cluster, by way of its edge.

    Args:
        heard: The edge as it is heard now; an edge that has gone is not waited for.
        write: Signs, where there is a key.
        doubt: Why the edge would not take an order of ours, or we not its answer; empty where it is not known to be so.
    """

    def __init__(
        self,
        cluster: str,
        send: Send,
        waiting: Waiting,
        now: Callable[[], datetime],
        heard: Callable[[], Heard] = lambda: Heard(silent_s=0.0, term=0),
        write: Write = write_order,
        doubt: Callable[[], str] = lambda: "",
    ) -> None:
        self._cluster = cluster
        self._send = send
        self._waiting = waiting
        self._now = now
        self._heard = heard
        self._write = write
        self._doubt = doubt
        self._name = secrets.token_hex(6)
        self._numbers = count(1)
        self._in_doubt_until = 0.0  # of the loop's clock

    async def send(
        self, method: str, path: str, params: Mapping[str, str], *, body: bytes | None = None, content_type: str = ""
    ) -> bytes:
        """See `Transport.send`."""
        before = self._heard()
        if before.silent_s > GONE_AFTER_S:
            raise NotSentError(f"{self._silence(before)}; nothing was sent")
        if why := self._doubt():
            raise NotSentError(f"{why}; nothing was sent")
        now_s = asyncio.get_running_loop().time()
        if (left_s := self._in_doubt_until - now_s) > 0:
            raise NotSentError(
                f"what was ordered before may still be carried out for {left_s:.0f} s; nothing was sent, and what it "
                "did is looked at then"
            )
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
        letter = self._write(order)
        asked = self._waiting.expect(request_id, letter.seal)
        try:
            await self._send(self._cluster, letter)
            answered = await self._answered(asked, before.term)
        except LostAnswerError:
            if method != "GET" and "dryRun" not in params:
                self._in_doubt_until = now_s + ORDER_LIVES / timedelta(seconds=1)
            raise
        finally:
            self._waiting.forget(request_id)
        return _result(answered)

    async def _answered(self, asked: Asked, term: int) -> Answered:
        """
        Raises:
            LostAnswerError: None comes, or none can come any more.
        """
        loop = asyncio.get_running_loop()
        until = loop.time() + ANSWER_WITHIN_S
        is_others = False
        while (left_s := until - loop.time()) > 0:
            done, _ = await asyncio.wait([asked.answer], timeout=min(left_s, LOOK_S))
            if done:
                return asked.answer.result()
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
        doubt = f"; {asked.doubt}" if asked.doubt else ""
        raise LostAnswerError(f"the edge of {self._cluster} did not answer within {ANSWER_WITHIN_S:g} s{doubt}")

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
