"""
The chart's role for approved plans on the real API server: with it a run goes from the click to the lease's end, and
without any one of its verbs something that has a name is refused.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import yaml

from sevenhop.actions.executor import ClusterExecutor
from sevenhop.actions.transport import Transport
from sevenhop.core.effects import Act
from sevenhop.core.events import StepDone, StepResult
from sevenhop.core.remediation.action import Cordon, EvictPod, ObjectRef, Steer
from sevenhop.core.remediation.permit import Purpose
from sevenhop.runtime.writing import ApiTransport
from sevenhop.sources.kubernetes.connect import connect
from tests.e2e.chart import Object, granted, of_kind
from tests.e2e.remediation_scenes import DynamoStandIn, waiting_scene
from tests.e2e.remediation_stage import ALLOWED, PLAYBOOK, Stage, borrowed, events_on, later, pagerduty_process
from tests.e2e.slack import FakeSlack
from tests.e2e.test_chart_rights import Installed, Right, _rules
from tests.e2e.test_executor import donor, pod_ref, ready_pods, ref, through_scale
from tests.e2e.test_scaling_schemas import CASES, Case, world
from tests.saying import Say
from tests.testbed import build, crds
from tests.testbed.client import Client
from tests.testbed.cluster import Cluster
from tests.testbed.plugin import Pool
from tests.testbed.waiting import eventually
from tests.unit.actions.scene import BORROWED, NOON, act, leave
from tests.unit.scaling.world import World

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(400)]

__all__ = ["world"]  # a fixture of another file

ACTING: dict[str, Any] = {
    "remediation": {"enabled": True, "nodes": True},
    "config": {"remediation": {"playbooks": {PLAYBOOK: {"mode": "approve"}}}},
}
OFF = ("free-gpu-capacity", "cordon-node", "restart-pod", "restart-device-plugin")


def rights(installed: Installed) -> set[Right]:
    """Of the roles for approved plans."""
    return {right for role in _roles(installed) for right in granted(role)}


def _roles(installed: Installed) -> list[Object]:
    return [role for role in of_kind(installed.objects, "ClusterRole") if "-remediation" in role["metadata"]["name"]]


def installed_with(cluster: Cluster, folder: Path, **modes: str) -> set[Right]:
    """Rights with these modes; a playbook's name with underscores for dashes."""
    playbooks = {name.replace("_", "-"): {"mode": mode} for name, mode in modes.items()}
    values = {**ACTING, "config": {"remediation": {"playbooks": playbooks}}}
    return rights(Installed(cluster, folder, values))


# --- which playbook gives which right ---


def test_a_playbook_that_is_off_gives_no_right(testbed: Cluster, tmp_path: Path) -> None:
    """Each right comes with the actions of a playbook that is not off; with all of them off there is no role at all."""
    all_off = {name.replace("-", "_"): "off" for name in OFF}
    everything = installed_with(testbed, tmp_path)
    only_scale = installed_with(testbed, tmp_path, **{**all_off, "free_gpu_capacity": "approve"})
    only_evict = installed_with(testbed, tmp_path, **{**all_off, "restart_pod": "shadow"})
    only_cordon = installed_with(testbed, tmp_path, **{**all_off, "cordon_node": "approve"})
    events = ("events.k8s.io", "events", "create")

    assert installed_with(testbed, tmp_path, **all_off) == set()
    assert only_evict == {("", "pods/eviction", "create"), ("", "pods", "get"), events}
    assert only_cordon == {("", "nodes", "get"), ("", "nodes", "patch"), events}
    assert {("apps", "deployments/scale", "patch"), ("", "pods", "patch")} <= only_scale
    assert not {right for right in only_scale if right[1] in ("nodes", "pods/eviction")}
    assert everything == only_scale | only_evict | only_cordon


def test_an_own_playbook_gives_the_rights_of_its_steps(testbed: Cluster, tmp_path: Path) -> None:
    """Its text is read as the service reads it, and the settings have the last word about its mode."""
    text = yaml.safe_dump({"id": "mine", "mode": "approve", "steps": ["evict-pod"]})
    own = {"remediation": {"enabled": True}, "playbooks": {"mine.yaml": text}, "replaceShipped": True}
    off = {**own, "config": {"remediation": {"playbooks": {"mine": {"mode": False}}}}}  # `off` without quotes

    assert ("", "pods/eviction", "create") in rights(Installed(testbed, tmp_path, own))
    assert len(rights(Installed(testbed, tmp_path, own))) == 3
    assert rights(Installed(testbed, tmp_path, off)) == set()


async def test_a_node_is_told_of_where_only_some_namespaces_are_granted(
    testbed: Cluster, stands: tuple[str, str], tmp_path: Path
) -> None:
    """Events of nodes stand in the namespace default, which is none of those; nothing else may be written there."""
    namespace, node = stands
    values = {**ACTING, "remediation": {"enabled": True, "nodes": True, "namespaces": [namespace]}}
    cordons, elsewhere = _on_donor(testbed.client, namespace, node)[2], testbed.client
    with Installed(testbed, tmp_path, values) as installed:
        elsewhere.create(build.deployment("bystander", installed.namespace, replicas=1))
        target = ref(elsewhere, "apps/v1", "Deployment", "bystander", installed.namespace)
        scales = Tried("scale", lambda: (act(through_scale(target), purpose=Purpose.DRY_RUN),), _refused)
        async with await connect(str(testbed.kubeconfig(installed.user))) as api:
            problem = await _do(cordons, ApiTransport(api))
            refused = await _do(scales, ApiTransport(api))
    assert cordons.name.startswith("cordon a node, let it go")
    assert problem == ""
    assert "Sevenhop may not get deployments" in refused


# --- the whole run ---


def test_an_approved_run_works_with_the_rendered_role(testbed: Cluster, slack: FakeSlack, tmp_path: Path) -> None:
    """Click, dry run, steering, scaling, proof, and back at the lease's end, by the account that the chart makes."""
    with (
        Installed(testbed, tmp_path, ACTING) as installed,
        pagerduty_process() as pagerduty,
        DynamoStandIn(testbed.client),
        waiting_scene(testbed, "chart-run") as here,
    ):
        node = here.node(4)
        here.keeper(node, 1)
        here.plain_donor(replicas=3)
        here.runs(3, "app=summarizer")
        here.llama(1)
        here.waits(1)
        stage = Stage(
            tmp_path / "stage", testbed, slack, pagerduty, name=installed.namespace,
            times={"lease": "40s", "no_progress": "45s"}, user=installed.user,
        )  # fmt: skip
        stage.service.start()
        try:
            plan = stage.plan(here.namespace)
            stage.click(ALLOWED, "approve", here.product)
            stage.wait_for(plan["plan"], "succeeded", timeout=60)
            lent = here.deployment()
            here.client.delete("nvidia.com/v1beta1", "DynamoGraphDeployment", "llama-70b", here.namespace)
            stage.wait_for(plan["plan"], "restored", timeout=90)
            later(lambda: here.replicas() == 3, what="the donor to have its replicas again")
            told = events_on(testbed, here.namespace, "summarizer")
            report = stage.service.doctor()
        finally:
            stage.service.stop()
    assert plan["plan"] in borrowed(lent)
    assert told == ["RemediationApplied", "RemediationRestored"]
    assert report["trouble"] == []


# --- each verb ---


class Tried(NamedTuple):
    """
    Something that needs rights.

    Attributes:
        name: For people.
        steps: Made for the cluster as it is, and done one after the other; the last one tells.
        failed: Given the last answer, whether it went wrong, in words; empty if not.
    """

    name: str
    steps: Callable[[], tuple[Act, ...]]
    failed: Callable[[StepDone], str]


class Recording:
    """A transport that notes which right each request needs."""

    def __init__(self, inner: Transport) -> None:
        self._inner = inner
        self.needed: list[Right] = []

    async def send(
        self, method: str, path: str, params: Mapping[str, str], *, body: bytes | None = None, content_type: str = ""
    ) -> bytes:
        if (right := right_of(method, path)) is not None:
            self.needed.append(right)
        return await self._inner.send(method, path, params, body=body, content_type=content_type)


PATH = re.compile(
    r"/(?:api|apis/(?P<group>[^/]+))/[^/]+(?:/namespaces/[^/]+)?/(?P<what>[a-z]+)(?:/(?P<name>[^/]+))?(?:/(?P<sub>[a-z]+))?$"
)


def right_of(method: str, path: str) -> Right | None:
    """The right that a request needs; None for discovery, which everybody may ask."""
    found = PATH.fullmatch(path)
    if found is None:
        return None
    verb = {"GET": "get" if found["name"] else "list", "PATCH": "patch", "POST": "create"}[method]
    resource = f"{found['what']}/{found['sub']}" if found["sub"] else found["what"]
    return found["group"] or "", resource, verb


def test_requests_are_understood() -> None:
    """The table below is made of them, so they had better be."""
    assert right_of("GET", "/api/v1/nodes/a") == ("", "nodes", "get")
    assert right_of("POST", "/api/v1/namespaces/n/pods/p/eviction") == ("", "pods/eviction", "create")
    assert right_of("PATCH", "/apis/apps/v1/namespaces/n/deployments/d/scale") == ("apps", "deployments/scale", "patch")
    assert right_of("GET", "/apis/apps/v1/namespaces/n/replicasets") == ("apps", "replicasets", "list")
    assert right_of("GET", "/apis/apps/v1") is None
    assert right_of("GET", "/apis") is None


def _refused(done: StepDone) -> str:
    return done.detail if done.result is not StepResult.DONE else ""


def _untold(done: StepDone) -> str:
    return done.detail.partition("; no Event was written: ")[2]


def _of_case(world: World, case: Case, *, whole: bool) -> Tried:
    """One way to be reduced: its dry run, or all of it and back again."""
    ruler: Any = world.rule(case.component, case.workload)
    actions: Any = world.act(case.component, ruler.replicas - 1, workload=case.workload)
    dry = act(*actions, purpose=Purpose.DRY_RUN)
    look = act(*actions, purpose=Purpose.READ_BACK, number=2)
    back = act(*actions, purpose=Purpose.UNDO, number=3)
    if whole:
        return Tried(f"scale {case.target} and back", lambda: (act(*actions), look, back), _refused)
    return Tried(f"scale {case.target}, dry run", lambda: (dry,), _refused)


def _on_donor(client: Client, namespace: str, node: str) -> list[Tried]:
    """On a plain Deployment and a node, also what no dry run does."""
    cordon = Cordon(node=ObjectRef("Node", "", node, client.get("v1", "Node", node)["metadata"]["uid"]))

    def pod() -> ObjectRef:
        return pod_ref(ready_pods(client, namespace, "app=donor", 3)[0])

    def lend() -> tuple[Act, ...]:
        actions = (Steer(pods=(pod(),)), through_scale(ref(client, "apps/v1", "Deployment", "donor", namespace)))
        return act(*actions), act(*actions, purpose=Purpose.RESTORE, number=2)

    def evict() -> tuple[Act, ...]:
        return (act(EvictPod(pod=pod()), purpose=Purpose.DRY_RUN, lends=False),)

    def cordon_and_back() -> tuple[Act, ...]:
        return act(cordon, lends=False), act(cordon, lends=False, purpose=Purpose.UNDO, number=2)

    def no_copies(done: StepDone) -> str:
        if done.result is not StepResult.DONE:
            return done.detail
        copies = client.list("apps/v1", "ReplicaSet", namespace)
        left = [c["metadata"]["name"] for c in copies if BORROWED in c["metadata"].get("annotations", {})]
        return f"the mark stays on the copies {', '.join(left)}, and `kubectl rollout undo` would revive it" * bool(
            left
        )

    return [
        Tried("evict a pod, dry run", evict, _refused),
        Tried("cordon a node, dry run", lambda: (act(cordon, purpose=Purpose.DRY_RUN, lends=False),), _refused),
        Tried("cordon a node, let it go, and tell both", cordon_and_back, _untold),
        Tried("lend and give back, leaving no mark", lend, no_copies),
    ]


@pytest.fixture
def stands(testbed: Cluster, namespace: str, pool: Pool) -> Iterator[tuple[str, str]]:
    """A Deployment of three: its namespace and its node."""
    donor(testbed.client, namespace, pool)
    yield namespace, pool.names[0]
    testbed.client.patch("v1", "Node", pool.names[0], "", {"spec": {"unschedulable": None}})


@pytest.mark.skipif(crds.shared_folder() is None, reason="the frameworks' CRDs are not here (SEVENHOP_SHARED)")
async def test_every_verb_of_the_acting_role_is_needed(
    testbed: Cluster, world: World, stands: tuple[str, str], tmp_path: Path, say: Say
) -> None:
    """
    What all actions ask of the API server is what the role grants, and no more; and without any one verb, what needs
    it is refused, in words that name it.
    """
    namespace, node = stands
    with Installed(testbed, tmp_path, ACTING) as installed:
        async with await connect(str(testbed.kubeconfig(installed.user))) as api:
            needs: dict[Right, Tried] = {}
            dry = [_of_case(world, case, whole=False) for case in CASES]
            for tried in (*dry, *_on_donor(testbed.client, namespace, node)):
                recording = Recording(ApiTransport(api))
                problem = await _do(tried, recording)
                assert not problem, f"{tried.name}: {problem}"
                _settle(testbed.client, namespace)
                for right in recording.needed:
                    needs.setdefault(right, tried)
            assert set(needs) == rights(installed)

            rows = []
            for right, tried in sorted(needs.items()):
                with _without(testbed.client, installed, right):
                    problem = await _do(tried, ApiTransport(api))
                _settle(testbed.client, namespace)
                group, resource, verb = right
                assert problem, f"{tried.name} works without {verb} on {resource}"
                rows.append(f"{verb:6} {resource}{'.' + group if group else ''}: {tried.name}: {problem[:150]}")
                says_it = f"may not {verb} {resource}" in problem and f'apiGroups: ["{group}"]' in problem
                assert says_it or "copies" in problem, rows[-1]
            recording = Recording(ApiTransport(api))
            for tried in [_of_case(world, case, whole=True) for case in CASES]:
                problem = await _do(tried, recording)
                assert not problem, f"{tried.name}: {problem}"
            assert set(recording.needed) <= rights(installed)
    say("\n".join([f"{len(rows)} verbs, each with what is refused without it:", *(f"  {row}" for row in rows)]))
    assert len(rows) > 30


async def _do(tried: Tried, transport: Transport) -> str:
    """What went wrong, in words; empty if nothing did."""
    executor = ClusterExecutor(transport, lambda: NOON)
    done = None
    for step in tried.steps():
        done = await executor.deliver(step, uncertain=False, permit=leave(step))
        if done.result is not StepResult.DONE:
            break
    assert done is not None
    return tried.failed(done)


def _settle(client: Client, namespace: str) -> None:
    """As it was: three replicas, no mark of ours left by a step that could not be finished."""
    found = client.get("apps/v1", "Deployment", "donor", namespace)
    path = ("apps/v1", "Deployment", "donor", namespace)
    if found["spec"]["replicas"] != 3 or BORROWED in found["metadata"]["annotations"]:
        client.patch(*path, {"metadata": {"annotations": {BORROWED: None}}, "spec": {"replicas": 3}})
    ready_pods(client, namespace, "app=donor", 3)
    for copy in client.list("apps/v1", "ReplicaSet", namespace):
        if BORROWED in copy["metadata"].get("annotations", {}):
            patch = {"metadata": {"annotations": {BORROWED: None}}}
            client.patch("apps/v1", "ReplicaSet", copy["metadata"]["name"], namespace, patch)


class _without:  # noqa: N801  reads as a word
    """The role lacks one right while the block runs; both changes are waited for."""

    def __init__(self, client: Client, installed: Installed, right: Right) -> None:
        self._client, self._installed, self._right = client, installed, right

    def __enter__(self) -> None:
        self._set({self._right})
        self._wait(allowed=False)

    def __exit__(self, *_: object) -> None:
        self._set(set())
        self._wait(allowed=True)

    def _set(self, without: set[Right]) -> None:
        # ReplicaSets are listed by the reading role, too.
        for role in of_kind(self._installed.objects, "ClusterRole"):
            rules = _rules(granted(role) - without)
            name = role["metadata"]["name"]
            self._client.patch("rbac.authorization.k8s.io/v1", "ClusterRole", name, "", {"rules": rules})

    def _wait(self, *, allowed: bool) -> None:
        group, resource, verb = self._right
        what, _, subresource = resource.partition("/")
        review = {
            "apiVersion": "authorization.k8s.io/v1",
            "kind": "SubjectAccessReview",
            "metadata": {},
            "spec": {
                "user": self._installed.user,
                "groups": ["system:serviceaccounts", "system:authenticated"],
                "resourceAttributes": {
                    "namespace": "" if what == "nodes" else "default",
                    "group": group, "resource": what, "subresource": subresource, "verb": verb,
                },
            },
        }  # fmt: skip
        eventually(lambda: self._client.create(review)["status"]["allowed"] is allowed, timeout=20, every=0.05)
