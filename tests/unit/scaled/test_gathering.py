"""What belongs to one step: records that come close behind each other, up to a bound; a suspect one alone."""

from __future__ import annotations

import asyncio
from datetime import timedelta

import pytest

from sevenhop.runtime.clock import Clock
from sevenhop.runtime.scaled import intake
from sevenhop.runtime.scaled.cell import Parts
from sevenhop.runtime.scaled.partition import STEP_EVENTS, Incoming, Partition
from sevenhop.runtime.scaled.topics import topics_of
from sevenhop.settings_scaled import KafkaSettings

TOPICS = topics_of(KafkaSettings(partitions=1))


@pytest.fixture
def partition(monkeypatch: pytest.MonkeyPatch) -> Partition:
    """Nothing is handled: only the next step is put together.  A busy machine is not taken for silence."""
    monkeypatch.setattr(intake, "GATHER_S", 30.0)
    monkeypatch.setattr(intake, "QUIET_S", 0.2)
    parts = Parts(build_engine=lambda _: None, channels={}, clock=Clock(), silence=timedelta(1))  # type: ignore[arg-type,return-value]
    return Partition(0, None, TOPICS, parts, None)  # type: ignore[arg-type]


async def bring(partition: Partition, count: int) -> None:
    """As Faust does: one record, then others have their turn."""
    for offset in range(count):
        await partition.put(Incoming(TOPICS.objects, offset, "c", None))
        await asyncio.sleep(0)


async def test_a_backlog_is_brought_one_by_one_and_handled_together(partition: Partition) -> None:
    """Else each step would have a handful, and cost as much as one with two hundred."""
    bringing = asyncio.create_task(bring(partition, 50))
    assert len(await partition._next()) == 50
    await bringing


async def test_a_step_has_a_bound(partition: Partition) -> None:
    """The loop is not held up for longer than a step of that size takes."""
    bringing = asyncio.create_task(bring(partition, STEP_EVENTS + 10))
    assert len(await partition._next()) == STEP_EVENTS
    assert len(await partition._next()) == 10
    await bringing


async def test_a_record_that_may_be_poison_is_alone(partition: Partition) -> None:
    """So that it is known which one the engine fails on."""
    partition.careful_until[TOPICS.objects] = 2
    await bring(partition, 5)
    assert [len(await partition._next()) for _ in range(3)] == [1, 1, 3]
