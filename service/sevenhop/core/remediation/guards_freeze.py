"""Freeze windows: times in which nothing new is changed, given by the settings.  All times are UTC."""

from __future__ import annotations

from datetime import UTC, datetime, time, timedelta

import msgspec

WEEKDAYS: tuple[str, ...] = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")
_DAY = timedelta(days=1)


class Freeze(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """
    Either dates (`start`, `end`) or a time of each of `weekdays`.

    Attributes:
        name: What people call it: ``quarter end``.
        start, end: From and until; the end is no longer frozen.
        weekdays: Days on which a window begins, Monday is 0.
        since, until: Time of day.  An `until` that is not later than `since` is of the next day; equal ones are 24
            hours.
    """

    name: str
    start: datetime | None = None
    end: datetime | None = None
    weekdays: tuple[int, ...] = ()
    since: time = time(0)
    until: time = time(0)


def frozen_until(freeze: Freeze, now: datetime) -> datetime | None:
    """When a window that holds `now` ends; None outside of it."""
    now = now.astimezone(UTC)
    if freeze.start is not None and freeze.end is not None:
        return freeze.end if freeze.start <= now < freeze.end else None
    ends = []
    for back in (0, 1):  # a window that began yesterday may still be open
        day = now.date() - back * _DAY
        if day.weekday() not in freeze.weekdays:
            continue
        begin = datetime.combine(day, freeze.since, UTC)
        end = datetime.combine(day, freeze.until, UTC)
        if end <= begin:
            end += _DAY
        if begin <= now < end:
            ends.append(end)
    return max(ends, default=None)
