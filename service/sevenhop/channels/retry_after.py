"""The header with which a server asks for patience."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

LONGEST_S = 3_600.0
"""Nobody waits longer than this with a page because a server says so."""


def retry_after_s(headers: Mapping[str, str] | None, now: datetime | None = None) -> float | None:
    """
    Seconds to wait; None if the header is not there or cannot be read.

    Args:
        now: For the form with a date; without it such a header is not read.

    >>> retry_after_s({"Retry-After": "30"}), retry_after_s({"Retry-After": "soon"}), retry_after_s({})
    (30.0, None, None)
    """
    text = next((value for name, value in (headers or {}).items() if name.lower() == "retry-after"), "").strip()
    seconds: float | None = None
    if text.isdecimal() and text.isascii():
        seconds = float(text[:10])
    elif text and now is not None:
        try:
            moment = parsedate_to_datetime(text)
        except ValueError:
            return None
        if moment.tzinfo is None:
            moment = moment.replace(tzinfo=UTC)
        seconds = max((moment - now).total_seconds(), 0.0)
    return None if seconds is None else min(seconds, LONGEST_S)
