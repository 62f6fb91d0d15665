"""The served models of the demo's clusters, each as its operator would have made it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from sevenhop.demo.manifests import GPU, Item, Manifest, container, deployment, reference, service

VLLM = "vllm/vllm-openai:v0.15.1"
DYNAMO = "nvcr.io/nvidia/ai-dynamo/vllm-runtime:1.4.0"
KSERVE = "kserve/huggingfaceserver:v0.16.0-gpu"

TIER, OWNER = "sevenhop.dev/tier", "sevenhop.dev/owner"


class Part(NamedTuple):
    """
    One component of a Dynamo graph.

    Attributes:
        type: frontend, prefill or decode.
        replicas: As the graph asks for.
        least: Its `minAvailable`.
        selector: Of its pods' nodes.
    """

    type: str
    replicas: int
    gpus: int
    least: int = 1
    selector: Mapping[str, str] | None = None


def dynamo(
    name: str, space: str, model: str, revision: str, parts: Sequence[Part], annotations: Mapping[str, str]
) -> list[Item]:
    """
    A DynamoGraphDeployment with what its operator makes of it without Grove: a DynamoComponentDeployment and a
    Deployment for each part (labels: ai-dynamo/dynamo, deploy/operator/internal/consts/consts.go).
    """
    spec = {"backendFramework": "vllm", "components": [_component(part, name, model, revision) for part in parts]}
    graph = _object("nvidia.com/v1beta1", "DynamoGraphDeployment", name, space, spec, annotations=annotations)
    items = [Item("DynamoGraphDeployment.nvidia.com", graph)]
    for part in parts:
        child = f"{name}-{part.type}"
        labels = _dynamo_labels(name, space, part)
        inner = {**_component(part, name, model, revision), "backendFramework": "vllm"}
        own = _object("nvidia.com/v1beta1", "DynamoComponentDeployment", child, space, inner, labels=labels)
        own["metadata"]["ownerReferences"] = [reference(graph)]
        items.append(Item("DynamoComponentDeployment.nvidia.com", own))
        pod = {**inner["podTemplate"]["spec"], "terminationGracePeriodSeconds": 60}
        selector = {"nvidia.com/selector": child}
        items.append(deployment(child, space, pod, selector=selector, labels=labels, owner=own))
    front = next((part for part in parts if part.type == "frontend"), None)
    if front is not None:
        items.append(service(f"{name}-frontend", space, {"nvidia.com/selector": f"{name}-frontend"}))
    return items


def _component(part: Part, name: str, model: str, revision: str) -> Manifest:
    is_worker = part.type != "frontend"
    args: tuple[str, ...] = ("--model", model, "--served-model-name", name, "--revision", revision) * is_worker
    if part.gpus > 1:
        args += ("--tensor-parallel-size", str(part.gpus))
    if is_worker:
        args += ("--disaggregation-mode", part.type)
    command = ("python3", "-m", "dynamo.vllm" if is_worker else "dynamo.frontend")
    pod: Manifest = {"containers": [container("main", DYNAMO, gpus=part.gpus, command=command, args=args)]}
    if part.selector:
        pod["nodeSelector"] = dict(part.selector)
    made: Manifest = {"name": part.type, "type": part.type, "replicas": part.replicas, "podTemplate": {"spec": pod}}
    return made | ({"minAvailable": part.least} if is_worker else {})


def _dynamo_labels(name: str, space: str, part: Part) -> dict[str, str]:
    labels = {
        "nvidia.com/dynamo-graph-deployment-name": name,
        "nvidia.com/dynamo-component": part.type,
        "nvidia.com/dynamo-component-type": part.type,
        "nvidia.com/dynamo-namespace": f"{space}-{name}",
    }
    return labels | ({"nvidia.com/dynamo-sub-component-type": part.type} if part.type != "frontend" else {})


def kserve(
    name: str, space: str, storage: str, *, gpus: int, least: int, most: int, annotations: Mapping[str, str]
) -> list[Item]:
    """
    An InferenceService in Standard mode, with the Deployment and HorizontalPodAutoscaler that KServe makes of it.
    """
    model = {
        "modelFormat": {"name": "huggingface"},
        "args": [f"--model_name={name}"],
        "storageUri": storage,
        "resources": container("", "", gpus=gpus)["resources"],
    }
    spec = {"predictor": {"minReplicas": least, "maxReplicas": most, "model": model}}
    modes = {"serving.kserve.io/deploymentMode": "Standard", "serving.kserve.io/autoscalerClass": "hpa"}
    notes = {**modes, **annotations}
    own = _object("serving.kserve.io/v1beta1", "InferenceService", name, space, spec, annotations=notes)
    child = f"{name}-predictor"
    cpu = {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 80}}
    limits = {
        "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": child},
        "minReplicas": least,
        "maxReplicas": most,
        "metrics": [{"type": "Resource", "resource": cpu}],
    }
    scaler = _object("autoscaling/v2", "HorizontalPodAutoscaler", child, space, limits)
    scaler["metadata"]["ownerReferences"] = [reference(own)]
    pod = {"containers": [container("kserve-container", KSERVE, gpus=gpus, args=(f"--model_name={name}",))]}
    return [
        Item("InferenceService.serving.kserve.io", own),
        deployment(
            child,
            space,
            pod,
            selector={"app": f"isvc.{child}"},
            labels={"serving.kserve.io/inferenceservice": name, "component": "predictor"},
            pod_annotations={"internal.serving.kserve.io/storage-initializer-sourceuri": storage},
            owner=own,
        ),
        Item("HorizontalPodAutoscaler.autoscaling", scaler),
        service(child, space, {"app": f"isvc.{child}"}),
    ]


def plain(name: str, space: str, model: str, *, gpus: int, annotations: Mapping[str, str]) -> list[Item]:
    """A vLLM server as a Deployment of its own, without any framework."""
    args = ("--model", model, "--served-model-name", name, "--tensor-parallel-size", str(gpus))
    command = ("python3", "-m", "vllm.entrypoints.openai.api_server")
    pod = {"containers": [container("vllm", VLLM, gpus=gpus, command=command, args=args)]}
    selector = {"app": name}
    return [
        deployment(name, space, pod, selector=selector, annotations=annotations),
        service(name, space, selector),
    ]


def budget(name: str, space: str, least: int) -> Item:
    """A PodDisruptionBudget for a `plain` server: its floor."""
    spec = {"minAvailable": least, "selector": {"matchLabels": {"app": name}}}
    return Item("PodDisruptionBudget.policy", _object("policy/v1", "PodDisruptionBudget", name, space, spec))


def notebook(name: str, space: str, node: str, *, gpus: int = 1) -> Item:
    """A bare pod that somebody started on a node of their choice."""
    pod = {
        "containers": [{**container("jupyter", "quay.io/jupyter/pytorch-notebook:cuda12"), "resources": _gpus(gpus)}],
        "nodeSelector": {"kubernetes.io/hostname": node},
    }
    return Item("Pod", _object("v1", "Pod", name, space, pod))


def _gpus(number: int) -> Manifest:
    amounts = {"cpu": "4", "memory": "32Gi", GPU: str(number)}
    return {"requests": amounts, "limits": amounts}


def _object(
    version: str,
    kind: str,
    name: str,
    space: str,
    spec: Manifest,
    *,
    labels: Mapping[str, str] | None = None,
    annotations: Mapping[str, str] | None = None,
) -> Manifest:
    meta: Manifest = {"name": name, "namespace": space}
    if labels:
        meta["labels"] = dict(labels)
    if annotations:
        meta["annotations"] = dict(annotations)
    return {"apiVersion": version, "kind": kind, "metadata": meta, "spec": spec}
