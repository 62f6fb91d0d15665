"""
The circuit breaker: after too many runs that did not help, nothing new is tried until a person has looked.

Kept over a restart; only a person closes it.  It never stands in the way of giving back.
"""

from __future__ import annotations

from datetime import datetime, timedelta

import msgspec

from sevenhop.core.remediation.states import PlanState

COUNTS: frozenset[PlanState] = frozenset({PlanState.FAILED, PlanState.UNDONE, PlanState.UNKNOWN})
"""Ends of a run that count against it: what did not help, and what nobody knows."""


class BreakerLimits(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """It opens at `most_failures` within `window`."""

    most_failures: int = 3
    window: timedelta = timedelta(hours=24)


class Breaker(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """
    Attributes:
        failures: (when, plan's id) of the runs that count, oldest first.
        opened_at: Since when nothing new is tried; None while it is closed.
        closed_by, closed_at: The person who closed it last.
    """

    failures: tuple[tuple[datetime, str], ...] = ()
    opened_at: datetime | None = None
    closed_by: str = ""
    closed_at: datetime | None = None

    @property
    def is_open(self) -> bool:
        return self.opened_at is not None


def after_run(breaker: Breaker, plan_id: str, state: PlanState, at: datetime, limits: BreakerLimits) -> Breaker:
    """
    The breaker after a run has ended.

    A run counts once, however often its end is told; a success takes nothing back, for three failures a day are three.
    """
    recent = tuple((when, who) for when, who in breaker.failures if at - when < limits.window)
    if state in COUNTS and plan_id not in {who for _, who in recent}:
        recent = (*recent, (at, plan_id))
    opened_at = breaker.opened_at
    if opened_at is None and state in COUNTS and len(recent) >= limits.most_failures:
        opened_at = at
    return msgspec.structs.replace(breaker, failures=recent, opened_at=opened_at)


def closed(breaker: Breaker, by: str, at: datetime) -> Breaker:
    """The breaker after a person has looked: closed, and counting from zero."""
    return msgspec.structs.replace(breaker, failures=(), opened_at=None, closed_by=by, closed_at=at)
