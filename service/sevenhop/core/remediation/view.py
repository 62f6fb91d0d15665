"""What the table of scaling may look at, out of the inventory's state."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec.structs import replace

from sevenhop.core.facts.schema import Unknown, UnknownReason
from sevenhop.core.inventory.objects import Key
from sevenhop.core.inventory.state import State
from sevenhop.core.objects.base import Object
from sevenhop.core.remediation.borrowed import BORROWED, decode_borrow
from sevenhop.core.remediation.reduction import View


class _StateView:
    def __init__(self, state: State, own: str) -> None:
        self._state = state
        self._own = own

    def get(self, kind: str, namespace: str, name: str) -> Object | None:
        found = self._state.objects.get(kind, namespace, name)
        return _without_mark(found, self._own) if found is not None and self._own else found

    def of(self, kind: str) -> Mapping[Key, Object]:
        return self._state.objects.of(kind)

    def gate(self, *kinds: str) -> Unknown | None:
        """One object that could not be decoded is enough: an autoscaler among them might rule what is asked about."""
        unknown = self._state.gate(*kinds)
        if unknown is not None:
            return unknown
        for kind in kinds:
            unreadable = self._state.unreadable.get(kind)
            if unreadable:
                return Unknown(UnknownReason.UNREADABLE, f"{kind} {'/'.join(min(unreadable)).lstrip('/')}")
        return None


def view_of(state: State, own: str = "") -> View:
    """
    A window on the live state: it shows what is true at the moment of each question.

    Args:
        own: Id of a plan whose own mark is passed over: a step of it that was cut off may have left it, and that is no
            loan of somebody else's.
    """
    return _StateView(state, own)


def _without_mark(obj: Object, own: str) -> Object:
    raw = obj.metadata.annotations.get(BORROWED)
    borrow = decode_borrow(raw) if raw is not None else ""
    if isinstance(borrow, str) or borrow.plan != own:
        return obj
    annotations = {key: value for key, value in obj.metadata.annotations.items() if key != BORROWED}
    return replace(obj, metadata=replace(obj.metadata, annotations=annotations))
