"""Moments as people type them, and as they are shown to people."""

from __future__ import annotations

from datetime import UTC, datetime

from sevenhop.cli.output import UsageError


def parse_time(option: str, text: str) -> datetime:
    """
    A moment in RFC 3339; without a zone it is UTC.

    Raises:
        UsageError: Another form.
    """
    try:
        found = datetime.fromisoformat(text)
    except ValueError:
        raise UsageError(f"{option}: expected a time such as 2026-11-30T03:02:05Z, got {text!r}") from None
    return found if found.tzinfo else found.replace(tzinfo=UTC)


def shown_time(text: str) -> str:
    """
    A time of the service as people read it.

    >>> shown_time("2026-11-30T03:02:05.123456Z")
    '2026-11-30 03:02:05Z'
    """
    return f"{datetime.fromisoformat(text).astimezone(UTC):%Y-%m-%d %H:%M:%S}Z"
