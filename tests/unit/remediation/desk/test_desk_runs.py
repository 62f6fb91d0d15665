"""What becomes of a run: every answer, every way in which the goal is missed, and what is taken back."""

from __future__ import annotations

from datetime import timedelta

import pytest
from msgspec.structs import replace

from sevenhop.core.events import BreakerReset, Outcome, StepDone, StepResult, Verb
from sevenhop.core.inventory.history import Loads
from sevenhop.core.inventory.history_keeping import release_of
from sevenhop.core.remediation.permit import Purpose
from sevenhop.core.remediation.states import PlanState
from tests.builders import at, dynamo_pod, pod_of
from tests.unit.remediation.desk.desk_scene import FREE, Scene, approved, person, settings_of


def test_a_refused_dry_run_changes_nothing() -> None:
    """The words of admission reach the message, and no patch is asked for."""
    scene = Scene().begin()
    scene.decides(Verb.APPROVE)
    scene.answers(scene.next_act(), StepResult.REFUSED, "admission webhook deny.example denied the request")
    case = scene.case()
    assert case.state is PlanState.FAILED
    assert "nothing was changed" in case.why
    assert "deny.example" in case.why
    assert scene.purposes() == [Purpose.DRY_RUN]
    scene.passes(2)
    assert any("deny.example" in line.text for line in scene.sent[-1].message.lines)


def test_a_patch_whose_outcome_is_unknown_is_read_back_and_counts_once() -> None:
    """A time-out is read back; what took effect is verified, and never patched again."""
    scene = Scene().begin()
    scene.decides(Verb.APPROVE)
    scene.does(Purpose.DRY_RUN)
    act = scene.next_act()
    scene._apply(act)
    scene.answers(act, StepResult.UNKNOWN, "timed out")
    scene.does(Purpose.READ_BACK)
    assert scene.case().state is PlanState.RUNNING
    scene.becomes_ready()
    scene.passes(5)
    assert scene.case().state is PlanState.SUCCEEDED
    assert scene.purposes().count(Purpose.APPLY) == 1


def test_read_back_finds_that_nothing_was_changed() -> None:
    """A time-out before the patch took effect fails, and says that nothing was changed."""
    scene = Scene().begin()
    scene.decides(Verb.APPROVE)
    scene.does(Purpose.DRY_RUN)
    scene.answers(scene.next_act(), StepResult.UNKNOWN, "timed out")
    scene.answers(scene.next_act(), StepResult.REFUSED, "it holds 2")
    assert scene.case().state is PlanState.FAILED
    assert "nothing was changed" in scene.case().why


def test_what_cannot_be_read_back_is_undone() -> None:
    """After several looks that tell nothing the change is taken back, whichever way it went."""
    scene = Scene().begin()
    scene.decides(Verb.APPROVE)
    scene.does(Purpose.DRY_RUN)
    scene.answers(scene.next_act(), StepResult.UNKNOWN, "timed out")
    for _ in range(3):
        scene.answers(scene.next_act(), StepResult.UNKNOWN, "no answer")
        scene.passes(31)
    assert not scene.undelivered[0].was_applied
    scene.does(Purpose.UNDO)
    assert scene.case().state is PlanState.UNDONE


def test_no_progress_is_undone_with_words() -> None:
    """A pod that never gets its node is given up after the playbook's time, to the second."""
    scene = approved(Scene())
    since = scene.seconds
    scene.until(since + FREE.no_progress.total_seconds() - 1)
    assert scene.purposes()[-1] is Purpose.APPLY
    scene.until(since + FREE.no_progress.total_seconds() + 2)
    assert scene.undelivered[0].was_applied  # so it is taken back whoever took our mark off
    scene.does(Purpose.UNDO)
    case = scene.case()
    assert case.state is PlanState.UNDONE
    assert "no progress" in case.why
    assert scene.donor.spec.replicas == 2


def test_progress_buys_time() -> None:
    """Each step of the pod starts the clock anew: scheduled, loading, Ready."""
    scene = approved(Scene())
    limit = FREE.no_progress.total_seconds()
    scene.passes(limit - 10)
    scene.place("gpu-0", waiting="ContainerCreating")
    scene.passes(limit - 10)
    assert scene.case().state is PlanState.RUNNING
    assert scene.purposes()[-1] is Purpose.APPLY
    scene.place("gpu-0", ready=False)
    scene.passes(60)
    scene.becomes_ready()
    scene.passes(5)
    assert scene.case().state is PlanState.SUCCEEDED


def test_failure_evidence_is_undone_once_it_stands() -> None:
    """A crash that is classified and stays ends the wait early, and the cause is named."""
    scene = approved(Scene())
    scene.place("gpu-0", waiting="CrashLoopBackOff", message="back-off", restarts=3, exit_code=137, last_end=at(140))
    scene.passes(20)
    assert scene.case().state is PlanState.RUNNING
    assert scene.purposes()[-1] is Purpose.APPLY
    scene.passes(20)
    scene.does(Purpose.UNDO)
    assert scene.case().state is PlanState.UNDONE
    assert "llama-70b-decode-2 fails" in scene.case().why


def test_an_owner_that_sets_it_back_ends_the_run() -> None:
    """An autoscaler puts the old value back: what is ours is taken back, and it is said."""
    scene = approved(Scene())
    scene.passes(5)
    scene.scale(2)
    scene.passes(5)
    scene.does(Purpose.UNDO)
    assert scene.case().state is PlanState.UNDONE
    assert "set back" in scene.case().why


def test_the_number_that_others_set_stays() -> None:
    """The donor's owner scales it during the run: our undo takes off the mark and leaves the number."""
    scene = approved(Scene())
    scene.passes(5)
    scene.scale(0)
    scene.passes(5)
    assert scene.does(Purpose.UNDO).result is StepResult.DONE
    assert scene.case().state is PlanState.UNDONE
    assert scene.donor.spec.replicas == 0


def test_blind_time_is_neither_progress_nor_failure() -> None:
    """While pods cannot be seen the clock of the run stands still."""
    from sevenhop.core.events import SyncState

    scene = approved(Scene())
    scene.passes(60)
    scene.tell(scene.feed.synced("Pod", state=SyncState.STALE, seconds=scene.seconds), scene.seconds)
    scene.passes(2 * FREE.no_progress.total_seconds())
    assert scene.purposes()[-1] is Purpose.APPLY
    scene.tell(scene.feed.synced("Pod", seconds=scene.seconds), scene.seconds)
    scene.passes(60)
    assert scene.purposes()[-1] is Purpose.APPLY
    scene.becomes_ready()
    scene.passes(5)
    assert scene.case().state is PlanState.SUCCEEDED


def test_a_person_undoes_a_run() -> None:
    """Undo in the middle of a run gives back, with the person's name."""
    scene = approved(Scene())
    assert scene.decides(Verb.UNDO, "bob").accepted
    scene.does(Purpose.UNDO)
    assert scene.case().state is PlanState.UNDONE
    assert "bob" in scene.case().why


def test_undo_goes_on_until_it_is_done_and_people_are_told() -> None:
    """An undo that fails is tried again with growing waits; after several a person is told, and trying goes on."""
    scene = approved(Scene())
    scene.decides(Verb.UNDO)
    ids = []
    for _ in range(6):
        act = scene.next_act()
        ids.append(act.id)
        scene.answers(act, StepResult.UNKNOWN, "API server is down")
        scene.passes(601)
    assert len(set(ids)) == 6
    assert scene.case().state is PlanState.UNKNOWN
    scene.does(Purpose.UNDO)
    assert scene.case().state is PlanState.UNDONE


def test_giving_back_is_never_held_up_by_switch_or_breaker() -> None:
    """With the switch on and the breaker open an undo is still permitted."""
    scene = approved(Scene(settings_of(breaker=_one())))
    scene.switches(on=True)
    scene.decides(Verb.UNDO)
    done = scene.does(Purpose.UNDO)
    assert done.result is StepResult.DONE
    assert scene.case().state is PlanState.UNDONE


def test_failed_runs_open_the_breaker_until_a_person_looks() -> None:
    """After the limit nothing is proposed, over a restart too; a reset by a person lets it go on."""
    scene = Scene(settings_of(replace(FREE, cooldown=timedelta(0)), breaker=_one())).begin()
    scene.decides(Verb.APPROVE)
    scene.answers(scene.next_act(), StepResult.REFUSED, "denied")
    assert scene.engine.remediation.breaker.is_open
    scene.passes(120)
    assert scene.states() == [PlanState.FAILED]
    scene.restart()
    scene.passes(120)
    assert scene.states() == [PlanState.FAILED]
    guest = BreakerReset(at=at(scene.seconds), request_id="b1", person=person("guest", scene.seconds))
    assert not scene.asks(guest).accepted
    ann = BreakerReset(at=at(scene.seconds), request_id="b2", person=person("ann", scene.seconds))
    assert scene.asks(ann).accepted
    scene.passes(120)
    assert scene.states() == [PlanState.FAILED, PlanState.PROPOSED]


def test_after_any_outcome_the_cooldown_holds() -> None:
    """The same donor is left alone for the cooldown after a run that failed."""
    scene = Scene().begin()
    scene.decides(Verb.APPROVE)
    scene.answers(scene.next_act(), StepResult.REFUSED, "denied")
    scene.passes(FREE.cooldown.total_seconds() - 120)
    assert scene.states() == [PlanState.FAILED]
    scene.passes(300)
    assert scene.states() == [PlanState.FAILED, PlanState.PROPOSED]


@pytest.mark.parametrize("moment", ["trying", "applying", "verifying", "undoing", "lent", "restoring"])
def test_a_restart_at_any_stage_goes_on(moment: str) -> None:
    """The step that was asked for is asked for again with the same id, and the story ends as without the restart."""
    scene = Scene().begin()
    scene.decides(Verb.APPROVE)
    _restart_at(scene, moment, "trying")
    scene.does(Purpose.DRY_RUN)
    _restart_at(scene, moment, "applying")
    scene.does(Purpose.APPLY)
    _restart_at(scene, moment, "verifying")
    if moment == "undoing":
        scene.decides(Verb.UNDO)
        scene.restart()
        scene.does(Purpose.UNDO)
        assert scene.case().state is PlanState.UNDONE
        return
    scene.becomes_ready()
    scene.passes(5)
    _restart_at(scene, moment, "lent")
    scene.passes(60)
    scene.decides(Verb.RESTORE)
    _restart_at(scene, moment, "restoring")
    scene.does(Purpose.RESTORE)
    assert scene.case().state is PlanState.RESTORED
    assert scene.purposes() == [Purpose.DRY_RUN, Purpose.APPLY, Purpose.RESTORE]
    assert len(scene.applied) == 1


def test_an_answer_that_was_lost_is_read_back() -> None:
    """A patch whose answer died with the process is read back, and not done twice."""
    scene = Scene().begin()
    scene.decides(Verb.APPROVE)
    scene.does(Purpose.DRY_RUN)
    scene._apply(scene.next_act())
    scene.restart()
    scene.passes(70)
    scene.does(Purpose.READ_BACK)
    assert scene.case().state is PlanState.RUNNING
    assert scene.purposes().count(Purpose.APPLY) == 1


def test_late_and_doubled_answers_change_nothing() -> None:
    """Only the answer to the step that is waited for counts."""
    scene = approved(Scene())
    before = scene.case()
    for act in list(scene.acts.values()):
        for result in StepResult:
            scene.tell([StepDone(at=at(scene.seconds), effect_id=act.id, result=result, detail="again")])
    assert scene.case() == before


def test_the_answer_to_an_earlier_step_is_not_taken_for_the_next() -> None:
    """While the patch is awaited, the dry run's answer, told again or differently, changes nothing."""
    scene = Scene().begin()
    scene.decides(Verb.APPROVE)
    dry_run = scene.undelivered[0]
    scene.does(Purpose.DRY_RUN)
    before = scene.case()
    for result in StepResult:
        scene.tell([StepDone(at=at(scene.seconds), effect_id=dry_run.id, result=result)])
    assert scene.case() == before


def test_a_step_that_the_outbox_lost_is_not_taken_for_done() -> None:
    """An outcome without delivery is an unknown answer."""
    scene = Scene().begin()
    scene.decides(Verb.APPROVE)
    scene.does(Purpose.DRY_RUN)
    act = scene.next_act()
    lost = Outcome(at=at(scene.seconds), effect_id=act.id, delivered=False, detail="cannot be read")
    scene.tell([lost])
    assert scene.purposes()[-1] is Purpose.READ_BACK


def test_only_the_step_that_is_due_gets_a_permit() -> None:
    """Neither an earlier step, nor another purpose, nor another plan passes."""
    scene = Scene().begin()
    scene.decides(Verb.APPROVE)
    act = scene.undelivered[0]
    good = scene.engine.permit(act, at(scene.seconds))
    assert not hasattr(good, "guard")
    for forged in (
        replace(act, id=act.id.replace("/1-", "/2-")),
        replace(act, purpose=Purpose.APPLY),
        replace(act, plan=replace(act.plan, gpus=8)),
        replace(act, plan=replace(act.plan, incident="other")),
        replace(act, plan=replace(act.plan, victims=(("prod", "somebody-else"),))),
    ):
        assert hasattr(scene.engine.permit(forged, at(scene.seconds)), "guard")


def given_back() -> tuple[Scene, int]:
    """A donor that has its replicas again, by a person's word; and how much had been sent before."""
    scene = approved(Scene())
    scene.becomes_ready()
    scene.passes(5)
    scene.decides(Verb.RESTORE)
    told = len(scene.sent)
    scene.does(Purpose.RESTORE)
    return scene, told


def test_own_changes_do_not_alert() -> None:
    """The donor's pod that waits after the restore is held back for a while, and then told as anybody's."""
    scene, told = given_back()
    restored_at = scene.seconds
    scene.passes(400)
    assert [n for n in scene.sent[told:] if "summarizer" in n.message.title and n.message.status == "firing"] == []
    noted = [n.reason for key in scene.engine.desk.incidents.values() for n in scene.engine.desk.decisions.of(key.id)]
    assert "not_due_own_change" in noted
    scene.until(restored_at + 700)
    assert [n.anew for n in scene.sent[told:] if "summarizer" in n.message.title and n.anew] == [True]


def test_more_than_our_change_explains_is_told_at_once() -> None:
    """The donor lacks the one that was given back, and loses another: that is no change of ours, and is not held."""
    scene, told = given_back()
    scene.passes(10)
    (other,) = (pod for pod in scene.pods("summarizer") if pod.spec.node_name)
    suffix = other.metadata.name.rpartition("-")[2]
    scene.put(pod_of(scene.replicas, suffix, node=other.spec.node_name, ready=False, since=at(scene.seconds)))
    scene.passes(200)
    assert [n.anew for n in scene.sent[told:] if "summarizer" in n.message.title and n.anew] == [True]


def _one() -> object:
    from sevenhop.core.remediation.guards_breaker import BreakerLimits

    return BreakerLimits(most_failures=1, window=timedelta(hours=1))


def _restart_at(scene: Scene, moment: str, here: str) -> None:
    if moment == here:
        scene.restart()


def test_whom_it_was_for_wants_it_no_more() -> None:
    """The beneficiary was scaled down during the run: given back at once, not after the time for no progress."""
    scene = approved(Scene())
    scene.llama.spec["services"]["decode"]["replicas"] = 0
    scene.put(scene.llama)
    scene.delete(*scene.pods("llama-70b-decode"))
    scene.passes(10)
    scene.does(Purpose.UNDO)
    assert scene.case().state is PlanState.UNDONE
    assert "zero" in scene.case().why or "no more" in scene.case().why


def test_the_switch_before_the_dry_run_is_no_failure_either() -> None:
    """Stopped by the switch at the first step: nothing was changed, and the breaker counts nothing."""
    scene = Scene().begin()
    scene.decides(Verb.APPROVE)
    scene.switches(on=True)
    scene.does(Purpose.DRY_RUN)
    assert scene.case().state is PlanState.FAILED
    assert scene.engine.remediation.breaker.failures == ()


def test_a_lease_that_ends_before_the_goal_is_given_back() -> None:
    """The promise holds even while the beneficiary still gets on."""
    scene = approved(Scene(settings_of(replace(FREE, lease=timedelta(minutes=10)))))
    scene.passes(590)
    assert scene.purposes()[-1] is Purpose.APPLY
    scene.passes(20)
    scene.does(Purpose.UNDO)
    assert scene.case().state is PlanState.UNDONE
    assert "lease ended" in scene.case().why


def test_failures_that_were_there_before_are_no_evidence() -> None:
    """A sibling that crashed already when the plan was approved does not undo the run."""
    scene = Scene().begin()
    broken = dynamo_pod(
        scene.llama, "decode", "1", node="gpu-1", waiting="CrashLoopBackOff", message="back-off", restarts=3,
        exit_code=137, last_end=at(100),
    )  # fmt: skip
    scene.put(broken)
    scene.passes(2)
    assert scene.decides(Verb.APPROVE).accepted
    scene.does(Purpose.DRY_RUN)
    scene.does(Purpose.APPLY)
    assert scene.case().watch is not None
    assert scene.case().watch.failures != ()  # type: ignore[union-attr]
    scene.passes(120)
    assert scene.case().state is PlanState.RUNNING
    assert scene.purposes()[-1] is Purpose.APPLY


def test_a_model_that_is_known_to_load_long_is_given_the_time() -> None:
    """The deadline follows this model's own load times, twice what nearly all took, where these say more."""
    scene = approved(Scene())
    scene.place("gpu-0", ready=False)
    release = release_of(scene.waiting)
    scene.engine.inventory.state.loads[release] = Loads(tuple((f"uid-{n}", 1500.0) for n in range(5)))
    since = scene.seconds
    scene.until(since + 2900)
    assert scene.case().state is PlanState.RUNNING
    assert scene.purposes()[-1] is Purpose.APPLY
    scene.until(since + 3010)
    scene.does(Purpose.UNDO)
    assert "no progress" in scene.case().why
