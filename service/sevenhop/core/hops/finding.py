"""One finding: a subject without a pod, and what is wrong with it."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import msgspec

from sevenhop.core.hops.causes import CAUSES
from sevenhop.core.hops.diagnosis import Category, Confidence, Diagnosis, Evidence
from sevenhop.core.hops.failures_quote import quote


class Finding(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """
    Attributes:
        kind: The subject's bare kind, such as ``ReplicaSet``.
        namespace: Empty for what has none.
    """

    kind: str
    namespace: str
    name: str
    diagnosis: Diagnosis


def bare(kind: str) -> str:
    """
    The kind without its group.

    >>> bare("ReplicaSet.apps")
    'ReplicaSet'
    """
    return kind.partition(".")[0]


def diagnosis_of(cause: str, summary: str, evidence: tuple[Evidence, ...], *, computed: bool = False) -> Diagnosis:
    """A diagnosis by the published table; `computed` from fields rather than read in a sentence."""
    row = CAUSES[cause]
    if row.category is Category.UNKNOWN:
        confidence = Confidence.UNKNOWN
    else:
        confidence = Confidence.CERTAIN if computed else Confidence.LIKELY
    return Diagnosis(
        hop=row.hop,
        category=row.category,
        cause=cause,
        confidence=confidence,
        summary=summary,
        evidence=evidence,
        next_steps=row.next_steps,
    )


def evidence_of(source: str, text: str) -> Evidence:
    """A text from the cluster as evidence: one line, masked and cut."""
    return Evidence(source, quote(text))


def time_of(condition: dict[str, Any]) -> datetime | None:
    """When a custom resource's condition became what it is; None where it does not say, or not as a time."""
    try:
        found = datetime.fromisoformat(str(condition.get("lastTransitionTime")))
    except ValueError:
        return None
    return found if found.tzinfo else found.replace(tzinfo=UTC)
