"""
What comes in: observations of the world, decisions of people, outcomes of what we did, and the passing of time.

Every event carries its own time; the core has no other clock.  (`epoch`, `seq`) orders the observations of one
source: a re-list starts a new epoch, and what is older than what is known changes nothing.
"""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum

import msgspec

from sevenhop.core.objects.base import Object


class Event(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """
    Attributes:
        at: When it was observed, UTC.
        epoch: Counts the lists of this source and kind.
        seq: Counts the observations within the epoch.
    """

    at: datetime
    epoch: int = 0
    seq: int = 0


class Applied(Event, frozen=True, kw_only=True, gc=False):
    """An object exists and looks like this now: listed, added or modified.  `kind` is a name in `KINDS`."""

    kind: str
    obj: Object


class Deleted(Event, frozen=True, kw_only=True, gc=False):
    """An object is gone.  With a `uid`, only that incarnation."""

    kind: str
    namespace: str
    name: str
    uid: str = ""


class Unreadable(Event, frozen=True, kw_only=True, gc=False):
    """An object exists that our structs cannot hold; what it would have said is unknown."""

    kind: str
    namespace: str
    name: str
    error: str


class SyncState(StrEnum):
    """How much of a kind is known.  Everything but `SYNCED` and `ABSENT` makes facts unknown, with this reason."""

    NOT_SYNCED = "not_synced"  # the first list has not finished
    SYNCED = "synced"
    STALE = "stale"  # was synced; nothing heard for longer than the silence limit
    FORBIDDEN = "forbidden"  # the API server refuses; the message names the permission
    ABSENT = "absent"  # the API server does not serve the kind: normal, there are none
    NO_SOURCE = "no_source"  # nothing that could tell is configured


class SourceChanged(Event, frozen=True, kw_only=True, gc=False):
    """The source of one kind went into another state.  `kind` is a name in `KINDS`, or a source such as `gpu-agent`."""

    kind: str
    state: SyncState
    detail: str = ""


class Tick(Event, frozen=True, kw_only=True, gc=False):
    """Time passed, nothing else."""


class Silenced(Event, frozen=True, kw_only=True, gc=False):
    """
    A person asked for quiet, or took it back (`expires_at` in the past).

    Attributes:
        matchers: Label name to the value that it must equal.
        where: Further matchers as text, with all four operators: ``namespace=~prod-.*``, ``tier!=batch``.
    """

    silence_id: str
    matchers: dict[str, str]
    author: str
    comment: str
    expires_at: datetime
    where: tuple[str, ...] = ()


class RulebookLoaded(Event, frozen=True, kw_only=True, gc=False):
    """From here on other rules hold; `digest` names them, so that a replay can load the same."""

    digest: str


class Recalled(Event, frozen=True, kw_only=True, gc=False):
    """
    What a channel still shows of an incident, read back because our own store was lost.

    Attributes:
        is_open: Shown as firing.
        reference: The channel's own id of the message.
        revision: Of the message as it is shown.
        severity, causes: As they were told.
        cause, family: The incident's identity in words; see `core.incidents.incident`.
        opened_at: When the episode began.
    """

    receiver: str
    key: str
    episode: int
    is_open: bool
    reference: str
    revision: int
    title: str
    severity: str
    causes: tuple[str, ...]
    cause: str
    family: str
    opened_at: datetime


class Outcome(Event, frozen=True, kw_only=True, gc=False):
    """What came of an effect: delivered, refused for good, or unknown."""

    effect_id: str
    delivered: bool
    reference: str = ""  # the channel's own id of what was posted, such as Slack's channel and ts
    detail: str = ""
