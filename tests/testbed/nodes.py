"""Adding nodes to a running cluster, and what can happen to them."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime

from tests.testbed.client import Client, Object

_ANNOTATION = "kwok.x-k8s.io/node"


def add_nodes(client: Client, nodes: Iterable[Object], *, timeout: float = 30) -> list[str]:
    """Create nodes (`build.gpu_node`, `build.cpu_node`) and return their names once all are Ready."""
    names = [client.create(node)["metadata"]["name"] for node in nodes]
    for name in names:
        client.wait_for("v1", "Node", name, until=is_schedulable, timeout=timeout)
    return names


def remove_node(client: Client, name: str) -> None:
    """
    Delete a node and, at once, the pods on it.

    Without the second the garbage collector of pods takes 40 s to miss the node.
    """
    client.delete("v1", "Node", name)
    # KWOK would take it over for a new node of this name, the garbage collector would then delete it
    # for its old owner, and for 10 s nobody would play the new node's kubelet.
    client.delete("coordination.k8s.io/v1", "Lease", name, "kube-node-lease")
    kill_pods(client, fields=f"spec.nodeName={name}")


def kill_pods(client: Client, namespace: str = "", *, fields: str = "") -> None:
    """Delete pods without waiting for any kubelet or drain."""
    for pod in client.list("v1", "Pod", namespace, fields=fields):
        metadata = pod["metadata"]
        client.delete("v1", "Pod", metadata["name"], metadata["namespace"], grace=0)


def set_gpus(client: Client, name: str, allocatable: int, *, capacity: int | None = None) -> None:
    """
    Change how many GPUs a node offers, as its device plugin does when some turn unhealthy.

    The capacity stays unless it is given: a broken GPU is still there.
    """
    status = {"allocatable": {"nvidia.com/gpu": str(allocatable)}}
    if capacity is not None:
        status["capacity"] = {"nvidia.com/gpu": str(capacity)}
    client.patch("v1", "Node", name, "", {"status": status}, subresource="status")


def lose_node(client: Client, name: str) -> None:
    """
    Let a node fall silent: no lease any more, and Ready is Unknown.

    That is what the controller manager would say after 50 s of silence; it is said here so that
    tests need not wait, and with its words. Pods there stay as they are: nobody reports on them.
    """
    _annotate(client, name, None)  # KWOK lets go of the node, or it would heal it
    now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    kinds = ("Ready", "MemoryPressure", "DiskPressure", "PIDPressure")
    conditions = [
        {
            "type": kind,
            "status": "Unknown",
            "reason": "NodeStatusUnknown",
            "message": "Kubelet stopped posting node status.",
            "lastTransitionTime": now,
        }
        for kind in kinds
    ]
    patch = {"status": {"conditions": conditions}}
    client.patch("v1", "Node", name, "", patch, subresource="status", strategic=True)


def return_node(client: Client, name: str) -> None:
    """Bring a lost node back and wait until it is Ready."""
    _annotate(client, name, "fake")
    client.wait_for("v1", "Node", name, until=is_schedulable)


def cordon(client: Client, name: str, *, on: bool = True) -> None:
    """Take a node out of scheduling, or put it back."""
    client.patch("v1", "Node", name, "", {"spec": {"unschedulable": on}})


def is_ready(node: Object) -> bool:
    """Is the node's condition Ready true?"""
    return condition(node, "Ready") == "True"


def is_schedulable(node: Object) -> bool:
    """Is the node Ready, and the taint gone with which every node begins?"""
    return is_ready(node) and not node["spec"].get("taints")


def condition(thing: Object, kind: str) -> str | None:
    """Return the status of one condition of any object, None if it has none of this type."""
    for found in thing.get("status", {}).get("conditions") or []:
        if found["type"] == kind:
            return str(found["status"])
    return None


def _annotate(client: Client, name: str, value: str | None) -> None:
    client.patch("v1", "Node", name, "", {"metadata": {"annotations": {_ANNOTATION: value}}})
