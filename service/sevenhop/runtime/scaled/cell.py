"""One cluster on a worker: its engine, its rows in the partition's store, its outbox."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from datetime import datetime, timedelta

import msgspec

from sevenhop.channels.channel import Channel
from sevenhop.core.engine import Engine, Step
from sevenhop.core.events import Applied, Event, StepDone
from sevenhop.runtime.acting import Acting
from sevenhop.runtime.clock import Clock
from sevenhop.runtime.embedded import RECALL_WITHIN_S
from sevenhop.runtime.outbox import Outbox
from sevenhop.runtime.recall import Recall
from sevenhop.runtime.scaled.remote import Heard
from sevenhop.runtime.scaled.sight import Sight
from sevenhop.sources.kubernetes.sharing import Sharing
from sevenhop.stores.redis import RedisStore
from sevenhop.stores.redis_fence import Changes, Fence

log = logging.getLogger("sevenhop.worker")

Emit = Callable[[list[Event]], Awaitable[None]]


class Parts(msgspec.Struct, frozen=True):
    """
    What every cell of a worker is made of.

    Attributes:
        build_engine: An empty engine of a cluster, with the rules that hold now.
        channels: Shared by all clusters.
        build_acting: Hands in a cluster, given its engine and how its edge is heard; None where nothing is carried out.
        silence: See `Sight`.
    """

    build_engine: Callable[[str], Engine]
    channels: Mapping[str, Channel]
    clock: Clock
    silence: timedelta
    build_acting: Callable[[str, Engine, Callable[[], Heard]], Acting | None] = lambda _cluster, _engine, _heard: None


class Cell:
    """
    Mutable, owned by one partition.

    Attributes:
        wake: When the engine wants to be called; None if never.
    """

    def __init__(self, cluster: str, parts: Parts, fence: Fence, *, is_whole: bool) -> None:
        self.cluster = cluster
        self.engine = parts.build_engine(cluster)
        self.store = RedisStore(fence, cluster)
        self.sight = Sight(parts.silence, parts.clock(), is_whole=is_whole)
        acting = parts.build_acting(cluster, self.engine, self.heard)
        self.outbox = Outbox(self.store, parts.channels, parts.clock, acting)
        self.wake: datetime | None = None
        self._sharing = Sharing()
        self._channels = parts.channels
        self._clock = parts.clock
        self._fence = fence

    def heard(self) -> Heard:
        """How its edge is heard; while nothing can be stored its words wait here, and the silence is ours."""
        silent_s = (self._clock() - self.sight.heard_at) / timedelta(seconds=1)
        return Heard(silent_s=0.0 if self._fence.stalled else max(silent_s, 0.0), term=self.sight.term)

    def load(self, changes: Changes, now: datetime) -> None:
        """Take over what is stored, before the first event."""
        step = self.engine.load(self.store.rows(), now, self.store.last_record())
        for problem in self.engine.problems:
            log.warning("cluster %s: state not understood, left out: %s", self.cluster, problem)
        self.stage(changes, step, (), now)

    def rebuild_from(self, event: Event, now: datetime) -> None:
        """Take in what was true before the stored position: no step is made of it yet."""
        for each in self.sight.take(event, now):
            self._share(each)
            self.engine.inventory.apply(each)

    def handle(self, changes: Changes, events: Sequence[Event], now: datetime) -> Step:
        """One step of the engine, staged."""
        for event in events:
            self._share(event)
        step = self.engine.handle(events, now)
        self.stage(changes, step, events, now)
        return step

    def _share(self, event: Event) -> None:
        """What comes by way of Kafka has a copy of its own of everything, unlike what a source here tells."""
        if isinstance(event, Applied):
            self._sharing.share(event.obj)

    def stage(self, changes: Changes, step: Step, events: Sequence[Event], now: datetime) -> None:
        """Put a step into a write; it is done once that is stored."""
        self.wake = step.next_wake
        heard = [event.effect_id for event in events if isinstance(event, StepDone)]
        self.store.stage(changes, step.saves, step.effects, step.records, heard=heard, now=now.timestamp())

    async def run(self, emit: Emit) -> None:
        """Deliver, until cancelled; what comes of it goes to `emit`."""
        self.outbox.start_with(emit)
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self.outbox.run(), name=f"outbox of {self.cluster}")
            if self.engine.desk.may_have_forgotten(self._clock()):
                tasks.create_task(Recall(self._channels, self._clock).run(emit), name=f"recall of {self.cluster}")

    async def ask_channels(self) -> list[Event]:
        """After an empty start: what the channels still show, before anything is told anew."""
        if not self.engine.desk.may_have_forgotten(self._clock()):
            return []
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(RECALL_WITHIN_S):
                return await Recall(self._channels, self._clock).once()
        return []
