"""`sevenhop playbooks`: check, test and list playbooks, and render their reference."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sevenhop.cli.output import FORMATS, Column, UsageError, fail, listing
from sevenhop.cli.timelines import show_problems, show_tests

if TYPE_CHECKING:
    from sevenhop.core.remediation.playbook import Playbook
    from sevenhop.rulebook.playbook_load import Playbooks
    from sevenhop.rulebook.playbook_testing import Play


def add_parser(commands: Any) -> None:
    parser = commands.add_parser(
        "playbooks",
        help="check, test and list playbooks",
        description="Exit codes: 0 all is well; 1 problems were found; 2 the call is wrong.",
    )
    verbs = parser.add_subparsers(dest="verb", metavar="ACTION", required=True)
    paths = argparse.ArgumentParser(add_help=False)
    paths.add_argument(
        "paths", nargs="*", type=Path, metavar="PATH", help="folders or files; the shipped playbooks if none"
    )
    verbs.add_parser("check", parents=[paths], help="every problem at once, as file:line: code message")
    test = verbs.add_parser("test", parents=[paths], help="run the timelines and scenes in ID.test.yaml")
    test.add_argument(
        "--rules",
        type=Path,
        action="append",
        metavar="PATH",
        help="rules that scenes play with; the shipped ones if none",
    )
    test.add_argument("-v", "--verbose", action="store_true", help="name the tests that passed too")
    listed = verbs.add_parser("list", parents=[paths], help="list playbooks as their files say")
    listed.add_argument("-o", "--output", choices=FORMATS, default="table")
    verbs.add_parser("docs", help="print the reference of the playbooks")


def run(args: argparse.Namespace) -> int:
    verbs: dict[str, Callable[[argparse.Namespace], int]] = {
        "check": _check,
        "test": _test,
        "list": _list,
        "docs": _docs,
    }
    return verbs[args.verb](args)


def _paths(args: argparse.Namespace) -> list[Path]:
    if not args.paths:
        from sevenhop.rulebook.shipped import shipped_playbooks

        return [shipped_playbooks()]
    for path in args.paths:
        if not path.exists():
            raise UsageError(f"{path}: no such file or folder")
    return list(args.paths)


def _load(paths: list[Path]) -> Playbooks:
    from sevenhop.rulebook.load import TEST_SUFFIX
    from sevenhop.rulebook.playbook_load import load_playbooks

    # A test file stands for the playbook beside it.
    return load_playbooks(
        p.with_name(p.name.removesuffix(TEST_SUFFIX) + ".yaml") if p.name.endswith(TEST_SUFFIX) else p for p in paths
    )


def _check(args: argparse.Namespace) -> int:
    from sevenhop.rulebook.playbook_testing import run_playbook_tests

    paths = _paths(args)
    book = _load(paths)
    # A test file's own problems count here, a test that fails does not.
    problems = [*book.problems, *run_playbook_tests(book, paths).problems]
    return show_problems(problems, len(book.playbooks), "playbook")


def _test(args: argparse.Namespace) -> int:
    from sevenhop.rulebook.playbook_testing import run_playbook_tests

    paths = _paths(args)
    book = _load(paths)
    report = run_playbook_tests(book, paths, _player(args.rules))
    return show_tests(report, book.problems, verbose=args.verbose)


def _player(paths: list[Path] | None) -> Play:
    """Plays scenes with these rules."""
    from sevenhop.core.facts.table import FACTS
    from sevenhop.rehearsal.play import play
    from sevenhop.rulebook.load import load_rulebook
    from sevenhop.rulebook.shipped import shipped_rules

    for path in paths or ():
        if not path.exists():
            raise UsageError(f"{path}: no such file or folder")
    rules = load_rulebook(paths or [shipped_rules()], FACTS).rules
    return lambda playbook, scene: play(playbook, scene, rules)


def _list(args: argparse.Namespace) -> int:
    book = _load(_paths(args))
    columns = (
        Column("ID", "id"),
        Column("MODE", "mode"),
        Column("STEPS", "steps"),
        Column("GOAL", "goal"),
        Column("APPROVALS", "approvals"),
        Column("APPROVERS", "approvers", wide=True),
        Column("EXPIRES", "expires", wide=True),
        Column("LEASE", "lease"),
        Column("COOLDOWN", "cooldown", wide=True),
        Column("TITLE", "title", wide=True),
    )
    rows = [_row(playbook, book) for playbook in book.playbooks]
    print(listing(rows, columns, args.output, nothing="no playbooks"))
    for problem in book.problems:
        fail(str(problem))
    return 1 if book.problems else 0


def _row(playbook: Playbook, book: Playbooks) -> dict[str, Any]:
    from datetime import timedelta

    import msgspec

    from sevenhop.rulebook.schema import format_duration

    row: dict[str, Any] = {}
    for key, value in msgspec.structs.asdict(playbook).items():
        row[key] = format_duration(value) if isinstance(value, timedelta) else value
    row |= {"mode": str(playbook.mode), "goal": str(playbook.goal), "path": book.paths[playbook.id]}
    return row | {"steps": list(playbook.steps), "approvers": list(playbook.approvers)}


def _docs(_args: argparse.Namespace) -> int:
    from sevenhop.rulebook.playbook_docs import render
    from sevenhop.rulebook.playbook_load import load_playbooks
    from sevenhop.rulebook.shipped import shipped_playbooks

    book = load_playbooks([shipped_playbooks()])
    print(render(book), end="")
    for problem in book.problems:
        fail(str(problem))
    return 1 if book.problems else 0
