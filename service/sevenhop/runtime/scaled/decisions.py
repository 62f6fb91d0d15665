"""
What people decide, on its way from any door to the worker that has the cluster.

    door (verified) ─► signals, in the cluster's partition ─► owner's stream ─► engine (every guard) ─► stored
                                                                                                        │
    door ◄──────────────────── mailbox in Redis; the edge's door: topic of orders ◄───────── reply ◄────┘

Kafka keeps the decision from the moment its door is told so: a worker that dies loses none, and takes none twice (its
offset is stored with the step).  A door that hears nothing sends the same request again: the engine counts it once, and
gives the same answer.  The doors verify persons and sign (`signing`); the owner refuses what is not signed, what is of
no cluster that it knows, and what came too late.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from datetime import datetime, timedelta
from hashlib import sha256
from typing import Protocol, TypeVar

import msgspec
import redis.asyncio as aioredis

from sevenhop.actions.transport import LostAnswerError
from sevenhop.channels.door import RefusedError
from sevenhop.core.effects import Reply
from sevenhop.core.engine import Step
from sevenhop.core.events import BreakerReset, Decided, Event, Silenced, SwitchSet, Verb
from sevenhop.runtime.codec import Record, encode
from sevenhop.runtime.scaled.mailbox import clear, leave, wait_for
from sevenhop.runtime.scaled.signing import Sign, unsigned
from sevenhop.runtime.scaled.topics import Topics

log = logging.getLogger("sevenhop.decisions")

PATIENCE_S = 25.0
"""For an answer, in all: a worker that dies is replaced in less."""

SEND_AGAIN_S = 9.0
"""The owner may have died between storing and answering; longer than another needs to take over."""

LOST_AGAIN_S = 1.0
"""After Kafka refused."""

LIVES = timedelta(minutes=2)
"""What would let something happen is not followed later: whoever decided it was told that nobody answers."""

Request = Decided | SwitchSet | BreakerReset
Answer = TypeVar("Answer")

_replies = msgspec.json.Decoder(Reply)


class Put(Protocol):
    """Puts a record into a topic, in a cluster's partition; the offset that it got."""

    async def __call__(self, topic: str, cluster: str, record: Record) -> int: ...


class NoAnswerError(TimeoutError):
    """Nobody has answered yet; it may still be followed."""


def why_refused(event: Event, now: datetime, *, is_known: bool) -> str:
    """
    Why the owner of a partition does not hand this to an engine; empty if it does.

    Args:
        is_known: Whether the cluster is known there: a decision makes none.
    """
    if not isinstance(event, Decided | SwitchSet | BreakerReset | Silenced):
        return ""
    if not is_known:
        return "unknown cluster: nothing is known of it here, and nothing was done"
    if not _lets_happen(event):
        return ""
    late_s = (now - event.at) / timedelta(seconds=1)
    if now - event.at > LIVES:
        return f"late: the decision came after {late_s:.0f} s (or clocks differ), and nothing was done; decide again"
    if event.at - now > LIVES:  # it would be followed for so much longer
        return f"late, or early: the door's clock is {-late_s:.0f} s ahead of ours; nothing was done, mend the clocks"
    return ""


def refusal_of(event: Event, text: str) -> Step:
    """A step that only answers."""
    if not isinstance(event, Decided | SwitchSet | BreakerReset | Silenced):
        return Step()
    return Step(replies=(Reply(request_id=request_of(event), accepted=False, text=text),))


def stored_of(event: Silenced) -> Step:
    """The engine answers no silence: that it is stored is the answer."""
    return Step(replies=(Reply(request_id=request_of(event), accepted=True, text=""),))


def request_of(event: Request | Silenced) -> str:
    """What the answer is found by; a silence and its end are two requests."""
    return f"silence-{event.silence_id}-{event.at.timestamp()}" if isinstance(event, Silenced) else event.request_id


def remembered(event: SwitchSet) -> SwitchSet:
    """A stop that outlived the state in which it was stored, as a new state takes it in."""
    why = "said before all state was lost"
    return msgspec.structs.replace(event, comment=f"{event.comment} ({why})" if event.comment else why)


def is_later(word: SwitchSet, known: SwitchSet | None) -> bool:
    """
    Whether a word on a switch that stands behind another one counts: a record that somebody copied there, or a worker
    stored late, is older by what it says itself; as far as the clocks of two doors may differ, the place counts.
    """
    return known is None or known.at - word.at <= LIVES


def _lets_happen(event: Event) -> bool:
    """Holding back, giving back and ending a silence are safe at any time."""
    if isinstance(event, Silenced):
        return event.expires_at > event.at
    if isinstance(event, Decided):
        return event.verb in (Verb.APPROVE, Verb.EXTEND)
    return isinstance(event, BreakerReset) or (isinstance(event, SwitchSet) and not event.is_on)


class Decisions:
    """A door's way to the owners of all clusters."""

    def __init__(self, put: Put, topics: Topics, client: aioredis.Redis, sign: Sign = unsigned) -> None:
        self._put = put
        self._sign = sign
        self._topics = topics
        self._client = client

    async def ask(self, cluster: str, event: Request) -> Reply:
        """
        Returns once it is stored what came of it.

        Raises:
            NoAnswerError: Not within `PATIENCE_S`.
        """
        return await self._ask(cluster, event)

    async def silence(self, cluster: str, event: Silenced) -> None:
        """
        Returns once it is stored.

        Raises:
            RefusedError: The owner did not take it.
            NoAnswerError: Not within `PATIENCE_S`.
        """
        reply = await self._ask(cluster, event)
        if not reply.accepted:
            raise RefusedError(reply.text)

    async def _ask(self, cluster: str, event: Request | Silenced) -> Reply:
        key = reply_key(cluster, request_of(event))
        # What was refused a minute ago under the same name may be followed now: that is not the answer.
        await clear(self._client, key)

        async def answer(seconds: float, _offset: int) -> Reply:
            return _replies.decode(await wait_for(self._client, key, seconds))

        return await until_answered(lambda: self._send(cluster, event), answer)

    async def _send(self, cluster: str, event: Request | Silenced) -> int:
        return await self._put(self._topics.signals, cluster, self._sign(cluster, encode(cluster, event)))


async def until_answered(
    send: Callable[[], Awaitable[int]], answer: Callable[[float, int], Awaitable[Answer]]
) -> Answer:
    """
    Send, and wait for the answer; send the same again where none comes.

    Args:
        answer: (seconds, offset of what was sent) to the answer; raises `TimeoutError`.

    Raises:
        NoAnswerError: Not within `PATIENCE_S`.
    """
    loop = asyncio.get_running_loop()
    until = loop.time() + PATIENCE_S
    while (left := until - loop.time()) > 0:
        try:
            async with asyncio.timeout(left):
                offset = await send()
            return await answer(min(SEND_AGAIN_S, left), offset)
        except TimeoutError:
            continue
        except LostAnswerError as error:
            log.warning("%s; it is sent again", error)
            await asyncio.sleep(min(LOST_AGAIN_S, left))
    raise NoAnswerError("no worker has answered yet; look at what came of it before you ask again")


def reply_key(cluster: str, request_id: str) -> str:
    """Where the answer to one request is left; the same request id in another cluster has another."""
    place = f"{cluster}\0{request_id}"
    return f"sevenhop:reply:{sha256(place.encode()).hexdigest()[:32]}"


class Replies:
    """
    What engines answered, on its way back to the doors; to be told of each step once it is stored.

    Args:
        to_edge: Tells the door of the cluster's own edge.
    """

    def __init__(self, client: aioredis.Redis, to_edge: Callable[[str, Reply], Awaitable[None]]) -> None:
        self._client = client
        self._to_edge = to_edge
        self._under_way: set[asyncio.Task[None]] = set()

    def observe(self, cluster: str, step: Step) -> None:
        """See `Partition.observers`."""
        for reply in step.replies:
            task = asyncio.create_task(self._tell(cluster, reply))
            self._under_way.add(task)
            task.add_done_callback(self._under_way.discard)

    async def _tell(self, cluster: str, reply: Reply) -> None:
        await leave(self._client, reply_key(cluster, reply.request_id), msgspec.json.encode(reply))
        try:
            await self._to_edge(cluster, reply)
        except LostAnswerError as error:
            log.warning("the edge of %s may not have heard the answer: %s", cluster, error)
