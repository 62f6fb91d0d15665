"""
From nothing to where the stored state of a partition stands.

State comes from Redis, the inventory from the compacted topic, up to the stored offset; the stream goes on from there.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Set
from datetime import datetime
from time import monotonic
from typing import Any

import msgspec

from sevenhop.core.engine import Step
from sevenhop.core.events import SwitchSet
from sevenhop.runtime.clock import Clock
from sevenhop.runtime.codec import RecordError
from sevenhop.runtime.scaled.beside import Kafka
from sevenhop.runtime.scaled.cells import Cells, PoisonError
from sevenhop.runtime.scaled.decisions import is_later
from sevenhop.runtime.scaled.incoming import Incoming
from sevenhop.runtime.scaled.signing import SIGNED
from sevenhop.runtime.scaled.topics import Topics
from sevenhop.stores.redis import clusters_in
from sevenhop.stores.redis_fence import Changes, Fence

log = logging.getLogger("sevenhop.worker")


class Rebuilt(msgspec.Struct, frozen=True):
    """
    The first step of each cluster, staged, with the offsets at which the stream goes on.

    Attributes:
        at: When the steps were made.
        engine_s: Seconds that they took.
    """

    changes: Changes
    steps: dict[str, Step]
    at: datetime
    engine_s: float


class Rebuilding:
    """
    How one partition is rebuilt.

    Args:
        cells: Are cleared, and filled.
        fence: Claimed.
        skipped: Topic and offset of records that are buried already.
    """

    def __init__(
        self,
        number: int,
        cells: Cells,
        fence: Fence,
        topics: Topics,
        kafka: Kafka,
        skipped: Set[tuple[str, int]],
        clock: Clock,
    ) -> None:
        self._number = number
        self._cells = cells
        self._fence = fence
        self._topics = topics
        self._kafka = kafka
        self._skipped = skipped
        self._clock = clock

    async def rebuild(self) -> Rebuilt:
        """
        Raises:
            ReadError: Kafka went away; again later.
            PoisonError: An engine fails on a record, or on what is stored.
        """
        cells = self._cells
        cells.clear()
        objects, signals = self._topics.inputs
        _, end = await self._kafka.ends(objects)
        is_anew = objects not in self._fence.offsets
        start = self._start(objects, end)
        changes = Changes(offsets={objects: start, signals: await self._signals_start(signals)})
        cells.whole_at = end
        now = self._clock()
        for cluster in sorted(clusters_in(self._fence.fields)):
            cell = cells.in_rebuild(cluster)
            await cell.store.load_trail()
            cell.load(changes, now)
        async for batch in self._kafka.records(objects, 0, start):
            for record in batch:
                self._take_back(objects, record)
        now, began = self._clock(), monotonic()
        steps: dict[str, Step] = {}
        for cluster, cell in cells.by_name.items():
            events = await cell.ask_channels()
            if is_anew:
                cells.stop_again(cluster, now)
            if start >= end:
                events += cell.sight.whole()
            # Everything is derived at once: seconds in a large cluster.  Nobody else touches the cell yet, and in a
            # thread it holds up neither the other partitions nor the membership.
            steps[cluster] = await asyncio.to_thread(cells.handle, changes, cluster, events, [], now)
        return Rebuilt(changes, steps, now, monotonic() - began)

    def _start(self, topic: str, end: int) -> int:
        """Where the stream goes on.  Without a stored offset all that is there is history: the level counts."""
        stored = self._fence.offsets.get(topic)
        if stored is not None and stored > end:
            log.error("%s/%d: was made anew: our place %d is behind its end %d", topic, self._number, stored, end)
            stored = None
        return end if stored is None else stored

    async def _signals_start(self, topic: str) -> int:
        first, end = await self._kafka.ends(topic)
        stored = self._fence.offsets.get(topic)
        if stored is None or stored > end:
            return end  # what people decided before our state began is not decided again: they see that, and ask again
        if stored < first:
            log.error("%s/%d: %d records were dropped before we read them", topic, self._number, first - stored)
        return max(stored, first)

    def _take_back(self, topic: str, record: Any) -> None:
        if (topic, record.offset) in self._skipped:
            return
        try:
            found = self._kafka.read(record)
        except RecordError:
            return  # buried when the stream brought it
        switched = self._cells.switched
        if isinstance(found.event, SwitchSet):
            if is_later(found.event, switched.get(found.cluster)):
                switched[found.cluster] = found.event
            return
        if isinstance(found.event, SIGNED):
            return  # neither a decision nor an answer makes a cluster
        try:
            self._cells.in_rebuild(found.cluster).rebuild_from(found.event, self._clock())
        except Exception as error:
            incoming = Incoming(topic, record.offset, found.cluster, found.event, record)
            raise PoisonError(found.cluster, [incoming], error) from error
