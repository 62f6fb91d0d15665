"""NVIDIA Dynamo: graph deployments, and what its operator makes of them without Grove."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, field

from tests.testbed.build.core import deployment, owned_by, pod_spec
from tests.testbed.client import Object

IMAGE = "nvidia/ai-dynamo/vllm-runtime:1.4.0"
_GRACE_SECONDS = 60


@dataclass(frozen=True, kw_only=True)
class Component:
    """
    One component of a graph, for both API versions.

    Attributes:
        type: frontend, worker, prefill, decode, planner or epp.
        nodes: Pods to one replica; more than one makes it multinode.
        pod_annotations: For its pods, such as those that choose a failure.
    """

    name: str
    type: str
    replicas: int = 1
    gpus: int = 0
    model: str = ""
    nodes: int = 1
    scaling_adapter: bool = False
    image: str = IMAGE
    node_selector: Mapping[str, str] = field(default_factory=dict)
    pod_annotations: Mapping[str, str] = field(default_factory=dict)


def dgd(
    name: str,
    namespace: str,
    components: Sequence[Component],
    *,
    version: str = "v1beta1",
    annotations: Mapping[str, str] | None = None,
    priority_class: str = "",
) -> Object:
    """
    A DynamoGraphDeployment of vLLM workers.

    Version ``v1alpha1`` needs a cluster that serves it alone (`serve_only`): with both, the API server
    would ask the operator's webhook to convert it.
    """
    spec: Object = {"backendFramework": "vllm"}
    if version == "v1beta1":
        spec["components"] = [_beta(component) for component in components]
    else:
        spec["services"] = {component.name: _alpha(component) for component in components}
    if priority_class:
        spec["priorityClassName"] = priority_class
    return {
        "apiVersion": f"nvidia.com/{version}",
        "kind": "DynamoGraphDeployment",
        "metadata": {"name": name, "namespace": namespace, "annotations": dict(annotations or {})},
        "spec": spec,
    }


def dynamo_component_deployments(parent: Object, components: Sequence[Component]) -> list[Object]:
    """The DynamoComponentDeployments of a graph, in the parent's API version."""
    version = parent["apiVersion"].rpartition("/")[2]
    found = []
    for component in components:
        if version == "v1beta1":
            spec = _beta(component)
        else:
            spec = _alpha(component) | {"serviceName": component.name}
            spec["dynamoNamespace"] = dynamo_namespace(parent)
        spec["backendFramework"] = "vllm"
        child = {
            "apiVersion": parent["apiVersion"],
            "kind": "DynamoComponentDeployment",
            "metadata": {
                "name": _child_name(parent, component),
                "namespace": parent["metadata"]["namespace"],
                "labels": component_labels(parent, component),
            },
            "spec": spec,
        }
        found.append(owned_by(child, parent))
    return found


def dynamo_deployment(parent: Object, graph: Object, component: Component) -> Object:
    """The Deployment of a DynamoComponentDeployment (`parent`) of a graph."""
    name = parent["metadata"]["name"]
    labels = component_labels(graph, component) | {"nvidia.com/selector": name}
    child = deployment(
        name,
        parent["metadata"]["namespace"],
        replicas=component.replicas,
        selector={"nvidia.com/selector": name},
        labels=labels,
    )
    child["spec"]["template"]["metadata"]["annotations"] = dict(component.pod_annotations)
    child["spec"]["template"]["spec"] = component_pod_spec(graph, component)
    return owned_by(child, parent)


def dynamo_scaling_adapters(parent: Object, components: Sequence[Component]) -> list[Object]:
    """The DynamoGraphDeploymentScalingAdapters of the components that ask for one."""
    name = parent["metadata"]["name"]
    beta = parent["apiVersion"].endswith("v1beta1")
    return [
        owned_by(
            {
                "apiVersion": parent["apiVersion"],
                "kind": "DynamoGraphDeploymentScalingAdapter",
                "metadata": {
                    "name": f"{name}-{component.name.lower()}",
                    "namespace": parent["metadata"]["namespace"],
                },
                "spec": {
                    "replicas": component.replicas,
                    "dgdRef": {
                        "name": name,
                        "componentName" if beta else "serviceName": component.name,
                    },
                },
            },
            parent,
        )
        for component in components
        if component.scaling_adapter
    ]


def dynamo_namespace(graph: Object) -> str:
    """The namespace in Dynamo's own sense."""
    return f"{graph['metadata']['namespace']}-{graph['metadata']['name']}"


def component_labels(graph: Object, component: Component) -> dict[str, str]:
    """The labels that pods of a component carry under every backend."""
    split = component.type in ("prefill", "decode")
    alpha = graph["apiVersion"].endswith("v1alpha1")
    labels = {
        "nvidia.com/dynamo-graph-deployment-name": graph["metadata"]["name"],
        "nvidia.com/dynamo-component": component.name,
        "nvidia.com/dynamo-component-type": "worker" if split and alpha else component.type,
        "nvidia.com/dynamo-namespace": dynamo_namespace(graph),
        "nvidia.com/dynamo-discovery-backend": "kubernetes",
        "nvidia.com/dynamo-discovery-enabled": "true",
        "nvidia.com/metrics-enabled": "true",
    }
    if split:
        labels["nvidia.com/dynamo-sub-component-type"] = component.type
    if _is_worker(component):
        labels["nvidia.com/dynamo-worker-hash"] = _worker_hash(component)
    return labels


def component_pod_spec(graph: Object, component: Component) -> Object:
    """The pod that every backend makes for a component."""
    metadata = graph["metadata"]
    return pod_spec(
        image=component.image,
        gpus=component.gpus,
        command=_command(component),
        args=_args(component),
        env={
            "DYN_COMPONENT": component.name,
            "DYN_NAMESPACE": dynamo_namespace(graph),
            "DYN_PARENT_DGD_K8S_NAME": metadata["name"],
            "DYN_PARENT_DGD_K8S_NAMESPACE": metadata["namespace"],
        },
        node_selector=component.node_selector,
        priority_class=graph["spec"].get("priorityClassName", ""),
        terminationGracePeriodSeconds=_GRACE_SECONDS,
    )


def _beta(component: Component) -> Object:
    container: Object = {"name": "main", "image": component.image}
    container |= {"command": _command(component), "args": _args(component)}
    if component.gpus:
        container["resources"] = {"limits": {"nvidia.com/gpu": str(component.gpus)}}
    template: Object = {"spec": {"containers": [container]}}
    if component.node_selector:
        template["spec"]["nodeSelector"] = dict(component.node_selector)
    if component.pod_annotations:
        template["metadata"] = {"annotations": dict(component.pod_annotations)}
    spec: Object = {
        "name": component.name,
        "type": component.type,
        "replicas": component.replicas,
        "podTemplate": template,
    }
    if component.nodes > 1:
        spec["multinode"] = {"nodeCount": component.nodes}
    if component.scaling_adapter:
        spec["scalingAdapter"] = {}
    return spec


def _alpha(component: Component) -> Object:
    # Old manifests know prefill and decode only as sub-components of a worker.
    split = component.type in ("prefill", "decode")
    main = {"image": component.image, "command": _command(component), "args": _args(component)}
    spec: Object = {
        "componentType": "worker" if split else component.type,
        "replicas": component.replicas,
        "extraPodSpec": {"mainContainer": main, "nodeSelector": dict(component.node_selector)},
    }
    if split:
        spec["subComponentType"] = component.type
    if component.gpus:
        spec["resources"] = {"limits": {"gpu": str(component.gpus)}}
    if component.nodes > 1:
        spec["multinode"] = {"nodeCount": component.nodes}
    if component.scaling_adapter:
        spec["scalingAdapter"] = {"enabled": True}
    return deepcopy(spec)


def _command(component: Component) -> list[str]:
    module = "dynamo.vllm" if _is_worker(component) else f"dynamo.{component.type}"
    return ["python3", "-m", module]


def _args(component: Component) -> list[str]:
    if not component.model:
        return []
    args = ["--model", component.model]
    if component.type in ("prefill", "decode"):
        args += ["--disaggregation-mode", component.type]
    return args


def _is_worker(component: Component) -> bool:
    return component.type in ("worker", "prefill", "decode")


def _worker_hash(component: Component) -> str:
    return hashlib.sha256(repr(component).encode()).hexdigest()[:8]


def _child_name(graph: Object, component: Component) -> str:
    name = f"{graph['metadata']['name']}-{component.name.lower()}"
    return f"{name}-{_worker_hash(component)}" if _is_worker(component) else name
