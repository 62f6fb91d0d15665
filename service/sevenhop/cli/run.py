"""`sevenhop run`: watch a cluster and tell people, until stopped."""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import logging
import signal
import sys
from typing import Any

from sevenhop.cli.cluster import (
    UnreachableError,
    add_cluster_options,
    cluster_name,
    connect,
    run_async,
    settings_of,
)
from sevenhop.cli.output import UsageError, fail

STOP_WITHIN_S = 4.0
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
    from sevenhop.runtime.reload import Reloader
    from sevenhop.sources.kubernetes.limits import Limits
    from sevenhop.sources.kubernetes.source import KubernetesSource
    from sevenhop.sources.recording import Recorder
    from sevenhop.stores.sqlite import SqliteStore

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
        api = await connect(settings)
        name = cluster_name(settings)
        engine = build_engine(settings, rulebook, name)
        embedded = build_embedded(settings, engine, store, clock)
        limits = Limits(
            silence_s=settings.kubernetes.silence_limit.total_seconds(),
            discovery_s=settings.kubernetes.discovery_interval.total_seconds(),
        )
        recorder = Recorder(args.record, cluster=name, started_at=clock()) if args.record else None
        source = KubernetesSource(api, clock=clock, limits=limits, record=recorder)
        control = Control(
            engine, embedded.emit, clock, lambda: doctor_report(embedded, source, store, settings, clock())
        )
        await control.start(settings.state)
        logging.getLogger("sevenhop").info(
            "watching %s (%s) with %d rules; state in %s; receivers: %s",
            name, api.base_url, len(rulebook.rules), settings.state, ", ".join(settings.receivers),
        )  # fmt: skip
        running = asyncio.create_task(embedded.run([source, Reloader(settings, rulebook, embedded)]))
        stopped = asyncio.create_task(stopping.wait())
        try:
            await asyncio.wait([running, stopped], return_when=asyncio.FIRST_COMPLETED)
            if running.done():
                return _why_ended(running)
            running.cancel()
            await asyncio.wait([running], timeout=STOP_WITHIN_S)
            return 0
        finally:
            stopped.cancel()
            await control.close()
            await api.close()
            if recorder is not None:
                recorder.close()


def _why_ended(running: asyncio.Task[None]) -> int:
    error = running.exception()
    while isinstance(error, ExceptionGroup):
        error = error.exceptions[0]
    if error is None:
        return 0
    logging.getLogger("sevenhop").critical("ended, state is safe: %s", error, exc_info=error)
    if isinstance(error, UnreachableError):
        raise error
    return EXIT_BROKEN
