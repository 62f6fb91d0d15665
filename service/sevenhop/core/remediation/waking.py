"""
What time it is for the desk of plans, and whether it slept: a suspended machine, a process that stood still, a clock
that was set.

Of time that nobody could see nothing is concluded: what was waited for may have come, and may not have been heard.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime, timedelta

from sevenhop.core.remediation.case import Asked, Case
from sevenhop.core.remediation.settings import RemediationSettings

LATE = timedelta(minutes=1)
"""Called so long after it was due, or before it was: the process was asleep, or the clock was set."""


class Waking:
    """
    Mutable, owned by the desk.

    Attributes:
        now: The time as it was told last; None before the first time.
        is_set_back: Whether the last call told a time long before the one before: every appointment is of another
            clock.
    """

    def __init__(self) -> None:
        self.now: datetime | None = None
        self.is_set_back = False
        self._woke_at: datetime | None = None
        self._slept_at: datetime | None = None
        self._asks: frozenset[str] = frozenset()

    def told(self, now: datetime, due: datetime | None, cases: Iterable[Case]) -> bool:
        """
        Take in what time it is: never earlier than before, for events come late, unless the clock was set back.

        Args:
            due: When the desk wanted to be called next; None if never.
            cases: Those that are open.

        Returns:
            Whether it was asleep until now.
        """
        last = self.now
        self.is_set_back = last is not None and now < last - LATE
        overslept = last is not None and due is not None and now > max(due, last) + LATE
        self.now = now if last is None or self.is_set_back else max(now, last)
        if not (self.is_set_back or overslept):
            return False
        self._woke_at = now
        # Set back, what was heard is as new as it was: only its times are of another clock.
        self._slept_at = None if self.is_set_back else last
        self._asks = frozenset(case.asked.id for case in cases if case.asked is not None)
        return True

    def as_of(self, now: datetime, settings: RemediationSettings) -> datetime:
        """Of when the newest events are: just awake, what is known is of before, until sources have caught up."""
        slept_at, woke_at = self._slept_at, self._woke_at
        if slept_at is not None and woke_at is not None and woke_at <= now < woke_at + settings.seen_within:
            return slept_at
        return self.now or now

    def answer_by(self, asked: Asked, by: datetime, settings: RemediationSettings) -> datetime:
        """Until when a step may stay unanswered: an answer that came meanwhile is still to be heard."""
        if self._woke_at is None or asked.id not in self._asks:
            return by
        return min(max(by, self._woke_at + settings.answer_after_start), self._woke_at + settings.answer_within)
