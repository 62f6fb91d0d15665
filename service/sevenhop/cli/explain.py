"""`sevenhop explain ALERT|SUBJECT`: why it fires, and with --why-not, why it does not."""

from __future__ import annotations

import argparse
from datetime import UTC, datetime
from typing import Any

from sevenhop.cli.cluster import (
    add_cluster_options,
    add_fleet_option,
    ask_service,
    connect,
    look,
    of_cluster,
    run_async,
    settings_of,
)
from sevenhop.cli.output import UsageError, to_json, to_yaml, visible
from sevenhop.cli.times import shown_time


def add_parser(commands: Any) -> None:
    parser = commands.add_parser(
        "explain",
        help="why an alert fires, or does not",
        description="SUBJECT is a workload, workload/component, pod, node or pool, or kind:namespace/name; "
        "SUBJECT@HH:MM is short for --at.",
    )
    parser.add_argument("subject", metavar="SUBJECT", help="such as llama-70b/decode, gpu-07, pod:chat/llama-70b-0")
    parser.add_argument("--why-not", action="store_true", help="the rules that do not fire, and why not")
    parser.add_argument("--rule", default="", help="only this rule")
    parser.add_argument("--at", default="", metavar="TIME", help="a past moment, from the kept transitions")
    parser.add_argument(
        "--from", dest="recording", default="", metavar="RECORDING", help="replay this recording up to --at"
    )
    parser.add_argument("-o", "--output", choices=("text", "json", "yaml"), default="text")
    add_cluster_options(parser)
    add_fleet_option(parser)


def run(args: argparse.Namespace) -> int:
    subject, _, moment = args.subject.partition("@")
    at = _moment(args.at or moment)
    settings = settings_of(args)
    if args.recording:
        from sevenhop.cli.replaying import engine_at

        engine, now = engine_at(settings, args.recording, at)
        return _show(_explanations(engine, subject, now), args)
    query = {"subject": subject, **of_cluster(args), **({"at": at.isoformat()} if at is not None else {})}
    answer = ask_service(settings.state, "GET", "/explain", query=query)
    if answer is not None:
        return _show_history(answer, args) if at is not None else _show(answer, args)
    if at is not None:
        raise UsageError("--at needs a running service (its kept transitions) or --from RECORDING")

    async def main() -> int:
        from sevenhop.runtime.clock import Clock

        clock = Clock()
        async with await connect(settings) as api:
            engine = await look(settings, api, clock=clock)
        return _show(_explanations(engine, subject, clock()), args)

    return run_async(main)


def _explanations(engine: Any, subject: str, now: datetime) -> list[dict[str, Any]]:
    import msgspec

    from sevenhop.core import views

    try:
        found = views.find_subjects(engine, subject)
    except ValueError as error:
        raise UsageError(str(error)) from None
    if not found:
        raise UsageError(f"nothing is called {subject!r}; `sevenhop get workloads` lists what is known")
    rows: list[dict[str, Any]] = msgspec.to_builtins(
        [views.explanation_of(engine, each, now) for each in found[:10]], enc_hook=str
    )
    return rows


def _moment(text: str) -> datetime | None:
    if not text:
        return None
    today = datetime.now(tz=UTC)
    try:
        if len(text) <= 8:
            clock = datetime.strptime(text, "%H:%M:%S" if text.count(":") == 2 else "%H:%M").replace(tzinfo=UTC)
            return today.replace(hour=clock.hour, minute=clock.minute, second=clock.second, microsecond=0)
        found = datetime.fromisoformat(text)
    except ValueError:
        raise UsageError(f"--at: expected 03:01, 03:01:30 or 2026-11-30T03:01:00Z, got {text!r}") from None
    return found if found.tzinfo else found.replace(tzinfo=UTC)


def _show(found: list[dict[str, Any]], args: argparse.Namespace) -> int:
    if args.rule:
        for each in found:
            each["rules"] = [r for r in each["rules"] if r["rule"] == args.rule]
    if args.output != "text":
        print(to_json(found) if args.output == "json" else to_yaml(found))
        return 0
    for each in found:
        print(visible(text_of(each, why_not=args.why_not)))
    for problem in found[0]["problems"] if found else ():
        print(visible(f"not understood: {problem}"))
    return 0


def text_of(each: dict[str, Any], *, why_not: bool) -> str:
    lines = [each["subject"]]
    labels = {k: v for k, v in each["labels"].items() if k in ("tier", "owner", "model", "model_version", "product")}
    if labels:
        lines.append("  " + " · ".join(f"{k} {v}" for k, v in labels.items()))
    if each.get("diagnosis"):
        d = each["diagnosis"]
        lines.append(f"  {d['cause']} ({d['confidence']}): {d['summary']}")
        if d.get("not_preempted"):
            lines.append(f"  not preempted: {d['not_preempted']}")
    if each.get("hops"):
        lines.append("  hops: " + " · ".join(f"{hop} {state}" for hop, state in each["hops"].items()))
    active = [r for r in each["rules"] if (r["state"] == "inactive") == why_not]
    if not active:
        lines.append(
            "  every rule fires or is pending" if why_not else "  no rule fires or is pending here; --why-not says why"
        )
    for rule in active:
        lines.append(f"  {rule['state']:<8} {rule['rule']}: {rule['why']}")
        for name, value in rule["facts"].items():
            lines.append(f"             {name} = {value}")
        if rule["dropped_by"]:
            lines.append(f"             dropped by {', '.join(rule['dropped_by'])}")
        if rule["due"]:
            lines.append(f"             by time alone changes at {shown_time(rule['due'])}")
        lines += _standing_lines(rule.get("standing"))
    if not why_not:
        lines += [f"  {a['state']:<8} {a['rule']} on {a['subject']}" for a in each.get("around", ())]
    for incident in each["incidents"]:
        lines.append(f"  incident {incident['incident']} ({incident['status']}): {incident['title']}")
    for decision in each["decisions"]:
        to = f" to {decision['receiver']}" if decision["receiver"] else ""
        lines.append(f"    {shown_time(decision['at'])} {decision['reason']}{to} {decision['detail']}".rstrip())
    return "\n".join(lines)


def _standing_lines(standing: dict[str, Any] | None) -> list[str]:
    """Where a firing alert counts and what was decided; nothing for one that does not fire."""
    if standing is None:
        return []
    if not standing["incident"]:
        return ["             in no incident yet"]
    how = "a cause" if standing["is_cause"] else "a symptom"
    lines = [f"             {how} in incident {standing['incident']} ({standing['status']})"]
    for each in standing["reasons"]:
        to = f" {each['receiver']}" if each["receiver"] else ""
        lines.append(f"             {each['reason']}{to}: {each['text']}")
    silence = standing["silence"]
    if silence is not None and not any(each["reason"] == "not_due_silenced" for each in standing["reasons"]):
        lines.append(
            f"             silence {silence['id']} by {silence['author']} covers it, and not all of its incident"
        )
    return lines


def _show_history(found: list[dict[str, Any]], args: argparse.Namespace) -> int:
    if args.output != "text":
        print(to_json(found) if args.output == "json" else to_yaml(found))
        return 0
    for each in found:
        print(f"{each['subject']} at {each['at']}")
        if not each["rules"]:
            print("  no transition is kept from before that moment: every rule was inactive, or it is too long ago")
        for row in each["rules"]:
            t = row["transition"]
            print(f"  {t['state']:<8} {row['rule']} since {shown_time(t['at'])} ({t['reason']})")
            for name, value in t["values"].items():
                print(f"             {name} = {value}")
    return 0
