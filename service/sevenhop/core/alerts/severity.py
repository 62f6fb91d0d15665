"""How loud an alert is."""

from __future__ import annotations

from collections.abc import Mapping

from sevenhop.core.alerts.rule import Rule, Severity, SeverityPolicy
from sevenhop.core.facts.schema import FactValue, Unknown

SEVERITY_FACTS: frozenset[str] = frozenset({"component.ready", "component.min"})
"""What `by_tier` reads of a component."""


def severity_of(rule: Rule, labels: Mapping[str, str], facts: Mapping[str, FactValue | Unknown]) -> Severity:
    """
    The severity of one alert now.

    By tier: critical for the critical tier, else warning.  A component that is known to be at or above its minimum
    only warns; where ready or minimum is unknown, the tier alone speaks, for unknown is not healthy.

    Args:
        labels: Of the alert; `tier` is read.
        facts: Of the subject, or the values kept with the alert.
    """
    if rule.severity is not SeverityPolicy.BY_TIER:
        return Severity(rule.severity.value)
    if labels.get("tier") != "critical" or _at_or_above_minimum(facts):
        return Severity.WARNING
    return Severity.CRITICAL


def _at_or_above_minimum(facts: Mapping[str, FactValue | Unknown]) -> bool:
    ready, minimum = facts.get("component.ready"), facts.get("component.min")
    if not isinstance(ready, int) or not isinstance(minimum, int):
        return False
    return ready >= minimum > 0  # a minimum of 0 is no promise that could be kept
