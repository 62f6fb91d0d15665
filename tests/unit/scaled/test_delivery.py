"""Nothing is trusted that the order of delivery says: what was taken is skipped, what is missing is read first."""

from __future__ import annotations

from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import Any

import pytest

from sevenhop.core.events import Tick
from sevenhop.runtime.clock import Clock
from sevenhop.runtime.codec import encode
from sevenhop.runtime.scaled import worker as module
from sevenhop.runtime.scaled.cell import Parts
from sevenhop.runtime.scaled.partition import Incoming
from sevenhop.runtime.scaled.topics import partition_of, topics_of
from sevenhop.runtime.scaled.worker import Worker
from sevenhop.settings_scaled import KafkaSettings, RuntimeSettings

NOON = datetime(2026, 11, 30, 12, tzinfo=UTC)
KAFKA = KafkaSettings(servers=["unused:9092"], partitions=1)
TOPIC = topics_of(KAFKA).objects


def record(offset: int, value: bytes | None = None) -> Any:
    value = value if value is not None else encode("c", Tick(at=NOON + timedelta(seconds=offset))).value
    return SimpleNamespace(offset=offset, key=b"k", value=value, headers=[])


class Taken:
    """A partition that only remembers what it was handed."""

    def __init__(self, expected: int) -> None:
        self.number = partition_of("c", 1)
        self.next = {TOPIC: expected}
        self.is_ready = True
        self.skipped: set[tuple[str, int]] = set()
        self.offsets: list[int] = []
        self.used: list[bool] = []

    async def put(self, item: Incoming) -> None:
        self.next[item.topic] = item.offset + 1
        self.offsets.append(item.offset)
        self.used.append(item.event is not None)


class Buried(list[str]):
    """Dead letters of a test."""

    counts: dict[str, int] = {}

    async def put(self, topic: str, partition: int, offset: int, reason: str, **_: object) -> None:
        self.append(f"{topic}/{partition}@{offset} {reason}")


@pytest.fixture
def play(monkeypatch: pytest.MonkeyPatch) -> tuple[Worker, Taken, Buried, list[tuple[int, int]]]:
    """A worker at offset 5, its dead letters, and the stretches that it read beside the stream."""
    parts = Parts(build_engine=lambda _: None, channels={}, clock=Clock(), silence=timedelta(1))  # type: ignore[arg-type,return-value]
    runtime = RuntimeSettings(role="worker", clusters=["c"])
    worker = Worker(KAFKA, runtime, topics_of(KAFKA), parts, None, lambda _: None)  # type: ignore[arg-type]
    taken, buried, asked = Taken(5), Buried(), list[tuple[int, int]]()
    worker.partitions[0] = taken  # type: ignore[assignment]
    worker._dead = buried  # type: ignore[assignment]

    async def read(_settings: Any, _topic: str, _number: int, start: int, end: int) -> AsyncIterator[list[Any]]:
        asked.append((start, end))
        yield [record(offset) for offset in range(start, end) if offset != 7]  # compacted away

    monkeypatch.setattr(module, "read_range", read)
    return worker, taken, buried, asked


async def test_what_was_taken_is_skipped(play: tuple[Worker, Taken, Buried, list[tuple[int, int]]]) -> None:
    """A record below the expected offset changes nothing."""
    worker, taken, _, _ = play
    for offset in (3, 4, 5, 5, 4, 6):
        await worker.take(TOPIC, 0, record(offset))
    assert taken.offsets == [5, 6]


async def test_what_is_missing_is_read_first(play: tuple[Worker, Taken, Buried, list[tuple[int, int]]]) -> None:
    """A gap in the delivery is filled, in order; what compaction took out is no gap."""
    worker, taken, _, asked = play
    await worker.take(TOPIC, 0, record(9))
    assert taken.offsets == [5, 6, 8, 9]
    assert asked == [(5, 9)]


async def test_a_partition_that_is_being_rebuilt_takes_nothing(
    play: tuple[Worker, Taken, Buried, list[tuple[int, int]]],
) -> None:
    """It is brought again after that."""
    worker, taken, _, _ = play
    taken.is_ready = False
    await worker.take(TOPIC, 0, record(5))
    await worker.take(TOPIC, 1, record(5))
    assert taken.offsets == []


async def test_what_cannot_be_used_moves_the_offset_only(
    play: tuple[Worker, Taken, Buried, list[tuple[int, int]]],
) -> None:
    """Buried with its reason before the next one is taken; a cluster that is not ours is such a record."""
    worker, taken, buried, _ = play
    await worker.take(TOPIC, 0, record(5, b"?"))
    await worker.take(TOPIC, 0, record(6, encode("stranger", Tick(at=NOON)).value))
    await worker.take(TOPIC, 0, record(7))

    assert taken.used == [False, False, True]
    assert ["@5" in buried[0], "unknown cluster" in buried[1]] == [True, True]


async def test_what_is_buried_is_not_buried_twice(play: tuple[Worker, Taken, Buried, list[tuple[int, int]]]) -> None:
    """A record that the engine failed on is passed over when the stream brings it again."""
    worker, taken, buried, _ = play
    taken.skipped.add((TOPIC, 5))
    await worker.take(TOPIC, 0, record(5))
    assert taken.used == [False]
    assert buried == []
