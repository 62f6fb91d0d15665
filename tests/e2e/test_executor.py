"""The executor against the real API server, controllers and KubeRay operator."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
import yaml

from docs.render import REFERENCE
from sevenhop.actions.executor import ClusterExecutor
from sevenhop.core.effects import Act
from sevenhop.core.events import StepDone, StepResult
from sevenhop.core.remediation.action import Cordon, Edit, EvictPod, ObjectRef, Scale, Steer
from sevenhop.core.remediation.action import Test as Holds
from sevenhop.core.remediation.permit import Purpose
from sevenhop.runtime.writing import ApiTransport
from sevenhop.sources.kubernetes.connect import connect
from tests.testbed import build, nodes
from tests.testbed.client import Client, Object
from tests.testbed.cluster import ADMIN, VIEWER, Cluster
from tests.testbed.plugin import Pool
from tests.testbed.waiting import eventually
from tests.unit.actions.scene import BORROWED, COST, NOON, KilledError, Mortal, act, leave

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(120)]


class Hands:
    """An executor of one user, and what it did."""

    def __init__(self, transport: ApiTransport) -> None:
        self._transport = transport

    async def do(self, step: Act, *, uncertain: bool = False, dies_after: int | None = None) -> StepDone:
        executor = ClusterExecutor(Mortal(self._transport, dies_after), lambda: NOON)
        return await executor.deliver(step, uncertain=uncertain, permit=leave(step))


@asynccontextmanager
async def hands(testbed: Cluster, user: str = ADMIN) -> AsyncIterator[Hands]:
    async with await connect(str(testbed.kubeconfig(user))) as api:
        yield Hands(ApiTransport(api))


def ref(client: Client, api_version: str, kind: str, name: str, namespace: str = "") -> ObjectRef:
    found = client.get(api_version, kind, name, namespace)
    group = api_version.rpartition("/")[0]
    return ObjectRef(f"{kind}.{group}" if group else kind, namespace, name, found["metadata"]["uid"])


def scale_of(target: ObjectRef, *edits: Edit, **more: Any) -> Scale:
    given = {"marked": target, "workload": (target.namespace, target.name), "component": "main", **more}
    return Scale(target=target, edits=edits, before=3, after=2, **given)


def through_scale(target: ObjectRef) -> Scale:
    return scale_of(target, Edit("/spec/replicas", 3, 2), subresource="scale")


def donor(client: Client, namespace: str, pool: Pool) -> list[Object]:
    """A Deployment of three ready replicas; gives its pods."""
    pool.add_gpu_nodes(1)
    client.create(build.deployment("donor", namespace, replicas=3, gpus=1, **on(pool)))
    return ready_pods(client, namespace, "app=donor", 3)


def on(pool: Pool) -> dict[str, Any]:
    return {"node_selector": pool.node_selector, "tolerations": [{"operator": "Exists"}]}


def ready_pods(client: Client, namespace: str, labels: str, count: int) -> list[Object]:
    def look() -> list[Object] | None:
        found = [
            p for p in client.list("v1", "Pod", namespace, labels=labels) if not p["metadata"].get("deletionTimestamp")
        ]
        return found if len(found) == count and all(nodes.condition(p, "Ready") == "True" for p in found) else None

    return eventually(look, what=f"{count} ready pods of {labels}")


def names(pods: list[Object]) -> set[str]:
    return {str(pod["metadata"]["name"]) for pod in pods}


def pod_ref(pod: Object) -> ObjectRef:
    meta = pod["metadata"]
    return ObjectRef("Pod", meta["namespace"], meta["name"], meta["uid"])


def carried(client: Client, api_version: str, kind: str, name: str, namespace: str) -> dict[str, str]:
    return dict(client.get(api_version, kind, name, namespace)["metadata"].get("annotations") or {})


def reasons(client: Client, namespace: str) -> list[tuple[str, str]]:
    found = client.list("events.k8s.io/v1", "Event", namespace)
    ours = [e for e in found if e.get("reportingController") == "sevenhop.dev/remediator"]
    return sorted((e["reason"], e["regarding"]["name"]) for e in ours)


async def test_a_steered_deployment_gives_that_pod_and_gets_it_back(
    testbed: Cluster, namespace: str, pool: Pool
) -> None:
    """The ReplicaSet removes the pod that was named; the undo leaves no trace of ours but the Events."""
    client = testbed.client
    pods = donor(client, namespace, pool)
    target = ref(client, "apps/v1", "Deployment", "donor", namespace)
    victim = pods[1]
    actions = (Steer(pods=(pod_ref(victim),)), through_scale(target))
    before = carried(client, "apps/v1", "Deployment", "donor", namespace)
    async with hands(testbed) as ours:
        tried = await ours.do(act(*actions, purpose=Purpose.DRY_RUN))
        assert tried.result is StepResult.DONE, tried.detail
        assert carried(client, "apps/v1", "Deployment", "donor", namespace) == before
        done = await ours.do(act(*actions))
        assert done.result is StepResult.DONE, done.detail
        left = ready_pods(client, namespace, "app=donor", 2)
        assert names(pods) - names(left) == names([victim])
        assert BORROWED in carried(client, "apps/v1", "Deployment", "donor", namespace)
        assert (await ours.do(act(*actions, purpose=Purpose.READ_BACK, number=3))).result is StepResult.DONE
        back = await ours.do(act(*actions, purpose=Purpose.RESTORE, number=2))
        assert back.result is StepResult.DONE, back.detail
    assert carried(client, "apps/v1", "Deployment", "donor", namespace) == before
    # The Deployment's controller copied the mark, and would give it back with the next `rollout undo`.
    for copy in client.list("apps/v1", "ReplicaSet", namespace):
        assert BORROWED not in copy["metadata"]["annotations"]
    assert not [
        p for p in ready_pods(client, namespace, "app=donor", 3) if COST in (p["metadata"].get("annotations") or {})
    ]
    assert reasons(client, namespace) == [
        ("RemediationApplied", "donor"),
        ("RemediationApplied", victim["metadata"]["name"]),
        ("RemediationRestored", "donor"),
    ]


async def test_a_stateful_set_gives_its_highest(testbed: Cluster, namespace: str, pool: Pool) -> None:
    """Through its scale subresource; the mark and the number are two requests with one outcome."""
    client = testbed.client
    pool.add_gpu_nodes(1)
    made = build.deployment("donor", namespace, replicas=3, **on(pool))
    client.create({**made, "kind": "StatefulSet", "spec": {**made["spec"], "serviceName": "donor"}})
    ready_pods(client, namespace, "app=donor", 3)
    action = through_scale(ref(client, "apps/v1", "StatefulSet", "donor", namespace))
    async with hands(testbed) as ours:
        done = await ours.do(act(action))
        assert done.result is StepResult.DONE, done.detail
        assert names(ready_pods(client, namespace, "app=donor", 2)) == {"donor-0", "donor-1"}
        assert (await ours.do(act(action, purpose=Purpose.UNDO, number=2))).result is StepResult.DONE
    assert len(ready_pods(client, namespace, "app=donor", 3)) == 3


async def test_a_ray_cluster_gives_the_worker_that_is_named(testbed: Cluster, namespace: str, pool: Pool) -> None:
    """The real operator deletes the worker in `workersToDelete`; afterwards the group has its replicas again."""
    client = testbed.client
    pool.add_gpu_nodes(1)
    client.create(build.ray_cluster("ray", namespace, workers=3, gpus=1))
    pods = ready_pods(client, namespace, "ray.io/node-type=worker", 3)
    victim = pods[1]
    live = client.get("ray.io/v1", "RayCluster", "ray", namespace)
    group = live["spec"]["workerGroupSpecs"][0]
    field = "/spec/workerGroupSpecs/0"
    edits = [
        Edit(f"{field}/replicas", 3, 2),
        Edit(f"{field}/scaleStrategy/workersToDelete/0", None, victim["metadata"]["name"]),
    ]
    if group.get("minReplicas", 0) == 3:
        edits.append(Edit(f"{field}/minReplicas", 3, 2))
    target = ref(client, "ray.io/v1", "RayCluster", "ray", namespace)
    action = scale_of(target, *edits, tests=(Holds(f"{field}/groupName", group["groupName"]),))
    async with hands(testbed) as ours:
        done = await ours.do(act(action))
        assert done.result is StepResult.DONE, done.detail
        left = ready_pods(client, namespace, "ray.io/node-type=worker", 2)
        assert names(pods) - names(left) == names([victim])
        back = await ours.do(act(action, purpose=Purpose.RESTORE, number=2))
        assert back.result is StepResult.DONE, back.detail
    assert len(ready_pods(client, namespace, "ray.io/node-type=worker", 3)) == 3
    assert BORROWED not in carried(client, "ray.io/v1", "RayCluster", "ray", namespace)


async def test_eviction_asks_the_budget(testbed: Cluster, namespace: str, pool: Pool) -> None:
    """A budget without room is a refusal that names it, also in the dry run; without the budget the pod goes."""
    client = testbed.client
    pods = donor(client, namespace, pool)
    budget = {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": {"name": "keep-all", "namespace": namespace},
        "spec": {"minAvailable": 3, "selector": {"matchLabels": {"app": "donor"}}},
    }
    client.create(budget)
    client.wait_for("policy/v1", "PodDisruptionBudget", "keep-all", namespace, until=_is_counted)
    action = EvictPod(pod=pod_ref(pods[0]))
    async with hands(testbed) as ours:
        for purpose in (Purpose.DRY_RUN, Purpose.APPLY):
            done = await ours.do(act(action, purpose=purpose, lends=False))
            assert done.result is StepResult.REFUSED
            assert "keep-all" in done.detail
        client.delete("policy/v1", "PodDisruptionBudget", "keep-all", namespace)
        eventually(lambda: client.find("policy/v1", "PodDisruptionBudget", "keep-all", namespace) is None)
        tried = await ours.do(act(action, purpose=Purpose.DRY_RUN, lends=False))
        assert tried.result is StepResult.DONE, tried.detail
        assert names(ready_pods(client, namespace, "app=donor", 3)) == names(pods)
        done = await ours.do(act(action, lends=False))
        assert done.result is StepResult.DONE, done.detail
        assert names(pods[:1]).isdisjoint(names(ready_pods(client, namespace, "app=donor", 3)))
        again = await ours.do(act(action, lends=False), uncertain=True)
    assert (again.result, "gone" in again.detail) == (StepResult.DONE, True)


def _is_counted(budget: Object) -> bool:
    return bool(budget.get("status", {}).get("expectedPods") == 3 and budget["status"].get("currentHealthy") == 3)


async def test_a_node_is_cordoned_and_let_go(testbed: Cluster, pool: Pool) -> None:
    """The node controller's taint follows; the undo needs our mark."""
    client = testbed.client
    (name,) = pool.add_gpu_nodes(1)
    action = Cordon(node=ref(client, "v1", "Node", name))
    async with hands(testbed) as ours:
        done = await ours.do(act(action, lends=False))
        assert done.result is StepResult.DONE, done.detail
        client.wait_for("v1", "Node", name, until=lambda node: not nodes.is_schedulable(node))
        assert (await ours.do(act(action, purpose=Purpose.UNDO, lends=False, number=2))).result is StepResult.DONE
        node = client.get("v1", "Node", name)
        assert not node["spec"].get("unschedulable")
        assert "sevenhop.dev/cordoned" not in (node["metadata"].get("annotations") or {})


async def test_admission_says_no(testbed: Cluster, namespace: str, pool: Pool) -> None:
    """A policy that forbids the scale is told in its own words, and the mark does not stay behind."""
    client = testbed.client
    donor(client, namespace, pool)
    target = ref(client, "apps/v1", "Deployment", "donor", namespace)
    name = f"no-scale-{namespace}"
    group = "admissionregistration.k8s.io/v1"
    rule = {
        "apiGroups": ["apps"],
        "apiVersions": ["v1"],
        "operations": ["UPDATE"],
        "resources": ["deployments/scale"],
    }
    policy = {
        "matchConstraints": {"resourceRules": [rule]},
        "validations": [{"expression": "false", "message": "ask the platform team"}],
    }
    bound = {
        "policyName": name,
        "validationActions": ["Deny"],
        "matchResources": {
            "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": namespace}},
        },
    }
    client.create(
        {"apiVersion": group, "kind": "ValidatingAdmissionPolicy", "metadata": {"name": name}, "spec": policy}
    )
    client.create(
        {"apiVersion": group, "kind": "ValidatingAdmissionPolicyBinding", "metadata": {"name": name}, "spec": bound}
    )
    try:
        async with hands(testbed) as ours:

            async def until_denied(purpose: Purpose) -> StepDone:
                for _ in range(50):  # the policy takes effect within a second or two
                    step = act(through_scale(target), purpose=purpose)
                    done = await ours.do(step)
                    if done.result is StepResult.REFUSED:
                        return done
                    await asyncio.sleep(0.2)
                raise AssertionError("never denied")

            tried = await until_denied(Purpose.DRY_RUN)
            done = await until_denied(Purpose.APPLY)
        for said in (tried, done):
            assert "ask the platform team" in said.detail
        assert "taken back" in done.detail
        assert BORROWED not in carried(client, "apps/v1", "Deployment", "donor", namespace)
        assert len(ready_pods(client, namespace, "app=donor", 3)) == 3
    finally:
        client.delete(group, "ValidatingAdmissionPolicyBinding", name)
        client.delete(group, "ValidatingAdmissionPolicy", name)


async def test_a_user_without_the_right_is_told_the_line(testbed: Cluster, namespace: str, pool: Pool) -> None:
    """Somebody who may only read gets a refusal with what to add to the role."""
    donor(testbed.client, namespace, pool)
    target = ref(testbed.client, "apps/v1", "Deployment", "donor", namespace)
    async with hands(testbed, VIEWER) as ours:
        done = await ours.do(act(through_scale(target), purpose=Purpose.DRY_RUN))

    assert done.result is StepResult.REFUSED
    assert 'apiGroups: ["apps"], resources: ["deployments"], verbs: ["patch"]' in done.detail


@pytest.mark.parametrize("when", ["before", "between"])
async def test_somebody_scales_at_the_same_time(testbed: Cluster, namespace: str, pool: Pool, when: str) -> None:
    """Expected three, found five, whether that was before our first request or between two of them."""
    client = testbed.client
    donor(client, namespace, pool)
    target = ref(client, "apps/v1", "Deployment", "donor", namespace)

    def scale(replicas: int) -> None:
        client.patch("apps/v1", "Deployment", "donor", namespace, {"spec": {"replicas": replicas}})

    async with hands(testbed) as ours:
        step = act(through_scale(target))
        if when == "between":
            with pytest.raises(KilledError):
                await ours.do(step, dies_after=1)
        scale(5)
        done = await ours.do(step, uncertain=when == "between")

    assert done.result is StepResult.REFUSED
    assert "expected replicas 3, found 5" in done.detail
    found = client.get("apps/v1", "Deployment", "donor", namespace)
    assert found["spec"]["replicas"] == 5
    assert BORROWED not in (found["metadata"].get("annotations") or {})


async def test_the_server_tests_what_was_agreed_on(testbed: Cluster, namespace: str) -> None:
    """Values, names, absence and uid are tested by the API server itself, not only by our reading."""
    client = testbed.client
    client.create(build.deployment("donor", namespace, replicas=3))
    uid = client.get("apps/v1", "Deployment", "donor", namespace)["metadata"]["uid"]
    path = client.path("apps/v1", "Deployment", "donor", namespace)
    absent = {"op": "test", "path": "/metadata/annotations/sevenhop.dev~1borrowed", "value": None}
    set_ours = [
        {"op": "test", "path": "/metadata/annotations", "value": None},
        {"op": "add", "path": "/metadata/annotations", "value": {"sevenhop.dev/borrowed": "x"}},
    ]

    def patched(operations: list[Any], where: str = "") -> int:
        body = json.dumps(operations).encode()
        return client.request("PATCH", path + where, body, "application/json-patch+json")[0]

    def annotate(name: str, value: str | None) -> None:
        change = {"metadata": {"annotations": {name: value}}}
        client.patch("apps/v1", "Deployment", "donor", namespace, change)

    # Its controller writes an annotation a moment after it is made.
    while "annotations" not in client.get("apps/v1", "Deployment", "donor", namespace)["metadata"]:  # noqa: ASYNC110  nobody tells when
        await asyncio.sleep(0.05)
    assert patched(set_ours) == 422
    client.patch("apps/v1", "Deployment", "donor", namespace, {"metadata": {"annotations": {"a": "b"}}})
    client.patch(
        "apps/v1", "Deployment", "donor", namespace, {"metadata": {"annotations": {"sevenhop.dev/borrowed": None}}}
    )
    assert patched([absent]) == 200
    assert patched(set_ours) == 422
    client.patch(
        "apps/v1", "Deployment", "donor", namespace, {"metadata": {"annotations": {"sevenhop.dev/borrowed": "x"}}}
    )
    assert patched([absent]) == 422
    same = {"op": "test", "path": "/metadata/uid", "value": uid}
    other = {"op": "test", "path": "/metadata/uid", "value": "another"}
    for where in ("", "/scale"):
        assert patched([same], where) == 200
        assert patched([other], where) == 422
        assert patched([{"op": "test", "path": "/spec/replicas", "value": 4}], where) == 422


async def test_killed_between_any_two_requests(testbed: Cluster, namespace: str, pool: Pool) -> None:
    """The next process finishes it: scaled once, one Event each, and the same for the way back."""
    client = testbed.client
    pods = donor(client, namespace, pool)
    target = ref(client, "apps/v1", "Deployment", "donor", namespace)
    async with hands(testbed) as ours:
        for number in range(1, 6):  # mark, steer, scale, two Events
            actions = (Steer(pods=(pod_ref(pods[0]),)), through_scale(target))
            generation = client.get("apps/v1", "Deployment", "donor", namespace)["metadata"]["generation"]
            step = act(*actions, number=2 * number)
            with pytest.raises(KilledError):
                await ours.do(step, dies_after=number)
            done = await ours.do(step, uncertain=True)
            assert done.result is StepResult.DONE, (number, done.detail)
            found = client.get("apps/v1", "Deployment", "donor", namespace)
            # A Deployment's generation counts its annotations too: one for the mark, one for the number.
            assert (found["spec"]["replicas"], found["metadata"]["generation"]) == (2, generation + 2), number
            back = await ours.do(act(*actions, purpose=Purpose.RESTORE, number=2 * number + 1))
            assert back.result is StepResult.DONE, back.detail
            pods = ready_pods(client, namespace, "app=donor", 3)
    applied = [regarding for reason, regarding in reasons(client, namespace) if reason == "RemediationApplied"]
    assert (len(applied), applied.count("donor")) == (10, 5)


async def test_the_rendered_roles_are_enough(testbed: Cluster, namespace: str, pool: Pool) -> None:
    """A service account with the two roles of docs/reference does a whole run, Events included."""
    client = testbed.client
    pods = donor(client, namespace, pool)
    account = f"system:serviceaccount:{namespace}:sevenhop"
    rbac = "rbac.authorization.k8s.io/v1"
    whose = {"name": "sevenhop", "namespace": namespace}
    client.create({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": whose})
    for file in ("cluster-role.yaml", "cluster-role-remediation.yaml"):
        role = yaml.safe_load((REFERENCE / file).read_text("utf-8"))
        client.apply(role)
        name = role["metadata"]["name"]
        client.create(
            {
                "apiVersion": rbac,
                "kind": "RoleBinding",
                "metadata": {"name": name, "namespace": namespace},
                "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": name},
                "subjects": [{"kind": "ServiceAccount", **whose}],
            }
        )
    actions = (
        Steer(pods=(pod_ref(pods[0]),)),
        through_scale(ref(client, "apps/v1", "Deployment", "donor", namespace)),
    )
    async with hands(testbed, account) as ours:
        for number, purpose in enumerate((Purpose.DRY_RUN, Purpose.APPLY, Purpose.READ_BACK, Purpose.RESTORE)):
            done = await ours.do(act(*actions, purpose=purpose, number=number))
            assert done.result is StepResult.DONE, (purpose, done.detail)
            assert "no Event" not in done.detail
        pods = ready_pods(client, namespace, "app=donor", 3)
        done = await ours.do(act(EvictPod(pod=pod_ref(pods[0])), lends=False))
        assert done.result is StepResult.DONE, done.detail
    for copy in client.list("apps/v1", "ReplicaSet", namespace):
        assert BORROWED not in copy["metadata"]["annotations"]
