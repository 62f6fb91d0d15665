"""Lengths of time as people write and read them: always with a unit."""

from __future__ import annotations

import re
from datetime import timedelta

_DURATION = re.compile(r"(?:\d+(?:\.\d+)?(?:ms|s|m|h|d))+", re.ASCII)
_PART = re.compile(r"(\d+(?:\.\d+)?)(ms|s|m|h|d)", re.ASCII)
LONGEST = timedelta(days=36_525)
"""A hundred years: added to any time of ours it is still a date."""

_UNITS = {"ms": 0.001, "s": 1, "m": 60, "h": 3600, "d": 86400}


def parse_duration(text: object) -> timedelta:
    """
    Read ``90s``, ``5m``, ``1h30m`` or ``200ms``.

    Raises:
        ValueError: No unit, negative, too long, or something else altogether.

    >>> parse_duration("1h30m")
    datetime.timedelta(seconds=5400)
    """
    if isinstance(text, timedelta):
        return text
    if not isinstance(text, str) or not _DURATION.fullmatch(text.strip()):
        raise ValueError(f"expected a duration such as 90s, 5m or 12h, got {text!r}")
    seconds = sum(float(number) * _UNITS[unit] for number, unit in _PART.findall(text))
    if seconds > LONGEST.total_seconds():
        raise ValueError(f"expected a duration such as 90s, 5m or 12h, got {text[:40]!r}, which is too long")
    return timedelta(seconds=seconds)


def format_duration(length: timedelta) -> str:
    """
    The shortest way to write a length of time.

    >>> format_duration(timedelta(minutes=90)), format_duration(timedelta(0))
    ('1h30m', '0s')
    """
    left = round(length.total_seconds() * 1000)
    parts = []
    for unit, size in (("d", 86_400_000), ("h", 3_600_000), ("m", 60_000), ("s", 1000), ("ms", 1)):
        if left >= size:
            parts.append(f"{left // size}{unit}")
            left %= size
    return "".join(parts) or "0s"
