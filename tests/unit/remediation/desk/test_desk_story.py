"""The story from the proposal to the day when everything is back."""

from __future__ import annotations

from sevenhop.core.events import Verb
from sevenhop.core.remediation.permit import Purpose
from sevenhop.core.remediation.states import PlanState
from tests.unit.remediation.desk.desk_scene import Scene, lent


def test_the_first_message_carries_the_plan() -> None:
    """The message that opens the incident shows the plan, with what a click must carry."""
    scene = Scene().begin()
    case = scene.case()
    assert case.state is PlanState.PROPOSED
    (message,) = [notify.message for notify in scene.sent]
    assert message.plan is not None
    assert (message.plan.plan_id, message.plan.plan_hash) == (case.id, case.plan.hash)
    assert message.plan.buttons == ("approve", "reject")
    assert any("summarizer 2 → 1" in line.text for line in message.lines)
    assert len(message.plan.question) < 300
    assert scene.acts == {}


def test_approved_carried_out_verified_and_given_back() -> None:
    """Each step is asked for once and in order, and the donor gets back what it lent."""
    scene = lent(Scene())
    scene.delete(*scene.pods("llama-70b-decode-2"))
    scene.llama.spec["services"]["decode"]["replicas"] = 2
    scene.put(scene.llama)
    scene.passes(70)
    scene.does(Purpose.RESTORE)
    assert scene.case().state is PlanState.RESTORED
    assert scene.purposes() == [Purpose.DRY_RUN, Purpose.APPLY, Purpose.RESTORE]
    assert scene.donor.spec.replicas == 2
    assert scene.asked_again == []


def test_who_when_and_what_is_said_and_recorded() -> None:
    """The message and the audit name the person, the plan, and each step."""
    scene = lent(Scene())
    told = [line.text for line in scene.sent[-1].message.lines]
    assert any("succeeded" in text for text in told)
    trail = " | ".join(scene.audited())
    for words in ("proposed: summarizer 2 → 1", "approved by ann", "step 1 asked for: dry-run", "goal reached"):
        assert words in trail, words
    by = [record.who for record in scene.records if record.what == "state" and "approved" in record.text]
    assert by == ["slack:U-ann (ann) via slack"]
    assert scene.sent[-1].message.plan is not None


def test_approve_again_is_told_and_not_done_again() -> None:
    """A second click after the first is told who was first, and asks for nothing."""
    scene = Scene().begin()
    assert scene.decides(Verb.APPROVE, "ann").accepted
    reply = scene.decides(Verb.APPROVE, "bob")
    assert not reply.accepted
    assert "ann" in reply.text
    assert scene.purposes() == [Purpose.DRY_RUN]
    assert scene.asked_again == []
