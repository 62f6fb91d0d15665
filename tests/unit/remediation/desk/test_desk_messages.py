"""What people read of plans, when it is posted aloud, and how often planning is asked."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from msgspec.structs import replace

from sevenhop.core.effects import Role
from sevenhop.core.events import StepResult, Verb
from sevenhop.core.incidents.members import Member
from sevenhop.core.remediation.permit import Purpose
from sevenhop.core.remediation.plan import Answer, NoPlanReason
from sevenhop.core.remediation.states import PlanState
from sevenhop.core.remediation.views import describe, plans, runs, safety, shadow
from sevenhop.runtime.answers import described
from tests.builders import at, node, pod
from tests.unit.remediation.desk.desk_scene import FREE, Scene, approved, lent, settings_of


def _plan_lines(scene: Scene) -> list[str]:
    return [f"{line.label}: {line.text}" for line in scene.sent[-1].message.lines if line.role is Role.PLAN]


class Counting:
    """A planner that counts how often it is asked."""

    def __init__(self, scene: Scene) -> None:
        self.proposals = scene.engine.remediation._proposals
        self.planner = self.proposals._planner
        self.proposals._planner = self
        self.asked = 0

    def __call__(self, *args: Any, **more: Any) -> Answer:
        self.asked += 1
        return self.planner(*args, **more)


def test_planning_is_asked_again_only_where_something_changed() -> None:
    """A minute of a quiet cluster asks planning once; a change in the pool asks it within seconds."""
    scene = Scene().begin()
    counting = Counting(scene)
    scene.passes(55)
    assert counting.asked <= 1
    before = counting.asked
    scene.put(node("gpu-2", gpus=1))
    scene.passes(6)
    assert counting.asked == before + 1


def test_what_does_not_concern_the_pool_asks_nothing() -> None:
    """Pods without GPUs come and go, and planning is not asked."""
    scene = Scene().begin()
    scene.passes(55)
    counting = Counting(scene)
    for number in range(20):
        scene.put(pod(f"web-{number}", "other", image="nginx", args=(), node="gpu-0"))
        scene.passes(0.2)
    assert counting.asked == 0


def test_why_there_is_no_plan_is_said() -> None:
    """Where nobody ranks lower the message says so, with who was looked at."""
    scene = Scene()
    scene.donor.metadata.annotations["sevenhop.dev/tier"] = "critical"
    scene.begin()
    scene.passes(5)
    assert scene.cases == []
    (no_plan, *_) = _plan_lines(scene)
    assert no_plan.startswith("No plan: ")
    assert scene.sent[-1].message.plan is None


def test_a_donor_appears_and_the_message_is_edited() -> None:
    """The owner gives the donor a lower tier: a plan is proposed, and the same message shows it."""
    scene = Scene()
    scene.donor.metadata.annotations["sevenhop.dev/tier"] = "critical"
    scene.begin()
    scene.donor.metadata.annotations["sevenhop.dev/tier"] = "batch"
    scene.put(scene.donor)
    scene.passes(10)
    assert len(scene.cases) == 1
    last = scene.sent[-1]
    assert last.message.plan is not None
    assert not last.anew


def test_the_reminder_is_one() -> None:
    """Between proposal and expiry people are reminded aloud exactly once."""
    scene = Scene(settings_of(replace(FREE, expires=timedelta(hours=3)))).begin()
    scene.passes(3 * 3600 - 60)
    assert [n.reason for n in scene.sent if n.anew].count("decision_wanted") == 1


def test_how_the_last_plan_ended_is_said_beside_why_there_is_no_other() -> None:
    """After a failed run the message says what failed, and until when it is left alone."""
    scene = Scene().begin()
    scene.decides(Verb.APPROVE)
    scene.answers(scene.next_act(), StepResult.REFUSED, "denied by policy")
    scene.passes(10)
    lines = _plan_lines(scene)
    assert any("denied by policy" in line for line in lines)
    assert any("waits until" in line for line in lines)


def test_progress_is_shown_as_it_goes() -> None:
    """Each step of the pod on its way is an edit of the message."""
    scene = Scene().begin()
    scene.decides(Verb.APPROVE)
    from sevenhop.core.remediation.permit import Purpose

    scene.does(Purpose.DRY_RUN)
    scene.does(Purpose.APPLY)
    scene.passes(5)
    assert any("waiting for a node" in line for line in _plan_lines(scene))
    scene.place("gpu-0", ready=False)
    scene.passes(5)
    assert any("loading its model" in line for line in _plan_lines(scene))


def test_listings_hold_what_happened() -> None:
    """Plans, runs, the switch, and everything about one plan, as plain values."""
    scene = lent(Scene())
    desk, now = scene.engine.remediation, at(scene.seconds)
    (row,) = plans(desk, now)
    assert (row["state"], row["for"], row["decided_by"]) == ("succeeded", "prod/llama-70b/decode", "ann")
    (run,) = runs(desk, now)
    assert run["started_at"] == at(130)
    assert [each["is_on"] for each in safety(desk, now)] == [False, False]
    assert shadow(desk, now) == []
    told = describe(desk, row["plan"])
    assert told is not None
    assert told["approvals"][0]["person"] == "slack:U-ann"
    assert any("goal reached" in line for line in told["history"])
    assert describe(desk, "unknown") is None


def test_why_a_step_is_not_done_yet_is_said_with_its_plan() -> None:
    """With the plan that waits for it, and no other; and no more once it is answered."""
    scene = Scene().begin()
    plan_id, failing = scene.case().id, "the edge of prod signs nothing"
    assert described(scene.engine, plan_id, failing).data["failing"] == ""
    assert scene.decides(Verb.APPROVE).accepted
    assert described(scene.engine, plan_id, failing).data["failing"] == failing
    assert described(scene.engine, plan_id).data["failing"] == ""
    over = lent(Scene())
    [row] = plans(over.engine.remediation, at(over.seconds))
    assert described(over.engine, row["plan"], failing).data["failing"] == ""


def test_one_plan_for_one_pool() -> None:
    """Another incident about the same GPUs gets words, not a second plan."""
    scene = Scene().begin()
    first = scene.case()
    desk, state = scene.engine.desk, scene.engine.inventory.state
    here = first.plan.incident

    class Twins:
        incidents = {**desk.incidents, "twin": replace(desk.incidents[here], key="twin")}

        def causes(self, _key: str) -> list[Member]:
            return desk.causes(here)

    proposals = scene.engine.remediation._proposals
    assert proposals.consider("twin", Twins(), state, at(scene.seconds)) == []
    answer = proposals.answer("twin")
    assert answer is not None
    assert answer.reason is NoPlanReason.NOT_FIRST
    assert first.id in answer.text


def test_how_the_plan_before_ended_is_said_beside_the_next() -> None:
    """Refused on the way and another one offered: message and thread say what was tried, and why it failed."""
    scene = Scene(settings_of(replace(FREE, cooldown=timedelta(0)))).begin()
    first = scene.case()
    scene.decides(Verb.APPROVE)
    scene.answers(scene.next_act(), StepResult.REFUSED, "the API server says no (403)")
    scene.passes(30)
    second = scene.case()
    assert (scene.case(first.id).state, second.state) == (PlanState.FAILED, PlanState.PROPOSED)
    assert second.id != first.id
    message = scene.sent[-1].message
    ends = [line.text for line in message.lines if line.label == f"Last plan {first.id}"]
    assert len(ends) == 1
    assert "(403)" in ends[0]
    assert any("(403)" in line and first.id in line for line in message.details)


def test_a_run_that_has_failed_is_told_aloud_once() -> None:
    """An edit notifies nobody, and whoever agreed may be asleep again: that it was undone is posted anew, and why."""
    scene = approved(Scene())
    scene.passes(FREE.no_progress.total_seconds() + 2)
    told = len(scene.sent)
    scene.does(Purpose.UNDO)
    assert scene.case().state is PlanState.UNDONE
    scene.passes(600)
    loud = [each for each in scene.sent[told:] if each.anew and "llama-70b" in each.message.title]
    assert [each.reason for each in loud] == ["decision_wanted"]
    assert any("no progress" in line.text for line in loud[0].message.lines)


def test_what_a_person_took_back_is_not_told_aloud() -> None:
    """They know; it is edited quietly."""
    scene = approved(Scene())
    scene.passes(60)
    told = len(scene.sent)
    scene.decides(Verb.UNDO)
    scene.does(Purpose.UNDO)
    scene.passes(600)
    assert [each.reason for each in scene.sent[told:] if each.anew and "llama-70b" in each.message.title] == []
