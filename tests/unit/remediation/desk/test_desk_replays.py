"""The same events again change nothing and ask for nothing: decisions and answers are levels, not edges."""

from __future__ import annotations

from collections.abc import Callable

from hypothesis import given, settings
from hypothesis import strategies as st

from sevenhop.core.events import Event, StepResult, Verb
from sevenhop.core.remediation.case import Case
from sevenhop.core.remediation.permit import Purpose
from sevenhop.core.remediation.states import PlanState
from tests.unit.remediation.desk.desk_scene import Scene

REPLAYS = st.lists(st.tuples(st.integers(0, 7), st.integers(0, 9)), max_size=12)
"""(after which part of the story, which of the events so far is told again)"""


def story(replays: list[tuple[int, int]], *, restarts: frozenset[int] = frozenset()) -> tuple[Scene, list[Case]]:
    """From the proposal to the restore; what was said before is said again at the given places."""
    scene = Scene()
    told: list[Event] = []
    tell = scene.tell

    def remember(events: list[Event], seconds: float | None = None) -> object:
        told.extend(event for event in events if type(event).__name__ in ("Decided", "StepDone", "SwitchSet"))
        return tell(events, seconds)

    scene.tell = remember  # type: ignore[method-assign, assignment]

    def goal() -> None:
        scene.becomes_ready()
        scene.passes(6)

    parts: list[Callable[[], object]] = [
        scene.begin,
        lambda: scene.decides(Verb.APPROVE, request_id="a"),
        lambda: scene.decides(Verb.REJECT, "bob", request_id="b"),
        lambda: scene.does(Purpose.DRY_RUN),
        lambda: scene.does(Purpose.APPLY),
        goal,
        lambda: scene.decides(Verb.RESTORE, request_id="c"),
        lambda: scene.does(Purpose.RESTORE),
    ]
    for number, part in enumerate(parts):
        part()
        for after, which in replays:
            if after == number and told:
                tell([told[which % len(told)]], scene.seconds)
        if number in restarts:
            scene.restart()
    return scene, scene.cases


@settings(max_examples=25, deadline=None)
@given(REPLAYS)
def test_replays_converge(replays: list[tuple[int, int]]) -> None:
    """However often decisions and answers are told again, the end is the same, with one patch."""
    scene, cases = story(replays)
    _, plain = story([])
    assert cases == plain
    assert [case.state for case in cases] == [PlanState.RESTORED]
    assert scene.purposes() == [Purpose.DRY_RUN, Purpose.APPLY, Purpose.RESTORE]
    assert scene.asked_again == []


@settings(max_examples=10, deadline=None)
@given(REPLAYS, st.frozensets(st.integers(0, 7), max_size=3))
def test_replays_and_restarts_patch_once(replays: list[tuple[int, int]], restarts: frozenset[int]) -> None:
    """With restarts in between the story ends the same, and the patch is asked for once."""
    scene, cases = story(replays, restarts=restarts)
    assert cases[0].state is PlanState.RESTORED
    assert scene.purposes() == [Purpose.DRY_RUN, Purpose.APPLY, Purpose.RESTORE]
    assert len(scene.applied) == 1


def test_another_answer_under_an_old_id_is_ignored() -> None:
    """An answer that contradicts the one that was taken does not turn it around."""
    scene = Scene().begin()
    scene.decides(Verb.APPROVE)
    act = scene.next_act()
    scene.answers(act, StepResult.DONE)
    scene.answers(act, StepResult.REFUSED, "too late")
    assert scene.case().state is PlanState.RUNNING
