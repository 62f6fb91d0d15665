"""`sevenhop describe plan ID`: what a person agrees to, what was considered, and what has happened since."""

from __future__ import annotations

import argparse
from typing import Any

from sevenhop.cli.cluster import NO_SERVICE, add_cluster_options, add_fleet_option, ask_service, of_cluster, settings_of
from sevenhop.cli.output import UsageError, to_json, to_yaml, visible
from sevenhop.cli.times import shown_time


def add_parser(commands: Any) -> None:
    parser = commands.add_parser("describe", help="everything about one plan")
    kinds = parser.add_subparsers(dest="kind", metavar="KIND", required=True)
    plan = kinds.add_parser("plan", help="a plan, by its id or the beginning of it")
    plan.add_argument("plan", metavar="ID", help="of the plan, or the beginning of it")
    plan.add_argument("-o", "--output", choices=("text", "json", "yaml"), default="text")
    add_cluster_options(plan)
    add_fleet_option(plan)


def run(args: argparse.Namespace) -> int:
    return show_plan(args)


def show_plan(args: argparse.Namespace) -> int:
    """
    Print one plan as asked.

    Raises:
        UsageError: No service runs, or it knows no such plan.
    """
    if not args.plan.isalnum():
        raise UsageError(f"{args.plan!r} is no plan's id; `sevenhop get plans` lists them")
    plan = ask_service(settings_of(args).state, "GET", f"/plan/{args.plan}", query=of_cluster(args))
    if plan is None:
        raise UsageError(NO_SERVICE)
    if args.output == "json":
        print(to_json(plan))
    elif args.output == "yaml":
        print(to_yaml(plan), end="")
    else:
        print("\n".join(visible(line).replace("\n", " ") for line in _lines(plan)))
    return 0


def _lines(plan: dict[str, Any]) -> list[str]:
    lines = [
        f"Plan       {plan['plan']}  ({_state(plan)})",
        f"Playbook   {plan['playbook']}",
        f"What       {plan['title']}",
        f"For        {plan['for'] or '-'}",
        f"Hash       {plan['hash']}",
        f"Proposed   {shown_time(plan['proposed_at'])}, expires {shown_time(plan['expires_at'])}",
    ]
    lines += _part("Plan in words", plan["lines"])
    lines += _part("Notes", [note for note in plan["notes"] if note not in plan["lines"]])
    lines += _part("Pods that go", plan["victims"])
    lines += _part("Pods it is for", plan["pods_helped"])
    lines += _part("Not chosen", [f"{each['who']}: {each['text']}" for each in plan["considered"]])
    lines += _part(
        "Approved by",
        [f"{each['name'] or each['person']} ({each['via']}, {shown_time(each['at'])})" for each in plan["approvals"]],
    )
    lines += _part("Progress", [plan["progress"]] if plan["progress"] else [])
    lines += _part("Tried again, until now", [plan["failing"]] if plan.get("failing") else [])
    lines += _part("Lease until", [shown_time(plan["lease_until"])] if plan["lease_until"] else [])
    lines += _part("History", plan["history"])
    if plan["buttons"]:
        lines += ["", *(f"sevenhop {_command(verb)} {plan['plan']}" for verb in plan["buttons"])]
    return lines


def _state(plan: dict[str, Any]) -> str:
    return plan["why"] if plan["why"].startswith(plan["state"]) else f"{plan['state']}: {plan['why']}"


def _command(verb: str) -> str:
    return verb if verb in ("approve", "reject") else f"runs {verb}"


def _part(title: str, lines: list[str]) -> list[str]:
    return ["", title, *(f"  {line}" for line in lines)] if lines else []
