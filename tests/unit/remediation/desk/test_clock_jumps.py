"""A machine that slept, a process that stood still, a clock that was set: nothing is concluded from time nobody saw."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from sevenhop.core.events import StepResult, Verb
from sevenhop.core.remediation.case import Stage
from sevenhop.core.remediation.permit import Purpose
from sevenhop.core.remediation.states import PlanState
from tests.builders import at, node
from tests.unit.remediation.desk.desk_scene import FREE, Scene, approved, lent, settings_of

WEEK = replace(FREE, lease=timedelta(days=7), no_progress=timedelta(minutes=2))
NO_PROGRESS_S = WEEK.no_progress.total_seconds()
jumps = st.floats(61, 3 * 86_400)
few = settings(max_examples=6, deadline=None, suppress_health_check=[HealthCheck.too_slow])


def running(no_progress: timedelta = WEEK.no_progress) -> Scene:
    """Carried out, and the pod has a node and loads."""
    scene = approved(Scene(settings_of(replace(WEEK, no_progress=no_progress))))
    scene.passes(5)
    scene.place("gpu-0", ready=False)
    scene.passes(5)
    assert scene.case().stage is Stage.VERIFYING
    return scene


def sleeps(scene: Scene, seconds: float) -> None:
    """The clock is another one, and nobody was called in between; less than nothing sets it back."""
    scene.tell((), scene.seconds + seconds)


@few
@given(before=st.floats(0, NO_PROGRESS_S - 20), jump=jumps)
def test_time_that_nobody_saw_is_no_lack_of_progress(before: float, jump: float) -> None:
    """A run is undone after the time without progress that was seen, to the seconds between two looks; not before."""
    scene = running()
    scene.passes(before)
    sleeps(scene, jump)
    scene.passes(NO_PROGRESS_S - before - 15)
    assert scene.case().state is PlanState.RUNNING
    assert scene.purposes()[-1] is Purpose.APPLY
    scene.passes(30)
    assert scene.purposes()[-1] is Purpose.UNDO
    assert "not counting time in which nobody could look" in scene.case().undo_why


@few
@given(steps=st.lists(st.tuples(st.floats(0, 40), st.floats(-86_400, 86_400)), max_size=6))
def test_a_healthy_run_succeeds_however_the_clock_is_set(steps: list[tuple[float, float]]) -> None:
    """
    Forward or back, as often as may be: nothing is undone, and the end is seen by the time a late event would be.

    Six times forty seconds, and as many jumps of up to a minute, which count as seen, are less than may pass.
    """
    scene = running(timedelta(minutes=15))
    for seconds, jump in steps:
        scene.passes(seconds)
        sleeps(scene, jump)
    assert scene.case().state is PlanState.RUNNING
    scene.becomes_ready()
    scene.passes(65)
    assert scene.case().state is PlanState.SUCCEEDED
    assert scene.purposes() == [Purpose.DRY_RUN, Purpose.APPLY]


@few
@given(jump=jumps)
def test_a_patch_that_the_cluster_does_not_show_yet_is_not_set_back(jump: float) -> None:
    """Asleep right after the patch, with the old value still in sight: that is no proof that somebody put it back."""
    scene = Scene(settings_of(WEEK)).begin()
    scene.decides(Verb.APPROVE)
    scene.does(Purpose.DRY_RUN)
    scene.answers(scene.next_act(), StepResult.DONE, "done")
    scene.passes(3)
    sleeps(scene, jump)
    scene.passes(10)
    assert scene.case().stage is Stage.VERIFYING
    scene.passes(30)
    assert scene.case().stage is Stage.UNDOING


@few
@given(jump=jumps)
def test_failure_evidence_has_to_stand_while_it_is_seen(jump: float) -> None:
    """A failure before the sleep and the same after it is not one that stood for half a minute."""
    scene = running()
    failing: dict[str, Any] = {"waiting": "CrashLoopBackOff", "restarts": 4, "exit_code": 137, "last_end": at(200)}
    scene.place("gpu-0", ready=False, **failing)
    scene.passes(3)
    sleeps(scene, jump)
    scene.passes(20)
    assert scene.case().stage is Stage.VERIFYING
    scene.passes(20)
    assert scene.case().stage is Stage.UNDOING


@few
@given(jump=st.floats(15 * 60, 3 * 86_400))
def test_no_expired_approval_runs(jump: float) -> None:
    """Approved, then asleep until it is too old: the step that was asked for gets no leave, and nothing is changed."""
    scene = Scene().begin()
    scene.decides(Verb.APPROVE)
    sleeps(scene, jump + 1)
    scene.does(Purpose.DRY_RUN)
    scene.passes(60)
    assert scene.applied == []
    assert Purpose.APPLY not in scene.purposes()
    assert scene.case(scene.cases[0].id).state in (PlanState.FAILED, PlanState.SUPERSEDED)


@few
@given(jump=st.floats(15 * 60, 3 * 86_400))
def test_a_plan_that_expired_meanwhile_is_expired(jump: float) -> None:
    """The click that comes with the first breath after the sleep is too late."""
    scene = Scene().begin()
    plan = scene.case().id
    scene.seconds += jump
    assert not scene.decides(Verb.APPROVE, plan=plan).accepted
    assert scene.acts == {}


@few
@given(jump=st.floats(121, 700))
def test_just_awake_nothing_is_begun(jump: float) -> None:
    """What is known is of before the sleep: that is the answer to a click, until the sources have caught up."""
    scene = Scene().begin()
    sleeps(scene, jump)
    plan = scene.case().id
    early = scene.decides(Verb.APPROVE, plan=plan)
    assert not early.accepted
    assert "wait until newer events are read" in early.text
    scene.passes(31)
    if scene.case(plan).state is PlanState.PROPOSED:
        assert scene.decides(Verb.APPROVE, plan=plan).accepted


@few
@given(jump=st.floats(61, 86_400))
def test_an_answer_that_came_during_the_sleep_is_heard(jump: float) -> None:
    """The dry run was answered while nobody listened: it is not given up at the first look."""
    scene = Scene(settings_of(replace(WEEK, expires=timedelta(days=2)))).begin()
    scene.decides(Verb.APPROVE)
    act = scene.next_act()
    sleeps(scene, 600 + jump)
    scene.passes(5)
    scene.answers(act, StepResult.DONE, "the API server would accept it")
    assert scene.case().stage is Stage.APPLYING


@few
@given(back=st.floats(61, 86_400))
def test_a_clock_that_was_set_back_keeps_nothing_back(back: float) -> None:
    """What is owed is still tried again within the longest wait, and not only when the old time comes round."""
    scene = running()
    scene.decides(Verb.UNDO)
    for _ in range(3):
        scene.answers(scene.next_act(), StepResult.UNKNOWN, "no answer")
        scene.passes(150)
    tried = len(scene.purposes())
    sleeps(scene, -back)
    scene.passes((scene.settings.answer_within + scene.settings.give_back_longest).total_seconds() + 5)
    assert len(scene.purposes()) > tried


@few
@given(back=st.floats(61, 86_400))
def test_people_can_decide_after_the_clock_was_set_back(back: float) -> None:
    """The plan of the other clock is withdrawn, and proposed anew with times that can be met."""
    scene = Scene().begin()
    old = scene.case().id
    sleeps(scene, -back)
    scene.passes(40)
    assert scene.case(old).state is PlanState.SUPERSEDED
    assert "clock was set back" in scene.case(old).why
    new = scene.case()
    assert new.state is PlanState.PROPOSED
    assert scene.decides(Verb.APPROVE).accepted


def test_a_plan_of_a_later_clock_is_not_approved() -> None:
    """In the moment before it is withdrawn it cannot be approved either: it is of a time that has not come."""
    scene = Scene().begin()
    plan = scene.case().id
    scene.seconds -= 3600
    assert not scene.decides(Verb.APPROVE, plan=plan).accepted


@few
@given(jump=jumps)
def test_room_that_nobody_saw_stay_gives_nothing_back(jump: float) -> None:
    """Room at the look before the sleep and at the one after it has not been there for a minute."""
    scene = lent(Scene(settings_of(WEEK)))
    scene.put(node("gpu-2", gpus=4))
    scene.passes(10)
    sleeps(scene, jump)
    scene.passes(20)
    assert scene.case().stage is Stage.LENT
    scene.passes(60)
    assert scene.case().stage is Stage.RESTORING


@pytest.mark.parametrize("jump", [3600.0, 86_400.0])
def test_a_lease_that_ended_during_the_sleep_asks_first(jump: float) -> None:
    """In a shortage people are asked as ever, with all the time that they have otherwise."""
    scene = lent(Scene(settings_of(replace(FREE, lease=timedelta(minutes=30)))))
    sleeps(scene, jump)
    scene.passes(10)
    case = scene.case()
    assert case.stage is Stage.EXTENSION
    assert case.extend_until is not None
    assert case.extend_until >= at(scene.seconds - 10) + scene.settings.extend_wait
    scene.passes(scene.settings.extend_wait.total_seconds())
    scene.does(Purpose.RESTORE)
    assert scene.case().state is PlanState.RESTORED


def test_a_lease_is_not_forgotten_when_the_clock_is_set_back() -> None:
    """It ends when the clock says so, whatever it said in between."""
    scene = lent(Scene(settings_of(replace(FREE, lease=timedelta(minutes=30)))))
    end = scene.case().lease_until
    assert end is not None
    sleeps(scene, -3600)
    scene.until((end - at(0)).total_seconds() - 5)
    assert scene.case().stage is Stage.LENT
    scene.passes(10)
    assert scene.case().stage is Stage.EXTENSION
