"""Pods that make room may take the time that their owner gave them to end: that is no lack of progress."""

from __future__ import annotations

from msgspec.structs import replace

from sevenhop.core.events import StepResult, Verb
from sevenhop.core.objects import pod as p
from sevenhop.core.remediation.borrowed import encode_borrow
from sevenhop.core.remediation.permit import Purpose
from sevenhop.core.remediation.states import PlanState
from tests.builders import at
from tests.unit.remediation.desk.desk_scene import FREE, Scene

LIMIT = FREE.no_progress.total_seconds()
GRACE = 3 * LIMIT


def _draining() -> tuple[Scene, p.Pod]:
    """Approved and applied; the victim got its deletion, and three times as long as a run waits without progress."""
    scene = Scene().begin()
    scene.decides(Verb.APPROVE)
    scene.does(Purpose.DRY_RUN)
    act = scene.next_act()
    assert act.borrow is not None
    (scale,) = act.plan.scales
    scene.scale(scale.after, encode_borrow(act.borrow))
    (victim,) = (pod for pod in scene.pods("summarizer") if pod.metadata.key in act.plan.victims)
    ending = replace(
        victim,
        metadata=replace(victim.metadata, deletion_timestamp=at(scene.seconds + GRACE)),
        spec=replace(victim.spec, termination_grace_period_seconds=int(GRACE)),
    )
    scene.put(ending)
    scene.answers(act, StepResult.DONE, "done")
    return scene, ending


def test_a_long_drain_is_waited_for_and_said() -> None:
    """Nothing is undone while a victim drains within its grace: undoing would not bring it back."""
    scene, _ = _draining()
    scene.passes(GRACE - 10)
    assert scene.case().state is PlanState.RUNNING
    assert scene.purposes()[-1] is Purpose.APPLY
    watch = scene.case().watch
    assert watch is not None
    assert "1 pod that makes room may take until" in watch.words


def test_the_clock_begins_when_it_has_ended() -> None:
    """Once it is gone the run has as long as any other to get on, and no longer."""
    scene, victim = _draining()
    scene.passes(GRACE - 10)
    scene.delete(victim)
    scene.passes(LIMIT - 20)
    assert scene.purposes()[-1] is Purpose.APPLY
    scene.passes(40)
    scene.does(Purpose.UNDO)
    assert scene.case().state is PlanState.UNDONE


def test_what_does_not_end_in_its_time_is_not_waited_for() -> None:
    """A finalizer or a node that is silent holds it for ever: from the end of its grace on the clock runs."""
    scene, _ = _draining()
    scene.passes(GRACE + LIMIT + 10)
    scene.does(Purpose.UNDO)
    assert "no progress" in scene.case().why


def test_whoever_has_its_node_waits_for_no_drain() -> None:
    """The pod got another place and hangs there: that somebody else still drains buys it no time."""
    scene, _ = _draining()
    scene.passes(5)
    scene.place("gpu-0", ready=False)
    scene.passes(LIMIT + 20)
    scene.does(Purpose.UNDO)
    assert scene.case().state is PlanState.UNDONE
