"""`sevenhop switch stop|resume|status|reset-breaker`: the kill switch and the circuit breaker."""

from __future__ import annotations

import argparse
from typing import Any

from sevenhop.cli.asking import add_asking_options, ask_to_decide
from sevenhop.cli.cluster import NO_SERVICE, add_cluster_options, add_fleet_option, ask_service, of_cluster, settings_of
from sevenhop.cli.get import columns_for
from sevenhop.cli.output import FORMATS, UsageError, listing


def add_parser(commands: Any) -> None:
    parser = commands.add_parser(
        "switch",
        help="stop or resume everything that changes the cluster; the circuit breaker",
        description="At a worker of many clusters: every cluster, or that of --cluster.",
    )
    actions = parser.add_subparsers(dest="action", metavar="ACTION", required=True)
    for name, what in (
        ("stop", "change nothing new from now on; giving back goes on"),
        ("resume", "go on"),
        ("reset-breaker", "you have looked at why runs failed"),
    ):
        add_asking_options(actions.add_parser(name, help=what))
    show = actions.add_parser("status", help="both, and who turned them")
    show.add_argument("-o", "--output", choices=FORMATS, default="table")
    add_cluster_options(show)
    add_fleet_option(show)


def run(args: argparse.Namespace) -> int:
    if args.action == "status":
        rows = ask_service(settings_of(args).state, "GET", "/get/safety", query=of_cluster(args))
        if rows is None:
            raise UsageError(NO_SERVICE)
        print(listing(rows, columns_for("safety", rows), args.output, nothing="Nothing."))
        return 0
    if args.action == "reset-breaker":
        return ask_to_decide(args, "/breaker", {})
    return ask_to_decide(args, "/switch", {"on": args.action == "stop"})
