"""Stories of playbooks: judged by the real guards, and a story that is told wrong is found."""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

import pytest

from sevenhop.cli import playbooks
from sevenhop.cli.output import UsageError
from sevenhop.core.remediation.permit import GuardName
from sevenhop.rulebook.playbook_load import load_playbook_texts
from sevenhop.rulebook.playbook_testing import run_playbook_test_texts
from sevenhop.rulebook.playbook_timeline import Change
from tests.unit.rulebook.test_playbook_load import GOOD, PATH

TESTS = """\
playbook: lend-gpus
tests:
  - name: in the last second
    approvals: 1
    story:
      - at: 9m59s
        set: {approved_by: [slack:U1]}
    expect:
      - at: 9m58s
        step: approved
      - at: 9m59s
        step: passes
        give_back: passes
  - name: too late
    approvals: 1
    story:
      - at: 10m
        set: {approved_by: [slack:U1]}
    expect:
      - at: 10m
        step: approved
"""
TEST_PATH = "playbooks/lend-gpus.test.yaml"


def report(text: str, path: str = TEST_PATH, playbook: str = GOOD) -> Any:
    return run_playbook_test_texts(load_playbook_texts({PATH: playbook}), {path: text})


def told(text: str, path: str = TEST_PATH) -> list[str]:
    found = report(text, path)
    return [str(p) for p in (*found.problems, *(f for r in found.results for f in r.failures))]


def story(change: str, step: str, *, unknown: str = "{}", plan: str = "{}", back: str = "passes") -> str:
    """All is well and approved at 1m; then one thing changes at 2m."""
    return f"""\
  - name: one thing
    approvals: 1
    plan: {plan}
    story:
      - at: 1m
        set: {{approved_by: [slack:U1]}}
      - at: 2m
        set: {change}
        unknown: {unknown}
    expect:
      - at: 1m
        step: passes
      - at: 2m
        step: {step}
        give_back: {back}
"""


def test_stories_that_go_as_told() -> None:
    """
    Both pass, and nothing is missing.
    """
    found = report(TESTS)

    assert (found.is_ok, len(found.results), found.problems) == (True, 2, ())


CHANGES = [
    ("{mode: shadow}", "{}", "mode", "passes"),
    ("{mode: off}", "{}", "mode", "passes"),
    ("{kill_switch: true}", "{}", "kill-switch", "passes"),
    ("{breaker_open: true}", "{}", "breaker", "passes"),
    ("{frozen: true}", "{}", "freeze", "passes"),
    ("{needed: false}", "{}", "still-needed", "passes"),
    ("{}", "{needed: stale}", "still-needed", "passes"),
    ("{fits_plan: false}", "{}", "not-wider", "passes"),
    ("{replicas_now: 5}", "{}", "unchanged", "unchanged"),
    ("{replicas_now: 3}", "{}", "unchanged", "passes"),
    ("{made_anew: true}", "{}", "unchanged", "unchanged"),
    ("{floor: 4}", "{}", "floor", "passes"),
    ("{floor: 3}", "{}", "passes", "passes"),
    ("{}", "{floor: not_synced}", "floor", "passes"),
    ("{opted_out: true}", "{}", "opt-out", "passes"),
    ("{budget_allows: 0}", "{}", "pod-disruption-budget", "passes"),
    ("{budget_allows: 1}", "{}", "passes", "passes"),
    ("{}", "{budget_allows: forbidden}", "pod-disruption-budget", "passes"),
    ("{pool_turned_bad: true}", "{}", "pool-turned-bad", "passes"),
    ("{}", "{pool_turned_bad: no_source}", "pool-turned-bad", "passes"),
    ("{sources: [scheduler]}", "{}", "two-facts", "passes"),
    ("{}", "{pods: stale}", "fresh", "passes"),
    ("{}", "{target: unreadable}", "fresh", "unchanged"),
    ("{earlier_run: {state: failed}}", "{}", "cooldown", "passes"),
    ("{earlier_run: {state: failed, ended_ago: 30m}}", "{}", "passes", "passes"),
    ("{earlier_run: {state: failed, elsewhere: true}}", "{}", "passes", "passes"),
    ("{earlier_run: {state: running, elsewhere: true}}", "{}", "concurrent", "passes"),
    ("{earlier_run: {state: restored, times: 10, elsewhere: true}}", "{}", "daily-budget", "passes"),
    ("{earlier_run: {state: restored, times: 9, elsewhere: true}}", "{}", "passes", "passes"),
]


@pytest.mark.parametrize(("change", "unknown", "step", "back"), CHANGES, ids=[f"{c} {u}" for c, u, _, _ in CHANGES])
def test_each_change_is_judged_by_its_guard(change: str, unknown: str, step: str, back: str) -> None:
    """
    What a story may change is what a guard reads, and that guard is the answer.
    """
    assert told(TESTS + story(change, step, unknown=unknown, back=back)) == []


def test_every_change_that_can_be_told_is_tried() -> None:
    """
    No key of a story is without effect on a verdict above.
    """
    tried = {key for change, unknown, _, _ in CHANGES for key in Change.model_fields if key in change + unknown}

    assert set(Change.model_fields) - tried == {"approved_by"}
    judged = {step for _, _, step, _ in CHANGES}
    assert {str(name) for name in GuardName} - judged == {"approved", "same-cluster", "limits"}


@pytest.mark.parametrize(
    ("plan", "step"),
    [
        ("{replicas: [4, 2], gpus_per_replica: 8}", "passes"),
        ("{replicas: [4, 1], gpus_per_replica: 1}", "limits"),
        ("{replicas: [4, 3], gpus_per_replica: 17}", "limits"),
        ("{replicas: [4, 4]}", "limits"),
        ("{lease: 1h}", "passes"),
        ("{lease: 1h1s}", "limits"),
        ("{lease: 0s}", "limits"),
    ],
)
def test_numbers_of_the_plan(plan: str, step: str) -> None:
    """
    The plan of a story has its numbers, and the playbook's limits judge them.
    """
    text = story("{}", step, plan=plan).replace("step: passes", f"step: {step}", 1)

    assert told(TESTS + text) == []


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            TESTS.replace("step: passes", "step: floor"),
            ":11: test-failed in the last second: at 9m59s step expected floor",
        ),
        (TESTS.replace("give_back: passes", "give_back: mode"), "give_back expected mode, is passes"),
        (
            TESTS.replace("step: passes", "step: pases"),
            ":12: test-bad-value tests.0.expect.1.step: expected one of passes",
        ),
        (TESTS.replace("approved_by: [slack:U1]}", "aproved_by: [slack:U1]}", 1), "did you mean approved_by?"),
        (TESTS.replace("playbook: lend-gpus", "playbook: lend-gpu"), ":1: test-unknown-playbook there is no playbook"),
        (TESTS.replace("9m59s", "9m58s500ms"), "test-incomplete a playbook needs the second of expiry"),
        (TESTS.replace("at: 10m\n        step: approved", "at: 11m\n        step: approved"), "test-incomplete"),
        (TESTS.replace("at: 9m58s", "at: 9m59s500ms"), "times should go forward"),
    ],
    ids=["wrong", "wrong back", "verdict", "key", "playbook", "no last second", "no expiry", "backwards"],
)
def test_a_story_that_is_told_wrong(text: str, expected: str) -> None:
    """
    What is expected and not so, or cannot be read, is told with its line.
    """
    assert expected in "\n".join(told(text))


def test_a_playbook_needs_its_test() -> None:
    """
    A playbook without stories, or with stories in which everything passes or nothing does, is not done.
    """
    book = load_playbook_texts({PATH: GOOD})
    nothing = run_playbook_test_texts(book, {})
    only_late = TESTS[: TESTS.index("  - name: in the last")] + TESTS[TESTS.index("  - name: too late") :]
    only_passes = TESTS[: TESTS.index("  - name: too late")].replace("      - at: 9m58s\n        step: approved\n", "")

    assert [str(p) for p in nothing.problems] == [
        f"{PATH}: test-missing the playbook lend-gpus needs lend-gpus.test.yaml beside it"
    ]
    assert any("a story in which a step passes" in line for line in told(only_late))
    assert any("a story in which a step is refused" in line for line in told(only_passes))
    assert told(TESTS, "playbooks/other.test.yaml") == [
        "playbooks/other.test.yaml:1: test-file-name tests of lend-gpus belong into lend-gpus.test.yaml"
    ]


def test_a_broken_playbook_is_told_once() -> None:
    """
    Stories of a playbook that has problems of its own say nothing more.
    """
    assert report(TESTS, playbook=GOOD.replace("scale]", "scael]")).problems == ()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "lend-gpus.yaml").write_text(GOOD, "utf-8")
    (tmp_path / "lend-gpus.test.yaml").write_text(TESTS, "utf-8")
    return tmp_path


def call(*words: object) -> int:
    parser = argparse.ArgumentParser()
    playbooks.add_parser(parser.add_subparsers())
    return playbooks.run(parser.parse_args(["playbooks", *map(str, words)]))


@pytest.mark.parametrize("verb", ["check", "test", "list"])
@pytest.mark.parametrize("what", ["", "lend-gpus.yaml", "lend-gpus.test.yaml"], ids=["folder", "file", "test"])
def test_the_command(verb: str, what: str, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """
    All is well: exit code 0, and nothing on stderr.
    """
    assert call(verb, folder / what) == 0

    out, err = capsys.readouterr()
    assert out
    assert err == ""


def test_the_command_tells_problems(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """
    Exit code 1 and a line each; a path that is not there is a wrong call.
    """
    (folder / "lend-gpus.yaml").write_text(GOOD.replace("scale]", "scael]"), "utf-8")

    assert call("check", folder) == 1
    assert "playbook-unknown-action" in capsys.readouterr().out
    assert call("test", folder) == 1
    with pytest.raises(UsageError, match="no such file"):
        call("check", folder / "none")


def test_the_command_tells_failures(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """
    A story that goes otherwise ends `test` with 1, and not `check`.
    """
    (folder / "lend-gpus.test.yaml").write_text(TESTS.replace("give_back: passes", "give_back: mode"), "utf-8")

    assert call("test", folder) == 1
    assert capsys.readouterr().out.endswith("1 passed, 1 failed\n")
    assert call("check", folder) == 0


def test_the_list_for_programs(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """
    Every key of the core, durations as people write them.
    """
    assert call("list", folder, "-o", "json") == 0

    row = json.loads(capsys.readouterr().out)[0]
    assert (row["id"], row["lease"], row["mode"], row["steps"]) == ("lend-gpus", "1h", "approve", ["steer", "scale"])
