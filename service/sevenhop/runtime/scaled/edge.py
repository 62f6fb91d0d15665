"""
The edge of one cluster: what its sources see goes into the topics, in the cluster's partition.

    sources ──► buffer (bounded) ──► producer ──► objects, signals
                  full: the sources wait, and a watch that has waited too long lists anew

What is sent again after an error is the same again: the inventory's order (term, epoch, sequence) makes it nothing new.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Any

from sevenhop.core.events import Applied, Tick, Unreadable
from sevenhop.runtime.codec import MOST_BYTES, Answered, Carried, Record, encode
from sevenhop.runtime.embedded import Source
from sevenhop.runtime.scaled.leftovers import Leftovers, read_leftovers
from sevenhop.runtime.scaled.signing import Sign, unsigned
from sevenhop.runtime.scaled.terms import FROM_EDGE, in_term
from sevenhop.runtime.scaled.topics import Topics, client_options, partition_of
from sevenhop.settings_scaled import KafkaSettings

log = logging.getLogger("sevenhop.edge")

TICK_EVERY_S = 1.0
_BATCH = 1000
_FIRST_RETRY_S, _LONGEST_RETRY_S = 0.2, 5.0
ANSWER_WITHIN_S = 5.0
"""A batch that is not stored by then is sent again, by a new producer."""


class Edge:
    """
    One term of one edge.

    Args:
        term: Higher than that of every edge before (`leader.Lease`, or the time).
        now: The time, UTC.
        sign: Signs what is said of orders, and each tick: which key we have is then known before any order.

    Attributes:
        stalled: Why nothing is sent now; empty while it is.
        sent: Events that Kafka has stored.
        stored: Topic to the offset behind the last of them.
    """

    def __init__(
        self,
        cluster: str,
        term: int,
        kafka: KafkaSettings,
        topics: Topics,
        now: Callable[[], datetime],
        *,
        buffered_events: int = 20_000,
        sign: Sign = unsigned,
    ) -> None:
        self.cluster = cluster
        self.term = term
        self._kafka = kafka
        self._topics = topics
        self._now = now
        self._most = buffered_events
        self._sign = sign
        self._partition = partition_of(cluster, kafka.partitions)
        self._buffer: deque[Carried] = deque()
        self._changed = asyncio.Condition()
        self._producer: Any = None
        self._leftovers = Leftovers({})
        self.stalled = ""
        self.sent = 0
        self.stored: dict[str, int] = {}

    @property
    def buffered(self) -> int:
        """Events that wait for Kafka."""
        return len(self._buffer)

    def why_not_ready(self) -> str:
        """Empty while what is seen reaches Kafka."""
        return self.stalled

    async def run(self, sources: Sequence[Source]) -> None:
        """
        Until cancelled.

        Raises:
            ExceptionGroup: Of what failed in a source.
        """
        found = await read_leftovers(self._kafka, self._topics.objects, self._partition, self.cluster)
        self._leftovers = Leftovers(found)
        try:
            async with asyncio.TaskGroup() as tasks:
                tasks.create_task(self._send_all(), name="producer")
                tasks.create_task(self._tick(), name="ticks")
                for source in sources:
                    tasks.create_task(source.run(self.emit), name=type(source).__name__)
        finally:
            await self._close()

    async def emit(self, events: Sequence[Carried]) -> None:
        """Hand on events in order; waits while the buffer is full."""
        told: list[Carried] = [in_term(event, self.term) if isinstance(event, FROM_EDGE) else event for event in events]
        told = self._leftovers.with_deletions(told)
        async with self._changed:
            await self._changed.wait_for(lambda: len(self._buffer) < self._most)
            self._buffer.extend(told)
            self._changed.notify_all()

    async def _tick(self) -> None:
        """Says that somebody looks, and shows the worker a gap at the very end of the stream."""
        while True:
            await asyncio.sleep(TICK_EVERY_S)
            if not self.stalled and len(self._buffer) < self._most:
                await self.emit([Tick(at=self._now())])

    async def _send_all(self) -> None:
        while True:
            async with self._changed:
                await self._changed.wait_for(lambda: bool(self._buffer))
                batch = [self._buffer[n] for n in range(min(_BATCH, len(self._buffer)))]
            await self._send([record for event in batch if (record := self._record(event)) is not None])
            async with self._changed:
                for _ in batch:
                    self._buffer.popleft()
                self._changed.notify_all()

    def _record(self, event: Carried) -> Record | None:
        """One that Kafka will never take would hold up all behind it for ever."""
        record = encode(self.cluster, event)
        size = len(record.value or b"")
        if size <= MOST_BYTES:
            return self._sign(self.cluster, record) if isinstance(event, (Answered, Tick)) else record
        log.error("%s has %d bytes, more than Kafka takes in one record; it is left out", type(event).__name__, size)
        if not isinstance(event, Applied):
            return None
        namespace, name = event.obj.metadata.key
        instead = Unreadable(
            at=event.at,
            epoch=event.epoch,
            seq=event.seq,
            kind=event.kind,
            namespace=namespace,
            name=name,
            error=f"{size} bytes, more than Kafka takes in one record",
        )
        return encode(self.cluster, instead)

    async def _send(self, records: list[Record]) -> None:
        """Until Kafka has stored all of them."""
        from aiokafka.errors import KafkaError

        delay_s = _FIRST_RETRY_S
        while True:
            try:
                async with asyncio.timeout(ANSWER_WITHIN_S):
                    producer = await self._ready()
                    sent = [await self._put(producer, to, record) for record in records for to in self._to(record)]
                    for stored in await asyncio.gather(*sent):
                        self.stored[stored.topic] = max(self.stored.get(stored.topic, 0), stored.offset + 1)
            except (KafkaError, OSError, TimeoutError) as error:
                if not self.stalled:
                    log.error("Kafka does not take what we see, it waits here: %s: %s", type(error).__name__, error)
                self.stalled = f"Kafka: {type(error).__name__}: {error}"
                await self._close()  # what it still holds is sent by the next one
                await asyncio.sleep(delay_s)
                delay_s = min(delay_s * 2, _LONGEST_RETRY_S)
            else:
                if self.stalled:
                    log.warning("Kafka takes what we see again; %d events waited", len(self._buffer))
                self.stalled = ""
                self.sent += len(records)
                return

    def _to(self, record: Record) -> tuple[str, ...]:
        if record.is_kept:
            return (self._topics.objects,)
        return self._topics.inputs if record.key is not None else (self._topics.signals,)

    async def _put(self, producer: Any, topic: str, record: Record) -> Any:
        return await producer.send(
            topic, key=record.key, value=record.value, headers=record.headers, partition=self._partition
        )

    async def _ready(self) -> Any:
        from aiokafka import AIOKafkaProducer

        if self._producer is None:
            producer = AIOKafkaProducer(
                **client_options(self._kafka),
                # Not idempotent: what comes twice is nothing new, and such a producer tries for ever, without a pause,
                # while a broker is away (aiokafka 0.14).  Order holds: one batch of a partition is under way at a time.
                acks="all",
                linger_ms=2,
                max_batch_size=256 * 1024,
                request_timeout_ms=int(ANSWER_WITHIN_S * 1000),
            )
            try:
                await producer.start()
            except BaseException:
                await producer.stop()
                raise
            self._producer = producer
        return self._producer

    async def _close(self) -> None:
        producer, self._producer = self._producer, None
        if producer is not None:
            try:
                async with asyncio.timeout(2.0):
                    # Its own stop waits until everything is sent; what is not is ours to send again.
                    await producer._sender.close()  # noqa: SLF001
                    await producer.stop()
            except Exception as error:  # noqa: BLE001  it is given up in any case
                log.debug("producer: %s", error)
