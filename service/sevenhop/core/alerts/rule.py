"""A compiled rule, as the core sees it; people's YAML becomes this in `rulebook`."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from enum import StrEnum

import msgspec

from sevenhop.core.facts.schema import Facts, Unknown
from sevenhop.core.subject import Hop, SubjectKind


class Verdict(StrEnum):
    TRUE = "true"
    FALSE = "false"
    UNKNOWN = "unknown"  # a fact that it reads is unknown, and the others do not decide
    BROKEN = "broken"  # the expression failed although every fact was there


class Evaluation(msgspec.Struct, frozen=True, gc=False):
    verdict: Verdict
    missing: tuple[tuple[str, Unknown], ...] = ()
    error: str = ""


class Severity(StrEnum):
    INFO = "info"
    WARNING = "warning"
    CRITICAL = "critical"

    @property
    def rank(self) -> int:
        return {"info": 0, "warning": 1, "critical": 2}[self.value]


class SeverityPolicy(StrEnum):
    """How a rule's severity comes about."""

    BY_TIER = "by_tier"  # critical tier: critical, others: warning; at or above its minimum: warning
    INFO = "info"
    WARNING = "warning"
    CRITICAL = "critical"


class Rule(msgspec.Struct, frozen=True, kw_only=True):
    """
    Attributes:
        hop: Where a breakage that this rule finds sits; None for rules about ourselves.
        reads: Facts that the expression reads; the rule runs only when one of them changed value.
        evaluate: Total: never raises.
        hold: `for:` in the file.
        since: Fact with a server timestamp from which `hold` counts; empty for the first true evaluation.
        cause: What kind of object an incident of this rule is about: a pool for GPU shortages, else the subject.
        annotations: Texts with ``{{ label or fact }}``; `summary` is always there.
        digest: Over subject, expr, drops, for, keep and since: the same digest keeps its alerts over a reload.
        drops: Boolean facts that silence the rule while true; already part of `reads` and `evaluate`.
        shows: Facts that its texts or its severity need beside `reads`; kept with the alert's values.
        needs: The smallest sets of facts of which one must be observable for it ever to fire; empty if nothing is.
    """

    id: str
    status: str
    hop: Hop | None
    subject: SubjectKind
    expr: str
    reads: frozenset[str]
    evaluate: Callable[[Facts], Evaluation]
    hold: timedelta
    keep_firing: timedelta
    since: str
    severity: SeverityPolicy
    cause: SubjectKind
    annotations: dict[str, str]
    digest: str
    description: str = ""
    false_positives: tuple[str, ...] = ()
    triage: str = ""
    playbook: str = ""
    enabled: bool = True
    path: str = ""
    drops: tuple[str, ...] = ()
    shows: frozenset[str] = frozenset()
    needs: tuple[frozenset[str], ...] = ()
