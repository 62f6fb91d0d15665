"""Nodes, pods and the built-in kinds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from copy import deepcopy
from typing import Any

from tests.testbed.client import Object

VLLM_IMAGE = "vllm/vllm-openai:v0.15.1"

# What NVIDIA's GPU Feature Discovery says of a product: MiB, family, compute capability.
_GPUS = {
    "NVIDIA-H100-80GB-HBM3": (81559, "hopper", (9, 0)),
    "NVIDIA-H200": (143771, "hopper", (9, 0)),
    "NVIDIA-B200": (183359, "blackwell", (10, 0)),
    "NVIDIA-A100-SXM4-80GB": (81920, "ampere", (8, 0)),
    "NVIDIA-L40S": (46068, "ada-lovelace", (8, 9)),
    "NVIDIA-L4": (23034, "ada-lovelace", (8, 9)),
    "Tesla-T4": (15360, "turing", (7, 5)),
}


def gpu_node(
    name: str,
    product: str = "NVIDIA-H100-80GB-HBM3",
    gpus: int = 8,
    *,
    allocatable: int | None = None,
    labels: Mapping[str, str] | None = None,
    taints: Sequence[Mapping[str, str]] = (),
    zone: str = "zone-a",
) -> Object:
    """
    A node with GPUs, labelled as NVIDIA's device plugin and GPU Feature Discovery label it.

    Args:
        allocatable: How many of the GPUs are healthy; all if None.
    """
    node = cpu_node(name, cpu=192, memory="2048Gi", labels=labels, taints=taints, zone=zone)
    found: dict[str, str] = {
        "nvidia.com/gpu.present": "true",
        "nvidia.com/gpu.product": product,
        "nvidia.com/gpu.count": str(gpus),
        "nvidia.com/gpu.replicas": "1",
        "nvidia.com/gpu.sharing-strategy": "none",
        "nvidia.com/mig.capable": "true",
        "nvidia.com/mig.strategy": "single",
    }
    if product in _GPUS:
        memory, family, (major, minor) = _GPUS[product]
        found |= {
            "nvidia.com/gpu.memory": str(memory),
            "nvidia.com/gpu.family": family,
            "nvidia.com/gpu.compute.major": str(major),
            "nvidia.com/gpu.compute.minor": str(minor),
        }
    node["metadata"]["labels"] = found | node["metadata"]["labels"]
    status = node["status"]
    status["capacity"]["nvidia.com/gpu"] = str(gpus)
    status["allocatable"]["nvidia.com/gpu"] = str(gpus if allocatable is None else allocatable)
    return node


def cpu_node(
    name: str,
    *,
    cpu: int = 32,
    memory: str = "128Gi",
    labels: Mapping[str, str] | None = None,
    taints: Sequence[Mapping[str, str]] = (),
    zone: str = "zone-a",
) -> Object:
    """A node without GPUs, which KWOK plays the kubelet of."""
    resources = {"cpu": str(cpu), "memory": memory, "pods": "110", "ephemeral-storage": "3Ti"}
    node: Object = {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {
            "name": name,
            "annotations": {"kwok.x-k8s.io/node": "fake"},
            "labels": {
                "kubernetes.io/hostname": name,
                "kubernetes.io/os": "linux",
                "kubernetes.io/arch": "amd64",
                "topology.kubernetes.io/zone": zone,
                **(labels or {}),
            },
        },
        "spec": {"taints": [dict(taint) for taint in taints]} if taints else {},
        "status": {"capacity": dict(resources), "allocatable": dict(resources)},
    }
    return node


def pod_spec(
    *,
    image: str = VLLM_IMAGE,
    gpus: int = 0,
    cpu: str = "1",
    memory: str = "1Gi",
    container: str = "main",
    command: Sequence[str] = (),
    args: Sequence[str] = (),
    env: Mapping[str, str] | None = None,
    init_container: str = "",
    priority_class: str = "",
    node_selector: Mapping[str, str] | None = None,
    **more: Any,
) -> Object:
    """
    A pod's spec with one container.

    Args:
        init_container: Name of an init container to have before it, if any.
        more: Further fields of the pod's spec, under their API names.
    """
    resources: Object = {"requests": {"cpu": cpu, "memory": memory}}
    if gpus:
        resources["limits"] = {"nvidia.com/gpu": str(gpus)}
    main: Object = {"name": container, "image": image, "resources": resources}
    if command:
        main["command"] = list(command)
    if args:
        main["args"] = list(args)
    if env:
        main["env"] = [{"name": key, "value": value} for key, value in env.items()]
    spec: Object = {"containers": [main], **more}
    if init_container:
        spec["initContainers"] = [{"name": init_container, "image": "busybox:1.37"}]
    if priority_class:
        spec["priorityClassName"] = priority_class
    if node_selector:
        spec["nodeSelector"] = dict(node_selector)
    return spec


def pod(
    name: str,
    namespace: str,
    *,
    labels: Mapping[str, str] | None = None,
    annotations: Mapping[str, str] | None = None,
    **spec: Any,
) -> Object:
    """A bare pod; `spec` goes to `pod_spec`."""
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": _metadata(name, namespace, labels, annotations),
        "spec": pod_spec(**spec),
    }


def deployment(
    name: str,
    namespace: str,
    *,
    replicas: int = 1,
    labels: Mapping[str, str] | None = None,
    annotations: Mapping[str, str] | None = None,
    pod_annotations: Mapping[str, str] | None = None,
    selector: Mapping[str, str] | None = None,
    **spec: Any,
) -> Object:
    """
    A Deployment whose pods carry `labels` and `pod_annotations`; `spec` goes to `pod_spec`.

    Args:
        selector: What it selects by; `app: <name>`, added to the pods' labels, if None.
    """
    selector = dict(selector or {"app": name})
    labels = {**selector, **(labels or {})}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": _metadata(name, namespace, labels, annotations),
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": selector},
            "template": {
                "metadata": {"labels": labels, "annotations": dict(pod_annotations or {})},
                "spec": pod_spec(**spec),
            },
        },
    }


def vllm_deployment(
    name: str, namespace: str, model: str, *, gpus: int = 1, served_name: str = "", **more: Any
) -> Object:
    """A plain vLLM server without any framework; `more` goes to `deployment`."""
    args = ["--model", model, "--served-model-name", served_name or name]
    if gpus > 1:
        args += ["--tensor-parallel-size", str(gpus)]
    server = ["python3", "-m", "vllm.entrypoints.openai.api_server"]
    more = {"command": server, "args": args, "container": "vllm"} | more
    return deployment(name, namespace, gpus=gpus, **more)


def service(name: str, namespace: str, selector: Mapping[str, str], *, port: int = 8000, **metadata: Any) -> Object:
    """A Service in front of pods."""
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": name, "namespace": namespace, **metadata},
        "spec": {
            "selector": dict(selector),
            "ports": [{"name": "http", "port": port, "targetPort": port, "protocol": "TCP"}],
        },
    }


def priority_class(name: str, value: int, *, preempts: bool = True) -> Object:
    """A PriorityClass; with `preempts` false its pods wait rather than push others out."""
    return {
        "apiVersion": "scheduling.k8s.io/v1",
        "kind": "PriorityClass",
        "metadata": {"name": name},
        "value": value,
        "preemptionPolicy": "PreemptLowerPriority" if preempts else "Never",
    }


def namespace(name: str, *, annotations: Mapping[str, str] | None = None) -> Object:
    """A namespace."""
    return {
        "apiVersion": "v1",
        "kind": "Namespace",
        "metadata": {"name": name, "annotations": dict(annotations or {})},
    }


def owned_by(child: Object, parent: Object) -> Object:
    """Return `child` with a controller reference to `parent`, which must come from the API server."""
    child = deepcopy(child)
    child["metadata"]["ownerReferences"] = [
        {
            "apiVersion": parent["apiVersion"],
            "kind": parent["kind"],
            "name": parent["metadata"]["name"],
            "uid": parent["metadata"]["uid"],
            "controller": True,
            "blockOwnerDeletion": True,
        }
    ]
    return child


def annotated(manifest: Object, **annotations: str) -> Object:
    """Return the manifest with annotations of ours: ``annotated(m, tier="batch")``."""
    manifest = deepcopy(manifest)
    ours = {f"sevenhop.dev/{key.replace('_', '-')}": value for key, value in annotations.items()}
    manifest["metadata"].setdefault("annotations", {}).update(ours)
    return manifest


def _metadata(
    name: str,
    namespace: str,
    labels: Mapping[str, str] | None,
    annotations: Mapping[str, str] | None,
) -> Object:
    return {
        "name": name,
        "namespace": namespace,
        "labels": dict(labels or {}),
        "annotations": dict(annotations or {}),
    }
