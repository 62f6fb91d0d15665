"""`sevenhop runs list|describe|undo|extend|restore`: what was carried out, and going back."""

from __future__ import annotations

import argparse
from typing import Any

from sevenhop.cli.asking import add_asking_options, ask_to_decide
from sevenhop.cli.cluster import NO_SERVICE, add_cluster_options, add_fleet_option, ask_service, of_cluster, settings_of
from sevenhop.cli.describe import show_plan
from sevenhop.cli.get import columns_for
from sevenhop.cli.output import FORMATS, UsageError, listing


def add_parser(commands: Any) -> None:
    parser = commands.add_parser("runs", help="plans that were carried out: list, describe, undo, extend, restore")
    actions = parser.add_subparsers(dest="action", metavar="ACTION", required=True)
    show = actions.add_parser("list", help="the newest first")
    show.add_argument("-o", "--output", choices=FORMATS, default="table")
    add_cluster_options(show)
    add_fleet_option(show)
    one = actions.add_parser("describe", help="everything about one")
    one.add_argument("plan", metavar="PLAN", help="id of the plan that was carried out, or the beginning of it")
    one.add_argument("-o", "--output", choices=("text", "json", "yaml"), default="text")
    add_cluster_options(one)
    add_fleet_option(one)
    for verb, what in (
        ("undo", "go back now"),
        ("extend", "keep the capacity for another lease"),
        ("restore", "give the capacity back now"),
    ):
        each = actions.add_parser(verb, help=what)
        each.add_argument("plan", metavar="PLAN", help="id of the plan that was carried out, all of it")
        add_asking_options(each)


def run(args: argparse.Namespace) -> int:
    if args.action == "describe":
        return show_plan(args)
    if args.action != "list":
        return ask_to_decide(args, "/decide", {"verb": args.action, "plan": args.plan})
    rows = ask_service(settings_of(args).state, "GET", "/get/runs", query=of_cluster(args))
    if rows is None:
        raise UsageError(NO_SERVICE)
    print(listing(rows, columns_for("runs", rows), args.output, nothing="No runs."))
    return 0
