"""Nothing happens on the stage but by its own time."""

from __future__ import annotations

import asyncio
import io
from datetime import timedelta
from pathlib import Path

from sevenhop.core.engine import Step
from sevenhop.demo.stage import open_stage
from sevenhop.demo.story import BEGINS, STORIES


async def test_the_engine_is_not_woken_by_the_machines_clock(tmp_path: Path) -> None:
    """Else a slow machine would let it look at a moment whose changes have not been told yet."""
    story = STORIES["shortage"]
    async with open_stage(story.world(), BEGINS, tmp_path, io.StringIO()) as stage:
        steps: list[Step] = []
        for action in story.opening[0].actions:
            stage.act(action)
        await stage.advance(BEGINS + timedelta(seconds=20), _at_once, lambda _: None)
        stage.embedded.observers.append(steps.append)
        await asyncio.sleep(0.5)
        assert steps == []


async def _at_once(_: object) -> None:
    """No pace."""
