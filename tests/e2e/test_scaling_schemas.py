"""
For each framework and each way to set it up, the real API server takes what the table of scaling writes.

Dry-run with the schemas of the frameworks' own CRDs, unknown fields refused.  What the frameworks' webhooks would
say is not seen here: no operator but KubeRay's runs.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any, NamedTuple

import pytest

from sevenhop.actions.pointers import operations, value_at
from sevenhop.core.effects import Borrow
from sevenhop.core.objects.kinds import KINDS
from sevenhop.core.remediation.action import Edit, ObjectRef, Scale
from sevenhop.core.remediation.borrowed import BORROWED, encode_borrow
from sevenhop.core.remediation.reduction import Conflict, ConflictReason, Ruler
from tests.e2e import scaling_cast as cast
from tests.testbed import build, crds, nodes
from tests.testbed.client import ApiError, Client, Object
from tests.testbed.cluster import OPERATOR, Cluster
from tests.testbed.plugin import Pool
from tests.testbed.waiting import eventually
from tests.unit.scaling.world import World

pytestmark = [
    pytest.mark.e2e,
    pytest.mark.skipif(crds.shared_folder() is None, reason="the frameworks' CRDs are not here (SEVENHOP_SHARED)"),
]

HOW = "dryRun=All&fieldManager=sevenhop&fieldValidation=Strict"


class Case(NamedTuple):
    workload: str
    component: str
    target: str


CASES = [
    Case("dyn-plain", "decode", "DynamoGraphDeployment dyn-plain"),
    Case("dyn-adapter", "decode", "DynamoGraphDeploymentScalingAdapter dyn-adapter-decode"),
    Case("dyn-grove", "decode", "DynamoGraphDeployment dyn-grove"),
    Case("dyn-grove-multi", "decode", "DynamoGraphDeployment dyn-grove-multi"),
    Case("dyn-lws", "decode", "DynamoGraphDeployment dyn-lws"),
    Case("ray-plain", "gpu-group", "RayCluster ray-plain"),
    Case("ray-hosts", "gpu-group", "RayCluster ray-hosts"),
    Case("ray-fixed", "gpu-group", "RayCluster ray-fixed"),
    Case("ray-auto", "gpu-group", "RayCluster ray-auto"),
    Case("ray-serve", "gpu-group", "RayCluster ray-serve-"),
    Case("isvc-hpa", "predictor", "InferenceService isvc-hpa"),
    Case("isvc-keda", "predictor", "InferenceService isvc-keda"),
    Case("isvc-none", "predictor", "InferenceService isvc-none"),
    Case("isvc-external", "predictor", "Deployment isvc-external-predictor"),
    Case("isvc-knative", "predictor", "Revision isvc-knative-predictor-00001"),
    Case("llm-replicas", "decode", "LLMInferenceService llm-replicas"),
    Case("llm-replicas", "prefill", "LLMInferenceService llm-replicas"),
    Case("llm-scaling", "decode", "LLMInferenceService llm-scaling"),
    Case("llm-scaling", "prefill", "LLMInferenceService llm-scaling"),
    Case("llm-child", "engine", "Deployment llm-child-kserve"),
    Case("lws", "engine", "LeaderWorkerSet lws"),
    Case("ms", "decode", "Deployment ms-decode"),
    Case("mg", "decode", "LeaderWorkerSet mg-decode"),
    Case("nim", "engine", "NIMService nim"),
    Case("nim-hpa", "engine", "NIMService nim-hpa"),
    Case("plain", "engine", "Deployment plain"),
    Case("plain-set", "engine", "StatefulSet plain-set"),
]

each_case = pytest.mark.parametrize("case", CASES, ids=[f"{case.workload}/{case.component}" for case in CASES])


@pytest.fixture(scope="module")
def world(testbed: Cluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    """All of `scaling_cast`, running, as the service would see it."""
    client, namespace = testbed.client, f"scaling-{uuid.uuid4().hex[:6]}"
    client.create(build.namespace(namespace))
    names = [f"{namespace}-{number}" for number in range(3)]
    nodes.add_nodes(client, [build.gpu_node(name, gpus=64) for name in names])
    try:
        pods = cast.create_all(client, namespace, tmp_path_factory.mktemp("crds"))
        cast.wait_until_ready(client, namespace, pods)
        with testbed.without(OPERATOR):  # it finds no dashboard, and would say that nothing is live
            _say_which_is_live(client, namespace)
            unnamed = World(cast.read_all(client, namespace), live=True).rule("gpu-group", "ray-hosts")
            assert isinstance(unnamed, Conflict)
            assert unnamed.reason is ConflictReason.INDIVISIBLE
            cast.name_replicas(client, namespace)
            found = cast.read_all(client, namespace)
        yield World(found, live=True)
    finally:
        client.delete("v1", "Namespace", namespace)
        nodes.kill_pods(client, namespace)
        for name in names:
            nodes.remove_node(client, name)


def _say_which_is_live(client: Client, namespace: str) -> None:
    labels = "ray.io/originated-from-cr-name=ray-serve"
    (cluster,) = eventually(lambda: client.list("ray.io/v1", "RayCluster", namespace, labels=labels))
    active = {"activeServiceStatus": {"rayClusterName": cluster["metadata"]["name"]}, "pendingServiceStatus": None}
    conditions = [
        c
        for c in client.get("ray.io/v1", "RayService", "ray-serve", namespace)["status"].get("conditions", [])
        if c["type"] != "UpgradeInProgress"
    ]
    client.patch(
        "ray.io/v1", "RayService", "ray-serve", namespace, {"status": {**active, "conditions": conditions}},
        subresource="status",
    )  # fmt: skip


def path_of(client: Client, ref: ObjectRef, version: str = "", subresource: str = "") -> str:
    row = KINDS[ref.kind]
    for candidate in (version,) if version else row.versions:
        try:
            api = f"{row.group}/{candidate}" if row.group else candidate
            return client.path(api, row.kind, ref.name, ref.namespace, subresource)
        except (LookupError, ApiError):
            continue
    raise LookupError(ref.kind)


def fetch(client: Client, path: str) -> Object:
    status, text = client.request("GET", path)
    assert status == 200, text
    found: Object = json.loads(text)
    return found


def send(client: Client, path: str, patch: list[Object], how: str = HOW) -> tuple[int, Object]:
    body = json.dumps(patch).encode()
    status, text = client.request("PATCH", f"{path}?{how}", body, "application/json-patch+json")
    answer: Object = json.loads(text)
    return status, answer


def patches_of(client: Client, scale: Scale) -> list[tuple[str, list[Object], tuple[Edit, ...]]]:
    """(path, JSON patch, what it changes) of the change, of what makes it last, and of the annotation."""
    borrow = Borrow(
        plan="7f3a", hash="x", incident="i", workload="/".join(scale.workload), component=scale.component,
        before=scale.before, after=scale.after, until=datetime(2026, 11, 30, 14, tzinfo=UTC), by="alice",
    )  # fmt: skip
    mark = Edit(f"/metadata/annotations/{BORROWED.replace('/', '~1')}", None, encode_borrow(borrow))
    asked: list[tuple[ObjectRef, str, str, tuple[Edit, ...], Any]] = [
        (scale.target, scale.version, scale.subresource, scale.edits, scale.tests),
        *((ref, "", "", edits, tests) for ref, edits, tests in scale.also),
        (scale.marked, scale.version if scale.marked == scale.target else "", "", (mark,), ()),
    ]
    found = []
    for ref, version, subresource, edits, tests in asked:
        path = path_of(client, ref, version, subresource)
        found.append((path, operations(fetch(client, path), edits, tests, ref.uid), edits))
    return found


@each_case
def test_the_api_server_takes_it(testbed: Cluster, world: World, case: Case) -> None:
    """
    Every patch is accepted by the schema, and does what it says; with one other value in a test it is refused.
    """
    ruler = world.rule(case.component, case.workload)
    assert isinstance(ruler, Ruler), ruler
    assert f"{ruler.target.kind.partition('.')[0]} {ruler.target.name}".startswith(case.target)
    scale = world.scale(case.component, ruler.replicas - 1, case.workload)

    for path, patch, edits in patches_of(testbed.client, scale):
        status, answer = send(testbed.client, path, patch)
        assert status == 200, answer
        assert [e.pointer for e in edits if value_at(answer, e.pointer) != e.after] == []
        for at, operation in enumerate(patch):
            if operation["op"] == "test":
                wrong = [*patch[:at], operation | {"value": "another"}, *patch[at + 1 :]]
                refused, why = send(testbed.client, path, wrong)
                assert refused in (409, 422), why
    print(f"\n{case.workload}/{case.component}: {ruler.target} {scale.subresource or 'itself'}, accepted", end="")


def test_the_schema_is_the_real_one(testbed: Cluster, world: World) -> None:
    """
    The same request with a field that the CRD does not have, or a value of another type, is denied.
    """
    ruler = world.rule("decode", "dyn-plain")
    assert isinstance(ruler, Ruler)
    path = path_of(testbed.client, ruler.target)

    for pointer, value in (("/spec/components/1/replica", 1), ("/spec/components/1/replicas", "one")):
        status, answer = send(testbed.client, path, [{"op": "add", "path": pointer, "value": value}])
        assert status in (400, 422), answer


def test_nothing_was_changed(testbed: Cluster, world: World) -> None:
    """
    A dry run is one: what was patched is afterwards as it was when it was read.
    """
    for case in CASES:
        ruler = world.rule(case.component, case.workload)
        assert isinstance(ruler, Ruler)
        scale = world.scale(case.component, ruler.replicas - 1, case.workload)
        for ref in (scale.target, scale.marked, *(ref for ref, _, _ in scale.also)):
            now = fetch(testbed.client, path_of(testbed.client, ref))
            before = world.manifest(KINDS[ref.kind].kind, ref.name)
            assert now["spec"] == before["spec"]
            assert now["metadata"].get("annotations") == before["metadata"].get("annotations")


@pytest.mark.parametrize("chosen", [0, 1, 2])
@pytest.mark.parametrize("has_autoscaler", [False, True], ids=["fixed", "autoscaler"])
def test_ray_removes_whom_the_patch_names(
    testbed: Cluster, namespace: str, pool: Pool, chosen: int, has_autoscaler: bool
) -> None:
    """
    The real operator takes the named worker and no other, with Ray's autoscaler and without.
    """
    pool.add_gpu_nodes(1)
    manifest = build.ray_cluster("ray", namespace, workers=3)
    manifest["spec"]["enableInTreeAutoscaling"] = has_autoscaler
    testbed.client.create(manifest)
    cast.wait_until_ready(testbed.client, namespace, 4)
    world = World(cast.read_all(testbed.client, namespace), live=True)
    before = {pod.metadata.name for pod in world.pods("gpu-group")}
    victim = world.pods("gpu-group")[chosen]
    (scale,) = world.act("gpu-group", 2, victims=[victim])  # type: ignore[misc]  # no conflict
    assert isinstance(scale, Scale)

    path = path_of(testbed.client, scale.target)
    patch = operations(fetch(testbed.client, path), scale.edits, scale.tests, scale.target.uid)
    status, answer = send(testbed.client, path, patch, how="fieldManager=sevenhop&fieldValidation=Strict")
    assert status == 200, answer

    def workers() -> set[str]:
        found = testbed.client.list("v1", "Pod", namespace, labels="ray.io/node-type=worker")
        return {pod["metadata"]["name"] for pod in found if "deletionTimestamp" not in pod["metadata"]}

    eventually(lambda: len(workers()) == 2, what="two workers", timeout=30)
    assert workers() == before - {victim.metadata.name}


@pytest.mark.parametrize("has_adapter", [False, True], ids=["graph", "adapter"])
def test_an_older_dynamo(has_adapter: bool) -> None:
    """
    Where v1alpha1 alone is served, its own fields are patched.
    """
    with Cluster(frameworks=["dynamo"], serve_only={"nvidia.com": "v1alpha1"}) as cluster:
        graph = [cast.FRONTEND, cast.decode(scaling_adapter=has_adapter)]
        created = cluster.client.create(build.dgd("older", "default", graph, version="v1alpha1"))
        for adapter in build.dynamo_scaling_adapters(created, graph):
            cluster.client.create(adapter)
        world = World(cast.read_all(cluster.client, "default"), live=True)

        scale = world.scale("decode", 1)

        for path, patch, edits in patches_of(cluster.client, scale):
            assert "/v1alpha1/" in path
            status, answer = send(cluster.client, path, patch)
            assert status == 200, answer
            assert [e.pointer for e in edits if value_at(answer, e.pointer) != e.after] == []
        print(f"\nolder/decode: {scale.target} {scale.subresource or 'itself'}, accepted", end="")
