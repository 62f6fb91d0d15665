"""Where the demo is told: a terminal of any width, or a pipe."""

from __future__ import annotations

import os
import re
from datetime import datetime
from typing import TextIO, cast

from rich.cells import cell_len

from sevenhop.channels.console.render import WIDEST, Look, look_of

INDENT = " " * len("00:00:00  ")
"""Before a line that belongs to the moment of the line above it."""

_TIME = re.compile(r"\d\d:\d\d:\d\d +")
_CODES = re.compile(r"\x1b\[[0-9;]*m")
_ASCII = str.maketrans({"✔": "+", "×": "x", "·": "-", "→": "->", "…": "...", "≥": ">=", "–": "-", "↑": "^", "—": "-"})
_DIM, _BOLD, _GREEN, _OFF = "\x1b[2m", "\x1b[1m", "\x1b[32m", "\x1b[0m"


class Page:
    """
    Writes lines that fit, and stands in for the stream of the console channel, so that these fit too.

    In a pipe nothing is wrapped, coloured or overwritten.

    Attributes:
        look: What the stream can do.
        is_live: Time can be shown while it passes.
        is_torn: Whoever read the pipe has gone.
    """

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._ticked = 0  # columns of the clock that stands on the last line, to be overwritten
        self.is_torn = False
        self.look: Look = look_of(stream)
        self.is_live = bool(self.look.width) and os.environ.get("TERM") != "dumb"

    # What is told ----------------------------------------------------------------------------------------------------

    def line(self, text: str = "") -> None:
        self.write(text + "\n")

    def title(self, text: str) -> None:
        self.line(self._styled(text, _BOLD))

    def at(self, moment: datetime, text: str, *, good: bool = False) -> None:
        """A line that begins with the time of the story."""
        self.line(f"{self._styled(f'{moment:%H:%M:%S}', _DIM)}  {self._styled(text, _GREEN) if good else text}")

    def row(self, label: str, text: str, width: int) -> None:
        """A labelled line; all of a block have the same label width."""
        line = self._encodable(f"{self._styled(f'{label:<{width}}', _BOLD)}  {text}")
        self.line(wrapped(line, self.width, width + 2))

    def tick(self, moment: datetime) -> None:
        """Show the time that passes, where it can be overwritten."""
        self.bar(f"{moment:%H:%M:%S}  …")

    def bar(self, text: str) -> None:
        """A short text that the next one overwrites, on a terminal."""
        if self.is_live:
            text = _head(text, max(self.width - 1, 1))
            self._stream.write("\r" + self._styled(self._encodable(text), _DIM))
            self._stream.flush()
            self._ticked = cell_len(text) + 2

    def ask(self, text: str) -> None:
        """A question on the line of the clock, without an end of line."""
        self._wipe()
        indent = len(text) - len(text.lstrip())
        self._stream.write(wrapped(self._encodable(text.rstrip()), self.width and self.width - 1, indent) + " ")
        self._stream.flush()

    # The stream of the console channel -------------------------------------------------------------------------------

    @property
    def stream(self) -> TextIO:
        return cast("TextIO", self)

    @property
    def encoding(self) -> str:
        return getattr(self._stream, "encoding", None) or "utf-8"

    def isatty(self) -> bool:
        return self._stream.isatty()

    def fileno(self) -> int:
        return self._stream.fileno()

    def flush(self) -> None:
        self._stream.flush()

    def write(self, text: str) -> int:
        self._wipe()
        lines = [wrapped(line, self.width, _hang(line)) for line in self._encodable(text).split("\n")]
        try:
            self._stream.write("\n".join(lines))
            self._stream.flush()
        except BrokenPipeError:
            self.is_torn = True
            raise
        return len(text)

    @property
    def width(self) -> int:
        """Columns; 0 where nothing is wrapped."""
        return min(self.look.width, WIDEST)

    def _wipe(self) -> None:
        if self._ticked:
            self._stream.write("\r" + " " * self._ticked + "\r")
            self._ticked = 0

    def _styled(self, text: str, code: str) -> str:
        return f"{code}{text}{_OFF}" if self.look.colour else text

    def _encodable(self, text: str) -> str:
        if self.look.unicode:
            return text
        return text.translate(_ASCII).encode(self.encoding, "replace").decode(self.encoding)


def _hang(line: str) -> int:
    """Text that goes on stands below the text that follows a clock time, or the place for one."""
    plain = _CODES.sub("", line)
    return len(INDENT) if _TIME.match(plain) or plain.startswith(INDENT) else 0


def wrapped(line: str, width: int, hang: int) -> str:
    """
    A line broken between words to at most `width` columns (0: not at all), the rest indented by `hang`.

    Words that are longer than the line are cut; colour codes take no room.

    >>> print(wrapped("03:00:00  one two three four", 20, 10))
    03:00:00  one two
              three four
    """
    if not width or _columns(line) <= width:
        return line
    hang = min(hang, width // 2)
    done: list[str] = []
    current = ""
    for word in re.findall(r" *[^ ]+", line):
        room = width - (hang if done and not current else _columns(current))
        if _columns(word) <= room:
            current = current + word if current or not done else " " * hang + word.lstrip()
            continue
        if current:
            done.append(current)
        rest = word.lstrip()
        while _columns(rest) > width - hang:
            head = _head(rest, width - hang)
            done.append(" " * hang + head)
            rest = rest[len(head) :]
        current = " " * hang + rest
    return "\n".join([*done, current])


def _head(text: str, columns: int) -> str:
    """As much of the beginning as fits; never nothing, so that cutting comes to an end."""
    end = 1
    while end < len(text) and _columns(text[: end + 1]) <= columns:
        end += 1
    return text[:end]


def _columns(text: str) -> int:
    return cell_len(_CODES.sub("", text))
