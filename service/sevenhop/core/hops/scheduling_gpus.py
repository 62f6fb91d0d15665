"""Accelerators on the eligible nodes: short, split up, never enough, broken, or not advertised."""

from __future__ import annotations

import re
from collections.abc import Mapping

import msgspec

from sevenhop.core.inventory.products import PRODUCT_LABELS
from sevenhop.core.placement import constraints as c
from sevenhop.core.placement.cluster import Cluster
from sevenhop.core.placement.evaluation import Evaluation
from sevenhop.core.placement.nodes import NodeView

_ACCELERATOR = re.compile(
    r"(^|[./-])(gpu|xpu|npu|tpu|vgpu|mlu|dcu|gaudi|neuron|neuroncore|neurondevice|accelerator)s?\b|/mig-|ascend|^nvidia\.com/"
)

_VENDOR_LABELS: dict[str, tuple[str, ...]] = {
    "nvidia.com/gpu": ("nvidia.com/gpu.present", "nvidia.com/gpu.count", *PRODUCT_LABELS),
    "amd.com/gpu": ("amd.com/gpu.product-name", "beta.amd.com/gpu.product-name", "amd.com/gpu.device-id"),
    "google.com/tpu": ("cloud.google.com/gke-tpu-accelerator",),
}
"""Resource: node labels that say that the node has such devices."""

_NOT_NVIDIA = re.compile(r"amd|tpu|mi\d{3}|radeon|gaudi|neuron|inferentia|trainium", re.IGNORECASE)


class GpuVerdict(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """
    Attributes:
        need: Devices wanted on one node.
        nodes: All nodes of the cluster.
        none: Eligible nodes that carry no such device.
        free: (free devices, number of eligible nodes) of those that carry some, the most free first.
        largest: Most that one eligible node advertises.
        suspects: Nodes that advertise none, or fewer than they have, and would do otherwise.
        bad: What GPU agents say of the first of them; empty without an agent.
    """

    cause: str
    resource: str
    need: int
    nodes: int
    none: int = 0
    free: tuple[tuple[int, int], ...] = ()
    largest: int = 0
    suspects: tuple[str, ...] = ()
    bad: str = ""

    @property
    def total_free(self) -> int:
        return sum(free * count for free, count in self.free)

    @property
    def eligible(self) -> int:
        return self.none + sum(count for _, count in self.free)


def is_accelerator(resource: str) -> bool:
    """
    Whether a resource is a GPU or the like, a part of one included.

    >>> is_accelerator("nvidia.com/gpu"), is_accelerator("nvidia.com/mig-1g.10gb"), is_accelerator("rdma/hca")
    (True, True, False)
    """
    return "/" in resource and bool(_ACCELERATOR.search(resource))


def offers(view: NodeView, resource: str) -> bool:
    """Whether a node has such a device, or says by its labels that it should."""
    if view.allocatable.get(resource, 0) > 0 or view.capacity.get(resource, 0) > 0:
        return True
    return labelled(view, resource) is not None


def labelled(view: NodeView, resource: str) -> int | None:
    """
    How many such devices the node's labels promise; 0 if they promise some and no number, None if they promise none.
    """
    if resource not in view.offering:
        view.offering[resource] = _labelled(view.labels, resource)
    promised = view.offering[resource]
    return None if promised is not None and is_offered_otherwise(view, resource) else promised


def is_offered_otherwise(view: NodeView, resource: str) -> bool:
    """Whether a node has its GPUs under other names: all of them cut into MIG slices, or shared and renamed."""
    if view.allocatable.get(resource, 0) > 0 or view.capacity.get(resource, 0) > 0:
        return False
    vendor = resource.partition("/")[0] + "/"
    return any(
        amount > 0 and name != resource and name.startswith(vendor) and is_accelerator(name)
        for name, amount in view.allocatable.items()
    )


def _labelled(labels: Mapping[str, str], resource: str) -> int | None:
    if labels.get("nvidia.com/gpu.present") == "false":
        return None
    for key in _VENDOR_LABELS.get(resource, ()):
        value = labels.get(key)
        if value is None or (resource == "nvidia.com/gpu" and _NOT_NVIDIA.search(f"{key} {value}")):
            continue
        count = labels.get("nvidia.com/gpu.count", "") if resource == "nvidia.com/gpu" else ""
        if count == "0":
            return None
        return int(count) if count.isdecimal() else 0
    return None


def gpu_verdict(cluster: Cluster, evaluation: Evaluation, resource: str, need: int) -> GpuVerdict:
    """
    The cause behind an accelerator that binds.

    Counted over the eligible nodes: those that selector, affinity, taints and cordon allow.  `gpu-shortage` is too few
    free on all of them together, `gpu-fragmentation` enough together and on no single one.
    """
    index = evaluation.index(resource)
    bit = c.resource_bit(index) if index is not None else 0
    none, largest = 0, 0
    free: dict[int, int] = {}
    silent: list[str] = []
    reduced: list[str] = []
    eligible = (
        (cluster.order[i], mask)
        for mask, indexes in evaluation.groups().items()
        if not mask & c.ELIGIBILITY
        for i in indexes
    )
    for view, mask in eligible:
        advertised = view.allocatable.get(resource, 0)
        bad = cluster.bad_gpus[view.name].withdrawn.get(resource, 0) if view.name in cluster.bad_gpus else 0
        has = max(view.capacity.get(resource, 0), advertised + bad)
        promised = labelled(view, resource)
        if advertised <= 0 and has <= 0 and promised is None:
            none += 1
            continue
        available = max(0, view.free.get(resource, 0))
        free[available] = free.get(available, 0) + 1
        largest = max(largest, advertised)
        if mask & ~bit:
            continue
        if advertised <= 0 and not bad:
            known = max(has, promised or 0)
            if known == 0 or known - view.bound(resource) >= need:
                silent.append(view.name)
        elif has > advertised and has - view.bound(resource) >= need:
            reduced.append(view.name)
    base = GpuVerdict(
        cause="",
        resource=resource,
        need=need,
        nodes=len(cluster.order),
        none=none,
        free=tuple(sorted(free.items(), reverse=True)),
        largest=largest,
        suspects=tuple(silent or reduced),
        bad=next((cluster.bad_gpus[name].words for name in silent or reduced if name in cluster.bad_gpus), ""),
    )
    return msgspec.structs.replace(base, cause=_cause(base, silent=bool(silent), reduced=bool(reduced)))


def _cause(verdict: GpuVerdict, *, silent: bool, reduced: bool) -> str:
    if "/mig-" in verdict.resource:
        return "mig-shortage"
    if silent:
        return "device-plugin-not-advertising"
    if reduced:
        return "gpus-unhealthy"
    if verdict.need > verdict.largest:
        return "gpu-never-fits"
    return "gpu-shortage" if verdict.total_free < verdict.need else "gpu-fragmentation"
