"""How time passes for whoever reads: at the speed of the story, and faster where nothing happens."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from datetime import datetime, timedelta

from sevenhop.demo.narrator import Narrator
from sevenhop.demo.page import Page
from sevenhop.demo.stage import Stage, StageError

_FRAME_S = 0.1
"""How often the clock on a terminal moves, in real seconds."""

FASTER = 10.0
"""Where nothing is to be read, time passes so many times faster."""


class Teller:
    """Moves the stage's time, and spends real time for it as far as the work in between has not spent it already."""

    def __init__(self, page: Page, stage: Stage, narrator: Narrator, speed: float) -> None:
        self.page = page
        self._stage = stage
        self._narrator = narrator
        self._speed = speed
        self._now_speed = speed
        self.rest()

    def rest(self) -> None:
        """Begin anew from here: what has passed in real time does not count."""
        self._since_s = time.monotonic()
        self._since = self._stage.clock()

    async def until(self, moment: datetime, *, fast: bool = False, enough: Callable[[], bool] = lambda: False) -> None:
        """
        Let time pass.

        Args:
            fast: Nothing needs to be read meanwhile.
            enough: Ends it before `moment`.

        Raises:
            StageError: A message cannot be delivered.
            BrokenPipeError: Whoever read the page has gone.
        """
        self._now_speed = self._speed * (FASTER if fast else 1.0)
        self.rest()
        await self._stage.advance(moment, self._pace, self._narrator.look, enough=enough)
        if self.page.is_torn:
            raise BrokenPipeError
        failures = self._stage.embedded.outbox_failures()
        if failures:
            raise StageError("; ".join(failures.values()))

    async def wait(self, span: timedelta, *, fast: bool = False, enough: Callable[[], bool] = lambda: False) -> None:
        """The same, for so long."""
        await self.until(self._stage.clock() + span, fast=fast, enough=enough)

    async def _pace(self, at: datetime) -> None:
        due_s = self._since_s + (at - self._since).total_seconds() / self._now_speed
        span_s = max((at - self._since).total_seconds(), 1e-9)
        while (left_s := due_s - time.monotonic()) > 0:
            passed_s = (time.monotonic() - self._since_s) * self._now_speed
            self.page.tick(min(at, self._since + (at - self._since) * min(1.0, passed_s / span_s)))
            await asyncio.sleep(min(left_s, _FRAME_S))
