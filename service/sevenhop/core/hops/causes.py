"""
The published causes: from what was recognised to hop, category and what to do next.

One table per source of words; docs/reference/causes is rendered from it.  Causes that are computed from objects on the
scheduling hop stand in `causes_scheduling`.
"""

from __future__ import annotations

import msgspec

from sevenhop.core.hops.diagnosis import Category
from sevenhop.core.subject import Hop


class Cause(msgspec.Struct, frozen=True, gc=False):
    """
    One row of docs/reference/causes.

    Attributes:
        slug: As in `Diagnosis.cause`.
        meaning: What is wrong, in one sentence without numbers.
        next_steps: What a person does next, the most telling first.
        symptom: Never the cause of anything when something else is known.
    """

    slug: str
    hop: Hop
    category: Category
    meaning: str
    next_steps: tuple[str, ...]
    symptom: bool = False


def table(*rows: Cause) -> dict[str, Cause]:
    """Rows by slug; a slug that stands twice is a mistake of ours."""
    found = {row.slug: row for row in rows}
    if len(found) != len(rows):
        twice = sorted({row.slug for row in rows if sum(other.slug == row.slug for other in rows) > 1})
        raise AssertionError(f"causes stand twice: {', '.join(twice)}")
    return found
