"""The hop report: where along the seven hops a subject is well, and where it first is not."""

from __future__ import annotations

from enum import StrEnum

import msgspec

from sevenhop.core.hops.diagnosis import Evidence
from sevenhop.core.subject import Hop


class HopState(StrEnum):
    OK = "ok"
    BROKEN = "broken"
    UNKNOWN = "unknown"
    NOT_APPLICABLE = "not_applicable"


class HopLine(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """
    One hop of one subject.

    Attributes:
        broken: Of `total` units (pods on hops 1 to 5, services on 6, routes on 7) that are broken here.
        reason: Why unknown or not applicable: ``no_source (gpu agent)``; empty otherwise.
        pods: Names of the broken pods, for deciding what explains what.
    """

    hop: Hop
    state: HopState
    broken: int = 0
    total: int = 0
    reason: str = ""
    pods: tuple[str, ...] = ()
    evidence: tuple[Evidence, ...] = ()


class HopReport(msgspec.Struct, frozen=True, gc=False):
    """
    All seven hops of one subject, in order.

    `first_broken` is the earliest hop whose broken pods cover what is broken later; None if nothing is broken.
    """

    lines: tuple[HopLine, ...]
    first_broken: Hop | None = None

    def line(self, hop: Hop) -> HopLine:
        return next(line for line in self.lines if line.hop is hop)
