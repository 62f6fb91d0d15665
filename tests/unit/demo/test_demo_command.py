"""`sevenhop demo` as a command."""

from __future__ import annotations

import asyncio
import io
import os

import pytest

from sevenhop.cli import demo
from sevenhop.cli.main import main
from sevenhop.demo.choices import Choice
from sevenhop.demo.page import Page
from sevenhop.demo.story import STORIES
from tests.unit.demo.telling import Terminal, tell


@pytest.mark.parametrize("words", [[], ["--yes"], ["--no"], ["surge"]], ids=" ".join)
def test_it_succeeds_without_a_word_on_stderr(
    words: list[str], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Exit code 0, whatever the reader's own settings of Sevenhop are."""
    monkeypatch.setenv("SEVENHOP__CLUSTER", "other")
    monkeypatch.setenv("SEVENHOP__INCIDENTS__GROUP_WAIT", "1h")
    assert main(["demo", *words, "--speed", "1000000"]) == 0
    out, err = capsys.readouterr()
    assert err == ""
    assert "RECOVERED · prod-eu" in out


@pytest.mark.parametrize("speed", ["0", "-1", "inf", "nan"])
def test_a_speed_that_leads_nowhere_is_refused(speed: str, capsys: pytest.CaptureFixture[str]) -> None:
    """One line with the fix, exit code 2."""
    assert main(["demo", f"--speed={speed}"]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.count("\n") == 1
    assert "--speed" in err


def test_the_command_knows_every_story() -> None:
    """The help lists them without importing them."""
    assert tuple(STORIES) == demo._STORIES


def test_yes_and_no_exclude_each_other(capsys: pytest.CaptureFixture[str]) -> None:
    """Exit code 2, and nothing is told."""
    with pytest.raises(SystemExit) as ended:
        main(["demo", "--yes", "--no"])
    assert ended.value.code == 2
    assert capsys.readouterr().out == ""


def test_it_asks_when_the_message_stands_there(monkeypatch: pytest.MonkeyPatch) -> None:
    """Not before; and the story goes on to its end with the answer."""
    monkeypatch.setenv("COLUMNS", "100")
    stream = Terminal()
    seen: list[str] = []

    async def choose(_: object) -> Choice:
        seen.append(stream.getvalue())
        return Choice.APPROVE

    told = tell("shortage", stream, choose=choose)
    (before,) = seen
    assert "CRITICAL" in before
    assert "waits for a decision" in before
    assert "RECOVERED" in told.text


@pytest.mark.parametrize(
    ("typed", "expected"),
    [
        pytest.param(b"a\n", Choice.APPROVE, id="a key"),
        pytest.param(b"Reject\n", Choice.REJECT, id="a word"),
        pytest.param(b"\nx\nw\n", Choice.WRONG_PERSON, id="asked again until it is one of them"),
        pytest.param(b"", Choice.NEITHER, id="the end of the input is nobody's answer"),
        pytest.param(b"s\n", Choice.NEITHER, id="what is not open is no answer either"),
    ],
)
def test_the_keyboard(typed: bytes, expected: Choice, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is typed is one of the choices that are open, or nobody's answer."""
    reading, writing = os.pipe()
    os.write(writing, typed)
    os.close(writing)
    with os.fdopen(reading) as keyboard:
        monkeypatch.setattr("sys.stdin", keyboard)
        open_now = [Choice.WRONG_PERSON, Choice.EXPLAIN, Choice.APPROVE, Choice.REJECT]
        assert asyncio.run(demo._ask(Page(io.StringIO()), open_now)) is expected


def test_a_reader_who_leaves_ends_it_quietly() -> None:
    """`sevenhop demo | head` is no failure of ours."""

    class Torn(io.StringIO):
        def write(self, text: str) -> int:
            if "CRITICAL" in self.getvalue() + text:
                raise BrokenPipeError
            return super().write(text)

    with pytest.raises(BrokenPipeError):
        tell("shortage", Torn())


def test_a_channel_that_cannot_write_is_told(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A message that was refused for good is not passed over: one line, exit code 5."""
    honest = Page.write

    def refuse(self: Page, text: str) -> int:
        if "CRITICAL" in text:
            raise ValueError("I/O operation on closed file")
        return honest(self, text)

    monkeypatch.setattr(Page, "write", refuse)
    assert main(["demo", "--yes", "--speed", "1000000"]) == demo.EXIT_BROKEN
    assert "the demo itself failed: console" in capsys.readouterr().err
