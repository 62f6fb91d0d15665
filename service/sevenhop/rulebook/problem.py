"""What is wrong with a file that people wrote, where, and what to write instead."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from difflib import get_close_matches


@dataclass(frozen=True, slots=True, order=True)
class Problem:
    """
    One thing to mend.

    Attributes:
        line: From 1; 0 where the file as a whole is meant.
        code: Stable, kebab-case, for tools.
        message: The value, the wish, and a suggestion where there is one.
    """

    path: str
    line: int
    code: str
    message: str

    def __str__(self) -> str:
        place = f"{self.path}:{self.line}" if self.line else self.path
        return f"{place}: {self.code} {self.message}"


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """
    The closest known word as the end of a sentence; empty if none is close.

    >>> did_you_mean("severty", ["severity", "status"])
    '; did you mean severity?'
    """
    # The part of a dotted name is no help to somebody who wrote a dotted one.
    alike = [name for name in known if "." in name or "." not in word]
    close = get_close_matches(word, alike, n=1, cutoff=0.6)
    return f"; did you mean {close[0]}?" if close else ""
