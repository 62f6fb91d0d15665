"""What has no count, cannot be split, or was never proven, is refused with words."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from sevenhop.core.remediation.reduction import Conflict, ConflictReason
from tests.unit.frameworks import running
from tests.unit.frameworks.running import NAMESPACE
from tests.unit.scaling import scenes
from tests.unit.scaling.case import DEPLOYMENT, GRAPH, RAY, SERVICE, Case, beside, check, lws, ray, touched
from tests.unit.scaling.world import World

R = ConflictReason
plain, dynamo, isvc = scenes.plain, scenes.dynamo, scenes.isvc


def multi_node() -> World:
    world = isvc()
    world.manifest(*SERVICE)["spec"]["predictor"]["workerSpec"] = {"pipelineParallelSize": 2}
    world.read()
    return world


def unlabelled_hosts() -> World:
    world = scenes.ray_cluster(hosts=2)
    del world.manifest("Pod", "batch-gpu-20")["metadata"]["labels"]["ray.io/worker-group-replica-name"]
    world.read()
    return world


def without(make: Callable[[], World], kind: str, name: str) -> Callable[[], World]:
    def made() -> World:
        world = make()
        del world.manifests[(kind, NAMESPACE, name)]
        world.read()
        return world

    return made


def of_version(make: Callable[[], World], kind: str, name: str, version: str) -> Callable[[], World]:
    def made() -> World:
        world = make()
        world.manifest(kind, name)["apiVersion"] = version
        world.read()
        return world

    return made


def of_a_rollout() -> World:
    """Argo Rollouts makes the ReplicaSet, and there is no Deployment."""
    world = without(plain, *DEPLOYMENT)()
    owner = world.manifest("ReplicaSet", "summarizer-abc")["metadata"]["ownerReferences"][0]
    owner |= {"apiVersion": "argoproj.io/v1alpha1", "kind": "Rollout"}
    world.read()
    return world


PREDICTOR = {"serving.kserve.io/inferenceservice": "qwen", "component": "predictor"}
LLM = ("LLMInferenceService", "mixtral")
ALONE = {"name": "decode", "type": "decode", "replicas": 2, "podTemplate": running.template({})}
BASE = running.obj("serving.kserve.io/v1alpha2", "LLMInferenceServiceConfig", "base", spec={"replicas": 4})
STRANGER = {
    "apiVersion": "x.example/v1",
    "kind": "Fleet",
    "metadata": {"name": "f", "namespace": NAMESPACE, "uid": "f"},
}


def owned_cluster() -> World:
    cluster = scenes.ray_cluster().manifest("RayCluster", "batch")
    cluster["metadata"]["ownerReferences"] = [running.reference(STRANGER)]
    return World([cluster])


SHAPES = [
    Case(
        "a rollout of Argo", of_a_rollout, "engine", R.NOT_PROVEN, ("ReplicaSet summarizer-abc", "Rollout summarizer")
    ),
    Case("multi-node predictor", multi_node, "predictor", R.INDIVISIBLE, ("serving.kserve.io/stop",)),
    Case("the head of a cluster", scenes.ray_cluster, "headgroup", R.INDIVISIBLE, ("headgroup",)),
    Case("hosts that cannot be told apart", unlabelled_hosts, "gpu", R.INDIVISIBLE, ("2 pods",)),
    Case("bare pod", lambda: scenes.world(running.plain_pod), "engine", R.NO_TARGET),
    Case(
        "live cluster unknown",
        touched(ray, *RAY, status={"activeServiceStatus": {}}),
        "h100",
        R.UNKNOWN,
        ("RayService chat",),
    ),
    Case(
        "live cluster not there",
        touched(ray, *RAY, status={"activeServiceStatus": {"rayClusterName": "gone"}}),
        "h100",
        R.NO_TARGET,
        ("gone",),
    ),
    Case(
        "adapter not there",
        lambda: scenes.dynamo_with(lambda parts: parts[1].update(scalingAdapter={})),
        "VllmDecodeWorker",
        R.NO_TARGET,
        ("llama-70b-vllmdecodeworker",),
    ),
    Case(
        "adapter of another",
        beside(
            lambda: scenes.dynamo_with(lambda parts: parts[1].update(scalingAdapter={})),
            {
                **scenes.adapter(),
                "spec": {"replicas": 2, "dgdRef": {"name": "other", "componentName": "VllmDecodeWorker"}},
            },
        ),
        "VllmDecodeWorker",
        R.NOT_PROVEN,
    ),
    Case(
        "being deleted",
        touched(plain, *DEPLOYMENT, metadata={"deletionTimestamp": "2026-11-30T12:00:00Z"}),
        "engine",
        R.NO_TARGET,
        ("deleted",),
    ),
    Case("NIM on KServe", lambda: scenes.world(running.nim_on_kserve), "engine", R.NOT_PROVEN, ("kserve",)),
    Case("unknown autoscaler class", lambda: isvc("magic"), "predictor", R.NOT_PROVEN, ("magic",)),
    Case(
        "ModelMesh",
        touched(isvc, *SERVICE, annotations={"serving.kserve.io/deploymentMode": "ModelMesh"}),
        "predictor",
        R.NOT_PROVEN,
        ("ModelMesh",),
    ),
    Case(
        "replicas in a base config",
        beside(lambda: scenes.llm(replicas=None, baseRefs=[{"name": "base"}]), BASE),
        "decode",
        R.NOT_PROVEN,
        ("base",),
    ),
    Case(
        "Dynamo of a version to come",
        of_version(dynamo, *GRAPH, "nvidia.com/v2"),
        "VllmDecodeWorker",
        R.NOT_PROVEN,
        ("v2", "v1beta1"),
    ),
    Case(
        "Ray of an old version",
        of_version(scenes.ray_cluster, "RayCluster", "batch", "ray.io/v1alpha1"),
        "gpu",
        R.NOT_PROVEN,
        ("v1alpha1",),
    ),
    Case(
        "LWS of a version to come",
        of_version(lws, "LeaderWorkerSet", "llama-405b", "leaderworkerset.x-k8s.io/v2"),
        "engine",
        R.NOT_PROVEN,
    ),
    Case("made by somebody unknown", lambda: plain(owner=STRANGER), "engine", R.NOT_PROVEN, ("Fleet f",)),
    Case(
        "somebody unknown in between",
        touched(scenes.nim, "Deployment", "llama", metadata={"ownerReferences": [running.reference(STRANGER)]}),
        "engine",
        R.NOT_PROVEN,
        ("Fleet f",),
    ),
    Case(
        "a Dynamo component without a graph",
        lambda: World([running.obj("nvidia.com/v1beta1", "DynamoComponentDeployment", "alone", spec=ALONE)]),
        "decode",
        R.NOT_PROVEN,
        ("alone",),
    ),
    Case(
        "a graph in the shape of another version",
        of_version(dynamo, *GRAPH, "nvidia.com/v1alpha1"),
        "VllmDecodeWorker",
        R.NO_TARGET,
        ("VllmDecodeWorker",),
    ),
    Case(
        "an adapter without replicas",
        touched(scenes.dynamo_adapted, scenes.ADAPTER, "llama-70b-vllmdecodeworker", spec={"replicas": None}),
        "VllmDecodeWorker",
        R.UNKNOWN,
    ),
    Case("RayService of an old version", of_version(ray, *RAY, "ray.io/v1alpha1"), "h100", R.NOT_PROVEN, ("v1alpha1",)),
    Case("a RayCluster of somebody unknown", owned_cluster, "gpu", R.NOT_PROVEN, ("Fleet f",)),
    Case(
        "KServe of another version",
        of_version(isvc, *SERVICE, "serving.kserve.io/v2"),
        "predictor",
        R.NOT_PROVEN,
        ("v2", "v1beta1"),
    ),
    Case(
        "KServe without its Deployment",
        without(isvc, "Deployment", "qwen-predictor"),
        "predictor",
        R.NO_TARGET,
        ("qwen-predictor",),
    ),
    Case(
        "KServe in two Deployments",
        beside(isvc, *running.deployed("qwen-canary", PREDICTOR, owner=running.kserve_standard().objects[0])),
        "predictor",
        R.ROLLOUT,
        ("qwen-canary", "qwen-predictor"),
    ),
    Case(
        "Knative, no revision ready",
        touched(scenes.knative, *SERVICE, status={"components": {}}),
        "predictor",
        R.UNKNOWN,
        ("predictor",),
    ),
    Case(
        "Knative, revision gone",
        without(scenes.knative, "Revision", "qwen-predictor-00002"),
        "predictor",
        R.NO_TARGET,
        ("Revision qwen-predictor-00002",),
    ),
    Case(
        "Knative, Deployment gone",
        without(scenes.knative, "Deployment", "qwen-predictor-00002-deployment"),
        "predictor",
        R.NO_TARGET,
        ("qwen-predictor-00002-deployment",),
    ),
    Case("Knative, still on its way", lambda: scenes.knative(min_scale="5"), "predictor", R.ROLLOUT, ("5–",)),
    Case(
        "LLMInferenceService of another version",
        of_version(scenes.llm, *LLM, "serving.kserve.io/v1"),
        "decode",
        R.NOT_PROVEN,
        ("v1alpha2",),
    ),
    Case("its last prefill", scenes.llm, "prefill", R.FLOOR, ("prefill", "1")),
    Case(
        "its prefill's child",
        lambda: scenes.llm(prefill={"replicas": 7}),
        "prefill",
        R.ROLLOUT,
        ("mixtral-kserve-prefill",),
    ),
    Case(
        "LLMInferenceService without its child",
        without(scenes.llm, "Deployment", "mixtral-kserve"),
        "decode",
        R.NO_TARGET,
        ("mixtral-kserve",),
    ),
    Case(
        "groups without their LeaderWorkerSet",
        lambda: scenes.llm(worker={"containers": [running.container()]}, parallelism={"pipeline": 2}),
        "decode",
        R.NO_TARGET,
        ("LeaderWorkerSet mixtral-kserve-mn",),
    ),
    Case(
        "LLMInferenceService still scaling",
        lambda: scenes.llm(replicas=None, scaling={"minReplicas": 3, "maxReplicas": 5}),
        "decode",
        R.ROLLOUT,
        ("3–5",),
    ),
    Case("KubeAI", lambda: scenes.world(running.kubeai), "engine", R.NOT_PROVEN, ("kubeai",)),
]


@pytest.mark.parametrize("case", SHAPES, ids=lambda case: case.id)
def test_shapes(case: Case) -> None:
    """
    Each is refused for its own reason, by name.
    """
    check(case)


def test_ray_job_only_stops() -> None:
    """
    A RayJob is not reduced in part, whatever its cluster looks like.
    """
    job = running.obj(
        "ray.io/v1", "RayJob", "train", spec={"rayClusterSpec": ray().manifest("RayCluster", "chat-x7k2p")["spec"]}
    )

    found = World([job]).rule("h100")

    assert isinstance(found, Conflict)
    assert found.reason is R.INDIVISIBLE
