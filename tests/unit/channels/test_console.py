"""The console: read at a glance, at home in a pipe, and never steered by text from the cluster."""

from __future__ import annotations

import io
import os
import pty
import re
from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from sevenhop.channels.channel import PermanentDeliveryError, RetryableDeliveryError
from sevenhop.channels.console.channel import ConsoleChannel
from sevenhop.channels.console.render import Look, look_of, render
from sevenhop.channels.console.settings import ConsoleSettings
from sevenhop.core.effects import Line, Role
from tests.unit.channels.notifies import message, notify, resolved

BOX = ConsoleSettings(type="console")


class Terminal(io.StringIO):
    """A stream that says it is a terminal."""

    encoding = "utf-8"

    def isatty(self) -> bool:
        return True


@pytest.fixture(autouse=True)
def plain_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("NO_COLOR", "FORCE_COLOR", "TERM", "COLUMNS"):
        monkeypatch.delenv(name, raising=False)


def test_a_pipe_gets_plain_lines() -> None:
    """No colour, no box, no wrapping: one fact a line, in the order of the message."""
    long = message(lines=(Line(Role.FIRST_BROKEN, "First broken hop", "x" * 300), Line(Role.OWNER, "Owner", "@me")))

    assert render(notify(message=long), look_of(io.StringIO()), is_first=True).split("\n") == [
        "12:00:00 🔴 CRITICAL · prod-eu · llama-70b/decode waits for 2 × H100 · since 11:58:00",
        "  First broken hop  " + "x" * 300,
        "  Owner             @me",
    ]


@pytest.mark.parametrize(
    ("environment", "colour"),
    [({}, True), ({"NO_COLOR": "1"}, False), ({"NO_COLOR": ""}, True), ({"TERM": "dumb"}, False)],
)
def test_colour_respects_the_terminal(
    environment: dict[str, str], colour: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A terminal has colours unless its user says no (no-color.org: any value but an empty one)."""
    for name, value in environment.items():
        monkeypatch.setenv(name, value)

    look = look_of(Terminal())

    assert look.colour is colour
    assert ("\x1b[" in render(notify(), look, is_first=True)) is colour


@pytest.mark.parametrize("width", [20, 40, 60, 71, 72, 100, 120, 400])
@pytest.mark.parametrize("unicode", [True, False])
def test_a_box_fits_the_terminal(width: int, unicode: bool) -> None:
    """No line is wider than the terminal, nor than a person reads; what is to be copied stands whole below the box."""
    text = render(notify(), Look(width=width, unicode=unicode), is_first=True)

    box = [line for line in text.split("\n") if not line.startswith("  ")]
    assert max(map(cell_len, box)) <= max(min(width, 120), 24)
    assert ("  Look: kubectl -n llm describe pod llama-70b-decode-7" in text.split("\n")) is (width < 72)
    squeezed = re.sub(r"[\s│|]", "", text)
    for line in message().lines:
        assert squeezed.count(re.sub(r"\s", "", line.text)) == 1


def test_the_real_width_of_a_terminal() -> None:
    """The width comes from the terminal itself."""
    ours, theirs = pty.openpty()
    try:
        import fcntl
        import struct
        import termios

        fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 63, 0, 0))
        with os.fdopen(os.dup(theirs), "w", encoding="utf-8") as stream:
            assert look_of(stream).width == 63
    finally:
        os.close(ours)
        os.close(theirs)


@given(
    st.text(max_size=80), st.sampled_from([Look(width=60, colour=True), Look(width=100), Look(), Look(one_line=True)])
)
def test_text_cannot_steer_the_terminal(text: str, look: Look) -> None:
    """No escape sequence, carriage return or direction mark of the cluster's reaches a terminal."""
    hostile = f"\x1b]0;owned\x07\x1b[2J\r\n\x9b31m‮{text}[bold]x[/bold]"
    said = message(title=hostile, cluster=hostile, lines=(Line(Role.WHY, hostile, hostile),))

    shown = re.sub(r"\x1b\[[0-9;]*m", "", render(notify(message=said), look, is_first=True))

    assert not re.search(r"[\x00-\x09\x0b-\x1f\x7f-\x9f‮]", shown)
    assert "[bold]x[/bold]" in re.sub(r"[\s│]", "", shown)


@pytest.mark.parametrize(
    ("end_reason", "word"), [("recovered", "🟢 RECOVERED"), ("subject_gone", "⚪ ENDED: the object is gone")]
)
def test_the_end_is_one_line(end_reason: str, word: str) -> None:
    """Green only if it recovered; with how long it took."""
    text = render(notify(2, message=resolved(end_reason=end_reason)), Look(width=100), is_first=False)

    assert text == (f"12:06:00 {word} · prod-eu · llama-70b/decode waits for 2 × H100 · since 11:58:00, for 8m")


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0.5, "0s"), (59.9, "59s"), (390, "6m30s"), (3599, "59m59s"), (3605, "1h"), (7265, "2h1m"), (180_000, "2d2h")],
)
def test_how_long_it_took(seconds: float, text: str) -> None:
    """As exact as it matters: no parts of a second, and no seconds of hours; days are called days."""
    began = message().since
    ended = resolved(at=began + timedelta(seconds=seconds))

    assert render(notify(2, message=ended), Look(width=100), is_first=False).endswith(f", for {text}")


async def test_quiet_changes_are_one_line() -> None:
    """A terminal cannot edit; what notifies nobody elsewhere is not shown in full here."""
    stream = Terminal()
    channel = ConsoleChannel(BOX, stream)
    await channel.deliver(notify(1), uncertain=False)
    before = len(stream.getvalue().split("\n"))
    await channel.deliver(notify(2), uncertain=False)

    lines = stream.getvalue().split("\n")
    assert len(lines) == before + 1
    assert "changed: llama-70b/decode" in lines[-2]


async def test_the_same_again_is_not_printed() -> None:
    """Once on the screen, however often it is asked for."""
    stream = io.StringIO()
    channel = ConsoleChannel(BOX, stream)
    for uncertain in (False, True, True):
        await channel.deliver(notify(), uncertain=uncertain)

    assert stream.getvalue().count("CRITICAL") == 1


async def test_one_line_style() -> None:
    """A line an incident: when, how loud, where, what, since, and the first broken hop."""
    stream = io.StringIO()
    await ConsoleChannel(ConsoleSettings(type="console", style="line"), stream).deliver(notify(), uncertain=False)

    (line,) = stream.getvalue().splitlines()
    assert line.startswith(
        "12:00:00 🔴 CRITICAL · prod-eu · llama-70b/decode waits for 2 × H100 · since 11:58:00 · ✔ gpu"
    )


async def test_a_terminal_without_unicode() -> None:
    """Where a letter cannot be written another stands for it; the message comes."""
    raw = io.BytesIO()
    stream = io.TextIOWrapper(raw, encoding="ascii")
    await ConsoleChannel(BOX, stream).deliver(notify(), uncertain=False)

    assert raw.getvalue().decode("ascii").startswith("12:00:00 CRITICAL - prod-eu - llama-70b/decode")


class Broken(io.StringIO):
    def __init__(self, error: Exception) -> None:
        super().__init__()
        self.error = error

    def write(self, text: str) -> int:
        raise self.error


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        pytest.param(BrokenPipeError(32, "Broken pipe"), PermanentDeliveryError, id="the reader left"),
        pytest.param(OSError(28, "No space left on device"), RetryableDeliveryError, id="disk full"),
        pytest.param(ValueError("I/O operation on closed file"), PermanentDeliveryError, id="closed"),
    ],
)
async def test_a_stream_that_fails(error: Exception, expected: type[Exception]) -> None:
    """What a person can mend is tried again, and then shown."""
    with pytest.raises(expected):
        await ConsoleChannel(BOX, Broken(error)).deliver(notify(), uncertain=False)
