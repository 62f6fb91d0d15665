"""`sevenhop run`: watch a cluster and tell people, until stopped."""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import logging
import os
import signal
from collections.abc import Callable, Coroutine
from datetime import datetime
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sevenhop.cli.cluster import (
    UnreachableError,
    add_cluster_options,
    cluster_name,
    connect,
    run_async,
    settings_of,
)
from sevenhop.cli.output import UsageError, fail
from sevenhop.telemetry.logs import logging_as

if TYPE_CHECKING:
    import msgspec

    from sevenhop.core.events import Event
    from sevenhop.sources.dcgm.source import Dcgm
    from sevenhop.sources.gpu_push.receiver import GpuPush
    from sevenhop.sources.kubernetes.observe import Record
    from sevenhop.sources.kubernetes.source import KubernetesSource
    from sevenhop.sources.recording import Recorder

STOP_WITHIN_S = 2.0
ROLE = "SEVENHOP__RUNTIME__ROLE"
EXIT_STATE = 4
EXIT_BROKEN = 5


def add_parser(commands: Any) -> None:
    parser = commands.add_parser(
        "run",
        help="watch a cluster and tell people",
        description="Watches the cluster (read-only), keeps its state in a folder, tells the receivers.",
    )
    add_cluster_options(parser)
    parser.add_argument("--rules", nargs="+", default=[], metavar="PATH", help="instead of the shipped rules")
    parser.add_argument("--record", default="", metavar="FILE", help="also write what the source sees to this file")
    parser.add_argument(
        "--role", choices=("embedded", "all", "edge", "worker"), default="",
        help="part of the scaled runtime; default: runtime.role of the settings",
    )  # fmt: skip
    parser.add_argument("--log-level", choices=("debug", "info", "warning", "error"), default="info")
    parser.add_argument("--log-format", choices=("text", "json"), default="text", help="json: one object a line")


def run(args: argparse.Namespace) -> int:
    if args.role:
        os.environ[ROLE] = args.role  # as the chart sets it: the command line comes last, and asks for the same checks
    settings = settings_of(args, **({"rules": args.rules} if args.rules else {}))
    from sevenhop.stores.sqlite import StoreError

    try:
        with logging_as(args.log_format, args.log_level) as name_in_logs:
            if settings.redis.url or settings.runtime.role != "embedded":
                _require_scaled()
            if settings.runtime.role != "embedded":
                from sevenhop.cli.run_scaled import serve

                return run_async(lambda: serve(settings))
            return run_async(lambda: _serve(args, settings, name_in_logs))
    except StoreError as error:
        fail(str(error))
        return EXIT_STATE


def _require_scaled() -> None:
    missing = [name for name in ("aiokafka", "faust", "redis") if find_spec(name) is None]
    if missing:
        raise UsageError(f"the settings need {', '.join(missing)}: install sevenhop[scaled]")


async def _serve(args: argparse.Namespace, settings: Any, name_in_logs: Callable[[str], None]) -> int:
    from sevenhop.app import (
        build_dcgm,
        build_doors,
        build_embedded,
        build_engine,
        build_gpu_push,
        build_rulebook,
        build_web,
        reviewer,
        trail_of,
    )
    from sevenhop.runtime.clock import Clock
    from sevenhop.runtime.control import Control
    from sevenhop.runtime.deciding import Deciding
    from sevenhop.runtime.doctor import doctor_report
    from sevenhop.runtime.embedded import Source
    from sevenhop.runtime.front import ServiceFront
    from sevenhop.runtime.garbage import keep_pauses_short
    from sevenhop.runtime.listening import Listener, Listening, Writable, why_not_ready, why_unhealthy
    from sevenhop.runtime.reload import Reloader
    from sevenhop.runtime.watched import Watched
    from sevenhop.sources.kubernetes.limits import Limits
    from sevenhop.sources.kubernetes.source import KubernetesSource
    from sevenhop.stores.sqlite import SqliteStore, StoreError
    from sevenhop.telemetry.meter import Meter
    from sevenhop.web.server import WebError

    clock = Clock()
    rulebook = build_rulebook(settings)
    if rulebook.problems:
        for problem in rulebook.problems:
            fail(str(problem))
        raise UsageError("the rulebook has problems; mend them, or choose other rules with --rules")
    store: Any = SqliteStore(settings.state) if not settings.redis.url else None
    stopping = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stopping.set)
    with contextlib.ExitStack() as opened:
        if store is not None:
            opened.callback(store.close)
        async with await connect(settings) as api, contextlib.AsyncExitStack() as shared:
            name = cluster_name(settings)
            holding: list[Source] = []
            if store is None:
                from sevenhop.runtime.shared import shared_store

                settings.state.mkdir(parents=True, exist_ok=True)  # for the socket
                turn = asyncio.ensure_future(shared.enter_async_context(shared_store(settings, api, name)))
                if not await _before_stop(turn, stopping):
                    return 0
                try:
                    store, held = turn.result()
                except WebError as error:
                    raise UsageError(str(error)) from None
                holding.append(held)
            engine = build_engine(settings, rulebook, name)
            name_in_logs(name)
            meter = Meter(name)
            embedded = build_embedded(settings, engine, store, clock, api=api, meter=meter)
            limits = Limits(
                silence_s=settings.kubernetes.silence_limit.total_seconds(),
                discovery_s=settings.kubernetes.discovery_interval.total_seconds(),
            )
            recorder = _open_recorder(args.record, name, clock()) if args.record else None
            record = recorder and _careful(recorder)
            source = KubernetesSource(api, clock=clock, limits=limits, record=record)
            push = build_gpu_push(settings, api, embedded.emit, clock, observe=record)
            dcgm = build_dcgm(settings, clock, observe=record)
            watched = Watched(settings.telemetry, meter, embedded, source, store, push=push, dcgm=dcgm)
            gpu_sources: list[GpuPush | Dcgm] = [*([push] if push is not None else []), *dcgm]
            writable = Writable(store.why_not_writable)
            review = reviewer(api, clock)
            front = ServiceFront(engine, embedded)
            local = Deciding(front, review, clock, takes_peers=True, via="terminal")
            control = Control(
                engine,
                embedded.emit_stored,
                clock,
                lambda: {
                    **doctor_report(embedded, source, store, settings, clock()),
                    **watched.report(),
                    "gpu_sources": [each.report() for each in gpu_sources],
                },
                audit=lambda: trail_of(store),
                posts=local.routes(),
            )
            doors = build_doors(settings, engine, front, clock)
            server = build_web(
                settings, front, review, clock, doors, ready=lambda: why_not_ready(source, embedded, writable),
                healthy=lambda: why_unhealthy(embedded), gets=watched.routes(), push=push,
            )  # fmt: skip
            listeners: list[Listener] = [*doors, watched.heartbeat, *([server] if server is not None else [])]
            tidying = asyncio.create_task(keep_pauses_short(lambda: is_listed(source)))
            try:
                try:
                    await control.start(settings.state)
                except OSError as error:
                    why = error.strerror or error
                    raise StoreError(f"{settings.state}: no socket there: {why}; choose another --state") from None
                logging.getLogger("sevenhop").info(
                    "watching %s (%s) with %d rules; state in %s; receivers: %s",
                    name, api.base_url, len(rulebook.rules), settings.state, ", ".join(settings.receivers),
                )  # fmt: skip
                if server is not None:
                    await server.start()
                parts: list[Source] = [source, Reloader(settings, rulebook, embedded), *map(Listening, listeners)]
                parts += [*dcgm, *holding]
                return await _until_stopped(embedded.run(parts), stopping)
            except WebError as error:
                raise UsageError(str(error)) from None
            finally:
                tidying.cancel()
                await control.close()
                for each in listeners:
                    await each.close()
                await embedded.close()
                watched.close()
                if recorder is not None:
                    _close(recorder)


async def _before_stop(task: asyncio.Future[Any], stopping: asyncio.Event) -> bool:
    """Whether it is done before we are told to stop; it is cancelled otherwise."""
    stopped = asyncio.create_task(stopping.wait())
    await asyncio.wait([task, stopped], return_when=asyncio.FIRST_COMPLETED)
    stopped.cancel()
    if not task.done():
        task.cancel()
        await asyncio.wait([task])
        return False
    return True


async def _until_stopped(work: Coroutine[Any, Any, None], stopping: asyncio.Event) -> int:
    running = asyncio.create_task(work)
    stopped = asyncio.create_task(stopping.wait())
    try:
        await asyncio.wait([running, stopped], return_when=asyncio.FIRST_COMPLETED)
        if running.done():
            return _why_ended(running)
        running.cancel()
        # What hangs is left: the outbox knows what was under way, and asks for it at the next start.
        await asyncio.wait([running], timeout=STOP_WITHIN_S)
        return 0
    finally:
        stopped.cancel()


def is_listed(source: KubernetesSource) -> bool:
    """Whether every kind was listed once, or cannot be."""
    return all(row.state.value != "not_synced" for row in source.status())


def _open_recorder(path: str, cluster: str, now: datetime) -> Recorder:
    from sevenhop.sources.recording import Recorder, RecordingError

    try:
        return Recorder(Path(path), cluster=cluster, started_at=now)
    except RecordingError as error:
        raise UsageError(f"--record: {error}") from None


def _close(recorder: Recorder) -> None:
    from sevenhop.sources.recording import RecordingError

    try:
        recorder.close()
    except RecordingError as error:
        logging.getLogger("sevenhop").error("the recording lacks its end: %s", error)


def _careful(recorder: Recorder) -> Record:
    """A recording that fails, such as on a full disk, ends alone: watching goes on."""
    from sevenhop.sources.recording import RecordingError

    failed = False

    def take(event: Event, raw: bytes | msgspec.Raw | None = None) -> None:
        nonlocal failed
        if failed:
            return
        try:
            recorder(event, raw)
        except RecordingError as error:
            failed = True
            logging.getLogger("sevenhop").error("recording ended, watching goes on: %s", error)

    return take


def _why_ended(running: asyncio.Task[None]) -> int:
    error = running.exception()
    while isinstance(error, ExceptionGroup):
        error = error.exceptions[0]
    if error is None:
        return 0
    from sevenhop.stores.sqlite import StoreError

    if isinstance(error, UnreachableError | StoreError):
        raise error
    logging.getLogger("sevenhop").critical("ended, state is safe: %s", error, exc_info=error)
    return EXIT_BROKEN
