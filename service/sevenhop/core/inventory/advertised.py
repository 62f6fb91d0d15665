"""What a node says that it has: whether it is ready, and its accelerators."""

from __future__ import annotations

from sevenhop.core.inventory.products import gpu_resources
from sevenhop.core.objects.base import Quantities, condition
from sevenhop.core.objects.cluster import Node


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
