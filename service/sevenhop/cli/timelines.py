"""What came of the timelines beside rules and playbooks, as `rules test` and `playbooks test` print it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sevenhop.rulebook.problem import Problem
    from sevenhop.rulebook.testing import TestReport


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
