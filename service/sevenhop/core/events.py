"""
What comes in: observations of the world, decisions of people, outcomes of what we did, and the passing of time.

Every event carries its own time; the core has no other clock.  (`epoch`, `seq`) orders the observations of one
source: a re-list starts a new epoch, and what is older than what is known changes nothing.
"""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum

import msgspec

from sevenhop.core.gpu_sample import ContainerUsage, GpuReading
from sevenhop.core.objects.base import Object
from sevenhop.core.remediation.person import Person


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


class Verb(StrEnum):
    """What a person decides about a plan."""

    APPROVE = "approve"
    REJECT = "reject"
    UNDO = "undo"  # of a run
    EXTEND = "extend"  # the lease
    RESTORE = "restore"  # before the lease ends


class Decided(Event, frozen=True, kw_only=True, gc=False):
    """
    A person decided about one plan.

    Attributes:
        request_id: Names the click or command, so that the same one again is the same, and its answer finds it.
        person: Verified where the request came in.
        plan_hash: What the person saw; empty where only the id was given.
        via: ``slack``, ``terminal``, ``http``.
    """

    request_id: str
    person: Person
    verb: Verb
    plan_id: str
    plan_hash: str = ""
    via: str
    comment: str = ""


class SwitchSet(Event, frozen=True, kw_only=True, gc=False):
    """The kill switch: while it is on, nothing new is changed in the cluster; giving back goes on."""

    request_id: str
    person: Person
    is_on: bool
    comment: str = ""


class BreakerReset(Event, frozen=True, kw_only=True, gc=False):
    """A person has looked at why runs failed; the circuit breaker closes again."""

    request_id: str
    person: Person
    comment: str = ""


class StepResult(StrEnum):
    """What came of one step of a run."""

    DONE = "done"
    REFUSED = "refused"  # surely nothing was changed: a denied dry-run, a failed precondition, no permit
    UNKNOWN = "unknown"  # it may have been changed, and could not be read back


class StepDone(Event, frozen=True, kw_only=True, gc=False):
    """
    What came of an `effects.Act`.

    Attributes:
        detail: One line for people: what was done, or what stood against it and what would help.
    """

    effect_id: str
    result: StepResult
    detail: str = ""


class GpusSampled(Event, frozen=True, kw_only=True, gc=False):
    """
    What the GPUs of one node said.  `epoch` is the agent's start, `seq` counts its samples.

    Attributes:
        at: By the agent's clock; `received_at` by ours: their difference is the skew.
        is_whole: All GPUs of the node: one that is not in it is not there.  Otherwise only those that changed.
        readings: In order of index.
        has_holders: Whether the kubelet said who holds what; without it `holders` are unknown, not nobody.
        problems: What could not be read on this node, a line each: ``NVML: driver too old for GPM``.
        up_s: Since the node was booted, when this was read: XIDs from before are over.  None where nobody tells.
    """

    node: str
    is_whole: bool
    readings: tuple[GpuReading, ...]
    usage: tuple[ContainerUsage, ...] = ()
    has_holders: bool = True
    driver: str = ""
    problems: tuple[str, ...] = ()
    up_s: float | None = None
    received_at: datetime | None = None


class XidSeen(Event, frozen=True, kw_only=True, gc=False):
    """
    The driver reported an XID.

    Attributes:
        pci: As in `GpuReading`; empty where the report named none, then `uuid` may.
        text: The driver's line, shortened, without process names that it quotes.
        via: ``nvml`` or ``kmsg``; both may report the same one.
    """

    node: str
    xid: int
    pci: str = ""
    uuid: str = ""
    pid: int = 0
    text: str = ""
    via: str = "nvml"
