"""What people and operators do to models on a good day, on the test bed: one round of it takes about a minute."""

from __future__ import annotations

import time
from datetime import UTC, datetime
from typing import Any

from tests.e2e.scenes import Scene, is_ready
from tests.testbed import build, nodes
from tests.testbed.client import ApiError, Object
from tests.testbed.waiting import eventually

LOAD_S = 4
"""A model on the test bed loads for so long."""

GATE = "kueue.x-k8s.io/admission"
_KUEUE = "kueue.x-k8s.io/v1beta2"
_NO_QUOTA = (
    "couldn't assign flavors to pod set main: "
    "insufficient unused quota for nvidia.com/gpu in flavor h100, 1 more needed"
)
_HELD_S = 2.0
"""A pod waits so long for its quota."""


def begin(here: Scene) -> None:
    """Two nodes, a model that runs and one at zero."""
    here.pool.add_gpu_nodes(2)
    _model(here, "chat", 2)
    _model(here, "embed", 0)
    _wait_for_all(here, 2)


def one_round(here: Scene, number: int) -> None:
    """Every kind of change once; afterwards the cluster is as it was, but for the models' versions."""
    scale(here, "chat", 4)
    scale(here, "embed", 1)  # from zero
    _wait_for_all(here, 5)
    _roll_out(here, "chat", f"vllm/vllm-openai:v0.16.{number}")
    _recreate_a_pod(here)
    _drain(here, here.pool.names[0])
    _replace_a_node(here, f"spare-{number}")
    _backlog(here, f"batch-{number}")
    _job(here, f"evaluation-{number}")
    scale(here, "chat", 2)
    scale(here, "embed", 0)
    _wait_for_all(here, 2)


def _model(here: Scene, name: str, replicas: int, **spec: Any) -> None:
    loads = {"sevenhop.dev/testbed": "slow-load", "sevenhop.dev/testbed-after": f"{LOAD_S}s"}
    server = build.vllm_deployment(
        name, here.namespace, f"org/{name}", gpus=1, replicas=replicas, pod_annotations=loads,
        node_selector=here.pool.node_selector, **spec,
    )  # fmt: skip
    (container,) = server["spec"]["template"]["spec"]["containers"]
    container["startupProbe"] = {"httpGet": {"path": "/health", "port": 8000}, "failureThreshold": 60}
    here.client.create(server)
    here.client.create(build.service(name, here.namespace, {"app": name}))


def _remove(here: Scene, name: str) -> None:
    here.client.delete("apps/v1", "Deployment", name, here.namespace)
    here.client.delete("v1", "Service", name, here.namespace)


def scale(here: Scene, name: str, replicas: int) -> None:
    here.client.patch("apps/v1", "Deployment", name, here.namespace, {"spec": {"replicas": replicas}})


def _roll_out(here: Scene, name: str, image: str) -> None:
    path = "/spec/template/spec/containers/0/image"
    change = [{"op": "replace", "path": path, "value": image}]
    here.client.patch("apps/v1", "Deployment", name, here.namespace, change)
    eventually(lambda: _is_rolled_out(here, name), timeout=60, every=0.3, what="the rollout")


def _is_rolled_out(here: Scene, name: str) -> bool:
    found: Object = here.client.get("apps/v1", "Deployment", name, here.namespace)
    spec, status = found["spec"], found["status"]
    return bool(
        status.get("observedGeneration") == found["metadata"]["generation"]
        and status.get("updatedReplicas") == status.get("replicas") == status.get("readyReplicas") == spec["replicas"]
    )


def _wait_for_all(here: Scene, count: int) -> None:
    here.wait_for_pods(count, is_ready)


def _replace_pod(here: Scene, pod: Object, count: int) -> None:
    here.client.delete("v1", "Pod", pod["metadata"]["name"], here.namespace)
    _wait_for_all(here, count)


def _recreate_a_pod(here: Scene) -> None:
    """Somebody deletes a pod of a model, and its controller makes another."""
    found = here.pods("app=chat")
    _replace_pod(here, found[0], len(here.pods()))


def _drain(here: Scene, node: str) -> None:
    """Cordon, evict one after the other as disruption budgets have it, uncordon."""
    count = len(here.pods())
    nodes.cordon(here.client, node)
    for pod in here.pods():
        if pod["spec"].get("nodeName") == node:
            _replace_pod(here, pod, count)
    nodes.cordon(here.client, node, on=False)


def _replace_a_node(here: Scene, name: str) -> None:
    """A node is bought, another is emptied for it and leaves."""
    here.pool.add(build.gpu_node(name))
    old = here.pool.names[0]
    _drain(here, old)
    nodes.cordon(here.client, old)
    _drain_again(here, old)
    nodes.remove_node(here.client, old)
    here.pool.names.remove(old)


def _drain_again(here: Scene, node: str) -> None:
    """What was placed between the two cordons."""
    count = len(here.pods())
    for pod in here.pods():
        if pod["spec"].get("nodeName") == node:
            _replace_pod(here, pod, count)


def _backlog(here: Scene, name: str) -> None:
    """Two pods that a queue holds, with the objects that Kueue would make, let in one after the other."""
    count = len(here.pods())
    _model(here, name, 2, schedulingGates=[{"name": GATE}])
    held = here.wait_for_pods(2, lambda pod: pod["spec"].get("schedulingGates"), f"app={name}")
    queued = [_queued(here, pod) for pod in held]
    for pod, workload in zip(held, queued, strict=True):
        time.sleep(_HELD_S)
        _say(here, workload, reserved=True)
        here.client.patch("v1", "Pod", pod["metadata"]["name"], here.namespace, {"spec": {"schedulingGates": None}})
    here.wait_for_pods(2, is_ready, f"app={name}")
    _remove(here, name)
    _wait_for_all(here, count)
    for workload in queued:
        if workload is not None:
            here.client.delete(_KUEUE, "Workload", workload["metadata"]["name"], here.namespace)


def _queued(here: Scene, pod: Object) -> Object | None:
    """The Workload of a pod that waits for quota; None where the cluster has no Kueue."""
    manifest = {
        "apiVersion": _KUEUE,
        "kind": "Workload",
        "metadata": {"name": f"pod-{pod['metadata']['name']}", "namespace": here.namespace},
        "spec": {
            "queueName": "team",
            "podSets": [{"name": "main", "count": 1, "template": {"spec": {"containers": pod["spec"]["containers"]}}}],
        },
    }
    try:
        made = here.client.create(build.owned_by(manifest, {**pod, "apiVersion": "v1", "kind": "Pod"}))
    except (LookupError, ApiError) as error:
        if isinstance(error, ApiError) and error.status != 404:
            raise
        return None
    _say(here, made, reserved=False)
    return made


def _say(here: Scene, workload: Object | None, *, reserved: bool) -> None:
    if workload is None:
        return
    now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")

    def said(kind: str, reason: str, message: str) -> Object:
        status = "True" if reserved else "False"
        return {"type": kind, "status": status, "reason": reason, "message": message, "lastTransitionTime": now}

    conditions = [said("QuotaReserved", "QuotaReserved" if reserved else "Pending", "" if reserved else _NO_QUOTA)]
    if reserved:
        conditions.append(said("Admitted", "Admitted", "The workload is admitted"))
    name = workload["metadata"]["name"]
    patch = {"status": {"conditions": conditions}}
    here.client.patch(_KUEUE, "Workload", name, here.namespace, patch, subresource="status")


def _job(here: Scene, name: str) -> None:
    """A pod that runs for a moment, and is removed once it has done its work."""
    pod = build.pod(
        name, here.namespace, gpus=1, restartPolicy="Never", image="org/evaluation:1",
        node_selector=here.pool.node_selector,
    )  # fmt: skip
    here.client.create(pod)
    here.client.wait_for("v1", "Pod", name, here.namespace, until=is_ready)
    here.client.delete("v1", "Pod", name, here.namespace)
