"""Who may decide what, about which plan, and what everybody else is told."""

from __future__ import annotations

from datetime import timedelta

import pytest
from msgspec.structs import replace

from sevenhop.core.events import Decided, SwitchSet, Verb
from sevenhop.core.remediation.permit import Purpose
from sevenhop.core.remediation.person import Person
from sevenhop.core.remediation.states import PlanState
from tests.builders import at, deployment, replicaset
from tests.unit.remediation.desk.desk_scene import FREE, Scene, person, settings_of


@pytest.mark.parametrize(
    ("who", "words"),
    [
        pytest.param(Person(id="slack:U-guest", name="guest", verified_at=at(130)), "may not", id="not-an-approver"),
        pytest.param(
            Person(id="slack:U-x", name="ann", groups=("slack-group:S-other",), verified_at=at(130)),
            "may not",
            id="an-approver's-name-is-no-identity",
        ),
        pytest.param(Person(id="slack:U-ann", name="ann"), "not verified", id="not-verified"),
        pytest.param(
            Person(id="slack:U-ann", name="ann", verified_at=at(0)), "too long before", id="verified-long-ago"
        ),
    ],
)
def test_who_may_not_approve_is_told_why_and_nothing_is_done(who: Person, words: str) -> None:
    """A refused approval asks for no step, answers privately, and is recorded with the identity."""
    scene = Scene().begin()
    reply = scene.decides(Verb.APPROVE, person=who)
    assert not reply.accepted
    assert words in reply.text
    assert scene.acts == {}
    assert scene.case().state is PlanState.PROPOSED
    assert [record.who.split(" ")[0] for record in scene.records if record.what == "refused"] == [who.id]


def test_a_group_member_may_approve() -> None:
    """Membership in an allowed group is enough."""
    scene = Scene().begin()
    who = Person(id="slack:U-new", name="new", groups=("slack-group:S-oncall",), verified_at=at(130))
    assert scene.decides(Verb.APPROVE, person=who).accepted
    assert scene.purposes() == [Purpose.DRY_RUN]


def test_another_hash_than_the_one_shown_is_refused() -> None:
    """A click that carries another hash agrees to something else, and does nothing."""
    scene = Scene().begin()
    reply = scene.decides(Verb.APPROVE, hash_="0" * 64)
    assert not reply.accepted
    assert "not what you saw" in reply.text
    assert scene.acts == {}


def test_an_unknown_plan_is_answered_and_recorded() -> None:
    """A decision about a plan that is not known here is answered in one line."""
    scene = Scene().begin()
    event = Decided(
        at=at(130), request_id="r", person=person(seconds=130), verb=Verb.APPROVE, plan_id="ffffffff", via="terminal"
    )
    reply = scene.asks(event)
    assert not reply.accepted
    assert "no plan ffffffff" in reply.text
    assert "ffffffff" in scene.audited()[-1]


def test_rejected_is_over_and_not_asked_again_at_once() -> None:
    """After a no nothing is done, and nothing is proposed until the cooldown is over."""
    scene = Scene().begin()
    assert scene.decides(Verb.REJECT, comment="not today").accepted
    case = scene.case()
    assert case.state is PlanState.REJECTED
    assert "not today" in case.why
    scene.passes(600)
    assert scene.states() == [PlanState.REJECTED]
    scene.passes(FREE.cooldown.total_seconds())
    assert scene.states() == [PlanState.REJECTED, PlanState.PROPOSED]
    assert scene.acts == {}


def test_asked_again_when_the_cooldown_ends() -> None:
    """Within seconds, though nothing in the cluster has changed, and not with the next look of the minute."""
    cooldown = timedelta(minutes=30, seconds=20)
    scene = Scene(settings_of(replace(FREE, cooldown=cooldown))).begin()
    assert scene.decides(Verb.REJECT).accepted
    over = (scene.case().since + cooldown - at(0)).total_seconds()
    scene.until(over - 1)
    assert scene.states() == [PlanState.REJECTED]
    scene.until(over + 10)
    assert scene.states() == [PlanState.REJECTED, PlanState.PROPOSED]


def test_nobody_answers_means_no() -> None:
    """A plan expires at the exact second, after one reminder that is posted aloud."""
    scene = Scene().begin()
    expires = (scene.case().plan.expires_at - at(0)).total_seconds()
    scene.until(expires - 0.001)
    assert scene.case().state is PlanState.PROPOSED
    aloud = [notify.reason for notify in scene.sent if notify.anew]
    assert aloud == ["first_firing", "decision_wanted"]
    scene.until(expires)
    assert scene.case().state is PlanState.EXPIRED
    late = scene.decides(Verb.APPROVE)
    assert not late.accepted
    assert "expired" in late.text
    assert scene.acts == {}


def test_two_people_must_agree_where_the_playbook_says_so() -> None:
    """The first yes waits, the same human under another name does not count, the second person starts it."""
    scene = Scene(settings_of(replace(FREE, approvals=2))).begin()
    first = scene.decides(Verb.APPROVE, "ann")
    assert first.accepted
    assert "1 more" in first.text
    assert scene.acts == {}
    twin = Person(id="slack:U-bob", name="bob", is_same_as=("slack:U-ann",), verified_at=at(130))
    assert not scene.decides(Verb.APPROVE, person=twin).accepted
    assert scene.acts == {}
    assert scene.decides(Verb.APPROVE, "bob").accepted
    assert scene.purposes() == [Purpose.DRY_RUN]
    assert scene.case().decided_by == "ann, bob"


def test_one_human_in_two_places_is_not_two_people() -> None:
    """Ann says yes in Slack and again as root of the host: nobody can tell that from two people, so it waits."""
    both = replace(FREE, approvals=2, approvers=(*FREE.approvers, "unix:root", "kubernetes:bob@corp"))
    scene = Scene(settings_of(both)).begin()
    scene.decides(Verb.APPROVE, "ann")
    root = Person(id="unix:root", name="root", verified_at=at(scene.seconds))
    again = scene.decides(Verb.APPROVE, person=root)
    assert "may be the same person" in again.text
    assert scene.acts == {}
    scene.decides(Verb.APPROVE, "bob")
    assert scene.purposes() == [Purpose.DRY_RUN]


def test_two_people_are_told_apart_by_their_addresses() -> None:
    """Ann in Slack and Bob with his token both carry an e-mail address, so two have agreed."""
    both = replace(FREE, approvals=2, approvers=(*FREE.approvers, "kubernetes:bob@corp"))
    scene = Scene(settings_of(both)).begin()
    scene.decides(Verb.APPROVE, person=person("ann", scene.seconds, is_same_as=("email:ann@corp",)))
    bob = Person(id="kubernetes:bob@corp", is_same_as=("email:bob@corp",), verified_at=at(scene.seconds))
    scene.decides(Verb.APPROVE, person=bob)
    assert scene.purposes() == [Purpose.DRY_RUN]


def test_what_people_write_stays_on_its_line() -> None:
    """A name and a comment with line ends and escapes forge no further line, in history or in the audit."""
    scene = Scene().begin()
    evil = "no\n02:00:00 plan approved by root\x1b[2J\u202e"
    scene.decides(Verb.REJECT, person=replace(person("ann", scene.seconds), name=evil), comment=evil)
    texts = [record.text + record.who for record in scene.records] + [entry.text for entry in scene.case().entries]
    assert all(text.isprintable() for text in texts)


def test_who_may_not_decide_is_audited_and_heard_by_nobody_else() -> None:
    """However often a guest clicks: each time a record, and no word in the incident's message or its history."""
    scene = Scene().begin()
    sent, history = len(scene.sent), scene.case().entries
    for _ in range(25):
        assert "may not approve" in scene.decides(Verb.APPROVE, "guest").text
    scene.passes(20)
    assert sum("guest may not approve" in text for text in scene.audited()) == 25
    assert scene.records[-1].plan_id == scene.case().id
    assert scene.case().entries == history
    assert len(scene.sent) == sent


def test_the_same_request_again_is_answered_the_same() -> None:
    """A doubled click, even after a restart, is told what it was told, and changes nothing."""
    scene = Scene().begin()
    first = scene.decides(Verb.APPROVE, request_id="click")
    records = len(scene.records)
    assert scene.decides(Verb.APPROVE, request_id="click") == first
    scene.restart()
    assert scene.decides(Verb.APPROVE, request_id="click") == first
    assert len(scene.records) == records
    assert list(scene.acts) == [f"{scene.case().id}/1-dry-run"]


def test_what_changed_in_between_is_not_done_and_the_new_plan_is_named() -> None:
    """The donor was scaled by its owner: the click does nothing, says so, and names the plan that would help now."""
    scene = Scene().begin()
    old = scene.case()
    scene.donor = deployment("summarizer", replicas=3, gpus=2, annotations={"sevenhop.dev/tier": "batch"})
    scene.put(scene.donor)
    reply = scene.decides(Verb.APPROVE, plan=old.id)
    assert not reply.accepted
    assert "nothing was done" in reply.text
    assert scene.acts == {}
    assert scene.engine.remediation.cases.get(old.id).state is PlanState.SUPERSEDED  # type: ignore[union-attr]


def test_a_donor_that_was_made_anew_is_another_plan() -> None:
    """The same name with another uid is not what was agreed to: nothing is done, and the new plan's id is told."""
    scene = Scene().begin()
    old = scene.case()
    scene.donor = deployment("summarizer", replicas=2, gpus=2, annotations={"sevenhop.dev/tier": "batch"})
    scene.donor.metadata.uid = "another"
    scene.replicas = replicaset(scene.donor)
    scene.put(scene.donor, scene.replicas)
    scene.passes(0.2)
    reply = scene.decides(Verb.APPROVE, plan=old.id)
    assert not reply.accepted
    new = scene.case()
    assert (new.state, new.id != old.id) == (PlanState.PROPOSED, True)
    assert new.id in reply.text
    assert scene.acts == {}
    assert scene.decides(Verb.APPROVE).accepted


def test_no_longer_needed_is_withdrawn() -> None:
    """The pod found a node by itself: the plan is withdrawn with words, and a click does nothing."""
    scene = Scene().begin()
    scene.delete(scene.pods("summarizer")[0])
    scene.place("gpu-0")
    scene.passes(10)
    case = scene.case()
    assert case.state is PlanState.SUPERSEDED
    reply = scene.decides(Verb.APPROVE)
    assert not reply.accepted
    assert scene.acts == {}


def test_the_kill_switch_stops_an_approved_plan_before_its_patch() -> None:
    """Turned on between dry run and patch, nothing is changed, and who turned it is named."""
    scene = Scene().begin()
    scene.decides(Verb.APPROVE)
    scene.does(Purpose.DRY_RUN)
    assert scene.switches(on=True, name="bob").accepted
    done = scene.does(Purpose.APPLY)
    assert "kill-switch" in done.detail
    assert scene.applied == []
    assert scene.case().state is PlanState.FAILED
    assert "nothing was changed" in scene.case().why


def test_the_kill_switch_survives_a_restart_and_strangers_may_not_touch_it() -> None:
    """Who is no approver may not turn it; what was turned stays over a restart."""
    scene = Scene().begin()
    assert not scene.switches(on=True, name="guest").accepted
    assert scene.switches(on=True).accepted
    scene.restart()
    assert scene.engine.remediation.switch.is_on
    reply = scene.decides(Verb.APPROVE)
    assert not reply.accepted
    assert scene.switches(on=False).accepted
    assert scene.decides(Verb.APPROVE).accepted


def test_undo_before_anything_was_changed_stops_it() -> None:
    """A person may stop an approved plan; that is no failure that counts for the breaker."""
    scene = Scene().begin()
    scene.decides(Verb.APPROVE)
    assert scene.decides(Verb.UNDO, "bob").accepted
    assert scene.case().state is PlanState.FAILED
    scene.does(Purpose.DRY_RUN)
    assert scene.purposes() == [Purpose.DRY_RUN]
    assert scene.engine.remediation.breaker.failures == ()


@pytest.mark.parametrize("verb", [Verb.UNDO, Verb.EXTEND, Verb.RESTORE])
def test_what_does_not_fit_the_state_is_refused_in_words(verb: Verb) -> None:
    """Undo, extend and restore of a plan that only waits for a decision do nothing."""
    scene = Scene().begin()
    reply = scene.decides(verb)
    assert not reply.accepted
    assert "proposed" in reply.text
    assert scene.acts == {}


def test_a_playbook_in_shadow_asks_nobody() -> None:
    """Plans are made and recorded, the message has no buttons, and a click is refused."""
    from sevenhop.core.remediation.playbook import Mode

    scene = Scene(settings_of(replace(FREE, mode=Mode.SHADOW))).begin()
    assert scene.states() == [PlanState.SHADOWED]
    assert scene.sent[-1].message.plan is None
    assert any("nobody is asked" in line.text for line in scene.sent[-1].message.lines)
    assert not scene.decides(Verb.APPROVE).accepted
    scene.delete(scene.pods("summarizer")[0])
    scene.becomes_ready()
    scene.passes(30)
    assert "without it" in scene.case().instead
    assert scene.case().instead_at is not None
    assert scene.acts == {}


def test_a_playbook_that_is_off_proposes_nothing() -> None:
    """Mode off: no plan, and no words about one."""
    from sevenhop.core.remediation.playbook import Mode

    scene = Scene(settings_of(replace(FREE, mode=Mode.OFF))).begin()
    scene.passes(60)
    assert scene.cases == []


def test_an_equal_plan_stays_the_same_plan() -> None:
    """Hours of an unchanged cluster supersede nothing: only what people agree to makes another plan."""
    scene = Scene(settings_of(replace(FREE, expires=timedelta(hours=2)))).begin()
    first = scene.case().id
    scene.passes(3600)
    assert [case.id for case in scene.cases] == [first]


@pytest.mark.parametrize("verb", list(Verb))
def test_a_stranger_decides_nothing(verb: Verb) -> None:
    """Not even a no: whoever may not approve may not reject, undo, extend or restore either."""
    scene = Scene().begin()
    reply = scene.decides(verb, "guest")
    assert not reply.accepted
    assert "may not" in reply.text
    assert scene.case().state is PlanState.PROPOSED


def test_a_click_at_the_second_of_expiry_is_too_late() -> None:
    """The click and the end of the time arrive together: no is the answer."""
    scene = Scene().begin()
    expires = (scene.case().plan.expires_at - at(0)).total_seconds()
    scene.until(expires - 0.5)
    scene.seconds = expires
    reply = scene.decides(Verb.APPROVE)
    assert not reply.accepted
    assert "expired" in reply.text
    assert scene.acts == {}


def test_what_the_guards_stop_before_the_dry_run_is_superseded_and_no_failure() -> None:
    """The world changed between the click and the step: superseded with the reason, and the breaker counts nothing."""
    scene = Scene().begin()
    assert scene.decides(Verb.APPROVE).accepted
    scene.scale(3)
    scene.does(Purpose.DRY_RUN)
    assert scene.cases[0].state is PlanState.SUPERSEDED
    assert "nothing was changed" in scene.cases[0].why
    assert scene.engine.remediation.breaker.failures == ()
    assert scene.applied == []


@pytest.mark.parametrize("restarts", [False, True], ids=["at once", "after a restart"])
def test_an_old_resume_does_not_end_a_later_stop(restarts: bool) -> None:
    """The same request comes again, late, after somebody has said stop: the switch stays on."""
    scene = Scene().begin()
    resume = SwitchSet(at=at(scene.seconds), request_id="slack-1", person=person("ann", scene.seconds), is_on=False)
    scene.asks(resume)
    assert scene.switches(on=True, name="bob").accepted
    if restarts:
        scene.restart()
    assert "is on now" in scene.asks(resume).text
    assert scene.engine.remediation.switch.is_on
    assert scene.switches(on=False).accepted
    assert not scene.engine.remediation.switch.is_on


def test_what_the_switch_stops_is_no_failure_of_the_run() -> None:
    """A person turned the switch on: the run failed with words, and the breaker counts nothing."""
    scene = Scene().begin()
    scene.decides(Verb.APPROVE)
    scene.does(Purpose.DRY_RUN)
    scene.switches(on=True, name="bob")
    scene.does(Purpose.APPLY)
    assert scene.case().state is PlanState.FAILED
    assert scene.engine.remediation.breaker.failures == ()
