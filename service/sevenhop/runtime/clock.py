"""The one place that asks what time it is; everything below is given it."""

from __future__ import annotations

import time
from datetime import UTC, datetime, timedelta


class Clock:
    """
    The time, and how long it takes to pass.

    Args:
        start: What time it is at the beginning; None takes the real time.
        speed: Seconds of this clock in one real second; the demo runs at 60.
    """

    def __init__(self, start: datetime | None = None, speed: float = 1.0) -> None:
        self._start = start
        self._speed = speed
        self._began = time.monotonic()

    def __call__(self) -> datetime:
        """Now, in UTC."""
        if self._start is None:
            return datetime.now(tz=UTC)
        return self._start + timedelta(seconds=(time.monotonic() - self._began) * self._speed)

    def real_s(self, seconds: float) -> float:
        """Real seconds until `seconds` of this clock have passed."""
        return seconds / self._speed
