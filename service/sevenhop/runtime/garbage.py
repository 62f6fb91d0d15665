"""
Python's garbage collector, so that it never stops the loop for long.

Our objects are freed by their reference counts; the collector is for the cycles that asyncio and tracebacks leave,
which die young.  A full collection walks everything that lives: 0.3 s with the objects of 150,000 pods.  So what is
there after the first lists is frozen (never walked again), and what survives a full collection that took long is too.
"""

from __future__ import annotations

import asyncio
import gc
import time
from collections.abc import Callable

YOUNG = 10_000
"""Net new containers until the youngest generation is collected: a millisecond or two."""

LONGEST_PAUSE_S = 0.01

_SETTLED_WITHIN_S = 120.0
_LOOK_EVERY_S = 0.5


async def keep_pauses_short(is_settled: Callable[[], bool]) -> None:
    """
    Freeze once everything was listed, and from then on after every long pause; runs until cancelled.

    Args:
        is_settled: Whether the first lists are through; a kind that never answers is not waited for.
    """
    gc.set_threshold(YOUNG, 20, 100)
    ends_at = time.monotonic() + _SETTLED_WITHIN_S
    while not is_settled() and time.monotonic() < ends_at:  # noqa: ASYNC110  the source has no event for it
        await asyncio.sleep(_LOOK_EVERY_S)
    gc.collect()
    gc.freeze()
    watch = _PauseWatch()
    gc.callbacks.append(watch)
    try:
        await asyncio.Event().wait()
    finally:
        gc.callbacks.remove(watch)
        gc.unfreeze()


class ShortPauses:
    """
    `keep_pauses_short` as a source, for as long as its fellows run.

    Args:
        why_not_settled: Empty once the first lists are through.
    """

    def __init__(self, why_not_settled: Callable[[], str]) -> None:
        self._why_not_settled = why_not_settled

    async def run(self, emit: object) -> None:  # noqa: ARG002
        await keep_pauses_short(lambda: not self._why_not_settled())


class _PauseWatch:
    """What has just survived a full collection is no garbage; walking it again would only take as long again."""

    def __init__(self) -> None:
        self._began = 0.0

    def __call__(self, phase: str, info: dict[str, int]) -> None:
        if info["generation"] < 2:
            return
        if phase == "start":
            self._began = time.perf_counter()
        elif time.perf_counter() - self._began > LONGEST_PAUSE_S:
            gc.freeze()
