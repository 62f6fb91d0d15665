"""Pods that the live API server refuses to a ReplicaSet: we compute why from quotas, limits, classes and labels."""

from __future__ import annotations

import os
import random
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import pytest

from sevenhop.core.hops.diagnosis import Diagnosis
from sevenhop.core.hops.scheduling import why_not_created
from sevenhop.core.objects.cluster import Controller
from tests.saying import Say
from tests.scheduler_cases import put, synced
from tests.testbed import build, nodes
from tests.testbed.client import Object
from tests.testbed.cluster import Cluster
from tests.testbed.waiting import eventually

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(900)]

ROUNDS = 8 if os.environ.get("SEVENHOP_ROUNDS") == "soak" else 1
GPU = "requests.nvidia.com/gpu"
SEEN = (
    ("v1", "Pod"),
    ("v1", "ResourceQuota"),
    ("v1", "LimitRange"),
    ("scheduling.k8s.io/v1", "PriorityClass"),
    ("v1", "Namespace"),
)


@dataclass
class Case:
    """
    One namespace with a ReplicaSet of one pod.

    Attributes:
        cause: Why the pod is refused; empty if it is not.
        labels: Of the namespace.
        others: Quotas and limits.
        pods: What runs there already.
        spec: Of the pod, as `build.pod_spec` takes it.
    """

    cause: str = ""
    labels: dict[str, str] = field(default_factory=dict)
    others: list[Object] = field(default_factory=list)
    pods: list[dict[str, Any]] = field(default_factory=list)
    spec: dict[str, Any] = field(default_factory=dict)


def _quota(hard: dict[str, str], **spec: Any) -> Object:
    return {"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "team"}, "spec": {"hard": hard, **spec}}


def _limits(**limit: Any) -> Object:
    limits = [{"type": "Container", **limit}]
    return {"apiVersion": "v1", "kind": "LimitRange", "metadata": {"name": "team"}, "spec": {"limits": limits}}


def _gpus(dice: random.Random) -> Case:
    used, wanted = dice.choice([0, 2, 4]), dice.choice([1, 2, 3])
    pods = [{"gpus": used}] if used else []
    cause = "resource-quota" if used + wanted > 4 else ""
    return Case(cause, others=[_quota({GPU: "4"})], pods=pods, spec={"gpus": wanted})


def _pods(dice: random.Random) -> Case:
    there = dice.choice([1, 2])
    cause = "resource-quota" if there >= 2 else ""
    return Case(cause, others=[_quota({dice.choice(["pods", "count/pods"]): "2"})], pods=[{}] * there)


def _cores(dice: random.Random) -> Case:
    there, wanted = dice.choice([("500m", "1500m"), ("600m", "1500m"), ("1", "1")])
    cause = "resource-quota" if there == "600m" else ""
    quota = _quota({dice.choice(["cpu", "requests.cpu"]): "2"})
    return Case(cause, others=[quota], pods=[{"cpu": there}], spec={"cpu": wanted})


def _must_state_limits(dice: random.Random) -> Case:
    """A quota on limits wants every container to state one; a LimitRange may state it for them."""
    defaults = [_limits(default={"cpu": "2"})] if dice.random() < 0.5 else []
    return Case("" if defaults else "resource-quota", others=[_quota({"limits.cpu": "4"}), *defaults])


def _scoped(dice: random.Random) -> Case:
    """A quota that speaks of other pods does not bind this one."""
    scopes = dice.choice(["BestEffort", "Terminating", "NotTerminating", "NotBestEffort"])
    cause = "resource-quota" if scopes.startswith("Not") else ""
    return Case(cause, others=[_quota({"pods": "0"}, scopes=[scopes])])


def _of_a_class(dice: random.Random) -> Case:
    ranked = dice.random() < 0.5
    match = {"scopeName": "PriorityClass", "operator": "In", "values": ["system-cluster-critical", "dear"]}
    quota = _quota({"pods": "0"}, scopeSelector={"matchExpressions": [match]})
    return Case("resource-quota" if ranked else "", others=[quota], spec={"priority_class": "dear"} if ranked else {})


def _container_limits(dice: random.Random) -> Case:
    bound, refuses = dice.choice([
        ({"max": {"cpu": "2"}}, True), ({"min": {"memory": "2Gi"}}, True), ({"max": {"cpu": "8"}}, False),
        ({"max": {"nvidia.com/gpu": "1"}}, True), ({"max": {"nvidia.com/gpu": "2"}}, False),
    ])  # fmt: skip
    return Case("limit-range" if refuses else "", others=[_limits(**bound)], spec={"cpu": "4", "gpus": 2})


def _pod_limits(dice: random.Random) -> Case:
    """What a pod may have at most, it must state."""
    most, stated = dice.choice(["512Mi", "64Gi"]), dice.random() < 0.5
    defaults = [{"type": "Container", "default": {"memory": "2Gi"}, "defaultRequest": {"memory": "1Gi"}}]
    limits = _limits()
    limits["spec"]["limits"] = [{"type": "Pod", "max": {"memory": most}}, *(defaults if stated else [])]
    return Case("" if stated and most == "64Gi" else "limit-range", others=[limits])


def _security(dice: random.Random) -> Case:
    kernel, hardened = (
        [{"name": "kernel.msgmax", "value": "1"}],
        {
            "allowPrivilegeEscalation": False,
            "runAsNonRoot": True,
            "capabilities": {"drop": ["ALL"]},
            "seccompProfile": {"type": "RuntimeDefault"},
        },
    )
    files = [{"name": "f", "nfs": {"server": "s", "path": "/"}}]
    forms: list[tuple[str, dict[str, Any], bool]] = [
        ("baseline", {"securityContext": {"sysctls": kernel}}, True),
        ("baseline", {"securityContext": {"seccompProfile": {"type": "Unconfined"}}}, True),
        ("baseline", {"securityContext": {"seLinuxOptions": {"type": "spc_t"}}}, True),
        ("baseline", {"context": {"capabilities": {"add": ["SYS_ADMIN"]}}}, True),
        ("baseline", {"context": {"capabilities": {"add": ["CHOWN"]}}}, False),
        ("baseline", {"volumes": files}, False),
        ("restricted", {"context": hardened}, False),
        ("restricted", {"context": hardened, "volumes": files}, True),
        ("restricted", {"context": {**hardened, "runAsUser": 0}}, True),
        ("restricted", {"context": {**hardened, "capabilities": {"drop": ["ALL"], "add": ["CHOWN"]}}}, True),
        ("restricted", {}, True),
        ("baseline", {}, False),
        ("baseline", {"hostNetwork": True}, True),
        ("baseline", {"volumes": [{"name": "h", "hostPath": {"path": "/dev"}}]}, True),
        ("privileged", {"hostNetwork": True}, False),
    ]
    level, change, refuses = dice.choice(forms)
    labels = {"pod-security.kubernetes.io/enforce": level}
    return Case("pod-security" if refuses else "", labels=labels, spec=change)


def _class(dice: random.Random) -> Case:
    name, refuses = dice.choice([("nobody-made-it", True), ("dear", False)])
    return Case("priority-class-missing" if refuses else "", spec={"priority_class": name})


RECIPES: dict[str, Callable[[random.Random], Case]] = {
    "gpus": _gpus,
    "pods": _pods,
    "cores": _cores,
    "must-state-limits": _must_state_limits,
    "scoped": _scoped,
    "of-a-class": _of_a_class,
    "container-limits": _container_limits,
    "pod-limits": _pod_limits,
    "security": _security,
    "security-again": _security,
    "security-once-more": _security,
    "class": _class,
}


@dataclass
class Answer:
    """What the API server did, and what we said before it did."""

    recipe: str
    case: Case
    refused: str
    ours: Diagnosis | None


@pytest.fixture(scope="module")
def answers(testbed: Cluster) -> Iterator[list[Answer]]:
    """All recipes, `ROUNDS` times."""
    seed = int(os.environ.get("SEVENHOP_SEED") or time.time())
    print(f"seed {seed} (SEVENHOP_SEED repeats it)")
    dice = random.Random(seed)
    testbed.client.create(build.priority_class("dear", 1000))
    made: list[str] = []
    try:
        yield [
            _answered(testbed, f"refusal-{turn}-{recipe}", recipe, make(dice), made)
            for turn in range(ROUNDS)
            for recipe, make in RECIPES.items()
        ]
    finally:
        for name in made:
            testbed.client.delete("v1", "Namespace", name)
            nodes.kill_pods(testbed.client, name)
        testbed.client.delete("scheduling.k8s.io/v1", "PriorityClass", "dear")


def _answered(testbed: Cluster, name: str, recipe: str, case: Case, made: list[str]) -> Answer:
    client = testbed.client
    namespace = build.namespace(name)
    client.create({**namespace, "metadata": {**namespace["metadata"], "labels": case.labels}})
    made.append(name)
    for number, spec in enumerate(case.pods):
        client.create(build.pod(f"there-{number}", name, **spec))
    for other in case.others:
        client.create({**other, "metadata": {**other["metadata"], "namespace": name}})
    if any(other["kind"] == "ResourceQuota" for other in case.others):
        client.wait_for("v1", "ResourceQuota", "team", name, until=lambda quota: quota.get("status", {}).get("used"))
    seen = [each for version, kind in SEEN for each in client.list(version, kind)]
    set_ = _replica_set(client.create(_manifest(name, case.spec)))
    created = eventually(lambda: _outcome(client.get("apps/v1", "ReplicaSet", "model", name)), every=0.1)
    return Answer(recipe, case, created if created != "made" else "", _ours(seen, set_))


def _manifest(namespace: str, spec: dict[str, Any]) -> Object:
    labels = {"app": "model"}
    context = spec.get("context")
    made = build.pod_spec(**{key: value for key, value in spec.items() if key != "context"})
    if context:
        made["containers"][0]["securityContext"] = context
    template = {"metadata": {"labels": labels}, "spec": made}
    return {
        "apiVersion": "apps/v1",
        "kind": "ReplicaSet",
        "metadata": {"name": "model", "namespace": namespace},
        "spec": {"replicas": 1, "selector": {"matchLabels": labels}, "template": template},
    }


def _replica_set(created: Object) -> Object:
    """As it was made: its conditions would give the answer away."""
    return {**created, "status": {"replicas": 0}}


def _outcome(found: Object) -> str:
    status = found.get("status", {})
    if status.get("replicas"):
        return "made"
    refused = [each for each in status.get("conditions") or () if each["type"] == "ReplicaFailure"]
    return str(refused[0]["message"]) if refused else ""


def _ours(seen: list[Object], replica_set: Object) -> Diagnosis | None:
    objects = synced()
    for each in (*seen, replica_set):
        put(objects, each)
    meta = replica_set["metadata"]
    owner = objects.get("ReplicaSet.apps", meta["namespace"], meta["name"])
    assert isinstance(owner, Controller)
    return why_not_created(objects, "ReplicaSet.apps", owner)


def test_the_recipes_are_what_they_say(answers: list[Answer]) -> None:
    """The API server refuses what they say it refuses: otherwise the labels would be wrong."""
    wrong = [(a.recipe, a.case, a.refused) for a in answers if bool(a.case.cause) is not bool(a.refused)]
    assert not wrong


def test_what_is_refused_and_why_is_computed(answers: list[Answer], say: Say) -> None:
    """From objects alone, before the API server has said a word; nothing is claimed where it refuses nothing."""
    wrong = [(a.recipe, a.case, a.refused, a.ours) for a in answers if (a.ours.cause if a.ours else "") != a.case.cause]
    for recipe, case, refused, ours in wrong:
        say(f"{recipe} {case}: {refused!r}, ours {ours and (ours.cause, ours.summary)}")
    say(f"refusals: {len(answers) - len(wrong)} of {len(answers)}, {sum(bool(a.refused) for a in answers)} refused")
    assert not wrong
