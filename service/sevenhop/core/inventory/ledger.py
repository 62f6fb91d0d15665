"""
Who has the GPUs: per pool (GPU product × resource) the sums, kept current as pods and nodes change.

A node's part of a pool is computed anew when something on that node changes; the pool's sums take the difference.  So
one pod costs what its node holds, and never what the pool holds.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping

import msgspec

from sevenhop.core.inventory.capacity import NodeFree, PoolCapacity
from sevenhop.core.inventory.dra import NodeDevices, gpu_devices
from sevenhop.core.inventory.gpu_health import Units
from sevenhop.core.inventory.holds import Held, Hold, Holder, hold_of
from sevenhop.core.inventory.node_parts import Part, parts_of_node
from sevenhop.core.inventory.objects import Key, Objects
from sevenhop.core.objects.cluster import Node


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
        after = self._count(name, node) if node is not None else ()
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

    def _count(self, name: str, node: Node) -> tuple[Part, ...]:
        holds, published = self._on.get(name, {}), self._devices.get(name, ())
        return parts_of_node(node, holds, published, self._health.get(name, {}))

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
