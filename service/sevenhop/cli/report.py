"""`sevenhop report shadow`: what would have been done, and what happened instead."""

from __future__ import annotations

import argparse
from typing import Any

from sevenhop.cli.cluster import NO_SERVICE, add_cluster_options, add_fleet_option, ask_service, of_cluster, settings_of
from sevenhop.cli.get import age, columns_for
from sevenhop.cli.output import FORMATS, UsageError, listing


def add_parser(commands: Any) -> None:
    parser = commands.add_parser("report", help="reports: shadow")
    kinds = parser.add_subparsers(dest="kind", metavar="KIND", required=True)
    shadow = kinds.add_parser("shadow", help="plans that nobody was asked about, and what happened without them")
    shadow.add_argument("-o", "--output", choices=FORMATS, default="table")
    add_cluster_options(shadow)
    add_fleet_option(shadow)


def run(args: argparse.Namespace) -> int:
    rows = ask_service(settings_of(args).state, "GET", "/get/shadow", query=of_cluster(args))
    if rows is None:
        raise UsageError(NO_SERVICE)
    if args.output in ("table", "wide"):
        rows = [{**row, "after": age(row["after_s"])} for row in rows]
    print(listing(rows, columns_for("shadow", rows), args.output, nothing="No plans were made in shadow mode."))
    return 0
