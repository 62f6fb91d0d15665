"""
The worker: Faust shares the partitions among the workers; each partition is claimed, rebuilt and run.

    revoked ─► assigned ─► claim each (Redis) ─┬─ nobody wrote meanwhile: goes on where it was
                                               └─ else: rebuilt in the background, its input paused

Faust's commits are for lag displays only.  Where the stream stands is in Redis, in the same write as the state.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable
from datetime import datetime
from typing import Any

import msgspec
import redis.asyncio as aioredis

from sevenhop.core.alerts.rule import Rule
from sevenhop.core.events import Event, Outcome, Recalled, RulebookLoaded, StepDone, SwitchSet, Tick
from sevenhop.runtime.codec import Answered, Read, RecordError, read
from sevenhop.runtime.scaled.cell import Parts
from sevenhop.runtime.scaled.dead_letters import DeadLetters
from sevenhop.runtime.scaled.edge_keys import EdgeKeys
from sevenhop.runtime.scaled.partition import Incoming, Partition, PoisonError
from sevenhop.runtime.scaled.reader import ReadError, ends_of, read_range
from sevenhop.runtime.scaled.remote import Waiting
from sevenhop.runtime.scaled.signing import UnsignedError, check_signature
from sevenhop.runtime.scaled.stream import Stream
from sevenhop.runtime.scaled.topics import Topics, partition_of
from sevenhop.settings_scaled import KafkaSettings, RuntimeSettings
from sevenhop.stores.redis_fence import Fence, FencedError

log = logging.getLogger("sevenhop.worker")

READ_AGAIN_S = 1.0

_OWN = (StepDone, Outcome, Recalled, RulebookLoaded)
"""Events that a worker makes itself, of what it did; from a topic they are forged."""


class _Beside(msgspec.Struct, frozen=True):
    """Kafka beside the stream, for one partition."""

    settings: KafkaSettings
    number: int
    dead: DeadLetters
    clusters: frozenset[str]
    decision_key: str

    async def ends(self, topic: str) -> tuple[int, int]:
        return await ends_of(self.settings, topic, self.number)

    def records(self, topic: str, start: int, end: int) -> Any:
        return read_range(self.settings, topic, self.number, start, end)

    def read(self, record: Any) -> Read:
        headers = _headers(record.headers)
        found = read(record.value, headers)
        if self.clusters and found.cluster not in self.clusters:
            raise RecordError(f"unknown cluster: {found.cluster[:80]!r} is not in runtime.clusters")
        home = partition_of(found.cluster, self.settings.partitions)
        if home != self.number:
            text = f"{found.cluster[:80]!r} belongs into {home}; kafka.partitions differs there"
            raise RecordError(f"wrong partition: {text}")
        if isinstance(found.event, _OWN):
            # Nobody else may say what came of a step, or what a channel shows.
            raise RecordError(f"an event of the unknown kind {type(found.event).__name__}: ours, of no edge")
        check_signature(self.decision_key, found.cluster, found.event, record.value, headers)
        return found

    async def bury(self, topic: str, record: Any, reason: str) -> None:
        await self.dead.put(
            topic,
            self.number,
            record.offset,
            reason,
            key=record.key,
            value=record.value,
            headers=_headers(record.headers),
        )


class Worker:
    """
    Args:
        on_end: Called once with why this process has to end.

    Attributes:
        partitions: Those that are ours, by number.
        answers: Requests to the edges that are not answered yet.
        keys: Whether those of the edges belong to ours.
        rebuilds, kept: Of partitions at rebalances.
    """

    def __init__(
        self,
        kafka: KafkaSettings,
        runtime: RuntimeSettings,
        topics: Topics,
        parts: Parts,
        client: aioredis.Redis,
        on_end: Callable[[str], None],
        *,
        answers: Waiting | None = None,
        keys: EdgeKeys | None = None,
    ) -> None:
        self._kafka = kafka
        self._clusters = frozenset(runtime.clusters)
        self._decision_key = runtime.decision_key.get_secret_value()
        self._topics = topics
        self._parts = parts
        self._client = client
        self._on_end = on_end
        self._dead = DeadLetters(kafka, topics)
        self._stream = Stream(kafka, topics, self)
        self._fences: dict[int, Fence] = {}
        self._tasks: dict[int, asyncio.Task[None]] = {}
        self._rebalancing = False
        self._revocations = 0
        self.partitions: dict[int, Partition] = {}
        self.answers = answers or Waiting()
        self.keys = keys or EdgeKeys(self._decision_key)
        self.rebuilds = 0
        self.kept = 0
        self._standing: list[Event] = []
        self.on_partition: list[Callable[[Partition], None]] = []
        self.reports: list[Callable[[], dict[str, Any]]] = []  # what others add to `doctor`

    @property
    def dead_letters(self) -> dict[str, int]:
        """Reason to the number of records."""
        return self._dead.counts

    @property
    def stalled(self) -> str:
        """Why input is not taken; empty while it is."""
        return next((fence.stalled for fence in self._fences.values() if fence.stalled), "")

    async def run(self) -> None:
        """Until cancelled."""
        await self._dead.start()
        try:
            await self._stream.run()
        finally:
            for number in list(self.partitions):
                await self._drop(number)
            await self._dead.close()

    async def reload(self, rules: Iterable[Rule]) -> None:
        """Go on with other rules in every cluster."""
        rules = tuple(rules)
        for partition in list(self.partitions.values()):
            await partition.reload(rules)

    async def emit(self, cluster: str, events: list[Event]) -> bool:
        """Hand events to a cluster that is ours; False if it is not."""
        partition = self.partitions.get(partition_of(cluster, self._kafka.partitions))
        if partition is None or not partition.is_ready:
            return False
        await partition.emit(cluster, events)
        return True

    async def emit_to_all(self, events: list[Event]) -> None:
        """What holds for every cluster, such as the state of the rulebook; those that come later are told too."""
        self._standing[:] = events
        for partition in list(self.partitions.values()):
            if partition.is_ready:
                for cluster in list(partition.cells):
                    await partition.emit(cluster, events)

    def lag(self) -> dict[int, int]:
        """Partition to records that are there and were not taken yet."""
        return self._stream.lag()

    def now(self) -> datetime:
        """The runtime's time."""
        return self._parts.clock()

    def why_not_ready(self) -> str:
        """Empty once every partition that is ours is rebuilt, and while state is stored."""
        if self.stalled:
            return f"state is not stored: {self.stalled}"
        waiting = [str(number) for number, partition in sorted(self.partitions.items()) if not partition.is_ready]
        if waiting:
            return f"partitions are rebuilt: {', '.join(waiting)}"
        return "" if self._stream.is_up else "not a member of the group yet"

    def progress(self) -> tuple[object, bool]:
        """For the watchdog: what differs once something was stored, and whether anything waits that we hold up."""
        done = tuple(sorted((number, partition.steps) for number, partition in self.partitions.items()))
        waits = any(partition.waiting for partition in self.partitions.values()) or any(self._stream.lag().values())
        return (done, self.rebuilds), waits and not self.stalled

    # What the stream asks (see `stream.Taker`)

    def revoked(self) -> None:
        self._rebalancing = True
        self._revocations += 1

    async def assigned(self, numbers: set[int]) -> None:
        """Claim every partition that is ours now, also those that were before: others may have had them in between."""
        revocations = self._revocations
        for number in set(self.partitions) - numbers:
            await self._drop(number)
            self._fences.pop(number, None)
        for number in sorted(numbers):
            if self._revocations != revocations:
                return  # Redis was away, say: they may be others' by now, who must not be fenced; the next call tells
            fence = self._fences.setdefault(number, Fence(self._client, f"p{number}"))
            stands = await fence.claim()
            partition = self.partitions.get(number)
            if stands and partition is not None and partition.is_ready and not self._tasks[number].done():
                self.kept += 1
                continue
            await self._drop(number)
            self._begin(number, fence)
        self._rebalancing = False
        log.info("partitions: %s", ", ".join(map(str, sorted(numbers))) or "none")

    def next_offsets(self, number: int) -> dict[str, int]:
        """Where the stream of a partition goes on; empty while that is not known, and it is to be paused."""
        partition = self.partitions.get(number)
        return dict(partition.next) if partition is not None and partition.is_ready else {}

    async def take(self, topic: str, number: int, message: Any) -> None:
        """
        One record of the stream.

        Nothing is trusted that the delivery order says: what is below the expected offset was taken before, and what
        is missing below it is read first (a batch that Faust had fetched before a pause was never delivered once).
        """
        partition = self.partitions.get(number)
        if partition is None or not partition.is_ready:
            return  # it is brought again once the partition is rebuilt
        expected = partition.next[topic]
        if message.offset < expected:
            return
        if message.offset > expected:
            async for batch in read_range(self._kafka, topic, number, expected, message.offset):
                for record in batch:
                    if not self._goes_on(partition, topic, expected):
                        return
                    await self._take(partition, topic, record)
                    expected = record.offset + 1
        if self._goes_on(partition, topic, expected):
            await self._take(partition, topic, message)

    def _goes_on(self, partition: Partition, topic: str, expected: int) -> bool:
        """It may have been lost, or rebuilt and gone back to where it is stored, while we waited."""
        is_ours = self.partitions.get(partition.number) is partition
        return is_ours and partition.is_ready and partition.next.get(topic) == expected

    async def _take(self, partition: Partition, topic: str, record: Any) -> None:
        event: Event | None = None
        cluster = ""
        if (topic, record.offset) not in partition.skipped:
            beside = self._beside(partition.number)
            try:
                found = beside.read(record)
                cluster = found.cluster
                if isinstance(found.event, Tick):
                    self.keys.heard(cluster, record.value, _headers(record.headers))
                if isinstance(found.event, Answered):
                    self.answers.answered(found.event)
                elif topic != self._topics.objects or not isinstance(found.event, SwitchSet):
                    event = found.event
            except RecordError as error:
                if isinstance(error, UnsignedError) and isinstance(error.event, Answered):
                    self.answers.doubted(error.event.request_id)
                await beside.bury(topic, record, str(error))
        await partition.put(Incoming(topic, record.offset, cluster, event, record))

    def _beside(self, number: int) -> _Beside:
        return _Beside(self._kafka, number, self._dead, self._clusters, self._decision_key)

    # One partition

    def _begin(self, number: int, fence: Fence) -> None:
        beside = self._beside(number)
        partition = Partition(number, fence, self._topics, self._parts, beside, self._standing)
        for tell in self.on_partition:
            tell(partition)
        self.partitions[number] = partition
        self._stream.pause(number)
        self._tasks[number] = asyncio.create_task(self._serve(partition, beside), name=f"partition {number}")

    async def _drop(self, number: int) -> None:
        task = self._tasks.pop(number, None)
        partition = self.partitions.pop(number, None)
        if task is not None:
            task.cancel()
            await asyncio.wait([task])
        if partition is not None:
            partition.release()

    async def _serve(self, partition: Partition, beside: _Beside) -> None:
        try:
            while True:
                try:
                    await self._rebuild(partition)
                    await partition.run()
                except* PoisonError as group:
                    await self._isolate(partition, beside, _first(group))
        except* FencedError as group:
            if not self._rebalancing:
                self._on_end(f"{_first(group)}; ending: another start claims anew")
        except* Exception as group:
            error = _first(group)
            log.critical("partition %d: %s", partition.number, error, exc_info=error)
            self._on_end(f"partition {partition.number}: {type(error).__name__}: {error}")

    async def _rebuild(self, partition: Partition) -> None:
        began = asyncio.get_running_loop().time()
        while True:
            try:
                await partition.rebuild()
            except ReadError as error:
                log.warning("partition %d is not rebuilt yet: %s", partition.number, error)
                await asyncio.sleep(READ_AGAIN_S)
            else:
                break
        self.rebuilds += 1
        await self._stream.resume(partition.number, partition.next)
        took = asyncio.get_running_loop().time() - began
        log.info("partition %d: rebuilt in %.2f s, %d clusters", partition.number, took, len(partition.cells))

    async def _isolate(self, partition: Partition, beside: _Beside, poison: PoisonError) -> None:
        """
        A record that the engine fails on must not stop the others.

        Raises:
            PoisonError: It fails without any record: nothing can be left out.
        """
        self._stream.pause(partition.number)
        partition.is_ready = False
        if not poison.records:
            raise poison
        if len(poison.records) == 1:
            found = poison.records[0]
            await beside.bury(found.topic, found.record, f"engine: {poison}")
            partition.skipped.add((found.topic, found.offset))
            partition.failed_on(found)
            return
        count = len(poison.records)
        log.error("partition %d: %s; its %d records are tried one by one", partition.number, poison, count)
        for found in poison.records:
            known = partition.careful_until.get(found.topic, 0)
            partition.careful_until[found.topic] = max(known, found.offset + 1)


def _first(group: BaseExceptionGroup[Any]) -> Any:
    error: BaseException = group
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error


def _headers(headers: Any) -> list[tuple[str, bytes]]:
    """Faust has a mapping, aiokafka a list."""
    if not headers:
        return []
    return list(headers.items()) if hasattr(headers, "items") else list(headers)
