"""
One partition on a worker: what Kafka brings and what we did ourselves, in one line, each step in one write.

    rebuild   state from Redis, inventory from the compacted topic up to the stored offset; the stream waits meanwhile
              (`rebuilding`)
    run       records, outcomes and the passing of time (`intake`) → a step of each cluster's engine (`stepping`) →
              state, effects and the next offset in one fenced write → only then replies and deliveries

A step is never done twice: its offset is stored with it, and what is below it is skipped.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import timedelta
from time import monotonic

from sevenhop.core.alerts.rule import Rule
from sevenhop.core.engine import Step
from sevenhop.core.events import Event, SwitchSet
from sevenhop.runtime.scaled.beside import Kafka
from sevenhop.runtime.scaled.cell import Cell, Parts
from sevenhop.runtime.scaled.cells import Cells
from sevenhop.runtime.scaled.cells import PoisonError as PoisonError
from sevenhop.runtime.scaled.decisions import refusal_of
from sevenhop.runtime.scaled.incoming import Batch
from sevenhop.runtime.scaled.incoming import Incoming as Incoming
from sevenhop.runtime.scaled.incoming import Own as Own
from sevenhop.runtime.scaled.intake import STEP_EVENTS as STEP_EVENTS
from sevenhop.runtime.scaled.intake import WAITING as WAITING
from sevenhop.runtime.scaled.intake import Intake
from sevenhop.runtime.scaled.rebuilding import Rebuilding
from sevenhop.runtime.scaled.stepping import LOOK_EVERY, Stepping
from sevenhop.runtime.scaled.topics import Topics
from sevenhop.stores.redis_fence import Fence
from sevenhop.telemetry.times import StepTimes

SHORTEST_WAIT_S = 0.005

SETTLES_S = 0.3
"""After what is true was read to its end: verdicts are made anew at most every 100 ms, and decisions need them."""

Watch = Callable[[Mapping[str, Sequence[Event]], Mapping[str, Step], StepTimes], None]
"""Takes events and step of each cluster, and how long they took together."""


class Partition:
    """
    Mutable; one task runs it, one feeds it.

    Attributes:
        next: Topic to the offset that the stream brings next.
        is_ready: Rebuilt, and takes records.
        skipped: Topic and offset of records that are buried already.
        observers: Told of each step of a cluster once it is stored, and of answers that no engine gives.
        watches: Told of what was stored.
        steps: How many steps were stored.
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
        self.is_ready = False
        self.skipped: set[tuple[str, int]] = set()
        self.observers: list[Callable[[str, Step], None]] = []
        self.watches: list[Watch] = []
        self.steps = 0
        objects, signals = topics.inputs
        self._cells = Cells(parts, fence, objects)
        self._intake = Intake(signals)
        self._stepping = Stepping(self._cells, kafka, objects)
        self._settled_at = 0.0  # of the loop's clock: decisions wait until then
        self._tasks: asyncio.TaskGroup | None = None
        self._running: set[str] = set()
        self._rules: tuple[Rule, ...] | None = None  # that came after we began
        self._awaited: set[asyncio.Future[None]] = set()

    @property
    def cells(self) -> dict[str, Cell]:
        """Cluster to its cell."""
        return self._cells.by_name

    @property
    def switched(self) -> dict[str, SwitchSet]:
        """Cluster to the last word on its kill switch, as the topic of objects keeps it."""
        return self._cells.switched

    @property
    def on_cell(self) -> list[Callable[[Cell], None]]:
        """Told of each cluster that begins here."""
        return self._cells.on_cell

    @property
    def careful_until(self) -> dict[str, int]:
        """Topic to an offset up to which records are handled one by one."""
        return self._intake.careful_until

    @property
    def is_idle(self) -> bool:
        """Everything that was taken is stored, and nothing waits to be delivered."""
        is_told = not any(cell.store.receivers() for cell in self.cells.values())
        return self.is_ready and self._intake.is_idle and is_told

    @property
    def waiting(self) -> int:
        """Records and events that were taken and are not stored."""
        return self._intake.waiting

    # What others hand in

    async def put(self, item: Incoming) -> None:
        """The next record of the stream; waits while we are behind."""
        self.next[item.topic] = item.offset + 1
        await self._intake.put(item)

    async def emit(self, cluster: str, events: list[Event]) -> None:
        if events:
            await self._intake.put(Own(cluster, events))

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
            await self._intake.put(Own(cluster, [], stored, self._rules))
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
        self._intake.drop()
        for stored in list(self._awaited):
            if not stored.done():
                stored.set_result(None)

    # At work

    async def rebuild(self) -> None:
        """
        From nothing to where the stored state stands; the fence must be claimed.

        Raises:
            ReadError: Kafka went away; again later.
            FencedError: The partition is another's.
        """
        self.release()
        self._running = set()
        self._intake.forget_held()
        rebuilding = Rebuilding(
            self.number, self._cells, self.fence, self._topics, self._kafka, self.skipped, self._parts.clock
        )
        found = await rebuilding.rebuild()
        self.next = dict(found.changes.offsets)
        decided = monotonic()
        await self.fence.write(found.changes)
        self.is_ready = True
        times = StepTimes(found.at, self._parts.clock(), found.engine_s, monotonic() - decided)
        self._watched({}, found.steps, times)

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
                if self._intake.holds and not self._cells.is_behind():
                    await self._step([])  # those that are handled one by one have their turn, however much else comes
                self._intake.is_stepping = False

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
                    self._tasks.create_task(self._intake.put(Own(cluster, [], None, self._rules)))

    async def _next(self) -> list[Incoming | Own]:
        """What the next step is made of; nothing when a cluster wants to be called, or it is time to look around."""
        wakes = [cell.wake for cell in self.cells.values() if cell.wake is not None]
        now = self._parts.clock()
        wait_s = min([LOOK_EVERY, *(wake - now for wake in wakes)]) / timedelta(seconds=1)
        real_s = self._parts.clock.real_s(max(wait_s, SHORTEST_WAIT_S))
        if self._intake.holds and not self._cells.is_behind():
            real_s = min(real_s, max(self._settled_at - asyncio.get_running_loop().time(), SHORTEST_WAIT_S))
        return await self._intake.gather(real_s)

    async def _step(self, batch: Batch) -> None:
        now, began = self._parts.clock(), monotonic()
        was_behind, loop = self._cells.is_behind(), asyncio.get_running_loop()
        batch = self._intake.let_through(batch, is_behind=was_behind or loop.time() < self._settled_at)
        done = await self._stepping.step(batch, now)
        changes, decided = done.changes, monotonic()
        if changes.fields or changes.offsets or changes.audit:
            await self.fence.write(changes)
        self.steps += 1
        if was_behind and not self._cells.is_behind():
            self._settled_at = loop.time() + SETTLES_S
        times = StepTimes(now, self._parts.clock(), decided - began, monotonic() - decided)
        self._watched(done.events, done.steps, times)
        self._run_cells()
        for cluster, step in done.steps.items():
            self._tell(cluster, step)
        for cluster, step in done.answers:
            self._observed(cluster, step)
        for item in batch:
            if isinstance(item, Own) and item.stored is not None and not item.stored.done():
                item.stored.set_result(None)
        await asyncio.sleep(0)

    # Once it is stored

    def _watched(self, events: Mapping[str, Sequence[Event]], steps: Mapping[str, Step], times: StepTimes) -> None:
        for watch in self.watches if steps else ():
            watch(events, steps, times)

    def _tell(self, cluster: str, step: Step) -> None:
        if step.effects:
            self.cells[cluster].outbox.nudge()
        self._observed(cluster, step)

    def _observed(self, cluster: str, step: Step) -> None:
        for observe in self.observers:
            observe(cluster, step)
