"""
Who has the GPUs: per pool (GPU product × resource) the sums, kept current as pods and nodes change.

A node's part of a pool is computed anew when something on that node changes; the pool's sums take the difference.  So
one pod costs what its node holds, and never what the pool holds.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from datetime import datetime

import msgspec

from sevenhop.core.inventory.capacity import NodeFree, PoolCapacity
from sevenhop.core.inventory.dra import NodeDevices, gpu_devices
from sevenhop.core.inventory.gpu_agent import came_later
from sevenhop.core.inventory.gpu_health import BadUnit, Units
from sevenhop.core.inventory.objects import Key, Objects
from sevenhop.core.inventory.products import Product, gpu_resources, is_gpu_resource, node_product, pod_gpus
from sevenhop.core.objects.base import Quantities, condition
from sevenhop.core.objects.cluster import Node
from sevenhop.core.objects.pod import Pod

MIG_PREFIX = "nvidia.com/mig-"
WHOLE = ("nvidia.com/gpu", "nvidia.com/gpu.shared", "amd.com/gpu")
"""Resources that count whole devices, or shares of them: their pool is called by the product alone."""

_OTHERS = {"amd.com": ("NVIDIA", "Tesla", "Quadro"), "nvidia.com": ("AMD",)}
"""How products begin that are surely not of this vendor."""


def pool_name(product: Product, resource: str) -> str:
    """
    The pool that a resource of a node belongs to.

    Shares of a time-sliced GPU, MIG slices and whole GPUs are different things to wait for, so they are different
    pools.  A node that does not name its GPU is in the pool of its resource.

    >>> pool_name(Product(name="NVIDIA-A100-SXM4-40GB", mig="mixed"), "nvidia.com/mig-1g.5gb")
    'NVIDIA-A100-SXM4-40GB-MIG-1g.5gb'
    >>> pool_name(Product(name="NVIDIA-A10G", shared_by=4), "nvidia.com/gpu")
    'NVIDIA-A10G-SHARED'
    >>> pool_name(Product(name="NVIDIA-L4"), "amd.com/gpu")
    'NVIDIA-L4/amd.com/gpu'
    """
    name = product.name or product.raw
    if not name:
        return resource
    if resource.startswith(MIG_PREFIX):
        return f"{name}-MIG-{resource.removeprefix(MIG_PREFIX)}"
    if product.mig and product.mig != "mixed":
        return f"{name}-MIG-{product.mig}"
    if product.shared_by != 1 or resource.endswith(".shared"):
        return f"{name}-SHARED"
    return name if resource in WHOLE and _is_made_by(name, resource) else f"{name}/{resource}"


def _is_made_by(name: str, resource: str) -> bool:
    """A node may hold devices of a vendor that its labels do not speak of: two resources are never one pool."""
    return not name.startswith(_OTHERS.get(resource.partition("/")[0], ()))


class Hold(msgspec.Struct, frozen=True, gc=False):
    """
    Accelerators that one pod has, or asks for: ``{"nvidia.com/gpu": 2}``.

    Devices that it has by claims stand there under `NodeDevices.resource`: ``{"gpu.nvidia.com": 2}``.
    """

    node: str
    gpus: dict[str, int]
    releasing: bool
    workload: Key | None
    component: str
    created: datetime | None = None

    def total(self) -> int:
        return sum(self.gpus.values())


Holder = tuple[Key, str] | None
"""(workload, component); None for pods of no inference workload"""

Held = tuple[int, int]
"""(GPUs, pods)"""


class Part(msgspec.Struct, frozen=True, gc=False):
    """
    One node's part of one pool.

    Attributes:
        by_claim: Its devices are held by ResourceClaims.
        withdrawn: Devices that are bad by the agent, and that the node does not advertise any more.
    """

    pool: str
    resource: str
    capacity: int
    free: NodeFree
    held: dict[Holder, Held]
    by_claim: bool = False
    withdrawn: int = 0

    @property
    def unhealthy(self) -> int:
        """Devices that are there and of no use: not advertised, or advertised and bad."""
        return max(0, self.capacity - self.free.allocatable, self.withdrawn) + self.free.unhealthy


class Sums(msgspec.Struct, gc=False):
    """Of one pool; `blocks` counts nodes by their free GPUs, `held` says who has how much."""

    resource: str
    by_claim: bool = False
    allocatable: int = 0
    bound: int = 0
    releasing: int = 0
    free: int = 0
    cordoned: int = 0
    unhealthy: int = 0
    blocks: Counter[int] = msgspec.field(default_factory=Counter)
    held: dict[Holder, Held] = {}

    def largest_free_block(self) -> int:
        return max(self.blocks, default=0)


class _Bad(msgspec.Struct, frozen=True, gc=False, kw_only=True):
    """
    Bad devices of one resource of a node.

    Attributes:
        withdrawn: That it does not advertise any more.
        offered: That it still does; `idle` those among them that no pod has.
    """

    withdrawn: int = 0
    offered: int = 0
    idle: int = 0


_NO_BAD = _Bad()


class Ledger:
    """
    Mutable, owned by one inventory.

    Attributes:
        dirty: Pools that changed, until somebody takes them.
        reshaped: A node came to a pool or left one: who could run where may be another question now.
        resized: A pool has another size.
        moves: Counts how often a node came to a pool, or left one.
    """

    def __init__(self) -> None:
        self._holds: dict[Key, Hold] = {}
        self._on: dict[str, dict[Key, Hold]] = {}
        self._nodes: dict[str, Node] = {}
        self._devices: dict[str, tuple[NodeDevices, ...]] = {}
        self._health: dict[str, dict[str, Units]] = {}
        self._parts: dict[str, tuple[Part, ...]] = {}
        self._sums: dict[str, Sums] = {}
        self._members: dict[str, set[str]] = {}
        self.dirty: set[str] = set()
        self.reshaped = self.resized = False
        self.moves = 0

    # What it answers

    def pools(self) -> Mapping[str, Sums]:
        return self._sums

    def pools_of(self, node: str) -> tuple[str, ...]:
        return tuple(part.pool for part in self._parts.get(node, ()))

    def parts_of(self, node: str) -> tuple[Part, ...]:
        return self._parts.get(node, ())

    def nodes_of(self, pool: str) -> list[NodeFree]:
        """Sorted by name."""
        return [
            part.free for node in sorted(self._members.get(pool, ())) for part in self._parts[node] if part.pool == pool
        ]

    def members(self, pool: str) -> Collection[str]:
        """Names of the nodes of a pool, in no order."""
        return self._members.get(pool, ())

    def unhealthy_of(self, pool: str) -> dict[str, int]:
        """Node to what it adds to `PoolCapacity.unhealthy`."""
        return {
            part.free.name: part.unhealthy
            for node in self._members.get(pool, ())
            for part in self._parts[node]
            if part.pool == pool
        }

    def capacity(self, pool: str) -> PoolCapacity:
        """The sums of one pool; empty for one that no node is part of."""
        sums = self._sums.get(pool) or Sums("")
        return PoolCapacity(
            product=pool,
            resource=sums.resource,
            nodes=tuple(self.nodes_of(pool)),
            allocatable=sums.allocatable,
            bound=sums.bound,
            releasing=sums.releasing,
            free=sums.free,
            cordoned=sums.cordoned,
            unhealthy=sums.unhealthy,
            largest_free_block=sums.largest_free_block(),
        )

    def held_in(self, pool: str) -> Mapping[Holder, Held]:
        """Who has GPUs of a pool."""
        sums = self._sums.get(pool)
        return sums.held if sums is not None else {}

    def bound_on(self, node: str) -> int:
        return sum(hold.total() for hold in self._on.get(node, {}).values())

    def is_releasing(self, node: str) -> bool:
        """Whether a pod that is being ended still has devices there."""
        return any(hold.releasing for hold in self._on.get(node, {}).values())

    def hold(self, pod: Key) -> Hold | None:
        return self._holds.get(pod)

    def pool_of_pod(self, pod: Key) -> str:
        """The pool that a bound pod has GPUs of; empty without."""
        hold = self._holds.get(pod)
        if hold is None:
            return ""
        return next((part.pool for part in self._parts.get(hold.node, ()) if part.resource in hold.gpus), "")

    # What changes it

    def put_pod(self, key: Key, hold: Hold | None) -> None:
        """What a pod holds now; None for a pod without node or GPUs, a finished one, one that is gone."""
        before = self._holds.get(key)
        if before == hold:
            return
        if before is not None:
            here = self._on.get(before.node, {})
            here.pop(key, None)
            if not here:
                self._on.pop(before.node, None)
            del self._holds[key]
        if hold is not None:
            self._holds[key] = hold
            self._on.setdefault(hold.node, {})[key] = hold
        for node in {h.node for h in (before, hold) if h is not None}:
            self._recount(node)

    def put_node(self, name: str, node: Node | None) -> None:
        if node is None:
            self._nodes.pop(name, None)
        else:
            self._nodes[name] = node
        self._recount(name)

    def put_devices(self, name: str, devices: tuple[NodeDevices, ...]) -> None:
        """What a node's drivers publish now."""
        if devices == self._devices.get(name, ()):
            return
        self._devices[name] = devices
        if not devices:
            del self._devices[name]
        self._recount(name)

    def put_health(self, name: str, units: dict[str, Units]) -> None:
        """What a node's agent says of its devices, by MIG profile; nothing without an agent."""
        if units == self._health.get(name, {}):
            return
        self._health[name] = units
        if not units:
            del self._health[name]
        self._recount(name)

    def devices_on(self, name: str) -> tuple[NodeDevices, ...]:
        """What a node's drivers publish."""
        return self._devices.get(name, ())

    def _recount(self, name: str) -> None:
        node = self._nodes.get(name)
        after = self._count(node) if node is not None else ()
        before = self._parts.get(name, ())
        if before == after:
            return
        if [(part.pool, part.resource) for part in before] != [(part.pool, part.resource) for part in after]:
            self.moves += 1
            self.reshaped = True
        elif [part.free.allocatable for part in before] != [part.free.allocatable for part in after]:
            self.resized = True
        for part in before:
            self._add(part, -1)
            self._members[part.pool].discard(name)
        for part in after:
            self._add(part, 1)
            self._members.setdefault(part.pool, set()).add(name)
        self._parts[name] = after
        if not after:
            del self._parts[name]
        for pool in {part.pool for part in (*before, *after)}:
            self.dirty.add(pool)
            if not self._members[pool]:
                del self._members[pool], self._sums[pool]

    def _count(self, node: Node) -> tuple[Part, ...]:
        name = node.metadata.name
        allocatable = devices(node.status.allocatable)
        capacity = devices(node.status.capacity)
        published = self._devices.get(name, ())
        # Pods keep what they have when a device plugin dies and the node names none of it any more.
        held = {name for hold in self._on.get(name, {}).values() for name in hold.gpus if is_gpu_resource(name)}
        if not allocatable and not capacity and not published and not held:
            return ()
        product = node_product(node)
        parts: list[Part] = []
        for resource in sorted({*allocatable, *capacity, *held}):
            has = allocatable.get(resource, 0)
            pool, bad = pool_name(product, resource), self._bad(name, resource, has, max(1, product.shared_by))
            parts.append(self._part(node, pool, resource, has, capacity.get(resource, has), bad=bad))
        for each in published:
            own = Product(name=each.product or product.name, raw=product.raw)
            pool = pool_name(own, each.resource)
            bad = self._bad(name, each.resource, each.usable, 1)
            part = self._part(node, pool, each.resource, each.usable, each.total, cut=each.cut, bad=bad)
            parts.append(msgspec.structs.replace(part, by_claim=True))
        return tuple(parts)

    def _bad(self, name: str, resource: str, has: int, shared_by: int) -> _Bad:
        """What the agent knows to be bad of one resource that the node advertises `has` of."""
        profile = resource.partition("/mig-")[2]
        units = self._health.get(name, {}).get(profile) or next(
            (found for each, found in self._health.get(name, {}).items() if each.replace("+", ".") == profile), None
        )
        if units is None or not units.bad:
            return _NO_BAD
        share, here = 1 if profile else shared_by, self._on.get(name, {})
        bad = len(units.bad) * share
        # What is not advertised is the bad one: that is what device plugins take out.
        withdrawn = min(bad, max(0, units.known * share - has))
        idle = sum(max(0, share - _having(here, each)) for each in units.bad)
        return _Bad(withdrawn=withdrawn, offered=min(has, bad - withdrawn), idle=min(idle, bad - withdrawn))

    def _part(self, node: Node, pool: str, resource: str, has: int, capacity: int, *, cut: int = 0, bad: _Bad) -> Part:
        """`cut`: free as far as pods hold, and yet nobody can have them."""
        name = node.metadata.name
        holds = self._on.get(name, {}).values()
        ready, cordoned = is_ready(node) is True, node.spec.unschedulable
        bound = sum(hold.gpus.get(resource, 0) for hold in holds)
        releasing = sum(hold.gpus.get(resource, 0) for hold in holds if hold.releasing)
        free = max(0, has - bound - cut - bad.idle) if ready and not cordoned else 0
        row = NodeFree(name, has, bound, releasing, free, ready, cordoned, bad.offered)
        return Part(pool, resource, capacity, row, _held(resource, holds), withdrawn=bad.withdrawn)

    def _add(self, part: Part, sign: int) -> None:
        sums = self._sums.get(part.pool)
        if sums is None:
            sums = self._sums[part.pool] = Sums(part.resource, part.by_claim)
        row = part.free
        sums.allocatable += sign * row.allocatable
        sums.bound += sign * row.bound
        sums.releasing += sign * row.releasing
        sums.free += sign * row.free
        sums.cordoned += sign * (row.allocatable if row.cordoned else 0)
        sums.unhealthy += sign * part.unhealthy
        sums.blocks[row.free] += sign
        if sums.blocks[row.free] <= 0:
            del sums.blocks[row.free]
        for holder, (gpus, pods) in part.held.items():
            had_gpus, had_pods = sums.held.get(holder, (0, 0))
            sums.held[holder] = (had_gpus + sign * gpus, had_pods + sign * pods)
            if sums.held[holder] == (0, 0):
                del sums.held[holder]


def _having(holds: Mapping[Key, Hold], device: BadUnit) -> int:
    """Pods on the node that have a bad device: not those that came under the name of one that is gone."""
    found = (holds.get(pod) for pod in device.pods)
    return sum(hold is not None and not came_later(hold.created, device.lost_at) for hold in found)


def _held(resource: str, holds: Iterable[Hold]) -> dict[Holder, Held]:
    found: dict[Holder, Held] = {}
    for hold in holds:
        gpus = hold.gpus.get(resource, 0)
        if gpus:
            holder = (hold.workload, hold.component) if hold.workload is not None else None
            had_gpus, had_pods = found.get(holder, (0, 0))
            found[holder] = (had_gpus + gpus, had_pods + 1)
    return found


def pools(objects: Objects) -> list[PoolCapacity]:
    """The pools of a set of objects, sorted by name, without who waits or could give: for a file of objects."""
    ledger = Ledger()
    published = gpu_devices(objects)
    for pod in objects.pods().values():
        ledger.put_pod(pod.metadata.key, hold_of(pod, None, "", claimed=published.held(pod)))
    for (_, name), node in objects.nodes().items():
        ledger.put_devices(name, published.on(name))
        ledger.put_node(name, node)
    return [ledger.capacity(name) for name in sorted(ledger.pools())]


def hold_of(
    pod: Pod,
    workload: Key | None,
    component: str,
    *,
    claimed: Mapping[str, int] | None = None,
    asked: dict[str, int] | None = None,
) -> Hold | None:
    """
    What a pod holds on its node; None without node or accelerators, and for one that has finished.

    Args:
        claimed: Devices that it has by claims.
        asked: What `asks` says of it, where that is known.
    """
    if not pod.spec.node_name or pod.is_finished:
        return None
    gpus = asks(pod) if asked is None else asked
    if claimed:
        served = _served_by_devices(pod)
        gpus = {**{name: count for name, count in gpus.items() if name not in served}, **claimed}
    if not gpus:
        return None
    created = pod.metadata.creation_timestamp
    return Hold(pod.spec.node_name, gpus, pod.is_terminating, workload, component, created)


def _served_by_devices(pod: Pod) -> frozenset[str]:
    """Extended resources that the scheduler has made a claim for: they are held once, as devices."""
    said = pod.status.extended_resource_claim_status or {}
    mappings = said.get("requestMappings")
    rows = mappings if isinstance(mappings, list) else []
    return frozenset(str(row.get("resourceName", "")) for row in rows if isinstance(row, dict))


def asks(pod: Pod) -> dict[str, int]:
    """Accelerators that a pod asks for; a quantity that is none counts as nothing."""
    try:
        return pod_gpus(pod.spec)
    except ValueError:
        return {}


def devices(quantities: Quantities) -> dict[str, int]:
    """Accelerators among quantities; a quantity that is none counts as nothing."""
    try:
        return gpu_resources(quantities)
    except ValueError:
        return {}


def is_ready(node: Node) -> bool | None:
    """None where the kubelet has not said anything yet; one that fell silent is not ready."""
    said = condition(node.status.conditions, "Ready")
    return None if said is None else said.status == "True"
