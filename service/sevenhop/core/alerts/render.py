"""Texts of a rule, filled with an alert's labels and facts."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import datetime

from sevenhop.core.facts.schema import FactValue, Unknown
from sevenhop.core.words import counted, inflected

_PLACE = re.compile(r"\{\{\s*([^{}]*?)\s*\}\}")

_COUNT = re.compile(r"count\(\s*([a-z_0-9.]+)\s*,\s*'([^'{}]+)'\s*(?:,\s*'([^'{}]+)'\s*)?\)")
"""A fact, its noun in the singular and, where the rules of English do not make it, the plural."""


def template_names(template: str) -> list[str]:
    """
    Names between ``{{ }}``, in order; of a count the name of what is counted, and anything else as it is written.

    >>> template_names("{{ workload }} waits for {{component.waiting.gpus}}; {{ count(component.failing, 'pod') }}")
    ['workload', 'component.waiting.gpus', 'component.failing']
    """
    return [found[1] if (found := _COUNT.fullmatch(place)) else place for place in _PLACE.findall(template)]


def counted_names(template: str) -> list[str]:
    """
    Names of what a template counts, in order.

    >>> counted_names("{{ component.failing }} of {{ count(component.desired, 'pod') }}")
    ['component.desired']
    """
    return [found[1] for place in _PLACE.findall(template) if (found := _COUNT.fullmatch(place))]


def is_well_formed(template: str) -> bool:
    """Whether every ``{{`` has its ``}}``."""
    rest = _PLACE.sub("", template)
    return "{{" not in rest and "}}" not in rest


def render(template: str, labels: Mapping[str, str], values: Mapping[str, FactValue | Unknown]) -> str:
    """
    Fill a template.

    What is filled in is never read as a template again: it comes from the cluster.  A name without a value reads
    ``unknown``, an empty label ``none``.  ``count(fact, 'noun')`` is the number with its noun, which agrees.

    >>> render("{{ workload }}: {{ component.ready }} ready", {"workload": "{{ x }}"}, {"component.ready": 3})
    '{{ x }}: 3 ready'
    >>> [render("{{ count(x, 'pod') }}", {}, {"x": x}) for x in (1, 3)], render("{{ count(x, 'man', 'men') }}", {}, {})
    (['1 pod', '3 pods'], 'an unknown number of men')
    """

    def fill(place: re.Match[str]) -> str:
        name = place[1]
        if counting := _COUNT.fullmatch(name):
            return _render_count(values.get(counting[1]), counting[2], counting[3] or "")
        return render_value(labels[name] if name in labels else values.get(name))

    return _PLACE.sub(fill, template)


def _render_count(value: FactValue | Unknown | None, noun: str, plural: str) -> str:
    if isinstance(value, int) and not isinstance(value, bool):
        return counted(value, noun, plural)
    return f"an unknown number of {inflected(0, noun, plural)}"


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
