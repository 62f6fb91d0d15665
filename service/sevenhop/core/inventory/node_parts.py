"""
One node's part of each pool: what it advertises, what its pods have, what is bad.

By device plugins and by DRA's drivers alike; which devices are bad, the node's agent says.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

import msgspec

from sevenhop.core.inventory.advertised import devices, is_ready
from sevenhop.core.inventory.capacity import NodeFree
from sevenhop.core.inventory.dra import NodeDevices
from sevenhop.core.inventory.gpu_agent import came_later
from sevenhop.core.inventory.gpu_health import BadUnit, Units
from sevenhop.core.inventory.holds import Held, Hold, Holder, by_holder
from sevenhop.core.inventory.objects import Key
from sevenhop.core.inventory.pool_names import pool_name
from sevenhop.core.inventory.products import Product, is_gpu_resource, node_product
from sevenhop.core.objects.cluster import Node


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


def parts_of_node(
    node: Node, holds: Mapping[Key, Hold], published: Sequence[NodeDevices], health: Mapping[str, Units]
) -> tuple[Part, ...]:
    """
    What a node is part of; nothing for one without accelerators.

    Args:
        holds: What the pods on it have.
        published: What its drivers publish.
        health: What its agent says of its devices, by MIG profile.
    """
    allocatable = devices(node.status.allocatable)
    capacity = devices(node.status.capacity)
    # Pods keep what they have when a device plugin dies and the node names none of it any more.
    held = {name for hold in holds.values() for name in hold.gpus if is_gpu_resource(name)}
    if not allocatable and not capacity and not published and not held:
        return ()
    product = node_product(node)
    parts: list[Part] = []
    for resource in sorted({*allocatable, *capacity, *held}):
        has = allocatable.get(resource, 0)
        pool, bad = pool_name(product, resource), _bad(resource, has, max(1, product.shared_by), holds, health)
        parts.append(_part(node, pool, resource, has, capacity.get(resource, has), holds.values(), bad))
    for each in published:
        own = Product(name=each.product or product.name, raw=product.raw)
        pool = pool_name(own, each.resource)
        bad = _bad(each.resource, each.usable, 1, holds, health)
        part = _part(node, pool, each.resource, each.usable, each.total, holds.values(), bad, cut=each.cut)
        parts.append(msgspec.structs.replace(part, by_claim=True))
    return tuple(parts)


def _bad(resource: str, has: int, shared_by: int, holds: Mapping[Key, Hold], health: Mapping[str, Units]) -> _Bad:
    """What the agent knows to be bad of one resource that the node advertises `has` of."""
    profile = resource.partition("/mig-")[2]
    units = health.get(profile) or next(
        (found for each, found in health.items() if each.replace("+", ".") == profile), None
    )
    if units is None or not units.bad:
        return _NO_BAD
    share = 1 if profile else shared_by
    bad = len(units.bad) * share
    # What is not advertised is the bad one: that is what device plugins take out.
    withdrawn = min(bad, max(0, units.known * share - has))
    idle = sum(max(0, share - _having(holds, each)) for each in units.bad)
    return _Bad(withdrawn=withdrawn, offered=min(has, bad - withdrawn), idle=min(idle, bad - withdrawn))


def _having(holds: Mapping[Key, Hold], device: BadUnit) -> int:
    """Pods on the node that have a bad device: not those that came under the name of one that is gone."""
    found = (holds.get(pod) for pod in device.pods)
    return sum(hold is not None and not came_later(hold.created, device.lost_at) for hold in found)


def _part(
    node: Node, pool: str, resource: str, has: int, capacity: int, holds: Collection[Hold], bad: _Bad, *, cut: int = 0
) -> Part:
    """`cut`: free as far as pods hold, and yet nobody can have them."""
    ready, cordoned = is_ready(node) is True, node.spec.unschedulable
    bound = sum(hold.gpus.get(resource, 0) for hold in holds)
    releasing = sum(hold.gpus.get(resource, 0) for hold in holds if hold.releasing)
    free = max(0, has - bound - cut - bad.idle) if ready and not cordoned else 0
    row = NodeFree(node.metadata.name, has, bound, releasing, free, ready, cordoned, bad.offered)
    return Part(pool, resource, capacity, row, by_holder(resource, holds), withdrawn=bad.withdrawn)
