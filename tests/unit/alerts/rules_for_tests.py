"""Small rules in plain Python, with CEL's three answers and the fourth, for tests of the state machine."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from msgspec.structs import replace

from sevenhop.core.alerts.rule import Evaluation, Rule, SeverityPolicy, Verdict
from sevenhop.core.facts.schema import Facts, Unknown, UnknownReason
from sevenhop.core.subject import Hop, Subject, SubjectKind

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
STALE = Unknown(UnknownReason.STALE, "Pod")


def at(seconds: float) -> datetime:
    """Seconds after noon."""
    return NOON + timedelta(seconds=seconds)


def subject(name: str = "a") -> Subject:
    return Subject(SubjectKind.COMPONENT, "chat", f"llm/{name}")


def is_bad(facts: Facts) -> Evaluation:
    """True while `component.bad` is; "broken" in it breaks the rule."""
    bad = facts.get("component.bad", STALE)
    if isinstance(bad, Unknown):
        return Evaluation(Verdict.UNKNOWN, missing=(("component.bad", bad),))
    if bad == "broken":
        return Evaluation(Verdict.BROKEN, error="division by zero")
    return Evaluation(Verdict.TRUE if bad else Verdict.FALSE)


def rule(rule_id: str = "r", *, hold: float = 0, keep: float = 0, **more: Any) -> Rule:
    """A rule of components that is true while `component.bad` is; times in seconds."""
    made = Rule(
        id=rule_id,
        status="stable",
        hop=Hop.POD,
        subject=SubjectKind.COMPONENT,
        expr="component.bad",
        reads=frozenset({"component.bad"}),
        evaluate=is_bad,
        hold=timedelta(seconds=hold),
        keep_firing=timedelta(seconds=keep),
        since="",
        severity=SeverityPolicy.BY_TIER,
        cause=SubjectKind.COMPONENT,
        annotations={"summary": "{{ component }} is bad"},
        digest=f"{rule_id}/{hold}/{keep}",
    )
    return replace(made, **more)
