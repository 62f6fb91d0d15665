"""What a person's decision does to a plan, case by case, without a cluster around it."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from msgspec.structs import replace

from sevenhop.core.effects import Borrow
from sevenhop.core.events import Decided, Verb
from sevenhop.core.remediation.action import Cordon, EvictPod, ObjectRef
from sevenhop.core.remediation.approvals import NOT_COMPARED, Decision, decide, name_of, who_of
from sevenhop.core.remediation.case import Case, Stage
from sevenhop.core.remediation.permit import GuardName, Purpose, Refusal
from sevenhop.core.remediation.person import Person
from sevenhop.core.remediation.playbook import Playbook
from sevenhop.core.remediation.runs import STALE
from sevenhop.core.remediation.states import PlanState
from tests.guard_questions import ANN, BOB, NODE, NOW, PLAYBOOK, approval, mending_plan, plan

PLAN = plan()
TWO = replace(PLAYBOOK, approvals=2)
STRANGER = Person(id="slack:U9", name="eve")
UNIX = Person(id="unix:root", name="root", groups=("slack-group:S1",))
BORROW = Borrow(
    plan=PLAN.id, hash=PLAN.hash, incident="i", workload="batch/summarizer", component="predictor", before=4, after=3,
    until=NOW, by="ann",
)  # fmt: skip
LEASE_END = NOW + timedelta(minutes=10)


def case(state: PlanState, stage: Stage, **more: Any) -> Case:
    given: dict[str, Any] = {"plan": PLAN, "state": state, "stage": stage, "since": NOW, "why": "w"}
    return Case(**(given | more))


PROPOSED = case(PlanState.PROPOSED, Stage.DECISION)
APPROVED = case(PlanState.APPROVED, Stage.TRYING)
RUNNING = case(PlanState.RUNNING, Stage.VERIFYING)
LENT = case(PlanState.SUCCEEDED, Stage.LENT, lease_until=LEASE_END, borrow=BORROW)
EXTENSION = replace(LENT, stage=Stage.EXTENSION, extend_asked_at=NOW, extend_until=NOW + timedelta(minutes=15))
REJECTED = case(PlanState.REJECTED, Stage.OVER)
UNKNOWN = case(PlanState.UNKNOWN, Stage.OVER)
RESTORING = case(PlanState.SUCCEEDED, Stage.RESTORING)
UNDOING = case(PlanState.RUNNING, Stage.UNDOING)


class Asked:
    """Guards that remember what they were asked, and say what they are told to."""

    def __init__(self, *against: GuardName) -> None:
        self.against = tuple(Refusal(name, f"{name} says no") for name in against)
        self.cases: list[Case] = []
        self.purposes: list[Purpose] = []

    def __call__(self, with_it: Case, purpose: Purpose) -> tuple[Refusal, ...]:
        self.cases.append(with_it)
        self.purposes.append(purpose)
        return self.against


def decided(verb: Verb, person: Person = ANN, **more: Any) -> Decided:
    given: dict[str, Any] = {"at": NOW, "request_id": "r1", "plan_id": PLAN.id, "plan_hash": PLAN.hash, "via": "slack"}
    return Decided(**(given | {"verb": verb, "person": person} | more))


def told(
    before: Case,
    verb: Verb,
    person: Person = ANN,
    *,
    playbook: Playbook | None = PLAYBOOK,
    guards: Asked | None = None,
    now: Any = NOW,
    **more: Any,
) -> Decision:
    return decide(before, decided(verb, person, **more), playbook, guards or Asked(), now)


def unchanged(before: Case, decision: Decision) -> bool:
    """Nothing but what is written down about the request."""
    return replace(decision.case, entries=before.entries, entered=before.entered, answered=before.answered) == before


# Approving


def test_approved() -> None:
    """One who may, in time, with no guard against it: the dry run is asked for, and who and when is kept."""
    guards = Asked()
    decision = told(PROPOSED, Verb.APPROVE, guards=guards)
    after = decision.case
    assert decision.accepted
    assert decision.text == f"plan {PLAN.id} is approved by ann and begins with a dry run"
    assert (decision.is_stale, decision.is_stranger) == (False, False)
    assert (after.state, after.stage, after.started_at, after.decided_by) == (
        PlanState.APPROVED, Stage.TRYING, NOW, "ann",
    )  # fmt: skip
    assert after.asked is not None
    assert (after.asked.purpose, after.asked.at, after.asked.number) == (Purpose.DRY_RUN, NOW, 1)
    (yes,) = after.approvals
    assert (yes.person, yes.plan_id, yes.plan_hash, yes.at, yes.via) == (ANN, PLAN.id, PLAN.hash, NOW, "slack")
    assert guards.purposes == [Purpose.DRY_RUN]
    assert guards.cases[0].approvals == (yes,)
    entry = next(each for each in after.entries if each.what == "plan.approved")
    assert (entry.who, entry.text) == ("slack:U1 (ann) via slack", "approved: approved by ann")
    assert [(each.request_id, each.accepted) for each in after.answered] == [("r1", True)]


def test_the_same_request_again_is_told_the_same() -> None:
    """A doubled click does nothing and asks nobody."""
    first = told(PROPOSED, Verb.APPROVE)
    guards = Asked(GuardName.KILL_SWITCH)
    again = told(first.case, Verb.APPROVE, guards=guards)
    assert (again.case, again.accepted, again.text) == (first.case, True, first.text)
    assert guards.cases == []
    refused = told(PROPOSED, Verb.APPROVE, guards=Asked(GuardName.FREEZE))
    assert told(refused.case, Verb.APPROVE).accepted is False


@pytest.mark.parametrize(
    ("playbook", "person", "said"),
    [
        pytest.param(None, ANN, f"playbook {PLAN.playbook} is off or no more", id="no playbook"),
        pytest.param(PLAYBOOK, STRANGER, "eve may not approve plans of free-gpu-capacity", id="a stranger"),
        pytest.param(
            replace(PLAYBOOK, approvers=()),
            ANN,
            "ann may not approve plans of free-gpu-capacity: it names no approvers, so nobody may",
            id="nobody may",
        ),
    ],
)
@pytest.mark.parametrize("before", [PROPOSED, LENT, REJECTED], ids=["proposed", "lent", "rejected"])
def test_who_may_not_decide_leaves_no_trace_in_the_plan(
    playbook: Playbook | None, person: Person, said: str, before: Case
) -> None:
    """That is for the audit; the plan's own history is not for strangers to write in."""
    decision = told(before, Verb.APPROVE, person, playbook=playbook)
    assert (decision.case, decision.accepted, decision.is_stranger) == (before, False, True)
    assert said in decision.text


def test_another_version_is_refused() -> None:
    """What was seen is what counts; a terminal that sends no hash means the plan as it is."""
    decision = told(PROPOSED, Verb.APPROVE, plan_hash="other")
    assert not decision.accepted
    assert decision.text == f"plan {PLAN.id} is not what you saw; look at it again"
    assert not decision.is_stale
    assert unchanged(PROPOSED, decision)
    assert told(PROPOSED, Verb.APPROVE, plan_hash="").accepted
    assert not told(LENT, Verb.RESTORE, plan_hash="other").accepted


@pytest.mark.parametrize("before", [APPROVED, RUNNING, LENT, REJECTED, UNKNOWN])
@pytest.mark.parametrize("verb", [Verb.APPROVE, Verb.REJECT])
def test_only_what_is_proposed_is_decided(before: Case, verb: Verb) -> None:
    """Anything else is over, or under way, and the answer says since when and why."""
    decision = told(before, verb)
    assert not decision.accepted
    assert decision.text == f"plan {PLAN.id} is {before.state} since {NOW:%H:%M:%S} UTC (w); nothing was done"
    assert unchanged(before, decision)
    entry = decision.case.entries[-1]
    assert (entry.what, entry.who) == ("decision.refused", "slack:U1 (ann) via slack")
    assert decision.case.answered[-1].accepted is False


def test_the_second_of_expiry_is_too_late() -> None:
    """One microsecond before it is in time."""
    late = told(PROPOSED, Verb.APPROVE, now=PLAN.expires_at)
    assert (late.accepted, late.text) == (False, f"plan {PLAN.id} expired at {PLAN.expires_at:%H:%M:%S} UTC")
    assert told(PROPOSED, Verb.APPROVE, now=PLAN.expires_at - timedelta(microseconds=1)).accepted


@pytest.mark.parametrize("guard", [name for name in GuardName if name is not GuardName.APPROVED], ids=str)
def test_a_guard_refuses_the_first_of_two_as_well(guard: GuardName) -> None:
    """Nobody is asked for a second yes in vain; a plan that does not fit the cluster any more is said to be stale."""
    for playbook in (PLAYBOOK, TWO):
        decision = told(PROPOSED, Verb.APPROVE, playbook=playbook, guards=Asked(guard))
        assert (decision.accepted, decision.text) == (False, f"{guard} says no")
        assert decision.is_stale is (guard in STALE)
        assert unchanged(PROPOSED, decision)


def test_stale_for_any_reason() -> None:
    """Also where another guard speaks first."""
    decision = told(PROPOSED, Verb.APPROVE, guards=Asked(GuardName.FREEZE, GuardName.NOT_WIDER))
    assert (decision.text, decision.is_stale) == ("freeze says no", True)


def test_the_first_of_two() -> None:
    """Counted and named; what only the second can fulfil is no reason against the first."""
    decision = told(PROPOSED, Verb.APPROVE, playbook=TWO, guards=Asked(GuardName.APPROVED))
    assert decision.accepted
    assert decision.text == f"approved by ann; 1 more of 2 people must agree to plan {PLAN.id}"
    assert (decision.case.state, decision.case.asked, decision.case.decided_by) == (PlanState.PROPOSED, None, "ann")
    assert len(decision.case.approvals) == 1
    assert decision.case.entries[-1].what == "decision.approve"
    assert not told(PROPOSED, Verb.APPROVE, guards=Asked(GuardName.APPROVED)).accepted


def test_the_second_of_two() -> None:
    """Carried out once both agreed, with both names."""
    first = told(PROPOSED, Verb.APPROVE, playbook=TWO).case
    again = told(first, Verb.APPROVE, playbook=TWO, request_id="r2")
    assert not again.accepted
    assert again.text == f"ann has approved plan {PLAN.id} already; another person is needed"
    second = told(first, Verb.APPROVE, BOB, playbook=TWO, request_id="r3")
    assert (second.accepted, second.case.state, second.case.decided_by) == (True, PlanState.APPROVED, "ann, bob")
    assert second.text.startswith(f"plan {PLAN.id} is approved by ann, bob")


def test_who_cannot_be_compared_does_not_count_as_two() -> None:
    """A Slack user and a user of the host may be the same person; what would help is said."""
    first = told(PROPOSED, Verb.APPROVE, playbook=TWO).case
    second = told(first, Verb.APPROVE, UNIX, playbook=TWO, request_id="r2")
    assert second.case.state is PlanState.PROPOSED
    assert second.text == f"approved by root; 1 more of 2 people must agree to plan {PLAN.id}; {NOT_COMPARED}"


def test_who_was_taken_off_the_list_does_not_block_the_others() -> None:
    """A first yes of somebody who may not approve any more counts for nothing: two of those who may are enough."""
    carl = replace(BOB, id="slack:U3", name="carl")
    first = told(PROPOSED, Verb.APPROVE, playbook=TWO).case
    now_these = replace(TWO, approvers=(*BOB.ids, *carl.ids))
    second = told(first, Verb.APPROVE, BOB, playbook=now_these, request_id="r2")
    assert (second.accepted, second.case.state, second.case.decided_by) == (True, PlanState.PROPOSED, "bob")
    third = told(second.case, Verb.APPROVE, carl, playbook=now_these, request_id="r3")
    assert (third.case.state, third.case.decided_by) == (PlanState.APPROVED, "bob, carl")

    lent = told(LENT, Verb.EXTEND, playbook=TWO).case
    second = told(lent, Verb.EXTEND, BOB, playbook=now_these, request_id="r2")
    assert (second.case.asked, [each.person.name for each in second.case.extensions]) == (None, ["bob"])
    assert told(second.case, Verb.EXTEND, carl, playbook=now_these, request_id="r3").case.asked is not None


def test_a_playbook_that_asks_for_nobody_asks_for_one() -> None:
    """A number that cannot be is no leave."""
    nobody = replace(PLAYBOOK, approvals=0)
    assert not told(PROPOSED, Verb.APPROVE, playbook=nobody, guards=Asked(GuardName.APPROVED)).accepted


# Rejecting


def test_rejected() -> None:
    """Over at once, with who, and why if they said so."""
    decision = told(PROPOSED, Verb.REJECT, comment="not now\nplease")
    assert (decision.accepted, decision.text) == (True, f"plan {PLAN.id} is rejected")
    after = decision.case
    assert (after.state, after.stage, after.decided_by) == (PlanState.REJECTED, Stage.OVER, "ann")
    assert after.why == "rejected by ann: not now please"
    assert after.entries[-1].who == "slack:U1 (ann) via slack"
    assert told(PROPOSED, Verb.REJECT).case.why == "rejected by ann"


# Undoing and giving back


def test_stopped_before_anything_was_changed() -> None:
    """An approved plan is stopped, which is no failure of it."""
    decision = told(APPROVED, Verb.UNDO)
    after = decision.case
    assert (decision.accepted, decision.text) == (True, f"plan {PLAN.id} is stopped; nothing was changed")
    assert (after.state, after.stage, after.asked, after.is_stopped) == (PlanState.FAILED, Stage.OVER, None, True)
    assert after.entries[-1].who == "slack:U1 (ann) via slack"


@pytest.mark.parametrize("before", [RUNNING, UNKNOWN])
def test_undone(before: Case) -> None:
    """One person is enough, whatever the playbook asks for, and no guard is asked."""
    guards = Asked(*GuardName)
    decision = told(before, Verb.UNDO, playbook=TWO, guards=guards)
    assert (decision.accepted, decision.text) == (True, f"plan {PLAN.id} is being undone")
    assert decision.case.stage is Stage.UNDOING
    assert decision.case.asked is not None
    assert decision.case.asked.purpose is Purpose.UNDO
    assert decision.case.undo_why == "undone by ann"
    assert guards.cases == []
    assert [each.what for each in decision.case.entries][:2] == ["decision.undo", "run.undo"]


@pytest.mark.parametrize(
    ("before", "verb"),
    [
        (LENT, Verb.UNDO),
        (LENT, Verb.RESTORE),
        (EXTENSION, Verb.UNDO),
        (EXTENSION, Verb.RESTORE),
        (UNKNOWN, Verb.RESTORE),
    ],
)
def test_given_back(before: Case, verb: Verb) -> None:
    """The same with what is lent, by either word."""
    guards = Asked(*GuardName)
    decision = told(before, verb, playbook=TWO, guards=guards)
    assert (decision.accepted, decision.text) == (True, f"plan {PLAN.id} is being taken back")
    assert decision.case.stage is Stage.RESTORING
    assert decision.case.asked is not None
    assert decision.case.asked.purpose is Purpose.RESTORE
    assert decision.case.undo_why == "given back by ann"
    assert decision.case.entries[0].what == f"decision.{verb}"
    assert guards.cases == []


def test_a_cordon_without_a_lease_is_taken_back() -> None:
    """It helped and stays until a person takes it back, by either word; what others changed is not ours any more."""
    of = mending_plan(Cordon(node=NODE))
    stays = Case(plan=of, state=PlanState.SUCCEEDED, stage=Stage.OVER, since=NOW)
    for verb in (Verb.UNDO, Verb.RESTORE):
        decision = told(stays, verb, playbook=replace(PLAYBOOK, id=of.playbook), plan_id=of.id, plan_hash=of.hash)
        assert decision.accepted
        assert decision.case.stage is Stage.RESTORING
    gone = replace(stays, others="somebody")
    assert not told(gone, Verb.RESTORE, plan_id=of.id, plan_hash=of.hash).accepted


@pytest.mark.parametrize("before", [RESTORING, UNDOING])
def test_being_given_back_already(before: Case) -> None:
    """Once is enough."""
    decision = told(before, Verb.UNDO)
    assert (decision.accepted, decision.text) == (False, f"plan {PLAN.id} is being given back already")
    assert unchanged(before, decision)


@pytest.mark.parametrize("before", [PROPOSED, REJECTED, case(PlanState.RESTORED, Stage.OVER)])
def test_nothing_to_give_back(before: Case) -> None:
    """Of what was never carried out, or is back already."""
    assert told(before, Verb.UNDO).text.endswith("there is nothing to undo")
    assert told(before, Verb.RESTORE).text.endswith("there is nothing to give back")
    assert told(RUNNING, Verb.RESTORE).text.endswith("there is nothing to give back")


def test_an_eviction_cannot_be_undone() -> None:
    """A pod that was removed stays removed, and the answer says so."""
    of = mending_plan(EvictPod(pod=ObjectRef("Pod", "batch", "p", "u")))
    for state, stage in ((PlanState.RUNNING, Stage.VERIFYING), (PlanState.UNKNOWN, Stage.OVER)):
        before = Case(plan=of, state=state, stage=stage, since=NOW)
        decision = told(before, Verb.UNDO, plan_id=of.id, plan_hash=of.hash)
        assert (decision.accepted, decision.text) == (False, f"the steps of plan {of.id} cannot be undone")
    before = Case(plan=of, state=PlanState.UNKNOWN, stage=Stage.OVER, since=NOW)
    decision = told(before, Verb.RESTORE, plan_id=of.id, plan_hash=of.hash)
    assert decision.text == f"the steps of plan {of.id} cannot be taken back"


# Extending


@pytest.mark.parametrize("before", [LENT, EXTENSION])
def test_extended(before: Case) -> None:
    """From now on for the plan's lease; the marks are to be written anew, and what held before is kept until then."""
    guards = Asked()
    decision = told(before, Verb.EXTEND, guards=guards)
    after, until = decision.case, NOW + PLAN.lease
    assert decision.accepted
    assert decision.text == f"lease extended by ann until {until:%Y-%m-%d %H:%M:%S} UTC"
    assert (after.stage, after.lease_until, after.extended_from) == (Stage.LENT, until, LEASE_END)
    assert (after.extend_asked_at, after.extend_until, after.why) == (None, None, decision.text)
    assert after.borrow == replace(BORROW, until=until)
    assert after.asked is not None
    assert after.asked.purpose is Purpose.EXTEND
    assert guards.purposes == [Purpose.EXTEND]
    (yes,) = guards.cases[0].extensions
    assert (yes.person, yes.plan_id, yes.plan_hash, yes.at, yes.via) == (ANN, PLAN.id, PLAN.hash, NOW, "slack")
    assert after.extensions == (yes,)
    entry = next(each for each in after.entries if each.what == "decision.extend")
    assert (entry.text, entry.who) == (decision.text, "slack:U1 (ann) via slack")


def test_an_end_that_is_later_already_stays() -> None:
    """Extending never shortens."""
    far = replace(LENT, lease_until=NOW + timedelta(hours=9))
    assert told(far, Verb.EXTEND).case.lease_until == NOW + timedelta(hours=9)


def test_what_is_held_before_two_extensions_in_a_row_is_the_first_end() -> None:
    """Neither was written yet: should both be refused, the end is the one that was promised."""
    first = told(LENT, Verb.EXTEND).case
    second = told(first, Verb.EXTEND, BOB, request_id="r2", now=NOW + timedelta(minutes=1)).case
    assert second.extended_from == LEASE_END


def test_without_a_mark_there_is_nothing_to_write() -> None:
    """The lease is longer, and no step is asked for."""
    decision = told(replace(LENT, borrow=None), Verb.EXTEND)
    after = decision.case
    assert decision.accepted
    assert (after.asked, after.extensions, after.extended_from) == (None, (), None)
    assert after.lease_until == NOW + PLAN.lease


@pytest.mark.parametrize(
    "before",
    [PROPOSED, RUNNING, REJECTED, RESTORING, replace(LENT, lease_until=None)],
    ids=["proposed", "running", "rejected", "restoring", "no lease"],
)
def test_no_lease_to_extend(before: Case) -> None:
    """Only what is lent can be lent for longer."""
    guards = Asked()
    decision = told(before, Verb.EXTEND, guards=guards)
    assert not decision.accepted
    assert decision.text.endswith("there is no lease to extend")
    assert unchanged(before, decision)
    assert guards.cases == []


def test_a_guard_refuses_to_extend() -> None:
    """The first of two as well, but for what only the second can fulfil."""
    for playbook in (PLAYBOOK, TWO):
        decision = told(LENT, Verb.EXTEND, playbook=playbook, guards=Asked(GuardName.KILL_SWITCH))
        assert (decision.accepted, decision.text) == (False, "the lease is not extended: kill-switch says no")
        assert unchanged(LENT, decision)
    assert told(LENT, Verb.EXTEND, playbook=TWO, guards=Asked(GuardName.APPROVED)).accepted
    assert not told(LENT, Verb.EXTEND, guards=Asked(GuardName.APPROVED)).accepted


def test_two_extend() -> None:
    """One says so, another agrees; nobody twice, nobody who may be the same, nobody of long ago."""
    first = told(LENT, Verb.EXTEND, playbook=TWO)
    assert (first.accepted, first.text) == (True, "ann would extend the lease; 1 more of 2 people must agree")
    assert (first.case.lease_until, first.case.asked, len(first.case.extensions)) == (LEASE_END, None, 1)
    assert first.case.entries[-1].what == "decision.extend"
    again = told(first.case, Verb.EXTEND, playbook=TWO, request_id="r2")
    assert (again.accepted, again.text) == (False, "ann has agreed to that already; another person is needed")
    root = told(first.case, Verb.EXTEND, UNIX, playbook=TWO, request_id="r3")
    assert root.text == f"root would extend the lease; 1 more of 2 people must agree; {NOT_COMPARED}"
    second = told(first.case, Verb.EXTEND, BOB, playbook=TWO, request_id="r4")
    assert second.text.startswith("lease extended by ann, bob until")
    assert second.case.lease_until == NOW + PLAN.lease


@pytest.mark.parametrize(
    ("after", "counts"), [(timedelta(minutes=15), True), (timedelta(minutes=15, seconds=1), False)]
)
def test_how_long_a_first_yes_waits(after: timedelta, counts: bool) -> None:
    """As long as an approval is good for, to the second; then it may be said anew."""
    first = told(LENT, Verb.EXTEND, playbook=TWO).case
    second = told(first, Verb.EXTEND, BOB, playbook=TWO, request_id="r2", now=NOW + after, at=NOW + after)
    assert (second.case.asked is not None) is counts
    anew = told(first, Verb.EXTEND, playbook=TWO, request_id="r3", now=NOW + after, at=NOW + after)
    assert anew.accepted is not counts
    assert len(anew.case.extensions) == 1


def test_a_playbook_that_asks_for_nobody_asks_for_one_to_extend() -> None:
    """A number that cannot be is no leave."""
    nobody = replace(PLAYBOOK, approvals=0)
    assert not told(LENT, Verb.EXTEND, playbook=nobody, guards=Asked(GuardName.APPROVED)).accepted


# Names


def test_names_stay_on_their_line_and_are_cut() -> None:
    """Anybody may choose their name; the verified id comes first in the audit."""
    long = Person(id="slack:U7", name="a\nb" + "x" * 200)
    assert "\n" not in name_of(long)
    assert len(name_of(long)) == 80
    assert len(told(PROPOSED, Verb.REJECT, comment="y" * 500).case.why) == len("rejected by ann: ") + 200
    assert (name_of(Person(id="unix:root")), who_of(Person(id="unix:root"), "")) == ("unix:root", "unix:root")
    assert who_of(ANN, "") == "slack:U1 (ann)"
    assert who_of(Person(id="unix:root"), "terminal") == "unix:root via terminal"


def test_an_approval_of_before_is_not_an_extension() -> None:
    """Who approved the plan has not said a word about its end."""
    before = replace(LENT, approvals=(approval(ANN, PLAN), approval(BOB, PLAN)))
    assert "1 more of 2" in told(before, Verb.EXTEND, playbook=TWO).text
