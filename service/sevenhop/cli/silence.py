"""`sevenhop silence add|list|expire`: quiet on purpose, with an author, a reason and an end."""

from __future__ import annotations

import argparse
import getpass
from datetime import UTC, datetime
from typing import Any

from sevenhop.cli.cluster import (
    STORED_WITHIN_S,
    add_cluster_options,
    add_fleet_option,
    ask_service,
    of_cluster,
    settings_of,
)
from sevenhop.cli.get import columns_for, for_people
from sevenhop.cli.output import FORMATS, UsageError, listing
from sevenhop.cli.times import shown_time
from sevenhop.core.incidents.matchers import parse_matchers
from sevenhop.settings import parse_duration


def add_parser(commands: Any) -> None:
    parser = commands.add_parser("silence", help="be quiet on purpose: add, list, expire")
    actions = parser.add_subparsers(dest="action", metavar="ACTION", required=True)
    add = actions.add_parser(
        "add",
        help="silence what matches",
        description="Example: silence add workload=llama-70b --for 2h -c 'load test'",
    )
    add.add_argument(
        "matchers", nargs="+", metavar="MATCHER", help="label=value, label!=value, label=~regex, label!~regex"
    )
    add.add_argument("--for", dest="duration", default="2h", metavar="TIME", help="how long, such as 90m; default 2h")
    add.add_argument("-c", "--comment", required=True, help="why")
    add.add_argument("--author", default="", help="default: the user's name")
    show = actions.add_parser("list", help="silences in force")
    show.add_argument("-o", "--output", choices=FORMATS, default="table")
    end = actions.add_parser("expire", help="end a silence now")
    end.add_argument("id", metavar="ID", help="as `sevenhop silence list` shows it")
    for each in (add, show, end):
        add_cluster_options(each)
        add_fleet_option(each)


def _user() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError):  # a container's user may have no name
        raise UsageError("nobody knows who you are; say it with --author NAME") from None


def run(args: argparse.Namespace) -> int:
    folder = settings_of(args).state
    if args.action == "add":
        try:
            duration = parse_duration(args.duration)
        except ValueError as error:
            raise UsageError(f"--for: {error}") from None
        if not duration:
            raise UsageError("--for: a silence needs a length, such as 2h")
        try:
            parse_matchers(args.matchers)
        except ValueError as error:
            raise UsageError(f"MATCHER: {error}") from None
        wanted = {
            "matchers": args.matchers,
            "author": args.author or _user(),
            "comment": args.comment,
            "expires_at": (datetime.now(tz=UTC) + duration).isoformat(),
            **of_cluster(args),
        }
        answer = ask_service(folder, "POST", "/silence", wanted, patience_s=STORED_WITHIN_S)
        if answer is not None:
            print(f"silence {answer['id']} until {shown_time(answer['expires_at'])}")
    elif args.action == "expire":
        answer = ask_service(
            folder, "POST", f"/silence/{args.id}/expire", query=of_cluster(args), patience_s=STORED_WITHIN_S
        )
        if answer is not None:
            print(f"silence {answer['id']} has ended")
    else:
        answer = ask_service(folder, "GET", "/get/silences", query=of_cluster(args))
        if answer is not None:
            if args.output in ("table", "wide"):
                answer = [for_people(row) for row in answer]
            print(listing(answer, columns_for("silences", answer), args.output, nothing="No silences."))
    if answer is None:
        raise UsageError(
            f"no service runs with the state in {folder}; start `sevenhop run`, or name its folder with --state"
        )
    return 0
