"""The promise to give back: when, to whom, and what stands in its way."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from msgspec.structs import replace

from sevenhop.core.events import StepDone, StepResult, Verb
from sevenhop.core.remediation.action import Edit, ObjectRef, Scale
from sevenhop.core.remediation.borrowed import BORROWED
from sevenhop.core.remediation.case import Stage
from sevenhop.core.remediation.moment import Moment
from sevenhop.core.remediation.permit import Purpose, Refusal
from sevenhop.core.remediation.playbook import Mode
from sevenhop.core.remediation.questions import targets_of
from sevenhop.core.remediation.runs import after_step
from sevenhop.core.remediation.states import PlanState
from sevenhop.frameworks.scaling import SCALING
from tests.builders import at, deployment, node
from tests.unit.remediation.desk.desk_scene import FREE, Scene, lent, settings_of

SHORT_LEASE = replace(FREE, lease=timedelta(minutes=30))


def _scene() -> Scene:
    return lent(Scene(settings_of(SHORT_LEASE)))


def _end(scene: Scene) -> float:
    until = scene.case().lease_until
    assert until is not None
    return (until - at(0)).total_seconds()


def test_in_a_shortage_people_are_asked_aloud_at_the_end() -> None:
    """At the second of the lease's end the message asks: extend or restore, with these buttons."""
    scene = _scene()
    end = _end(scene)
    scene.until(end - 3)
    assert scene.case().stage is Stage.LENT
    scene.until(end + 3)
    assert scene.case().stage is Stage.EXTENSION
    scene.passes(200)
    asked = [notify for notify in scene.sent if notify.reason == "decision_wanted"]
    assert len(asked) == 1
    assert asked[0].anew
    assert asked[0].message.plan is not None
    assert asked[0].message.plan.buttons == ("extend", "restore")
    assert asked[0].message.plan.expires_at == at(end) + scene.settings.extend_wait


def test_nobody_answers_and_the_promise_holds() -> None:
    """Without an answer within the wait the donor gets its replica back."""
    scene = _scene()
    scene.until(_end(scene) + 3)
    scene.passes(scene.settings.extend_wait.total_seconds() - 10)
    assert scene.purposes()[-1] is Purpose.APPLY
    scene.passes(20)
    scene.does(Purpose.RESTORE)
    assert scene.case().state is PlanState.RESTORED
    assert scene.donor.spec.replicas == 2


def test_extended_by_a_person_once_per_request() -> None:
    """Extending moves the end by the lease; the same request again does not move it further."""
    scene = _scene()
    scene.until(_end(scene) + 3)
    assert scene.decides(Verb.EXTEND, "bob", request_id="x").accepted
    until = scene.case().lease_until
    assert until == at(scene.seconds) + SHORT_LEASE.lease
    scene.does(Purpose.EXTEND)
    scene.decides(Verb.EXTEND, "bob", request_id="x")
    assert scene.case().lease_until == until
    scene.passes(600)
    assert scene.purposes()[-2:] == [Purpose.APPLY, Purpose.EXTEND]


def test_an_extended_lease_outlives_our_state() -> None:
    """The mark says the new end: with an emptied store the donor is left until then, and given back then."""
    scene = _scene()
    scene.until(_end(scene) + 3)
    old = _end(scene)
    scene.decides(Verb.EXTEND, "bob")
    scene.does(Purpose.EXTEND)
    new = _end(scene)
    assert new > old + 1_000
    scene.passes(3)
    told = [line.text for line in scene.sent[-1].message.lines if line.label == "Plan is"]
    assert f"{scene.case().lease_until:%H:%M:%S}" in told[0]  # and not the end that was told before
    scene.restart(keep=False)
    scene.until(new - 3)
    assert scene.case().is_adopted
    assert scene.undelivered == []
    scene.until(new + 3)
    scene.does(Purpose.RESTORE)
    assert scene.donor.spec.replicas == 2


def test_two_people_who_extend_at_once_extend_once() -> None:
    """Both clicked below the same question: what is lent is owed within one lease from then, not two."""
    scene = _scene()
    scene.until(_end(scene) + 3)
    assert scene.decides(Verb.EXTEND, "ann").accepted
    scene.decides(Verb.EXTEND, "bob")
    assert scene.case().lease_until == at(scene.seconds) + SHORT_LEASE.lease
    for _ in range(5):
        scene.decides(Verb.EXTEND, "bob")
    assert scene.case().lease_until == at(scene.seconds) + SHORT_LEASE.lease


@pytest.mark.parametrize("result", [StepResult.REFUSED, StepResult.UNKNOWN])
def test_a_mark_that_cannot_be_extended_is_told(result: StepResult) -> None:
    """The lease holds as it was decided; people hear what would happen if our state were lost."""
    scene = _scene()
    scene.decides(Verb.EXTEND, "bob")
    end = _end(scene)
    scene.answers(scene.next_act(), result, "admission refuses it")
    assert "old end (admission refuses it)" in scene.case().entries[-1].text
    scene.until(end - 3)
    assert (scene.case().stage, scene.undelivered) == (Stage.LENT, [])


def test_who_gives_back_while_the_mark_is_written_is_heard() -> None:
    """The restore takes the place of the step that only writes a date; that one may not be done any more."""
    scene = _scene()
    scene.decides(Verb.EXTEND, "bob")
    late = scene.next_act()
    scene.decides(Verb.RESTORE, "ann")
    assert isinstance(scene.engine.permit(late, at(scene.seconds)), Refusal)
    scene.does(Purpose.RESTORE)
    assert scene.case().state is PlanState.RESTORED


def test_room_gives_it_back_early_once_it_stays() -> None:
    """A new node has room for the donor's pod: given back after it stayed for a minute, not before."""
    scene = _scene()
    scene.put(node("gpu-2", gpus=4))
    scene.passes(50)
    assert scene.purposes()[-1] is Purpose.APPLY
    scene.passes(20)
    assert scene.purposes()[-1] is Purpose.RESTORE
    assert "room" in scene.case().undo_why


def test_room_that_does_not_stay_gives_nothing_back() -> None:
    """Room for half a minute is no room."""
    scene = _scene()
    extra = node("gpu-2", gpus=4)
    scene.put(extra)
    scene.passes(40)
    scene.delete(extra)
    scene.passes(40)
    scene.put(extra)
    scene.passes(40)
    assert scene.purposes()[-1] is Purpose.APPLY


def test_given_back_by_a_person_though_the_playbook_is_off() -> None:
    """Who turns it off because it does harm takes back what it did; nobody lends for longer by it."""
    scene = _scene()
    scene.settings = settings_of(replace(SHORT_LEASE, mode=Mode.OFF))
    scene.restart()
    assert "off or no more" in scene.decides(Verb.EXTEND).text
    assert not scene.decides(Verb.RESTORE, "eve").accepted
    assert scene.decides(Verb.RESTORE).accepted
    scene.does(Purpose.RESTORE)
    assert scene.case().state is PlanState.RESTORED


def test_a_donor_lends_until_it_has_its_own_again_whoever_takes_the_mark_off() -> None:
    """The guards hear that it lends from our own state: an operator that drops annotations frees it for nobody."""
    scene = _scene()
    scene.scale(1, "")
    scene.passes(600)
    assert [(run.plan_id, run.lends) for run in scene.engine.remediation.cases.history()] == [(scene.case().id, True)]
    scene.decides(Verb.RESTORE)
    scene.does(Purpose.RESTORE)
    assert scene.case().state is PlanState.RESTORED
    assert [run.lends for run in scene.engine.remediation.cases.history()] == [False]


@pytest.mark.parametrize("replicas", [0, 3], ids=["fewer", "more"])
def test_what_others_set_later_is_respected(replicas: int) -> None:
    """Its owner set the donor to another number: only our mark is taken off, and the plan stays a success."""
    scene = _scene()
    scene.scale(replicas)
    scene.passes(6)
    assert scene.does(Purpose.RESTORE).result is StepResult.DONE
    case = scene.case()
    assert scene.donor.spec.replicas == replicas
    assert BORROWED not in scene.donor.metadata.annotations
    assert case.state is PlanState.SUCCEEDED
    assert case.is_over
    scene.passes(7200)
    assert scene.purposes() == [Purpose.DRY_RUN, Purpose.APPLY, Purpose.RESTORE]


def test_a_donor_that_is_gone_has_nothing_to_get_back() -> None:
    """The donor was deleted: the lease is over, and no step is asked for."""
    scene = _scene()
    scene.delete(scene.donor, scene.replicas, *scene.pods("summarizer"))
    scene.passes(5)
    assert scene.case().state is PlanState.RESTORED
    assert "gone" in scene.case().why
    assert scene.purposes()[-1] is Purpose.APPLY


def test_a_restore_that_fails_is_tried_until_it_is_done() -> None:
    """A restore is owed: it is asked for again with growing waits."""
    scene = _scene()
    scene.decides(Verb.RESTORE)
    for _ in range(3):
        scene.answers(scene.next_act(), StepResult.UNKNOWN, "API server is down")
        scene.passes(130)
    scene.does(Purpose.RESTORE)
    assert scene.case().state is PlanState.RESTORED


def test_restored_over_switch_and_restart() -> None:
    """The switch is on and the process is new: the lease ends all the same."""
    scene = _scene()
    scene.switches(on=True)
    scene.restart()
    scene.until(_end(scene) + 3)
    scene.passes(scene.settings.extend_wait.total_seconds() + 5)
    done = scene.does(Purpose.RESTORE)
    assert done.result is StepResult.DONE
    assert scene.case().state is PlanState.RESTORED


def test_the_mark_alone_is_enough_to_restore() -> None:
    """With an emptied store the lease is found on the donor, with the same plan, and ends when it says."""
    scene = _scene()
    known = scene.case()
    end = _end(scene)
    scene.restart(keep=False)
    scene.tell((), scene.seconds + 1)
    adopted = scene.case()
    assert (adopted.id, adopted.is_adopted) == (known.id, True)
    assert adopted.lease_until == known.lease_until
    assert any("adopted" in text for text in scene.audited())
    scene.until(end - 3)
    assert len(scene.undelivered) == 0
    scene.until(end + 3)
    scene.does(Purpose.RESTORE)
    assert scene.case().state is PlanState.RESTORED
    assert scene.donor.spec.replicas == 2
    assert BORROWED not in scene.donor.metadata.annotations


def test_a_mark_that_cannot_be_read_is_told_and_left() -> None:
    """Broken JSON on a donor is named once; nothing is guessed and nothing is done."""
    scene = Scene().begin()
    scene.scale(2, "{not json")
    scene.passes(200)
    told = [text for text in scene.audited() if "cannot be read" in text]
    assert len(told) == 1
    assert scene.acts == {}


def test_a_mark_left_behind_is_taken_off() -> None:
    """The plan is over and its mark still stands: it is taken off, and the plan's state stays."""
    scene = _scene()
    mark = scene.donor.metadata.annotations[BORROWED]
    scene.decides(Verb.RESTORE)
    scene.does(Purpose.RESTORE)
    scene.scale(1, mark)
    scene.passes(130)
    scene.tell((), scene.seconds)
    scene.does(Purpose.RESTORE)
    assert scene.case().state is PlanState.RESTORED
    assert BORROWED not in scene.donor.metadata.annotations


def test_an_incident_is_not_forgotten_while_its_lease_runs() -> None:
    """The incident ended long ago, and its message still tells of the restore."""
    scene = lent(Scene(settings_of(replace(FREE, lease=timedelta(hours=3)))))
    scene.until(_end(scene) + 3)
    scene.passes(scene.settings.extend_wait.total_seconds() + 10)
    scene.does(Purpose.RESTORE)
    scene.passes(3)
    last = scene.sent[-1].message
    assert last.plan is not None
    assert last.plan.state is PlanState.RESTORED


def test_what_others_set_in_the_very_moment_of_the_restore_stays() -> None:
    """Somebody scales the donor between the end of the lease and the step: the number stays, the mark goes later."""
    scene = _scene()
    scene.decides(Verb.RESTORE)
    scene.scale(3)
    assert scene.does(Purpose.RESTORE).result is StepResult.REFUSED
    assert scene.case().is_over
    assert "stays" in scene.case().entries[-1].text
    scene.passes(130)
    scene.tell((), scene.seconds)
    assert scene.does(Purpose.RESTORE).result is StepResult.DONE
    assert scene.donor.spec.replicas == 3
    assert BORROWED not in scene.donor.metadata.annotations


def test_one_donor_that_others_changed_does_not_keep_the_rest_from_theirs() -> None:
    """Two gave; one was scaled by its owner while the restore was under way: the other one still gets its replica."""
    scene = _scene()
    scene.decides(Verb.RESTORE)
    act = scene.next_act()
    ranker = deployment("ranker", replicas=7, gpus=2)
    scene.put(ranker)
    ref = ObjectRef("Deployment.apps", "prod", "ranker", ranker.metadata.uid)
    given: dict[str, Any] = {"subresource": "scale", "workload": ("prod", "ranker"), "component": "engine"}
    other = Scale(target=ref, marked=ref, edits=(Edit("/spec/replicas", 4, 3),), before=4, after=3, **given)
    case = scene.case()
    case = replace(case, plan=replace(case.plan, actions=(*case.plan.actions, other)))
    at_that = Moment(
        now=at(scene.seconds),
        state=scene.engine.inventory.state,
        settings=scene.settings,
        playbook=SHORT_LEASE,
        goal=SHORT_LEASE.goal,
    )
    refused = StepDone(at=at(scene.seconds), effect_id=act.id, result=StepResult.REFUSED, detail="somebody changed it")
    after = after_step(case, refused, at_that)
    assert not after.is_over
    assert after.retry_at is not None
    targets = targets_of(at_that.state, SCALING, after, after.plan.actions, Purpose.RESTORE)
    replicas = {target.ref.name: target.replicas for target in targets if target.ref.kind == "Deployment.apps"}
    assert replicas == {"summarizer": 1, "ranker": 3}  # as we left them: the guards let it pass, and the 7 stay


def test_a_mark_that_was_tampered_with_is_not_followed() -> None:
    """The mark names another plan than the one that it spells out: a person is told, and nothing is done."""
    scene = _scene()
    mark = scene.donor.metadata.annotations[BORROWED]
    scene.scale(1, mark.replace(f'"plan":"{scene.case().id}"', '"plan":"ffffffff"'))
    scene.restart(keep=False)
    scene.until(3 * 3600)
    assert scene.engine.remediation.cases.get("ffffffff") is None
    assert all(case.plan.id != "ffffffff" for case in scene.cases)
    assert any("give it back by hand" in text for text in scene.audited())
