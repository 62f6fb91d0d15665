"""What the table of scaling may look at, out of the inventory's state."""

from __future__ import annotations

from collections.abc import Mapping

from sevenhop.core.facts.schema import Unknown, UnknownReason
from sevenhop.core.inventory.objects import Key
from sevenhop.core.inventory.state import State
from sevenhop.core.objects.base import Object
from sevenhop.core.remediation.reduction import View


class _StateView:
    def __init__(self, state: State) -> None:
        self._state = state

    def get(self, kind: str, namespace: str, name: str) -> Object | None:
        return self._state.objects.get(kind, namespace, name)

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


def view_of(state: State) -> View:
    """A window on the live state: it shows what is true at the moment of each question."""
    return _StateView(state)
