"""What a person attends to: one cause object, its alerts, the symptoms that it explains."""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum
from hashlib import sha256

import msgspec

from sevenhop.core.alerts.rule import Severity
from sevenhop.core.subject import Subject


class IncidentStatus(StrEnum):
    OPEN = "open"
    RESOLVED = "resolved"


class NotifyReason(StrEnum):
    """Why a message is sent, or not; the same word in log, metric and `explain`."""

    FIRST_FIRING = "first_firing"
    SEVERITY_UP = "severity_up"
    NEW_CAUSE = "new_cause"
    CHANGED = "changed"  # edits in place, notifies nobody
    RESOLVED = "resolved"
    REPEAT_INTERVAL_ELAPSED = "repeat_interval_elapsed"
    REOPENED = "reopened"
    NOT_DUE_GROUP_WAIT = "not_due_group_wait"
    NOT_DUE_NOTHING_NEW = "not_due_nothing_new"
    NOT_DUE_SILENCED = "not_due_silenced"
    NOT_DUE_INHIBITED = "not_due_inhibited"
    NOT_DUE_MAINTENANCE = "not_due_maintenance"
    NOT_DUE_NEVER_TOLD = "not_due_never_told"  # fired and resolved before anybody was told
    NOT_DUE_FLAPPING = "not_due_flapping"


def incident_key(cluster: str, cause: Subject, family: str) -> str:
    """Identity without time: the same cause object and family in the same cluster, in every episode."""
    return sha256(f"{cluster}\0{cause}\0{family}".encode()).hexdigest()[:16]


class Told(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """
    What one receiver was last told of an incident.

    Attributes:
        revision: Of the message that was last asked to be sent.
        severity: As told.
        causes: Rule ids of the causes told.
        reference: The channel's own id of the message, as its outcome said; empty until then.
    """

    receiver: str
    revision: int
    at: datetime
    severity: Severity
    causes: tuple[str, ...]
    content: str  # digest of what was shown, so that nothing is edited into itself
    reference: str = ""


class Incident(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """
    Attributes:
        episode: Counts the openings of one key, from 1.
        alerts: Fingerprints of firing alerts whose cause this is.
        symptoms: Fingerprints of firing alerts that this cause explains.
        severity: The highest of all members, inhibited ones too; of a resolved one, the highest it had.
    """

    key: str
    episode: int
    cluster: str
    cause: Subject
    family: str
    status: IncidentStatus
    severity: Severity
    opened_at: datetime
    updated_at: datetime
    since: datetime
    resolved_at: datetime | None = None
    alerts: tuple[str, ...] = ()
    symptoms: tuple[str, ...] = ()
    workloads: tuple[str, ...] = ()
    revision: int = 0
    told: tuple[Told, ...] = ()

    @property
    def id(self) -> str:
        return f"{self.key}-{self.episode}"
