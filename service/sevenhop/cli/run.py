"""`sevenhop run`: watch a cluster and tell people, until stopped."""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import logging
import signal
import sys
from collections.abc import Coroutine
from datetime import datetime
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

if TYPE_CHECKING:
    import msgspec

    from sevenhop.core.events import Event
    from sevenhop.sources.kubernetes.observe import Record
    from sevenhop.sources.kubernetes.source import KubernetesSource
    from sevenhop.sources.recording import Recorder

STOP_WITHIN_S = 2.0
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
    parser.add_argument("--log-level", choices=("debug", "info", "warning", "error"), default="info")


def run(args: argparse.Namespace) -> int:
    settings = settings_of(args, **({"rules": args.rules} if args.rules else {}))
    logging.basicConfig(
        level=args.log_level.upper(), stream=sys.stderr, format="%(asctime)s %(levelname)s %(name)s: %(message)s"
    )

    async def main() -> int:
        return await _serve(args, settings)

    from sevenhop.stores.sqlite import StoreError

    try:
        return run_async(main)
    except StoreError as error:
        fail(str(error))
        return EXIT_STATE


async def _serve(args: argparse.Namespace, settings: Any) -> int:
    from sevenhop.app import build_embedded, build_engine, build_rulebook
    from sevenhop.runtime.clock import Clock
    from sevenhop.runtime.control import Control
    from sevenhop.runtime.doctor import doctor_report
    from sevenhop.runtime.garbage import keep_pauses_short
    from sevenhop.runtime.reload import Reloader
    from sevenhop.sources.kubernetes.limits import Limits
    from sevenhop.sources.kubernetes.source import KubernetesSource
    from sevenhop.stores.sqlite import SqliteStore, StoreError

    clock = Clock()
    rulebook = build_rulebook(settings)
    if rulebook.problems:
        for problem in rulebook.problems:
            fail(str(problem))
        raise UsageError("the rulebook has problems; mend them, or choose other rules with --rules")
    store = SqliteStore(settings.state)
    stopping = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stopping.set)
    with contextlib.closing(store):
        async with await connect(settings) as api:
            name = cluster_name(settings)
            engine = build_engine(settings, rulebook, name)
            embedded = build_embedded(settings, engine, store, clock)
            limits = Limits(
                silence_s=settings.kubernetes.silence_limit.total_seconds(),
                discovery_s=settings.kubernetes.discovery_interval.total_seconds(),
            )
            recorder = _open_recorder(args.record, name, clock()) if args.record else None
            source = KubernetesSource(api, clock=clock, limits=limits, record=recorder and _careful(recorder))
            control = Control(
                engine, embedded.emit_stored, clock, lambda: doctor_report(embedded, source, store, settings, clock())
            )
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
                return await _until_stopped(embedded.run([source, Reloader(settings, rulebook, embedded)]), stopping)
            finally:
                tidying.cancel()
                await control.close()
                await embedded.close()
                if recorder is not None:
                    _close(recorder)


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
