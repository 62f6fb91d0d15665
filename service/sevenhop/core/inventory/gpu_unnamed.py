"""
GPUs that a node offers and its agent has never named: the scheduler gives them away, and nobody knows how they are.

A GPU that fell off the bus before the agent's first look is one, and so is one of another driver.
"""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from sevenhop.core.facts.schema import Unknown, UnknownReason
from sevenhop.core.inventory.gpu_agent import AGENT
from sevenhop.core.inventory.products import node_product
from sevenhop.core.inventory.state import State


class Unnamed(msgspec.Struct, frozen=True, gc=False):
    """
    Of one pool on one node.

    Attributes:
        named: Devices that the agent has told of, gone ones included.
        offered: Those that the node advertises, as devices: of shares, how many GPUs they are of.
    """

    named: int
    offered: int

    @property
    def missing(self) -> int:
        return self.offered - self.named

    @property
    def why(self) -> Unknown:
        return Unknown(UnknownReason.NO_SOURCE, f"{AGENT} has named {self.named} of {self.offered}")


def unnamed_on(state: State, node: str) -> Iterator[tuple[str, str, Unnamed]]:
    """(pool, MIG profile or empty, what is not named) of a node whose agent has sampled it; nothing where all is."""
    agent, health = state.gpus.agents.get(node), state.gpu_health.get(node)
    known = state.objects.nodes().get(("", node))
    if agent is None or agent.sampled_at is None or health is None or known is None:
        return
    shared_by = node_product(known).shared_by
    for part in state.ledger.parts_of(node):
        if not part.resource.startswith(_OF_AGENTS):
            continue
        # A driver with several products on the node names them behind the profile: ``gpu.nvidia.com/mig-1g.10gb/…``.
        profile = part.resource.partition("/mig-")[2].partition("/")[0]
        if not profile and shared_by < 1:
            continue  # shared by nobody knows how many: the shares do not tell how many GPUs these are
        offered = -(-part.free.allocatable // (1 if profile else shared_by))
        named = sum(units.known for each, units in health.units.items() if each.replace("+", ".") == profile)
        if named < offered:
            yield part.pool, profile, Unnamed(named, offered)


_OF_AGENTS = ("nvidia.com/", "gpu.nvidia.com")
"""Agents read NVIDIA's driver; other vendors' devices are named by nobody."""
