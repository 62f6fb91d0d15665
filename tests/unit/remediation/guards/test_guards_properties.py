"""For every guard, generated states in which it must refuse: whatever else is so, and in whatever way it came to be."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from sevenhop.core.facts.schema import Unknown, UnknownReason
from sevenhop.core.remediation.action import ObjectRef
from sevenhop.core.remediation.guards import judge, refusals
from sevenhop.core.remediation.guards_breaker import Breaker
from sevenhop.core.remediation.guards_freeze import Freeze
from sevenhop.core.remediation.guards_question import Evidence, PastRun, PodBudget, Question, Switch
from sevenhop.core.remediation.permit import GuardName, Permit, Purpose, Refusal
from sevenhop.core.remediation.plan import Answer, NoPlanReason, Plan
from sevenhop.core.remediation.playbook import Mode
from sevenhop.core.remediation.states import PlanState
from tests.guard_questions import ANN, BOB, DONOR, NOW, approval, passing, plan, scale

Data = st.DataObject
unknowns = st.builds(Unknown, st.sampled_from(UnknownReason), st.text(max_size=5))
short = st.timedeltas(timedelta(0), timedelta(days=3))
later = st.timedeltas(timedelta(microseconds=1), timedelta(days=900))


@st.composite
def good(draw: st.DrawFn) -> Question:
    """A question that passes, with numbers of its own: replicas, GPUs, approvers, history, time."""
    unit = draw(st.integers(0, 8))
    fewer = draw(st.integers(1, 8 // max(unit, 4)))
    before = draw(st.integers(fewer, 40))
    victims = tuple(("batch", f"v{i}") for i in range(draw(st.integers(0, fewer))))
    of = plan(scale(before, before - fewer, unit_gpus=unit), victims=victims, gpus=draw(st.integers(0, 8)))
    both = draw(st.booleans())
    people = (approval(ANN, of), approval(BOB, of)) if both else (approval(draw(st.sampled_from([ANN, BOB])), of),)
    question = passing(of, approvals=people, purpose=draw(st.sampled_from([Purpose.APPLY, Purpose.DRY_RUN])))
    assert question.playbook is not None
    old = [
        PastRun(
            plan_id=f"old-{i}",
            playbook=draw(st.sampled_from([of.playbook, "other"])),
            incident=draw(st.sampled_from([of.incident, "incident-9"])),
            touches=draw(st.sampled_from([of.touches, ()])),
            state=draw(st.sampled_from([PlanState.RESTORED, PlanState.UNDONE, PlanState.FAILED])),
            started_at=NOW - timedelta(days=2),
            ended_at=NOW - timedelta(minutes=30) - draw(short),
        )
        for i in range(draw(st.integers(0, 3)))
    ]
    targets = tuple(
        replace(t, floor=draw(st.integers(0, before - fewer))) if t.floor is not None else t for t in question.targets
    )
    playbook = replace(question.playbook, approvals=2 if both else 1)
    return replace(question, history=tuple(old), targets=targets, playbook=playbook)


def _playbook(question: Question, **more: Any) -> Question:
    assert question.playbook is not None
    return replace(question, playbook=replace(question.playbook, **more))


def _donor(question: Question, **more: Any) -> Question:
    targets = tuple(replace(t, **more) if t.ref == DONOR else t for t in question.targets)
    return replace(question, targets=targets)


def _kill_switch(q: Question, data: Data) -> Question:
    on, set_by = data.draw(st.sampled_from([(True, False), (False, True), (True, True)]))
    return replace(q, switch=Switch(is_on=on, by_settings=set_by, by=data.draw(st.text(max_size=5))))


def _mode(q: Question, data: Data) -> Question:
    return data.draw(
        st.sampled_from(
            [
                _playbook(q, mode=Mode.OFF),
                _playbook(q, mode=Mode.SHADOW),
                _playbook(q, id="other"),
                replace(q, playbook=None),
            ]
        )
    )


def _approved(q: Question, data: Data) -> Question:
    one = data.draw(st.sampled_from(q.approvals))
    person = one.person
    bad = data.draw(
        st.sampled_from(
            [
                replace(one, plan_id="other"),
                replace(one, plan_hash=data.draw(st.text("0123456789abcdef", max_size=64))),
                replace(one, at=q.plan.expires_at + data.draw(short)),
                replace(one, at=q.plan.proposed_at - timedelta(seconds=5) - data.draw(later)),
                replace(one, person=replace(person, verified_at=None)),
                replace(one, person=replace(person, verified_at=one.at - timedelta(seconds=60) - data.draw(later))),
                replace(one, person=replace(person, verified_at=one.at + timedelta(seconds=5) + data.draw(later))),
                replace(one, person=replace(person, groups=("slack-group:S2",))),
                None,
            ]
        )
    )
    return replace(q, approvals=tuple(bad if a == one else a for a in q.approvals if a != one or bad is not None))


def _unchanged(q: Question, data: Data) -> Question:
    scale = q.plan.scales[0]
    other = data.draw(st.none() | st.integers(-2, 60).filter(lambda n: n != scale.before))
    target = data.draw(st.sampled_from(q.targets))
    ways = [
        _donor(q, replicas=other),
        replace(q, targets=tuple(t for t in q.targets if t != target)),
        replace(q, targets=tuple(replace(t, is_gone=True) if t == target else t for t in q.targets)),
        replace(q, targets=tuple(replace(t, ref=replace(t.ref, uid="x")) if t == target else t for t in q.targets)),
        _donor(q, values=((scale.edits[0].pointer, data.draw(st.none() | st.text() | st.booleans())),)),
    ]
    return data.draw(st.sampled_from(ways))


def _wider(plan: Plan, data: Data) -> Plan:
    one = plan.scales[0]
    ways = [
        replace(plan, gpus=plan.gpus + data.draw(st.integers(1, 9))),
        replace(plan, lease=plan.lease + data.draw(later)),
        replace(plan, victims=(*plan.victims, *[("x", str(i)) for i in range(data.draw(st.integers(1, 5)))])),
        replace(plan, actions=(replace(one, after=one.after - data.draw(st.integers(1, 9))),)),
        replace(plan, actions=(replace(one, target=replace(one.target, uid="other", name="other")),)),
        replace(plan, actions=(one, replace(one, component="other"))),
        replace(plan, need=None),
        replace(plan, cluster="other"),
    ]
    return data.draw(st.sampled_from(ways))


def _not_wider(q: Question, data: Data) -> Question:
    ways = [
        replace(q, live=None),
        replace(q, live=Answer(reason=data.draw(st.sampled_from(NoPlanReason)), text="x")),
        replace(q, live=Answer(plan=_wider(q.plan, data))),
        replace(q, actions=_wider(q.plan, data).actions[:0]),
        replace(q, actions=(scale(50, data.draw(st.integers(0, 49))),)),
    ]
    return data.draw(st.sampled_from(ways))


def _less(q: Question, data: Data) -> Question:
    ways = [
        replace(q, is_needed=data.draw(st.just(False) | unknowns)),
        replace(q, live=Answer(reason=NoPlanReason.NOBODY_WAITS, text="x")),
        replace(q, live=Answer(plan=replace(q.plan, lease=timedelta(minutes=data.draw(st.integers(0, 119)))))),
    ]
    return data.draw(st.sampled_from(ways))


def _limits(q: Question, data: Data) -> Question:
    fewer = q.plan.scales[0].before - q.plan.scales[0].after
    gpus = max(q.plan.gpus, fewer * q.plan.scales[0].unit_gpus)
    ways = [
        _playbook(q, most_replicas=data.draw(st.integers(0, fewer - 1))),
        _playbook(q, lease=q.plan.lease - data.draw(st.timedeltas(timedelta(seconds=1), timedelta(minutes=119)))),
        _playbook(q, steps=("steer", "evict-pod", "cordon")),
    ]
    if gpus:
        ways.append(_playbook(q, most_gpus=data.draw(st.integers(0, gpus - 1))))
    return data.draw(st.sampled_from(ways))


def _run(q: Question, data: Data, **more: Any) -> Question:
    given: dict[str, Any] = {
        "plan_id": "before",
        "playbook": q.plan.playbook,
        "incident": data.draw(st.text(max_size=4)),
        "touches": (ObjectRef(DONOR.kind, DONOR.namespace, DONOR.name, data.draw(st.text(max_size=4))),),
        "started_at": NOW - data.draw(short),
    }
    run = PastRun(**(given | more))
    return replace(q, history=tuple(data.draw(st.permutations([*q.history, run]))))


def _cooldown(q: Question, data: Data) -> Question:
    state = data.draw(st.sampled_from([s for s in PlanState if s is not PlanState.RUNNING]))
    ago = data.draw(st.timedeltas(timedelta(0), timedelta(minutes=30) - timedelta(microseconds=1)))
    return _run(q, data, state=state, ended_at=NOW - ago)


def _concurrent(q: Question, data: Data) -> Question:
    playbook, touches = data.draw(st.sampled_from([(q.plan.playbook, ()), ("other", q.plan.touches)]))
    return _run(q, data, state=PlanState.RUNNING, playbook=playbook, touches=touches)


def _daily(q: Question, data: Data) -> Question:
    assert q.playbook is not None
    most = data.draw(st.integers(0, 4))
    runs = tuple(
        PastRun(
            plan_id=f"today-{i}",
            playbook=q.plan.playbook,
            incident="x",
            touches=(),
            state=PlanState.SUCCEEDED,
            started_at=NOW - data.draw(st.timedeltas(timedelta(0), timedelta(hours=23, minutes=59))),
        )
        for i in range(most + data.draw(st.integers(0, 3)))
    )
    return replace(_playbook(q, most_runs_per_day=most), history=(*q.history, *runs))


def _freeze(q: Question, data: Data) -> Question:
    dated = Freeze(name="x", start=NOW - data.draw(short), end=NOW + data.draw(later))
    weekly = Freeze(name="x", weekdays=tuple(data.draw(st.sets(st.integers(0, 6))) | {NOW.weekday()}))
    return replace(q, freezes=(Freeze(name="never"), data.draw(st.sampled_from([dated, weekly]))))


def _fresh(q: Question, data: Data) -> Question:
    ways = [
        replace(q, blind=((data.draw(st.text(max_size=5)), data.draw(unknowns)),)),
        replace(q, as_of=NOW - timedelta(minutes=2) - data.draw(later)),
        replace(q, as_of=NOW + timedelta(seconds=5) + data.draw(later)),
        _donor(q, sight=data.draw(unknowns)),
    ]
    return data.draw(st.sampled_from(ways))


def _one_source(q: Question, data: Data) -> Question:
    old = [Evidence(fact="f", source=s, seen_at=NOW - timedelta(minutes=2) - data.draw(later)) for s in "ab"]
    new = [Evidence(fact=f, source="c", seen_at=NOW) for f in data.draw(st.lists(st.text(max_size=3), max_size=3))]
    return replace(q, evidence=tuple(data.draw(st.permutations(old + new))))


def _budget(q: Question, data: Data) -> Question:
    allowed = data.draw(st.integers(0, 5))
    full = PodBudget(name="b/x", allowed=allowed, victims=allowed + data.draw(st.integers(1, 5)))
    blind = PodBudget(name="b/x", allowed=data.draw(unknowns), victims=0)
    fine = PodBudget(name="b/y", allowed=9, victims=1)
    return replace(q, budgets=data.draw(st.sampled_from([(full,), (fine, full), (blind,)]) | unknowns))


BREAKS: dict[GuardName, Callable[[Question, Data], Question]] = {
    GuardName.SAME_CLUSTER: lambda q, data: replace(q, cluster=data.draw(st.text(max_size=9))),
    GuardName.KILL_SWITCH: _kill_switch,
    GuardName.MODE: _mode,
    GuardName.APPROVED: _approved,
    GuardName.BREAKER: lambda q, data: replace(q, breaker=Breaker(opened_at=NOW - data.draw(short))),
    GuardName.FREEZE: _freeze,
    GuardName.FRESH: _fresh,
    GuardName.POOL_TURNED_BAD: lambda q, data: replace(q, pool_turned_bad=data.draw(st.just(True) | unknowns)),
    GuardName.TWO_FACTS: _one_source,
    GuardName.STILL_NEEDED: _less,
    GuardName.UNCHANGED: _unchanged,
    GuardName.NOT_WIDER: _not_wider,
    GuardName.LIMITS: _limits,
    GuardName.OPT_OUT: lambda q, data: _donor(q, opted_out=data.draw(st.text(min_size=1, max_size=9))),
    GuardName.FLOOR: lambda q, data: _donor(
        q, floor=data.draw(st.none() | unknowns | st.integers(q.plan.scales[0].after + 1, 99))
    ),
    GuardName.BUDGET_OF_PODS: _budget,
    GuardName.COOLDOWN: _cooldown,
    GuardName.CONCURRENT: _concurrent,
    GuardName.DAILY_BUDGET: _daily,
}


def test_every_guard_is_tried() -> None:
    """
    No guard is without generated states in which it must refuse.
    """
    assert set(BREAKS) == set(GuardName)


@given(good())
def test_what_is_in_order_passes(question: Question) -> None:
    """
    Nothing is refused without a reason: a guard that always refuses would be no guard.
    """
    assert refusals(question) == ()
    assert isinstance(judge(question), Permit)


@pytest.mark.parametrize("guard", GuardName, ids=str)
@given(question=good(), data=st.data())
def test_a_broken_state_is_refused(guard: GuardName, question: Question, data: Data) -> None:
    """
    Whatever the numbers are, what this guard protects against is refused by this guard.
    """
    broken = BREAKS[guard](question, data)

    assert guard in {r.guard for r in refusals(broken)}
    assert isinstance(judge(broken), Refusal)


@given(question=good(), data=st.data(), guards=st.sets(st.sampled_from(GuardName), min_size=1, max_size=4))
def test_nothing_broken_passes_whatever_else_is_broken(question: Question, data: Data, guards: set[GuardName]) -> None:
    """
    Two wrongs never make a right: broken in several ways at once it is refused, and no guard fails over another's.
    """
    for guard in guards:
        question = BREAKS[guard](question, data) if question.playbook is not None else question

    assert isinstance(judge(question), Refusal)


def _extended(q: Question, data: Data) -> Question:
    """Nobody agreed to lend for longer, though the plan is approved."""
    one = data.draw(st.sampled_from(q.extensions))
    ways = [
        replace(one, plan_id="other"),
        replace(one, plan_hash=data.draw(st.text("0123456789abcdef", max_size=64))),
        replace(one, at=NOW - timedelta(minutes=15) - data.draw(later)),
        replace(one, at=NOW + timedelta(seconds=5) + data.draw(later)),
        replace(one, person=replace(one.person, verified_at=None)),
        replace(one, person=replace(one.person, groups=("slack-group:S2",))),
        None,
    ]
    bad = data.draw(st.sampled_from(ways))
    rest = tuple(a for a in q.extensions if a != one)
    return replace(q, extensions=rest if bad is None else (*rest, bad))


@pytest.mark.parametrize(
    "guard",
    [
        GuardName.SAME_CLUSTER, GuardName.KILL_SWITCH, GuardName.MODE, GuardName.LIMITS, GuardName.OPT_OUT,
        GuardName.APPROVED,
    ],
    ids=str,
)  # fmt: skip
@given(question=good(), data=st.data())
def test_to_lend_for_longer_is_refused_alike(guard: GuardName, question: Question, data: Data) -> None:
    """
    What people and owners decide about taking they decide about keeping, too.
    """
    lent = replace(question, purpose=Purpose.EXTEND, state=PlanState.SUCCEEDED, extensions=question.approvals)
    assert refusals(lent) == ()

    broken = _extended(lent, data) if guard is GuardName.APPROVED else BREAKS[guard](lent, data)

    assert guard in {r.guard for r in refusals(broken)}


@given(question=good(), data=st.data(), guard=st.sampled_from(GuardName))
def test_looking_is_never_held_up(question: Question, data: Data, guard: GuardName) -> None:
    """
    Reading back needs no leave but that it is this cluster.
    """
    broken = replace(BREAKS[guard](question, data), purpose=Purpose.READ_BACK)

    assert isinstance(judge(broken), Permit) is (guard is not GuardName.SAME_CLUSTER)
