"""When each incident wants to be looked at again."""

from __future__ import annotations

from datetime import datetime
from heapq import heappop, heappush


class Wakes:
    """One appointment per key; derived from state, stored nowhere."""

    def __init__(self) -> None:
        self._heap: list[tuple[datetime, str]] = []
        self._at: dict[str, datetime] = {}

    def put(self, key: str, at: datetime | None) -> None:
        """In place of an earlier appointment; None cancels it."""
        if at is None:
            self._at.pop(key, None)
        elif self._at.get(key) != at:
            self._at[key] = at
            heappush(self._heap, (at, key))

    def put_at_latest(self, key: str, at: datetime) -> None:
        """Unless there is an earlier appointment."""
        if key not in self._at or self._at[key] > at:
            self.put(key, at)

    @property
    def next(self) -> datetime | None:
        while self._heap:
            at, key = self._heap[0]
            if self._at.get(key) == at:
                return at
            heappop(self._heap)  # moved or cancelled since
        return None

    def due(self, now: datetime) -> list[str]:
        """Keys whose time has come; their appointments are over."""
        found = []
        while (at := self.next) is not None and at <= now:
            _, key = heappop(self._heap)
            del self._at[key]
            found.append(key)
        return found
