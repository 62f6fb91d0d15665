"""What a fact is: a named, typed *level* of a subject, never an age; it may be unknown, with the reason."""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum

import msgspec

from sevenhop.core.subject import SubjectKind


class FactType(StrEnum):
    BOOL = "bool"
    INT = "int"
    DOUBLE = "double"
    STRING = "string"
    INT_LIST = "list(int)"
    TIME = "timestamp"


class UnknownReason(StrEnum):
    NOT_SYNCED = "not_synced"
    STALE = "stale"
    FORBIDDEN = "forbidden"
    NO_SOURCE = "no_source"
    WINDOW = "window"  # a window is not yet covered by observation
    DISAGREE = "disagree"  # our verdict and the scheduler's contradict each other
    UNREADABLE = "unreadable"  # an object that we could not decode


class Unknown(msgspec.Struct, frozen=True, gc=False):
    """Cannot be observed now; not healthy, and not broken."""

    reason: UnknownReason
    detail: str = ""

    def __str__(self) -> str:
        return f"unknown ({self.reason}{': ' + self.detail if self.detail else ''})"


FactValue = bool | int | float | str | list[int] | datetime
Facts = dict[str, FactValue | Unknown]
"""Fact name (``component.waiting.cause``) or label name (``namespace``) to value."""


class FactSpec(msgspec.Struct, frozen=True, kw_only=True):
    """
    One row of docs/reference/facts.

    Attributes:
        name: With dots, beginning with the subject: ``component.ready``.
        not_applicable: The value where the question does not arise (no GPU: 0); a value, never unknown.
        unknown_when: Empty if it never is.
        source: Kinds or sources it is derived from.
    """

    name: str
    subject: SubjectKind
    type: FactType
    doc: str
    unit: str = ""
    not_applicable: FactValue | None = None
    unknown_when: str = ""
    source: str = ""
    values: tuple[str, ...] = ()


LABELS: tuple[str, ...] = (
    "cluster", "namespace", "node", "gpu_uuid", "product", "pod", "workload", "component", "role", "framework",
    "model", "model_version", "tier", "owner", "service", "route",
)  # fmt: skip
"""Strings that every subject carries, "" where it has none; usable in `expr`, in routes and in silences."""
