"""The alert rules that are shipped for ourselves: they speak of metrics that exist, and say what to do."""

from __future__ import annotations

import re
from importlib import resources
from typing import Any

import pytest
import yaml

from sevenhop.telemetry.table import METRICS, MetricType

FOLDER = resources.files("sevenhop.telemetry")
RULES: list[dict[str, Any]] = [
    rule for group in yaml.safe_load((FOLDER / "alerts.yaml").read_text("utf-8"))["groups"] for rule in group["rules"]
]
TESTS: str = (FOLDER / "alerts.test.yaml").read_text("utf-8")

NAMES = {
    series
    for row in METRICS.values()
    for series in ([f"{row.name}_{end}" for end in ("bucket", "sum", "count")]
                   if row.type is MetricType.HISTOGRAM else [row.name])
}  # fmt: skip
SELECTOR = re.compile(r"(sevenhop_\w+)(?:\{([^}]*)\})?")

each = pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule["alert"])


@each
def test_a_rule_asks_for_what_is_served(rule: dict[str, Any]) -> None:
    """Each metric exists, has the labels it is asked by, and can have the values; else it would never fire."""
    for name, matchers in SELECTOR.findall(rule["expr"]):
        assert name in NAMES, name
        row = METRICS.get(name) or METRICS[name.removesuffix("_bucket")]
        labels = {label.name: label for label in row.labels}
        for label, _, wanted in re.findall(r'(\w+)(=~|!=|=)"([^"]*)"', matchers):
            values = labels[label].values
            assert values is None or set(wanted.split("|")) <= values


@each
def test_a_rule_says_what_to_do(rule: dict[str, Any]) -> None:
    """One line for the phone, a next step, and a severity of Prometheus' usual three."""
    assert rule["labels"]["severity"] in {"critical", "warning", "info"}
    assert len(rule["annotations"]["summary"]) <= 120
    assert len(rule["annotations"]["description"]) >= 60


@each
def test_every_rule_is_seen_to_fire_and_to_be_quiet(rule: dict[str, Any]) -> None:
    """In the timelines beside it, which promtool plays."""
    assert f'alertname="{rule["alert"]}"' in TESTS
    assert f"alertname: {rule['alert']}, eval_time: 30m, exp_alerts: []" in TESTS
