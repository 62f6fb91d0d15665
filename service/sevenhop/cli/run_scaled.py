"""`sevenhop run --role worker|edge|all`: a part of the scaled runtime, until stopped."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import signal
from collections.abc import Awaitable, Callable
from typing import Any

from sevenhop.cli.cluster import UnreachableError, cluster_name, connect
from sevenhop.cli.output import UsageError, fail

log = logging.getLogger("sevenhop")

STOP_WITHIN_S = 5.0
EXIT_BROKEN = 5
EXIT_CLAIMED = 75
"""EX_TEMPFAIL: another process has our work; started again, this one takes its share anew."""

AGAIN_AFTER_S = 1.0


async def serve(settings: Any) -> int:
    """Run the role that the settings name; returns the exit code."""
    from sevenhop.runtime.scaled.quiet import quieten
    from sevenhop.runtime.scaled.topics import TopicsError, prepare

    quieten()
    try:
        topics = await prepare(settings.kafka)
    except TopicsError as error:
        *others, last = str(error).splitlines()
        for line in others:
            fail(line)
        raise UsageError(last) from None
    stopping = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stopping.set)
    ended: list[str] = []

    def end(why: str) -> None:
        ended.append(why)
        log.critical("ending: %s", why)
        stopping.set()

    parts: list[Callable[[], Awaitable[None]]] = []
    why_not: list[Callable[[], str]] = []  # one door for the process, whatever runs in it
    if settings.runtime.role in ("all", "worker"):
        parts.append(lambda: _work(settings, topics, end, why_not))
    if settings.runtime.role in ("all", "edge"):
        parts.append(lambda: _watch(settings, topics, why_not))
    running = [asyncio.ensure_future(part()) for part in parts]
    stopped = asyncio.create_task(stopping.wait())
    await asyncio.wait([*running, stopped], return_when=asyncio.FIRST_COMPLETED)
    stopped.cancel()
    code = EXIT_CLAIMED if ended else 0
    raised: Exception | None = None
    for task in running:
        if task.done() and not task.cancelled() and (failure := task.exception()) is not None:
            first = _first(failure)
            if isinstance(first, UsageError | UnreachableError):
                raised = first
                continue
            log.critical("ended, state is safe: %s", first, exc_info=failure)
            code = EXIT_BROKEN
    for task in running:
        task.cancel()
    await asyncio.wait(running, timeout=STOP_WITHIN_S)
    if raised is not None:
        raise raised
    return code


async def _work(settings: Any, topics: Any, end: Callable[[str], None], why_not: list[Callable[[], str]]) -> None:
    from sevenhop.app import build_rulebook
    from sevenhop.app_scaled import build_door, build_worker, redis_of
    from sevenhop.runtime.clock import Clock
    from sevenhop.runtime.garbage import keep_pauses_short
    from sevenhop.runtime.reload import Reloader
    from sevenhop.runtime.scaled.fleet import FleetDoor
    from sevenhop.runtime.scaled.hands import Orders
    from sevenhop.runtime.scaled.watchdog import Watchdog

    clock = Clock()
    rulebook = build_rulebook(settings)
    if rulebook.problems:
        for problem in rulebook.problems:
            fail(str(problem))
        raise UsageError("the rulebook has problems; mend them, or choose other rules with --rules")
    client = redis_of(settings)
    orders = Orders(settings.kafka, topics)
    watchdog = Watchdog(settings.runtime.no_progress.total_seconds())
    server = None
    await orders.start()
    try:
        worker = build_worker(settings, lambda: reloader.rulebook, topics, client, orders, clock, end)
        reloader = Reloader(settings, rulebook, worker)
        door = FleetDoor(worker, client, clock, settings.state)
        why_not.append(worker.why_not_ready)
        if settings.runtime.role == "worker":
            server = build_door(settings, None, ready=lambda: _first_word(why_not))
            if server is not None:
                await server.start()
        watchdog.start()
        log.info(
            "worker of %s with %d rules; receivers: %s",
            ", ".join(settings.kafka.servers), len(rulebook.rules), ", ".join(settings.receivers),
        )  # fmt: skip
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(worker.run(), name="worker")
            tasks.create_task(reloader.run(worker.emit_to_all), name="rules")
            tasks.create_task(door.run(), name="fleet")
            tasks.create_task(_feed(watchdog, worker), name="watchdog")
            tasks.create_task(keep_pauses_short(lambda: not worker.why_not_ready()), name="garbage")
    finally:
        watchdog.stop()
        if server is not None:
            await server.close()
        await orders.close()
        await client.aclose()


async def _feed(watchdog: Any, worker: Any) -> None:
    while True:
        progress, has_work = worker.progress()
        watchdog.tell(progress, has_work=has_work)
        await asyncio.sleep(1.0)


async def _watch(settings: Any, topics: Any, why_not: list[Callable[[], str]]) -> None:
    """The edge: one term after the other, for as long as we live; the door is open in between."""
    import time

    from sevenhop.app import build_gpu_push
    from sevenhop.app_scaled import build_door
    from sevenhop.runtime.clock import Clock
    from sevenhop.runtime.leader import Lease, LeaseLostError
    from sevenhop.runtime.shared import identity

    clock = Clock()
    terms = _Terms()
    why_not.append(terms.why_not_ready)
    async with await connect(settings) as api:
        name = cluster_name(settings)
        push = build_gpu_push(settings, api, terms.emit, clock)
        server = build_door(settings, push, ready=lambda: _first_word(why_not))
        if server is not None:
            await server.start()
        lease = Lease(api, settings.runtime.lease, identity()) if settings.runtime.lease else None
        try:
            while lease is None:
                await _one_term(settings, topics, api, name, int(time.time()), terms)
            while True:
                term = await lease.acquire()
                try:
                    async with asyncio.TaskGroup() as tasks:
                        tasks.create_task(lease.hold(), name="lease")
                        tasks.create_task(_one_term(settings, topics, api, name, term, terms), name="term")
                except* LeaseLostError as lost:
                    log.warning("%s; this replica waits", _first(lost))
        finally:
            if server is not None:
                await server.close()
            if lease is not None:
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(2.0):
                        await lease.release()


class _Terms:
    """The edge that works now, for those who outlive a term."""

    def __init__(self) -> None:
        self._edge: Any = None
        self._there = asyncio.Event()

    def begin(self, edge: Any) -> None:
        self._edge = edge
        self._there.set()

    def end(self) -> None:
        self._edge = None
        self._there.clear()

    async def emit(self, events: list[Any]) -> None:
        """Samples of agents; they wait while no term runs."""
        while self._edge is None:
            await self._there.wait()
        await self._edge.emit(events)

    def why_not_ready(self) -> str:
        return self._edge.why_not_ready() if self._edge is not None else "another replica works"


async def _one_term(settings: Any, topics: Any, api: Any, name: str, term: int, terms: _Terms) -> None:
    """Until cancelled; ends by itself where what an earlier edge told could not be read, and is to be begun anew."""
    from sevenhop.app import build_dcgm
    from sevenhop.app_scaled import build_edge
    from sevenhop.runtime.clock import Clock
    from sevenhop.runtime.scaled.reader import ReadError

    clock = Clock()
    while True:
        edge, sources = build_edge(settings, topics, api, name, term, clock)
        log.info("edge of %s (%s), term %d", name, api.base_url, term)
        terms.begin(edge)
        try:
            await edge.run([*sources, *build_dcgm(settings, clock)])
        except ReadError as error:
            log.error("what an earlier edge told cannot be read yet: %s", error)
            await asyncio.sleep(AGAIN_AFTER_S)
        finally:
            terms.end()


def _first_word(why_not: list[Callable[[], str]]) -> str:
    return next((why for ask in why_not if (why := ask())), "")


def _first(error: BaseException) -> BaseException:
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error
