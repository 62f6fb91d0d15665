"""`sevenhop scan`: one look at a cluster, read-only, installs nothing."""

from __future__ import annotations

import argparse
from typing import Any

from sevenhop.cli.cluster import (
    add_cluster_options,
    add_namespace_options,
    cluster_name,
    connect,
    look,
    run_async,
    settings_of,
)
from sevenhop.cli.doctor import coverage_table
from sevenhop.cli.get import COLUMNS, for_people
from sevenhop.cli.output import folded, listing, others, table, to_json, to_yaml, visible, without_numbers


def add_parser(commands: Any) -> None:
    parser = commands.add_parser(
        "scan",
        help="look at a cluster once: workloads, hops, what would alert, what cannot be seen",
        description="Lists the cluster once and says what it sees. Read-only; installs nothing; sends nothing.",
    )
    add_namespace_options(parser)
    add_cluster_options(parser)
    parser.add_argument("-o", "--output", choices=("text", "json", "yaml"), default="text")


def run(args: argparse.Namespace) -> int:
    settings = settings_of(args)

    async def main() -> int:
        import msgspec

        from sevenhop.core import views
        from sevenhop.runtime.clock import Clock
        from sevenhop.runtime.doctor import engine_report

        clock = Clock()
        async with await connect(settings) as api:
            engine = await look(settings, api, clock=clock)
        now = clock()
        report: dict[str, Any] = msgspec.to_builtins(
            {
                "cluster": cluster_name(settings),
                "workloads": _within(args.namespace, views.workloads(engine, now)),
                "not_well": _within(args.namespace, [p for p in views.pods(engine, now) if p["cause"]]),
                "alerts": views.alerts(engine, now),
                "capacity": views.pools(engine, now),
                **engine_report(engine),
            },
            enc_hook=str,
        )
        if args.output == "text":
            print(visible(text_of(report)))
        else:
            print(to_json(report) if args.output == "json" else to_yaml(report))
        return 0

    return run_async(main)


def text_of(report: dict[str, Any]) -> str:
    """For people, the most useful first."""
    parts = [f"Cluster {report['cluster']}"]
    rows = [for_people(row) for row in report["workloads"]]
    parts.append(listing(rows, COLUMNS["workloads"], "table", nothing="No inference workloads found."))
    if report["not_well"]:
        lines = ["Not well:"]
        fields = ("namespace", "workload", "component", "cause")
        same = (((*(p[f] for f in fields), without_numbers(p["summary"])), p["pod"], p) for p in report["not_well"])
        for pod, alike in folded(same):
            lines.append(
                f"  {pod['namespace']}/{pod['pod']}  {pod['hop'] or '-'}: {pod['cause']} ({pod['confidence']})"
            )
            lines.append(f"    {pod['summary']}")
            if alike:
                lines.append(f"    {others(alike)}")
        parts.append("\n".join(lines))
    if report["alerts"]:
        cells = [[a["rule"], a["subject"], a["for"], a["state"]] for a in report["alerts"]]
        parts.append("What would alert, if it goes on:\n" + table(["RULE", "SUBJECT", "AFTER", "NOW"], cells))
    else:
        parts.append("Nothing would alert right now.")
    if report["capacity"]:
        rows = [for_people(row) for row in report["capacity"]]
        parts.append("Capacity:\n" + listing(rows, COLUMNS["capacity"], "table", nothing=""))
    parts.append("What can be seen:\n" + coverage_table(report))
    if report["trouble"]:
        cells = [[t["kind"], t["state"], t["detail"] or "-"] for t in report["trouble"]]
        parts.append("Cannot be seen:\n" + table(["KIND", "STATE", "WHY"], cells))
    parts.append("Next: `sevenhop run` watches and tells; `sevenhop explain WORKLOAD/COMPONENT` says why.")
    return "\n\n".join(parts)


def _within(namespace: str, rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [row for row in rows if namespace in ("", row["namespace"])]
