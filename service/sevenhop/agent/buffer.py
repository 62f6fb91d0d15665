"""What waits to be sent: bounded, so that an outage of the service costs data on the node, never memory."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator

import msgspec

from sevenhop.core.events import GpusSampled, XidSeen

Sent = GpusSampled | XidSeen

MAX_BYTES = 4 * 1024 * 1024
"""About an hour of summaries of 8 GPUs, or thousands of XIDs."""

_encoder = msgspec.msgpack.Encoder()


class Buffer:
    """
    Keeps what was not acknowledged yet.  When it is full the oldest summary goes first: a newer one says more.  Then
    the oldest change, which the next summary repeats.  XIDs are told once only, so they go last.

    Attributes:
        dropped: How many of each sort were let go: ``summary``, ``change``, ``xid``.
    """

    def __init__(self, max_bytes: int = MAX_BYTES) -> None:
        self._max_bytes = max_bytes
        self._waiting: dict[str, deque[tuple[Sent, int]]] = {"summary": deque(), "change": deque(), "xid": deque()}
        self._bytes = 0
        self.dropped: dict[str, int] = dict.fromkeys(self._waiting, 0)

    def __len__(self) -> int:
        return sum(map(len, self._waiting.values()))

    @property
    def size_bytes(self) -> int:
        return self._bytes

    def add(self, event: Sent) -> None:
        """Keep one; others may have to go for it, never newer ones of its own sort."""
        size = len(_encoder.encode(event))
        self._waiting[_sort(event)].append((event, size))
        self._bytes += size
        while self._bytes > self._max_bytes and len(self) > 1:
            sort = next(name for name, queue in self._waiting.items() if queue and len(self) > 1)
            self._bytes -= self._waiting[sort].popleft()[1]
            self.dropped[sort] += 1

    def next_batch(self, max_bytes: int) -> list[Sent]:
        """The oldest that wait, up to a size, at least one; they stay until `acknowledge`."""
        batch: list[Sent] = []
        total = 0
        for event, size in self._in_order():
            if batch and total + size > max_bytes:
                break
            batch.append(event)
            total += size
        return batch

    def acknowledge(self, batch: list[Sent]) -> None:
        """They arrived, or will never be taken.  What was dropped meanwhile is no longer here, which is fine."""
        gone = {(event.epoch, event.seq) for event in batch}
        for sort, queue in self._waiting.items():
            kept = deque(item for item in queue if (item[0].epoch, item[0].seq) not in gone)
            self._waiting[sort] = kept
        self._bytes = sum(size for queue in self._waiting.values() for _, size in queue)

    def _in_order(self) -> Iterator[tuple[Sent, int]]:
        items = [item for queue in self._waiting.values() for item in queue]
        items.sort(key=lambda item: (item[0].epoch, item[0].seq))
        return iter(items)


def _sort(event: Sent) -> str:
    if isinstance(event, XidSeen):
        return "xid"
    return "summary" if event.is_whole else "change"
