"""
One writer per place in Redis, and what it wrote, all or nothing.

A place is one partition of the scaled runtime, or one installation of two replicas.  Who claims it gets a new epoch;
from then on writes of the one before are refused, however late they come.  A write carries its number too, so that a
server that forgot some of what it had promised (a restart without memory, a failover to a replica that lagged) is
noticed at the next write: then everything is written again from the mirror, and nothing is lost while we live.

Kept under ``{sevenhop:PLACE}:…``, one hash slot for each place:
    fence    memory (a nonce of this server's memory), count, epoch (``memory:count``), written (number of writes)
    offsets  topic → next offset
    data     field → value, see `redis.py`
    audit:…  one list of lines for each cluster
"""

from __future__ import annotations

import asyncio
import logging
import secrets
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, TypeVar

import msgspec
import redis.asyncio as aioredis
from redis.exceptions import RedisError

from sevenhop.stores.store import StoreError

log = logging.getLogger("sevenhop.redis")

Answer = TypeVar("Answer")

FIRST_RETRY_S = 0.1
LONGEST_RETRY_S = 2.0
ANSWER_WITHIN_S = 3.0
"""A server that answers nothing for so long is taken as gone; a second is already unusual."""

_SCAN = 2000

_CLAIM = """
local memory = redis.call('HGET', KEYS[1], 'memory')
if not memory then memory = ARGV[1]; redis.call('HSET', KEYS[1], 'memory', memory) end
local count = tonumber(redis.call('HGET', KEYS[1], 'count') or '0')
if memory == ARGV[2] and count < tonumber(ARGV[3]) then count = tonumber(ARGV[3]) end
count = count + 1
redis.call('HSET', KEYS[1], 'count', count, 'epoch', memory .. ':' .. count)
return {memory, tostring(count), redis.call('HGET', KEYS[1], 'written') or '0', redis.call('HGETALL', KEYS[2])}
"""

_WRITE = """
local epoch = redis.call('HGET', KEYS[1], 'epoch')
if not epoch then return {'LOST', ''} end
if epoch ~= ARGV[1] then return {'FENCED', epoch} end
local written, expected = tonumber(redis.call('HGET', KEYS[1], 'written') or '0'), tonumber(ARGV[2])
if written == expected + 1 then return {'OK', 'again'} end
if ARGV[3] == 'all' then redis.call('DEL', KEYS[2], KEYS[3])
elseif written ~= expected then return {'BEHIND', tostring(written)} end
local at = 4
local function take() at = at + 1; return ARGV[at - 1] end
for _ = 1, tonumber(take()) do local topic = take(); redis.call('HSET', KEYS[2], topic, take()) end
for _ = 1, tonumber(take()) do local field = take(); redis.call('HSET', KEYS[3], field, take()) end
for _ = 1, tonumber(take()) do redis.call('HDEL', KEYS[3], take()) end
for _ = 1, tonumber(take()) do local list = KEYS[3 + tonumber(take())]; redis.call('RPUSH', list, take()) end
redis.call('HSET', KEYS[1], 'written', expected + 1)
return {'OK', ''}
"""


class FencedError(StoreError):
    """Another process has claimed the place since: nothing of ours is stored there any more."""


class Changes(msgspec.Struct):
    """
    What one write changes.

    Attributes:
        fields: Field of `data` to its value; None takes it out.
        audit: (cluster, line), appended in order.
        offsets: Topic to the next offset.
    """

    fields: dict[bytes, bytes | None] = {}
    audit: list[tuple[str, bytes]] = []
    offsets: dict[str, int] = {}


class Fence:
    """
    One place, claimed by one process at a time.

    Attributes:
        fields: Mirror of `data`; current while the place is ours.
        offsets: Mirror of the offsets.
        stalled: Why nothing is stored now; empty while it is.
        forgotten: How often the server was found to have forgotten what it had promised.
    """

    def __init__(self, client: aioredis.Redis, place: str) -> None:
        self.place = place
        self._client = client
        self._name = _name_of(place)
        self._keys = [f"{self._name}:fence", f"{self._name}:offsets", f"{self._name}:data"]
        self._memory = ""
        self._count = 0
        self._written = 0
        self._lock = asyncio.Lock()
        self._claim = client.register_script(_CLAIM)
        self._write = client.register_script(_WRITE)
        self.fields: dict[bytes, bytes] = {}
        self.offsets: dict[str, int] = {}
        self.stalled = ""
        self.forgotten = 0
        self.is_lost = False

    @property
    def epoch(self) -> str:
        """What our writes carry; empty before the first claim."""
        return f"{self._memory}:{self._count}" if self._memory else ""

    async def claim(self) -> bool:
        """
        Take the place; a process that had it is refused from here on.  Waits for as long as the server is away.

        Returns:
            Whether nobody else wrote since our own last write: then the mirror stands, else it was read anew.
        """
        return await to_its_end(self._claim_in_turn())

    async def _claim_in_turn(self) -> bool:
        async with self._lock:
            answer = await self._until_answered(self._ask_claim)
            memory, count, written, offsets = _text(answer[0]), int(answer[1]), int(answer[2]), answer[3]
            stands = (memory, count, written) == (self._memory, self._count + 1, self._written)
            self._memory, self._count, self.is_lost = memory, count, False
            if not stands:
                self._written = written
                self.offsets = {_text(offsets[n]): int(offsets[n + 1]) for n in range(0, len(offsets), 2)}
                self.fields = await self._until_answered(self._read_fields)
            return stands

    async def write(self, changes: Changes) -> None:
        """
        Store all of it or nothing; waits for as long as the server is away, so what is written is written once.

        Writes are stored in the order of the calls.  The mirror changes at once.

        Raises:
            FencedError: The place is another's.
        """
        for field, value in changes.fields.items():
            if value is None:
                self.fields.pop(field, None)
            else:
                self.fields[field] = value
        self.offsets.update(changes.offsets)
        await to_its_end(self._write_in_turn(changes))

    async def _write_in_turn(self, changes: Changes) -> None:
        async with self._lock:
            if self.is_lost:
                raise FencedError(f"{self.place}: another process has it")
            await self._store(changes)

    async def audit_lines(self, cluster: str) -> list[bytes]:
        """The audit trail of one cluster."""

        async def read() -> list[bytes]:
            lines: Any = await self._client.lrange(self._audit(cluster), 0, -1)
            return [bytes(line) for line in lines]

        return await self._until_answered(read)

    async def _store(self, changes: Changes) -> None:
        everything = False
        while True:

            async def ask(whole: bool = everything) -> tuple[str, str]:
                keys, words = self._request(changes, whole=whole)
                answer, detail = await self._write(keys=keys, args=words)
                return _text(answer), _text(detail)

            answer, detail = await self._until_answered(ask)
            if answer == "OK":
                self._written += 1
                return
            if answer == "FENCED" and not self._went_back(detail):
                self.is_lost = True
                raise FencedError(f"{self.place}: another process has claimed it (epoch {detail}, ours {self.epoch})")
            self.forgotten += 1
            log.error(
                "%s: Redis has forgotten what it had promised (%s %s); all is written again", self.place, answer, detail
            )
            if answer != "BEHIND":
                claimed = await self._until_answered(self._ask_claim)
                self._memory, self._count = _text(claimed[0]), int(claimed[1])
            everything = True

    def _went_back(self, epoch: str) -> bool:
        """Whether it is an epoch before ours: nobody claimed, the server's memory is older than our claim."""
        memory, _, count = epoch.rpartition(":")
        return memory == self._memory and int(count) < self._count

    def _request(self, changes: Changes, *, whole: bool) -> tuple[list[str], list[bytes | str | int]]:
        fields: Mapping[bytes, bytes | None] = self.fields if whole else changes.fields
        offsets = self.offsets if whole else changes.offsets
        kept = [(field, value) for field, value in fields.items() if value is not None]
        dropped = [field for field, value in fields.items() if value is None]
        lists: dict[str, int] = {}
        lines: list[bytes | str | int] = []
        for cluster, line in changes.audit:
            lines += [lists.setdefault(self._audit(cluster), len(lists) + 1), line]
        words: list[bytes | str | int] = [self.epoch, self._written, "all" if whole else "", len(offsets)]
        for topic, offset in offsets.items():
            words += [topic, offset]
        words.append(len(kept))
        for field, value in kept:
            words += [field, value]
        words += [len(dropped), *dropped, len(changes.audit), *lines]
        return [*self._keys, *lists], words

    async def _ask_claim(self) -> list[Any]:
        answer: list[Any] = await self._claim(
            keys=self._keys[:2], args=[secrets.token_hex(8), self._memory, self._count]
        )
        return answer

    async def _read_fields(self) -> dict[bytes, bytes]:
        pairs: Any = self._client.hscan_iter(self._keys[2], count=_SCAN)
        return {field: value async for field, value in pairs}

    async def _until_answered(self, ask: Callable[[], Awaitable[Answer]]) -> Answer:
        """The same question again is the same question: claims count up, and a write that was stored says so."""
        delay_s = FIRST_RETRY_S
        while True:
            try:
                async with asyncio.timeout(ANSWER_WITHIN_S * 4):
                    answer = await ask()
            except (RedisError, OSError, TimeoutError) as error:
                task = asyncio.current_task()
                if task is not None and task.cancelling():
                    raise asyncio.CancelledError from None  # redis-py has made another error of it
                if not self.stalled:
                    log.error("%s: Redis does not answer, input waits: %s", self.place, _short(error))
                self.stalled = f"Redis: {_short(error)}"
                await asyncio.sleep(delay_s)
                delay_s = min(delay_s * 2, LONGEST_RETRY_S)
            else:
                if self.stalled:
                    log.warning("%s: Redis answers again; input goes on", self.place)
                self.stalled = ""
                return answer

    def _audit(self, cluster: str) -> str:
        return f"{self._name}:audit:{cluster}"


def _name_of(place: str) -> str:
    return f"{{sevenhop:{place}}}"


async def places_with(client: aioredis.Redis, fields: Mapping[str, list[bytes]]) -> list[bytes]:
    """Of each place's fields of `data`, those that are stored; for those who only look."""
    async with client.pipeline(transaction=False) as pipe:
        asked = [(place, field) for place, some in fields.items() for field in some]
        for place, field in asked:
            pipe.hexists(f"{_name_of(place)}:data", field)
        found = await pipe.execute()
    return [field for (_, field), is_there in zip(asked, found, strict=True) if is_there]


def connect(url: str, *, password: str = "", ca: str = "") -> aioredis.Redis:
    """A client that gives up quickly: waiting and trying again is done by `Fence`, which says so."""
    options: dict[str, Any] = {"password": password} if password else {}
    if ca:
        options["ssl_ca_certs"] = ca
    client: aioredis.Redis = aioredis.Redis.from_url(
        url,
        socket_timeout=ANSWER_WITHIN_S,
        socket_connect_timeout=ANSWER_WITHIN_S,
        retry=None,
        retry_on_error=[],
        health_check_interval=0,
        **options,
    )
    return client


async def to_its_end(work: Awaitable[Answer]) -> Answer:
    """
    Work that goes on if its caller is cancelled: then nobody knows whether it was stored, and the next write must.

    It also keeps the cancellation from redis-py, which loses it in a third of all cases (8.1, tried).
    """
    task = asyncio.ensure_future(work)
    task.add_done_callback(lambda done: done.cancelled() or done.exception())  # seen, should nobody wait any more
    return await asyncio.shield(task)


def _text(value: bytes | str | int) -> str:
    return value.decode() if isinstance(value, bytes) else str(value)


def _short(error: BaseException) -> str:
    return (str(error) or type(error).__name__).splitlines()[0][:200]
