"""A program that keeps ending and says nothing: no cause is known, and waiting longer helps nobody."""

from __future__ import annotations

import pytest

from sevenhop.core.remediation.permit import Purpose
from sevenhop.core.remediation.states import PlanState
from tests.builders import at
from tests.unit.remediation.desk.desk_scene import Scene, approved


@pytest.mark.parametrize("waiting", ["CrashLoopBackOff", ""], ids=["in the back-off", "between two crashes"])
def test_what_keeps_crashing_without_a_reason_is_undone(waiting: str) -> None:
    """Two restarts since are failure evidence, though nothing says why it ends."""
    scene = approved(Scene())
    scene.place("gpu-0", waiting=waiting, ready=False, restarts=2, exit_code=1, last_end=at(140))
    scene.passes(20)
    assert scene.case().state is PlanState.RUNNING
    scene.passes(20)
    scene.does(Purpose.UNDO)
    assert scene.case().state is PlanState.UNDONE
    assert "llama-70b-decode-2 fails" in scene.case().why


def test_one_crash_without_a_reason_is_waited_for() -> None:
    """A first end may be that a neighbour was not there yet."""
    scene = approved(Scene())
    scene.place("gpu-0", waiting="CrashLoopBackOff", ready=False, restarts=1, exit_code=1, last_end=at(140))
    scene.passes(60)
    assert scene.case().state is PlanState.RUNNING
    assert scene.purposes()[-1] is Purpose.APPLY
