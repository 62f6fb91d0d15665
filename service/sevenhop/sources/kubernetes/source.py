"""The Kubernetes source: discovery and one watch per served kind, none of which holds up another."""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import AsyncIterator, Callable, Iterable
from datetime import datetime

import msgspec

from sevenhop.core.events import Event, SyncState
from sevenhop.core.objects.kinds import KINDS, Kind
from sevenhop.sources.kubernetes.api import ApiError, ApiServer, ConnectError, describe
from sevenhop.sources.kubernetes.backoff import Backoff
from sevenhop.sources.kubernetes.discovery import Availability, Served, discover
from sevenhop.sources.kubernetes.limits import Limits
from sevenhop.sources.kubernetes.observe import Record
from sevenhop.sources.kubernetes.status import KindStatus
from sevenhop.sources.kubernetes.watch import FAILURES, Clock, Emit, EmitError, KindWatch, Sleep


class KubernetesSource:
    """
    Tells everything about `kinds` that one API server serves, for as long as it runs.

    Kinds that appear later are picked up, kinds that vanish are withdrawn (`ABSENT`, their objects `Deleted`), at the
    latest at the next discovery; a watch that meets 404 asks for it at once.

    Args:
        clock: Dates events, UTC; may be virtual.
        sleep, monotonic: Waiting and measuring, in seconds.
        record: Takes each event with its raw object, such as a `Recorder`.
    """

    def __init__(
        self,
        api: ApiServer,
        kinds: Iterable[Kind] | None = None,
        *,
        clock: Clock,
        sleep: Sleep = asyncio.sleep,
        monotonic: Callable[[], float] = time.monotonic,
        limits: Limits | None = None,
        rng: random.Random | None = None,
        record: Record | None = None,
    ) -> None:
        self._api = api
        self._kinds = list(KINDS.values() if kinds is None else kinds)
        if any(kind.kind == "Secret" for kind in self._kinds):
            raise ValueError("Secrets are never read")
        self._clock = clock
        self._sleep = sleep
        self._monotonic = monotonic
        self._limits = limits or Limits()
        self._rng = rng or random.Random()  # noqa: S311  jitter, no secret
        self._record = record
        self._watches: dict[str, KindWatch] = {}
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._rediscover = asyncio.Event()
        self.discovered_at: datetime | None = None
        self.discovery_error = ""

    def status(self) -> list[KindStatus]:
        """One row per kind, in the order of `KINDS`."""
        return [
            self._watches[kind.name].status() if kind.name in self._watches else KindStatus(kind=kind.name)
            for kind in self._kinds
        ]

    async def run(self, emit: Emit) -> None:
        """
        Run until cancelled.

        `emit` gets events of many kinds at once from as many tasks, each call in order within its kind; it may make
        its caller wait, which holds back that kind alone.  What it raises ends the source.
        """
        self._watches = {kind.name: self._watch_of(kind, emit) for kind in self._kinds}
        self._tasks = {}
        try:
            async with asyncio.TaskGroup() as group:
                group.create_task(self._watch_ages(), name="ages")
                await self._discover_for_ever(group)
        except ExceptionGroup as errors:
            first = errors.exceptions[0]
            raise (first.__cause__ if isinstance(first, EmitError) and first.__cause__ else first) from errors

    def _watch_of(self, kind: Kind, emit: Emit) -> KindWatch:
        return KindWatch(
            self._api,
            kind,
            emit,
            clock=self._clock,
            sleep=self._sleep,
            monotonic=self._monotonic,
            limits=self._limits,
            rng=self._rng,
            record=self._record,
            on_missing=self._rediscover.set,
        )

    async def _watch_ages(self) -> None:
        while True:
            await self._sleep(max(0.05, self._limits.silence_s / 10))
            for watch in self._watches.values():
                await watch.check_age()

    async def _discover_for_ever(self, group: asyncio.TaskGroup) -> None:
        backoff = Backoff(self._limits.backoff_base_s, self._limits.backoff_cap_s, self._rng)
        while True:
            self._rediscover.clear()
            try:
                served = await discover(self._api, self._kinds)
            except FAILURES as error:
                self.discovery_error = describe(error, self._api.base_url)
                asked_s = error.retry_after_s or 0.0 if isinstance(error, ApiError) else 0.0
                await self._tell_blind()
                await self._sleep(backoff.next_s(asked_s))
                continue
            backoff.reset()
            self.discovery_error = ""
            self.discovered_at = self._clock()
            for kind in self._kinds:
                await self._follow(group, kind, served[kind.name])
            await self._until_due()

    async def _tell_blind(self) -> None:
        """Kinds that never were discovered are not synced, and say why; those that are watched go on."""
        for name, watch in self._watches.items():
            if name not in self._tasks and watch.status().state is SyncState.NOT_SYNCED:
                await watch.withdraw(SyncState.NOT_SYNCED, self.discovery_error)

    async def _follow(self, group: asyncio.TaskGroup, kind: Kind, served: Served) -> None:
        watch = self._watches[kind.name]
        is_running = kind.name in self._tasks
        if served.availability is Availability.UNCERTAIN:
            if not is_running and watch.status().state is not SyncState.ABSENT:
                await watch.withdraw(SyncState.NOT_SYNCED, served.detail)
            return
        if served.availability is Availability.SERVED:
            if is_running and watch.version == served.version:
                return
            await self._stop(kind)
            self._tasks[kind.name] = group.create_task(watch.run(served.version), name=f"watch {kind.name}")
            return
        await self._stop(kind)
        is_absent = served.availability is Availability.ABSENT
        await watch.withdraw(SyncState.ABSENT if is_absent else SyncState.NOT_SYNCED, served.detail)

    async def _stop(self, kind: Kind) -> None:
        task = self._tasks.pop(kind.name, None)
        if task is not None:
            task.cancel()
            await asyncio.wait([task])

    async def _until_due(self) -> None:
        """Wait for the next discovery, or until a watch asks for it."""
        due = asyncio.ensure_future(self._sleep(self._limits.discovery_s))
        asked = asyncio.create_task(self._rediscover.wait())
        try:
            await asyncio.wait([due, asked], return_when=asyncio.FIRST_COMPLETED)
        finally:
            due.cancel()
            asked.cancel()


class ListProgress(msgspec.Struct, frozen=True):
    """How far a look at a cluster is; `objects_in_all` grows while servers correct their estimate."""

    kinds_done: int
    kinds: int
    objects: int
    objects_in_all: int


async def list_once(
    api: ApiServer,
    kinds: Iterable[Kind] | None = None,
    *,
    clock: Clock,
    sleep: Sleep = asyncio.sleep,
    limits: Limits | None = None,
    tries: int = 3,
    record: Record | None = None,
    progress: Callable[[ListProgress], None] | None = None,
) -> AsyncIterator[Event]:
    """
    Everything of `kinds` once, without a watch.

    A kind that cannot be listed ends as `FORBIDDEN`, or as `NOT_SYNCED` with the reason; one that is not served as
    `ABSENT`.  Nothing of that stops the others.

    Raises:
        ConnectError: Not even discovery worked; one line with the fix.
    """
    kinds = list(KINDS.values() if kinds is None else kinds)
    limits = limits or Limits()
    try:
        served = await discover(api, kinds)
    except FAILURES as error:
        raise ConnectError(describe(error, api.base_url)) from None
    queue: asyncio.Queue[list[Event] | ExceptionGroup | None] = asyncio.Queue(maxsize=64)
    turns = asyncio.Semaphore(8)  # a look should not weigh on the API server
    watches = {
        k.name: KindWatch(api, k, queue.put, clock=clock, sleep=sleep, limits=limits, record=record) for k in kinds
    }
    finished: set[str] = set()

    async def one(kind: Kind) -> None:
        async with turns:
            await _list_kind(watches[kind.name], served[kind.name], limits, sleep, tries)
        finished.add(kind.name)

    async def feed() -> None:
        try:
            async with asyncio.TaskGroup() as group:
                for kind in kinds:
                    group.create_task(one(kind))
        except ExceptionGroup as errors:
            await queue.put(errors)
        else:
            await queue.put(None)

    feeding = asyncio.create_task(feed())
    try:
        while (batch := await queue.get()) is not None:
            if isinstance(batch, ExceptionGroup):
                raise batch
            for event in batch:
                yield event
            if progress is not None:
                progress(_progress(watches.values(), finished))
    finally:
        feeding.cancel()
        await asyncio.wait([feeding])  # whoever closes the connections next finds nothing under way


async def _list_kind(watch: KindWatch, served: Served, limits: Limits, sleep: Sleep, tries: int) -> None:
    if served.availability is not Availability.SERVED:
        is_absent = served.availability is Availability.ABSENT
        await watch.withdraw(SyncState.ABSENT if is_absent else SyncState.NOT_SYNCED, served.detail)
        return
    backoff = Backoff(limits.backoff_base_s, limits.backoff_cap_s, random.Random())  # noqa: S311  jitter, no secret
    for left in reversed(range(tries)):
        try:
            await watch.list_only(served.version)
        except FAILURES as error:
            if left and not (isinstance(error, ApiError) and error.status in (401, 403, 404)):
                await sleep(backoff.next_s(error.retry_after_s or 0.0 if isinstance(error, ApiError) else 0.0))
                continue
            await watch.give_up(error)
        return


def _progress(watches: Iterable[KindWatch], finished: set[str]) -> ListProgress:
    rows = [watch.status() for watch in watches]
    expected = sum(max(row.objects, row.list_progress[1] if row.list_progress else 0) for row in rows)
    return ListProgress(
        kinds_done=len(finished), kinds=len(rows), objects=sum(row.objects for row in rows), objects_in_all=expected
    )
