"""KubeRay objects; the real operator makes their pods."""

from __future__ import annotations

from collections.abc import Mapping

import yaml

from tests.testbed.build.core import pod_spec
from tests.testbed.client import Object

IMAGE = "rayproject/ray-llm:2.52.0-py311-cu128"
GROUP = "gpu-group"


def ray_cluster(
    name: str,
    namespace: str,
    *,
    workers: int = 1,
    gpus: int = 1,
    hosts: int = 1,
    annotations: Mapping[str, str] | None = None,
    worker_annotations: Mapping[str, str] | None = None,
    priority_class: str = "",
) -> Object:
    """
    A RayCluster with a head without GPUs and one group of workers.

    Args:
        hosts: Pods to one replica of the group.
        worker_annotations: For the workers' pods, such as those that choose a failure.
    """
    return {
        "apiVersion": "ray.io/v1",
        "kind": "RayCluster",
        "metadata": {"name": name, "namespace": namespace, "annotations": dict(annotations or {})},
        "spec": _cluster_spec(workers, gpus, hosts, worker_annotations or {}, priority_class),
    }


def ray_service(
    name: str,
    namespace: str,
    model: str,
    *,
    workers: int = 1,
    gpus: int = 1,
    hosts: int = 1,
    annotations: Mapping[str, str] | None = None,
    worker_annotations: Mapping[str, str] | None = None,
    priority_class: str = "",
) -> Object:
    """
    A RayService of Ray Serve LLM.

    Its status gets no `activeServiceStatus` here, since no dashboard answers: set it in the test,
    with the operator stopped.
    """
    config = {
        "model_loading_config": {"model_id": name, "model_source": model},
        "engine_kwargs": {"tensor_parallel_size": gpus * hosts},
        "deployment_config": {"num_replicas": workers},
    }
    application = {
        "name": "llms",
        "import_path": "ray.serve.llm:build_openai_app",
        "route_prefix": "/",
        "args": {"llm_configs": [config]},
    }
    return {
        "apiVersion": "ray.io/v1",
        "kind": "RayService",
        "metadata": {"name": name, "namespace": namespace, "annotations": dict(annotations or {})},
        "spec": {
            "serveConfigV2": yaml.safe_dump({"applications": [application]}, sort_keys=False),
            "rayClusterConfig": _cluster_spec(workers, gpus, hosts, worker_annotations or {}, priority_class),
        },
    }


def _cluster_spec(
    workers: int,
    gpus: int,
    hosts: int,
    worker_annotations: Mapping[str, str],
    priority_class: str,
) -> Object:
    head = pod_spec(image=IMAGE, container="ray-head", priority_class=priority_class)
    worker = pod_spec(image=IMAGE, container="ray-worker", gpus=gpus, priority_class=priority_class)
    return {
        "rayVersion": "2.52.0",
        "headGroupSpec": {"rayStartParams": {"num-cpus": "0"}, "template": {"spec": head}},
        "workerGroupSpecs": [
            {
                "groupName": GROUP,
                "replicas": workers,
                "minReplicas": 0,
                "maxReplicas": max(workers, 1) * 2,
                "numOfHosts": hosts,
                "rayStartParams": {},
                "template": {
                    "metadata": {"annotations": dict(worker_annotations)},
                    "spec": worker,
                },
            }
        ],
    }
