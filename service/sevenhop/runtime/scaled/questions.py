"""
Questions about one cluster, asked at any worker and answered by the one that has it.

    asker ─► list of questions of the partition (Redis) ─► owner's engine ─► mailbox (Redis) ─► asker

For people only: a question that nobody takes in time is forgotten, and its asker is told so.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import secrets
from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from typing import Annotated, Any

import msgspec
import redis.asyncio as aioredis
from redis.exceptions import RedisError

from sevenhop.runtime.answers import Said, refused
from sevenhop.runtime.scaled.mailbox import leave, wait_for
from sevenhop.runtime.scaled.topics import partition_of
from sevenhop.stores.redis_fence import to_its_end

log = logging.getLogger("sevenhop.fleet")

PATIENCE_S = 9.0
"""So long an asker waits: most takeovers are over by then, and the command line's own patience is 10 s."""

ASK_AGAIN_S = 1.5

CLOCKS_DIFFER = timedelta(seconds=30)
"""At most so much: the asker's clock says until when, and a question that is answered in vain costs little."""

VERSION = 1
_LISTEN_S = 1.0
_AGAIN_S = 1.0
_NONE_YET_S = 0.2


class Question(msgspec.Struct, frozen=True, kw_only=True):
    """
    Attributes:
        what: A name in the owner's table of answers.
        until: Afterwards nobody waits for the answer.
    """

    v: int = VERSION
    id: str
    cluster: str
    what: str
    query: dict[str, str] = {}
    until: Annotated[datetime, msgspec.Meta(tz=True)]


_questions = msgspec.json.Decoder(Question)
_answers = msgspec.json.Decoder(Said)

AnswerOne = Callable[[Question], Said | None]
"""The answer, from the cluster's engine; None if the cluster is not ours (any more)."""


class Asking:
    """An asker's end."""

    def __init__(self, client: aioredis.Redis, partitions: int, now: Callable[[], datetime]) -> None:
        self._client = client
        self._partitions = partitions
        self._now = now

    async def ask(self, cluster: str, what: str, query: dict[str, str], patience_s: float = PATIENCE_S) -> Said:
        """The owner's answer; 503 where none comes."""
        until = self._now() + timedelta(seconds=patience_s)
        question = Question(id=secrets.token_hex(8), cluster=cluster, what=what, query=query, until=until)
        key = _questions_key(partition_of(cluster, self._partitions))
        while (left_s := (until - self._now()) / timedelta(seconds=1)) > 0:
            if not await leave(self._client, key, msgspec.json.encode(question), int(patience_s) + 1):
                return refused(503, "Redis does not answer, so the other workers cannot be asked")
            # Whoever took it may have lost the cluster, or died, at that moment: the next one is asked the same.
            with contextlib.suppress(TimeoutError):
                answer = await wait_for(self._client, _answer_key(question.id), min(left_s, ASK_AGAIN_S))
                return _answers.decode(answer)
        return refused(503, f"no worker answers for {cluster} now; it may be taken over: ask again in some seconds")


class Answering:
    """
    An owner's end.

    Args:
        numbers: Partitions that are ours and ready, now.
    """

    def __init__(
        self,
        client: aioredis.Redis,
        numbers: Callable[[], Sequence[int]],
        answer: AnswerOne,
        now: Callable[[], datetime],
    ) -> None:
        self._client = client
        self._numbers = numbers
        self._answer = answer
        self._now = now

    async def run(self) -> None:
        """Until cancelled."""
        while True:
            keys = [_questions_key(number) for number in self._numbers()]
            if not keys:
                await asyncio.sleep(_NONE_YET_S)
                continue
            try:
                asked: Any = self._client.blpop(keys, _LISTEN_S)
                found = await to_its_end(asked)
            except (RedisError, OSError) as error:
                log.debug("questions of other workers wait: %s", error)  # said loudly by the fence
                await asyncio.sleep(_AGAIN_S)
                continue
            if found is not None:
                await self._take(found[1])

    async def _take(self, value: bytes) -> None:
        try:
            question = _questions.decode(value)
        except msgspec.MsgspecError as error:
            log.error("a question that cannot be read is left out: %s", error)
            return
        if self._now() > question.until + CLOCKS_DIFFER:
            return
        said = self._said(question)
        if said is not None:
            body = msgspec.json.encode(said, enc_hook=str)
            await leave(self._client, _answer_key(question.id), body)

    def _said(self, question: Question) -> Said | None:
        if question.v > VERSION:
            return refused(503, "the worker that has this cluster is older; upgrade all workers")
        try:
            return self._answer(question)
        except Exception as error:  # a fault in a listing must not end the worker
            log.exception("a question about %s (%s) failed", question.cluster, question.what)
            return refused(500, f"the answer failed: {type(error).__name__}; see the log of the worker that has it")


def _questions_key(number: int) -> str:
    return f"{{sevenhop:p{number}}}:questions"


def _answer_key(question_id: str) -> str:
    return f"sevenhop:answer:{question_id}"
