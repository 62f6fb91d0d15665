"""`sevenhop rules`: check, test, list, explain and back-test rules, and render their reference."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sevenhop.cli.output import FORMATS, Column, UsageError, fail, listing, to_json, to_yaml
from sevenhop.cli.timelines import show_problems, show_tests

if TYPE_CHECKING:
    from sevenhop.core.alerts.alert import AlertChanged
    from sevenhop.core.alerts.rule import Rule
    from sevenhop.core.facts.schema import FactSpec
    from sevenhop.rulebook.load import Rulebook

Replay = Callable[[Path, "tuple[Rule, ...]"], "Iterable[AlertChanged]"]
"""(recording, rules) → what would have changed, in order."""


_PATHS_HELP = "folders or files; the shipped rules if none"


def add_parser(commands: Any) -> None:
    parser = commands.add_parser(
        "rules",
        help="check, test, list, explain and back-test rules",
        description="Exit codes: 0 all is well; 1 problems were found; 2 the call is wrong.",
    )
    verbs = parser.add_subparsers(dest="verb", metavar="ACTION", required=True)
    paths = argparse.ArgumentParser(add_help=False)
    paths.add_argument("paths", nargs="*", type=Path, metavar="PATH", help=_PATHS_HELP)
    paths.add_argument(
        "--playbooks",
        type=Path,
        action="append",
        default=[],
        metavar="PATH",
        help="playbooks of yours that rules may name, beside the shipped ones",
    )
    verbs.add_parser("check", parents=[paths], help="every problem at once, as file:line: code message")
    test = verbs.add_parser("test", parents=[paths], help="run the timelines in ID.test.yaml, in virtual time")
    test.add_argument("-v", "--verbose", action="store_true", help="name the tests that passed too")
    docs = verbs.add_parser("docs", help="print the reference of the rules, or of the facts")
    docs.add_argument("--facts", action="store_true", help="the facts instead of the rules")
    listed = verbs.add_parser("list", parents=[paths], help="list rules")
    listed.add_argument("-o", "--output", choices=FORMATS, default="table")
    one = verbs.add_parser("explain", help="one rule: what it reads, when it fires, what silences it")
    one.add_argument("id", metavar="ID", help="of the rule")
    one.add_argument("paths", nargs="*", type=Path, metavar="PATH", help=_PATHS_HELP)
    one.add_argument("-o", "--output", choices=("text", "json", "yaml"), default="text")
    back = verbs.add_parser("backtest", help="what would have fired, had these rules seen a recording")
    back.add_argument("recording", type=Path, metavar="RECORDING", help="what `sevenhop record` wrote")
    back.add_argument("paths", nargs="*", type=Path, metavar="PATH", help=_PATHS_HELP)
    back.add_argument("-o", "--output", choices=FORMATS, default="table")


def run(args: argparse.Namespace, *, replay: Replay | None = None) -> int:
    """
    Run one verb.

    Args:
        replay: Feeds a recording through inventory and rules; None takes the core itself, with default settings.
    """
    verbs: dict[str, Callable[[argparse.Namespace], int]] = {
        "check": _check,
        "test": _test,
        "docs": _docs,
        "list": _list,
        "explain": _explain,
        "backtest": lambda given: _backtest(given, replay),
    }
    return verbs[args.verb](args)


def _facts() -> Mapping[str, FactSpec]:
    from sevenhop.core.facts.table import FACTS

    return FACTS


def _paths(args: argparse.Namespace) -> list[Path]:
    if not args.paths:
        from sevenhop.rulebook.shipped import shipped_rules

        return [shipped_rules()]
    for path in args.paths:
        if not path.exists():
            raise UsageError(f"{path}: no such file or folder")
    return list(args.paths)


def _load(args: argparse.Namespace) -> Rulebook:
    from sevenhop.rulebook.load import load_rulebook

    return load_rulebook(_rule_paths(_paths(args)), _facts(), _playbooks(args))


def _playbooks(args: argparse.Namespace) -> frozenset[str]:
    """Names that a rule's `playbook:` may have."""
    from sevenhop.rulebook.playbook_load import load_playbooks
    from sevenhop.rulebook.shipped import shipped_playbooks

    named: list[Path] = getattr(args, "playbooks", [])
    for path in named:
        if not path.exists():
            raise UsageError(f"--playbooks: {path}: no such file or folder")
    return load_playbooks([shipped_playbooks(), *named]).names


def _rule_paths(paths: list[Path]) -> list[Path]:
    """A test file stands for the rule beside it."""
    from sevenhop.rulebook.load import TEST_SUFFIX

    return [
        p.with_name(p.name.removesuffix(TEST_SUFFIX) + ".yaml") if p.name.endswith(TEST_SUFFIX) else p for p in paths
    ]


def _check(args: argparse.Namespace) -> int:
    from sevenhop.rulebook.testing import run_tests

    paths = _paths(args)
    book = _load(args)
    # A test file's own problems count here, a test that fails does not.
    problems = [*book.problems, *run_tests(book, paths, _facts()).problems]
    return show_problems(problems, len(book.rules), "rule")


def _test(args: argparse.Namespace) -> int:
    from sevenhop.rulebook.testing import run_tests

    book = _load(args)
    report = run_tests(book, _paths(args), _facts())
    return show_tests(report, book.problems, verbose=args.verbose)


def _docs(args: argparse.Namespace) -> int:
    if args.facts:
        from sevenhop.rulebook.facts_docs import render as render_facts

        print(render_facts(_facts()), end="")
        return 0
    from sevenhop.rulebook.docs import render
    from sevenhop.rulebook.load import load_rulebook
    from sevenhop.rulebook.shipped import shipped_rules

    book = load_rulebook([shipped_rules()], _facts())
    print(render(book.rules), end="")
    return _complain(book)


def _list(args: argparse.Namespace) -> int:
    book = _load(args)
    columns = (
        Column("ID", "id"),
        Column("HOP", "hop"),
        Column("SUBJECT", "subject"),
        Column("STATUS", "status"),
        Column("SEVERITY", "severity"),
        Column("FOR", "for"),
        Column("KEEP", "keep_firing_for", wide=True),
        Column("PLAYBOOK", "playbook", wide=True),
        Column("READS", "reads", wide=True),
    )
    print(listing([_row(rule) for rule in book.rules], columns, args.output, nothing="no rules"))
    return _complain(book)


def _complain(book: Rulebook) -> int:
    for problem in book.problems:
        fail(str(problem))
    return 1 if book.problems else 0


def _row(rule: Rule) -> dict[str, Any]:
    from sevenhop.rulebook.schema import format_duration

    return {
        "id": rule.id,
        "hop": str(rule.hop or "self"),
        "subject": str(rule.subject),
        "status": str(rule.status) if rule.enabled else f"{rule.status}, off",
        "severity": str(rule.severity),
        "for": format_duration(rule.hold),
        "keep_firing_for": format_duration(rule.keep_firing),
        "since": rule.since,
        "cause": str(rule.cause),
        "playbook": rule.playbook,
        "expr": rule.expr.strip(),
        "drops": list(rule.drops),
        "reads": sorted(rule.reads),
        "summary": rule.annotations["summary"],
        "path": rule.path,
    }


def _explain(args: argparse.Namespace) -> int:
    from sevenhop.rulebook.problem import did_you_mean

    book = _load(args)
    rule = book.rule(args.id)
    if rule is None:
        broken = [problem for problem in book.problems if Path(problem.path).stem == args.id]
        if broken:
            for problem in broken:
                fail(str(problem))
            return 1
        raise UsageError(f"there is no rule {args.id}{did_you_mean(args.id, [r.id for r in book.rules])}")
    if args.output == "text":
        print(_as_text(rule))
    else:
        more = {"description": rule.description, "false_positives": rule.false_positives, "triage": rule.triage}
        print((to_json if args.output == "json" else to_yaml)(_row(rule) | more))
    return 0


def _as_text(rule: Rule) -> str:
    facts = _facts()
    row = _row(rule)
    lines = [f"{rule.id} ({row['hop']}, {row['status']})", f"  {rule.description}", "", "Fires when"]
    lines += [f"  {line}" for line in row["expr"].splitlines()]
    lines.append(f"  for {row['for']}" + (f", counted from {rule.since}" if rule.since else ""))
    lines.append(f"Resolves when that has been false for {row['keep_firing_for']}")
    if rule.drops:
        lines.append(f"Silent while {' or '.join(rule.drops)}")
    lines += ["", "Reads"]
    for name in sorted(rule.reads | rule.shows):
        spec = facts.get(name)
        lines.append(f"  {name}: {spec.doc} Unknown: {spec.unknown_when or 'never'}." if spec else f"  {name}: label")
    lines += ["", "May be false", *(f"  - {text}" for text in rule.false_positives)]
    lines += ["", "Look first", *(f"  {line}" for line in rule.triage.strip().splitlines())]
    return "\n".join(lines)


def _backtest(args: argparse.Namespace, replay: Replay | None) -> int:
    if not args.recording.exists():
        raise UsageError(f"{args.recording}: no such file; `sevenhop record` writes one")
    if replay is None:
        from sevenhop.cli.replaying import replay_rules

        replay = replay_rules
    book = _load(args)
    if book.problems:
        return _complain(book)
    rows = []
    for change in replay(args.recording, book.rules):
        alert = change.alert
        if change.was is alert.state:
            continue  # only its texts or its sight changed
        rows.append(
            {
                "at": f"{change.at:%Y-%m-%d %H:%M:%S}",
                "rule": alert.rule_id,
                "subject": str(alert.subject),
                "was": str(change.was),
                "state": str(alert.state),
                "reason": str(change.reason),
            }
        )
    columns = tuple(Column(name.upper(), name) for name in ("at", "rule", "subject", "was", "state", "reason"))
    print(listing(rows, columns, args.output, nothing="nothing would have changed"))
    return 0
