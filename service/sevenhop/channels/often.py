"""How often one person may ask: each refusal is written to the audit trail, which nobody may fill at will."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Final

MOST: Final = 30
WITHIN: Final = timedelta(minutes=1)
PEOPLE: Final = 1_000

TOO_OFTEN: Final = f"more than {MOST} requests within a minute; nothing was done, wait a minute"


class Often:
    """Remembers the last minute of at most `PEOPLE` people, who came last."""

    def __init__(self, clock: Callable[[], datetime]) -> None:
        self._clock = clock
        self._times: dict[str, deque[datetime]] = {}

    def is_too_often(self, who: str) -> bool:
        """Count one request; True if it is one too many, which then does not count."""
        now = self._clock()
        times = self._times.pop(who, deque())
        while times and now - times[0] >= WITHIN:
            times.popleft()
        self._times[who] = times
        while len(self._times) > PEOPLE:
            self._times.pop(next(iter(self._times)))
        if len(times) >= MOST:
            return True
        times.append(now)
        return False
