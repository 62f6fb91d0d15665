"""The last decisions, with their reasons: what `explain` reads.  Bounded, and only in memory."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from datetime import datetime

import msgspec

from sevenhop.core.incidents.incident import NotifyReason

KEPT_PER_INCIDENT = 30
KEPT_INCIDENTS = 1_000


class Noted(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """
    One decision about one receiver, or about an alert (`receiver` empty).

    Attributes:
        about: Id of the incident; of an alert its fingerprint.
        detail: Names what stands behind it: the silence, the cause, the node.
    """

    at: datetime
    about: str
    receiver: str
    reason: NotifyReason
    detail: str = ""


class DecisionLog:
    """A decision that only repeats the last one of its kind is not noted again."""

    def __init__(self) -> None:
        self._notes: dict[str, deque[Noted]] = {}
        self._last: dict[str, dict[str, tuple[NotifyReason, str]]] = {}
        self.counts: dict[NotifyReason, int] = {}

    def note(self, at: datetime, about: str, receiver: str, reason: NotifyReason, detail: str = "") -> None:
        last = self._last.setdefault(about, {})
        if last.get(receiver) == (reason, detail) and not reason.is_due:
            return
        last[receiver] = (reason, detail)
        self.counts[reason] = self.counts.get(reason, 0) + 1
        notes = self._notes.pop(about, None) or deque(maxlen=KEPT_PER_INCIDENT)
        notes.append(Noted(at=at, about=about, receiver=receiver, reason=reason, detail=detail))
        self._notes[about] = notes  # the one that changed last stands last
        if len(self._notes) > KEPT_INCIDENTS:
            oldest = next(iter(self._notes))
            del self._notes[oldest], self._last[oldest]

    def of(self, about: str) -> tuple[Noted, ...]:
        """Oldest first; empty where nothing is kept."""
        return tuple(self._notes.get(about, ()))

    def all(self) -> Iterable[Noted]:
        """In order of time."""
        return sorted((n for notes in self._notes.values() for n in notes), key=lambda n: (n.at, n.about, n.receiver))
