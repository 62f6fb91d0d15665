"""A question that every guard lets pass, and how to change it: for tests of guards, and for whoever needs a permit."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from msgspec.structs import replace

from sevenhop.core.remediation.action import Action, Cordon, Edit, EvictPod, ObjectRef, Scale, Steer, Test
from sevenhop.core.remediation.guards import judge
from sevenhop.core.remediation.guards_breaker import Breaker
from sevenhop.core.remediation.guards_question import Approval, Evidence, Question, Switch, Target, touched
from sevenhop.core.remediation.permit import Permit, Purpose
from sevenhop.core.remediation.person import Person
from sevenhop.core.remediation.plan import Answer, Need, Plan
from sevenhop.core.remediation.playbook import Goal, Mode, Playbook
from sevenhop.core.remediation.states import PlanState

NOW = datetime(2026, 3, 4, 3, 2, 31, tzinfo=UTC)  # a Wednesday
DONOR = ObjectRef("InferenceService.serving.kserve.io", "batch", "summarizer", "uid-donor")
CHILD = ObjectRef("Deployment.apps", "batch", "summarizer-predictor", "uid-child")
VICTIM = ObjectRef("Pod", "batch", "summarizer-2", "uid-victim")
NODE = ObjectRef("Node", "", "gpu-05", "uid-node")

ANN = Person(
    id="slack:U1",
    name="ann",
    groups=("slack-group:S1",),
    is_same_as=("kubernetes:ann",),
    verified_at=NOW - timedelta(seconds=20),
)
BOB = Person(id="slack:U2", name="bob", groups=("slack-group:S1",), verified_at=NOW - timedelta(seconds=20))

PLAYBOOK = Playbook(
    id="free-gpu-capacity",
    steps=("steer", "scale"),
    mode=Mode.APPROVE,
    approvers=("slack-group:S1",),
    goal=Goal.BENEFICIARY_READY,
    most_replicas=2,
    most_gpus=8,
)


def scale(before: int = 4, after: int = 3, **more: Any) -> Scale:
    """The donor's one field, and a derived object that makes the change last."""
    pointer = "/spec/predictor/minReplicas"
    given: dict[str, Any] = {
        "target": DONOR,
        "edits": (Edit(pointer, before, after),),
        "tests": (Test("/spec/predictor/model/modelFormat/name", "huggingface"),),
        "also": ((CHILD, (Edit("/spec/replicas", before, after),), ()),),
        "marked": DONOR,
        "workload": ("batch", "summarizer"),
        "component": "predictor",
        "unit_gpus": 2,
    }
    return Scale(before=before, after=after, **(given | more))


def plan(*actions: Action, **more: Any) -> Plan:
    """Summarizer gives one replica to a waiting decode worker."""
    given: dict[str, Any] = {
        "cluster": "prod-eu",
        "playbook": PLAYBOOK.id,
        "incident": "incident-1",
        "need": Need(
            workload=("prod", "llama-70b"), component="decode", tier="critical", pods=(("prod", "decode-7"),), gpus=2,
            product="H100", ready_goal=4,
        ),
        "victims": (("batch", "summarizer-2"),),
        "nodes": ("gpu-07",),
        "gpus": 2,
        "lease": timedelta(hours=2),
        "title": "summarizer 4 → 3",
        "proposed_at": NOW - timedelta(minutes=5),
        "expires_at": NOW + timedelta(minutes=10),
    }  # fmt: skip
    return Plan(actions=actions or (Steer(pods=(VICTIM,)), scale()), **(given | more))


def mending_plan(action: EvictPod | Cordon, **more: Any) -> Plan:
    """A plan that mends an object in place: nobody waits, nothing is lent."""
    return plan(
        action, **({"need": None, "victims": (), "nodes": (), "gpus": 0, "lease": timedelta(0), "title": "mend"} | more)
    )


def targets_of(actions: tuple[Action, ...]) -> tuple[Target, ...]:
    """Everything as it was agreed to."""
    scales = {s.target: s for s in actions if isinstance(s, Scale)}
    values = {
        ref: e
        for s in actions
        if isinstance(s, Scale)
        for ref, e in ((s.target, s.edits), *((r, e) for r, e, _ in s.also))
    }
    tests = {s.target: s.tests for s in actions if isinstance(s, Scale)}
    return tuple(
        Target(
            ref=ref,
            replicas=scales[ref].before if ref in scales else None,
            floor=1 if ref in scales else None,
            values=(
                *((e.pointer, e.before) for e in values.get(ref, ())),
                *((t.pointer, t.value) for t in tests.get(ref, ())),
            ),
        )
        for ref in touched(actions)
    )


def approval(person: Person, of: Plan, **more: Any) -> Approval:
    """A yes that counts, five seconds ago."""
    given: dict[str, Any] = {"plan_id": of.id, "plan_hash": of.hash, "at": NOW - timedelta(seconds=5), "via": "slack"}
    return Approval(person=person, **(given | more))


def passing(of: Plan | None = None, **more: Any) -> Question:
    """A question that every guard lets pass, with some fields given otherwise."""
    of = of or plan()
    given: dict[str, Any] = {
        "cluster": "prod-eu",
        "plan": of,
        "purpose": Purpose.APPLY,
        "effect_id": f"{of.id}/1-apply",
        "actions": of.actions,
        "done": 0,
        "now": NOW,
        "state": PlanState.SUCCEEDED if more.get("purpose") is Purpose.EXTEND else PlanState.APPROVED,
        "playbook": replace(PLAYBOOK, id=of.playbook, steps=("steer", "scale", "evict-pod", "cordon")),
        "switch": Switch(),
        "breaker": Breaker(),
        "freezes": (),
        "approvals": (approval(ANN, of),),
        "extensions": (approval(ANN, of),),
        "history": (),
        "targets": targets_of(more.get("actions", of.actions)),
        "budgets": (),
        "is_needed": True,
        "live": Answer(plan=of),
        "evidence": (
            Evidence(fact="component.waiting.cause", source="ledger", seen_at=NOW),
            Evidence(fact="PodScheduled", source="scheduler", seen_at=NOW - timedelta(seconds=30)),
        ),
        "blind": (),
        "as_of": NOW,
        "pool_turned_bad": False,
    }
    return Question(**(given | more))


def permit(of: Plan, purpose: Purpose, effect_id: str, now: datetime = NOW) -> Permit:
    """Leave for a step of any plan, as the guards give it for a question that nothing stands against."""
    shift = now - NOW
    of_now = replace(of, proposed_at=of.proposed_at, expires_at=max(of.expires_at, now + timedelta(minutes=1)))
    person = replace(ANN, verified_at=now)
    found = judge(
        passing(
            of_now,
            cluster=of.cluster,
            purpose=purpose,
            effect_id=effect_id,
            now=now,
            as_of=now,
            playbook=replace(
                PLAYBOOK, id=of.playbook, steps=("steer", "scale", "evict-pod", "cordon"), most_replicas=10**6,
                most_gpus=10**6, lease=of.lease,
            ),
            approvals=(approval(person, of_now, at=now),),
            extensions=(approval(person, of_now, at=now),),
            evidence=tuple(replace(e, seen_at=e.seen_at + shift) for e in passing().evidence),
        )
    )  # fmt: skip
    assert isinstance(found, Permit), str(found)
    return found
