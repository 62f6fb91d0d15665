"""Further scenes, each a variant of how a framework may be set up."""

from __future__ import annotations

import copy
from collections.abc import Callable

from tests.unit.frameworks import running
from tests.unit.frameworks.running import Manifest, container, deployed, obj, pod, template
from tests.unit.scaling.world import World, other

GRAPH = "DynamoGraphDeployment"
ADAPTER = "DynamoGraphDeploymentScalingAdapter"
ISVC, LLM = "InferenceService", "LLMInferenceService"


def world(scene: Callable[[], running.Scene], *more: Manifest) -> World:
    return World([*scene().objects, *more])


def adapter(replicas: int = 2, version: str = "v1beta1", component: str = "VllmDecodeWorker") -> Manifest:
    named = {"v1beta1": "componentName", "v1alpha1": "serviceName"}[version]
    spec = {"replicas": replicas, "dgdRef": {"name": "llama-70b", named: component}}
    return other(f"nvidia.com/{version}", ADAPTER, f"llama-70b-{component.lower()}", spec=spec)


def dynamo() -> World:
    return world(running.dynamo_deployments)


def dynamo_adapted() -> World:
    found = dynamo_with(lambda parts: parts[1].update(scalingAdapter={}))
    return World([*found.manifests.values(), adapter()])


def dynamo_with(change: Callable[[list[Manifest]], object]) -> World:
    found = dynamo()
    change(found.manifest(GRAPH, "llama-70b")["spec"]["components"])
    return World(found.manifests.values())


def dynamo_older(**changes: object) -> World:
    """v1alpha1: services by name; a change to None takes the field away."""
    objects = copy.deepcopy(running.dynamo_deployments().objects)
    graph = objects[0]
    newer = {part["name"]: part for part in graph["spec"]["components"]}
    graph["apiVersion"] = "nvidia.com/v1alpha1"
    graph["spec"] = {
        "services": {
            name: {"componentType": part["type"], "replicas": part["replicas"], "extraPodSpec": {"mainContainer": c}}
            for name, part in newer.items()
            for c in part["podTemplate"]["spec"]["containers"]
        }
    }
    decode = graph["spec"]["services"]["VllmDecodeWorker"] | changes
    graph["spec"]["services"]["VllmDecodeWorker"] = {k: v for k, v in decode.items() if v is not None}
    return World(objects)


def pair() -> World:
    """A graph with prefill beside decode."""
    prefill = {"name": "Prefill", "type": "prefill", "replicas": 1, "podTemplate": template({}, container())}

    def change(parts: list[Manifest]) -> None:
        parts.append(prefill)
        del parts[1]["minAvailable"]

    return dynamo_with(change)


def ray_cluster(*, autoscaler: bool = False, hosts: int = 1, **group: object) -> World:
    spec = {
        "enableInTreeAutoscaling": autoscaler,
        "headGroupSpec": {"template": template({}, container("ray-head", "rayproject/ray:2.52.0", 0))},
        "workerGroupSpecs": [
            {"groupName": "cpu", "replicas": 0, "template": template({}, container("w", "rayproject/ray:2.52.0", 0))},
            {
                "groupName": "gpu",
                "replicas": 3,
                "minReplicas": 3,
                "maxReplicas": 5,
                "numOfHosts": hosts,
                "template": template({}, container("ray-worker", "rayproject/ray-llm:2.52.0", 8)),
                **group,
            },
        ],
    }
    cluster = obj("ray.io/v1", "RayCluster", "batch", spec=spec)
    base = {"ray.io/cluster": "batch", "ray.io/is-ray-node": "yes"}
    head = {**base, "ray.io/node-type": "head", "ray.io/group": "headgroup"}
    objects = [cluster, pod("batch-head", cluster, head, container("ray-head", "rayproject/ray:2.52.0", 0))]
    for replica in range(3):
        for host in range(hosts):
            labels = {**base, "ray.io/node-type": "worker", "ray.io/group": "gpu"}
            if hosts > 1:
                labels["ray.io/worker-group-replica-name"] = f"gpu-{replica}"
            objects.append(pod(f"batch-gpu-{replica}{host}", cluster, labels, container("ray-worker", gpus=8)))
    return World(objects)


def isvc(autoscaler: str = "", least: int | None = 1, most: int | None = 4, running_now: int = 3) -> World:
    found = world(running.kserve_standard)
    service = found.manifest(ISVC, "qwen")
    predictor = service["spec"]["predictor"]
    for name, value in (("minReplicas", least), ("maxReplicas", most)):
        predictor.pop(name, None)
        if value is not None:
            predictor[name] = value
    if autoscaler:
        service["metadata"]["annotations"] = {"serving.kserve.io/autoscalerClass": autoscaler}
    child = found.manifest("Deployment", "qwen-predictor")
    child["spec"]["replicas"] = running_now
    child["status"] |= {"replicas": running_now, "updatedReplicas": running_now}
    return World(found.manifests.values())


def knative(**annotations: str) -> World:
    found = world(running.kserve_knative)
    notes = {f"autoscaling.knative.dev/{key.replace('_', '-')}": value for key, value in annotations.items()}
    if notes:
        found.manifest("Revision", "qwen-predictor-00002")["metadata"]["annotations"] = notes
    return World(found.manifests.values())


def llm(**changes: object) -> World:
    """An LLMInferenceService; a change to None takes the field away."""
    found = world(running.llm_inference_service)
    spec = found.manifest(LLM, "mixtral")["spec"]
    for name, value in changes.items():
        spec.pop(name, None)
        if value is not None:
            spec[name] = value
    return World(found.manifests.values())


def lws() -> World:
    return world(running.leader_worker_set)


def llm_d_groups() -> World:
    """llm-d on a LeaderWorkerSet."""
    labels = {"llm-d.ai/inference-serving": "true", "llm-d.ai/model": "opt", "llm-d.ai/role": "decode"}
    engine = container("vllm", "ghcr.io/llm-d/llm-d-cuda:v0.9", command=["vllm", "serve"], args=["facebook/opt"])
    group = {"size": 2, "workerTemplate": template(labels, engine)}
    found = obj(
        "leaderworkerset.x-k8s.io/v1",
        "LeaderWorkerSet",
        "ms-decode",
        labels=labels,
        spec={"replicas": 3, "leaderWorkerTemplate": group},
    )
    objects = [found]
    for index in range(3):
        objects += running.lws_group(found, index, 2, labels, engine, engine)
    return World({(o["kind"], o["metadata"]["name"]): o for o in objects}.values())


def nim(**spec: object) -> World:
    found = world(running.nim_standalone)
    found.manifest("NIMService", "llama")["spec"] |= spec
    return World(found.manifests.values())


def plain(replicas: int = 3, owner: Manifest | None = None) -> World:
    engine = container(command=["vllm", "serve"], args=["Qwen/Qwen3-32B"], gpus=2)
    return World(deployed("summarizer", {"app": "summarizer"}, engine, replicas=replicas, owner=owner))
