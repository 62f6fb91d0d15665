"""From one node and its pods to its facts."""

from __future__ import annotations

from collections.abc import Iterable

from sevenhop.core.facts import node as facts
from sevenhop.core.facts.labels import labels
from sevenhop.core.facts.schema import Facts
from sevenhop.core.inventory.products import node_product
from sevenhop.core.inventory.rows import is_ready
from sevenhop.core.inventory.state import Slot, State
from sevenhop.core.objects.pod import Pod
from sevenhop.core.placement.devices import SLICES


def read_node(state: State, name: str) -> Facts | None:
    """Labels and facts; None for a node that is gone."""
    node = state.objects.nodes().get(("", name))
    if node is None:
        return None
    pods = list(state.objects.pods_on(name))
    own = facts.derive(
        node,
        bound=state.ledger.bound_on(name),
        seen=state.seen_gpus.get(name),
        plugin_ready=_plugin_ready(state, pods),
        fails_only_here=_fails_only_here(state, name, pods),
        published=state.ledger.devices_on(name),
        published_unknown=state.gate(SLICES),
        sampled=_sampled(state, name),
        nodes_unknown=state.gate("Node") or state.unreadable_gate("Node", ("", name)),
        pods_unknown=state.gate("Pod"),
    )
    pool = next(iter(state.ledger.pools_of(name)), "")
    return {**labels(state.cluster, node=name, product=pool, tier=_tier(state, name)), **own}


def _tier(state: State, name: str) -> str:
    """Of a node with bad GPUs the highest tier on it: how much it matters depends on who may be hit."""
    if name not in state.bad_gpu_nodes:
        return ""
    here = {holder[0] for part in state.ledger.parts_of(name) for holder in part.held if holder is not None}
    tiers = [state.tier_of[workload] for workload in here if workload in state.tier_of]
    return max(tiers, key=lambda tier: tier.rank).value if tiers else ""


def _sampled(state: State, name: str) -> facts.Sampled | None:
    health = state.gpu_health.get(name)
    if health is None:
        return None
    parts = state.ledger.parts_of(name)
    shared = max(1, node_product(state.objects.nodes()["", name]).shared_by) if parts else 1
    known = sum(units.known * (1 if profile else shared) for profile, units in health.units.items())
    return facts.Sampled(health.unknown, health.visible, known, sum(part.free.unhealthy for part in parts))


def _plugin_ready(state: State, pods: Iterable[Pod]) -> bool | None:
    plugins = [pod for pod in pods if state.shape(pod.metadata.key, pod).is_plugin and not pod.is_finished]
    return any(is_ready(pod) for pod in plugins) if plugins else None


def _fails_only_here(state: State, name: str, pods: Iterable[Pod]) -> bool:
    rows = (state.rows.get(pod.metadata.key) for pod in pods)
    slots: set[Slot] = {(row.workload, row.component) for row in rows if row is not None and row.failure is not None}
    return any(facts.loads_fail_only_here(name, state.rows_of.get(slot, {}).values()) for slot in slots)
