"""What a person attends to: one cause object, its alerts, the symptoms that it explains."""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum
from hashlib import sha256

import msgspec

from sevenhop.core.alerts.rule import Severity
from sevenhop.core.effects import Line
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
    DECISION_WANTED = "decision_wanted"  # a plan waits for a person, its lease ends in a shortage, or its run failed
    NOT_DUE_GROUP_WAIT = "not_due_group_wait"
    NOT_DUE_NOTHING_NEW = "not_due_nothing_new"
    NOT_DUE_SILENCED = "not_due_silenced"
    NOT_DUE_INHIBITED = "not_due_inhibited"
    NOT_DUE_MAINTENANCE = "not_due_maintenance"
    NOT_DUE_NEVER_TOLD = "not_due_never_told"  # fired and resolved before anybody was told
    NOT_DUE_FLAPPING = "not_due_flapping"
    NOT_DUE_EDIT_INTERVAL = "not_due_edit_interval"  # changed again so soon that the edits become one
    NOT_DUE_REFUSED = "not_due_refused"  # the receiver refuses for good; tried again later
    NOT_DUE_OWN_CHANGE = "not_due_own_change"  # what we changed under approval explains it, for a while
    NOT_DUE_UNSEEN = "not_due_unseen"  # read back from a channel, and not yet looked at again

    @property
    def is_due(self) -> bool:
        """Whether something is sent."""
        return not self.value.startswith("not_due")

    @property
    def is_loud(self) -> bool:
        """Whether it is posted anew; a quiet message is edited in place and notifies nobody."""
        return self in _LOUD


_LOUD = frozenset(
    {
        NotifyReason.FIRST_FIRING,
        NotifyReason.SEVERITY_UP,
        NotifyReason.NEW_CAUSE,
        NotifyReason.REPEAT_INTERVAL_ELAPSED,
        NotifyReason.REOPENED,
        NotifyReason.DECISION_WANTED,
    }
)


def incident_key(cluster: str, cause: Subject, family: str) -> str:
    """Identity without time: the same cause object and family in the same cluster, in every episode."""
    return sha256(f"{cluster}\0{cause}\0{family}".encode()).hexdigest()[:16]


class Told(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """
    What one receiver was last told of an incident.

    Attributes:
        revision: Of the message that was last asked to be sent.
        at: When it was asked for.
        severity: The highest that was posted aloud; a quiet edit shows a higher one and still owes the post.
        causes: Rule ids of the causes posted aloud.
        loud_at: The last post that notifies people.
        opening: `Incident.opening` at that time.
        refused_at: Since when the receiver refuses for good; None while it does not.
        reference: The channel's own id of the message, as its outcome said; empty until then.
        asked: What was last asked for aloud; see `PlanWords.asks`.
    """

    receiver: str
    revision: int
    at: datetime
    severity: Severity
    causes: tuple[str, ...]
    content: str  # digest of what was shown, so that nothing is edited into itself
    fine: str = ""  # with what changes all the time: names of pods, the command, the evidence
    reference: str = ""
    loud_at: datetime | None = None
    opening: int = 1
    refused_at: datetime | None = None
    asked: str = ""


class Incident(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """
    Attributes:
        episode: Counts the openings of one key, from 1.
        alerts: Fingerprints of firing alerts whose cause this is.
        symptoms: Fingerprints of firing alerts that this cause explains.
        severity: The highest of all members, inhibited ones too; of a resolved one, the highest it had.
        opening: Counts the openings within the episode: what ends and comes back at once is the same episode.
        openings: When it was opened, the last few, over episodes too: how flapping is seen.
        tell_at: The first message is not before this.
        end_reason: Of a resolved one; see `Message.end_reason`.
        labels: What its causes agree on, the last time there were any; short names.
        rules: Ids of the rules of its causes, in order of appearance; the first never changes within an episode.
        orphans: Of a resolved one: symptoms that still fired and went on as incidents of their own.
        title: As last written, without counts that change; `heading` is with them.
        history: What happened, a line each, the last few.
        lines, details: As last written while it was open: the story of a resolved one is told from them.
        adopt: The store began empty when it opened: a channel may still show it.
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
    opening: int = 1
    openings: tuple[datetime, ...] = ()
    tell_at: datetime | None = None
    end_reason: str = ""
    rules: tuple[str, ...] = ()
    orphans: int = 0
    labels: dict[str, str] = {}
    title: str = ""
    heading: str = ""
    history: tuple[str, ...] = ()
    lines: tuple[Line, ...] = ()
    details: tuple[str, ...] = ()
    adopt: bool = False

    @property
    def is_open(self) -> bool:
        return self.status is IncidentStatus.OPEN

    @property
    def members(self) -> tuple[str, ...]:
        """Fingerprints of all its alerts, causes first."""
        return (*self.alerts, *self.symptoms)

    def told_to(self, receiver: str) -> Told | None:
        return next((told for told in self.told if told.receiver == receiver), None)

    @property
    def id(self) -> str:
        return f"{self.key}-{self.episode}"
