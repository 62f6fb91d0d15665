"""One batch of a partition becomes one step of each cluster that it is about, all staged for one write."""

from __future__ import annotations

from datetime import datetime, timedelta

import msgspec

from sevenhop.core.engine import Step
from sevenhop.core.events import Event, Silenced
from sevenhop.runtime.scaled.beside import Kafka
from sevenhop.runtime.scaled.cells import Cells
from sevenhop.runtime.scaled.decisions import refusal_of, stored_of, why_refused
from sevenhop.runtime.scaled.incoming import Batch, Incoming, Own
from sevenhop.stores.redis_fence import Changes

LOOK_EVERY = timedelta(seconds=1)


class Stepped(msgspec.Struct, frozen=True):
    """
    What is to be stored, and then told.

    Attributes:
        events, steps: By cluster.
        answers: Cluster and a step that no engine gives: refusals, and that a silence is stored.
    """

    changes: Changes
    events: dict[str, list[Event]]
    steps: dict[str, Step]
    answers: list[tuple[str, Step]]


class Stepping:
    """
    Mutable, owned by one partition.

    Args:
        objects: The topic of what is true.
    """

    def __init__(self, cells: Cells, kafka: Kafka, objects: str) -> None:
        self._cells = cells
        self._kafka = kafka
        self._objects = objects
        self._looked_at: datetime | None = None

    async def step(self, batch: Batch, now: datetime) -> Stepped:
        """
        Raises:
            PoisonError: An engine fails on it.
        """
        changes = Changes()
        events: dict[str, list[Event]] = {}
        records: dict[str, list[Incoming]] = {}
        answers: list[tuple[str, Step]] = []
        cells = self._cells
        for item in batch:
            if isinstance(item, Incoming):
                changes.offsets[item.topic] = item.offset + 1
                if item.event is None:
                    continue
                if why := why_refused(item.event, now, is_known=item.cluster in cells.by_name):
                    await self._kafka.bury(item.topic, item.record, why)
                    answers.append((item.cluster, refusal_of(item.event, why)))
                else:
                    if isinstance(item.event, Silenced):
                        answers.append((item.cluster, stored_of(item.event)))
                    taken = cells.in_stream(item.cluster, now).sight.take(item.event, now)
                    events.setdefault(item.cluster, []).extend(taken)
                    records.setdefault(item.cluster, []).append(item)
            elif item.cluster in cells.by_name:
                events.setdefault(item.cluster, []).extend(item.events)
        self._see(changes, events, now)
        steps = {
            cluster: cells.handle(changes, cluster, events.get(cluster, []), records.get(cluster, []), now)
            for cluster, cell in cells.by_name.items()
            if cluster in events or (cell.wake is not None and cell.wake <= now)
        }
        steps |= self._reloaded(changes, batch, now)
        return Stepped(changes, events, steps, answers)

    def _see(self, changes: Changes, events: dict[str, list[Event]], now: datetime) -> None:
        """What nobody says: that the stream has caught up, and that an edge is silent."""
        is_whole = changes.offsets.get(self._objects, 0) >= self._cells.whole_at
        is_due = self._looked_at is None or now - self._looked_at >= LOOK_EVERY
        if is_due:
            self._looked_at = now
        for cluster, cell in self._cells.by_name.items():
            found = (cell.sight.whole() if is_whole else []) + (cell.sight.look(now) if is_due else [])
            if found:
                events.setdefault(cluster, []).extend(found)

    def _reloaded(self, changes: Changes, batch: Batch, now: datetime) -> dict[str, Step]:
        steps = {}
        for item in batch:
            if isinstance(item, Own) and item.rules is not None and item.cluster in self._cells.by_name:
                cell = self._cells.by_name[item.cluster]
                step, _ = cell.engine.reload(item.rules, now)
                cell.stage(changes, step, (), now)
                steps[item.cluster] = step
        return steps
