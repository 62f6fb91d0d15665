"""Each guard refuses what it protects against, and lets pass what lies just beside it."""

from __future__ import annotations

from collections.abc import Callable
from datetime import time, timedelta
from typing import Any

import pytest
from msgspec.structs import replace

from sevenhop.core.facts.schema import Unknown, UnknownReason
from sevenhop.core.remediation import action
from sevenhop.core.remediation.action import Cordon, Edit, EvictPod, ObjectRef, Steer
from sevenhop.core.remediation.guards import refusals
from sevenhop.core.remediation.guards_breaker import Breaker
from sevenhop.core.remediation.guards_freeze import Freeze
from sevenhop.core.remediation.guards_question import Approval, Evidence, PastRun, PodBudget, Question, Switch, Target
from sevenhop.core.remediation.permit import GuardName, Purpose
from sevenhop.core.remediation.person import Person
from sevenhop.core.remediation.plan import Answer, NoPlanReason, Plan
from sevenhop.core.remediation.playbook import Mode
from sevenhop.core.remediation.reduction import Conflict, ConflictReason
from sevenhop.core.remediation.states import PlanState
from tests.guard_questions import (
    ANN,
    BOB,
    CHILD,
    DONOR,
    NODE,
    NOW,
    VICTIM,
    approval,
    mending_plan,
    passing,
    plan,
    scale,
)

G = GuardName
S = timedelta(seconds=1)
US = timedelta(microseconds=1)
BLIND = Unknown(UnknownReason.STALE, "nothing heard for 95 s")
STEER = Steer(pods=(VICTIM,))
Make = Callable[[], Question]


def _playbook(**more: Any) -> Question:
    question = passing()
    assert question.playbook is not None
    return replace(question, playbook=replace(question.playbook, **more))


def _target(which: ObjectRef = DONOR, of: Plan | None = None, **more: Any) -> Question:
    question = passing(of)
    changed = tuple(
        replace(t, **more) if (t.ref.kind, t.ref.name) == (which.kind, which.name) else t for t in question.targets
    )
    return replace(question, targets=changed)


def _uid(which: ObjectRef, uid: str) -> ObjectRef:
    return replace(which, uid=uid)


def _value(which: ObjectRef, pointer: str, value: Any) -> Question:
    return _target(which, values=((pointer, value),))


def _approved(*approvals: Approval, needs: int = 1, **more: Any) -> Question:
    return replace(_playbook(approvals=needs), approvals=approvals, **more)


def _person(**more: Any) -> Person:
    return replace(ANN, **more)


def _run(**more: Any) -> Question:
    """With one earlier run of the same playbook on the same donor, ended an hour ago."""
    given: dict[str, Any] = {
        "plan_id": "earlier1",
        "playbook": "free-gpu-capacity",
        "incident": "incident-0",
        "touches": (_uid(DONOR, "older"),),
        "state": PlanState.RESTORED,
        "started_at": NOW - timedelta(hours=30),
        "ended_at": NOW - timedelta(hours=1),
    }
    return passing(history=(PastRun(**(given | more)),))


def _runs(*started: timedelta, **more: Any) -> tuple[PastRun, ...]:
    given: dict[str, Any] = {
        "playbook": "free-gpu-capacity",
        "incident": "incident-0",
        "touches": (),
        "state": PlanState.RESTORED,
        "ended_at": NOW - timedelta(hours=1),
    }
    return tuple(PastRun(plan_id=f"r{i}", started_at=NOW - ago, **(given | more)) for i, ago in enumerate(started))


def _live(of: Plan | None, reason: NoPlanReason | None = None, **more: Any) -> Question:
    return passing(live=Answer(plan=of, reason=reason, text="because"), **more)


def _evidence(*facts: tuple[str, timedelta]) -> Question:
    return passing(evidence=tuple(Evidence(fact="f", source=source, seen_at=NOW - ago) for source, ago in facts))


def _conflict(reason: ConflictReason) -> Question:
    return _target(conflict=Conflict(reason, "HPA summarizer rules it"))


OURS = passing().plan
EVICT = mending_plan(EvictPod(pod=VICTIM))
CORDON = mending_plan(Cordon(node=NODE))
MIN = "/spec/predictor/minReplicas"
FORMAT = "/spec/predictor/model/modelFormat/name"

REFUSED: list[tuple[GuardName, str, Make]] = [
    (G.SAME_CLUSTER, "another cluster", lambda: passing(cluster="prod-us")),
    (G.SAME_CLUSTER, "a cluster without a name", lambda: passing(plan(cluster=""), cluster="")),
    (G.SAME_CLUSTER, "a plan without a cluster", lambda: passing(plan(cluster=""))),
    (G.KILL_SWITCH, "on", lambda: passing(switch=Switch(is_on=True))),
    (G.KILL_SWITCH, "by settings", lambda: passing(switch=Switch(by_settings=True))),
    (G.MODE, "shadow", lambda: _playbook(mode=Mode.SHADOW)),
    (G.MODE, "off", lambda: _playbook(mode=Mode.OFF)),
    (G.MODE, "another playbook", lambda: _playbook(id="restart-pod")),
    *(
        (G.APPROVED, f"a plan that is {s}", lambda s=s: passing(state=s))
        for s in PlanState
        if s not in (PlanState.APPROVED, PlanState.RUNNING)
    ),
    (G.APPROVED, "nobody", lambda: passing(approvals=())),
    (G.APPROVED, "nobody, though none is asked for", lambda: _approved(needs=0)),
    (G.APPROVED, "nobody may", lambda: _playbook(approvers=())),
    (G.APPROVED, "another plan", lambda: _approved(approval(ANN, OURS, plan_id="00000000"))),
    (G.APPROVED, "another commitment", lambda: _approved(approval(ANN, OURS, plan_hash="0" * 64))),
    (G.APPROVED, "no commitment", lambda: _approved(approval(ANN, OURS, plan_hash=""))),
    (G.APPROVED, "a stranger", lambda: _approved(approval(_person(groups=("slack-group:S2",)), OURS))),
    (G.APPROVED, "a name is no id", lambda: replace(_playbook(approvers=("ann",)), approvals=(approval(ANN, OURS),))),
    (G.APPROVED, "one of two", lambda: _approved(approval(ANN, OURS), needs=2)),
    (
        G.APPROVED,
        "the first of two was taken off the list since",
        lambda: replace(
            _playbook(approvals=2, approvers=(BOB.id,)), approvals=(approval(ANN, OURS), approval(BOB, OURS))
        ),
    ),
    (G.APPROVED, "the same person twice", lambda: _approved(approval(ANN, OURS), approval(ANN, OURS), needs=2)),
    (
        G.APPROVED,
        "the same human by another id",
        lambda: _approved(approval(ANN, OURS), approval(replace(BOB, id="kubernetes:ann"), OURS), needs=2),
    ),
    (
        G.APPROVED,
        "one human through a third id",
        lambda: _approved(
            approval(ANN, OURS),
            approval(BOB, OURS),
            approval(replace(BOB, id="x:y", is_same_as=("slack:U1", "slack:U2")), OURS),
            needs=2,
        ),
    ),
    (
        G.APPROVED,
        "two, one of them a stranger",
        lambda: _approved(approval(ANN, OURS), approval(replace(BOB, groups=()), OURS), needs=2),
    ),
    (
        G.APPROVED,
        "at the second of expiry",
        lambda: replace(
            _approved(approval(_person(verified_at=OURS.expires_at), OURS, at=OURS.expires_at)),
            now=OURS.expires_at,
            as_of=OURS.expires_at,
            evidence=tuple(replace(e, seen_at=OURS.expires_at) for e in passing().evidence),
        ),
    ),
    (
        G.APPROVED,
        "before it was proposed",
        lambda: _approved(approval(_person(verified_at=OURS.proposed_at), OURS, at=OURS.proposed_at - 5 * S - US)),
    ),
    (G.APPROVED, "in the future", lambda: _approved(approval(_person(verified_at=NOW), OURS, at=NOW + 5 * S + US))),
    (G.APPROVED, "not verified", lambda: _approved(approval(_person(verified_at=None), OURS))),
    (G.APPROVED, "verified too long before", lambda: _approved(approval(_person(verified_at=NOW - 65 * S - US), OURS))),
    (G.APPROVED, "verified afterwards", lambda: _approved(approval(_person(verified_at=NOW + US), OURS))),
    (G.APPROVED, "too long ago", lambda: _old_approval(timedelta(minutes=15) + US)),
    (G.APPROVED, "carried out before", lambda: passing(history=(_own_run(PlanState.SUCCEEDED),))),
    (G.APPROVED, "carried out before, nobody knows how", lambda: passing(history=(_own_run(PlanState.UNKNOWN),))),
    (G.BREAKER, "open", lambda: passing(breaker=Breaker(opened_at=NOW, failures=((NOW, "a"),)))),
    (G.FREEZE, "a date", lambda: passing(freezes=(Freeze(name="f", start=NOW, end=NOW + US),))),
    (
        G.FREEZE,
        "the second window",
        lambda: passing(
            freezes=(Freeze(name="past", start=NOW - S, end=NOW), Freeze(name="wednesdays", weekdays=(2,)))
        ),
    ),
    (
        G.FREEZE,
        "since yesterday",
        lambda: passing(freezes=(Freeze(name="n", weekdays=(1,), since=time(22), until=time(4)),)),
    ),
    (G.FRESH, "a blind kind", lambda: passing(blind=(("Pod", BLIND),))),
    (G.FRESH, "behind", lambda: passing(as_of=NOW - timedelta(minutes=2) - US)),
    (G.FRESH, "ahead", lambda: passing(as_of=NOW + 5 * S + US)),
    (G.FRESH, "a conflict that cannot be told", lambda: _conflict(ConflictReason.UNKNOWN)),
    (G.POOL_TURNED_BAD, "it did", lambda: passing(pool_turned_bad=True)),
    (G.POOL_TURNED_BAD, "nobody knows", lambda: passing(pool_turned_bad=BLIND)),
    (G.TWO_FACTS, "none", lambda: passing(evidence=())),
    (G.TWO_FACTS, "one", lambda: _evidence(("scheduler", 0 * S))),
    (G.TWO_FACTS, "two of one source", lambda: _evidence(("scheduler", 0 * S), ("scheduler", S))),
    (G.TWO_FACTS, "one is old", lambda: _evidence(("scheduler", 0 * S), ("ledger", 120 * S + US))),
    (G.TWO_FACTS, "one is of the future", lambda: _evidence(("scheduler", 0 * S), ("ledger", -5 * S - US))),
    (G.TWO_FACTS, "to evict", lambda: passing(EVICT, evidence=())),
    (G.TWO_FACTS, "to cordon", lambda: passing(CORDON, evidence=())),
    (G.TWO_FACTS, "to prepare what disrupts", lambda: passing(evidence=(), actions=(STEER,))),
    (G.STILL_NEEDED, "over", lambda: passing(is_needed=False)),
    (
        G.STILL_NEEDED,
        "over, in the middle of a run",
        lambda: passing(is_needed=False, done=1, actions=OURS.actions[1:]),
    ),
    (G.STILL_NEEDED, "nobody knows", lambda: passing(is_needed=BLIND)),
    (G.STILL_NEEDED, "fewer replicas would do", lambda: _wide(live=_narrow(after=3))),
    (G.STILL_NEEDED, "fewer steps would do", lambda: _wide(live=_narrow_steps())),
    (G.STILL_NEEDED, "fewer pods would do", lambda: _live(plan(victims=()))),
    (G.STILL_NEEDED, "fewer GPUs would do", lambda: _live(plan(gpus=1))),
    (G.STILL_NEEDED, "a shorter lease would do", lambda: _live(plan(lease=timedelta(hours=1)))),
    (G.UNCHANGED, "a victim not looked at", lambda: _without(VICTIM)),
    (
        G.UNCHANGED,
        "a derived object not looked at",
        lambda: replace(passing(), targets=tuple(t for t in passing().targets if t.ref != CHILD)),
    ),
    (G.UNCHANGED, "gone", lambda: _target(is_gone=True)),
    (G.UNCHANGED, "a victim is gone", lambda: _target(VICTIM, is_gone=True)),
    (G.UNCHANGED, "made anew", lambda: _target(ref=_uid(DONOR, "another"))),
    (G.UNCHANGED, "a victim made anew", lambda: _target(VICTIM, ref=_uid(VICTIM, "another"))),
    (G.UNCHANGED, "a derived object made anew", lambda: _target(CHILD, ref=_uid(CHILD, "another"))),
    (G.UNCHANGED, "live uid not known", lambda: _target(ref=_uid(DONOR, ""))),
    (G.UNCHANGED, "agreed uid not known", lambda: passing(plan(scale(target=_uid(DONOR, ""))))),
    (G.UNCHANGED, "a pod to evict made anew", lambda: _target(VICTIM, of=EVICT, ref=_uid(VICTIM, "another"))),
    (G.UNCHANGED, "a node to cordon made anew", lambda: _target(NODE, of=CORDON, ref=_uid(NODE, "another"))),
    (G.UNCHANGED, "one replica more", lambda: _target(replicas=5)),
    (G.UNCHANGED, "one replica fewer", lambda: _target(replicas=3)),
    (G.UNCHANGED, "replicas not known", lambda: _target(replicas=None)),
    (G.UNCHANGED, "another value", lambda: _value(DONOR, MIN, 3)),
    (G.UNCHANGED, "a value of another type", lambda: _value(DONOR, MIN, "4")),
    (G.UNCHANGED, "no value", lambda: _value(DONOR, MIN, None)),
    (G.UNCHANGED, "another list entry", lambda: _value(DONOR, FORMAT, "sklearn")),
    (G.UNCHANGED, "another value of the derived object", lambda: _value(CHILD, "/spec/replicas", 7)),
    (G.UNCHANGED, "true is not one", lambda: _true_for_one()),
    *(
        (G.UNCHANGED, f"conflict {c}", lambda c=c: _conflict(c))
        for c in ConflictReason
        if c not in {ConflictReason.OPTED_OUT, ConflictReason.FLOOR, ConflictReason.BUDGET, ConflictReason.UNKNOWN}
    ),
    (G.NOT_WIDER, "no step", lambda: passing(actions=())),
    (G.NOT_WIDER, "a step of another plan", lambda: passing(actions=(scale(4, 2),))),
    (G.NOT_WIDER, "one of two steps is foreign", lambda: passing(actions=(STEER, scale(4, 2)))),
    (G.NOT_WIDER, "steps out of order", lambda: passing(actions=OURS.actions[::-1])),
    (G.NOT_WIDER, "a step skipped", lambda: passing(actions=OURS.actions[1:])),
    (G.NOT_WIDER, "a step again", lambda: passing(actions=OURS.actions[:1], done=1)),
    (G.NOT_WIDER, "more than all steps", lambda: passing(actions=OURS.actions[1:], done=2)),
    (G.NOT_WIDER, "negative count", lambda: passing(actions=OURS.actions[:1], done=-2)),
    (G.NOT_WIDER, "not planned anew", lambda: passing(live=None)),
    (G.NOT_WIDER, "no plan now", lambda: _live(None, NoPlanReason.NO_DONOR)),
    (G.NOT_WIDER, "fewer left", lambda: _live(plan(STEER, scale(4, 2)))),
    (G.NOT_WIDER, "counted from elsewhere", lambda: _live(plan(STEER, scale(5, 4)))),
    (G.NOT_WIDER, "from fewer to fewer", lambda: _live(plan(STEER, scale(3, 3)))),
    (G.NOT_WIDER, "another donor", lambda: _live(plan(STEER, scale(target=replace(DONOR, name="ranker", uid="x"))))),
    (G.NOT_WIDER, "a new donor of the same name", lambda: _live(plan(STEER, scale(target=_uid(DONOR, "new"))))),
    (G.NOT_WIDER, "another component", lambda: _live(plan(STEER, scale(component="router")))),
    (G.NOT_WIDER, "bigger replicas", lambda: _live(plan(STEER, scale(unit_gpus=4)))),
    (G.NOT_WIDER, "more pods per replica", lambda: _live(plan(STEER, scale(unit_pods=2)))),
    (G.NOT_WIDER, "one donor more", lambda: _live(plan(*OURS.actions, scale(target=replace(DONOR, name="ranker"))))),
    (G.NOT_WIDER, "another victim", lambda: _live(plan(Steer(pods=(replace(VICTIM, name="x"),)), scale()))),
    (G.NOT_WIDER, "more pods", lambda: _live(plan(victims=(("a", "b"), ("c", "d"))))),
    (G.NOT_WIDER, "more GPUs", lambda: _live(plan(gpus=3))),
    (G.NOT_WIDER, "a longer lease", lambda: _live(plan(lease=timedelta(hours=2) + US))),
    (G.NOT_WIDER, "another cluster", lambda: _live(plan(cluster="prod-us", gpus=1))),
    (G.NOT_WIDER, "another playbook", lambda: _live(plan(playbook="restart-pod", gpus=1))),
    (G.NOT_WIDER, "for somebody else", lambda: _live(plan(need=_need(component="prefill"), gpus=1))),
    (G.NOT_WIDER, "for another workload", lambda: _live(plan(need=_need(workload=("prod", "qwen")), gpus=1))),
    (G.NOT_WIDER, "for nobody", lambda: _live(plan(need=None, gpus=1))),
    (G.LIMITS, "too many replicas", lambda: passing(plan(STEER, scale(4, 1)))),
    (
        G.LIMITS,
        "too many replicas of two donors",
        lambda: passing(plan(scale(4, 3), scale(4, 2, target=replace(DONOR, name="ranker"), also=()))),
    ),
    (
        G.LIMITS,
        "too many pods to evict",
        lambda: replace(
            passing(mending_plan(EvictPod(pod=VICTIM))), playbook=replace(_some_playbook(), most_replicas=0)
        ),
    ),
    (G.LIMITS, "too many GPUs", lambda: passing(plan(STEER, scale(unit_gpus=9)))),
    (
        G.LIMITS,
        "too many GPUs of two donors",
        lambda: passing(plan(scale(unit_gpus=4), scale(unit_gpus=5, target=replace(DONOR, name="ranker"), also=()))),
    ),
    (G.LIMITS, "too many GPUs of two replicas", lambda: passing(plan(STEER, scale(4, 2, unit_gpus=5)))),
    (G.LIMITS, "too many GPUs freed", lambda: passing(plan(gpus=9))),
    (G.LIMITS, "more pods than the steps take", lambda: passing(plan(victims=(("a", "b"), ("c", "d"))))),
    (G.LIMITS, "no reduction", lambda: passing(plan(STEER, scale(4, 4), victims=()))),
    (G.LIMITS, "a growth", lambda: passing(plan(STEER, scale(4, 5)))),
    (G.LIMITS, "fewer than none", lambda: _target(of=plan(STEER, scale(1, -1)), floor=-1)),
    (G.LIMITS, "a step that the playbook has not", lambda: _playbook(steps=("scale",))),
    (G.LIMITS, "a longer lease", lambda: passing(plan(lease=timedelta(hours=2) + US))),
    (G.LIMITS, "never given back", lambda: passing(plan(lease=timedelta(0)))),
    (G.OPT_OUT, "by its owner", lambda: _target(opted_out="annotation on namespace batch")),
    (G.OPT_OUT, "of a victim", lambda: _target(VICTIM, opted_out="annotation")),
    (G.OPT_OUT, "as a conflict", lambda: _conflict(ConflictReason.OPTED_OUT)),
    (G.FLOOR, "below", lambda: _target(floor=4)),
    (G.FLOOR, "not known", lambda: _target(floor=BLIND)),
    (G.FLOOR, "not asked for", lambda: _target(floor=None)),
    (G.FLOOR, "as a conflict", lambda: _conflict(ConflictReason.FLOOR)),
    (G.BUDGET_OF_PODS, "no room", lambda: passing(budgets=(PodBudget(name="b/x", allowed=0, victims=1),))),
    (
        G.BUDGET_OF_PODS,
        "the second has no room",
        lambda: passing(
            budgets=(PodBudget(name="b/x", allowed=1, victims=1), PodBudget(name="b/y", allowed=1, victims=2))
        ),
    ),
    (G.BUDGET_OF_PODS, "room not known", lambda: passing(budgets=(PodBudget(name="b/x", allowed=BLIND, victims=0),))),
    (G.BUDGET_OF_PODS, "budgets not known", lambda: passing(budgets=BLIND)),
    (G.BUDGET_OF_PODS, "as a conflict", lambda: _conflict(ConflictReason.BUDGET)),
    *(
        (G.COOLDOWN, f"after {s}", lambda s=s: _run(state=s, ended_at=NOW - timedelta(minutes=30) + US))
        for s in PlanState
        if s not in (PlanState.RUNNING, PlanState.UNKNOWN)
    ),
    (G.COOLDOWN, "when the end is not known", lambda: _run(ended_at=None, started_at=NOW - timedelta(minutes=29))),
    (
        G.COOLDOWN,
        "the second run",
        lambda: replace(passing(), history=(*_run().history, *_run(plan_id="later", ended_at=NOW).history)),
    ),
    (G.COOLDOWN, "the same node", lambda: _mended(CORDON, touches=(_uid(NODE, "older"),))),
    (G.COOLDOWN, "another pod of the same incident", lambda: _mended(EVICT, incident="incident-1")),
    (G.CONCURRENT, "as many as allowed", lambda: passing(history=_runs(S, state=PlanState.RUNNING, ended_at=None))),
    (
        G.CONCURRENT,
        "on the same object, by another playbook",
        lambda: _run(playbook="other", state=PlanState.RUNNING, ended_at=None),
    ),
    (G.CONCURRENT, "on the same object, outcome unknown", lambda: _run(state=PlanState.UNKNOWN)),
    (
        G.CONCURRENT,
        "for the same incident",
        lambda: passing(
            history=_runs(S, playbook="other", incident="incident-1", state=PlanState.RUNNING, ended_at=None)
        ),
    ),
    (
        G.CONCURRENT,
        "on the same object, just begun",
        lambda: _run(state=PlanState.RUNNING, started_at=NOW, ended_at=None),
    ),
    (G.CONCURRENT, "on an object that lends", lambda: _run(state=PlanState.SUCCEEDED, lends=True)),
    (G.CONCURRENT, "none is allowed", lambda: _playbook(most_concurrent=0)),
    (G.DAILY_BUDGET, "used up", lambda: passing(history=_runs(*[timedelta(hours=h) for h in range(2, 12)]))),
    (G.DAILY_BUDGET, "used up to the last moment", lambda: passing(history=_runs(*[timedelta(hours=24) - US] * 10))),
    (G.DAILY_BUDGET, "none is allowed", lambda: _playbook(most_runs_per_day=0)),
]

ORDER = {"steps out of order", "a step skipped", "a step again", "more than all steps", "negative count"}
"""A dry run may try the steps in any number and order."""

ALLOWED: list[tuple[str, Make]] = [
    ("the switch was turned off again", lambda: passing(switch=Switch(is_on=False, by="ann", at=NOW))),
    ("while it runs", lambda: passing(state=PlanState.RUNNING, history=(_own_run(PlanState.RUNNING),))),
    ("approved, and listed among the runs", lambda: passing(history=(_own_run(PlanState.APPROVED),))),
    ("by id", lambda: replace(_playbook(approvers=("slack:U1",)), approvals=(approval(ANN, OURS),))),
    (
        "by another id of the same human",
        lambda: replace(_playbook(approvers=("kubernetes:ann",)), approvals=(approval(ANN, OURS),)),
    ),
    ("by two humans", lambda: _approved(approval(ANN, OURS), approval(BOB, OURS), needs=2)),
    (
        "by two, and a stranger tried",
        lambda: _approved(
            approval(ANN, OURS), approval(replace(BOB, id="slack:U3", groups=()), OURS), approval(BOB, OURS), needs=2
        ),
    ),
    ("a moment before it expires", lambda: _last_moment()),
    (
        "clocks differ: proposed",
        lambda: _approved(approval(_person(verified_at=OURS.proposed_at), OURS, at=OURS.proposed_at - 5 * S)),
    ),
    ("clocks differ: approved", lambda: _approved(approval(_person(verified_at=NOW), OURS, at=NOW + 5 * S))),
    ("clocks differ: verified", lambda: _approved(approval(_person(verified_at=NOW), OURS))),
    ("verified a minute before", lambda: _approved(approval(_person(verified_at=NOW - 65 * S), OURS))),
    ("approved a quarter of an hour ago", lambda: _old_approval(timedelta(minutes=15))),
    ("the second approval counts", lambda: _old_approval(timedelta(minutes=16), again=True)),
    (
        "no window is open",
        lambda: passing(freezes=(Freeze(name="over", start=NOW - S, end=NOW), Freeze(name="t", weekdays=(3,)))),
    ),
    ("two minutes behind", lambda: passing(as_of=NOW - timedelta(minutes=2))),
    ("five seconds ahead", lambda: passing(as_of=NOW + 5 * S)),
    ("facts at the edge of what is fresh", lambda: _evidence(("a", 120 * S), ("b", -5 * S))),
    ("three facts of two sources", lambda: _evidence(("a", S), ("a", S), ("b", S))),
    ("only steering needs no facts", lambda: passing(plan(STEER, victims=(), lease=timedelta(0)), evidence=())),
    ("values that nobody named", lambda: _value(DONOR, "/spec/other", 9)),
    ("no values can be seen", lambda: _target(values=())),
    ("at the floor", lambda: _target(floor=3)),
    ("no floor at all", lambda: _target(floor=0)),
    ("exactly the room of a budget", lambda: passing(budgets=(PodBudget(name="b/x", allowed=1, victims=1),))),
    ("a budget without victims", lambda: passing(budgets=(PodBudget(name="b/x", allowed=0, victims=0),))),
    ("to evict", lambda: passing(EVICT)),
    ("to cordon", lambda: passing(CORDON)),
    (
        "to evict, with an equal answer of planning",
        lambda: passing(EVICT, live=Answer(plan=mending_plan(EvictPod(pod=VICTIM), title="again"))),
    ),
    ("the first step alone", lambda: passing(actions=OURS.actions[:1])),
    ("the second step", lambda: passing(actions=OURS.actions[1:], done=1)),
    ("the second step, planning sees our first", lambda: passing(actions=OURS.actions[1:], done=1, live=None)),
    (
        "the second step, planning answers otherwise",
        lambda: _live(plan(STEER, scale(4, 2)), actions=OURS.actions[1:], done=1),
    ),
    (
        "the second step, planning finds nobody waiting",
        lambda: _live(None, NoPlanReason.NOBODY_WAITS, actions=OURS.actions[1:], done=1),
    ),
    ("the second step, less would do", lambda: _live(plan(gpus=1), actions=OURS.actions[1:], done=1)),
    ("trying all steps at once", lambda: passing(purpose=Purpose.DRY_RUN)),
    ("trying the second step", lambda: passing(purpose=Purpose.DRY_RUN, actions=OURS.actions[1:])),
    ("an equal plan, made anew", lambda: _live(plan(title="other words", proposed_at=NOW))),
    (
        "exactly the limits",
        lambda: passing(plan(STEER, scale(4, 2, unit_gpus=4), victims=(("a", "b"), ("c", "d")), gpus=8)),
    ),
    ("limits of GPUs that become free", lambda: passing(plan(gpus=8))),
    ("to zero", lambda: _to_zero()),
    ("replicas of two pods", lambda: passing(plan(STEER, scale(unit_pods=2), victims=(("a", "b"), ("c", "d"))))),
    ("a shorter lease", lambda: passing(plan(lease=timedelta(hours=1)))),
    ("a playbook that does not lend", lambda: _no_lease()),
    (
        "one pod, and one is allowed",
        lambda: replace(passing(EVICT), playbook=replace(_some_playbook(), most_replicas=1)),
    ),
    ("the cooldown is over", lambda: _run(ended_at=NOW - timedelta(minutes=30))),
    ("another playbook's run", lambda: _run(playbook="other", ended_at=NOW)),
    ("a run on another object", lambda: _run(touches=(replace(DONOR, name="ranker"),), ended_at=NOW)),
    ("a run on a namesake", lambda: _run(touches=(replace(DONOR, namespace="dev"),), ended_at=NOW)),
    ("a run on another kind", lambda: _run(touches=(replace(DONOR, kind="Pod"),), ended_at=NOW)),
    ("another donor for the same incident", lambda: _run(touches=(), incident="incident-1", ended_at=NOW)),
    ("another incident of the playbook that mends", lambda: _mended(EVICT)),
    ("nothing touches nothing", lambda: _run(touches=(), ended_at=NOW)),
    (
        "fewer than allowed at once",
        lambda: replace(_playbook(most_concurrent=2), history=_runs(S, state=PlanState.RUNNING, ended_at=None)),
    ),
    (
        "another playbook runs",
        lambda: passing(history=_runs(S, playbook="other", state=PlanState.RUNNING, ended_at=None)),
    ),
    ("an unknown run elsewhere", lambda: passing(history=_runs(timedelta(hours=2), state=PlanState.UNKNOWN))),
    (
        "an unknown run for the same incident",
        lambda: passing(history=_runs(timedelta(hours=2), incident="incident-1", state=PlanState.UNKNOWN)),
    ),
    ("an ended run on the same object", lambda: _run()),
    ("one run a day fewer", lambda: passing(history=_runs(*[timedelta(hours=h) for h in range(2, 11)]))),
    ("a day ago is another day", lambda: passing(history=_runs(*[timedelta(hours=24)] * 10))),
    ("other playbooks' runs", lambda: passing(history=_runs(*[timedelta(hours=2)] * 10, playbook="other"))),
    ("one run told of ten times", lambda: passing(history=_runs(timedelta(hours=2)) * 10)),
    ("its own run", lambda: passing(state=PlanState.RUNNING, history=(_own_run(PlanState.RUNNING),) * 10)),
]

GIVING_BACK: list[tuple[str, bool, Make]] = [
    ("as we left it", True, lambda: _target(replicas=3, values=((MIN, 3), (FORMAT, "x")))),
    ("as it was before us", True, lambda: _target(replicas=4, values=((MIN, 4),))),
    ("one more than before us", False, lambda: _target(replicas=5)),
    ("one fewer than we left", False, lambda: _target(replicas=2)),
    ("replicas not known", False, lambda: _target(replicas=None)),
    ("a value of somebody else", False, lambda: _target(replicas=3, values=((MIN, 9),))),
    ("a value of another type", False, lambda: _target(replicas=3, values=((MIN, "3"),))),
    ("a value that we did not set", True, lambda: _target(replicas=3, values=(("/spec/other", 9),))),
    ("a derived value of somebody else", False, lambda: _value(CHILD, "/spec/replicas", 9)),
    ("a derived value as we left it", True, lambda: _value(CHILD, "/spec/replicas", 3)),
    (
        "a derived object that is gone",
        True,
        lambda: replace(passing(), targets=tuple(t for t in passing().targets if t.ref != CHILD)),
    ),
    ("the donor is gone", False, lambda: _target(is_gone=True)),
    ("the donor cannot be seen", False, lambda: _target(sight=BLIND)),
    ("the donor was not looked at", False, lambda: replace(passing(), targets=())),
    ("the donor was made anew", False, lambda: _target(ref=_uid(DONOR, "another"))),
    ("the donor's uid was never known", True, lambda: passing(plan(scale(target=_uid(DONOR, ""))))),
    ("the victim is gone, as it should be", True, lambda: _target(VICTIM, is_gone=True)),
    ("an autoscaler rules it now", True, lambda: _conflict(ConflictReason.AUTOSCALED)),
    ("one step of two", True, lambda: passing(actions=OURS.actions[1:])),
    ("steps in the order of going back", True, lambda: passing(actions=OURS.actions[::-1])),
    ("a step of another plan", False, lambda: passing(actions=(scale(4, 2),))),
    ("no step", False, lambda: passing(actions=())),
    ("another cluster", False, lambda: passing(cluster="prod-us")),
    ("a cordoned node", True, lambda: passing(CORDON)),
    ("a cordoned node is gone", False, lambda: _target(NODE, of=CORDON, is_gone=True)),
    ("a cordoned node was made anew", False, lambda: _target(NODE, of=CORDON, ref=_uid(NODE, "x"))),
    ("an evicted pod is gone", True, lambda: _target(VICTIM, of=EVICT, is_gone=True)),
]


_BOTH = [
    (p, g, i, m) for p in (Purpose.DRY_RUN, Purpose.APPLY) for g, i, m in REFUSED if not (p is p.DRY_RUN and i in ORDER)
]


@pytest.mark.parametrize(
    ("purpose", "guard", "make"), [(p, g, m) for p, g, _, m in _BOTH], ids=[f"{p} {g}: {i}" for p, g, i, _ in _BOTH]
)
def test_refused_by_exactly_this_guard(purpose: Purpose, guard: GuardName, make: Make) -> None:
    """
    The one thing that is wrong is found by the guard that is there for it, and by no other.
    """
    question = replace(make(), purpose=purpose)

    assert [r.guard for r in refusals(question)] == [guard]


@pytest.mark.parametrize("make", [m for _, m in ALLOWED], ids=[i for i, _ in ALLOWED])
def test_let_pass(make: Make) -> None:
    """
    What lies just on the right side of a limit passes.
    """
    assert refusals(make()) == ()


@pytest.mark.parametrize("purpose", [Purpose.UNDO, Purpose.RESTORE], ids=str)
@pytest.mark.parametrize(("passes", "make"), [(p, m) for _, p, m in GIVING_BACK], ids=[i for i, _, _ in GIVING_BACK])
def test_giving_back(passes: bool, make: Make, purpose: Purpose) -> None:
    """
    We put back what we took, and touch nothing that somebody changed since.
    """
    assert (refusals(replace(make(), purpose=purpose)) == ()) is passes


@pytest.mark.parametrize(
    "make",
    [
        lambda: _target(sight=BLIND),
        lambda: _without(DONOR),
        lambda: replace(passing(), playbook=None),
        lambda: _live(None, NoPlanReason.NOBODY_WAITS),
        lambda: _live(None, NoPlanReason.AUTOSCALER_ADDING),
        lambda: _live(None, NoPlanReason.NOT_A_SHORTAGE),
        lambda: _live(None, NoPlanReason.PREEMPTION_HELPS),
    ],
    ids=[
        "blind for the donor",
        "not looked at",
        "no playbook",
        "nobody waits",
        "autoscaler adds",
        "no shortage",
        "preemption",
    ],
)
def test_refused_by_several(make: Make) -> None:
    """
    What concerns several guards is refused by each of them.
    """
    expected = {
        (G.FRESH, G.UNCHANGED),
        (G.UNCHANGED, G.FLOOR),
        (G.MODE, G.APPROVED, G.LIMITS, G.COOLDOWN, G.CONCURRENT, G.DAILY_BUDGET),
        (G.STILL_NEEDED, G.NOT_WIDER),
    }

    assert tuple(r.guard for r in refusals(make())) in expected


def test_a_refusal_says_what_would_have_to_change() -> None:
    """
    The words name the object, the numbers and the person, and stay on one line.
    """
    texts = {f"{g}: {i}": refusals(make())[0].text for g, i, make in REFUSED}

    assert texts["floor: below"] == "InferenceService batch/summarizer must keep 4 replicas, and the plan leaves 3"
    assert texts["approved: a stranger"] == "0 of 1 approvals count: ann may not approve free-gpu-capacity"
    assert texts["kill-switch: on"] == "the kill switch is on by somebody; nothing new until it is off"
    assert texts["pod-disruption-budget: no room"] == "PodDisruptionBudget b/x lets 0 pods go, and 1 would"
    assert texts["two-facts: one"] == "only scheduler says so; two facts from different sources are needed"
    assert texts["unchanged: one replica more"] == (
        "InferenceService batch/summarizer asks for 5 replicas now, and 4 were agreed to"
    )
    assert texts["unchanged: replicas not known"] == (
        "InferenceService batch/summarizer asks for an unknown number of replicas now, and 4 were agreed to"
    )
    assert texts["approved: too long ago"].startswith("approved at 02:47:30 UTC, which is too long ago")
    given_back = refusals(replace(_target(replicas=None), purpose=Purpose.RESTORE))[0].text
    assert given_back.endswith("it asks for an unknown number of replicas, and we left 3")
    given_back = refusals(replace(_target(replicas=7), purpose=Purpose.RESTORE))[0].text
    assert given_back.endswith("it asks for 7 replicas, and we left 3")
    assert all(text and "\n" not in text and text[0] != " " for text in texts.values())


def _old_approval(age: timedelta, *, again: bool = False) -> Question:
    """The plan was made half an hour ago; `again`: two are asked for, and the other came only now."""
    of = plan(proposed_at=NOW - timedelta(minutes=30))
    then = NOW - age
    first = approval(_person(verified_at=then), of, at=then)
    question = replace(passing(of), approvals=(first,))
    if again:
        question = replace(_playbook(approvals=2), plan=of, live=Answer(plan=of), approvals=(first, approval(BOB, of)))
    return question


def _own_run(state: PlanState) -> PastRun:
    return PastRun(
        plan_id=OURS.id,
        playbook=OURS.playbook,
        incident=OURS.incident,
        touches=OURS.touches,
        state=state,
        started_at=NOW,
    )


def _last_moment() -> Question:
    at = OURS.expires_at - US
    evidence = tuple(replace(e, seen_at=at) for e in passing().evidence)
    return passing(approvals=(approval(_person(verified_at=at), OURS, at=at),), now=at, as_of=at, evidence=evidence)


def _without(which: ObjectRef) -> Question:
    return replace(passing(), targets=tuple(t for t in passing().targets if t.ref != which))


def _need(**more: Any) -> Any:
    assert OURS.need is not None
    return replace(OURS.need, **more)


def _some_playbook() -> Any:
    return replace(passing(EVICT).playbook)  # type: ignore[type-var]


def _wide(live: Plan) -> Question:
    """A plan over two donors of which one gives two replicas."""
    return passing(_two_donors(), live=Answer(plan=live))


def _two_donors(after: int = 3, **more: Any) -> Plan:
    other = scale(4, 3, target=replace(DONOR, name="ranker", uid="uid-ranker"), also=())
    return plan(STEER, scale(4, after), other, victims=(("a", "b"), ("c", "d")), gpus=4, **more)


def _narrow(after: int) -> Plan:
    return replace(_two_donors(after), gpus=3)


def _narrow_steps() -> Plan:
    return plan()


def _true_for_one() -> Question:
    one = scale(4, 3, edits=(Edit("/spec/x", 1, 0),), tests=(action.Test("/spec/y", 1),), also=())
    of = plan(one)
    target = Target(ref=DONOR, replicas=4, floor=1, values=(("/spec/x", True),))
    return passing(of, targets=(target,))


def _to_zero() -> Question:
    of = plan(STEER, scale(1, 0))
    return replace(passing(of), targets=tuple(replace(t, floor=0) if t.floor else t for t in passing(of).targets))


def _no_lease() -> Question:
    of = plan(lease=timedelta(0))
    question = passing(of)
    assert question.playbook is not None
    return replace(question, playbook=replace(question.playbook, lease=timedelta(0)))


def _mended(of: Plan, **more: Any) -> Question:
    history = _runs(timedelta(hours=2), **({"ended_at": NOW, "incident": "incident-0"} | more))
    return passing(of, history=history)
