"""KServe InferenceService in Standard (raw) mode, and what its controller makes of it."""

from __future__ import annotations

from collections.abc import Mapping

from tests.testbed.build.core import deployment, owned_by
from tests.testbed.client import Object

IMAGE = "kserve/huggingfaceserver:v0.16.0-gpu"


def inference_service(
    name: str,
    namespace: str,
    storage_uri: str,
    *,
    gpus: int = 1,
    min_replicas: int = 1,
    max_replicas: int = 1,
    autoscaler: str = "hpa",
    annotations: Mapping[str, str] | None = None,
    priority_class: str = "",
    node_selector: Mapping[str, str] | None = None,
) -> Object:
    """
    An InferenceService with a predictor.

    Args:
        storage_uri: Where the model is, ``hf://org/model``.
        autoscaler: Autoscaler class: hpa, keda, external or none.
    """
    predictor: Object = {
        "minReplicas": min_replicas,
        "maxReplicas": max_replicas,
        "model": {
            "modelFormat": {"name": "huggingface"},
            "args": [f"--model_name={name}"],
            "storageUri": storage_uri,
            "resources": {
                "requests": {"cpu": "1", "memory": "1Gi"},
                "limits": {"nvidia.com/gpu": str(gpus)} if gpus else {},
            },
        },
    }
    if priority_class:
        predictor["priorityClassName"] = priority_class
    if node_selector:
        predictor["nodeSelector"] = dict(node_selector)
    return {
        "apiVersion": "serving.kserve.io/v1beta1",
        "kind": "InferenceService",
        "metadata": {
            "name": name,
            "namespace": namespace,
            "annotations": {
                "serving.kserve.io/deploymentMode": "Standard",
                "serving.kserve.io/autoscalerClass": autoscaler,
                **(annotations or {}),
            },
        },
        "spec": {"predictor": predictor},
    }


def kserve_deployment(parent: Object, *, pod_annotations: Mapping[str, str] | None = None) -> Object:
    """The predictor's Deployment, with the init container that fetches the model."""
    metadata, predictor = parent["metadata"], parent["spec"]["predictor"]
    name = f"{metadata['name']}-predictor"
    model = predictor["model"]
    limits = model.get("resources", {}).get("limits", {})
    child = deployment(
        name,
        metadata["namespace"],
        replicas=predictor["minReplicas"],
        selector={"app": f"isvc.{name}"},
        labels={
            "serving.kserve.io/inferenceservice": metadata["name"],
            "component": "predictor",
        },
        pod_annotations={
            "internal.serving.kserve.io/storage-initializer-sourceuri": model["storageUri"],
            **(pod_annotations or {}),
        },
        image=IMAGE,
        container="kserve-container",
        gpus=int(limits.get("nvidia.com/gpu", 0)),
        args=model["args"],
        init_container="storage-initializer",
        priority_class=predictor.get("priorityClassName", ""),
        node_selector=predictor.get("nodeSelector"),
    )
    return owned_by(child, parent)


def kserve_hpa(parent: Object) -> Object | None:
    """The HorizontalPodAutoscaler, if the service's autoscaler class is hpa."""
    metadata, predictor = parent["metadata"], parent["spec"]["predictor"]
    if metadata["annotations"]["serving.kserve.io/autoscalerClass"] != "hpa":
        return None
    name = f"{metadata['name']}-predictor"
    lowest = max(predictor["minReplicas"], 1)
    child = {
        "apiVersion": "autoscaling/v2",
        "kind": "HorizontalPodAutoscaler",
        "metadata": {"name": name, "namespace": metadata["namespace"]},
        "spec": {
            "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": name},
            "minReplicas": lowest,
            "maxReplicas": max(predictor["maxReplicas"], lowest),
            "metrics": [
                {
                    "type": "Resource",
                    "resource": {
                        "name": "cpu",
                        "target": {"type": "Utilization", "averageUtilization": 80},
                    },
                }
            ],
        },
    }
    return owned_by(child, parent)
