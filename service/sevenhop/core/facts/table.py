"""Every fact there is, and every label: what rules may read."""

from __future__ import annotations

from sevenhop.core.facts import component, gpu, node, pod, pool, route, service, source, workload
from sevenhop.core.facts.schema import FactSpec
from sevenhop.core.subject import SubjectKind

FACTS: dict[str, FactSpec] = {
    row.name: row
    for module in (source, pool, node, gpu, pod, component, workload, service, route)
    for row in module.SPECS
}


def facts_of(subject: SubjectKind) -> dict[str, FactSpec]:
    """The facts that a rule on this kind of subject reads: its own."""
    return {name: row for name, row in FACTS.items() if row.subject is subject}
