"""`sevenhop scan`: one look at a cluster, read-only, installs nothing."""

from __future__ import annotations

import argparse
from datetime import datetime
from typing import TYPE_CHECKING, Any

from sevenhop.cli.cluster import (
    add_cluster_options,
    add_namespace_options,
    cluster_name,
    connect,
    look,
    run_async,
    settings_of,
)
from sevenhop.cli.doctor import coverage_table, inert_table
from sevenhop.cli.get import COLUMNS, for_people
from sevenhop.cli.output import folded, listing, others, table, to_json, to_yaml, visible, without_numbers

if TYPE_CHECKING:
    from sevenhop.core.engine import Engine


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
        from sevenhop.runtime.clock import Clock

        clock = Clock()
        async with await connect(settings) as api:
            engine = await look(settings, api, clock=clock)
        report = report_of(engine, cluster_name(settings), clock(), args.namespace)
        if args.output == "text":
            print(visible(text_of(report)))
        else:
            print(to_json(report) if args.output == "json" else to_yaml(report))
        return 0

    return run_async(main)


def report_of(engine: Engine, cluster: str, now: datetime, namespace: str = "") -> dict[str, Any]:
    """
    What one look at a cluster shows, as plain values.

    Args:
        namespace: Only what lives there, beside what has no namespace; empty for all.
    """
    import msgspec

    from sevenhop.core import gpu_views, views
    from sevenhop.runtime.doctor import engine_report

    report: dict[str, Any] = msgspec.to_builtins(
        {
            "cluster": cluster,
            "workloads": _within(namespace, views.workloads(engine, now)),
            "not_well": _within(namespace, [p for p in views.pods(engine, now) if p["cause"]]),
            "findings": [f for f in views.found(engine, now) if f["namespace"] in ("", namespace) or not namespace],
            "alerts": views.alerts(engine, now),
            "capacity": gpu_views.pools(engine, now),
            **engine_report(engine),
        },
        enc_hook=str,
    )
    return report


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
    if report["findings"]:
        parts.append("Findings that no pod tells of:\n" + "\n".join(_finding_lines(report["findings"])))
    if report["alerts"]:
        cells = [[a["rule"], a["subject"], a["for"], a["state"]] for a in report["alerts"]]
        parts.append("What would alert, if it goes on:\n" + table(["RULE", "SUBJECT", "AFTER", "NOW"], cells))
    else:
        parts.append("Nothing would alert right now.")
    if report["capacity"]:
        rows = [for_people(row) for row in report["capacity"]]
        parts.append("Capacity:\n" + listing(rows, COLUMNS["capacity"], "table", nothing=""))
    parts.append("What can be seen:\n" + coverage_table(report))
    parts += inert_table(report)
    if report["trouble"]:
        cells = [[t["kind"], t["state"], t["detail"] or "-"] for t in report["trouble"]]
        parts.append("Cannot be seen:\n" + table(["KIND", "STATE", "WHY"], cells))
    parts.append("Next: `sevenhop run` watches and tells; `sevenhop explain WORKLOAD/COMPONENT` says why.")
    return "\n\n".join(parts)


def _finding_lines(findings: list[dict[str, Any]]) -> list[str]:
    lines: list[str] = []
    same = (((*(f[k] for k in ("kind", "namespace", "workload", "cause")), without_numbers(f["summary"])), f["name"], f)
            for f in findings)  # fmt: skip
    for finding, alike in folded(same):
        place = f"{finding['namespace']}/" if finding["namespace"] else ""
        owner = f" [{finding['workload']}]" if finding["workload"] else ""
        said = f"{finding['hop'] or '-'}: {finding['cause']} ({finding['confidence']})"
        lines.append(f"  {finding['kind']} {place}{finding['name']}{owner}  {said}")
        lines.append(f"    {finding['summary']}")
        lines += [f"    → {step}" for step in finding["next_steps"][:1]]
        if alike:
            lines.append(f"    {others(alike)}")
    return lines


def _within(namespace: str, rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [row for row in rows if namespace in ("", row["namespace"])]
