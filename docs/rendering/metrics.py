"""docs/reference/metrics.md, rendered from the table of metrics."""

from __future__ import annotations

from docs.rendering.markdown import code, page, table
from sevenhop.telemetry.table import METRICS, OTHER, Label

_INTRO = """# Metrics

Rendered from `service/sevenhop/telemetry/table.py` by `make docs`; change the code, not this page.

Served at `web.listen`, path `/metrics`, in Prometheus' text form or as OpenMetrics, whichever is asked for; beside
these stand `process_…` and `python_gc_…` of the process. How to use them, and what to alert on:
[watching Sevenhop](../operating/watching.md).

No label holds text that a person or a container wrote, except the names that the cluster gives; what looks like a
password in a model's address is masked. A label with a closed set never has another value: what we do not know yet is
`other`. Nothing grows with time.
"""


def render() -> str:
    """The page as Markdown."""
    rows = [
        [code(m.name), m.type.value, ", ".join(code(label.name) for label in m.labels) or "–", m.doc]
        for m in METRICS.values()
    ]
    labels: dict[tuple[str, str], tuple[Label, list[str]]] = {}
    for metric in METRICS.values():
        for label in metric.labels:
            labels.setdefault((label.name, _values(label)), (label, []))[1].append(metric.name)
    bounds = [
        [code(label.name), ", ".join(code(name) for name in names) if len(names) < 4 else "the others", text]
        for (_, text), (label, names) in sorted(labels.items(), key=lambda row: (row[0][0], len(row[1][1])))
    ]
    return page(
        _INTRO,
        table(["metric", "type", "labels", "meaning"], rows),
        "## What bounds each label",
        table(["label", "of", "values"], bounds),
    )


def _values(label: Label) -> str:
    if label.values is None:
        return f"as many as: {label.bound}"
    if label.name == "kind":
        kinds = "the [kinds that are watched](kinds.md)"
        return f"{kinds}, `gpu-agent`, `rulebook`, `outbox`, and empty for what is about none"
    return ", ".join(code(value) for value in sorted(label.values - {OTHER, ""}))
