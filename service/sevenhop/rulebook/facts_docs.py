"""docs/reference/facts.md, rendered from the table of facts."""

from __future__ import annotations

from collections.abc import Mapping

from sevenhop.core.facts.schema import LABELS, FactSpec

_HEAD = """# Facts

Rendered from `service/sevenhop/core/facts` by `sevenhop rules docs --facts`; change the code, not this page.

A fact is a named, typed level of a subject, never an age. It may be *unknown*, with the reason; what does not arise has
a value of its own (last column), for only what cannot be observed is unknown. Ratios are 0–1; a window is in the name.
"""


def render(facts: Mapping[str, FactSpec]) -> str:
    """docs/reference/facts.md: every fact by subject, then the labels."""
    parts = [_HEAD]
    subjects = dict.fromkeys(spec.subject for spec in facts.values())
    for subject in subjects:
        parts.append(f"## {subject}\n")
        parts.append("| fact | type | unit | meaning | from | unknown when | not applicable |")
        parts.append("| --- | --- | --- | --- | --- | --- | --- |")
        parts += [_fact(spec) for spec in facts.values() if spec.subject is subject]
        parts.append("")
    parts.append("## Labels\n")
    parts.append(
        'Strings that every subject carries, "" where it has none: ' + ", ".join(f"`{n}`" for n in LABELS) + ".\n"
    )
    return "\n".join(parts)


def _fact(spec: FactSpec) -> str:
    doc = spec.doc + (f" One of {', '.join(f'`{v}`' for v in spec.values)}." if spec.values else "")
    if spec.not_applicable is None:
        neutral = "–"
    elif isinstance(spec.not_applicable, bool):
        neutral = str(spec.not_applicable).lower()
    else:
        neutral = f"`{spec.not_applicable!r}`" if spec.not_applicable == "" else f"`{spec.not_applicable}`"
    cells = (f"`{spec.name}`", spec.type, spec.unit or "–", doc, spec.source, spec.unknown_when or "never", neutral)
    return "| " + " | ".join(str(cell).replace("|", "\\|") for cell in cells) + " |"
