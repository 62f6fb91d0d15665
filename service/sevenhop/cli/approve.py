"""`sevenhop approve|reject PLAN`: decide a plan from a terminal."""

from __future__ import annotations

import argparse
from typing import Any

from sevenhop.cli.asking import add_asking_options, ask_to_decide


def add_parser(commands: Any) -> None:
    for verb, what in (("approve", "agree to exactly one plan"), ("reject", "decline a plan")):
        parser = commands.add_parser(
            verb,
            help=what,
            description=f"{what.capitalize()}: `sevenhop get plans` lists them, `describe plan ID` shows one.",
        )
        parser.add_argument("plan", metavar="PLAN", help="id of the plan, all of it")
        parser.add_argument("--hash", default="", help="only if the plan still is what this hash names")
        add_asking_options(parser)


def run(args: argparse.Namespace) -> int:
    return ask_to_decide(args, "/decide", {"verb": args.command, "plan": args.plan, "hash": args.hash})
