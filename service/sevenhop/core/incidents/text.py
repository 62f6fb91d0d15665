"""Plain text for people: one line, no control characters, times in UTC."""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Iterable, Sequence
from datetime import datetime
from typing import TypeVar

from sevenhop.core.words import counted as counted

_Item = TypeVar("_Item")

_NOT_SHOWN = frozenset({"Cc", "Cf", "Co", "Cs", "Cn", "Zl", "Zp"})
"""Categories that a terminal or a browser obeys instead of showing, such as escapes and right-to-left overrides."""


def plain(text: str, most: int = 0) -> str:
    """
    Text from the cluster on one line.

    Args:
        most: Characters; longer text ends with ``…``.  0 is no limit.

    >>> plain("a\\x1b[31m\\n  b")
    'a[31m b'
    """
    if text.isprintable():  # nearly all text is, and this is a hundred times faster
        line = " ".join(text.split())
        return shorten(line, most) if most else line
    shown = "".join(" " if char.isspace() else char for char in text if _is_shown(char))
    line = " ".join(shown.split())
    return shorten(line, most) if most else line


def shorten(text: str, most: int) -> str:
    """
    >>> shorten("llama-70b", 6)
    'llama…'
    """
    return text if len(text) <= most else text[: most - 1].rstrip() + "…"


def listed(parts: Sequence[str], most: int, separator: str = " · ") -> str:
    """
    The first ones, and how many more there are.

    >>> listed(["a", "b", "c"], 2, ", ")
    'a, b (+1)'
    """
    shown = separator.join(parts[:most])
    return f"{shown} (+{len(parts) - most})" if len(parts) > most else shown


def listed_first(items: Sequence[_Item], words: Callable[[_Item], str], most: int) -> str:
    """
    The same, where there may be thousands: only those that are shown are put into words.

    >>> listed_first([1, 2, 3], str, 2)
    '1 · 2 (+1)'
    """
    shown = " · ".join(words(item) for item in items[:most])
    return f"{shown} (+{len(items) - most})" if len(items) > most else shown


def clock(at: datetime, reference: datetime) -> str:
    """
    A time of day, with the date where it is another day than the reference's.

    >>> from datetime import UTC
    >>> clock(datetime(2026, 11, 30, 3, 0, 5, tzinfo=UTC), datetime(2026, 11, 30, 9, tzinfo=UTC))
    '03:00:05'
    """
    return f"{at:%H:%M:%S}" if at.date() == reference.date() else f"{at:%Y-%m-%d %H:%M:%S}"


def unique(items: Iterable[str]) -> list[str]:
    """In order, each once, none empty."""
    return [item for item in dict.fromkeys(items) if item]


def _is_shown(char: str) -> bool:
    return char.isspace() or unicodedata.category(char) not in _NOT_SHOWN
