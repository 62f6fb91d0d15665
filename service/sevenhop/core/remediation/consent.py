"""What an owner says about being changed: the annotation `sevenhop.dev/remediation`."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Final

from sevenhop.core.inventory.state import State
from sevenhop.core.remediation.action import ObjectRef

REMEDIATION: Final = "sevenhop.dev/remediation"
"""On an object, a workload or a namespace: ``off`` keeps Sevenhop from changing it, ``allow`` lets it change what
stands in Git."""

ALLOW: Final = "allow"
OFF: Final = "off"


def refusal_in(annotations: Mapping[str, str], where: str) -> str:
    """
    Why its owner says no, in words; empty if they do not.  A word that is not ours counts as no: its author meant
    something by it.

    >>> refusal_in({REMEDIATION: "allow"}, "Deployment a"), refusal_in({}, "Deployment a")
    ('', '')
    """
    word = annotations.get(REMEDIATION)
    if word is None or word == ALLOW:
        return ""
    said = "" if word == OFF else f", which is not a word of ours ({ALLOW}, {OFF}) and is taken as {OFF}"
    return f"{where} says {REMEDIATION}: {json.dumps(word)}{said}; remove it to allow"


def refusal_for(state: State, ref: ObjectRef) -> str:
    """The first no that is said on the object, on the roots of its workload, or on its namespace; empty if none is."""
    return next(filter(None, _refusals(state, ref)), "")


def _refusals(state: State, ref: ObjectRef) -> Iterator[str]:
    for kind, namespace, name in _speaking(state, ref):
        obj = state.objects.get(kind, namespace, name)
        if obj is not None:
            yield refusal_in(obj.metadata.annotations, str(ObjectRef(kind, namespace, name)))


def _speaking(state: State, ref: ObjectRef) -> Iterator[tuple[str, str, str]]:
    yield ref.kind, ref.namespace, ref.name
    row = state.rows.get((ref.namespace, ref.name)) if ref.kind == "Pod" else None
    workload = state.workloads.get(row.workload) if row is not None else None
    for kind, key in workload.roots if workload is not None else ():
        yield kind, *key
    if ref.namespace:
        yield "Namespace", "", ref.namespace
