"""`sevenhop doctor`: what cannot be seen, what does not work, and what would mend it."""

from __future__ import annotations

import argparse
from typing import Any

from sevenhop.cli.cluster import add_cluster_options, ask_service, connect, look, run_async, settings_of
from sevenhop.cli.output import table, to_json, to_yaml
from sevenhop.core.effects import CLUSTER
from sevenhop.core.words import counted, inflected


def add_parser(commands: Any) -> None:
    parser = commands.add_parser("doctor", help="what cannot be seen, and what would mend it")
    add_cluster_options(parser)
    parser.add_argument("-o", "--output", choices=("text", "json", "yaml"), default="text")


def run(args: argparse.Namespace) -> int:
    settings = settings_of(args)
    report = ask_service(settings.state, "GET", "/doctor")
    if report is not None:
        return _show(report, args)

    async def main() -> int:
        import msgspec

        from sevenhop.runtime.clock import Clock
        from sevenhop.runtime.doctor import engine_report

        async with await connect(settings) as api:
            engine = await look(settings, api, clock=Clock())
        return _show(msgspec.to_builtins(engine_report(engine), enc_hook=str), args)

    return run_async(main)


def _show(report: dict[str, Any], args: argparse.Namespace) -> int:
    is_worker = "partitions" in report
    if args.output == "text":
        print(text_of_worker(report) if is_worker else text_of(report))
    else:
        print(to_json(report) if args.output == "json" else to_yaml(report))
    if is_worker:
        return 1 if problems_of_worker(report) else 0
    ill = report["trouble"] or report["broken_rules"] or report.get("stalled") or report.get("discovery_error")
    return 1 if ill or report.get("outbox", {}).get("failing") else 0


def text_of(report: dict[str, Any]) -> str:
    """For people: the coverage matrix, then what is wrong."""
    parts = [coverage_table(report), *inert_table(report)]
    if report.get("discovery_error"):
        parts.append(f"The API server does not answer: {report['discovery_error']}")
    if report["trouble"]:
        rows = [[t["kind"], t["state"], t["detail"] or "-"] for t in report["trouble"]]
        parts.append("Cannot be seen:\n" + table(["KIND", "STATE", "WHY"], rows))
    else:
        parts.append("Every kind that the API server serves is seen.")
    for rule in report["broken_rules"]:
        parts.append(f"Broken rule {rule['rule']}: {rule['why']}; its alerts are frozen until it is mended")
    if "outbox" in report:
        outbox = report["outbox"]
        parts.append(
            f"Outbox: {counted(outbox['waiting'], 'message')} waiting, the oldest for {outbox['oldest_due_s']} s"
            if outbox["waiting"]
            else "Outbox: nothing waits to be told."
        )
        parts += [f"Receiver {name} fails: {why}" for name, why in outbox["failing"].items()]
        parts += [
            f"Receiver {name} is no longer configured, {counted(count, 'message')} {inflected(count, 'waits', 'wait')} "
            "for it; add it again, or nothing of that is told"
            for name, count in outbox.get("unclaimed", {}).items()
        ]
    if report.get("stalled"):
        parts.append(f"Input waits: {report['stalled']}")
    parts += [problem for each in report.get("gpu_sources", []) for problem in each["problems"]]
    if report.get("traces", {}).get("problem"):
        parts.append(f"Traces: {report['traces']['problem']}")
    if "heartbeat" in report:
        parts.append(report["heartbeat"]["text"])
    if "outbox" not in report:
        parts.append("No service runs with this state; this was one look. `sevenhop run` watches.")
    return "\n\n".join(parts)


def text_of_worker(report: dict[str, Any]) -> str:
    """For people: what a worker of the scaled runtime serves, then what is wrong."""
    rows = [
        [number, name or "-", "yes" if row["ready"] else "is rebuilt", "silent" if cell.get("blind") else "speaks",
         str(cell.get("outbox", 0)), str(report["lag"].get(number, 0))]
        for number, row in report["partitions"].items()
        for name, cell in (sorted(row["clusters"].items()) or [("", {})])
    ]  # fmt: skip
    parts = [
        table(["PARTITION", "CLUSTER", "SERVED", "ITS EDGE", "OUTBOX", "RECORDS BEHIND"], rows)
        if rows
        else "This worker has no partitions (yet): there are more workers than partitions, or it has just begun."
    ]
    parts += problems_of_worker(report)
    if report.get("unsigned"):
        parts.append(f"Not signed: {report['unsigned']}.")
    stale = sum(cell["stale_records"] for row in report["partitions"].values() for cell in row["clusters"].values())
    if stale:
        parts.append(f"{stale} records of edges that a later edge has replaced were left out.")
    if report.get("traces", {}).get("problem"):
        parts.append(f"Traces: {report['traces']['problem']}")
    if "heartbeat" in report:
        parts.append(report["heartbeat"]["text"])
    parts.append("`sevenhop get sources --cluster NAME` says what is seen of a cluster.")
    return "\n\n".join(parts)


def problems_of_worker(report: dict[str, Any]) -> list[str]:
    """A line each."""
    found = [f"Input waits: {report['stalled']}"] if report["stalled"] else []
    cells = [(name, cell) for row in report["partitions"].values() for name, cell in sorted(row["clusters"].items())]
    found += [
        f"The edge of {name} says nothing; what is known of it is stale: look at its pod"
        for name, cell in cells
        if cell["blind"]
    ]
    found += [f"No plan can be carried out in {name}: {cell['key']}" for name, cell in cells if cell.get("key")]
    found += [
        f"A step in {name} is not done yet, and is tried again: {why}"
        if receiver == CLUSTER
        else f"Receiver {receiver} fails for {name}: {why}"
        for name, cell in cells
        for receiver, why in sorted(cell.get("failing", {}).items())
        if not cell["key"] or cell["key"] not in why  # that is said already
    ]
    found += [
        f"The kill switch of {name} is kept in Redis alone, and is lost with it: {why}; workers need to write to the "
        "topic of objects"
        for name, why in report.get("switches_not_kept", {}).items()
    ]
    found += [
        f"{counted(count, 'record')} went to the dead letters: {why}" for why, count in report["dead_letters"].items()
    ]
    return found


def coverage_table(report: dict[str, Any]) -> str:
    """Which hop is seen, by what, and which rules cannot fire for want of it."""
    inert: dict[str, list[str]] = {}
    for rule in report["inert_rules"]:
        inert.setdefault(rule["hop"], []).append(rule["rule"])
    rows = [
        [row["hop"], "yes" if row["seen"] else "blind", "; ".join(row["missing"]) or row["by"],
         ", ".join(inert.get(row["hop"], [])) or "-"]
        for row in report["coverage"]
    ]  # fmt: skip
    return table(["HOP", "SEEN", "BY, OR WHY NOT", "RULES THAT CANNOT FIRE"], rows)


def inert_table(report: dict[str, Any]) -> list[str]:
    """What would arm each rule that cannot fire here; nothing where all can."""
    rows = [[rule["rule"], rule["hop"] or "-", rule["why"].removeprefix("needs ")] for rule in report["inert_rules"]]
    return ["Rules that cannot fire here:\n" + table(["RULE", "HOP", "WHAT WOULD ARM IT"], rows)] if rows else []
