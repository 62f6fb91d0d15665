"""The one place that asks what time it is; everything below is given it."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime

Clock = Callable[[], datetime]


def utc_now() -> datetime:
    """Now, in UTC."""
    return datetime.now(tz=UTC)
