"""The last transitions of each alert with the facts behind them: what `explain --at` reads."""

from __future__ import annotations

from collections import deque
from datetime import datetime

import msgspec

from sevenhop.core.alerts.alert import AlertChanged, AlertState, ChangeReason
from sevenhop.core.facts.schema import FactValue
from sevenhop.core.subject import Subject

KEPT_PER_ALERT = 20
KEPT_OF_ENDED = 2_000
"""Alerts that are over and whose history is still kept, the longest unchanged forgotten first."""

AlertKey = tuple[str, Subject]
"""(rule id, subject)"""


class Transition(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """One change, as it was told."""

    at: datetime
    was: AlertState
    state: AlertState
    reason: ChangeReason
    values: dict[str, FactValue]
    missing: tuple[str, ...] = ()


class Histories:
    """Bounded: by transitions per alert, and by alerts that are over."""

    def __init__(self) -> None:
        self._kept: dict[AlertKey, deque[Transition]] = {}
        self._ended: dict[AlertKey, None] = {}

    def note(self, change: AlertChanged) -> None:
        alert = change.alert
        key = (alert.rule_id, alert.subject)
        kept = self._kept.setdefault(key, deque(maxlen=KEPT_PER_ALERT))
        kept.append(
            Transition(
                at=change.at,
                was=change.was,
                state=alert.state,
                reason=change.reason,
                values=alert.values,
                missing=alert.missing,
            )
        )
        self._ended.pop(key, None)
        if alert.state is AlertState.INACTIVE:
            self._ended[key] = None
            if len(self._ended) > KEPT_OF_ENDED:
                oldest = next(iter(self._ended))
                del self._ended[oldest], self._kept[oldest]

    def of(self, rule_id: str, subject: Subject) -> tuple[Transition, ...]:
        """Oldest first; empty where nothing is kept."""
        return tuple(self._kept.get((rule_id, subject), ()))

    def at(self, rule_id: str, subject: Subject, when: datetime) -> Transition | None:
        """The transition that was in force at a time; None before the first that is kept."""
        return next((t for t in reversed(self.of(rule_id, subject)) if t.at <= when), None)
