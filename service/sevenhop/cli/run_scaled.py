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
    from sevenhop.runtime.clock import Clock
    from sevenhop.runtime.scaled.quiet import quieten
    from sevenhop.runtime.scaled.topics import KafkaAwayError, TopicsError, prepare
    from sevenhop.runtime.scaled.watched import Watched

    quieten()
    watched = Watched(settings.telemetry, Clock())
    try:
        topics = await prepare(settings.kafka)
    except KafkaAwayError as error:
        raise UnreachableError(str(error)) from None
    except TopicsError as error:
        *others, last = str(error).splitlines()
        for line in others:
            fail(line)
        raise UsageError(last) from None
    if settings.runtime.role != "edge":
        from sevenhop.app_scaled import redis_of
        from sevenhop.stores.redis_reach import check

        await check(redis_of(settings), settings.redis.url, settings.redis.ca)
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
    posts: asyncio.Future[Any] = loop.create_future()  # what the worker's doors take there
    if settings.runtime.role == "edge":
        posts.set_result({})
    if settings.runtime.role in ("all", "worker"):
        parts.append(lambda: _work(settings, topics, end, why_not, watched, posts))
    if settings.runtime.role in ("all", "edge"):
        parts.append(lambda: _watch(settings, topics, why_not, watched, posts))
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
    watched.close()
    if raised is not None:
        raise raised
    return code


async def _work(
    settings: Any,
    topics: Any,
    end: Callable[[str], None],
    why_not: list[Callable[[], str]],
    watched: Any,
    posts: asyncio.Future[Any],
) -> None:
    from time import monotonic

    from sevenhop.app import build_rulebook
    from sevenhop.app_deciding import build_fleet_doors
    from sevenhop.app_scaled import build_door, build_worker, redis_of
    from sevenhop.runtime.clock import Clock
    from sevenhop.runtime.garbage import keep_pauses_short
    from sevenhop.runtime.reload import Reloader
    from sevenhop.runtime.scaled.orders import Orders
    from sevenhop.runtime.scaled.signing import signing_orders
    from sevenhop.runtime.scaled.watchdog import Watchdog

    clock = Clock()
    rulebook = build_rulebook(settings)
    if rulebook.problems:
        for problem in rulebook.problems:
            fail(str(problem))
        raise UsageError("the rulebook has problems; mend them, or choose other rules with --rules")
    client = redis_of(settings)
    orders = Orders(settings.kafka, topics, signing_orders(settings.runtime.decision_key.get_secret_value()))
    watchdog = Watchdog(settings.runtime.no_progress.total_seconds())
    server = its = None
    doors: list[Any] = []
    await orders.start()
    try:
        worker = build_worker(
            settings, lambda: reloader.rulebook, topics, client, orders, clock, end, meter=watched.meter
        )
        reloader = Reloader(settings, rulebook, worker)
        fleet = build_fleet_doors(settings, worker, client, orders, topics, clock)
        doors.extend(fleet.doors)
        posts.set_result(fleet.posts)
        why_not.append(worker.why_not_ready)
        its = watched.worker(worker, settings.kafka.partitions)
        if settings.runtime.role == "worker":
            server = build_door(
                settings, None, ready=lambda: _first_word(why_not), healthy=lambda: watchdog.verdict(monotonic()),
                gets=watched.routes(), posts=fleet.posts,
            )  # fmt: skip
            if server is not None:
                await server.start()
        watchdog.start()
        log.info(
            "worker of %s with %d rules; receivers: %s",
            ", ".join(settings.kafka.servers), len(rulebook.rules), ", ".join(settings.receivers),
        )  # fmt: skip
        if fleet.unsigned:
            log.warning("%s", fleet.unsigned)
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(worker.run(), name="worker")
            tasks.create_task(its.heartbeat.run(), name="heartbeat")
            tasks.create_task(reloader.run(worker.emit_to_all), name="rules")
            tasks.create_task(fleet.local.run(), name="fleet")
            for door in doors:
                tasks.create_task(door.run(), name="door")
            tasks.create_task(_feed(watchdog, worker), name="watchdog")
            tasks.create_task(keep_pauses_short(lambda: not worker.why_not_ready()), name="garbage")
    finally:
        watchdog.stop()
        if server is not None:
            await server.close()
        if its is not None:
            await its.heartbeat.close()
        for door in doors:
            await door.close()
        await orders.close()
        await client.aclose()


async def _feed(watchdog: Any, worker: Any) -> None:
    while True:
        progress, has_work = worker.progress()
        watchdog.tell(progress, has_work=has_work)
        await asyncio.sleep(1.0)


async def _watch(
    settings: Any, topics: Any, why_not: list[Callable[[], str]], watched: Any, posts: asyncio.Future[Any]
) -> None:
    """The edge: one term after the other, for as long as we live; the door is open in between."""
    import time

    from sevenhop.app import build_gpu_push
    from sevenhop.app_deciding import build_edge_front
    from sevenhop.app_scaled import build_door
    from sevenhop.runtime.clock import Clock
    from sevenhop.runtime.leader import Lease, LeaseLostError
    from sevenhop.runtime.scaled.signing import why_unsigned
    from sevenhop.runtime.shared import identity

    clock = Clock()
    if settings.runtime.role == "edge" and (said := why_unsigned(settings.runtime)):
        log.warning("%s", said)
    terms = _Terms()
    why_not.append(terms.why_not_ready)
    async with await connect(settings) as api:
        name = cluster_name(settings)
        push = build_gpu_push(settings, api, terms.emit, clock)
        its = watched.edge(name, push)
        front, deciding = build_edge_front(settings, api, name, topics, clock, its.order_refused)
        server = build_door(
            settings, push, ready=lambda: _first_word(why_not), gets=watched.routes(),
            posts={**await posts, **deciding},
        )  # fmt: skip
        lease = Lease(api, settings.runtime.lease, identity()) if settings.runtime.lease else None
        listening = asyncio.ensure_future(front.run()) if server is not None else None
        try:
            if server is not None:
                await server.start()
            while lease is None:
                await _one_term(settings, topics, api, name, int(time.time()), terms, its)
            while True:
                terms.waits = True
                term = await lease.acquire()
                terms.waits = False
                try:
                    async with asyncio.TaskGroup() as tasks:
                        tasks.create_task(lease.hold(), name="lease")
                        tasks.create_task(_one_term(settings, topics, api, name, term, terms, its), name="term")
                except* LeaseLostError as lost:
                    log.warning("%s; this replica waits", _first(lost))
        finally:
            if listening is not None:
                listening.cancel()
                await asyncio.wait([listening])
            if server is not None:
                await server.close()
            await its.heartbeat.close()
            if lease is not None:
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(2.0):
                        await lease.release()


class _Terms:
    """The edge that works now, for those who outlive a term."""

    def __init__(self) -> None:
        self._edge: Any = None
        self._there = asyncio.Event()
        self.waits = False  # another replica works

    def begin(self, edge: Any) -> None:
        self._edge = edge
        self._there.set()

    def end(self) -> None:
        self._edge = None
        self._there.clear()

    async def emit(self, events: list[Any]) -> None:
        """
        Samples of agents; they wait between two terms.

        Raises:
            TimeoutError: Another replica works: whoever sends is to ask again, and finds that one.
        """
        while self._edge is None:
            if self.waits:
                raise TimeoutError
            await self._there.wait()
        await self._edge.emit(events)

    def why_not_ready(self) -> str:
        """A replica that waits for its Lease is ready: to take over, and rollouts and drains count on it."""
        if self._edge is not None:
            return str(self._edge.why_not_ready())
        return "" if self.waits else "no term has begun yet"


async def _one_term(settings: Any, topics: Any, api: Any, name: str, term: int, terms: _Terms, watched: Any) -> None:
    """Until cancelled; ends by itself where what an earlier edge told could not be read, and is to be begun anew."""
    from sevenhop.app import build_dcgm
    from sevenhop.app_scaled import build_edge
    from sevenhop.runtime.clock import Clock
    from sevenhop.runtime.garbage import ShortPauses
    from sevenhop.runtime.listening import Listening
    from sevenhop.runtime.scaled.reader import ReadError

    clock = Clock()
    while True:
        edge, sources = build_edge(settings, topics, api, name, term, clock, watched.order_refused)
        log.info("edge of %s (%s), term %d", name, api.base_url, term)
        dcgm = build_dcgm(settings, clock)
        terms.begin(edge)
        watched.begin(edge, sources[0], dcgm)
        beside: list[Any] = [Listening(watched.heartbeat)]
        if settings.runtime.role == "edge":  # in one process with a worker, that one sees to it
            # With the term, so that what is frozen of it is let go with it.
            beside.append(ShortPauses(edge.why_not_ready))
        try:
            await edge.run([*sources, *dcgm, *beside])
        except ReadError as error:
            log.error("what an earlier edge told cannot be read yet: %s", error)
            await asyncio.sleep(AGAIN_AFTER_S)
        finally:
            watched.end()
            terms.end()


def _first_word(why_not: list[Callable[[], str]]) -> str:
    return next((why for ask in why_not if (why := ask())), "")


def _first(error: BaseException) -> BaseException:
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error
