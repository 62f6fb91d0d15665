"""What changes by time alone, and when to look at it next."""

from __future__ import annotations

from collections.abc import Hashable
from datetime import datetime
from heapq import heapify, heappop, heappush
from itertools import count


class Wakes:
    """One appointment per thing; a later word replaces an earlier one."""

    def __init__(self) -> None:
        self._at: dict[Hashable, datetime] = {}
        self._heap: list[tuple[datetime, int, Hashable]] = []
        self._order = count()  # things need not be comparable

    def put(self, what: Hashable, at: datetime | None) -> None:
        """Look at `what` again at `at`; None for not at all."""
        if self._at.get(what) == at:
            return
        if at is None:
            del self._at[what]
            return
        self._at[what] = at
        heappush(self._heap, (at, next(self._order), what))
        if len(self._heap) > 64 + 4 * len(self._at):
            self._heap = [entry for entry in self._heap if self._at.get(entry[2]) == entry[0]]
            heapify(self._heap)

    def due(self, now: datetime) -> set[Hashable]:
        """Takes out everything that is due."""
        found: set[Hashable] = set()
        while (at := self.next()) is not None and at <= now:
            what = heappop(self._heap)[2]
            if self._at.get(what) == at:
                del self._at[what]
                found.add(what)
        return found

    def next(self) -> datetime | None:
        while self._heap:
            at, _, what = self._heap[0]
            if self._at.get(what) == at:
                return at
            heappop(self._heap)
        return None
