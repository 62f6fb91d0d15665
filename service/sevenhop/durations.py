"""Durations as people write them in settings: always with a unit."""

from __future__ import annotations

import re
from datetime import timedelta
from typing import Annotated, Any

from pydantic import BeforeValidator

_UNITS = {"ms": 0.001, "s": 1, "m": 60, "h": 3600, "d": 86400}


def parse_duration(value: Any) -> timedelta:
    """
    Read ``90s``, ``5m``, ``1h30m`` or ``200ms``.

    Raises:
        ValueError: No unit, or another form.

    >>> parse_duration("1h30m")
    datetime.timedelta(seconds=5400)
    """
    if isinstance(value, timedelta):
        return value
    text = str(value).strip()
    if not re.fullmatch(r"(\d+(ms|s|m|h|d))+", text):
        raise ValueError(f"expected a duration such as 90s, 5m or 1h30m, got {value!r}")
    seconds = sum(int(n) * _UNITS[unit] for n, unit in re.findall(r"(\d+)(ms|s|m|h|d)", text))
    return timedelta(seconds=seconds)


Duration = Annotated[timedelta, BeforeValidator(parse_duration)]
