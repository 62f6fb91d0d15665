"""
One partition on a worker: what Kafka brings and what we did ourselves, in one line, each step in one write.

    rebuild   state from Redis, inventory from the compacted topic up to the stored offset; the stream waits meanwhile
    run       records, outcomes and the passing of time → a step of each cluster's engine → state, effects and the next
              offset in one fenced write → only then replies and deliveries

A step is never done twice: its offset is stored with it, and what is below it is skipped.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from time import monotonic
from typing import Any, Protocol

from sevenhop.core.alerts.rule import Rule
from sevenhop.core.engine import Step
from sevenhop.core.events import Event, Silenced, SwitchSet
from sevenhop.runtime.codec import Answered, Read, RecordError
from sevenhop.runtime.scaled.cell import Cell, Parts
from sevenhop.runtime.scaled.decisions import is_later, refusal_of, remembered, stored_of, why_refused
from sevenhop.runtime.scaled.incoming import Batch, Held
from sevenhop.runtime.scaled.incoming import Incoming as Incoming
from sevenhop.runtime.scaled.incoming import Own as Own
from sevenhop.runtime.scaled.signing import SIGNED
from sevenhop.runtime.scaled.topics import Topics
from sevenhop.stores.redis import clusters_in
from sevenhop.stores.redis_fence import Changes, Fence
from sevenhop.telemetry.times import StepTimes

log = logging.getLogger("sevenhop.worker")

WAITING = 2000
"""Records that may wait; then the stream waits, and Kafka keeps what we have not read."""

STEP_EVENTS = 200
"""Events of one step: a few milliseconds, as in the embedded runtime."""

GATHER_S, QUIET_S = 0.05, 0.001
"""How long a step waits for more at most, and after how long without any it does not: a calm stream is not held up."""

LOOK_EVERY = timedelta(seconds=1)
SHORTEST_WAIT_S = 0.005

SETTLES_S = 0.3
"""After what is true was read to its end: verdicts are made anew at most every 100 ms, and decisions need them."""


class Kafka(Protocol):
    """What a partition needs of Kafka beside its stream."""

    async def ends(self, topic: str) -> tuple[int, int]: ...

    def records(self, topic: str, start: int, end: int) -> Any: ...

    def read(self, record: Any) -> Read:
        """What a record holds; `RecordError` where that is not to be taken."""
        ...

    async def bury(self, topic: str, record: Any, reason: str) -> None: ...


Watch = Callable[[Mapping[str, Sequence[Event]], Mapping[str, Step], StepTimes], None]
"""Takes events and step of each cluster, and how long they took together."""


class PoisonError(Exception):
    """The engine fails on these records, or on one of them; what it holds in memory is not to be trusted any more."""

    def __init__(self, cluster: str, records: list[Incoming], error: Exception) -> None:
        super().__init__(f"cluster {cluster}: {type(error).__name__}: {error}")
        self.records = records


class Partition:
    """
    Mutable; one task runs it, one feeds it.

    Attributes:
        next: Topic to the offset that the stream brings next.
        is_ready: Rebuilt, and takes records.
        careful_until: Topic to an offset up to which records are handled one by one.
        skipped: Topic and offset of records that are buried already.
        switched: Cluster to the last word on its kill switch, as the topic of objects keeps it.
        steps, stored_at: How many steps were stored, and when (of the loop's clock) the last one.
    """

    def __init__(
        self,
        number: int,
        fence: Fence,
        topics: Topics,
        parts: Parts,
        kafka: Kafka,
        standing: Sequence[Event] = (),
    ) -> None:
        """
        Args:
            standing: What every cluster is told when it begins; may change.
        """
        self.number = number
        self.fence = fence
        self._topics = topics
        self._parts = parts
        self._kafka = kafka
        self._standing = standing
        self.next: dict[str, int] = {}
        self.cells: dict[str, Cell] = {}
        self.is_ready = False
        self.careful_until: dict[str, int] = {}
        self.skipped: set[tuple[str, int]] = set()
        self.switched: dict[str, SwitchSet] = {}
        self.observers: list[Callable[[str, Step], None]] = []
        self.watches: list[Watch] = []  # told of what was stored
        self.on_cell: list[Callable[[Cell], None]] = []  # told of each cluster that begins here
        self.steps = 0
        self._whole_at = 0
        self._settled_at = 0.0  # of the loop's clock: decisions wait until then
        self._is_stepping = False
        self._looked_at: datetime | None = None
        self._queue: asyncio.Queue[Incoming | Own] = asyncio.Queue(maxsize=WAITING)
        self._held = Held(topics.signals, WAITING, self._is_careful)
        self._tasks: asyncio.TaskGroup | None = None
        self._running: set[str] = set()
        self._rules: tuple[Rule, ...] | None = None  # that came after we began
        self._awaited: set[asyncio.Future[None]] = set()

    # What others hand in

    async def put(self, item: Incoming) -> None:
        """The next record of the stream; waits while we are behind."""
        self.next[item.topic] = item.offset + 1
        await self._queue.put(item)

    async def emit(self, cluster: str, events: list[Event]) -> None:
        if events:
            await self._queue.put(Own(cluster, events))

    async def reload(self, rules: Iterable[Rule]) -> None:
        """Go on with other rules in all clusters, stored like any other step; while we rebuild, right after it."""
        self._rules = tuple(rules)
        waiting = []
        for cluster in list(self.cells):
            if not self.is_ready:
                break
            stored: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self._awaited.add(stored)
            stored.add_done_callback(self._awaited.discard)
            waiting.append(stored)
            await self._queue.put(Own(cluster, [], stored, self._rules))
        for stored in waiting:
            await stored

    def failed_on(self, item: Incoming) -> None:
        """It is left out; if somebody decided it, they are told, and do not send it again."""
        if item.event is not None:
            self._observed(
                item.cluster, refusal_of(item.event, "the worker failed on it, see its log; nothing was done")
            )

    def release(self) -> None:
        """
        Nothing that waits here is handled any more, so nobody may wait for it.

        Whoever has the partition next reads it again: no offset of it is stored.
        """
        self.is_ready = False
        before, self._queue = self._queue, asyncio.Queue(maxsize=WAITING)
        while not before.empty():
            before.get_nowait()  # which lets in one of those that wait before a full queue
        for stored in list(self._awaited):
            if not stored.done():
                stored.set_result(None)

    @property
    def is_idle(self) -> bool:
        """Everything that was taken is stored, and nothing waits to be delivered."""
        is_told = not any(cell.store.receivers() for cell in self.cells.values())
        is_empty = self._queue.empty() and not self._held
        return self.is_ready and not self._is_stepping and is_empty and is_told

    @property
    def waiting(self) -> int:
        """Records and events that were taken and are not stored."""
        return self._queue.qsize() + len(self._held)

    # Rebuilding

    async def rebuild(self) -> None:
        """
        From nothing to where the stored state stands; the fence must be claimed.

        Raises:
            ReadError: Kafka went away; again later.
            FencedError: The partition is another's.
        """
        self.release()
        self.cells, self._running = {}, set()
        self.switched.clear()
        self._held.clear()
        objects, signals = self._topics.inputs
        _, end = await self._kafka.ends(objects)
        is_anew = objects not in self.fence.offsets
        start = await self._start(objects, end)
        changes = Changes(offsets={objects: start, signals: await self._signals_start(signals)})
        self._whole_at = end
        now = self._parts.clock()
        for cluster in sorted(clusters_in(self.fence.fields)):
            cell = self._cell(cluster)
            await cell.store.load_trail()
            cell.load(changes, now)
        async for batch in self._kafka.records(objects, 0, start):
            for record in batch:
                await self._take_back(objects, record)
        now, began = self._parts.clock(), monotonic()
        steps: dict[str, Step] = {}
        for cluster, cell in self.cells.items():
            events = await cell.ask_channels()
            if is_anew and (switched := self.switched.get(cluster)) is not None and switched.is_on:
                cell.engine.remediation.remember(remembered(switched), now)
            if start >= end:
                events += cell.sight.whole()
            # Everything is derived at once: seconds in a large cluster.  Nobody else touches the cell yet, and in a
            # thread it holds up neither the other partitions nor the membership.
            steps[cluster] = await asyncio.to_thread(self._handle, changes, cluster, events, [], now)
        self.next = dict(changes.offsets)
        decided = monotonic()
        await self.fence.write(changes)
        self.is_ready = True
        self._watched({}, steps, StepTimes(now, self._parts.clock(), decided - began, monotonic() - decided))

    async def _start(self, topic: str, end: int) -> int:
        """Where the stream goes on.  Without a stored offset all that is there is history: the level counts."""
        stored = self.fence.offsets.get(topic)
        if stored is not None and stored > end:
            log.error("%s/%d: was made anew: our place %d is behind its end %d", topic, self.number, stored, end)
            stored = None
        return end if stored is None else stored

    async def _signals_start(self, topic: str) -> int:
        first, end = await self._kafka.ends(topic)
        stored = self.fence.offsets.get(topic)
        if stored is None or stored > end:
            return end  # what people decided before our state began is not decided again: they see that, and ask again
        if stored < first:
            log.error("%s/%d: %d records were dropped before we read them", topic, self.number, first - stored)
        return max(stored, first)

    async def _take_back(self, topic: str, record: Any) -> None:
        if (topic, record.offset) in self.skipped:
            return
        try:
            found = self._kafka.read(record)
        except RecordError:
            return  # buried when the stream brought it
        if isinstance(found.event, SwitchSet):
            if is_later(found.event, self.switched.get(found.cluster)):
                self.switched[found.cluster] = found.event
            return
        if isinstance(found.event, Answered) or isinstance(found.event, SIGNED):  # noqa: SIM101  SIGNED is a tuple
            return  # a decision makes no cluster
        try:
            self._cell(found.cluster).rebuild_from(found.event, self._parts.clock())
        except Exception as error:
            incoming = Incoming(topic, record.offset, found.cluster, found.event, record)
            raise PoisonError(found.cluster, [incoming], error) from error

    def _cell(self, cluster: str) -> Cell:
        cell = self.cells.get(cluster)
        if cell is None:
            is_whole = self.is_ready and not self._is_behind()
            cell = self.cells[cluster] = Cell(cluster, self._parts, self.fence, is_whole=is_whole)
            for tell in self.on_cell:
                tell(cell)
        return cell

    def _is_behind(self) -> bool:
        return self.fence.offsets.get(self._topics.objects, 0) < self._whole_at

    # Running

    async def run(self) -> None:
        """
        Until cancelled.

        Raises:
            ExceptionGroup: Of a `FencedError`, a `PoisonError`, or what else failed.
        """
        async with asyncio.TaskGroup() as tasks:
            self._tasks = tasks
            self._run_cells()
            while True:
                batch = await self._next()
                await self._step(batch)
                if self._held and not self._is_behind():
                    await self._step([])  # those that are handled one by one have their turn, however much else comes
                self._is_stepping = False

    def _run_cells(self) -> None:
        assert self._tasks is not None
        for cluster, cell in self.cells.items():
            if cluster not in self._running:
                self._running.add(cluster)

                async def emit(events: list[Event], of: str = cluster) -> None:
                    await self.emit(of, events)

                self._tasks.create_task(cell.run(emit), name=f"cell {cluster}")
                self._tasks.create_task(self.emit(cluster, list(self._standing)))
                if self._rules is not None:
                    self._tasks.create_task(self._queue.put(Own(cluster, [], None, self._rules)))

    async def _next(self) -> list[Incoming | Own]:
        wakes = [cell.wake for cell in self.cells.values() if cell.wake is not None]
        now = self._parts.clock()
        wait_s = min([LOOK_EVERY, *(wake - now for wake in wakes)]) / timedelta(seconds=1)
        real_s = self._parts.clock.real_s(max(wait_s, SHORTEST_WAIT_S))
        if self._held and not self._is_behind():
            real_s = min(real_s, max(self._settled_at - asyncio.get_running_loop().time(), SHORTEST_WAIT_S))
        try:
            async with asyncio.timeout(real_s):
                first = await self._queue.get()
        except TimeoutError:
            return []
        self._is_stepping = True
        batch = [first]
        if not self._is_careful(first):
            await self._gather(batch)
        return batch

    async def _gather(self, batch: list[Incoming | Own]) -> None:
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

    async def _step(self, batch: Batch) -> None:
        now, began = self._parts.clock(), monotonic()
        changes = Changes()
        events: dict[str, list[Event]] = {}
        records: dict[str, list[Incoming]] = {}
        answers: list[tuple[str, Step]] = []  # that no engine gives
        was_behind, loop = self._is_behind(), asyncio.get_running_loop()
        batch = self._held.let_through(batch, is_behind=was_behind or loop.time() < self._settled_at)
        for item in batch:
            if isinstance(item, Incoming):
                changes.offsets[item.topic] = item.offset + 1
                if item.event is None:
                    continue
                if why := why_refused(item.event, now, is_known=item.cluster in self.cells):
                    await self._kafka.bury(item.topic, item.record, why)
                    answers.append((item.cluster, refusal_of(item.event, why)))
                else:
                    if isinstance(item.event, Silenced):
                        answers.append((item.cluster, stored_of(item.event)))
                    taken = self._cell(item.cluster).sight.take(item.event, now)
                    events.setdefault(item.cluster, []).extend(taken)
                    records.setdefault(item.cluster, []).append(item)
            elif item.cluster in self.cells:
                events.setdefault(item.cluster, []).extend(item.events)
        self._see(changes, events, now)
        steps = {
            cluster: self._handle(changes, cluster, events.get(cluster, []), records.get(cluster, []), now)
            for cluster, cell in self.cells.items()
            if cluster in events or (cell.wake is not None and cell.wake <= now)
        }
        steps |= self._reloaded(changes, batch, now)
        decided = monotonic()
        if changes.fields or changes.offsets or changes.audit:
            await self.fence.write(changes)
        self.steps += 1
        if was_behind and not self._is_behind():
            self._settled_at = loop.time() + SETTLES_S
        self._watched(events, steps, StepTimes(now, self._parts.clock(), decided - began, monotonic() - decided))
        self._run_cells()
        for cluster, step in steps.items():
            self._tell(cluster, step)
        for cluster, step in answers:
            self._observed(cluster, step)
        for item in batch:
            if isinstance(item, Own) and item.stored is not None and not item.stored.done():
                item.stored.set_result(None)
        await asyncio.sleep(0)

    def _watched(self, events: Mapping[str, Sequence[Event]], steps: Mapping[str, Step], times: StepTimes) -> None:
        for watch in self.watches if steps else ():
            watch(events, steps, times)

    def _see(self, changes: Changes, events: dict[str, list[Event]], now: datetime) -> None:
        """What nobody says: that the stream has caught up, and that an edge is silent."""
        is_whole = changes.offsets.get(self._topics.objects, 0) >= self._whole_at
        is_due = self._looked_at is None or now - self._looked_at >= LOOK_EVERY
        if is_due:
            self._looked_at = now
        for cluster, cell in self.cells.items():
            found = (cell.sight.whole() if is_whole else []) + (cell.sight.look(now) if is_due else [])
            if found:
                events.setdefault(cluster, []).extend(found)

    def _handle(
        self, changes: Changes, cluster: str, events: list[Event], records: list[Incoming], now: datetime
    ) -> Step:
        try:
            return self.cells[cluster].handle(changes, events, now)
        except Exception as error:
            raise PoisonError(cluster, records, error) from error

    def _reloaded(self, changes: Changes, batch: Batch, now: datetime) -> dict[str, Step]:
        steps = {}
        for item in batch:
            if isinstance(item, Own) and item.rules is not None and item.cluster in self.cells:
                cell = self.cells[item.cluster]
                step, _ = cell.engine.reload(item.rules, now)
                cell.stage(changes, step, (), now)
                steps[item.cluster] = step
        return steps

    def _tell(self, cluster: str, step: Step) -> None:
        if step.effects:
            self.cells[cluster].outbox.nudge()
        self._observed(cluster, step)

    def _observed(self, cluster: str, step: Step) -> None:
        for observe in self.observers:
            observe(cluster, step)
