"""Extending a lease: a taking, so as many must agree to it as agreed to the plan, and everything can stop it."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from sevenhop.core.events import StepResult, Verb
from sevenhop.core.remediation.borrowed import BORROWED, decode_borrow
from sevenhop.core.remediation.case import Case, Stage
from sevenhop.core.remediation.permit import Purpose
from sevenhop.core.remediation.states import PlanState
from tests.builders import at
from tests.unit.remediation.desk.desk_scene import Scene, approved, lent, person, settings_of
from tests.unit.remediation.desk.test_desk_leases import SHORT_LEASE

TWO = replace(SHORT_LEASE, approvals=2)


def _ended(approvals: int = 1) -> Scene:
    """The lease has just ended in a shortage, and people are asked."""
    playbook = replace(SHORT_LEASE, approvals=approvals)
    scene = Scene(settings_of(playbook)).begin()
    for name in ("ann", "bob")[:approvals]:
        assert scene.decides(Verb.APPROVE, name).accepted
    scene.does(Purpose.DRY_RUN)
    scene.does(Purpose.APPLY)
    scene.becomes_ready()
    scene.passes(3)
    until = scene.case().lease_until
    assert until is not None
    scene.until((until - at(0)).total_seconds() + 3)
    assert scene.case().stage is Stage.EXTENSION
    return scene


def _card(scene: Scene) -> str:
    return " ".join(line.text for line in scene.sent[-1].message.lines)


def test_one_of_two_does_not_extend() -> None:
    """Where two had to agree to take it, one cannot keep it: the other is named as missing, and the end stays."""
    scene = _ended(2)
    before = scene.case()
    reply = scene.decides(Verb.EXTEND, "ann")
    assert reply.accepted
    assert "1 more of 2 people must agree" in reply.text
    assert (scene.case().lease_until, scene.case().extend_until) == (before.lease_until, before.extend_until)
    assert scene.undelivered == []
    scene.passes(3)
    assert "ann would extend it, and not enough people yet" in _card(scene)


def test_two_of_two_extend() -> None:
    """The second person's yes moves the end, and both are named."""
    scene = _ended(2)
    scene.decides(Verb.EXTEND, "ann")
    reply = scene.decides(Verb.EXTEND, "bob")
    assert reply.accepted
    assert "ann, bob" in reply.text
    scene.does(Purpose.EXTEND)
    assert (scene.case().stage, scene.case().lease_until) == (Stage.LENT, at(scene.seconds) + TWO.lease)


def test_the_same_person_again_is_still_one() -> None:
    """Neither a second click nor the same human in another place makes two."""
    scene = _ended(2)
    scene.decides(Verb.EXTEND, "ann")
    assert not scene.decides(Verb.EXTEND, "ann").accepted
    twice = person("bob", scene.seconds, is_same_as=("slack:U-ann",))
    assert not scene.decides(Verb.EXTEND, person=twice).accepted
    assert scene.purposes()[-1] is Purpose.APPLY


def test_one_person_gives_back_what_one_would_keep() -> None:
    """Restoring is anybody's to say who may decide, whatever another would like and however many must agree."""
    scene = _ended(2)
    scene.decides(Verb.EXTEND, "ann")
    scene.switches(on=True)
    assert scene.decides(Verb.RESTORE, "bob").accepted
    scene.does(Purpose.RESTORE)
    assert scene.case().state is PlanState.RESTORED


def test_half_a_yes_is_silence() -> None:
    """If the second person does not come in time, the owner gets it back as promised."""
    scene = _ended(2)
    scene.decides(Verb.EXTEND, "ann")
    scene.passes(scene.settings.extend_wait.total_seconds())
    scene.does(Purpose.RESTORE)
    assert scene.case().state is PlanState.RESTORED


def test_a_yes_of_long_ago_counts_no_more() -> None:
    """Two people who agree hours apart did not agree to the same thing; the first may say it anew."""
    scene = lent(_two_agreed())
    assert scene.decides(Verb.EXTEND, "ann").accepted
    scene.passes(15 * 60 + 1)
    assert "1 more of 2" in scene.decides(Verb.EXTEND, "bob").text
    assert scene.decides(Verb.EXTEND, "ann").accepted
    scene.does(Purpose.EXTEND)


def _two_agreed() -> Scene:
    """As `Scene`, where everybody's first yes is seconded."""

    class Seconded(Scene):
        def begin(self) -> Scene:
            super().begin()
            self.decides(Verb.APPROVE, "bob")
            return self

    return Seconded(settings_of(TWO))


@pytest.mark.parametrize("stage", [Stage.LENT, Stage.EXTENSION])
def test_the_switch_refuses_it(stage: Stage) -> None:
    """Stopped is stopped: nobody keeps anything for longer, and what was promised is given back."""
    scene = lent(Scene(settings_of(SHORT_LEASE))) if stage is Stage.LENT else _ended()
    end = scene.case().lease_until
    assert end is not None
    scene.switches(on=True)
    reply = scene.decides(Verb.EXTEND, "bob")
    assert not reply.accepted
    assert "the kill switch is on" in reply.text
    assert (scene.case().stage, scene.case().lease_until) == (stage, end)
    scene.until((end - at(0) + scene.settings.extend_wait).total_seconds() + 5)
    scene.does(Purpose.RESTORE)
    assert scene.case().state is PlanState.RESTORED


def test_an_owner_who_wants_it_back_is_heard() -> None:
    """With `sevenhop.dev/remediation: "off"` on the donor the lease is not extended."""
    scene = _ended()
    scene.donor = replace(
        scene.donor,
        metadata=replace(
            scene.donor.metadata,
            annotations={**scene.donor.metadata.annotations, "sevenhop.dev/remediation": "off"},
            resource_version="77",
        ),
    )
    scene.put(scene.donor)
    reply = scene.decides(Verb.EXTEND, "bob")
    assert not reply.accepted
    assert "sevenhop.dev/remediation" in reply.text


def test_what_the_switch_stops_before_it_is_written_is_not_extended() -> None:
    """Turned between the click and the step: the old end holds again, in the lease, in the mark and in words."""
    scene = lent(Scene(settings_of(SHORT_LEASE)))
    end = scene.case().lease_until
    assert scene.decides(Verb.EXTEND, "bob").accepted
    scene.switches(on=True)
    scene.does(Purpose.EXTEND)
    case: Case = scene.case()
    assert (case.lease_until, case.stage) == (end, Stage.LENT)
    assert case.borrow is not None
    assert case.borrow.until == end
    assert "not extended: the kill switch is on" in case.why
    found = decode_borrow(scene.donor.metadata.annotations[BORROWED])
    assert not isinstance(found, str)
    assert found.until == end


def test_extended_again_after_the_first_was_written() -> None:
    """Each extension is agreed to for itself: what was said for the last one does not count for the next."""
    scene = lent(_two_agreed())
    for name in ("ann", "bob"):
        scene.decides(Verb.EXTEND, name)
    scene.does(Purpose.EXTEND)
    end = scene.case().lease_until
    scene.passes(60)
    assert "1 more of 2" in scene.decides(Verb.EXTEND, "ann").text
    assert scene.case().lease_until == end


def test_who_agreed_is_kept_over_a_restart() -> None:
    """One yes before the restart and another after it are two."""
    scene = _ended(2)
    scene.decides(Verb.EXTEND, "ann")
    scene.restart()
    assert scene.decides(Verb.EXTEND, "bob").accepted
    scene.does(Purpose.EXTEND)
    assert scene.case().stage is Stage.LENT


def test_a_running_plan_has_no_lease_to_extend() -> None:
    """Before the goal is reached nothing is lent yet."""
    scene = approved(Scene(settings_of(SHORT_LEASE)))
    assert not scene.decides(Verb.EXTEND, "ann").accepted


def test_a_step_that_failed_in_the_cluster_leaves_the_decision() -> None:
    """What the API server refuses is not for the API server to decide: the lease holds as people said."""
    scene = lent(Scene(settings_of(SHORT_LEASE)))
    scene.decides(Verb.EXTEND, "bob")
    end = scene.case().lease_until
    scene.answers(scene.next_act(), StepResult.REFUSED, "an admission webhook says no")
    assert scene.case().lease_until == end
    assert scene.case().extensions == ()
