"""Virtual time: moved by whoever tells the story."""

from __future__ import annotations

from datetime import datetime, timedelta


class VirtualClock:
    """Stands still until it is advanced; calling it gives the time, UTC."""

    def __init__(self, start: datetime) -> None:
        self._now = start

    def __call__(self) -> datetime:
        return self._now

    def advance_to(self, at: datetime) -> None:
        """Never backwards."""
        self._now = max(self._now, at)

    def advance(self, by: timedelta) -> None:
        self.advance_to(self._now + by)
