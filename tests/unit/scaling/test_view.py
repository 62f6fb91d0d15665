"""The window on the live state."""

from __future__ import annotations

from sevenhop.core.events import SyncState
from sevenhop.core.facts.schema import UnknownReason
from sevenhop.core.inventory.policy import Policy
from sevenhop.core.inventory.state import State
from sevenhop.core.objects.cluster import HorizontalPodAutoscaler
from sevenhop.core.objects.kinds import KINDS
from sevenhop.core.remediation.view import view_of
from sevenhop.frameworks import FRAMEWORKS
from tests.builders import meta

HPA = "HorizontalPodAutoscaler.autoscaling"


def seeing() -> State:
    state = State("c", FRAMEWORKS, Policy())
    state.objects.states.update(dict.fromkeys(KINDS, SyncState.SYNCED))
    return state


def test_it_shows_what_is_there_now() -> None:
    """
    An object that comes later is seen by a window that was opened earlier.
    """
    state = seeing()
    view = view_of(state)
    assert view.get(HPA, "prod", "web") is None

    state.objects.put(HPA, HorizontalPodAutoscaler(metadata=meta("web")))

    assert view.get(HPA, "prod", "web") is view.of(HPA)["prod", "web"]


def test_what_is_not_served_is_known_to_be_absent() -> None:
    """
    A cluster without KEDA has no ScaledObjects; one whose ScaledObjects may not be listed may have some.
    """
    state = seeing()
    state.objects.states["ScaledObject.keda.sh"] = SyncState.ABSENT
    assert view_of(state).gate("ScaledObject.keda.sh", HPA) is None

    state.objects.states["ScaledObject.keda.sh"] = SyncState.FORBIDDEN
    unknown = view_of(state).gate("ScaledObject.keda.sh", HPA)

    assert unknown is not None
    assert unknown.reason is UnknownReason.FORBIDDEN


def test_one_that_cannot_be_read_is_enough() -> None:
    """
    An autoscaler that could not be decoded may be the one that rules what is asked about: it is named.
    """
    state = seeing()
    state.unreadable[HPA] = {("prod", "odd"): "no such field"}

    unknown = view_of(state).gate(HPA)

    assert unknown is not None
    assert (unknown.reason, unknown.detail) == (UnknownReason.UNREADABLE, f"{HPA} prod/odd")
