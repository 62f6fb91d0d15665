"""How loud an incident is: as loud as its loudest member, inhibited ones too."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from sevenhop.core.alerts.alert import Alert
from sevenhop.core.alerts.rule import Rule, Severity
from sevenhop.core.alerts.severity import severity_of


def of_alert(rule: Rule | None, alert: Alert) -> Severity:
    """A rule that is not known any more speaks with a warning until its alert ends."""
    return Severity.WARNING if rule is None else severity_of(rule, alert.labels, alert.values)


def highest(severities: Iterable[Severity]) -> Severity:
    """The highest; `INFO` of none."""
    return max(severities, key=lambda severity: severity.rank, default=Severity.INFO)


def with_severity(labels: Mapping[str, str], severity: Severity) -> dict[str, str]:
    return {**labels, "severity": str(severity)}
