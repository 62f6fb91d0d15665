"""One rule on one subject: inactive → pending → firing → resolved."""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum
from hashlib import sha256

import msgspec

from sevenhop.core.facts.schema import FactValue
from sevenhop.core.subject import Subject


class AlertState(StrEnum):
    INACTIVE = "inactive"
    PENDING = "pending"
    FIRING = "firing"


class ChangeReason(StrEnum):
    """Why an alert changed its state, or did not; the same word in message, log, metric and `explain`."""

    CONDITION_TRUE = "condition_true"
    HELD = "held"  # true for the whole of `for`
    CONDITION_FALSE = "condition_false"  # the only reason for a green "recovered"
    SUBJECT_GONE = "subject_gone"
    RULE_CHANGED = "rule_changed"
    RULE_REMOVED = "rule_removed"
    BLIND = "blind"  # pending for too long without being able to see
    FACT_UNKNOWN = "fact_unknown"
    RULE_BROKEN = "rule_broken"


class Alert(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """
    Attributes:
        since: When the condition began: the rule's `since` fact, else the first true evaluation.
        fired_at: When it went firing; None before.
        confirmed_at: The last evaluation that was true.
        blind_since: Since when its facts are unknown; None while they are known.
        blind_s: Seconds of `for` spent blind so far, not counted.
        missing: Facts that are unknown, with reasons, as text.
        labels: The subject's labels at the last evaluation (short names; see docs/reference/labels).
        values: The facts that the rule read at the last true evaluation.
    """

    rule_id: str
    rule_digest: str
    cluster: str
    subject: Subject
    state: AlertState
    since: datetime
    fired_at: datetime | None = None
    confirmed_at: datetime | None = None
    false_since: datetime | None = None
    blind_since: datetime | None = None
    blind_s: float = 0.0
    missing: tuple[str, ...] = ()
    labels: dict[str, str] = {}
    values: dict[str, FactValue] = {}

    @property
    def fingerprint(self) -> str:
        """Same rule, same subject, same cluster: same fingerprint, whatever the time or the pods' names."""
        return sha256(f"{self.cluster}\0{self.rule_id}\0{self.subject}".encode()).hexdigest()[:16]


class AlertChanged(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """What `alerts` tells `incidents`: a state change, or new labels or values of a firing alert (`was` = now)."""

    alert: Alert
    was: AlertState
    reason: ChangeReason
    at: datetime
