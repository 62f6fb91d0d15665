"""What each framework's objects say: one row per way of saying it."""

from __future__ import annotations

from typing import Any

import pytest

from sevenhop.core.inventory.discovery import Discovery
from sevenhop.core.inventory.workloads import Component, Workload
from sevenhop.frameworks import FRAMEWORKS
from tests.unit.frameworks.running import (
    Manifest,
    container,
    deployed,
    dynamo_deployments,
    dynamo_lws,
    kserve_standard,
    llm_inference_service,
    obj,
    objects_of,
    pod,
    template,
)

GPU2 = container(gpus=2)
PRIORITY = {"priorityClassName": "gold"}


def only(*manifests: Manifest) -> Workload:
    discovery = Discovery(objects_of(manifests), FRAMEWORKS)
    discovery.settle()
    (workload,) = discovery.workloads.values()
    return workload


def graph(version: str, **spec: Any) -> Manifest:
    return obj(f"nvidia.com/{version}", "DynamoGraphDeployment", "g", spec=spec)


def newer(**component: Any) -> Manifest:
    return graph(
        "v1beta1", components=[{"name": "Dec", "type": "decode", "podTemplate": template({}, GPU2), **component}]
    )


def older(**service: Any) -> Manifest:
    return graph("v1alpha1", services={"Dec": {"componentType": "worker", "subComponentType": "decode", **service}})


def ray(kind: str = "RayCluster", **group: Any) -> Manifest:
    config = {"workerGroupSpecs": [{"groupName": "g", "template": template({}, GPU2), **group}]}
    spec = {"RayCluster": config, "RayService": {"rayClusterConfig": config}, "RayJob": {"rayClusterSpec": config}}[
        kind
    ]
    return obj("ray.io/v1", kind, "r", spec=spec)


def isvc(predictor: dict[str, Any], *, status: dict[str, Any] | None = None, **annotations: str) -> Manifest:
    named = {f"serving.kserve.io/{name}": value for name, value in annotations.items()}
    return obj(
        "serving.kserve.io/v1beta1",
        "InferenceService",
        "i",
        annotations=named,
        spec={"predictor": predictor},
        status=status or {},
    )


def llm(**spec: Any) -> Manifest:
    base = {"model": {"uri": "hf://a/b"}, "template": {"containers": [GPU2]}}
    return obj("serving.kserve.io/v1alpha2", "LLMInferenceService", "l", spec={**base, **spec})


def storm(replicas: int, **role: Any) -> Manifest:
    roles = [{"name": "decode", "replicas": 3, "template": template({}, GPU2), **role}]
    return obj(
        "orchestration.aibrix.ai/v1alpha1",
        "StormService",
        "s",
        spec={"replicas": replicas, "template": {"spec": {"roles": roles}}},
    )


def kubeai(**spec: Any) -> Manifest:
    return obj("kubeai.org/v1", "Model", "m", spec={"url": "hf://a/b", **spec})


def nim(**spec: Any) -> Manifest:
    image = {"repository": "nvcr.io/nim/meta/llama", "tag": "1.2"}
    return obj("apps.nvidia.com/v1alpha1", "NIMService", "n", spec={"image": image, **spec})


def rbg(version: str, **role: Any) -> Manifest:
    return obj(f"workloads.x-k8s.io/{version}", "RoleBasedGroup", "r", spec={"roles": [{"name": "decode", **role}]})


def cliques(replicas: int, minimum: int) -> Manifest:
    clique = {"name": "decode", "spec": {"replicas": 3, "minAvailable": minimum, "podSpec": template({}, GPU2)["spec"]}}
    return obj("grove.io/v1alpha1", "PodCliqueSet", "c", spec={"replicas": replicas, "template": {"cliques": [clique]}})


def runtime(**spec: Any) -> Manifest:
    deployment = {"replicas": 2, "resources": {"gpu": "2"}}
    base = {"model": {"modelURL": "a/b"}, "deploymentConfig": deployment}
    return obj("production-stack.vllm.ai/v1alpha1", "VLLMRuntime", "v", spec={**base, **spec})


def fleet() -> Manifest:
    worker = {"replicas": 1, "template": template({}, GPU2)}
    cluster = {"headGroupSpec": {"template": template({}, GPU2)}, "workerGroupSpecs": [worker]}
    return obj(
        "orchestration.aibrix.ai/v1alpha1",
        "RayClusterFleet",
        "f",
        spec={"replicas": 3, "template": {"metadata": {"labels": {"model.aibrix.ai/name": "q"}}, "spec": cluster}},
    )


def disaggregated(mode: str) -> Manifest:
    group = {"size": 2, "workerTemplate": template({}, GPU2)}
    role = {"name": "decode", "scaling": {"mode": mode}, "spec": {"replicas": 3, "leaderWorkerTemplate": group}}
    return obj("disaggregatedset.x-k8s.io/v1", "DisaggregatedSet", "d", spec={"roles": [role]})


def kaito_set() -> Manifest:
    inner = {
        "resource": {"instanceType": "Standard_NC48ads_A100_v4", "count": 2},
        "inference": {"preset": {"name": "phi"}},
    }
    return obj("kaito.sh/v1beta1", "InferenceSet", "k", spec={"replicas": 3, "template": inner})


@pytest.mark.parametrize(
    ("manifest", "desired", "minimum", "pods", "gpus"),
    [
        pytest.param(newer(replicas=3, minAvailable=2), 3, 2, 1, 2, id="Dynamo v1beta1"),
        pytest.param(newer(multinode={"nodeCount": 4}), 1, None, 4, 8, id="Dynamo multinode"),
        pytest.param(older(replicas=2, resources={"limits": {"gpu": "4"}}), 2, None, 1, 4, id="Dynamo v1alpha1"),
        pytest.param(
            older(resources={"requests": {"gpu": 4}}, multinode={"nodeCount": 2}),
            1,
            None,
            2,
            8,
            id="Dynamo v1alpha1 multinode",
        ),
        pytest.param(
            older(extraPodSpec={"mainContainer": {"resources": {"limits": {"nvidia.com/gpu": 3}}}}),
            1,
            None,
            1,
            3,
            id="Dynamo v1alpha1, GPUs at the container",
        ),
        pytest.param(ray(replicas=1, minReplicas=2, maxReplicas=3), 2, 2, 1, 2, id="Ray below its minimum"),
        pytest.param(ray(replicas=9, minReplicas=2, maxReplicas=3), 3, 2, 1, 2, id="Ray above its maximum"),
        pytest.param(ray(replicas=2, numOfHosts=4), 2, None, 4, 8, id="Ray multi-host"),
        pytest.param(ray("RayService", replicas=2), 2, None, 1, 2, id="RayService"),
        pytest.param(ray("RayJob", replicas=2), 2, None, 1, 2, id="RayJob"),
        pytest.param(isvc({"minReplicas": 3, "containers": [GPU2]}), 3, 3, 1, 2, id="KServe custom predictor"),
        pytest.param(isvc({"model": {"resources": GPU2["resources"]}}), 1, None, 1, 2, id="KServe model"),
        pytest.param(
            isvc(
                {
                    "model": {"resources": GPU2["resources"]},
                    "workerSpec": {"pipelineParallelSize": 3, "tensorParallelSize": 2},
                }
            ),
            1,
            None,
            3,
            6,
            id="KServe multi-node",
        ),
        pytest.param(llm(replicas=3), 3, None, 1, 2, id="LLMInferenceService"),
        pytest.param(llm(scaling={"minReplicas": 2, "maxReplicas": 4}), 2, 2, 1, 2, id="LLMInferenceService scaling"),
        pytest.param(
            llm(worker={"containers": [GPU2]}, parallelism={"data": 16, "dataLocal": 4}),
            1,
            None,
            4,
            8,
            id="LLMInferenceService multi-node by data",
        ),
        pytest.param(
            llm(worker={"containers": [GPU2]}, parallelism={"pipeline": 3}),
            1,
            None,
            3,
            6,
            id="LLMInferenceService multi-node by pipeline",
        ),
        pytest.param(
            kubeai(replicas=5, minReplicas=1, maxReplicas=3, resourceProfile="nvidia-gpu-l4:2"), 3, 1, 1, 2, id="KubeAI"
        ),
        pytest.param(
            kubeai(replicas=5, maxReplicas=3, autoscalingDisabled=True, resourceProfile="nvidia-gpu-l4:2"),
            5,
            None,
            1,
            2,
            id="KubeAI without autoscaling",
        ),
        pytest.param(kubeai(replicas=1, resourceProfile="cpu:4"), 1, None, 1, 0, id="KubeAI on CPUs"),
        pytest.param(storm(1), 3, None, 1, 2, id="AIBrix pool"),
        pytest.param(storm(2), 6, None, 1, 2, id="AIBrix replicas"),
        pytest.param(storm(1, podGroupSize=4), 3, None, 4, 8, id="AIBrix pod group"),
        pytest.param(fleet(), 3, None, 2, 4, id="AIBrix fleet of RayClusters"),
        pytest.param(runtime(), 2, None, 1, 2, id="VLLMRuntime"),
        pytest.param(runtime(autoscalingConfig={"enabled": True}), 2, 1, 1, 2, id="VLLMRuntime autoscaled"),
        pytest.param(rbg("v1alpha1", replicas=2, template=template({}, GPU2)), 2, None, 1, 2, id="RBG v1alpha1"),
        pytest.param(
            rbg("v1alpha1", replicas=2, template=template({}, GPU2), leaderWorkerSet={"size": 3}),
            2,
            None,
            3,
            6,
            id="RBG v1alpha1 group",
        ),
        pytest.param(
            rbg(
                "v1alpha2",
                replicas=2,
                customComponentsPattern={
                    "components": [
                        {"name": "a", "size": 1, "template": template({}, GPU2)},
                        {"name": "b", "size": 2, "template": template({}, GPU2)},
                    ]
                },
            ),
            2,
            None,
            3,
            6,
            id="RBG custom components",
        ),
        pytest.param(nim(replicas=2, resources=GPU2["resources"]), 2, None, 1, 2, id="NIM"),
        pytest.param(
            nim(scale={"enabled": True, "hpa": {"minReplicas": 2}}, resources=GPU2["resources"]),
            2,
            2,
            1,
            2,
            id="NIM autoscaled",
        ),
        pytest.param(
            nim(multiNode={"parallelism": {"pipeline": 2, "tensor": 2}}, resources=GPU2["resources"]),
            1,
            None,
            2,
            4,
            id="NIM multi-node",
        ),
        pytest.param(
            nim(
                draResources=[
                    {
                        "claimCreationSpec": {
                            "devices": [{"name": "gpu", "count": 4, "deviceClassName": "gpu.nvidia.com"}]
                        }
                    }
                ]
            ),
            1,
            None,
            1,
            4,
            id="NIM by a claim of several devices",
        ),
        pytest.param(cliques(2, 1), 6, 1, 1, 2, id="Grove"),
        pytest.param(disaggregated("Static"), 3, None, 2, 4, id="DisaggregatedSet"),
        pytest.param(kaito_set(), 3, None, 2, 4, id="KAITO by instance type"),
    ],
)
def test_counts(manifest: Manifest, desired: int, minimum: int | None, pods: int, gpus: int) -> None:
    """
    Replicas in the framework's own unit, with the pods and GPUs of one.
    """
    part = next(p for p in only(manifest).components if p.role not in ("head", "epp"))

    assert (desired, minimum, pods, gpus) == (part.desired, part.minimum, part.pods_per_replica, part.gpus_per_replica)


def scale(part: Component) -> tuple[str, str, str, int] | None:
    target = part.scale
    return (target.kind.partition(".")[0], target.name, target.path, target.unit_pods) if target else None


ADAPTER = "DynamoGraphDeploymentScalingAdapter"


@pytest.mark.parametrize(
    ("manifest", "expected"),
    [
        pytest.param(newer(), ("DynamoGraphDeployment", "g", "spec.components[0].replicas", 1), id="Dynamo v1beta1"),
        pytest.param(older(), ("DynamoGraphDeployment", "g", "spec.services.Dec.replicas", 1), id="Dynamo v1alpha1"),
        pytest.param(newer(scalingAdapter={}), (ADAPTER, "g-dec", "spec.replicas", 1), id="Dynamo with an adapter"),
        pytest.param(
            older(scalingAdapter={"enabled": True}),
            (ADAPTER, "g-dec", "spec.replicas", 1),
            id="Dynamo v1alpha1 adapter",
        ),
        pytest.param(
            older(scalingAdapter={"enabled": False}),
            ("DynamoGraphDeployment", "g", "spec.services.Dec.replicas", 1),
            id="Dynamo, adapter off",
        ),
        pytest.param(ray(numOfHosts=2), ("RayCluster", "r", "spec.workerGroupSpecs[0].replicas", 2), id="RayCluster"),
        pytest.param(ray("RayJob"), None, id="a RayJob only stops"),
        pytest.param(isvc({"model": {}}), ("InferenceService", "i", "spec.predictor.minReplicas", 1), id="KServe"),
        pytest.param(
            isvc({"model": {}}, autoscalerClass="external"),
            ("Deployment", "i-predictor", "spec.replicas", 1),
            id="KServe external",
        ),
        pytest.param(
            isvc(
                {"model": {}},
                status={"components": {"predictor": {"latestReadyRevision": "i-1"}}},
                deploymentMode="Serverless",
            ),
            ("Revision", "i-1", "metadata.annotations.autoscaling.knative.dev/min-scale", 1),
            id="KServe on Knative, hot",
        ),
        pytest.param(
            isvc({"model": {}, "workerSpec": {}, "minReplicas": 1}),
            ("InferenceService", "i", "spec.predictor.minReplicas", 1),
            id="empty workerSpec",
        ),
        pytest.param(isvc({"workerSpec": {"pipelineParallelSize": 2}}), None, id="KServe multi-node only stops"),
        pytest.param(llm(replicas=1), ("LLMInferenceService", "l", "spec.replicas", 1), id="LLMInferenceService"),
        pytest.param(
            llm(scaling={"minReplicas": 1}),
            ("LLMInferenceService", "l", "spec.scaling.minReplicas", 1),
            id="LLMInferenceService scaling",
        ),
        pytest.param(
            llm(), ("Deployment", "l-kserve", "spec.replicas", 1), id="LLMInferenceService that leaves it to the child"
        ),
        pytest.param(storm(1), ("StormService", "s", "spec.template.spec.roles[0].replicas", 1), id="AIBrix pool"),
        pytest.param(storm(2), ("StormService", "s", "spec.replicas", 1), id="AIBrix replicas"),
        pytest.param(kubeai(), ("Model", "m", "spec.maxReplicas", 1), id="KubeAI"),
        pytest.param(
            kubeai(autoscalingDisabled=True), ("Model", "m", "spec.replicas", 1), id="KubeAI without autoscaling"
        ),
        pytest.param(nim(), ("NIMService", "n", "spec.replicas", 1), id="NIM"),
        pytest.param(
            nim(scale={"enabled": True}), ("NIMService", "n", "spec.scale.hpa.minReplicas", 1), id="NIM autoscaled"
        ),
        pytest.param(
            rbg("v1alpha2", scalingAdapter={"enable": True}),
            ("RoleBasedGroupScalingAdapter", "r-decode", "spec.replicas", 1),
            id="RBG with an adapter",
        ),
        pytest.param(
            disaggregated("External"), ("DisaggregatedSetRoleScaler", "d-decode", "spec.replicas", 2), id="role scaler"
        ),
        pytest.param(
            disaggregated("Static"), ("DisaggregatedSet", "d", "spec.roles[0].spec.replicas", 2), id="static role"
        ),
        pytest.param(
            pod("p", None, {}, container(command=["vllm", "serve", "a/b"])), None, id="a bare pod has no count"
        ),
    ],
)
def test_scale(manifest: Manifest, expected: tuple[str, str, str, int] | None) -> None:
    """
    The object and the field that really rule the count.
    """
    part = next(p for p in only(manifest).components if p.role not in ("head", "epp"))

    assert expected == scale(part)


SERVE = """
applications:
- import_path: ray.serve.llm:build_openai_app
  args:
    llm_configs:
    - model_loading_config: {model_id: qwen, model_source: Qwen/Q}
      engine_kwargs: {revision: r7}
"""
SERVE_PD = """
applications:
- import_path: ray.serve.llm:build_pd_openai_app
  args:
    prefill_config: {model_loading_config: {model_id: qwen}}
    decode_config: {model_loading_config: {model_id: qwen}}
"""


def serve(config: str) -> Manifest:
    return obj("ray.io/v1", "RayService", "r", spec={"serveConfigV2": config, "rayClusterConfig": {}})


@pytest.mark.parametrize(
    ("manifest", "name", "version"),
    [
        pytest.param(serve(SERVE), "qwen", "r7", id="Ray Serve"),
        pytest.param(serve(SERVE_PD), "qwen", "", id="Ray Serve prefill and decode"),
        pytest.param(serve("applications: ["), "", "", id="Ray Serve, broken YAML"),
        pytest.param(serve("just a text"), "", "", id="Ray Serve, no configuration"),
        pytest.param(newer(modelRef={"name": "a/b", "revision": "r1"}), "a/b", "r1", id="Dynamo modelRef"),
        pytest.param(
            newer(podTemplate=template({}, container(args=["--model", "a/b@r2"]))), "a/b", "r2", id="Dynamo arguments"
        ),
        pytest.param(isvc({"model": {"storageUri": "hf://a/b:r3"}}), "i", "r3", id="KServe hub revision"),
        pytest.param(
            isvc({"model": {"storageUri": "oci://x/y@sha256:ff"}}), "i", "sha256:ff", id="KServe modelcar digest"
        ),
        pytest.param(
            isvc({"model": {"storage": {"path": "models/v4", "key": "k"}}}), "i", "v4", id="KServe storage spec"
        ),
        pytest.param(
            isvc({"model": {"args": ["--model_id=a/b", "--model_revision=r4", "--model_name=x"]}}),
            "x",
            "r4",
            id="KServe arguments",
        ),
        pytest.param(isvc({"sklearn": {"storageUri": "s3://b/m/v5"}}), "i", "v5", id="KServe old format"),
        pytest.param(
            isvc(
                {
                    "model": {"args": []},
                    "storageUris": [
                        {"uri": "s3://b/adapter/v9", "mountPath": "/mnt/adapter"},
                        {"uri": "s3://b/m/v7", "mountPath": "/mnt/models"},
                    ],
                }
            ),
            "i",
            "v7",
            id="KServe several sources",
        ),
        pytest.param(
            isvc({"containers": [container(command=["vllm", "serve", "a/b", "--revision", "r5"])]}),
            "a/b",
            "r5",
            id="KServe own container",
        ),
        pytest.param(llm(model={"uri": "hf://a/b:r6", "name": "b"}), "b", "r6", id="LLMInferenceService"),
        pytest.param(llm(model={"uri": "s3://x/b/v6"}), "l", "v6", id="LLMInferenceService without a name"),
        pytest.param(kubeai(args=["--revision=r8"]), "m", "r8", id="KubeAI"),
        pytest.param(storm(1, template=template({"model.aibrix.ai/name": "q"}, GPU2)), "q", "", id="AIBrix label"),
        pytest.param(fleet(), "q", "", id="AIBrix fleet"),
        pytest.param(runtime(vllmConfig={"extraArgs": ["--revision", "r9"]}), "a/b", "r9", id="VLLMRuntime"),
        pytest.param(nim(), "meta/llama", "1.2", id="NIM"),
        pytest.param(
            nim(image={"repository": "nvcr.io/nim/meta/llama@sha256:ab"}), "meta/llama", "sha256:ab", id="NIM by digest"
        ),
        pytest.param(kaito_set(), "phi", "", id="KAITO preset"),
    ],
)
def test_model(manifest: Manifest, name: str, version: str) -> None:
    """
    The model as requests name it, and its release, wherever the framework keeps them.
    """
    model = only(manifest).model

    assert (name, version) == (model.name, model.version)


@pytest.mark.parametrize(
    "manifest",
    [
        pytest.param(
            graph("v1beta1", components=[{"name": "d", "type": "decode"}], **PRIORITY), id="Dynamo, whole graph"
        ),
        pytest.param(newer(podTemplate=template({}, GPU2, **PRIORITY)), id="Dynamo component"),
        pytest.param(ray(template=template({}, GPU2, **PRIORITY)), id="Ray"),
        pytest.param(isvc({"containers": [GPU2], **PRIORITY}), id="KServe"),
        pytest.param(llm(template={"containers": [GPU2], **PRIORITY}), id="LLMInferenceService"),
        pytest.param(kubeai(**PRIORITY), id="KubeAI"),
        pytest.param(nim(**PRIORITY), id="NIM"),
        pytest.param(storm(1, template=template({}, GPU2, **PRIORITY)), id="AIBrix"),
    ],
)
def test_priority(manifest: Manifest) -> None:
    """
    The PriorityClass that the pods will have.
    """
    assert "gold" in {part.priority_class for part in only(manifest).components}


@pytest.mark.parametrize(
    ("scene", "expected"),
    [
        pytest.param(
            dynamo_deployments(), {"Frontend": 1, "VllmDecodeWorker": 2}, id="from DynamoComponentDeployments"
        ),
        pytest.param(dynamo_lws(), {"VllmDecodeWorker": 1}, id="from one that has a LeaderWorkerSet"),
        pytest.param(kserve_standard(), {"predictor": 3, "transformer": 1}, id="from Deployments"),
        pytest.param(
            llm_inference_service(), {"decode": 2, "prefill": 1, "scheduler": 1}, id="from labels of Deployments"
        ),
    ],
)
def test_desired_without_the_root(scene: Any, expected: dict[str, int]) -> None:
    """
    Where the root may not be read, what it made says how much is wanted, and nothing is counted twice.
    """
    workload = only(*scene.objects[1:])

    assert expected == {part.name: part.desired for part in workload.components}


def test_a_relabelled_pod_moves() -> None:
    """
    Labels may be changed while a pod runs; it then belongs elsewhere.
    """
    service = isvc({"model": {}})
    labels = {"serving.kserve.io/inferenceservice": "i", "component": "predictor"}
    objects = objects_of([service, pod("p", None, labels)])
    discovery = Discovery(objects, FRAMEWORKS)
    discovery.settle()
    moved = objects_of([pod("p", None, {**labels, "component": "transformer"})]).pods()
    for key, found in moved.items():
        objects.put("Pod", found)
        discovery.touch("Pod", key)
    discovery.settle()

    assert {m.component for m in map(discovery.membership, moved) if m is not None} == {"transformer"}


def test_tuning_is_no_inference() -> None:
    """
    A KAITO Workspace may tune a model; then it serves none.
    """
    space = obj("kaito.sh/v1beta1", "Workspace", "t", resource={"instanceType": "x"}, tuning={"preset": {"name": "p"}})
    discovery = Discovery(objects_of([space]), FRAMEWORKS)
    discovery.settle()

    assert dict(discovery.workloads) == {}
    assert [reason for _, _, reason in discovery.skipped] == ["a workspace for tuning, not for inference"]


def test_a_job_serves_nobody() -> None:
    """
    A batch job that runs an engine is told apart from a server.
    """
    job = obj("batch/v1", "Job", "bench", spec={"template": template({}, container(command=["vllm", "serve", "a/b"]))})
    discovery = Discovery(
        objects_of([job, pod("bench-x", job, {}, container(command=["vllm", "serve", "a/b"]))]), FRAMEWORKS
    )
    discovery.settle()

    assert dict(discovery.workloads) == {}
    assert [reason for _, _, reason in discovery.skipped] == ["a Job that runs vllm, and serves nobody"]


def test_a_sidecar_of_monitoring_changes_nothing() -> None:
    """
    Whatever else runs in the pod, the engine's GPUs and image are the component's.
    """
    engine = container(command=["vllm", "serve", "a/b"], gpus=4)
    part = only(*deployed("q", {"app": "q"}, container("exporter", "prom/exporter:1", 0), engine)).components[0]

    assert (part.gpus_per_replica, part.image) == (4, engine["image"])


@pytest.mark.parametrize(
    ("name", "role_name", "role"),
    [
        pytest.param("p", "prefill", "prefill", id="only its role says so"),
        pytest.param("decode", "prefill", "decode", id="its name comes first"),
        pytest.param("p", "pleader", "worker", id="neither"),
    ],
)
def test_role_of_a_clique(name: str, role_name: str, role: str) -> None:
    """
    A clique of Grove has a role's name beside its own.
    """
    spec = {"roleName": role_name, "replicas": 1, "podSpec": template({}, GPU2)["spec"]}
    manifest = obj(
        "grove.io/v1alpha1",
        "PodCliqueSet",
        "c",
        spec={"replicas": 1, "template": {"cliques": [{"name": name, "spec": spec}]}},
    )

    assert [part.role for part in only(manifest).components] == [role]
