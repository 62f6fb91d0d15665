"""What leaves for a person's eyes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

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
