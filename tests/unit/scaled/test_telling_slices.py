"""Telling people about thousands of components holds up nobody else."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any

import msgspec
import pytest

from sevenhop.core import views
from sevenhop.runtime.scaled.telling import SLICE_ROWS, Telling

NOON = datetime(2026, 11, 30, 12, tzinfo=UTC)


async def test_others_have_their_turn_while_a_large_cluster_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    """After each few rows; all rows are told, in order."""
    turns: list[int] = []

    def rows(_engine: Any, _now: datetime) -> Iterator[dict[str, Any]]:
        for number in range(10 * SLICE_ROWS):
            yield {"component": number, "turns": len(turns)}

    async def other() -> None:
        while True:
            turns.append(1)
            await asyncio.sleep(0)

    monkeypatch.setattr(views, "component_rows", rows)
    running = asyncio.create_task(other())
    cell: Any = SimpleNamespace(cluster="c", engine=None)
    told = msgspec.json.decode(await Telling(None, lambda: (), lambda: NOON)._components(cell))  # type: ignore[arg-type]
    running.cancel()
    assert [row["component"] for row in told] == list(range(10 * SLICE_ROWS))
    assert len({row["turns"] for row in told}) == 10
