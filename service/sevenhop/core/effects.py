"""What the core asks for.  Each effect has an id derived from its content's place: asked again, it is the same one."""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum

import msgspec

from sevenhop.core.alerts.rule import Severity
from sevenhop.core.remediation.permit import Purpose
from sevenhop.core.remediation.plan import Plan
from sevenhop.core.remediation.states import PlanState


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


class PlanCard(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """
    A plan as it stands beside its incident; its text is in the lines (`Role.PLAN`).

    Attributes:
        plan_id, plan_hash: What a click must carry.
        question: What a person agrees to, in under 300 characters: objects and numbers.
        buttons: Verbs (`events.Verb`) that may be asked for now; empty once it is decided.
        expires_at: Until when it may be decided.
    """

    plan_id: str
    plan_hash: str
    state: PlanState
    question: str
    buttons: tuple[str, ...] = ()
    expires_at: datetime


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
        plan: What can be, or was, decided about it; None without a plan.
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
    plan: PlanCard | None = None


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


CLUSTER = "cluster"
"""Receiver of what is to be done in the watched cluster."""


class Borrow(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """
    What the annotation `sevenhop.dev/borrowed` on a donor says: enough to give back if all our state is lost.

    Attributes:
        workload: ``namespace/name`` of the donor.
        by: Names of those who approved.
        terms: The plan that was carried out, so that it can be set back field by field; None in what somebody wrote by
            hand.
    """

    plan: str
    hash: str
    incident: str
    workload: str
    component: str
    before: int
    after: int
    until: datetime
    by: str
    terms: Plan | None = None


class Act(Effect, frozen=True, kw_only=True, gc=False, tag="act"):
    """
    Do one step of a plan in the cluster.  Asked for again with the same id it is the same step.

    Attributes:
        number: Steps of one run count up; with the plan's id and the purpose they make the effect's id.
        borrow: What to write on the donor (apply), or to take off it (undo, restore); None for what is not lent.
        note: For the Kubernetes Event on what is touched.
        needs_mark: Give back only where our mark still stands: it is all that we know of the lease.
        was_applied: The change is known to have been made, so an undo takes it back whoever took our mark off.
    """

    incident: str
    receiver: str = CLUSTER
    revision: int
    plan: Plan
    purpose: Purpose
    number: int
    borrow: Borrow | None = None
    note: str = ""
    needs_mark: bool = False
    was_applied: bool = False


class Reply(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """
    What the one person who asked is told, privately; not kept: who hears nothing asks again, and sees what is.

    Attributes:
        is_over: The plan cannot be decided any more, by anybody: buttons that still offer it may go.
    """

    request_id: str
    accepted: bool
    text: str
    is_over: bool = False
