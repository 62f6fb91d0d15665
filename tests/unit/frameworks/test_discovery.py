"""Workloads kept current while objects come, change and go."""

from __future__ import annotations

from typing import Any

import pytest

from sevenhop.core.inventory.discovery import Discovery
from sevenhop.core.inventory.objects import Objects
from sevenhop.core.inventory.policy import Policy
from sevenhop.core.inventory.workloads import Component, Registration, Tier, Workload
from sevenhop.frameworks import FRAMEWORKS
from tests.unit.frameworks.running import (
    Manifest,
    container,
    deployed,
    key,
    kserve_standard,
    leader_worker_set,
    llm_d,
    obj,
    objects_of,
    plain_pair,
    pod,
    production_stack_chart,
    production_stack_operator,
    ray_service,
    read,
)


class World:
    """Objects and what is discovered in them."""

    def __init__(self, manifests: list[Manifest], policy: Policy | None = None) -> None:
        self.objects = objects_of(manifests)
        self.discovery = Discovery(self.objects, FRAMEWORKS, policy)
        self.discovery.settle()

    def put(self, *manifests: Manifest) -> set[Any]:
        for manifest in manifests:
            kind, found = read(manifest)
            self.objects.put(kind, found)
            self.discovery.touch(kind, found.key)
        return self.discovery.settle()

    def drop(self, *manifests: Manifest) -> set[Any]:
        for manifest in manifests:
            kind, found = read(manifest)
            self.objects.drop(kind, found.key)
            self.discovery.touch(kind, found.key)
        return self.discovery.settle()

    def workload(self, name: str) -> Workload:
        return self.discovery.workloads[key(name)]

    def component(self, workload: str, name: str) -> Component:
        part = self.workload(workload).component(name)
        assert part is not None
        return part


ENGINE = container(command=["vllm", "serve", "Qwen/Qwen3-32B"], gpus=2)


def changed(manifest: Manifest, **spec: Any) -> Manifest:
    return {**manifest, "spec": {**manifest["spec"], **spec}}


def noted(manifest: Manifest, **meta: Any) -> Manifest:
    return {**manifest, "metadata": {**manifest["metadata"], **meta}}


def space(**annotations: str) -> Manifest:
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "prod", "annotations": annotations}}


# What is news


def test_a_status_is_no_news() -> None:
    """
    Pods change status all day; nothing of it changes a workload.
    """
    manifests = deployed("qwen", {"app": "qwen"}, ENGINE, replicas=2)
    world = World(manifests)

    failed = {**manifests[-1], "status": {"phase": "Failed"}}

    assert world.put(failed) == set()


def test_a_pod_that_joins_or_leaves_is_news() -> None:
    """
    Whoever counts the pods of a component hears when there are others.
    """
    manifests = deployed("qwen", {"app": "qwen"}, ENGINE, replicas=2)
    world = World(manifests[:-1])

    assert world.put(manifests[-1]) == {key("qwen")}
    assert world.discovery.pods_of(key("qwen"), "engine") == {key("qwen-abc-0"), key("qwen-abc-1")}
    assert world.drop(manifests[-1]) == {key("qwen")}
    assert world.discovery.pods_of(key("qwen"), "engine") == {key("qwen-abc-0")}
    assert world.discovery.membership(key("qwen-abc-1")) is None


def test_a_scaled_deployment_is_news() -> None:
    """
    Desired is what the Deployment asks for now.
    """
    manifests = deployed("qwen", {"app": "qwen"}, ENGINE)
    world = World(manifests)

    assert world.put(changed(manifests[0], replicas=7)) == {key("qwen")}
    assert world.component("qwen", "engine").desired == 7


def test_other_pods_of_the_cluster_are_nobodys() -> None:
    """
    A web server is listed with a reason, and is no workload.
    """
    world = World(deployed("web", {"app": "web"}, container(image="nginx:1", gpus=0), replicas=2))

    assert dict(world.discovery.workloads) == {}
    assert world.discovery.skipped == [
        ("Deployment.apps", key("web"), "no inference engine recognised by image, command or labels")
    ]


def test_a_deployment_that_becomes_an_engine() -> None:
    """
    The same Deployment with another image is a workload, and its pods belong to it; and back.
    """
    web = deployed("web", {"app": "web"}, container(image="nginx:1", gpus=0))
    engine = deployed("web", {"app": "web"}, ENGINE)
    world = World(web)

    assert world.put(engine[0]) == {key("web")}
    assert world.discovery.membership(key("web-abc-0")) is not None
    assert world.put(web[0]) == {key("web")}
    assert world.discovery.membership(key("web-abc-0")) is None


# Folding


def test_decode_alone_keeps_its_name() -> None:
    """
    One Deployment is called as it is called; with its other half they are one workload.
    """
    manifests = plain_pair().objects
    world = World([m for m in manifests if "decode" in m["metadata"]["name"]])
    assert set(world.discovery.workloads) == {key("qwen-decode")}

    world.put(*manifests)

    assert set(world.discovery.workloads) == {key("qwen")}
    assert [part.name for part in world.workload("qwen").components] == ["decode", "prefill"]


def test_two_models_of_one_release_are_two_workloads() -> None:
    """
    A Helm release with two models is not one model.
    """
    labels = {"app.kubernetes.io/instance": "stack"}
    other = container(command=["vllm", "serve", "a/b"])
    world = World(deployed("one", labels, ENGINE) + deployed("two", labels, other))

    assert set(world.discovery.workloads) == {key("one"), key("two")}


def test_variants_of_one_model_in_a_release_are_one() -> None:
    """
    The same model on two kinds of GPU, in one release, is one served model.
    """
    labels = {"app.kubernetes.io/instance": "qwen"}
    world = World(deployed("qwen-h100", labels, ENGINE) + deployed("qwen-l4", labels, ENGINE))

    assert set(world.discovery.workloads) == {key("qwen")}
    assert {part.name for part in world.workload("qwen").components} == {"qwen-h100", "qwen-l4"}


def test_a_pool_folds_what_it_selects() -> None:
    """
    Variants behind one InferencePool are one workload under the pool's name, and register with its picker.
    """
    canary = container(command=["vllm", "serve", "Qwen/Qwen3-32B-FP8"])
    pair = deployed("stable", {"app": "chat"}, ENGINE) + deployed("canary", {"app": "chat"}, canary)
    pool = obj(
        "inference.networking.k8s.io/v1", "InferencePool", "chat", spec={"selector": {"matchLabels": {"app": "chat"}}}
    )
    world = World(pair)
    assert set(world.discovery.workloads) == {key("stable"), key("canary")}

    world.put(pool)

    assert set(world.discovery.workloads) == {key("chat")}
    assert world.workload("chat").registers is Registration.POOL
    assert world.drop(pool) >= {key("chat"), key("stable"), key("canary")}


def test_an_older_pool_selects_by_plain_labels() -> None:
    """
    ``inference.networking.x-k8s.io`` has labels where v1 has matchLabels.
    """
    pool = obj("inference.networking.x-k8s.io/v1alpha2", "InferencePool", "chat", spec={"selector": {"app": "chat"}})
    world = World([pool, *deployed("chat-server", {"app": "chat"}, ENGINE)])

    assert world.workload("chat-server").registers is Registration.POOL


def test_a_pool_without_servers_is_listed() -> None:
    """
    A pool that selects nothing says so, and so does its picker.
    """
    manifests = [m for m in llm_d().objects if m["kind"] == "InferencePool" or "epp" in m["metadata"]["name"]]
    world = World(manifests)

    assert dict(world.discovery.workloads) == {}
    assert {k[1] for _, k, _ in world.discovery.skipped} == {"opt-pool", "opt-epp"}


def test_a_router_of_two_models_is_a_workload_of_its_own() -> None:
    """
    A router belongs to what it routes to, as long as that is one thing.
    """
    manifests = production_stack_chart().objects
    labels = {"helm-release-name": "stack", "model": "other", "app.kubernetes.io/component": "serving-engine"}
    world = World(manifests)
    assert world.workload("llama").component("router") is not None

    world.put(*deployed("stack-other-deployment-vllm", labels, container(command=["vllm", "serve", "a/b"])))

    assert set(world.discovery.workloads) == {key("llama"), key("other"), key("stack-deployment-router")}


def test_names_are_unique() -> None:
    """
    A Deployment with the name of an InferenceService gets another name, not its pods.
    """
    service = obj("serving.kserve.io/v1beta1", "InferenceService", "qwen", spec={"predictor": {}})
    world = World([service, *deployed("qwen", {"app": "qwen"}, ENGINE)])

    assert set(world.discovery.workloads) == {key("qwen"), key("qwen.deployment")}
    membership = world.discovery.membership(key("qwen-abc-0"))
    assert membership is not None
    assert membership.workload == key("qwen.deployment")


# What else is looked at


def test_a_runtime_that_arrives_later() -> None:
    """
    GPUs that stand in the ServingRuntime count as soon as it is seen.
    """
    service = obj(
        "serving.kserve.io/v1beta1",
        "InferenceService",
        "qwen",
        spec={"predictor": {"model": {"runtime": "vllm", "storageUri": "hf://a/b"}}},
    )
    world = World([service])
    assert world.component("qwen", "predictor").gpus_per_replica == 0

    runtime = obj("serving.kserve.io/v1alpha1", "ServingRuntime", "vllm", spec={"containers": [container(gpus=4)]})

    assert world.put(runtime) == {key("qwen")}
    assert world.component("qwen", "predictor").gpus_per_replica == 4
    assert world.drop(runtime) == {key("qwen")}
    assert world.component("qwen", "predictor").gpus_per_replica == 0


def test_base_configurations_are_merged() -> None:
    """
    An LLMInferenceService says only what differs from the configurations that it names.
    """
    service = obj(
        "serving.kserve.io/v1alpha2", "LLMInferenceService", "m", spec={"baseRefs": [{"name": "base"}], "replicas": 3}
    )
    base = obj(
        "serving.kserve.io/v1alpha2",
        "LLMInferenceServiceConfig",
        "base",
        spec={
            "model": {"uri": "hf://a/b:r1", "name": "b"},
            "replicas": 1,
            "template": {"containers": [container(gpus=8)]},
        },
    )
    world = World([service, base])

    assert world.workload("m").model.version == "r1"
    assert world.workload("m").model.name == "b"
    assert world.component("m", "engine").desired == 3
    assert world.component("m", "engine").gpus_per_replica == 8


def test_an_autoscaler_rules_the_count() -> None:
    """
    Where KEDA scales a Deployment, the Deployment's own count is not the field to change.
    """
    world = World(deployed("qwen", {"app": "qwen"}, ENGINE))
    scale = world.component("qwen", "engine").scale
    assert scale is not None
    assert (scale.kind, scale.path) == ("Deployment.apps", "spec.replicas")

    scaler = obj("keda.sh/v1alpha1", "ScaledObject", "qwen-so", spec={"scaleTargetRef": {"name": "qwen"}})
    assert world.put(scaler) == {key("qwen")}

    scale = world.component("qwen", "engine").scale
    assert scale is not None
    assert (scale.kind, scale.name, scale.path) == ("ScaledObject.keda.sh", "qwen-so", "spec.minReplicaCount")


def test_the_live_ray_cluster_counts() -> None:
    """
    The autoscaler writes into the live RayCluster; the RayService keeps what was asked for once.
    """
    manifests = ray_service().objects
    world = World(manifests)
    cluster = manifests[1]
    group = cluster["spec"]["workerGroupSpecs"][0]

    world.put(changed(cluster, workerGroupSpecs=[{**group, "replicas": 4}]))

    part = world.component("chat", "h100")
    assert (part.desired, part.minimum, part.pods_per_replica, part.gpus_per_replica) == (4, 1, 2, 16)
    assert part.scale is not None
    assert (part.scale.kind, part.scale.name) == ("RayCluster.ray.io", "chat-x7k2p")


# Tier and owner


def test_tier_and_owner() -> None:
    """
    The root's annotation beats the namespace's, and that the policy; a word that is no tier is none.
    """
    manifests = deployed("qwen", {"app": "qwen"}, ENGINE)
    policy = Policy(namespaces=(("pr*", Tier.STANDARD),))
    world = World(manifests, policy)
    assert (world.workload("qwen").tier, world.workload("qwen").owner) == (Tier.STANDARD, "")

    assert world.put(space(**{"sevenhop.dev/tier": "batch", "sevenhop.dev/owner": "platform"})) == {key("qwen")}
    assert (world.workload("qwen").tier, world.workload("qwen").owner) == (Tier.BATCH, "platform")

    world.put(noted(manifests[0], annotations={"sevenhop.dev/tier": "critical"}, labels={"team": "search"}))
    assert (world.workload("qwen").tier, world.workload("qwen").owner) == (Tier.CRITICAL, "platform")

    world.put(noted(manifests[0], annotations={"sevenhop.dev/tier": "very important"}))
    assert world.workload("qwen").tier is Tier.BATCH


def test_policy_by_priority_class() -> None:
    """
    Without annotations a PriorityClass may say the tier.
    """
    engine = deployed("qwen", {"app": "qwen"}, ENGINE)
    engine[0]["spec"]["template"]["spec"]["priorityClassName"] = "gold"

    assert World(engine).workload("qwen").tier is None
    assert World(engine, Policy(priority_classes={"gold": Tier.CRITICAL})).workload("qwen").tier is Tier.CRITICAL


# Nothing runs, on purpose


def _gated(manifest: Manifest) -> Manifest:
    return changed(manifest, schedulingGates=[{"name": "kueue.x-k8s.io/admission"}])


def test_queued_by_gates() -> None:
    """
    When all pods of a component wait at Kueue's gate, nothing is broken; as soon as one may go, that is over.
    """
    manifests = deployed("qwen", {"app": "qwen"}, ENGINE, replicas=2)
    world = World([*manifests[:2], *map(_gated, manifests[2:])])
    assert world.component("qwen", "engine").intended_zero == "queued"

    assert world.put(manifests[2]) == {key("qwen")}
    assert world.component("qwen", "engine").intended_zero == ""

    world.put(_gated(manifests[2]))
    assert world.component("qwen", "engine").intended_zero == "queued"
    world.drop(*manifests[2:])
    assert world.component("qwen", "engine").intended_zero == ""


@pytest.mark.parametrize(
    ("manifest", "expected"),
    [
        pytest.param(changed(deployed("x", {}, ENGINE)[0], replicas=0), "scaled_to_zero", id="Deployment at 0"),
        pytest.param(changed(ray_service().objects[0], suspend=True), "suspended", id="RayService suspended"),
        pytest.param(
            noted(changed(ray_service().objects[0], suspend=True), labels={"kueue.x-k8s.io/queue-name": "q"}),
            "queued",
            id="RayService held by Kueue",
        ),
        pytest.param(
            noted(kserve_standard().objects[0], annotations={"serving.kserve.io/stop": "true"}),
            "stopped",
            id="KServe stopped",
        ),
        pytest.param(changed(leader_worker_set().objects[0], replicas=0), "scaled_to_zero", id="LeaderWorkerSet at 0"),
        pytest.param(
            obj("kubeai.org/v1", "Model", "m", spec={"url": "hf://a/b", "minReplicas": 0}),
            "scaled_to_zero",
            id="KubeAI idle",
        ),
        pytest.param(deployed("x", {}, ENGINE)[0], "", id="runs"),
    ],
)
def test_intended_zero(manifest: Manifest, expected: str) -> None:
    """
    That nothing should run is said with its reason.
    """
    (workload,) = World([manifest]).discovery.workloads.values()

    assert {expected} == {part.intended_zero for part in workload.components}


# Ready


def test_ready_counts_whole_groups() -> None:
    """
    A group with one pod that is not ready is not ready.
    """
    manifests = leader_worker_set().objects
    world = World(manifests)
    assert world.discovery.ready(key("llama-405b"), "engine") == 2

    worker = next(m for m in manifests if m["metadata"]["name"] == "llama-405b-1-1")
    world.put({**worker, "status": {"phase": "Pending", "conditions": []}})

    assert world.discovery.ready(key("llama-405b"), "engine") == 1


def test_a_group_whose_workers_are_missing_is_not_ready() -> None:
    """
    Half a group serves nothing.
    """
    manifests = [m for m in leader_worker_set().objects if m["metadata"]["name"] != "llama-405b-0-1"]

    assert World(manifests).discovery.ready(key("llama-405b"), "engine") == 1


def test_terminating_pods_are_not_ready() -> None:
    """
    A pod on its way out takes no new requests.
    """
    manifests = deployed("qwen", {"app": "qwen"}, ENGINE, replicas=2)
    world = World([*manifests[:-1], noted(manifests[-1], deletionTimestamp="2026-11-30T10:00:00Z")])

    assert world.discovery.ready(key("qwen"), "engine") == 1


# Bad input


def test_a_root_that_cannot_be_read_is_still_a_workload() -> None:
    """
    What a broken object would have said is unknown; its pods are where they are, and the object is listed.
    """
    storm = obj(
        "orchestration.aibrix.ai/v1alpha1",
        "StormService",
        "pd",
        spec={"template": {"spec": {"roles": [{"name": "decode", "template": {"spec": {"containers": "none"}}}]}}},
    )
    member = pod("pd-decode-0", storm, {"storm-service-name": "pd", "role-name": "decode"}, ENGINE)
    world = World([storm, member])

    assert world.component("pd", "decode").desired is None
    assert world.component("pd", "decode").gpus_per_replica == 2
    ((_, _, reason),) = world.discovery.skipped
    assert "cannot be read" in reason


def test_an_amount_that_is_no_number() -> None:
    """
    A placeholder for the GPUs makes their number unknown, not the workload.
    """
    broken = container(command=["vllm", "serve", "a/b"], gpus=0)
    broken["resources"] = {"limits": {"nvidia.com/gpu": "${GPUS}"}}
    world = World(deployed("qwen", {"app": "qwen"}, broken))

    assert world.workload("qwen").model.name == "a/b"
    assert len(world.discovery.pods_of(key("qwen"), "engine")) == 1
    assert "${GPUS}" in world.discovery.skipped[0][2]


@pytest.mark.parametrize(
    "spec", [{}, {"components": None}, {"components": "x"}, {"services": []}, {"components": [1, {}]}]
)
def test_a_graph_without_parts(spec: dict[str, Any]) -> None:
    """
    A root with nothing in it, or with the wrong things, is a workload without components.
    """
    world = World([obj("nvidia.com/v1beta1", "DynamoGraphDeployment", "g", spec=spec)])

    assert world.workload("g").components == ()


def test_every_root_may_be_empty() -> None:
    """
    No framework breaks on an object that says nothing.
    """
    from sevenhop.core.objects.kinds import KINDS

    for framework in FRAMEWORKS:
        for name in framework.roots:
            kind = KINDS[name]
            world = World([obj(f"{kind.group}/{kind.versions[0]}", kind.kind, "x", spec={})])
            assert key("x") in world.discovery.workloads or world.discovery.skipped, name


def test_an_empty_cluster() -> None:
    """
    Nothing in, nothing out.
    """
    discovery = Discovery(Objects(), FRAMEWORKS)

    assert discovery.settle() == set()
    assert discovery.skipped == []


def test_a_template_is_placed_before_it_has_pods() -> None:
    """
    A ReplicaSet that may not create its pods already belongs to a component.
    """
    manifests = kserve_standard().objects
    world = World([m for m in manifests if m["kind"] != "Pod"])

    assert world.discovery.component_of("ReplicaSet.apps", key("qwen-predictor-abc")) == (key("qwen"), "predictor")


def test_replica_sets_that_may_not_be_read() -> None:
    """
    The name of a ReplicaSet tells the Deployment, and the Deployment whose it is; in whatever order they are seen.
    """
    manifests = [m for m in production_stack_operator().objects if m["kind"] != "ReplicaSet"]
    runtime, deployment, *pods = manifests
    world = World(pods)
    assert set(world.discovery.workloads) == {key("llama")}
    assert world.workload("llama").kind == "Deployment.apps"

    world.put(deployment, runtime)

    assert set(world.discovery.workloads) == {key("llama")}
    assert world.workload("llama").kind == "VLLMRuntime.production-stack.vllm.ai"
    assert len(world.discovery.pods_of(key("llama"), "engine")) == 2
    world.drop(deployment)
    assert world.component("llama", "engine").scale is not None
    assert {name for _, name in world.discovery.workloads} == {"llama", "llama.deployment"}
