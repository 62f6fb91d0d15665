"""Texts of a rule, filled with an alert's labels and facts."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import datetime

from sevenhop.core.facts.schema import FactValue, Unknown

_PLACE = re.compile(r"\{\{\s*([^{}]*?)\s*\}\}")


def template_names(template: str) -> list[str]:
    """
    Names between ``{{ }}``, in order.

    >>> template_names("{{ workload }} waits for {{component.waiting.gpus}}")
    ['workload', 'component.waiting.gpus']
    """
    return _PLACE.findall(template)


def is_well_formed(template: str) -> bool:
    """Whether every ``{{`` has its ``}}``."""
    rest = _PLACE.sub("", template)
    return "{{" not in rest and "}}" not in rest


def render(template: str, labels: Mapping[str, str], values: Mapping[str, FactValue | Unknown]) -> str:
    """
    Fill a template.

    What is filled in is never read as a template again: it comes from the cluster.  A name without a value reads
    ``unknown``, an empty label ``none``.

    >>> render("{{ workload }}: {{ component.ready }} ready", {"workload": "{{ x }}"}, {"component.ready": 3})
    '{{ x }}: 3 ready'
    """

    def fill(place: re.Match[str]) -> str:
        name = place[1]
        return render_value(labels[name] if name in labels else values.get(name))

    return _PLACE.sub(fill, template)


def render_value(value: FactValue | Unknown | None) -> str:
    """
    A value as people read it.

    >>> render_value(0.25), render_value(True), render_value([1, 2]), render_value(None)
    ('0.25', 'yes', '1, 2', 'unknown')
    """
    if value is None:
        return "unknown"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"{value:.3g}"
    if isinstance(value, datetime):
        return f"{value:%Y-%m-%d %H:%M:%S}Z"
    if isinstance(value, list):
        return ", ".join(str(v) for v in value) or "none"
    return str(value) or "none"
