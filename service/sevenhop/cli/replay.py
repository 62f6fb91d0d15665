"""`sevenhop replay FILE`: run a recording through the rules, in its own time."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from sevenhop.cli.cluster import read_settings
from sevenhop.cli.output import UsageError, to_json
from sevenhop.cli.times import parse_time


def add_parser(commands: Any) -> None:
    parser = commands.add_parser("replay", help="run a recording through the rules")
    parser.add_argument("file", metavar="FILE", help="a recording: what `sevenhop record`, or `run --record`, wrote")
    parser.add_argument("--rules", nargs="+", default=[], metavar="PATH", help="instead of the shipped rules")
    parser.add_argument("--config", default="", metavar="FILE", help="settings")
    parser.add_argument("--until", default="", metavar="TIME", help="stop there (RFC 3339)")
    parser.add_argument("-o", "--output", choices=("text", "json"), default="text")


def run(args: argparse.Namespace) -> int:
    from sevenhop.app import build_engine, build_rulebook
    from sevenhop.cli.replaying import open_recording, steps
    from sevenhop.sources.recording import RecordingError

    until = parse_time("--until", args.until) if args.until else None
    settings = read_settings(args.config)
    rulebook = build_rulebook(settings, [Path(p) for p in args.rules])
    if rulebook.problems:
        raise UsageError("\n".join(str(p) for p in rulebook.problems))
    recording = open_recording(args.file)
    engine = build_engine(settings, rulebook, recording.header.cluster)
    changes, effects = [], 0
    try:
        for _, step in steps(engine, recording, until):
            effects += len(step.effects)
            changes += [c for c in step.changes if c.was is not c.alert.state]
    except RecordingError as error:
        raise UsageError(str(error)) from None
    if args.output == "json":
        print(to_json([_row(c) for c in changes]))
        return 0
    for change in changes:
        row = _row(change)
        moved = f"{row['was']:>8} → {row['state']:<8}"
        print(f"{row['at']:%Y-%m-%d %H:%M:%S}Z  {moved} {row['rule']}  {row['subject']}  ({row['reason']})")
    firing = sum(1 for c in changes if c.alert.state.value == "firing")
    print(f"{firing} fired, {effects} messages would have been sent or edited, {len(engine.desk.incidents)} incidents")
    return 0


def _row(change: Any) -> dict[str, Any]:
    return {
        "at": change.at,
        "rule": change.alert.rule_id,
        "subject": str(change.alert.subject),
        "was": change.was.value,
        "state": change.alert.state.value,
        "reason": change.reason.value,
    }
