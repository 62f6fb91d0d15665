"""One node as placement sees it: what it offers, what is bound there, what is free."""

from __future__ import annotations

from datetime import datetime

import msgspec

from sevenhop.core.inventory.objects import Key
from sevenhop.core.objects.cluster import Node
from sevenhop.core.objects.pod import Pod
from sevenhop.core.placement.demand import AffinityTerm, HostPort, affinity_terms, host_ports
from sevenhop.core.placement.requests import Amounts, amounts, pod_requests
from sevenhop.core.placement.volumes import claims_of

UNLIMITED = 1 << 62


class Resident(msgspec.Struct, frozen=True, gc=False):
    """
    A pod that holds something on a node: bound and not finished, terminating ones included.

    Attributes:
        anti_affinity: Required terms, which keep others away.
        claims: PersistentVolumeClaims that it mounts.
        owner: uid of its controller, empty for a bare pod.
    """

    key: Key
    node: str
    labels: dict[str, str]
    holds: Amounts
    priority: int = 0
    terminating: bool = False
    ports: tuple[HostPort, ...] = ()
    anti_affinity: tuple[AffinityTerm, ...] = ()
    claims: tuple[Key, ...] = ()
    owner: str = ""
    scheduler: str = ""
    started: datetime | None = None


def resident(pod: Pod, node: str = "") -> Resident:
    """What the pod holds where it is bound, or would hold on `node`."""
    spec = pod.spec
    anti = spec.affinity.pod_anti_affinity if spec.affinity else None
    owner = pod.metadata.controller()
    return Resident(
        pod.metadata.key,
        node or spec.node_name,
        pod.metadata.labels,
        pod_requests(pod, bound=bool(spec.node_name)),
        spec.priority or 0,
        pod.is_terminating,
        host_ports(pod),
        affinity_terms(anti, pod) if anti else (),
        tuple(claims_of(pod)) if spec.volumes else (),
        owner.uid if owner else "",
        spec.scheduler_name,
        pod.status.start_time,
    )


class NodeView:
    """
    A node with its residents; `free` may be negative (more bound than there is now).

    `offering` remembers what the node's labels promise of a resource, as long as the node stays the same.

    Owned and mutated by `Cluster`; read it, do not change it.
    """

    __slots__ = (
        "allocatable",
        "capacity",
        "free",
        "index",
        "labels",
        "lowest_priority",
        "max_pods",
        "name",
        "node",
        "nominated",
        "offering",
        "residents",
        "taints",
    )

    def __init__(self, node: Node, index: int) -> None:
        self.index = index
        self.residents: dict[Key, Resident] = {}
        self.nominated: dict[Key, Resident] = {}
        self.lowest_priority: int | None = None
        self.adopt(node)

    def adopt(self, node: Node) -> None:
        """Take over another state of the same node, keeping the residents."""
        self.node = node
        self.name = node.metadata.name
        self.labels = node.metadata.labels
        self.taints = node.spec.taints
        self.offering: dict[str, int | None] = {}
        self.allocatable = amounts(node.status.allocatable)
        self.capacity = amounts(node.status.capacity)
        self.max_pods = self.allocatable.get("pods", UNLIMITED)
        self.free = dict(self.allocatable)
        for each in self.residents.values():
            self._hold(each, -1)

    def add(self, each: Resident) -> None:
        self.residents[each.key] = each
        self._hold(each, -1)
        if self.lowest_priority is None or each.priority < self.lowest_priority:
            self.lowest_priority = each.priority

    def remove(self, key: Key) -> Resident | None:
        each = self.residents.pop(key, None)
        if each is not None:
            self._hold(each, 1)
            if each.priority == self.lowest_priority:
                self.lowest_priority = min((r.priority for r in self.residents.values()), default=None)
        return each

    def bound(self, resource: str) -> int:
        """What all residents hold of a resource."""
        return self.allocatable.get(resource, 0) - self.free.get(resource, 0)

    def _hold(self, each: Resident, sign: int) -> None:
        free = self.free
        for name, value in each.holds.items():
            free[name] = free.get(name, 0) + sign * value
