"""What a partition takes in: records of the stream, what the process itself makes, and which of them wait."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Any

import msgspec

from sevenhop.core.alerts.rule import Rule
from sevenhop.core.events import Event


class Incoming(msgspec.Struct, frozen=True):
    """A record; without an event only its offset counts."""

    topic: str
    offset: int
    cluster: str
    event: Event | None
    record: Any = None


class Own(msgspec.Struct, frozen=True):
    """Something of this process: an outcome, a question; `stored` is told when it is."""

    cluster: str
    events: list[Event]
    stored: asyncio.Future[None] | None = None
    rules: tuple[Rule, ...] | None = None


Batch = Sequence[Incoming | Own]


class Held:
    """
    Signals that wait until what is true is read to the end that it had when the rebuild began.

    A decision on half of a cluster would be refused, as "nothing is known", the moment after a worker died.  They keep
    their order, and their offsets: after a crash they are read again.

    Args:
        topic: Of the signals.
        most: So many may wait; more are let through.
        is_careful: Whether a record is to be handled alone.
    """

    def __init__(self, topic: str, most: int, is_careful: Callable[[Incoming | Own], bool]) -> None:
        self._topic = topic
        self._most = most
        self._is_careful = is_careful
        self._items: list[Incoming | Own] = []

    def __len__(self) -> int:
        return len(self._items)

    def clear(self) -> None:
        self._items.clear()

    def let_through(self, batch: Batch, *, is_behind: bool) -> Batch:
        """What of a batch, and of those that waited, is handled now."""
        signals = [*self._items, *(item for item in batch if self._is_signal(item))]
        others = [item for item in batch if not self._is_signal(item)]
        if is_behind and len(signals) <= self._most:
            self._items = signals
            return others
        if any(map(self._is_careful, signals)):
            self._items = signals if others else signals[1:]
            return others or signals[:1]
        batch = [*self._items, *batch]
        self._items = []
        return batch

    def _is_signal(self, item: Incoming | Own) -> bool:
        return isinstance(item, Incoming) and item.topic == self._topic
