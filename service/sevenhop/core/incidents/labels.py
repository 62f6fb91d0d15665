"""The one table from the short label names, as rules, routes and silences use them, to the names that leave."""

from __future__ import annotations

from collections.abc import Mapping

from sevenhop.core.facts.schema import LABELS

OUTWARD: dict[str, str] = {
    **{name: name for name in LABELS},
    "workload": "inference_workload",
    "component": "inference_workload_component",
}
"""Short name → name in metrics, webhooks, API and metadata."""

ALWAYS: tuple[str, ...] = (
    "cluster",
    "namespace",
    "inference_workload",
    "inference_workload_component",
    "model",
    "model_version",
    "owner",
    "tier",
)
"""Outward labels that are there even when they are empty: a receiver may route on them without asking."""

ABOUT_THE_INCIDENT: tuple[str, ...] = ("rule", "severity", "hop", "incident", "cause", "family")
"""What routes and silences may match on beside the labels of an alert."""


def outward(labels: Mapping[str, str]) -> dict[str, str]:
    """
    Labels under the names that leave; empty ones only where they are always there.

    >>> found = outward({"workload": "llama-70b", "node": "", "tier": "critical"})
    >>> found["inference_workload"], "node" in found, found["owner"]
    ('llama-70b', False, '')
    """
    named = {OUTWARD.get(name, name): value for name, value in labels.items() if value}
    return {**dict.fromkeys(ALWAYS, ""), **named}


def common(all_labels: list[Mapping[str, str]]) -> dict[str, str]:
    """
    What all of them agree on; a label that differs is left out, for it would be true of some only.

    >>> common([{"a": "1", "b": "2"}, {"a": "1", "b": "3"}])
    {'a': '1'}
    """
    if not all_labels:
        return {}
    first, rest = all_labels[0], all_labels[1:]
    return {name: value for name, value in first.items() if all(other.get(name, "") == value for other in rest)}
