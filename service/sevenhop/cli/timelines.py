"""What came of checking rules and playbooks and of the timelines beside them, as `check` and `test` print it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from sevenhop.cli.output import fail
from sevenhop.core.words import counted, inflected

if TYPE_CHECKING:
    from sevenhop.rulebook.problem import Problem
    from sevenhop.rulebook.testing import TestReport


def show_problems(problems: Sequence[Problem], well: int, noun: str) -> int:
    """
    Print all problems and a summary.

    Args:
        well: How many of what was checked have none; `noun` names one of them.

    Returns:
        0 without a problem, else 1.
    """
    for problem in problems:
        print(problem)
    if not problems:
        print(f"{counted(well, noun)}, no problem")
        return 0
    files = counted(len({problem.path for problem in problems}), "file")
    fail(f"{counted(len(problems), 'problem')} in {files}; {counted(well, noun)} {inflected(well, 'is', 'are')} well")
    return 1


def show_tests(report: TestReport, problems: Sequence[Problem], *, verbose: bool) -> int:
    """
    Print problems, failures and the count; with `verbose` what passed too.

    Returns:
        0 if all is well, else 1.
    """
    for problem in (*problems, *report.problems):
        print(problem)
    for result in report.results:
        if verbose and not result.failures:
            print(f"ok {result.rule_id}: {result.name}")
        for failure in result.failures:
            print(failure)
    failed = sum(1 for result in report.results if result.failures)
    print(f"{len(report.results) - failed} passed, {failed} failed")
    return 0 if report.is_ok and not problems else 1
