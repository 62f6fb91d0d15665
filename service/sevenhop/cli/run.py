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
    from sevenhop.runtime.embedded import Source
    from sevenhop.sources.kubernetes.api import ApiServer
    from sevenhop.sources.kubernetes.observe import Record
    from sevenhop.sources.recording import Recorder

log = logging.getLogger("sevenhop")

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
    from sevenhop.app import build_engine, build_rulebook
    from sevenhop.app_service import Service
    from sevenhop.runtime.clock import Clock
    from sevenhop.runtime.leader import LeaseLostError
    from sevenhop.stores.sqlite import SqliteStore
    from sevenhop.web.server import WebError

    rulebook = build_rulebook(settings)
    if rulebook.problems:
        for problem in rulebook.problems:
            fail(str(problem))
        raise UsageError("the rulebook has problems; mend them, or choose other rules with --rules")
    stopping = _stop_signals()
    try:
        async with contextlib.AsyncExitStack() as opened:
            store: Any = None
            holding: list[Source] = []
            if not settings.redis.url:
                store = SqliteStore(settings.state)
                opened.callback(store.close)
            api = await opened.enter_async_context(await connect(settings))
            name = cluster_name(settings)
            if store is None:
                turn = await _our_turn(settings, api, name, opened, stopping)
                if turn is None:
                    return 0
                store, held = turn
                holding.append(held)
            engine = build_engine(settings, rulebook, name)
            name_in_logs(name)
            clock = Clock()
            recorder = _open_recorder(args.record, name, clock()) if args.record else None
            if recorder is not None:
                opened.callback(_close, recorder)
            record = recorder and _careful(recorder)
            service = Service(settings, rulebook, engine, store, api, clock, record=record, holding=holding)
            opened.push_async_callback(service.close)
            await service.start()
            return await _until_stopped(service.run(), stopping)
    except WebError as error:
        raise UsageError(str(error)) from None
    except LeaseLostError as error:
        log.critical("ended, state is safe: %s", error)
        return EXIT_BROKEN


def _stop_signals() -> asyncio.Event:
    """Set once we are told to end."""
    stopping = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stopping.set)
    return stopping


async def _our_turn(
    settings: Any, api: ApiServer, cluster: str, opened: contextlib.AsyncExitStack, stopping: asyncio.Event
) -> tuple[Any, Source] | None:
    """The store that replicas share, once it is this one's turn, and what keeps it so; None if told to stop first."""
    from sevenhop.runtime.shared import shared_store

    settings.state.mkdir(parents=True, exist_ok=True)  # for the socket
    turn = asyncio.ensure_future(opened.enter_async_context(shared_store(settings, api, cluster)))
    return turn.result() if await _before_stop(turn, stopping) else None


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
        log.error("the recording lacks its end: %s", error)


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
            log.error("recording ended, watching goes on: %s", error)

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
    log.critical("ended, state is safe: %s", error, exc_info=error)
    return EXIT_BROKEN
