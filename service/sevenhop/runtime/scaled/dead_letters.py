"""Records that could not be used: kept in a topic of their own, with the reason and where they stood."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterable
from typing import Any

from sevenhop.runtime.scaled.topics import Topics, client_options
from sevenhop.settings_scaled import KafkaSettings
from sevenhop.telemetry.table import DeadLetterReason

log = logging.getLogger("sevenhop.dead-letters")

_RETRY_S = 2.0

_BEGINS: dict[str, DeadLetterReason] = {
    "not a record": DeadLetterReason.NOT_A_RECORD,
    "format ": DeadLetterReason.NEWER_FORMAT,
    "a record without": DeadLetterReason.UNADDRESSED,
    "a deletion that": DeadLetterReason.UNADDRESSED,
    "unknown cluster": DeadLetterReason.UNKNOWN_CLUSTER,
    "wrong partition": DeadLetterReason.WRONG_PARTITION,
    "an object of the unknown kind": DeadLetterReason.UNKNOWN_KIND,
    "an event of the unknown kind": DeadLetterReason.UNKNOWN_KIND,
    "engine": DeadLetterReason.ENGINE,
    "late": DeadLetterReason.LATE,
    "unsigned": DeadLetterReason.UNSIGNED,
}
"""How a reason begins to its word: what follows may hold text of whoever wrote the record."""


def word_of(reason: str) -> DeadLetterReason:
    """
    The word for a reason, of a closed set.

    >>> word_of("unknown cluster: 'x' is not in runtime.clusters").value
    'unknown_cluster'
    >>> word_of("Applied: Expected `int`").value
    'unreadable'
    """
    return next((word for begin, word in _BEGINS.items() if reason.startswith(begin)), DeadLetterReason.UNREADABLE)


class DeadLetters:
    """
    Attributes:
        counts: Word for the reason (`DeadLetterReason`) to the number of records.
    """

    def __init__(self, settings: KafkaSettings, topics: Topics) -> None:
        self._settings = settings
        self._topic = topics.dead
        self._producer: Any = None
        self.counts: dict[str, int] = {}

    async def start(self) -> None:
        from aiokafka import AIOKafkaProducer

        self._producer = AIOKafkaProducer(**client_options(self._settings), acks="all")
        await self._producer.start()

    async def close(self) -> None:
        if self._producer is not None:
            await self._producer.stop()

    async def put(
        self,
        topic: str,
        partition: int,
        offset: int,
        reason: str,
        *,
        key: bytes | None,
        value: bytes | None,
        headers: Iterable[tuple[str, bytes]] = (),
    ) -> None:
        """Keep one; returns once it is kept, however long that takes: only then the stream goes on behind it."""
        from aiokafka.errors import KafkaError, MessageSizeTooLargeError

        word = word_of(reason).value
        self.counts[word] = self.counts.get(word, 0) + 1
        log.error("record %s/%d@%d cannot be used and goes to %s: %s", topic, partition, offset, self._topic, reason)
        where = f"{topic}/{partition}@{offset}".encode()
        told = [*headers, ("reason", reason[:500].encode()), ("where", where)]
        while True:
            try:
                await self._producer.send_and_wait(self._topic, key=key, value=value, headers=told)
            except MessageSizeTooLargeError:
                # With the reason it is more than Kafka takes: without this it would hold up the stream for ever.
                log.error("what stood at %s is too large to be kept with its reason; only that is", where.decode())
                key = value = None
                told = told[-2:]
            except KafkaError as error:
                log.error("%s cannot be written, the stream waits: %s", self._topic, error)
                await asyncio.sleep(_RETRY_S)
            else:
                return
