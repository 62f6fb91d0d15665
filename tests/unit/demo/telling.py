"""Plays stories fast, to a terminal or a pipe that a test can read."""

from __future__ import annotations

import asyncio
import io
import re
from typing import NamedTuple

from sevenhop.demo.choices import Choice, Choose, scripted
from sevenhop.demo.narrator import Tally
from sevenhop.demo.page import Page
from sevenhop.demo.play import play
from sevenhop.demo.story import STORIES

FAST = 1e6


class Terminal(io.StringIO):
    """A terminal; `COLUMNS` says how wide."""

    def isatty(self) -> bool:
        return True


class Told(NamedTuple):
    text: str
    tally: Tally

    @property
    def lines(self) -> list[str]:
        return self.text.splitlines()

    def full_messages(self) -> list[str]:
        """First lines of the messages that were posted, in a pipe."""
        return [line for line in self.lines if re.search(r"(CRITICAL|WARNING) · prod-eu · (?!changed:)", line)]

    def after(self, words: str) -> str:
        """What is told from these words on."""
        return self.text[self.text.index(words) :]


def tell(
    name: str,
    stream: io.StringIO | None = None,
    *choices: Choice,
    speed: float = FAST,
    choose: Choose | None = None,
) -> Told:
    """Play a story; without choices nobody answers when people are asked."""
    stream = stream if stream is not None else io.StringIO()
    if choices:
        choose = scripted(choices)
    tally = asyncio.run(play(STORIES[name], Page(stream), speed=speed, choose=choose))
    return Told(stream.getvalue(), tally)
