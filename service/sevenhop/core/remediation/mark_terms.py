"""
How far the word of a mark goes that we do not know, because our state was lost or because we never wrote it.

Whoever may annotate an object can write a mark on it, with any plan in it, and we may change more than they may.  So a
mark is followed only as far as giving back goes: on the object that carries it and on what stands above or below it,
upwards, and in nothing but numbers of replicas.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from datetime import datetime, timedelta
from typing import Final

from sevenhop.core.objects.kinds import kind_of
from sevenhop.core.remediation.action import Edit, ObjectRef, Scale, Steer, Value
from sevenhop.core.remediation.borrowed import Lent
from sevenhop.core.remediation.guards_question import place
from sevenhop.core.remediation.plan import Plan
from sevenhop.core.remediation.reduction import View

Patches = frozenset[tuple[str, str]]
"""(kind, subresource or empty) of what the table of scaling may patch."""

_LONGEST_LEASE: Final = timedelta(days=31)
_LONGEST_WAIT: Final = timedelta(days=366)
_LONGEST_TITLE: Final = 1_000
_MOST_OWNERS: Final = 8

_COUNT: Final = re.compile(r"^/(spec|metadata/annotations)/.*?([rR]eplicas|[sS]cale)$")
"""Every number that the table writes ends so: ``replicas``, ``minReplicas``, ``…/max-scale``."""

_ORDER: Final = re.compile(r"^/spec/.*/workersToDelete/\d+$")


def against_following(lent: Lent, view: View, patches: Patches, cluster: str, now: datetime) -> str:
    """Why a mark is not followed, for the person who then has to look; empty if it is."""
    borrow = lent.borrow
    terms = borrow.terms if borrow is not None else None
    if borrow is None or terms is None or terms.id != borrow.plan or terms.hash != borrow.hash:
        return "its mark does not say what was changed"
    if terms.cluster != cluster:
        return "its mark is of another cluster"
    if not timedelta(0) < terms.lease <= _LONGEST_LEASE or borrow.until > now + _LONGEST_WAIT:
        return "its mark names a time that no lease has"
    if len(terms.title) > _LONGEST_TITLE:
        return "its mark is not as we write it"
    if not any(place(scale.marked) == place(lent.ref) for scale in terms.scales):
        return "its mark is about other objects than the one that carries it"
    return next(_too_far(terms, view, patches), "")


def is_about(lent: Lent, plan: Plan) -> bool:
    """Whether the object that carries a mark is one that this plan marks; a copy elsewhere means nothing."""
    return any(
        place(scale.marked) == place(lent.ref) and scale.marked.uid in ("", lent.ref.uid) for scale in plan.scales
    )


def _too_far(terms: Plan, view: View, patches: Patches) -> Iterator[str]:
    spaces = {scale.marked.namespace for scale in terms.scales}
    for action in terms.actions:
        if isinstance(action, Scale):
            yield from _of_scale(action, view, patches)
        elif not isinstance(action, Steer) or any(pod.namespace not in spaces for pod in action.pods):
            yield "its mark asks for more than giving back"


def _of_scale(scale: Scale, view: View, patches: Patches) -> Iterator[str]:
    touched = [(scale.target, scale.subresource, scale.edits), *((ref, "", edits) for ref, edits, _ in scale.also)]
    for ref, subresource, edits in touched:
        if (ref.kind, subresource) not in patches:
            yield f"its mark names {ref}, which is not scaled that way"
        if not _belong_together(view, ref, scale.marked):
            yield f"its mark reaches beyond its own object, to {ref}"
        # Who may write on an object sets its numbers as they like; not so those of the object above it.
        is_own = place(ref) == place(scale.marked)
        if not all(_is_number(edit) if is_own else _goes_up(edit) for edit in edits):
            yield "its mark asks for more than giving back replicas"
    if not 0 <= scale.after < scale.before:
        yield "its mark asks for fewer replicas"


def _belong_together(view: View, one: ObjectRef, other: ObjectRef) -> bool:
    """The same object, one that controls the other, or, as a scaling adapter, is named after it; in one namespace."""
    if one.namespace != other.namespace:
        return False
    if place(one) == place(other) or one.name.startswith(f"{other.name}-"):
        return True
    return place(other) in _above(view, one) or place(one) in _above(view, other)


def _above(view: View, ref: ObjectRef) -> Iterable[tuple[str, str, str]]:
    found: list[tuple[str, str, str]] = []
    at = view.get(ref.kind, ref.namespace, ref.name)
    while at is not None and len(found) < _MOST_OWNERS:
        owner = at.metadata.controller()
        row = kind_of(owner.api_version, owner.kind) if owner is not None else None
        if owner is None or row is None:
            break
        at = view.get(row.name, ref.namespace, owner.name)
        if at is None or (owner.uid and at.metadata.uid and at.metadata.uid != owner.uid):
            break
        found.append((row.name, ref.namespace, owner.name))
    return found


def _is_number(edit: Edit) -> bool:
    """Whether it is about a number of replicas, or an order to the operator, and nothing else."""
    if _ORDER.match(edit.pointer):
        return isinstance(edit.before, str | None) and isinstance(edit.after, str | None)
    counts = (edit.before is None or _number(edit.before) is not None, _number(edit.after) is not None)
    return bool(_COUNT.match(edit.pointer)) and all(counts)


def _goes_up(edit: Edit) -> bool:
    """Whether giving back raises it."""
    if not _is_number(edit) or _ORDER.match(edit.pointer):
        return _is_number(edit)
    before, after = _number(edit.before), _number(edit.after) or 0
    if before is None:
        # Absent is no limit for a most, and one replica elsewhere.
        return after <= 1 or "max" in edit.pointer.rpartition("/")[2].lower()
    return before >= after


def _number(value: Value) -> int | None:
    if isinstance(value, str):
        return int(value) if value.isdecimal() and value.isascii() and len(value) < 10 else None
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 10**9 else None
