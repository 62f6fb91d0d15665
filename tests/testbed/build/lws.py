"""LeaderWorkerSet, and the StatefulSets that its controller makes.

LeaderWorkerSet → StatefulSet → leader pod → StatefulSet → worker pods: the chain passes a pod.
"""

from __future__ import annotations

from collections.abc import Mapping

from tests.testbed.build.core import VLLM_IMAGE, owned_by, pod_spec
from tests.testbed.client import Object

_DOMAIN = "leaderworkerset.sigs.k8s.io"


def leader_worker_set(
    name: str,
    namespace: str,
    model: str,
    *,
    replicas: int = 1,
    size: int = 2,
    gpus: int = 8,
    labels: Mapping[str, str] | None = None,
    annotations: Mapping[str, str] | None = None,
    priority_class: str = "",
) -> Object:
    """A LeaderWorkerSet of vLLM: `replicas` groups of `size` pods with `gpus` each."""
    serve = f"python3 -m vllm.entrypoints.openai.api_server --model {model}"
    parallel = f"--tensor-parallel-size {gpus} --pipeline-parallel-size {size}"
    leader = ["sh", "-c", f"multi-node-serving.sh leader; {serve} {parallel}"]
    worker = ["sh", "-c", "multi-node-serving.sh worker --ray_address=$(LWS_LEADER_ADDRESS)"]
    return {
        "apiVersion": "leaderworkerset.x-k8s.io/v1",
        "kind": "LeaderWorkerSet",
        "metadata": {"name": name, "namespace": namespace, "annotations": dict(annotations or {})},
        "spec": {
            "replicas": replicas,
            "leaderWorkerTemplate": {
                "size": size,
                "restartPolicy": "RecreateGroupOnPodRestart",
                "leaderTemplate": {
                    "metadata": {"labels": {"role": "leader", **(labels or {})}},
                    "spec": _pod(leader, "vllm-leader", gpus, priority_class),
                },
                "workerTemplate": {
                    "metadata": {"labels": dict(labels or {})},
                    "spec": _pod(worker, "vllm-worker", gpus, priority_class),
                },
            },
        },
    }


def lws_leaders(parent: Object) -> Object:
    """The StatefulSet of the leaders; its pods still need `lws_worker_labels`."""
    metadata, spec = parent["metadata"], parent["spec"]
    labels = {f"{_DOMAIN}/name": metadata["name"], f"{_DOMAIN}/worker-index": "0"}
    template = spec["leaderWorkerTemplate"]["leaderTemplate"]
    child = _stateful_set(metadata["name"], metadata["namespace"], spec["replicas"], labels, template)
    return owned_by(child, parent)


def lws_workers(leader: Object, parent: Object) -> Object:
    """The StatefulSet of the workers of one group, owned by the group's leader pod."""
    group = leader["metadata"]["name"].rpartition("-")[2]
    labels = {f"{_DOMAIN}/name": parent["metadata"]["name"], f"{_DOMAIN}/group-index": group}
    template = parent["spec"]["leaderWorkerTemplate"]
    child = _stateful_set(
        leader["metadata"]["name"],
        leader["metadata"]["namespace"],
        template["size"] - 1,
        labels,
        template["workerTemplate"],
    )
    child["spec"]["ordinals"] = {"start": 1}  # worker 0 is the leader
    return owned_by(child, leader)


def lws_worker_labels(pod: Object) -> dict[str, str]:
    """The labels that differ from pod to pod, which LWS's webhook sets and a StatefulSet cannot."""
    labels, index = pod["metadata"]["labels"], pod["metadata"]["name"].rpartition("-")[2]
    if labels.get(f"{_DOMAIN}/worker-index") == "0":
        return {f"{_DOMAIN}/group-index": index}
    return {f"{_DOMAIN}/worker-index": index}


def _pod(command: list[str], container: str, gpus: int, priority_class: str) -> Object:
    return pod_spec(
        image=VLLM_IMAGE,
        container=container,
        command=command,
        gpus=gpus,
        priority_class=priority_class,
    )


def _stateful_set(name: str, namespace: str, replicas: int, labels: Mapping[str, str], template: Object) -> Object:
    own = template.get("metadata", {})
    metadata = {"labels": {**labels, **own.get("labels", {})}}
    return {
        "apiVersion": "apps/v1",
        "kind": "StatefulSet",
        "metadata": {"name": name, "namespace": namespace, "labels": dict(labels)},
        "spec": {
            "replicas": replicas,
            "serviceName": labels[f"{_DOMAIN}/name"],
            "podManagementPolicy": "Parallel",
            "selector": {"matchLabels": dict(labels)},
            "template": {"metadata": metadata, "spec": template["spec"]},
        },
    }
