"""The clusters of one partition, each with its cell, and what stands in Kafka of their kill switches."""

from __future__ import annotations

import logging
from collections.abc import Callable
from datetime import datetime

from sevenhop.core.engine import Step
from sevenhop.core.events import Event, SwitchSet
from sevenhop.runtime.scaled.cell import Cell, Parts
from sevenhop.runtime.scaled.decisions import remembered
from sevenhop.runtime.scaled.incoming import Incoming
from sevenhop.stores.redis_fence import Changes, Fence

log = logging.getLogger("sevenhop.worker")


class PoisonError(Exception):
    """The engine fails on these records, or on one of them; what it holds in memory is not to be trusted any more."""

    def __init__(self, cluster: str, records: list[Incoming], error: Exception) -> None:
        super().__init__(f"cluster {cluster}: {type(error).__name__}: {error}")
        self.records = records


class Cells:
    """
    Mutable, owned by one partition.

    Args:
        objects: The topic of what is true.

    Attributes:
        by_name: Cluster to its cell.
        switched: Cluster to the last word on its kill switch, as the topic of objects keeps it.
        on_cell: Told of each cluster that begins here.
        whole_at: The offset at which what is true was read to the end that it had when the rebuild began.
    """

    def __init__(self, parts: Parts, fence: Fence, objects: str) -> None:
        self._parts = parts
        self._fence = fence
        self._objects = objects
        self.by_name: dict[str, Cell] = {}
        self.switched: dict[str, SwitchSet] = {}
        self.on_cell: list[Callable[[Cell], None]] = []
        self.whole_at = 0

    def clear(self) -> None:
        """Before a rebuild."""
        self.by_name = {}
        self.switched.clear()

    def is_behind(self) -> bool:
        """Whether what is true is not yet read to `whole_at`, as far as it is stored."""
        return self._fence.offsets.get(self._objects, 0) < self.whole_at

    def in_rebuild(self, cluster: str) -> Cell:
        """The cell of a cluster of which something is stored, or kept in Kafka."""
        return self.by_name.get(cluster) or self._begin(cluster, is_whole=False)

    def in_stream(self, cluster: str, now: datetime) -> Cell:
        """
        The cell of a cluster that the stream speaks of.

        One that begins here has no state, else the rebuild had found it; a stop that was said before it was lost holds
        for it all the same.
        """
        cell = self.by_name.get(cluster)
        if cell is None:
            cell = self._begin(cluster, is_whole=not self.is_behind())
            if self.stop_again(cluster, now):
                log.warning("cluster %s comes back, and its kill switch is on: that was said before", cluster)
        return cell

    def stop_again(self, cluster: str, now: datetime) -> bool:
        """Take a stop over into a cell without state; whether there was one."""
        switched = self.switched.get(cluster)
        if switched is None or not switched.is_on:
            return False
        self.by_name[cluster].engine.remediation.remember(remembered(switched), now)
        return True

    def handle(
        self, changes: Changes, cluster: str, events: list[Event], records: list[Incoming], now: datetime
    ) -> Step:
        """
        One step of a cluster's engine, staged.

        Raises:
            PoisonError: It fails, on these records.
        """
        try:
            return self.by_name[cluster].handle(changes, events, now)
        except Exception as error:
            raise PoisonError(cluster, records, error) from error

    def _begin(self, cluster: str, *, is_whole: bool) -> Cell:
        cell = self.by_name[cluster] = Cell(cluster, self._parts, self._fence, is_whole=is_whole)
        for tell in self.on_cell:
            tell(cell)
        return cell
