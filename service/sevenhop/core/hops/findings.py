"""
What is wrong with subjects that have no pod of their own to tell it.

A quota that is used up is no finding: who may not create a pod because of it is.
"""

from __future__ import annotations

from collections.abc import Iterator

from sevenhop.core.hops.finding import Finding as Finding
from sevenhop.core.hops.findings_claims import claim_findings
from sevenhop.core.hops.findings_events import event_findings
from sevenhop.core.hops.findings_nodes import node_findings
from sevenhop.core.hops.findings_operators import operator_findings
from sevenhop.core.hops.findings_owners import owner_findings
from sevenhop.core.hops.findings_queues import queue_findings
from sevenhop.core.inventory.objects import Objects


def findings(objects: Objects) -> list[Finding]:
    """
    One finding at most per subject, ordered by kind, namespace and name.

    Kinds that were not collected give none; an Event about an object of such a kind gives one by its text alone.
    """
    found: dict[tuple[str, str, str], Finding] = {}
    for finding in _all(objects):
        found.setdefault((finding.kind, finding.namespace, finding.name), finding)
    return [found[key] for key in sorted(found)]


def _all(objects: Objects) -> Iterator[Finding]:
    """What is computed comes before what is only read; of one subject the first stays."""
    yield from owner_findings(objects)
    yield from queue_findings(objects)
    yield from node_findings(objects)
    yield from claim_findings(objects)
    yield from operator_findings(objects)
    yield from event_findings(objects)
