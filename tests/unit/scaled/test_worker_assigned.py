"""Which partitions a worker claims: those that are its own when it does, not those that once were."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest

from sevenhop.runtime.scaled import worker as worker_module
from sevenhop.runtime.scaled.partition import Partition
from sevenhop.runtime.scaled.topics import topics_of
from sevenhop.runtime.scaled.worker import Worker
from sevenhop.settings_scaled import KafkaSettings, RuntimeSettings

KAFKA = KafkaSettings(servers=["unused:9092"])


class Claims:
    """Redis, which may be away."""

    def __init__(self) -> None:
        self.answers = asyncio.Event()
        self.claimed: list[str] = []

    def fence(self, _client: object, place: str) -> Any:
        async def claim() -> bool:
            await self.answers.wait()
            self.claimed.append(place)
            return False

        return SimpleNamespace(claim=claim, stalled="")


@pytest.fixture
def claims(monkeypatch: pytest.MonkeyPatch) -> Claims:
    made = Claims()
    monkeypatch.setattr(worker_module, "Fence", made.fence)
    return made


@pytest.fixture
def worker(monkeypatch: pytest.MonkeyPatch) -> Worker:
    async def serve(_worker: Worker, _partition: Partition, _beside: object) -> None:
        await asyncio.Event().wait()

    monkeypatch.setattr(Worker, "_serve", serve)
    nothing: Any = None
    made = Worker(KAFKA, RuntimeSettings(), topics_of(KAFKA), nothing, nothing, lambda _why: None)
    monkeypatch.setattr(made, "_stream", SimpleNamespace(pause=lambda _number: None))
    return made


async def test_a_rebalance_while_redis_is_away(worker: Worker, claims: Claims) -> None:
    """Another worker has most of them since: claimed late, each would end the one that serves it."""
    worker.revoked()
    earlier = asyncio.create_task(worker.assigned({1, 2, 3}))
    await asyncio.sleep(0.01)
    worker.revoked()
    claims.answers.set()
    await earlier
    assert claims.claimed == ["p1"]  # was on its way

    await worker.assigned({3})
    assert claims.claimed == ["p1", "p3"]
    assert list(worker.partitions) == [3]
    await worker._drop(3)


async def test_all_that_are_ours_are_claimed(worker: Worker, claims: Claims) -> None:
    """Also those that were ours before: others may have had them in between."""
    claims.answers.set()
    for _ in range(2):
        worker.revoked()
        await worker.assigned({1, 2})
    assert claims.claimed == ["p1", "p2", "p1", "p2"]
    for number in (1, 2):
        await worker._drop(number)
