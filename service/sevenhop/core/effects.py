"""What the core asks for.  Each effect has an id derived from its content's place: asked again, it is the same one."""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum

import msgspec

from sevenhop.core.alerts.rule import Severity


class Role(StrEnum):
    """What a line of a message is; channels decide how it looks."""

    FIRST_BROKEN = "first_broken"
    HIT = "hit"  # who is hit
    WHY = "why"
    NOT_PREEMPTED = "not_preempted"
    CHANGED = "changed"
    CAPACITY = "capacity"
    WAITING = "waiting"
    IF_NOTHING = "if_nothing"
    OWNER = "owner"
    PLAN = "plan"
    COMMAND = "command"
    LINK = "link"
    SYMPTOMS = "symptoms"
    NOTE = "note"


class Line(msgspec.Struct, frozen=True, gc=False):
    """A label of a few words and plain text; text from the cluster is not markup, channels escape it."""

    role: Role
    label: str
    text: str


class Message(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """
    One incident as it stands, free of markup.

    Attributes:
        title: What, for whom, in under 120 characters.
        status: ``firing`` or ``resolved``.
        lines: In the order in which they are read (docs/howto/read-an-alert.md).
        labels: With the outward names (`inference_workload`, `inference_workload_component`, …).
        details: For the thread: evidence and history, in order.
        end_reason: Of a resolved one: ``recovered``, ``subject_gone``, …; only the first is green.
    """

    title: str
    status: str
    severity: Severity
    cluster: str
    since: datetime
    at: datetime
    lines: tuple[Line, ...]
    labels: dict[str, str]
    details: tuple[str, ...] = ()
    end_reason: str = ""


class Row(msgspec.Struct, frozen=True, gc=False):
    """One piece of state to keep over a restart; `value` None forgets it."""

    table: str
    key: str
    value: bytes | None


class Effect(msgspec.Struct, frozen=True, kw_only=True, gc=False, tag_field="type"):
    id: str


class Notify(Effect, frozen=True, kw_only=True, gc=False, tag="notify"):
    """
    Tell a receiver the current state of an incident.

    A newer revision supersedes an unsent older one.  `anew` asks for a new post (edits notify nobody); otherwise the
    earlier message is edited, or posted if there is none.

    Attributes:
        reference: What the channel called the last post for this incident; empty if not known: an edit then looks for
            the message by `key` and `episode` first.
        adopt: Our state began empty: an earlier message of this `key` that still says "firing" is edited instead of
            posting anew, whatever its episode.
        cause, family, causes, opened_at: Identity of the incident in words; channels that can, keep it with the
            message, so that an emptied store can be filled again from there (`events.Recalled`).
    """

    incident: str  # Incident.id
    key: str
    episode: int
    receiver: str
    revision: int
    anew: bool
    reason: str
    message: Message
    reference: str = ""
    adopt: bool = False
    cause: str = ""
    family: str = ""
    causes: tuple[str, ...] = ()
    opened_at: datetime | None = None
