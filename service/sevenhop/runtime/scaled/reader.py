"""A stretch of one partition, read beside the stream: for rebuilds, and for gaps in what is delivered."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

from sevenhop.runtime.scaled.topics import client_options
from sevenhop.settings_scaled import KafkaSettings

_BATCH = 500
_FETCH_BYTES = 8 * 1024 * 1024
_SILENT_S = 30.0


class ReadError(Exception):
    """The stretch could not be read to its end; the same may work later."""


async def ends_of(settings: KafkaSettings, topic: str, partition: int) -> tuple[int, int]:
    """(first offset that is there, next offset that will be)."""
    async with _consumer(settings) as consumer:
        return await _ends(consumer, topic, partition)


async def read_range(
    settings: KafkaSettings, topic: str, partition: int, start: int, end: int
) -> AsyncIterator[list[Any]]:
    """
    Records from `start` up to but not including `end`, in batches; a compacted topic has gaps.

    `start` before the first record that is kept begins at that one.

    Raises:
        ReadError: Kafka went away in the middle.
    """
    from aiokafka import TopicPartition
    from aiokafka.errors import KafkaError

    try:
        async with _consumer(settings) as consumer:
            first, _ = await _ends(consumer, topic, partition)
            place = TopicPartition(topic, partition)
            # With seek_to_beginning aiokafka ended at the end in 19 of 20 tries; an explicit offset never did.
            consumer.seek(place, max(start, first))
            while await consumer.position(place) < end:
                async with asyncio.timeout(_SILENT_S):
                    found = await consumer.getmany(place, max_records=_BATCH, timeout_ms=500)
                batch = [record for record in found.get(place, ()) if record.offset < end]
                if batch:
                    yield batch
                await asyncio.sleep(0)  # others get their turn
    except (KafkaError, TimeoutError, OSError) as error:
        raise ReadError(f"{topic}/{partition}: {type(error).__name__}: {error}") from None


async def _ends(consumer: Any, topic: str, partition: int) -> tuple[int, int]:
    from aiokafka import TopicPartition

    place = TopicPartition(topic, partition)
    consumer.assign([place])
    first = (await consumer.beginning_offsets([place]))[place]
    end = (await consumer.end_offsets([place]))[place]
    return first, end


class _consumer:  # noqa: N801  reads as a call
    def __init__(self, settings: KafkaSettings) -> None:
        from aiokafka import AIOKafkaConsumer

        self._consumer = AIOKafkaConsumer(
            **client_options(settings),
            group_id=None,
            enable_auto_commit=False,
            auto_offset_reset="earliest",
            max_partition_fetch_bytes=_FETCH_BYTES,
        )

    async def __aenter__(self) -> Any:
        await self._consumer.start()
        return self._consumer

    async def __aexit__(self, *_: object) -> None:
        await self._consumer.stop()
