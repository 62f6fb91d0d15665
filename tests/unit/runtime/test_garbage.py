"""The collector never walks what was there after the first lists."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import Iterator

import pytest

from sevenhop.runtime import garbage
from tests.unit.runtime.harness import until


@pytest.fixture(autouse=True)
def collector() -> Iterator[None]:
    """As it was."""
    before = gc.get_threshold()
    yield
    gc.set_threshold(*before)
    gc.unfreeze()


async def test_what_the_first_lists_brought_is_frozen(monkeypatch: pytest.MonkeyPatch) -> None:
    """Before that nothing is; after a stop all is as it was."""
    monkeypatch.setattr(garbage, "_LOOK_EVERY_S", 0.01)
    listed = False
    task = asyncio.create_task(garbage.keep_pauses_short(lambda: listed))
    await asyncio.sleep(0.05)
    assert gc.get_freeze_count() == 0

    listed = True
    await until(lambda: gc.get_freeze_count() > 1000)

    task.cancel()
    await asyncio.wait([task])
    assert gc.get_freeze_count() == 0


async def test_what_survives_a_long_full_collection_is_frozen_too(monkeypatch: pytest.MonkeyPatch) -> None:
    """A cluster that was replaced in the meantime is not walked again and again."""
    task = asyncio.create_task(garbage.keep_pauses_short(lambda: True))
    await until(lambda: gc.get_freeze_count() > 1000)
    before = gc.get_freeze_count()
    churned = [[n] for n in range(5000)]

    monkeypatch.setattr(garbage, "LONGEST_PAUSE_S", 1000.0)
    gc.collect()
    assert gc.get_freeze_count() == before  # it took no time: nothing to do
    monkeypatch.setattr(garbage, "LONGEST_PAUSE_S", 0.0)
    gc.collect()

    assert gc.get_freeze_count() >= before + len(churned)
    task.cancel()
    await asyncio.wait([task])
