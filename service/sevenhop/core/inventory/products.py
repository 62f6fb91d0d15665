"""
Which GPU: of a node, and of a pod that asks for one; normalised to the spelling of NVIDIA's node label.

GPU Feature Discovery writes ``nvidia.com/gpu.product``; clouds write their own labels; some nodes say only their
instance type.  All are mapped to the first, because that is what people select by.  Form factors are kept apart: an
H100 NVL is not an H100 with HBM3.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache

import msgspec

from sevenhop.core.objects.base import Quantities
from sevenhop.core.objects.cluster import Node
from sevenhop.core.objects.pod import Container, NodeSelectorTerm, PodSpec
from sevenhop.core.objects.quantity import units


class Product(msgspec.Struct, frozen=True, gc=False):
    """
    Attributes:
        name: NVIDIA's label spelling, such as ``NVIDIA-H100-80GB-HBM3``, without sharing and MIG suffixes; empty for
            a node that names no GPU.
        raw: As the node says it.
        shared_by: Pods that may share one GPU by time-slicing or MPS; 1 for exclusive use, 0 for shared by an unknown
            number.
        mig: Profile such as ``1g.10gb`` where the whole node is cut alike, ``mixed`` where profiles are resources of
            their own, empty without MIG.
    """

    name: str = ""
    raw: str = ""
    shared_by: int = 1
    mig: str = ""


PRODUCT_LABELS: tuple[str, ...] = (
    "nvidia.com/gpu.product",
    "amd.com/gpu.product-name",
    "beta.amd.com/gpu.product-name",
    "cloud.google.com/gke-accelerator",
    "karpenter.k8s.aws/instance-gpu-name",
    "karpenter.k8s.aws/instance-accelerator-name",
    "k8s.amazonaws.com/accelerator",
    "kubernetes.azure.com/accelerator",
    "accelerator",
    "aliyun.accelerator/nvidia_name",
    "cloud.tencent.com/tke-accelerator",
    "cloud.google.com/gke-tpu-accelerator",
)
"""Node labels that name the GPU, the most trusted first."""

INSTANCE_LABELS: tuple[str, ...] = ("node.kubernetes.io/instance-type", "beta.kubernetes.io/instance-type")

_SPELLING: dict[str, str] = {
    # What GKE, AWS, Alibaba and Dynamo's gpuSku call it, without separators: what NVIDIA's label calls it.
    "GB300": "NVIDIA-GB300", "GB200": "NVIDIA-GB200", "B300": "NVIDIA-B300", "B200": "NVIDIA-B200",
    "GH200": "NVIDIA-GH200-480GB", "H200": "NVIDIA-H200", "H200141GB": "NVIDIA-H200", "H200SXM": "NVIDIA-H200",
    "H100": "NVIDIA-H100-80GB-HBM3", "H10080GB": "NVIDIA-H100-80GB-HBM3", "H100MEGA80GB": "NVIDIA-H100-80GB-HBM3",
    "H100SXM": "NVIDIA-H100-80GB-HBM3", "H100PCIE": "NVIDIA-H100-PCIe", "H100NVL": "NVIDIA-H100-NVL",
    "H20": "NVIDIA-H20", "A100": "NVIDIA-A100-SXM4-40GB", "TESLAA100": "NVIDIA-A100-SXM4-40GB",
    "A100SXM": "NVIDIA-A100-SXM4-80GB", "A10080GB": "NVIDIA-A100-SXM4-80GB", "A10040GB": "NVIDIA-A100-SXM4-40GB",
    "A100PCIE": "NVIDIA-A100-PCIE-40GB", "A10080GBPCIE": "NVIDIA-A100-PCIE-80GB",
    "H100SXM580GB": "NVIDIA-H100-80GB-HBM3",
    "A30": "NVIDIA-A30", "A10G": "NVIDIA-A10G", "A10": "NVIDIA-A10", "L40S": "NVIDIA-L40S", "L40": "NVIDIA-L40",
    "L4": "NVIDIA-L4", "T4G": "NVIDIA-T4G", "T4": "Tesla-T4", "TESLAT4": "Tesla-T4", "K80": "Tesla-K80",
    "V100": "Tesla-V100-SXM2-16GB", "TESLAV100": "Tesla-V100-SXM2-16GB", "P100": "Tesla-P100-PCIE-16GB",
    "TESLAP100": "Tesla-P100-PCIE-16GB", "P4": "Tesla-P4", "TESLAP4": "Tesla-P4", "TESLAK80": "Tesla-K80",
    "RTXPRO6000": "NVIDIA-RTX-PRO-6000-Blackwell-Server-Edition",
    "RTXPROSERVER6000": "NVIDIA-RTX-PRO-6000-Blackwell-Server-Edition",
    "RTXPRO4500": "NVIDIA-RTX-PRO-4500-Blackwell-Server-Edition",
}  # fmt: skip

_OLD_CARDS = re.compile(r"^(T4(?!G)|V100|P100|P40|P4|K80|M60)", re.IGNORECASE)

_INSTANCES: tuple[tuple[str, str], ...] = (
    # Instance type, as a pattern: product.  AWS families from Karpenter's table; Azure and Google from their names.
    (r"p6e-gb200\.", "NVIDIA-GB200"), (r"p6-b300\.", "NVIDIA-B300"), (r"p6-b200\.", "NVIDIA-B200"),
    (r"p5(e|en)\.", "NVIDIA-H200"), (r"p5\.", "NVIDIA-H100-80GB-HBM3"), (r"p4de\.", "NVIDIA-A100-SXM4-80GB"),
    (r"p4d\.", "NVIDIA-A100-SXM4-40GB"), (r"p3dn\.", "Tesla-V100-SXM2-32GB"), (r"p3\.", "Tesla-V100-SXM2-16GB"),
    (r"g7e\.", "NVIDIA-RTX-PRO-6000-Blackwell-Server-Edition"),
    (r"g7\.", "NVIDIA-RTX-PRO-4500-Blackwell-Server-Edition"),
    (r"g6e\.", "NVIDIA-L40S"), (r"gr?6f?\.", "NVIDIA-L4"), (r"g5g\.", "NVIDIA-T4G"), (r"g5\.", "NVIDIA-A10G"),
    (r"g4dn\.", "Tesla-T4"),
    (r"a4x-", "NVIDIA-GB200"), (r"a4-", "NVIDIA-B200"), (r"a3-ultragpu", "NVIDIA-H200"),
    (r"a3-", "NVIDIA-H100-80GB-HBM3"),
    (r"a2-ultragpu", "NVIDIA-A100-SXM4-80GB"), (r"a2-", "NVIDIA-A100-SXM4-40GB"), (r"g2-", "NVIDIA-L4"),
    (r"Standard_ND\d+\w*_GB300", "NVIDIA-GB300"), (r"Standard_ND\d+\w*_GB200", "NVIDIA-GB200"),
    (r"Standard_ND\d+\w*_H200", "NVIDIA-H200"),
    (r"Standard_ND\d+\w*_H100", "NVIDIA-H100-80GB-HBM3"), (r"Standard_NC+\d+\w*_H100", "NVIDIA-H100-NVL"),
    (r"Standard_ND\d+am\w*_A100", "NVIDIA-A100-SXM4-80GB"), (r"Standard_ND\d+\w*_A100", "NVIDIA-A100-SXM4-40GB"),
    (r"Standard_NC\d+ads_A100", "NVIDIA-A100-PCIE-80GB"), (r"Standard_N[CV]\d+\w*_A10_", "NVIDIA-A10"),
    (r"Standard_NC\d+as_T4", "Tesla-T4"), (r"Standard_(NC\d+r?s_v3|ND40rs_v2)", "Tesla-V100-SXM2-16GB"),
)  # fmt: skip

_INSTANCE_GPUS: tuple[tuple[str, int], ...] = (
    # Only where one look at the name is enough; used when a workload asks for instances and not for GPUs.
    (r"p(3dn|4d|4de|5e|5en|6-b200|6-b300)\.", 8), (r"p5\.48xlarge", 8), (r"p5\.4xlarge", 1),
    (r"g[567]e?\.48xlarge", 8), (r"g7e\.24xlarge", 4), (r"g7e\.12xlarge", 2), (r"g7\.24xlarge", 4),
    (r"g7\.12xlarge", 2),
    (r"g[56]e?\.(12|24)xlarge", 4), (r"g[567]e?\.(xlarge|2xlarge|4xlarge|8xlarge|16xlarge)", 1),
    (r"g4dn\.12xlarge", 4), (r"g4dn\.metal", 8), (r"g4dn\.", 1),
    (r"Standard_NC24ads_A100", 1), (r"Standard_NC48ads_A100", 2), (r"Standard_NC96ads_A100", 4),
    (r"Standard_NC40ads_H100", 1), (r"Standard_NC80adis_H100", 2), (r"Standard_ND96\w*_", 8),
    (r"Standard_NC(4|8|16)as_T4", 1), (r"Standard_NC64as_T4", 4), (r"Standard_NC6s_v3", 1), (r"Standard_NC12s_v3", 2),
    (r"Standard_NC24r?s_v3", 4), (r"Standard_NV36ad[sm]*_A10", 1), (r"Standard_NV72ads_A10", 2),
)  # fmt: skip

_SHARED = re.compile(r"-SHARED$", re.IGNORECASE)
_MIG = re.compile(r"-MIG-(\d+g\.\d+gb(?:[.+]me)?)$", re.IGNORECASE)


@lru_cache(maxsize=1024)
def normalise(raw: str) -> str:
    """
    NVIDIA's label spelling of a GPU's name in any spelling; what is not known keeps its words, joined by dashes.

    >>> normalise("nvidia-h100-80gb"), normalise("h200"), normalise("A100-SXM4-40GB"), normalise("nvidia-tesla-t4")
    ('NVIDIA-H100-80GB-HBM3', 'NVIDIA-H200', 'NVIDIA-A100-SXM4-40GB', 'Tesla-T4')
    """
    name = _MIG.sub("", _SHARED.sub("", raw.strip()))
    name = re.sub(r"[\s_]+", "-", name)
    bare = re.sub(r"^nvidia-", "", name, flags=re.IGNORECASE)
    if not bare or bare.lower() in ("nvidia", "amd"):
        return ""  # AKS says only who made it
    known = _SPELLING.get(bare.upper().replace("-", ""))
    if known:
        return known
    bare = re.sub(r"^Tesla-", "", bare, flags=re.IGNORECASE)
    if _OLD_CARDS.match(bare):
        return f"Tesla-{bare}"
    if name.lower().startswith("nvidia-") or re.match(r"^(GB|GH|B|H|A|L|RTX|Quadro)-?\d", bare):
        return f"NVIDIA-{bare}"
    return name


def product_of_instance(instance_type: str) -> str:
    """The product of a cloud's instance type; empty if we do not know it."""
    return next((name for pattern, name in _INSTANCES if re.match(pattern, instance_type)), "")


def gpus_of_instance(instance_type: str) -> int:
    """How many GPUs an instance type has; 0 if we do not know it."""
    return next((count for pattern, count in _INSTANCE_GPUS if re.match(pattern, instance_type)), 0)


def node_product(node: Node) -> Product:
    """The GPU of a node, from its labels in the order of `PRODUCT_LABELS`, else from its instance type."""
    labels = node.metadata.labels
    name, raw = _named_by(labels)
    if not name:
        return Product(raw=raw)
    sharing = _SHARED.search(raw)
    replicas = labels.get("nvidia.com/gpu.replicas", "")
    count = int(replicas) if replicas.isdecimal() else 0
    if sharing or count > 1:
        shared_by = count if count > 1 else 0
    else:
        shared_by = 1
    return Product(name=name, raw=raw, shared_by=shared_by, mig=_mig_of(raw, node))


def _named_by(labels: Mapping[str, str]) -> tuple[str, str]:
    raw = ""
    for key in PRODUCT_LABELS:
        value = labels.get(key, "")
        raw = raw or value
        name = normalise(value) if value else ""
        if name:
            return _by_memory(name, value, labels), value
    for key in INSTANCE_LABELS:
        name = product_of_instance(labels.get(key, ""))
        if name:
            return name, labels[key]
    return "", raw


def _by_memory(name: str, raw: str, labels: Mapping[str, str]) -> str:
    """AWS calls both sizes of the A100 and of the V100 by one name; the instance's GPU memory (MiB) tells which."""
    memory = labels.get("karpenter.k8s.aws/instance-gpu-memory", "")
    if not memory.isdecimal():
        instance = next((labels[key] for key in INSTANCE_LABELS if labels.get(key)), "")
        known = product_of_instance(instance)
        return known if known and raw.lower() in ("a100", "v100") else name
    if raw.lower() == "a100" and int(memory) > 60_000:
        return "NVIDIA-A100-SXM4-80GB"
    if raw.lower() == "v100" and int(memory) > 20_000:
        return "Tesla-V100-SXM2-32GB"
    return name


def _mig_of(raw: str, node: Node) -> str:
    single = _MIG.search(_SHARED.sub("", raw))
    if single:
        return single.group(1).replace("+", ".")
    if any(resource.startswith("nvidia.com/mig-") for resource in node.status.allocatable):
        return "mixed"
    return "mixed" if node.metadata.labels.get("nvidia.com/mig.strategy") == "mixed" and "MIG" in raw.upper() else ""


def wanted_products(spec: PodSpec) -> tuple[str, ...]:
    """
    Products that a pod's node selector and required node affinity allow, normalised and sorted; empty for any.

    Terms of an affinity are alternatives: a term that names no product allows any.  Requirements within a term, and
    the node selector, all hold.
    """
    if not spec.node_selector and spec.affinity is None:
        return ()
    allowed = _allowed_by_selector(spec.node_selector)
    affinity = spec.affinity.node_affinity if spec.affinity else None
    if affinity and affinity.required and affinity.required.node_selector_terms:
        terms = [_allowed_by_term(term) for term in affinity.required.node_selector_terms]
        if all(term is not None for term in terms):
            either = frozenset[str]().union(*(term for term in terms if term is not None))
            allowed = either if allowed is None else allowed & either or allowed
    return tuple(sorted(allowed or ()))


def wanted_product(spec: PodSpec) -> str:
    """The one product that a pod can only run on, normalised; empty for any, and for one of several."""
    wanted = wanted_products(spec)
    return wanted[0] if len(wanted) == 1 else ""


def _allowed_by_selector(selector: Mapping[str, str]) -> frozenset[str] | None:
    return _allowed({key: (value,) for key, value in selector.items()})


def _allowed_by_term(term: NodeSelectorTerm) -> frozenset[str] | None:
    return _allowed({e.key: tuple(e.values) for e in term.match_expressions if e.operator == "In"})


def _allowed(choices: Mapping[str, tuple[str, ...]]) -> frozenset[str] | None:
    """The products by the most trusted key that names any; None where no key does."""
    for key in (*PRODUCT_LABELS, *INSTANCE_LABELS):
        read = product_of_instance if key in INSTANCE_LABELS else normalise
        names = [read(value) for value in choices.get(key, ())]
        if names and all(names):
            return frozenset(names)
    return None


_EXACT = frozenset(
    ("nvidia.com/gpu", "nvidia.com/gpu.shared", "amd.com/gpu", "intel.com/gpu", "habana.ai/gaudi", "google.com/tpu")
)
_PREFIXES = ("nvidia.com/mig-", "gpu.intel.com/", "aws.amazon.com/neuron", "habana.ai/gaudi", "amd.com/gpu-")
_NOT_DEVICES = frozenset(("gpu.intel.com/millicores", "gpu.intel.com/memory.max", "gpu.intel.com/tiles"))


@lru_cache(maxsize=4096)
def is_gpu_resource(resource: str) -> bool:
    """Whether an extended resource counts accelerators or slices of them."""
    return (resource in _EXACT or resource.startswith(_PREFIXES)) and resource not in _NOT_DEVICES


def gpu_resources(quantities: Quantities) -> dict[str, int]:
    """
    The accelerators among resource quantities, those that are 0 left out.

    Raises:
        ValueError: A quantity that is none.

    >>> gpu_resources({"cpu": "4", "nvidia.com/gpu": "2", "nvidia.com/mig-1g.10gb": 1, "amd.com/gpu": 0})
    {'nvidia.com/gpu': 2, 'nvidia.com/mig-1g.10gb': 1}
    """
    found = {name: units(name, amount) for name, amount in quantities.items() if is_gpu_resource(name)}
    return {name: amount for name, amount in found.items() if amount > 0}


def pod_gpus(spec: PodSpec) -> dict[str, int]:
    """
    Accelerators that one pod asks for, counted as the scheduler does: containers and sidecars add up, an init
    container that ends only needs to fit.

    Raises:
        ValueError: A quantity that is none.
    """
    running: dict[str, int] = {}
    starting: dict[str, int] = {}
    for container in spec.init_containers:
        wants = _container_gpus(container)
        is_sidecar = container.restart_policy == "Always"
        for name, amount in wants.items():
            starting[name] = max(starting.get(name, 0), running.get(name, 0) + amount)
            if is_sidecar:
                running[name] = running.get(name, 0) + amount
    for container in spec.containers:
        for name, amount in _container_gpus(container).items():
            running[name] = running.get(name, 0) + amount
    return {name: max(running.get(name, 0), starting.get(name, 0)) for name in {**running, **starting}}


def _container_gpus(container: Container) -> dict[str, int]:
    # The API server copies limits into requests; a manifest may state the limit alone.
    return gpu_resources({**container.resources.limits, **container.resources.requests})
