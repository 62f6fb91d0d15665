"""`sevenhop audit list|verify|export`: what was decided and done, and whether the trail is whole."""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

from sevenhop.cli.cluster import add_cluster_options, add_fleet_option, ask_service, of_cluster, settings_of
from sevenhop.cli.output import FORMATS, Column, UsageError, fail, listing, visible
from sevenhop.core.words import counted

COLUMNS = [
    Column("NO", "number"), Column("AT", "at"), Column("WHAT", "what"), Column("PLAN", "plan_id"), Column("WHO", "who"),
    Column("TEXT", "text"), Column("HASH", "hash", wide=True),
]  # fmt: skip


def add_parser(commands: Any) -> None:
    parser = commands.add_parser("audit", help="the audit trail: list, verify, export")
    actions = parser.add_subparsers(dest="action", metavar="ACTION", required=True)
    show = actions.add_parser("list", help="all records, the oldest first")
    show.add_argument("--plan", default="", help="only of this plan")
    show.add_argument("-o", "--output", choices=FORMATS, default="table")
    check = actions.add_parser(
        "verify", help="whether a record was changed, is missing, or was moved; exit code 1 if so"
    )
    check.add_argument(
        "file", nargs="?", default="", metavar="FILE", help="an export; default: the service's own trail"
    )
    export = actions.add_parser("export", help="as lines of JSON, to keep elsewhere")
    for each in (show, check, export):
        add_cluster_options(each)
        add_fleet_option(each)


def run(args: argparse.Namespace) -> int:
    if args.action == "verify" and args.file:
        return _verify_file(Path(args.file))
    trail = _trail(args)
    if args.action == "verify":
        return _report(trail["problems"], len(trail["records"]))
    if args.action == "export":
        for line in trail["records"]:
            print(line.rstrip("\n"))
        return 0
    rows = [
        row for row in map(_row, trail["records"]) if not args.plan or str(row.get("plan_id", "")).startswith(args.plan)
    ]
    print(listing(rows, COLUMNS, args.output, nothing="No records."))
    if trail["problems"]:
        fail(
            f"the trail is not whole ({counted(len(trail['problems']), 'problem')}); `sevenhop audit verify` says more"
        )
    return 0


def _trail(args: argparse.Namespace) -> Any:
    """From the running service, else from its state folder."""
    folder = settings_of(args).state
    found = ask_service(folder, "GET", "/audit", query=of_cluster(args))
    if found is not None:
        return found
    if not (folder / "state.db").exists():
        raise UsageError(f"{folder}: no state there; give the service's folder with --state")
    from contextlib import closing

    from sevenhop.app import trail_of
    from sevenhop.stores.sqlite import SqliteStore

    with closing(SqliteStore(folder)) as store:
        return trail_of(store)


def _verify_file(path: Path) -> int:
    from sevenhop.core.remediation.audit import is_like_a_record, verify_lines

    lines = [line for line in path.read_bytes().splitlines() if line.strip()]
    if lines and not any(map(is_like_a_record, lines)):
        # Not "changed": whoever took the wrong file should not look for who tampered with the trail.
        raise UsageError(f"{path}: no audit trail, none of its lines is a record; give what `audit export` wrote")
    problems = verify_lines(lines)
    return _report([{"number": p.number, "kind": p.kind, "text": p.text} for p in problems], len(lines))


def _report(problems: list[dict[str, Any]], count: int) -> int:
    for problem in problems:
        # What cannot be read has no number; its text says which line it is.
        place = f"record {problem['number']}: " if problem["number"] else ""
        print(visible(f"{place}{problem['kind']}: {problem['text']}"))
    if problems:
        return 1
    print(f"{counted(count, 'record')}, chain ok")
    return 0


def _row(line: str) -> dict[str, Any]:
    try:
        row = json.loads(line)
    except (ValueError, RecursionError):
        row = None
    return row if isinstance(row, dict) else {"number": "?", "what": "unreadable", "text": line[:80]}
