"""What leaves for a person's eyes."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sevenhop.cli import main as cli
from sevenhop.cli.main import main
from sevenhop.cli.output import folded, others, table, visible


@given(st.text())
def test_nothing_that_a_terminal_obeys(text: str) -> None:
    """
    Whatever the cluster writes: no control characters but the line's end.
    """
    assert all(c == "\n" or c.isprintable() or c.isspace() for c in visible(text))
    assert "\x1b" not in visible(text)
    assert "\r" not in visible(text)


def test_words_stay_as_they_are() -> None:
    """
    Letters of every script, and the lines, are kept.
    """
    assert visible("größer\n模型 ✓") == "größer\n模型 ✓"


def test_a_cell_is_one_line() -> None:
    """
    A name with a line's end in it does not break the table.
    """
    assert table(["NAME", "X"], [["a\nb\x1b[2J", "1"]]).count("\n") == 1


def test_what_is_alike_is_said_once() -> None:
    """
    The first stands for all, in the order in which they came.
    """
    rows = [("same", "a", 1), ("other", "b", 2), ("same", "c", 3), ("same", "d", 4)]

    assert list(folded(rows)) == [(1, ["c", "d"]), (2, [])]
    assert others(["c", "d"]) == "and 2 more like it: c, d"


def _rejected(number: int) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": f"engine-{number:04}", "namespace": "prod"},
        "spec": {"nodeName": "gpu-1", "containers": [{"name": "c"}]},
        "status": {
            "phase": "Failed",
            "reason": "UnexpectedAdmissionError",
            "message": "Allocate failed due to requested number of devices unavailable for nvidia.com/gpu. "
            f"Requested: {number}, Available: 0, which is unexpected",
        },
    }


def _said(capsys: pytest.CaptureFixture[str], folder: Path, pods: list[dict[str, Any]], *more: str) -> str:
    file = folder / "pods.json"
    file.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": pods}))
    assert main(["diagnose", "-f", str(file), *more]) == 0
    return capsys.readouterr().out


def test_hundreds_of_failed_pods_are_one_entry(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """
    The text says how many; JSON still lists every one.
    """
    pods = [_rejected(number) for number in range(300)]

    text = _said(capsys, tmp_path, pods)
    document = json.loads(_said(capsys, tmp_path, pods, "-o", "json"))

    assert "and 299 more like it: engine-0001, engine-0002, engine-0003, …" in text
    assert len(text.splitlines()) < 20
    assert len(document["pods"]) == 300


def test_a_hostile_name_cannot_move_the_cursor(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """
    Escape sequences in a bundle do not reach the terminal.
    """
    pod = _rejected(1)
    pod["metadata"]["name"] = "a\x1b[2J\u202eb"
    pod["status"]["message"] = "\x1b]0;title\x07 what"

    text = _said(capsys, tmp_path, [pod])

    assert "prod/a[2Jb" in text
    assert "\x1b" not in text
    assert "\u202e" not in text


WIDE = (["HOP", "SEEN", "BY, OR WHY NOT"], [["gpu", "blind", "no agent is heard; see docs/howto/gpu-agent.md"]])


@pytest.fixture
def terminal(monkeypatch: pytest.MonkeyPatch) -> Callable[[int], None]:
    """Standard output is a terminal of so many columns."""

    def of(columns: int) -> None:
        monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
        monkeypatch.setenv("COLUMNS", str(columns))

    return of


@pytest.mark.parametrize("columns", [200, 60, 45, 37])
def test_a_narrow_terminal_hides_nothing(terminal: Callable[[int], None], columns: int) -> None:
    """What does not fit is wrapped within its column, and no name is broken."""
    terminal(columns)
    lines = table(*WIDE).splitlines()
    assert max(map(len, lines)) <= columns
    words = [word for line in (WIDE[0], *WIDE[1]) for cell in line for word in cell.split()]
    assert sorted(" ".join(lines).split()) == sorted(words)


def test_names_stay_whole_where_even_they_do_not_fit(terminal: Callable[[int], None]) -> None:
    """They are there to be copied; the terminal wraps the line."""
    terminal(20)
    assert "docs/howto/gpu-agent.md" in table(*WIDE)


def test_in_a_pipe_each_row_is_a_line() -> None:
    """Whatever COLUMNS says: grep and awk read it."""
    assert len(table(*WIDE).splitlines()) == 2


def test_an_interrupt_while_modules_are_loaded(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Half a second into any command: exit code 130, and no traceback."""

    def interrupted(_only: str) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(cli, "build_parser", interrupted)
    assert cli.main(["scan"]) == 130
    assert capsys.readouterr().err == ""
