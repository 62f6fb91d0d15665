"""`sevenhop record`: write what the source sees to a file, for replay, back-tests and bug reports."""

from __future__ import annotations

import argparse
import asyncio
import signal
import sys
from pathlib import Path
from typing import Any

from sevenhop.cli.cluster import add_cluster_options, cluster_name, connect, run_async, settings_of
from sevenhop.cli.output import UsageError
from sevenhop.core.words import counted
from sevenhop.settings import parse_duration


def add_parser(commands: Any) -> None:
    parser = commands.add_parser(
        "record",
        help="write what the source sees to a file",
        description="Values whose name speaks of a secret are left out; look through it before you hand it on.",
    )
    parser.add_argument("file", metavar="FILE", help="such as night.sevenhop.gz; must not exist")
    parser.add_argument(
        "--for", dest="duration", default="", metavar="TIME", help="stop after, such as 10m; default: ^C"
    )
    add_cluster_options(parser)


def run(args: argparse.Namespace) -> int:
    settings = settings_of(args)
    try:
        limit = parse_duration(args.duration).total_seconds() if args.duration else None
    except ValueError as error:
        raise UsageError(f"--for: {error}") from None

    async def main() -> int:
        from sevenhop.core.events import Event
        from sevenhop.runtime.clock import Clock
        from sevenhop.sources.kubernetes.source import KubernetesSource
        from sevenhop.sources.recording import Recorder, RecordingError

        clock = Clock()
        stopping = asyncio.Event()
        for number in (signal.SIGTERM, signal.SIGINT):
            asyncio.get_running_loop().add_signal_handler(number, stopping.set)

        async def ignore(_events: list[Event]) -> None:
            """The recorder has them already."""

        async with await connect(settings) as api:
            try:
                recorder = Recorder(Path(args.file), cluster=cluster_name(settings), started_at=clock())
            except RecordingError as error:
                raise UsageError(str(error)) from None
            with recorder:
                source = KubernetesSource(api, clock=clock, record=recorder)
                task = asyncio.create_task(source.run(ignore))
                waiting = asyncio.create_task(stopping.wait())
                print(f"recording to {args.file}; ^C ends it", file=sys.stderr)
                await asyncio.wait([task, waiting], timeout=limit, return_when=asyncio.FIRST_COMPLETED)
                task.cancel()
                waiting.cancel()
                await asyncio.wait([task])
                if not task.cancelled() and (failed := task.exception()) is not None:
                    raise UsageError(str(failed))
        print(f"{args.file}: {counted(recorder.events, 'event')}, {counted(recorder.written_bytes, 'byte')}")
        return 0

    return run_async(main)
