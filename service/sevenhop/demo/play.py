"""Plays one story from beginning to end on a page."""

from __future__ import annotations

import asyncio
import logging
import tempfile
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path

from sevenhop.demo.narrator import Narrator, Tally
from sevenhop.demo.page import Page
from sevenhop.demo.stage import Stage, StageError, open_stage
from sevenhop.demo.story import BEGINS, STORIES, Story
from sevenhop.version import __version__

_FRAME_S = 0.1
"""How often the clock on a terminal moves, in real seconds."""

Ask = Callable[[], Awaitable[None]]
"""Waits until the reader wants to go on."""


async def play(story: Story, page: Page, *, speed: float, ask: Ask | None = None) -> Tally:
    """
    Tell a story.

    Args:
        speed: Seconds of the story in one real second.
        ask: Awaited once the message stands there; None goes on by itself.

    Raises:
        StageError: A part of ours failed, in one line.
        BrokenPipeError: Whoever read the page has gone.
    """
    stops = ", stops for you to read" if ask is not None else ""
    page.title(f"sevenhop {__version__} demo: simulated cluster prod-eu, clock ×{speed:g}{stops}")
    page.line("The cluster is simulated; what watches it and tells you is what runs in production.")
    page.line("Nothing leaves this machine.")
    page.line(story.about)
    page.line()
    began_s = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="sevenhop-demo-") as folder, _quiet_logs():
        async with open_stage(story.world(), BEGINS, Path(folder), page.stream) as stage:
            narrator = Narrator(story, stage.engine, page)
            stage.embedded.observers.append(narrator.heard)
            narrator.opening(stage.clock(), time.monotonic() - began_s)
            await _tell(story, stage, narrator, _Pace(page, stage, speed), ask)
    _close(story, page, narrator)
    return narrator.tally


async def _tell(story: Story, stage: Stage, narrator: Narrator, pace: _Pace, ask: Ask | None) -> None:
    page = pace.page
    has_asked = False

    async def before(at: datetime) -> None:
        nonlocal has_asked
        if ask is not None and not has_asked and narrator.tally.posted:
            has_asked = True
            await ask()
            pace.rest()
        await pace(at)

    for step in story.steps:
        await stage.advance(BEGINS + step.at, before, narrator.look)
        page.at(stage.clock(), step.says)
        for action in step.actions:
            stage.act(action)
    await stage.advance(BEGINS + story.ends, before, narrator.look)
    if page.is_torn:
        raise BrokenPipeError
    failures = stage.embedded.outbox_failures()
    if failures:
        raise StageError("; ".join(failures.values()))


class _Pace:
    """Spends real time for virtual time, as far as the work in between has not spent it already."""

    def __init__(self, page: Page, stage: Stage, speed: float) -> None:
        self.page = page
        self._stage = stage
        self._speed = speed
        self.rest()

    def rest(self) -> None:
        """Begin anew from here: what has passed in real time does not count."""
        self._since_s = time.monotonic()
        self._since = self._stage.clock()

    async def __call__(self, at: datetime) -> None:
        due_s = self._since_s + (at - self._since).total_seconds() / self._speed
        while (left_s := due_s - time.monotonic()) > 0:
            passed_s = (time.monotonic() - self._since_s) * self._speed
            self.page.tick(min(at, self._since + (at - self._since) * min(1.0, passed_s / self._span_s(at))))
            await asyncio.sleep(min(left_s, _FRAME_S))

    def _span_s(self, at: datetime) -> float:
        return max((at - self._since).total_seconds(), 1e-9)


def _close(story: Story, page: Page, narrator: Narrator) -> None:
    page.line()
    page.title(story.moral)
    others = [name for name in STORIES if name != story.name]
    next_steps = [
        ("Your cluster", "sevenhop scan --context NAME (read-only, installs nothing)"),
        ("Watch it", "sevenhop run --context NAME; then sevenhop explain WORKLOAD/COMPONENT says why an alert fires"),
        *(("Another story", f"sevenhop demo --story {name}: {STORIES[name].summary}") for name in others),
    ]
    rows = narrator.closing()
    width = max(len(label) for label, _ in (*rows, *next_steps))
    for label, text in rows:
        page.row(label, text, width)
    page.line()
    for label, text in next_steps:
        page.row(label, text, width)


@contextmanager
def _quiet_logs() -> Iterator[None]:
    """What fails is told as a `StageError`; everything else in the log is for operators, not for readers of a story."""
    log = logging.getLogger("sevenhop")
    was = log.disabled, log.propagate
    handler = logging.NullHandler()
    log.addHandler(handler)
    log.propagate = False
    try:
        yield
    finally:
        log.removeHandler(handler)
        log.disabled, log.propagate = was
