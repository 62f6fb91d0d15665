"""Facts of one node."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import partial

import msgspec

from sevenhop.core.facts.schema import Facts, FactSpec, FactType, Unknown, UnknownReason
from sevenhop.core.inventory.advertised import devices, is_ready
from sevenhop.core.inventory.dra import NodeDevices
from sevenhop.core.inventory.history import SeenGpus
from sevenhop.core.inventory.products import is_gpu_resource
from sevenhop.core.inventory.rows import PodRow
from sevenhop.core.objects.cluster import Node
from sevenhop.core.subject import Hop, SubjectKind

_row = partial(FactSpec, subject=SubjectKind.NODE, source="Node", unknown_when="nodes cannot be seen")

SPECS: tuple[FactSpec, ...] = (
    _row(
        name="node.ready",
        type=FactType.BOOL,
        doc="The Ready condition is True; a kubelet that fell silent (status Unknown) is not ready.",
        unknown_when="nodes cannot be seen, or the node has no Ready condition yet",
    ),
    _row(
        name="node.maintenance",
        type=FactType.BOOL,
        doc="Cordoned, being drained, or tainted for maintenance or removal, by somebody else than us.",
        not_applicable=False,
    ),
    _row(
        name="node.gpu.expected",
        type=FactType.INT,
        unit="GPUs",
        doc="GPUs that the node should advertise: the most of its label, its capacity, what it advertised before, "
        "and what its agent knows.",
        source="Node, ResourceSlice, history, gpu agent",
        not_applicable=0,
    ),
    _row(
        name="node.gpu.visible",
        type=FactType.INT,
        unit="GPUs",
        doc="GPUs that the driver sees.",
        source="gpu agent",
        not_applicable=0,
        unknown_when="no agent on the node (no_source), or one that is silent for 60 s (stale)",
    ),
    _row(
        name="node.gpu.allocatable",
        type=FactType.INT,
        unit="GPUs",
        doc="GPUs that the node advertises to the scheduler, by a device plugin or as devices of a DRA driver.",
        source="Node, ResourceSlice",
        not_applicable=0,
        unknown_when="nodes cannot be seen, or no plugin ever advertised any here and ResourceSlices cannot be seen",
    ),
    _row(
        name="node.gpu.bound",
        type=FactType.INT,
        unit="GPUs",
        doc="GPUs of all pods that have this node and have not finished, terminating ones included.",
        source="Pod",
        not_applicable=0,
        unknown_when="pods cannot be seen",
    ),
    _row(
        name="node.gpu.unhealthy_allocatable",
        type=FactType.INT,
        unit="GPUs",
        doc="GPUs that the agent calls unhealthy and the node still advertises.",
        source="gpu agent",
        not_applicable=0,
        unknown_when="no agent on the node (no_source), or one that is silent for 60 s (stale)",
    ),
    _row(
        name="node.plugin_ready",
        type=FactType.BOOL,
        doc="The device plugin's pod here is ready, or, where none can be told apart, the node advertises GPUs.",
        source="Pod, Node",
        not_applicable=True,
        unknown_when="no device-plugin pod is recognised and the node advertises nothing (no_source)",
    ),
    _row(
        name="node.loads_fail_only_here",
        type=FactType.BOOL,
        doc="Pods of one release fail here at least twice, nowhere else, and are ready on another node.",
        source="Pod",
        not_applicable=False,
        unknown_when="pods cannot be seen",
    ),
)


class Sampled(msgspec.Struct, frozen=True, gc=False):
    """
    What a node's GPU agent tells, in numbers.

    Attributes:
        unknown: Why the others are not current; None while they are.
        visible: GPUs that the driver sees.
        known: Devices that are there, or were, as the node would advertise them.
        unhealthy: Bad ones that the node still advertises.
    """

    unknown: Unknown | None
    visible: int
    known: int
    unhealthy: int


NO_AGENT = Unknown(UnknownReason.NO_SOURCE, "gpu agent")
NO_CONDITION = Unknown(UnknownReason.NO_SOURCE, "the kubelet has not reported Ready yet")
NO_PLUGIN_SEEN = Unknown(UnknownReason.NO_SOURCE, "no device-plugin pod is recognised")

OURS = "sevenhop.dev/cordoned"
"""Annotation that our own cordon leaves: what we did is no maintenance of somebody else's."""

MAINTENANCE_TAINTS: tuple[str, ...] = (
    "node.kubernetes.io/unschedulable",
    "node.kubernetes.io/out-of-service",
    "node.cloudprovider.kubernetes.io/shutdown",
    "ToBeDeletedByClusterAutoscaler",
    "DeletionCandidateOfClusterAutoscaler",
    "karpenter.sh/disrupted",
    "karpenter.sh/disruption",
    "kured.dev/reboot",
    "nvidia.com/gpu-driver-upgrade-drain",
    "drain",
    "draining",
    "maintenance",
)
"""Taints that say: people or machines are taking this node out of service."""


def derive(
    node: Node,
    *,
    bound: int,
    seen: SeenGpus | None,
    plugin_ready: bool | None,
    fails_only_here: bool,
    published: Sequence[NodeDevices] = (),
    published_unknown: Unknown | None = None,
    sampled: Sampled | None = None,
    nodes_unknown: Unknown | None = None,
    pods_unknown: Unknown | None = None,
) -> Facts:
    """
    Facts of one node.

    Args:
        bound: GPUs of its pods.
        plugin_ready: Of its device-plugin pods; None where none is recognised.
        fails_only_here: See `loads_fail_only_here`.
        published: What its DRA drivers offer.
        published_unknown: Why that cannot be seen; a node on which no device plugin ever spoke may then have any.
        sampled: What its GPU agent tells; None without one.
    """
    allocatable = sum(devices(node.status.allocatable).values()) + sum(each.usable for each in published)
    expected = expected_gpus(node, seen, published, sampled.known if sampled is not None else 0)
    ready = is_ready(node)
    plugin: bool | Unknown = NO_PLUGIN_SEEN if plugin_ready is None else plugin_ready
    if plugin_ready is None and (allocatable > 0 or expected == 0):
        plugin = True
    facts: Facts = {
        "node.ready": NO_CONDITION if ready is None else ready,
        "node.maintenance": in_maintenance(node),
        "node.gpu.expected": expected,
        "node.gpu.visible": _sampled(expected, sampled, sampled.visible if sampled is not None else 0),
        "node.gpu.allocatable": allocatable,
        "node.gpu.bound": pods_unknown or bound,
        "node.gpu.unhealthy_allocatable": _sampled(expected, sampled, sampled.unhealthy if sampled is not None else 0),
        "node.plugin_ready": pods_unknown or plugin,
        "node.loads_fail_only_here": pods_unknown or fails_only_here,
    }
    if published_unknown is not None and expected and not any(is_gpu_resource(r) for r in node.status.capacity):
        facts["node.gpu.allocatable"] = published_unknown
        if plugin_ready is None:
            facts["node.plugin_ready"] = published_unknown
    if nodes_unknown is not None:
        facts = dict.fromkeys(facts, nodes_unknown)
    return facts


def _sampled(expected: int, sampled: Sampled | None, value: int) -> int | Unknown:
    if sampled is None:
        return 0 if expected == 0 else NO_AGENT
    return value if sampled.unknown is None else sampled.unknown


def in_maintenance(node: Node) -> bool:
    """Whether somebody else than us took the node out of service."""
    if node.spec.unschedulable:
        return OURS not in node.metadata.annotations
    return any(_says_maintenance(taint.key) for taint in node.spec.taints)


def _says_maintenance(key: str) -> bool:
    return key in MAINTENANCE_TAINTS or key.rpartition("/")[2].startswith(("maintenance", "drain"))


def expected_gpus(node: Node, seen: SeenGpus | None, published: Sequence[NodeDevices] = (), sampled: int = 0) -> int:
    """
    The most of what GPU Feature Discovery counted, what the kubelet and drivers have, what was once advertised, and
    what the agent knows.

    A label counts GPUs; under time-slicing each is advertised `nvidia.com/gpu.replicas` times.
    """
    labels = node.metadata.labels
    counted = _number(labels.get("nvidia.com/gpu.count", "")) * max(
        1, _number(labels.get("nvidia.com/gpu.replicas", ""))
    )
    cut = any(name.startswith("nvidia.com/mig-") for name in (*node.status.allocatable, *node.status.capacity))
    capacity = sum(devices(node.status.capacity).values()) + sum(each.total for each in published)
    return max(0 if cut else counted, capacity, seen.most if seen is not None else 0, sampled)


def loads_fail_only_here(node: str, rows: Iterable[PodRow]) -> bool:
    """
    Whether pods of one release fail on this node alone.

    Args:
        rows: Pods of one component, on all nodes.
    """
    failures: dict[str, int] = {}
    elsewhere_fails: set[str] = set()
    elsewhere_ready: set[str] = set()
    for row in rows:
        if not row.node or row.terminating:
            continue
        release = f"{row.family} {row.revision} {row.image}"
        if row.node != node:
            if row.failure is not None:
                elsewhere_fails.add(release)
            elif row.ready:
                elsewhere_ready.add(release)
        elif row.failure is not None and row.failure.hop in (Hop.MODEL, Hop.POD, Hop.DISCOVERY, Hop.GPU):
            failures[release] = failures.get(release, 0) + max(1, row.restarts or 0)
    return any(
        count >= 2 and release in elsewhere_ready and release not in elsewhere_fails
        for release, count in failures.items()
    )


def _number(text: str) -> int:
    return int(text) if text.isdecimal() else 0
