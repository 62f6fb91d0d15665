"""One row of the published causes: from what was recognised to hop, category and what to do next."""

from __future__ import annotations

from enum import IntEnum

import msgspec

from sevenhop.core.hops.diagnosis import Category
from sevenhop.core.subject import Hop


class Strength(IntEnum):
    """How much a recognised text says about the cause; a stronger one always wins."""

    CONSEQUENCE = 0  # seen from a later hop: not ready, no endpoints
    UNEXPLAINED = 1  # says that something is wrong, never what: CrashLoopBackOff, an exit code
    SYMPTOM = 2  # says which part is wrong, never why: "Engine core initialization failed", Back-off pulling image
    GENERIC = 3  # says what happened, not why: killed, a probe that gives up
    CAUSE = 4


class Cause(msgspec.Struct, frozen=True, gc=False):
    """
    One row of docs/reference/causes.

    Attributes:
        slug: As in `Diagnosis.cause`.
        meaning: What is wrong, in one sentence without numbers.
        next_steps: What a person does next, the most telling first.
    """

    slug: str
    hop: Hop
    category: Category
    meaning: str
    next_steps: tuple[str, ...]
    strength: Strength = Strength.CAUSE

    @property
    def is_symptom(self) -> bool:
        """Never the cause of anything when something else is known."""
        return self.strength <= Strength.SYMPTOM


def table(*rows: Cause) -> dict[str, Cause]:
    """Rows by slug, in order; a slug that stands twice is a mistake of ours."""
    found = {row.slug: row for row in rows}
    if len(found) != len(rows):
        twice = sorted({row.slug for row in rows if sum(other.slug == row.slug for other in rows) > 1})
        raise AssertionError(f"causes stand twice: {', '.join(twice)}")
    return found
