"""Builders of the objects in the demo's clusters: plain manifests as a real control plane takes them too."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

Manifest = dict[str, Any]

H100 = "NVIDIA-H100-80GB-HBM3"
GPU = "nvidia.com/gpu"


class Item(NamedTuple):
    """An object to create; `kind` is a name in `KINDS`.  Its owner, if any, is named without the uid."""

    kind: str
    manifest: Manifest


def cpu_node(name: str) -> Item:
    """A ready node without GPUs."""
    return Item("Node", _node(name, {}, {"node-pool": "cpu"}))


def gpu_node(name: str, gpus: int = 8) -> Item:
    """A ready node with H100s, labelled as NVIDIA's GPU Feature Discovery does."""
    labels = {"nvidia.com/gpu.present": "true", "nvidia.com/gpu.product": H100, "nvidia.com/gpu.count": str(gpus)}
    return Item("Node", _node(name, {GPU: str(gpus)}, labels))


def _node(name: str, more: Mapping[str, str], labels: Mapping[str, str]) -> Manifest:
    amounts = {"cpu": "192", "memory": "2048Gi", "pods": "110", "ephemeral-storage": "3Ti", **more}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": {"kubernetes.io/hostname": name, **labels}},
        "spec": {},
        "status": {
            "capacity": dict(amounts),
            "allocatable": dict(amounts),
            "conditions": [{"type": "Ready", "status": "True", "reason": "KubeletReady"}],
            "nodeInfo": {"kubeletVersion": "v1.36.3"},
        },
    }


def namespace(name: str) -> Item:
    return Item("Namespace", {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})


def container(
    name: str, image: str, *, gpus: int = 0, command: tuple[str, ...] = (), args: tuple[str, ...] = ()
) -> Any:
    """One container that asks for 4 CPUs, 32Gi, and `gpus` GPUs."""
    resources: Manifest = {"requests": {"cpu": "4", "memory": "32Gi"}}
    if gpus:
        resources = {side: {**resources["requests"], GPU: str(gpus)} for side in ("requests", "limits")}
    made: Manifest = {"name": name, "image": image, "resources": resources}
    if command:
        made["command"] = list(command)
    if args:
        made["args"] = list(args)
    if gpus:
        # A model loads for minutes: without a start-up probe nobody could tell that from a hang.
        probe = {"httpGet": {"path": "/health", "port": 8000}, "periodSeconds": 10}
        made |= {"startupProbe": {**probe, "failureThreshold": 60}, "readinessProbe": probe}
    return made


def deployment(
    name: str,
    space: str,
    pod: Manifest,
    *,
    selector: Mapping[str, str],
    labels: Mapping[str, str] | None = None,
    annotations: Mapping[str, str] | None = None,
    pod_annotations: Mapping[str, str] | None = None,
    owner: Manifest | None = None,
) -> Item:
    """A Deployment that begins with no replicas; `owner` is the manifest of the object that would have made it."""
    labels = {**selector, **(labels or {})}
    meta: Manifest = {"name": name, "namespace": space, "labels": dict(labels), "annotations": dict(annotations or {})}
    if owner is not None:
        meta["ownerReferences"] = [reference(owner)]
    template = {"metadata": {"labels": dict(labels), "annotations": dict(pod_annotations or {})}, "spec": pod}
    spec = {"replicas": 0, "selector": {"matchLabels": dict(selector)}, "template": template}
    return Item("Deployment.apps", {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": meta, "spec": spec})


def service(name: str, space: str, selector: Mapping[str, str]) -> Item:
    """A Service on port 8000 of the pods."""
    ports = [{"name": "http", "port": 8000, "targetPort": 8000, "protocol": "TCP"}]
    meta = {"name": name, "namespace": space}
    spec = {"selector": dict(selector), "ports": ports}
    return Item("Service", {"apiVersion": "v1", "kind": "Service", "metadata": meta, "spec": spec})


def reference(owner: Manifest) -> Manifest:
    """A controller reference without the uid, which only the API server knows."""
    return {
        "apiVersion": owner["apiVersion"],
        "kind": owner["kind"],
        "name": owner["metadata"]["name"],
        "controller": True,
        "blockOwnerDeletion": True,
    }


def with_owner_uids(manifest: Manifest, uids: Mapping[tuple[str, str, str], str]) -> Manifest:
    """The manifest with the uids of its owners filled in, from (kind, namespace, name) to uid."""
    meta = manifest["metadata"]
    references = meta.get("ownerReferences")
    if not references:
        return manifest
    filled = [{**r, "uid": uids[r["kind"], meta.get("namespace", ""), r["name"]]} for r in references]
    return {**manifest, "metadata": {**meta, "ownerReferences": filled}}
