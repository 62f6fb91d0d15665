"""`sevenhop rules`: what it prints and with which exit code it ends."""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

from sevenhop.cli import rules
from sevenhop.cli.output import UsageError
from sevenhop.core.alerts.alert import Alert, AlertChanged, AlertState, ChangeReason
from sevenhop.core.alerts.rule import Rule
from sevenhop.core.subject import Subject
from tests.unit.rulebook.test_timelines import RULE, TESTS


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "pod").mkdir()
    (tmp_path / "pod" / "too-few.yaml").write_text(RULE, "utf-8")
    (tmp_path / "pod" / "too-few.test.yaml").write_text(TESTS, "utf-8")
    return tmp_path


def call(*words: object, replay: rules.Replay | None = None) -> int:
    parser = argparse.ArgumentParser()
    rules.add_parser(parser.add_subparsers())
    return rules.run(parser.parse_args(["rules", *map(str, words)]), replay=replay)


@pytest.mark.parametrize("verb", ["check", "test", "list"])
@pytest.mark.parametrize("what", ["", "pod/too-few.yaml"], ids=["folder", "file"])
def test_all_is_well(verb: str, what: str, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """
    Exit code 0, and nothing on stderr.
    """
    assert call(verb, folder / what) == 0

    out, err = capsys.readouterr()
    assert out
    assert err == ""


def test_check_prints_every_problem(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """
    One line each, and exit code 1.
    """
    path = folder / "pod" / "too-few.yaml"
    path.write_text(RULE.replace("2m", "2").replace("waiting >", "wating >"), "utf-8")

    assert call("check", folder) == 1

    lines = capsys.readouterr().out.splitlines()
    assert [line.split(" ")[:2] for line in lines] == [
        [f"{path}:4:", "expr-unknown-fact"],
        [f"{path}:5:", "rule-bad-value"],
    ]


def test_a_failing_story_is_told(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """
    `test` ends with 1; `check` does not run stories to their end.
    """
    path = folder / "pod" / "too-few.test.yaml"
    path.write_text(TESTS.replace("severity: critical", "severity: warning"), "utf-8")

    assert call("test", folder) == 1
    assert "expected warning, is critical" in capsys.readouterr().out
    assert call("check", folder) == 0


def test_list_as_json(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """
    For programs: all fields.
    """
    assert call("list", folder, "-o", "json") == 0

    (row,) = json.loads(capsys.readouterr().out)
    assert (row["id"], row["hop"], row["for"], row["drops"]) == ("too-few", "pod", "2m", ["component.intended_zero"])


def test_explain(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """
    What it reads, when it fires, and what silences it.
    """
    assert call("explain", "too-few", folder) == 0

    out = capsys.readouterr().out
    assert "component.waiting > 0" in out
    assert "Silent while component.intended_zero" in out
    assert "Pods that the scheduler cannot place." in out


@pytest.mark.parametrize(
    ("words", "says"),
    [
        pytest.param(["explain", "too-fw"], "did you mean too-few?", id="unknown rule"),
        pytest.param(["backtest", "gone.zst"], "no such file", id="no recording"),
    ],
)
def test_a_wrong_call(words: list[str], says: str, folder: Path) -> None:
    """
    One line with the fix; the caller of `run` turns it into exit code 2.
    """
    with pytest.raises(UsageError, match=says.replace("?", r"\?")):
        call(*words, folder)


def test_a_path_that_is_not_there() -> None:
    """
    A misspelt folder is no empty rulebook.
    """
    with pytest.raises(UsageError, match="no such file or folder"):
        call("check", "nowhere")


def test_backtest(folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """
    The rules and the recording go to the given replay; what it says is listed.
    """
    recording = tmp_path / "day.zst"
    recording.write_bytes(b"")
    asked: list[tuple[Path, tuple[str, ...]]] = []

    def replay(path: Path, given: tuple[Rule, ...]) -> Iterator[AlertChanged]:
        asked.append((path, tuple(r.id for r in given)))
        noon = datetime(2026, 1, 1, 12, tzinfo=UTC)
        alert = Alert(
            rule_id="too-few",
            rule_digest="",
            cluster="c",
            subject=Subject.parse("component:chat/llm/decode"),
            state=AlertState.FIRING,
            since=noon,
        )
        yield AlertChanged(alert=alert, was=AlertState.PENDING, reason=ChangeReason.HELD, at=noon)

    assert call("backtest", recording, folder, replay=replay) == 0

    assert asked == [(recording, ("too-few",))]
    assert "2026-01-01 12:00:00  too-few  component:chat/llm/decode  pending  firing  held" in capsys.readouterr().out
