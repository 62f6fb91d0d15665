"""Plans that mend one object: which object is meant, which is not, and what asks for it."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import Any

import pytest
from msgspec.structs import replace

from sevenhop.core.alerts.alert import Alert, AlertState
from sevenhop.core.effects import Act
from sevenhop.core.engine import Engine, Step
from sevenhop.core.events import Decided, Event, StepDone, StepResult, Verb
from sevenhop.core.facts.table import FACTS
from sevenhop.core.incidents.settings import DeskSettings
from sevenhop.core.inventory.inventory import Inventory
from sevenhop.core.inventory.policy import Policy
from sevenhop.core.objects.base import Object, OwnerRef
from sevenhop.core.remediation.action import Cordon, EvictPod
from sevenhop.core.remediation.approvals import decide
from sevenhop.core.remediation.cards import buttons_of
from sevenhop.core.remediation.case import Case, Stage
from sevenhop.core.remediation.object_plans import evidence_for, plan_object
from sevenhop.core.remediation.permit import Permit, Purpose
from sevenhop.core.remediation.plan import Answer, NoPlanReason
from sevenhop.core.remediation.playbook import Goal, Mode, Playbook
from sevenhop.core.remediation.settings import RemediationSettings
from sevenhop.core.remediation.states import PlanState
from sevenhop.core.subject import Subject, SubjectKind
from sevenhop.frameworks import FRAMEWORKS
from sevenhop.frameworks.scaling import SCALING
from sevenhop.rulebook.load import load_rulebook
from tests.builders import Feed, at, deployment, node, pod, pod_of, replicaset
from tests.shared import ROOT
from tests.unit.remediation.desk.desk_scene import person

RESTART = Playbook(id="restart-pod", steps=("evict-pod",), mode=Mode.APPROVE, goal=Goal.OWNER_READY, lease=timedelta(0))
CORDON = Playbook(id="cordon-node", steps=("cordon",), mode=Mode.APPROVE, goal=Goal.NODE_CORDONED, lease=timedelta(0))
PLUGIN = Playbook(
    id="restart-device-plugin",
    steps=("evict-pod",),
    mode=Mode.APPROVE,
    approvers=("slack:U-ann",),
    goal=Goal.NODE_ADVERTISES,
    lease=timedelta(0),
    no_progress=timedelta(minutes=5),
)
SERVER = deployment("chat", replicas=3, gpus=1)
REPLICAS = replicaset(SERVER)
BROKEN: dict[str, Any] = {
    "waiting": "CrashLoopBackOff", "message": "back-off", "restarts": 4, "exit_code": 137, "last_end": at(5),
}  # fmt: skip


def inventory(*objects: Object) -> Inventory:
    feed = Feed()
    made = Inventory("test", FRAMEWORKS, Policy())
    for event in [*feed.synced(), *feed.applied(SERVER, REPLICAS, *objects, seconds=10)]:
        made.apply(event)
    made.settle(at(10))
    made.settle(at(20))
    return made


def alert_on(subject: Subject, **labels: str) -> Alert:
    return Alert(
        rule_id="r",
        rule_digest="d",
        cluster="test",
        subject=subject,
        state=AlertState.FIRING,
        since=at(0),
        labels=labels,
    )


def component(name: str = "chat/engine") -> Subject:
    return Subject(SubjectKind.COMPONENT, "prod", name)


def answer(made: Inventory, playbook: Playbook, *subjects: Subject, **labels: str) -> Answer:
    alerts = [alert_on(subject, **labels) for subject in subjects]
    return plan_object(made.state, alerts, playbook, "incident", at(20))


def chat(*broken: str, nodes: Sequence[str] = ("gpu-0", "gpu-1", "gpu-2")) -> list[Object]:
    made: list[Object] = [node(name, gpus=4) for name in nodes]
    return [
        *made,
        *(pod_of(REPLICAS, name, node=name, **(BROKEN if name in broken else {})) for name in nodes),
    ]


def test_the_one_stuck_pod_is_removed_and_two_sources_ask_for_it() -> None:
    """One of three pods is stuck: it is the plan, by its uid, and kubelet and siblings speak for it."""
    made = inventory(*chat("gpu-1"))
    found = answer(made, RESTART, component())
    assert found.plan is not None
    (action,) = found.plan.actions
    assert isinstance(action, EvictPod)
    assert (action.pod.name, action.pod.uid) == ("chat-aaaa-gpu-1", "uid-prod-chat-aaaa-gpu-1")
    assert {e.source for e in evidence_for(made.state, found.plan, at(20))} >= {"kubelet", "peers"}
    assert found.plan.lease == timedelta(0)


def test_several_stuck_pods_are_no_case_for_a_restart() -> None:
    """What all have in common is not mended by removing one."""
    found = answer(inventory(*chat("gpu-1", "gpu-2")), RESTART, component())
    assert (found.plan, found.reason) == (None, NoPlanReason.NOT_SAFE)
    assert len(found.considered) == 2


def test_nobody_is_stuck() -> None:
    """A component that is well needs no restart."""
    assert answer(inventory(*chat()), RESTART, component()).reason is NoPlanReason.NOBODY_WAITS


@pytest.mark.parametrize(
    "owners",
    [(), (OwnerRef(kind="Trainer", name="t", uid="u", api_version="example.com/v1", controller=True),)],
    ids=["bare pod", "an owner that we do not know"],
)
def test_a_pod_that_nobody_makes_again_stays(owners: tuple[OwnerRef, ...]) -> None:
    """A bare pod would be lost, and of an unknown owner nobody can say."""
    stuck = pod("lonely", node="gpu-0", gpus=1, owners=owners, **BROKEN)
    made = inventory(*chat(), stuck)
    row = made.state.rows[("prod", "lonely")]
    found = answer(made, RESTART, component(f"{row.workload[1]}/{row.component}"))
    assert (found.plan, found.reason) == (None, NoPlanReason.NOT_SAFE)


def test_the_node_of_a_lost_gpu_is_cordoned() -> None:
    """The alert is on a GPU, and its label names the node."""
    gpu = Subject(SubjectKind.GPU, "", "GPU-1")
    found = answer(inventory(*chat()), CORDON, gpu, node="gpu-1")
    assert found.plan is not None
    (action,) = found.plan.actions
    assert isinstance(action, Cordon)
    assert action.node.name == "gpu-1"


@pytest.mark.parametrize(
    ("nodes", "reason"),
    [
        pytest.param([node("gpu-9", gpus=4, cordoned=True)], NoPlanReason.NOBODY_WAITS, id="cordoned-already"),
        pytest.param([], NoPlanReason.NOBODY_WAITS, id="gone"),
    ],
)
def test_no_cordon_without_need(nodes: list[Object], reason: NoPlanReason) -> None:
    """A node that is out of service already, or gone, is left alone."""
    found = answer(inventory(*chat(), *nodes), CORDON, Subject(SubjectKind.NODE, "", "gpu-9"))
    assert (found.plan, found.reason) == (None, reason)


def test_two_nodes_are_two_decisions() -> None:
    """One plan touches one node."""
    subjects = [Subject(SubjectKind.NODE, "", name) for name in ("gpu-0", "gpu-1")]
    assert answer(inventory(*chat()), CORDON, *subjects).reason is NoPlanReason.NOT_SAFE


def test_nothing_is_planned_blind() -> None:
    """Before everything is listed there is no plan, and the reason says what is not seen."""
    made = Inventory("test", FRAMEWORKS, Policy())
    made.settle(at(0))
    found = answer(made, RESTART, component())
    assert found.reason is NoPlanReason.UNKNOWN
    assert "not_synced" in found.text


def plugin_pod(name: str = "nvidia-device-plugin-x1", **more: Any) -> Object:
    daemons = OwnerRef(kind="DaemonSet", name="nvidia-device-plugin", uid="ds", api_version="apps/v1", controller=True)
    return pod(
        name, "gpu-operator", node="gpu-0", owners=(daemons,), image="nvcr.io/nvidia/k8s-device-plugin:v1", **more
    )


class Machine:
    def __init__(self) -> None:
        rules = load_rulebook([ROOT / "rules" / "discovery"], FACTS).rules
        settings = RemediationSettings(playbooks={PLUGIN.id: PLUGIN})
        desk = DeskSettings(receivers=("console",), group_wait=timedelta(0))
        self.engine = Engine("test", FRAMEWORKS, tuple(rules), Policy(), desk, settings, SCALING)
        self.feed = Feed()
        self.acts: list[Act] = []
        self.step = Step()
        self.seconds = 0.0

    def tell(self, events: Sequence[Event], seconds: float) -> Step:
        self.seconds = seconds
        self.step = self.engine.handle(events, at(seconds))
        self.acts += [effect for effect in self.step.effects if isinstance(effect, Act)]
        return self.step

    def until(self, seconds: float) -> None:
        while (wake := self.step.next_wake) is not None and wake <= at(seconds):
            self.tell((), max(self.seconds, (wake - at(0)).total_seconds()))
        self.tell((), seconds)


def test_a_device_plugin_is_restarted_and_verified_by_what_the_node_offers() -> None:
    """From the alert to success: proposed, approved, the pod removed, and the goal is the node's full count."""
    machine = Machine()
    machine.tell(machine.feed.synced(), 0)
    machine.tell(machine.feed.applied(node("gpu-0", gpus=2, capacity=4), plugin_pod(ready=False), seconds=1), 1)
    machine.until(400)
    (case,) = list(machine.engine.remediation.cases)
    assert case.state is PlanState.PROPOSED, case
    decided = Decided(
        at=at(400), request_id="r", person=person("ann", 400), verb=Verb.APPROVE, plan_id=case.id, via="slack"
    )
    (reply,) = machine.tell([decided], 400).replies
    assert reply.accepted, reply.text
    for purpose in (Purpose.DRY_RUN, Purpose.APPLY):
        act = machine.acts.pop()
        assert act.purpose is purpose
        assert isinstance(machine.engine.permit(act, at(400)), Permit)
        assert act.borrow is None
        machine.tell([StepDone(at=at(400), effect_id=act.id, result=StepResult.DONE)], 400)
    machine.tell(machine.feed.deleted(plugin_pod()), 401)
    machine.until(410)
    state = machine.engine.remediation.cases.get(case.id)
    assert state is not None
    assert state.state is PlanState.RUNNING
    machine.tell(machine.feed.applied(node("gpu-0", gpus=4), plugin_pod("nvidia-device-plugin-x2"), seconds=411), 411)
    machine.until(420)
    state = machine.engine.remediation.cases.get(case.id)
    assert state is not None
    assert state.state is PlanState.SUCCEEDED
    assert state.is_over
    assert machine.acts == []


def test_a_removed_pod_that_does_not_help_cannot_be_put_back() -> None:
    """Without the goal the run failed, and the words say that what was done cannot be undone."""
    machine = Machine()
    machine.tell(machine.feed.synced(), 0)
    machine.tell(machine.feed.applied(node("gpu-0", gpus=2, capacity=4), plugin_pod(ready=False), seconds=1), 1)
    machine.until(400)
    (case,) = list(machine.engine.remediation.cases)
    decided = Decided(
        at=at(400), request_id="r", person=person("ann", 400), verb=Verb.APPROVE, plan_id=case.id, via="slack"
    )
    machine.tell([decided], 400)
    for _ in range(2):
        machine.tell([StepDone(at=at(400), effect_id=machine.acts.pop().id, result=StepResult.DONE)], 400)
    machine.until(400 + PLUGIN.no_progress.total_seconds() + 10)
    after = machine.engine.remediation.cases.get(case.id)
    assert after is not None
    assert after.state is PlanState.FAILED
    assert "cannot be undone" in after.why
    assert machine.acts == []


def test_a_cordon_that_helped_is_undone_by_a_person() -> None:
    """A cordon has no lease: it stays until an approver takes it back, once."""
    found = answer(inventory(*chat()), CORDON, Subject(SubjectKind.NODE, "", "gpu-1"))
    assert found.plan is not None
    case = Case(plan=found.plan, state=PlanState.SUCCEEDED, since=at(20), stage=Stage.OVER, started_at=at(10))
    assert buttons_of(case) == (Verb.UNDO,)
    playbook = replace(CORDON, approvers=("slack:U-ann",))
    event = Decided(at=at(30), request_id="u", person=person("ann", 30), verb=Verb.UNDO, plan_id=case.id, via="slack")
    decision = decide(case, event, playbook, lambda _, _purpose: (), at(30))
    assert decision.accepted
    assert decision.case.asked is not None
    assert decision.case.asked.purpose is Purpose.RESTORE
    again = decide(decision.case, replace(event, request_id="v"), playbook, lambda _, _purpose: (), at(31))
    assert not again.accepted
