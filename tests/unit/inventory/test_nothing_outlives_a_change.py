"""What was kept so as not to be worked out again never outlives what it was made from."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from sevenhop.core import events as e
from sevenhop.core.facts.schema import Facts
from sevenhop.core.inventory.inventory import Inventory
from sevenhop.core.inventory.policy import Policy
from sevenhop.core.objects.base import LabelSelector, Object
from sevenhop.core.objects.cluster import PdbSpec, PodDisruptionBudget
from sevenhop.core.objects.kinds import KINDS
from sevenhop.core.objects.pod import Pod
from sevenhop.core.subject import Subject, SubjectKind
from sevenhop.frameworks import FRAMEWORKS
from tests import builders as b
from tests.unit.inventory.scenes import Scene

A100 = "NVIDIA-A100-SXM4-80GB"
CHAT = b.deployment("chat", gpus=2, replicas=2)
SETS = (b.replicaset(CHAT, "aaaa"), b.replicaset(CHAT, "bbbb"))
OTHER = b.deployment("talk", gpus=2, image="org/other:1", args=())
OTHERS = b.replicaset(OTHER, "cccc")
COMPONENT = "component:prod/chat/engine"
WAITS = "0/2 nodes are available: 2 Insufficient nvidia.com/gpu."

Step = tuple[str, Any]


def _pod(name: str, of: int, node: str, product: str, *, uid: int, gang: str, plugin: bool, **status: Any) -> Pod:
    owner = (*SETS, OTHERS)[of]
    labels = {"app": "nvidia-device-plugin" if plugin else "chat"}  # whose it is, its owner says
    if not node:
        status = {"unschedulable": WAITS} if status["ready"] else {}
    made = b.pod_of(
        owner, "x", labels=labels, node=node, selector={"nvidia.com/gpu.product": product} if product else {}, **status
    )
    made.metadata.name, made.metadata.uid = name, f"{name}-{uid}"
    made.metadata.annotations = {"scheduling.k8s.io/group-name": gang} if gang else {}
    return made


def _named(name: str, pod: Pod) -> Pod:
    pod.metadata.name = name
    return pod


PODS = st.builds(
    _pod,
    st.sampled_from(("p0", "p1", "p2")),
    st.integers(0, 2),
    st.sampled_from(("", "n0", "n1")),
    st.sampled_from(("", A100, b.H100)),
    uid=st.integers(0, 1),
    gang=st.sampled_from(("", "g")),
    plugin=st.booleans(),
    ready=st.booleans(),
    priority=st.sampled_from((None, -10, 2_000_000)),
    gpus=st.sampled_from((1, 4)),
)
GRAPH = b.dynamo("llama", decode=1, prefill=1)
PARTS = st.builds(
    lambda part, node: _named("llama-x", b.dynamo_pod(GRAPH, part, "x", uid="llama-x", node=node)),
    st.sampled_from(("decode", "prefill")),
    st.sampled_from(("", "n0")),
)
NODES = st.builds(
    b.node,
    st.sampled_from(("n0", "n1")),
    gpus=st.sampled_from((0, 4)),
    capacity=st.just(4),
    product=st.sampled_from((A100, b.H100)),
    ready=st.booleans(),
    cordoned=st.booleans(),
)
ROOTS = st.builds(
    lambda told: b.deployment("chat", gpus=2, replicas=2, annotations=told),
    st.sampled_from(
        ({}, {"sevenhop.dev/tier": "critical"}, {"sevenhop.dev/tier": "batch"}, {"sevenhop.dev/owner": "a"})
    ),
)
BUDGETS = st.builds(
    lambda least, app: PodDisruptionBudget(
        metadata=b.meta("floor"),
        spec=PdbSpec(min_available=least, selector=LabelSelector(match_labels={"app": app})),
    ),
    st.integers(1, 2),
    st.sampled_from(("chat", "nvidia-device-plugin")),
)
GONE = st.sampled_from([("Pod", "p0"), ("Pod", "p1"), ("Node", "n0"), ("Deployment.apps", "chat"), ("ReplicaSet.apps", "chat-aaaa")])  # fmt: skip # noqa: E501
SEEN = st.tuples(
    st.sampled_from(("PersistentVolumeClaim", "Node", "Pod", "RayService.ray.io")), st.sampled_from(e.SyncState)
)
STEPS = st.one_of(
    st.one_of(PODS, PODS, NODES, ROOTS, BUDGETS, PARTS, st.sampled_from((*SETS, OTHERS))).map(lambda o: ("put", o)),
    GONE.map(lambda which: ("gone", which)),
    SEEN.map(lambda state: ("seen", state)),
)


def _event(step: Step, number: int) -> e.Event:
    what, which = step
    known: dict[str, Any] = {"at": b.at(number), "epoch": 1, "seq": number}
    if what == "put":
        made = b.copy_of(which)
        made.metadata.resource_version = str(number)
        return e.Applied(kind=b.kind_name(made), obj=made, **known)
    if what == "gone":
        kind, name = which
        return e.Deleted(kind=kind, namespace="" if kind == "Node" else "prod", name=name, uid="", **known)
    return e.SourceChanged(kind=which[0], state=which[1], **known)


def _last(steps: list[Step]) -> list[Step]:
    """Only what still stands at the end."""
    objects: dict[tuple[str, str], Object] = {}
    states: dict[str, e.SyncState] = {}
    for what, which in steps:
        if what == "put":
            objects[(b.kind_name(which), which.metadata.name)] = which
        elif what == "gone":
            objects.pop(which, None)
        else:
            states[which[0]] = which[1]
    return [*(("seen", each) for each in states.items()), *(("put", each) for each in objects.values())]


def _facts(steps: list[Step], *, each: bool) -> dict[Subject, Facts]:
    inventory = Inventory("test", FRAMEWORKS, Policy())
    for kind in KINDS:
        inventory.apply(e.SourceChanged(at=b.NOON, epoch=1, seq=0, kind=kind, state=e.SyncState.SYNCED))
    for number, step in enumerate(steps, 1):
        inventory.apply(_event(step, number))
        if each:
            inventory.settle(b.at(number))
    inventory.settle(b.at(400))
    inventory.settle(b.at(401))
    return inventory.facts


_HISTORIES = ("since", "restarts", "node.gpu.expected", "node.gpu.missing")
"""What is told of earlier versions on purpose."""


@settings(max_examples=200, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.lists(STEPS, max_size=20))
def test_one_change_after_another_ends_in_what_the_last_versions_say(steps: list[Step]) -> None:
    """
    Whatever changed together with a status: labels, owner, gang, selector, uid, product, tier, what can be seen.
    """
    steps = [("put", CHAT), ("put", OTHER), ("put", GRAPH), *(("put", each) for each in (*SETS, OTHERS)), *steps]
    told, anew = _facts(steps, each=True), _facts(_last(steps), each=False)
    different = [
        f"{subject} {name}: {facts[name]} / {anew.get(subject, {}).get(name)}"
        for subject, facts in told.items()
        if subject.kind is not SubjectKind.SOURCE
        for name in facts
        if not any(word in name for word in _HISTORIES) and facts[name] != anew.get(subject, {}).get(name)
    ]
    assert (different, told.keys()) == ([], anew.keys())


@pytest.mark.parametrize("label", ["scheduling.k8s.io/group-name", "pod-group-name"])
def test_a_gang_that_is_told_of_later(label: str) -> None:
    """Whether pods work together may be written after some have a node: the workload's facts follow."""
    placed, waits = b.pod_of(SETS[0], "a", node="n"), b.pod_of(SETS[0], "b", unschedulable=WAITS)
    of = Scene(b.node("n", gpus=2), CHAT, SETS[0], placed, waits)
    for pod in (placed, waits):
        assert of.fact("workload:prod/chat", "gang_incomplete") is False
        told = b.copy_of(pod)
        told.metadata.labels = told.metadata.annotations = {label: "g"}
        of.put(told)
    assert of.fact("workload:prod/chat", "gang_incomplete") is True


def test_a_selector_that_changes_while_the_pod_is_held() -> None:
    """Kueue writes selectors into pods that are gated: which pool it will wait for may be another one then."""
    held = b.pod_of(SETS[0], "a", gates=("kueue.x-k8s.io/admission",))
    of = Scene(b.node("n", gpus=8), b.node("m", gpus=4, product=A100), CHAT, SETS[0], held)
    assert of.fact(COMPONENT, "product") == b.H100
    of.put(b.pod_of(SETS[0], "a", gates=("kueue.x-k8s.io/admission",), selector={"nvidia.com/gpu.product": A100}))
    assert of.fact(COMPONENT, "product") == A100


@pytest.mark.parametrize("state", [e.SyncState.FORBIDDEN, e.SyncState.NO_SOURCE, e.SyncState.STALE], ids=str)
def test_a_verdict_lasts_as_long_as_what_is_absent_can_be_seen(state: e.SyncState) -> None:
    """A claim that is not there is missing while claims can be seen, and unknown while they cannot."""
    volumes = [{"name": "w", "persistentVolumeClaim": {"claimName": "w"}}]
    made = msgspec.to_builtins(b.pod_of(SETS[0], "a", unschedulable=""))
    of = Scene(
        b.node("n", gpus=8), CHAT, SETS[0], msgspec.convert(made | {"spec": made["spec"] | {"volumes": volumes}}, Pod)
    )
    causes = []
    for number, now in enumerate((e.SyncState.SYNCED, state, e.SyncState.SYNCED, state), 1):
        of.seconds = 60 * number
        of.source("PersistentVolumeClaim", state=now)
        of.wait(60 * number + 30)
        causes.append(of.inventory.state.rows[("prod", "chat-aaaa-a")].pending)
    assert [why.cause if why is not None else "" for why in causes] == ["pvc-missing", "unknown"] * 2


def test_devices_that_are_told_of_after_the_pod_runs_are_held_once() -> None:
    """The claim that the scheduler makes for an extended resource is told in the status alone."""
    before = b.pod_of(SETS[0], "a", node="n")
    after = b.copy_of(before)
    assert isinstance(after, Pod)
    after.status.extended_resource_claim_status = {"resourceClaimName": "c", "requestMappings": []}
    of = Scene(b.node("n", gpus=8), CHAT, SETS[0], before)
    epoch = len(of.inventory.state.placement.log), of.inventory.state.placement.epoch
    of.put(after)
    assert (len(of.inventory.state.placement.log), of.inventory.state.placement.epoch) != epoch
