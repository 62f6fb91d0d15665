"""Fast time that two processes agree on."""

from __future__ import annotations

import time
from datetime import datetime, timedelta

from sevenhop.runtime.clock import Clock


class SharedClock(Clock):
    """
    Virtual time by the wall clock of the machine, so that a new process goes on where the killed one was.

    Args:
        begins: Virtual time at `zero_s`.
        zero_s: Of the wall clock, in seconds since 1970.
        speed: Virtual seconds in a real one.
    """

    def __init__(self, begins: datetime, zero_s: float, speed: float) -> None:
        super().__init__(begins, speed)
        self._begins = begins
        self._zero_s = zero_s
        self._speed = speed

    def __call__(self) -> datetime:
        return self._begins + timedelta(seconds=(time.time() - self._zero_s) * self._speed)
