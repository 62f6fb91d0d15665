"""
Ends a process that makes no progress, so that its supervisor starts it anew.

A thread of its own: a loop that hangs is what it is there for.  Waiting for Redis or Kafka is no hang: that is said,
and ends by itself.
"""

from __future__ import annotations

import logging
import os
import threading
from collections.abc import Callable
from time import monotonic

log = logging.getLogger("sevenhop.watchdog")

EXIT_STUCK = 70
"""EX_SOFTWARE of sysexits.h."""

LOOK_EVERY_S = 1.0


class Watchdog:
    """
    Args:
        patience_s: Seconds without progress, or without a sign of the loop, until the end.
        end: Called with why; by default it ends the process at once.
    """

    def __init__(self, patience_s: float, end: Callable[[str], None] | None = None) -> None:
        self._patience_s = patience_s
        self._end = end or _exit
        self._alive_at = monotonic()
        self._progress: object = None
        self._progressed_at = monotonic()
        self._has_work = False
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="watchdog", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._stopped.set()

    def tell(self, progress: object, *, has_work: bool) -> None:
        """
        From the loop, every second or so.

        Args:
            progress: Anything that differs once something was done.
            has_work: Whether there is something to do that nothing outside holds up.
        """
        now = monotonic()
        self._alive_at = now
        if progress != self._progress or not has_work:
            self._progress = progress
            self._progressed_at = now
        self._has_work = has_work

    def verdict(self, now: float) -> str:
        """Why it is to end; empty while all is well."""
        if now - self._alive_at > self._patience_s:
            return f"the event loop has hung for {now - self._alive_at:.0f} s"
        if self._has_work and now - self._progressed_at > self._patience_s:
            return f"records wait, and none was handled for {now - self._progressed_at:.0f} s"
        return ""

    def _watch(self) -> None:
        last = monotonic()
        while not self._stopped.wait(LOOK_EVERY_S):
            now = monotonic()
            if now - last > self._patience_s / 2:
                # We were stopped as a whole (SIGSTOP, a sleeping machine): what we know is old, so look again.
                self._alive_at = self._progressed_at = now
            last = now
            why = self.verdict(now)
            if why:
                self._end(why)
                return


def _exit(why: str) -> None:
    log.critical("ending: %s", why)
    os._exit(EXIT_STUCK)
