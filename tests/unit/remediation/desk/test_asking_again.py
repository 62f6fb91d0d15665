"""When planning is asked again."""

from __future__ import annotations

from datetime import datetime, timedelta

import pytest
from msgspec.structs import replace

from sevenhop.core.events import SyncState
from sevenhop.core.remediation.plan import Answer, NoPlanReason
from sevenhop.core.remediation.proposing import Considered, ground_of, is_stale, wanted_by
from sevenhop.core.remediation.settings import RemediationSettings
from tests.builders import at
from tests.unit.remediation.desk.desk_scene import FREE, Scene, settings_of

SETTINGS = RemediationSettings()
GROUND = ("as it was",)


def considered(reason: NoPlanReason, when: datetime) -> Considered:
    return Considered(answer=Answer(reason=reason, text="no"), at=when, looked_at=when, ground=GROUND)


@pytest.mark.parametrize("reason", [reason for reason in NoPlanReason if reason is not NoPlanReason.UNKNOWN], ids=str)
def test_what_is_known_holds_for_as_long_as_its_ground(reason: NoPlanReason) -> None:
    """An answer stands until what it rests on changes, or for `replan_at_latest`."""
    known = considered(reason, at(0))
    soon, late = at(0) + SETTINGS.replan_every, at(0) + SETTINGS.replan_at_latest
    assert not is_stale(known, GROUND, SETTINGS, soon)
    assert is_stale(known, ("otherwise",), SETTINGS, soon)
    assert is_stale(known, GROUND, SETTINGS, late)


def test_what_could_not_be_seen_is_looked_for_again() -> None:
    """A service that has just begun lists Events last: the plan does not wait for a minute because of it."""
    known = considered(NoPlanReason.UNKNOWN, at(0))
    assert is_stale(known, GROUND, SETTINGS, at(0) + timedelta(seconds=5))


@pytest.mark.parametrize("pool", ["", "the pool that it waits for"], ids=["one object", "a pool"])
def test_what_comes_into_sight_is_part_of_the_ground(pool: str) -> None:
    """That nothing rules a donor is known once its autoscalers are listed: nothing else changes then."""
    scene = Scene().begin()
    state = scene.engine.inventory.state
    wanted = wanted_by(scene.engine.desk.causes(scene.case().plan.incident), state, settings_of(FREE))
    assert wanted is not None
    assert wanted.pool
    asked = wanted if pool else replace(wanted, pool="")
    seen = ground_of(asked, state, ())
    assert ground_of(asked, state, ()) == seen
    state.objects.states["HorizontalPodAutoscaler.autoscaling"] = SyncState.NOT_SYNCED
    assert ground_of(asked, state, ()) != seen
