"""What waits in front of a partition, and what of it belongs to one step."""

from __future__ import annotations

import asyncio

from sevenhop.runtime.scaled.incoming import Batch, Held, Incoming, Own

WAITING = 2000
"""Records that may wait; then the stream waits, and Kafka keeps what we have not read."""

STEP_EVENTS = 200
"""Events of one step: a few milliseconds, as in the embedded runtime."""

GATHER_S, QUIET_S = 0.05, 0.001
"""How long a step waits for more at most, and after how long without any it does not: a calm stream is not held up."""


class Intake:
    """
    Mutable, owned by one partition.

    Args:
        signals: The topic of what passes.

    Attributes:
        careful_until: Topic to an offset up to which records are handled one by one.
        is_stepping: Something was taken from here that is not stored yet.
    """

    def __init__(self, signals: str) -> None:
        self.careful_until: dict[str, int] = {}
        self.is_stepping = False
        self._queue: asyncio.Queue[Incoming | Own] = asyncio.Queue(maxsize=WAITING)
        self._held = Held(signals, WAITING, self._is_careful)

    async def put(self, item: Incoming | Own) -> None:
        """Waits while we are behind."""
        await self._queue.put(item)

    @property
    def holds(self) -> bool:
        """Whether signals wait until what is true is read."""
        return bool(self._held)

    @property
    def waiting(self) -> int:
        """Records and events that wait here."""
        return self._queue.qsize() + len(self._held)

    @property
    def is_idle(self) -> bool:
        return not self.is_stepping and not self.waiting

    def drop(self) -> None:
        """Nothing that stands in the queue is handled any more; whoever waits before a full one gets in."""
        before, self._queue = self._queue, asyncio.Queue(maxsize=WAITING)
        while not before.empty():
            before.get_nowait()  # which lets in one of those that wait before a full queue

    def forget_held(self) -> None:
        """They are read again."""
        self._held.clear()

    def let_through(self, batch: Batch, *, is_behind: bool) -> Batch:
        """See `Held.let_through`."""
        return self._held.let_through(batch, is_behind=is_behind)

    async def gather(self, real_s: float) -> list[Incoming | Own]:
        """What belongs to the next step; nothing if nothing comes within so many seconds."""
        try:
            async with asyncio.timeout(real_s):
                first = await self._queue.get()
        except TimeoutError:
            return []
        self.is_stepping = True
        batch = [first]
        if not self._is_careful(first):
            await self._gather_close(batch)
        return batch

    async def _gather_close(self, batch: list[Incoming | Own]) -> None:
        """
        What comes close behind belongs to the same step: Faust brings a backlog one by one, and a step costs a
        millisecond and an answer of Redis whether it holds five records or two hundred.
        """
        loop = asyncio.get_running_loop()
        ends_at = loop.time() + GATHER_S
        while len(batch) < STEP_EVENTS:
            if self._queue.empty():
                if loop.time() >= ends_at:
                    return
                await asyncio.sleep(QUIET_S)
                if self._queue.empty():
                    return
            batch.append(self._queue.get_nowait())

    def _is_careful(self, item: Incoming | Own) -> bool:
        return isinstance(item, Incoming) and item.offset < self.careful_until.get(item.topic, 0)
