"""The demo fits where it is shown: a pipe, a narrow terminal, one without colour."""

from __future__ import annotations

import io
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from sevenhop.demo.choices import YES, Choice, prompt
from sevenhop.demo.page import Page, wrapped
from tests.unit.demo.telling import Terminal, tell

CODES = re.compile(r"\x1b\[[0-9;]*m")


@pytest.mark.parametrize("columns", [40, 60, 80, 200])
def test_no_line_is_wider_than_the_terminal(columns: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Narration, boxes and edits are all broken between words."""
    monkeypatch.setenv("COLUMNS", str(columns))
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("TERM", "xterm")
    text = tell("shortage", Terminal(), *YES).text
    assert "\x1b[" in text
    assert "CRITICAL" in text
    assert [line for line in re.split(r"[\r\n]", CODES.sub("", text)) if cell_len(line) > columns] == []


def test_a_pipe_gets_plain_lines() -> None:
    """No colour, no cursor movement, nothing to be answered."""
    text = tell("shortage").text
    assert "\x1b" not in text
    assert "\r" not in text
    assert "Try:" not in text


@pytest.mark.parametrize("columns", [40, 80])
def test_the_question_fits_too(columns: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """With room for one key behind it, and every choice readable."""
    monkeypatch.setenv("COLUMNS", str(columns))
    stream = Terminal()
    choices = [choice for choice in Choice if choice is not Choice.NEITHER]
    Page(stream).ask(f"          {prompt(choices)}")
    lines = stream.getvalue().split("\n")
    assert all(cell_len(line) < columns for line in lines)
    for choice in choices:
        assert f"({choice.value})" in stream.getvalue()


@pytest.mark.parametrize(("name", "value"), [("NO_COLOR", "1"), ("TERM", "dumb")])
def test_colour_can_be_refused(name: str, value: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A terminal that asks for it gets no escape sequences at all."""
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv(name, value)
    assert "\x1b" not in tell("surge", Terminal()).text


def test_an_encoding_without_symbols_is_respected() -> None:
    """In a C locale the words stay readable, and nothing raises."""
    raw = io.BytesIO()
    page = Page(io.TextIOWrapper(raw, encoding="ascii"))
    page.line("✔ 8×H100 → … · ok")
    assert raw.getvalue().decode("ascii") == "+ 8xH100 -> ... - ok\n"


WORDS = st.lists(st.text(st.sampled_from("ab-·🔴"), min_size=1, max_size=30), min_size=1, max_size=12)


@given(WORDS, st.integers(4, 60), st.integers(0, 20))
def test_wrapping_keeps_every_letter_and_the_width(words: list[str], width: int, hang: int) -> None:
    """Whatever the words: no line is too wide, and nothing is lost."""
    line = " ".join(words)
    lines = wrapped(line, width, hang).split("\n")
    assert all(cell_len(each) <= width for each in lines)
    assert "".join(lines).replace(" ", "") == line.replace(" ", "")
