"""Owners who say no: on the object, on its workload, or on its namespace."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from sevenhop.core.inventory.inventory import Inventory
from sevenhop.core.inventory.policy import Policy
from sevenhop.core.objects.cluster import Namespace
from sevenhop.core.objects.pod import Pod
from sevenhop.core.remediation.action import Cordon, EvictPod, ObjectRef
from sevenhop.core.remediation.case import Case, Stage
from sevenhop.core.remediation.consent import REMEDIATION, refusal_for, refusal_in
from sevenhop.core.remediation.permit import Purpose
from sevenhop.core.remediation.plan import Plan
from sevenhop.core.remediation.questions import targets_of
from sevenhop.core.remediation.states import PlanState
from sevenhop.frameworks import FRAMEWORKS
from sevenhop.frameworks.scaling import SCALING
from tests.builders import Feed, at, deployment, meta, node, pod_of, replicaset

NO = {REMEDIATION: "off"}
POD = ObjectRef("Pod", "prod", "chat-aaaa-0")
NODE = ObjectRef("Node", "", "gpu-0")


def told(pod: Pod, words: dict[str, str]) -> Pod:
    return replace(pod, metadata=replace(pod.metadata, annotations=words))


def world(where: str, words: dict[str, str]) -> Inventory:
    """A served model on one node; one of its objects carries the annotation."""

    def on(place: str) -> dict[str, str]:
        return words if where == place else {}

    feed = Feed()
    server = deployment("chat", replicas=1, gpus=1, annotations=on("workload"))
    replicas = replicaset(server)
    objects = [
        node("gpu-0", gpus=4, annotations=on("node")),
        Namespace(metadata=meta("prod", "", annotations=on("namespace"))),
        server,
        replicas,
        told(pod_of(replicas, "0", node="gpu-0"), on("pod")),
    ]
    made = Inventory("test", FRAMEWORKS, Policy())
    for event in [*feed.synced(), *feed.applied(*objects, seconds=10)]:
        made.apply(event)
    made.settle(at(10))
    return made


@pytest.mark.parametrize(
    ("where", "ref", "says_no"),
    [
        ("pod", POD, "Pod prod/chat-aaaa-0"),
        ("workload", POD, "Deployment prod/chat"),
        ("namespace", POD, "Namespace prod"),
        ("node", NODE, "Node gpu-0"),
        ("node", POD, ""),
        ("namespace", NODE, ""),
        ("nobody", POD, ""),
    ],
)
def test_who_is_asked(where: str, ref: ObjectRef, says_no: str) -> None:
    """A pod's workload and namespace speak for it; a node speaks for itself."""
    refusal = refusal_for(world(where, NO).state, ref)

    assert refusal.startswith(says_no) if says_no else refusal == ""


@pytest.mark.parametrize(
    ("word", "is_no"), [("off", True), ("OFF", True), ("never", True), ("", True), ("allow", False)]
)
def test_what_is_a_no(word: str, is_no: bool) -> None:
    """A word that is not ours counts as no."""
    assert bool(refusal_for(world("pod", {REMEDIATION: word}).state, POD)) is is_no


@pytest.mark.parametrize(
    ("where", "action"),
    [("workload", EvictPod(pod=POD)), ("namespace", EvictPod(pod=POD)), ("node", Cordon(node=NODE))],
)
def test_the_guards_hear_of_it(where: str, action: EvictPod | Cordon) -> None:
    """Before something is done; not when it is taken back."""
    state = world(where, NO).state
    plan = Plan(
        cluster="test", playbook="p", incident="i", actions=(action,), title="t", proposed_at=at(20), expires_at=at(99)
    )
    case = Case(plan=plan, state=PlanState.APPROVED, since=at(20), stage=Stage.TRYING)
    [before] = targets_of(state, SCALING, case, plan.actions, Purpose.APPLY)
    [back] = targets_of(state, SCALING, case, plan.actions, Purpose.UNDO)

    assert before.opted_out
    assert not back.opted_out


@pytest.mark.parametrize(
    ("word", "said"),
    [
        (None, ""),
        ("allow", ""),
        ("off", 'Node n says sevenhop.dev/remediation: "off"; remove it to allow'),
        (
            "No",
            (
                'Node n says sevenhop.dev/remediation: "No", which is not a word of ours (allow, off) and is taken as '
                "off; remove it to allow"
            ),
        ),
    ],
)
def test_a_no_in_words(word: str | None, said: str) -> None:
    """Where it stands, what it says, and what would help; a misspelt word is told apart from ours."""
    assert refusal_in({} if word is None else {REMEDIATION: word}, "Node n") == said


def test_a_pod_that_is_not_known_is_spoken_for_by_its_namespace() -> None:
    """Nothing of it but its place is needed for that; and without a namespace nobody speaks."""
    state = world("namespace", NO).state
    assert refusal_for(state, ObjectRef("Pod", "prod", "unknown")).startswith("Namespace prod")
    assert refusal_for(state, ObjectRef("Deployment.apps", "prod", "chat")).startswith("Namespace prod")
    assert refusal_for(state, ObjectRef("Node", "", "unknown")) == ""
