"""GPUs that are bad by their node's agent and offered all the same: whoever comes may be given one of them."""

from __future__ import annotations

from collections.abc import Iterable

from sevenhop.core.inventory.objects import Key
from sevenhop.core.inventory.products import node_product
from sevenhop.core.inventory.state import State
from sevenhop.core.objects.pod import Pod


def sick_place(state: State, gone: frozenset[Key], nodes: Iterable[str]) -> str:
    """
    Why one of these nodes may give a bad GPU to whoever comes once these pods have left, in words; empty if none does.

    Which devices a pod gets its node decides, when it starts there.  One that keeps a bad GPU keeps it from the others.
    """
    for name in sorted(nodes):
        health, node = state.gpu_health.get(name), state.objects.nodes().get(("", name))
        is_offered = any(part.free.unhealthy for part in state.ledger.parts_of(name))
        if health is None or node is None or not is_offered:
            continue
        is_shared = node_product(node).shared_by != 1
        kept = all(
            not is_shared and any(_stays(state, pod, name, gone) for pod in unit.pods)
            for units in health.units.values()
            for unit in units.bad
        )
        if not kept:
            words = "; ".join(words for _, words in health.bad)
            return f"{name} may give it a bad GPU ({words}); cordon the node, or take the GPU out of service"
    return ""


def _stays(state: State, key: Key, node: str, gone: frozenset[Key]) -> bool:
    pod: Pod | None = state.objects.pods().get(key)
    is_there = pod is not None and pod.spec.node_name == node and not pod.is_finished and not pod.is_terminating
    return is_there and key not in gone
