"""A term of an edge: what runs beside its sources, and ends with them."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import pytest

from sevenhop import app, app_scaled
from sevenhop.cli.run_scaled import _one_term, _Terms
from sevenhop.runtime.garbage import ShortPauses


class Term:
    """An edge whose term lasts until it is cancelled."""

    def __init__(self) -> None:
        self.beside: list[Any] = []
        self.runs = asyncio.Event()

    def why_not_ready(self) -> str:
        return ""

    async def emit(self, _events: Sequence[Any]) -> None: ...

    async def run(self, sources: Sequence[Any]) -> None:
        self.beside = list(sources)
        async with asyncio.TaskGroup() as tasks:
            for source in sources:
                tasks.create_task(source.run(self.emit))
            self.runs.set()


class Heartbeat:
    async def run(self) -> None:
        await asyncio.Event().wait()


class Its:
    """Who measures the edge."""

    heartbeat = Heartbeat()

    def begin(self, *_of: Any) -> None: ...

    def end(self) -> None: ...

    def order_refused(self, _reason: Any) -> None: ...


class Quiet:
    async def run(self, _emit: Any) -> None:
        await asyncio.Event().wait()


@pytest.mark.parametrize(("role", "is_frozen"), [("edge", True), ("all", False)])
async def test_what_a_term_froze_is_let_go_with_it(role: str, is_frozen: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Else each Lease that is lost leaves all that its edge knew; in one process with a worker that one sees to it."""
    thresholds = gc.get_threshold()
    monkeypatch.setattr(app, "build_dcgm", lambda *_: [])
    settings = SimpleNamespace(runtime=SimpleNamespace(role=role))
    terms = _Terms()
    try:
        for number in (1, 2):
            edge = Term()
            monkeypatch.setattr(app_scaled, "build_edge", lambda *_, edge=edge: (edge, [Quiet()]))
            api = SimpleNamespace(base_url="https://api")
            term = asyncio.create_task(_one_term(settings, None, api, "prod", number, terms, Its()))
            async with asyncio.timeout(30):
                await edge.runs.wait()
            await asyncio.sleep(0.01)
            assert any(isinstance(each, ShortPauses) for each in edge.beside) is is_frozen
            assert (gc.get_freeze_count() > 0) is is_frozen
            term.cancel()
            await asyncio.wait([term])
            assert term.cancelled()
            assert gc.get_freeze_count() == 0
    finally:
        gc.set_threshold(*thresholds)
