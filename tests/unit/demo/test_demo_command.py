"""`sevenhop demo` as a command."""

from __future__ import annotations

import io

import pytest

from sevenhop.cli import demo
from sevenhop.cli.main import main
from sevenhop.demo.page import Page
from sevenhop.demo.story import STORIES
from tests.unit.demo.telling import Terminal, tell


def test_it_succeeds_without_a_word_on_stderr(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Exit code 0, whatever the reader's own settings of Sevenhop are."""
    monkeypatch.setenv("SEVENHOP__CLUSTER", "other")
    monkeypatch.setenv("SEVENHOP__INCIDENTS__GROUP_WAIT", "1h")
    assert main(["demo", "--speed", "1000000"]) == 0
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


def test_it_stops_once_for_the_reader_when_the_message_stands_there(monkeypatch: pytest.MonkeyPatch) -> None:
    """Not before, not again; and the story then goes on to its end."""
    monkeypatch.setenv("COLUMNS", "100")
    stream = Terminal()
    seen: list[str] = []

    async def ask() -> None:
        seen.append(stream.getvalue())

    told = tell("shortage", stream, ask=ask)
    (before,) = seen
    assert "CRITICAL" in before
    assert "waits instead" not in before
    assert "RECOVERED" in told.text


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
