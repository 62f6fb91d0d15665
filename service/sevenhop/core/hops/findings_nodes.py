"""GPU nodes that advertise less than they have, or do not answer."""

from __future__ import annotations

from collections.abc import Iterator

from sevenhop.core.hops.diagnosis import Diagnosis, Evidence
from sevenhop.core.hops.finding import Finding, diagnosis_of, evidence_of
from sevenhop.core.hops.scheduler_text_reasons import is_gpu
from sevenhop.core.inventory.advertised import devices, is_ready
from sevenhop.core.inventory.objects import Objects
from sevenhop.core.objects.base import condition
from sevenhop.core.objects.cluster import Node
from sevenhop.core.objects.devices import ResourceSlice
from sevenhop.core.words import counted

_COUNT_LABEL = "nvidia.com/gpu.count"
_PRESENT_LABELS = ("nvidia.com/gpu.present", "amd.com/gpu.present")


def node_findings(objects: Objects) -> Iterator[Finding]:
    """
    Nodes whose labels or capacity promise more devices than they advertise, and GPU nodes that are not ready.

    Devices that a DRA driver publishes are advertised there, and MIG or time-slicing make more devices out of one.
    """
    published = {
        str(slice_.spec.get("nodeName", ""))
        for slice_ in objects.of("ResourceSlice.resource.k8s.io").values()
        if isinstance(slice_, ResourceSlice) and is_gpu(str(slice_.spec.get("driver", "")))
    }
    for (_, name), node in objects.nodes().items():
        diagnosis = _why_less(node, has_slices=name in published) or _why_not_ready(node)
        if diagnosis is not None:
            yield Finding(kind="Node", namespace="", name=name, diagnosis=diagnosis)


def _why_less(node: Node, *, has_slices: bool) -> Diagnosis | None:
    advertised, has = devices(node.status.allocatable), devices(node.status.capacity)
    for resource in sorted(has):
        missing = has[resource] - advertised.get(resource, 0)
        if missing > 0 and advertised.get(resource, 0) > 0:
            summary = f"advertises {advertised[resource]} of {has[resource]} {resource}: {missing} unhealthy"
            return _diagnosis("gpus-unhealthy", node, summary)
        if missing > 0:
            return _diagnosis(
                "device-plugin-not-advertising", node, f"advertises none of its {has[resource]} {resource}"
            )
    promised = _promised(node)
    if promised is None or has_slices:
        return None
    if not advertised:
        number = counted(promised, "GPU") if promised else "GPUs"
        return _diagnosis("device-plugin-not-advertising", node, f"has {number} by its labels and advertises none")
    if sum(advertised.values()) < promised:
        summary = f"has {counted(promised, 'GPU')} by its labels and advertises {sum(advertised.values())}"
        return _diagnosis("gpus-unhealthy", node, summary)
    return None


def _promised(node: Node) -> int | None:
    """GPUs by the labels of feature discovery; 0 for some without a number, None for none."""
    labels = node.metadata.labels
    count = labels.get(_COUNT_LABEL, "")
    if count.isdecimal():
        return int(count) or None
    return 0 if any(labels.get(label) == "true" for label in _PRESENT_LABELS) else None


def _why_not_ready(node: Node) -> Diagnosis | None:
    ready = condition(node.status.conditions, "Ready")
    has_gpus = bool(devices(node.status.capacity) or devices(node.status.allocatable)) or _promised(node) is not None
    if not has_gpus or is_ready(node) is not False:
        return None
    said = ": ".join(part for part in (ready.reason, ready.message) if part) if ready else ""
    summary = f"Node {node.metadata.name} holds GPUs and is not ready"
    return diagnosis_of(
        "node-not-ready", summary, (evidence_of("condition Ready", said or "not ready"),), computed=True
    )


def _diagnosis(cause: str, node: Node, summary: str) -> Diagnosis:
    source = f"node/{node.metadata.name}"
    return diagnosis_of(cause, f"Node {node.metadata.name} {summary}", (Evidence(source, summary),), computed=True)
