"""
Timeline tests of playbooks, in virtual time, through the very guards that run in production.

A playbook needs a story that passes, one that is refused, and the exact second at which a plan expires: an approval one
second earlier counts, one at that second does not.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import timedelta
from pathlib import Path, PurePath

from msgspec.structs import replace
from pydantic import ValidationError

from sevenhop.core.remediation.guards import refusals
from sevenhop.core.remediation.permit import GuardName, Purpose
from sevenhop.core.remediation.playbook import Playbook
from sevenhop.rulebook.load import TEST_SUFFIX, read_files, schema_problems
from sevenhop.rulebook.playbook_load import Playbooks
from sevenhop.rulebook.playbook_scene import PlaybookScene
from sevenhop.rulebook.playbook_timeline import KEYS, PASSES, PlaybookTestFile, PlaybookTimeline
from sevenhop.rulebook.playbook_world import World, plan_of
from sevenhop.rulebook.problem import Problem, did_you_mean
from sevenhop.rulebook.schema import format_duration
from sevenhop.rulebook.testing import TestReport, TestResult, test_files
from sevenhop.rulebook.yaml_nodes import Document, read_document

_SECOND = timedelta(seconds=1)


Play = Callable[[Playbook, PlaybookScene], Sequence[tuple[int, str]]]
"""Plays a scene; gives (index of an expectation, what is otherwise); raises `ValueError` if it cannot be played."""


def run_playbook_tests(book: Playbooks, paths: Iterable[Path], play: Play | None = None) -> TestReport:
    """
    Run every test file below `paths` against the playbooks of `book`; `rule_id` of a result is the playbook's.

    Args:
        play: Plays the scenes, which needs more than this package has; without it they are read only.
    """
    texts, problems = read_files(test_files(paths))
    report = run_playbook_test_texts(book, texts, play)
    return TestReport(report.results, tuple(sorted([*problems, *report.problems])))


def run_playbook_test_texts(book: Playbooks, texts: Mapping[str, str], play: Play | None = None) -> TestReport:
    """Run tests from path → content; reads no files."""
    results: list[TestResult] = []
    problems: list[Problem] = []
    tested: set[str] = set()
    for path, text in sorted(texts.items()):
        document = read_document(path, text)
        written, found = _read(document, book)
        problems += found
        if isinstance(document.data, dict):
            tested.add(str(document.data.get("playbook", "")))
        if written is None:
            continue
        playbook = book.playbook(written.playbook)
        assert playbook is not None, "checked while reading"
        results += [_run(playbook, test, i, document) for i, test in enumerate(written.tests)]
        if play is not None:
            results += [_play(playbook, scene, i, document, play) for i, scene in enumerate(written.scenes)]
        problems += _lacking(playbook, written, document)
    for playbook in book.playbooks:
        if playbook.id not in tested:
            said = f"the playbook {playbook.id} needs {playbook.id}{TEST_SUFFIX} beside it"
            problems.append(Problem(book.paths[playbook.id], 0, "test-missing", said))
    return TestReport(tuple(results), tuple(sorted(problems)))


def _read(document: Document, book: Playbooks) -> tuple[PlaybookTestFile | None, list[Problem]]:
    problems = list(document.problems)
    if document.data is None:
        return None, problems
    try:
        written = PlaybookTestFile.model_validate(document.data)
    except ValidationError as error:
        return None, problems + schema_problems(document, error, KEYS, "test")
    line = document.line(("playbook",))
    if book.playbook(written.playbook) is None:
        if written.playbook not in book.names:  # else it has problems of its own, told there
            hint = did_you_mean(written.playbook, [p.id for p in book.playbooks])
            said = f"there is no playbook {written.playbook}{hint}"
            problems.append(Problem(document.path, line, "test-unknown-playbook", said))
        return None, problems
    if PurePath(document.path).name != written.playbook + TEST_SUFFIX:
        said = f"tests of {written.playbook} belong into {written.playbook}{TEST_SUFFIX}"
        problems.append(Problem(document.path, line, "test-file-name", said))
    return (None if problems else written), problems


def _run(playbook: Playbook, test: PlaybookTimeline, i: int, document: Document) -> TestResult:
    asked = replace(
        playbook,
        mode=test.mode,
        approvers=tuple(test.approvers),
        approvals=test.approvals or playbook.approvals,
    )
    world = World(asked, plan_of(asked, test.plan))
    failures = []
    moments = list(test.story)
    for e, expected in enumerate(test.expect):
        while moments and moments[0].at <= expected.at:
            world.live(moments.pop(0))
        for key, wanted, purpose in (
            ("step", expected.step, Purpose.APPLY),
            ("give_back", expected.give_back, Purpose.RESTORE),
        ):
            if wanted is None:
                continue
            against = refusals(world.question(expected.at, purpose))
            found = str(against[0].guard) if against else PASSES
            if found != str(wanted):
                why = f": {against[0].text}" if against else ""
                said = f"{test.name}: at {format_duration(expected.at)} {key} expected {wanted}, is {found}{why}"
                failures.append(Problem(document.path, document.line(("tests", i, "expect", e)), "test-failed", said))
    return TestResult(playbook.id, test.name, tuple(failures))


def _play(playbook: Playbook, scene: PlaybookScene, i: int, document: Document, play: Play) -> TestResult:
    try:
        found = play(playbook, scene)
    except ValueError as error:
        said = Problem(document.path, document.line(("scenes", i)), "test-wrong-value", f"{scene.name}: {error}")
        return TestResult(playbook.id, scene.name, (said,))
    failures = []
    for e, text in found:
        line = document.line(("scenes", i, "expect", e))
        at = format_duration(scene.expect[e].at)
        failures.append(Problem(document.path, line, "test-failed", f"{scene.name}: at {at} {text}"))
    return TestResult(playbook.id, scene.name, tuple(failures))


def _lacking(playbook: Playbook, written: PlaybookTestFile, document: Document) -> list[Problem]:
    """What a playbook's tests do not show."""
    verdicts = [str(expected.step) for test in written.tests for expected in test.expect]
    missing = []
    if PASSES not in verdicts:
        missing.append("a story in which a step passes")
    if all(verdict == PASSES for verdict in verdicts):
        missing.append("a story in which a step is refused")
    if not (_approves(written, playbook.expires - _SECOND, PASSES) and _approves(written, playbook.expires, _TOO_LATE)):
        at = format_duration(playbook.expires)
        missing.append(
            f"the second of expiry: an approval at {at} that is refused, and one a second earlier that counts"
        )
    line = document.line(("tests",))
    return [Problem(document.path, line, "test-incomplete", f"a playbook needs {what}") for what in missing]


_TOO_LATE = str(GuardName.APPROVED)


def _approves(written: PlaybookTestFile, at: timedelta, verdict: str) -> bool:
    """Whether some story has its first approval at this time, and this verdict then."""
    for test in written.tests:
        approved = [moment.at for moment in test.story if moment.set.approved_by]
        if approved[:1] == [at] and any(e.at == at and str(e.step) == verdict for e in test.expect):
            return True
    return False
