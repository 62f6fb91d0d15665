"""One row of words: which texts name which cause."""

from __future__ import annotations

import re

import msgspec


class Words(msgspec.Struct, frozen=True, gc=False):
    """
    Texts that name a cause: regular expressions, searched in one line.

    Attributes:
        any_of: One of these must be found.  They are written in lower case and searched in the line in lower case,
            which is four times faster than ignoring case.
        near: Where given, one of these must be in the line too; it keeps words that many programs say ("401",
            "no such host") to the kind of text that is meant.
        exact: Search `any_of` in the line as it is written, where capitals tell.
    """

    cause: str
    any_of: tuple[str, ...]
    near: tuple[str, ...] = ()
    exact: bool = False


class Matcher(msgspec.Struct, frozen=True, gc=False):
    """`Words`, compiled."""

    words: re.Pattern[str]
    near: re.Pattern[str] | None
    exact: bool

    @classmethod
    def of(cls, row: Words) -> Matcher:
        near = re.compile("|".join(row.near)) if row.near else None
        return cls(re.compile("|".join(row.any_of)), near, row.exact)

    def search(self, line: str, lowered: str) -> re.Match[str] | None:
        """Where the words are in a line, given in both spellings; None where they are not."""
        found = self.words.search(line if self.exact else lowered)
        if found is None or (self.near is not None and self.near.search(lowered) is None):
            return None
        return found
