"""GPUs in one pass of the inventory: judge those of nodes that sent something, pass on what it means for others."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import datetime

from sevenhop.core.events import SyncState
from sevenhop.core.facts.pod import usage_facts
from sevenhop.core.facts.schema import Facts
from sevenhop.core.inventory.advertised import is_ready
from sevenhop.core.inventory.gpu_agent import AGENT, CLOCKS_AGREE_S, Agent, Gpu
from sevenhop.core.inventory.gpu_health import GpuState, NodeHealth, health_of, judge, next_change, silence
from sevenhop.core.inventory.gpu_watch import Share
from sevenhop.core.inventory.objects import Key
from sevenhop.core.inventory.products import normalise
from sevenhop.core.inventory.read_gpu import read_gpu
from sevenhop.core.inventory.state import Dirty, State
from sevenhop.core.inventory.wakes import Wakes
from sevenhop.core.placement.cluster import BadGpus
from sevenhop.core.subject import Subject, SubjectKind

SILENT_SHARE = 0.1
"""One node's agent dies with its node; where more of them are silent, it is our sight that is gone."""


def judge_gpus(state: State, dirty: Dirty, wakes: Wakes, now: datetime) -> tuple[set[str], set[Key]]:
    """
    Judge the GPUs of dirty agents; ledger, placement, pool ratios, and what is dirty beside, follow.

    Returns:
        (nodes whose GPUs have to be told, pods whose GPUs changed)
    """
    todo = dirty.agents | state.gpus.recalled
    state.gpus.recalled = set()
    dirty.agents = set()
    pods: set[Key] = set()
    for node in sorted(todo) if len(todo) > 1 else todo:
        agent = state.gpus.agents.get(node)
        if agent is not None and _is_gone(state, node) and agent.is_silent(now):
            state.gpus.forget_node(node)
            agent = None
        if agent is None:
            pods |= _forget(state, dirty, wakes, node)
            continue
        pods |= _judge_node(state, dirty, agent, now)
        wakes.put(("agent", node), next_change(agent, now))
    for node in dirty.nodes | todo:
        if node in state.gpu_health or node in todo:
            _tell_placement(state, node)
    return todo, pods


def _is_gone(state: State, node: str) -> bool:
    return state.objects.is_known("Node") and ("", node) not in state.objects.nodes()


def _forget(state: State, dirty: Dirty, wakes: Wakes, node: str) -> set[Key]:
    before = state.gpu_states.pop(node, {})
    if state.gpu_health.pop(node, None) is not None:
        dirty.nodes.add(node)
    state.ledger.put_health(node, {})
    dirty.pools |= state.gpu_watch.put(node, {})
    if node in state.silent_agents or node in state.clock_skews:
        dirty.sources.add(AGENT)
    state.silent_agents.discard(node)
    state.bad_gpu_nodes.discard(node)
    state.clock_skews.pop(node, None)
    state.changed_histories.add(("gpus", node))
    wakes.put(("agent", node), None)
    _note_owners(state, before, {})
    return {pod for each in before.values() for pod in each.victims}


def _judge_node(state: State, dirty: Dirty, agent: Agent, now: datetime) -> set[Key]:
    node = agent.node
    before, health_before = state.gpu_states.get(node, {}), state.gpu_health.get(node)
    states = judge(agent, now)
    state.gpu_states[node] = states
    _note_owners(state, before, states)
    health = health_of(agent, states, now)
    if health != health_before:
        if health_before is None or health.unknown != health_before.unknown:
            state.gpu_sight_changes += 1
        state.gpu_health[node] = health
        dirty.nodes.add(node)
        state.ledger.put_health(node, health.units)
    (state.bad_gpu_nodes.add if health.bad else state.bad_gpu_nodes.discard)(node)
    dirty.pools |= state.gpu_watch.put(node, _shares(state, agent, states, health))
    _note_sight(state, dirty, agent, health)
    state.stragglers.moved(pod for gpu in agent.gpus.values() for pod in gpu.pods())
    if health_before is None or (health.unknown is None) is not (health_before.unknown is None):
        pods_on = set(agent.usage)  # what is told of them is known, or no longer
    else:
        pods_on = set()
    kept = agent.worth_keeping()
    if kept != agent.kept:
        agent.kept = kept
        state.changed_histories.add(("gpus", node))
    return set(_concerned(before, states)) | pods_on


def _note_owners(state: State, before: Mapping[str, GpuState], after: Mapping[str, GpuState]) -> None:
    """Whose a victim was has to be kept: mostly it is gone soon after its GPU."""
    victims = {pod for each in after.values() for pod in each.victims}
    for pod in victims:
        row = state.rows.get(pod)
        if row is not None:
            state.gpus.owners[pod] = (row.workload, row.component)
    for pod in {pod for each in before.values() for pod in each.victims} - victims:
        state.gpus.owners.pop(pod, None)


def _concerned(before: Mapping[str, GpuState], after: Mapping[str, GpuState]) -> Iterator[Key]:
    """Pods of GPUs that turned bad, or well."""
    for uuid in before.keys() | after.keys():
        a, b = before.get(uuid), after.get(uuid)
        if a == b:
            continue
        if _words(a) != _words(b):
            yield from a.victims if a is not None else ()
            yield from b.victims if b is not None else ()


def _words(state: GpuState | None) -> tuple[object, ...]:
    return (state.is_bad, state.trouble, state.victims) if state is not None and state.is_bad else ()


def _shares(state: State, agent: Agent, states: Mapping[str, GpuState], health: NodeHealth) -> dict[str, Share]:
    """What the node tells of each pool, counted in whole GPUs."""
    since = agent.watched_since if health.unknown is None else None
    found: dict[str, list[Gpu]] = {}
    for gpu in agent.whole():
        found.setdefault(pool_of_gpu(state, gpu), []).append(gpu)
    return {
        pool: Share(
            len(gpus),
            since,
            tuple(sorted(g.bad_at for g in gpus if states[g.uuid].is_bad and g.bad_at is not None)),
        )
        for pool, gpus in found.items()
        if pool
    }


def _note_sight(state: State, dirty: Dirty, agent: Agent, health: NodeHealth) -> None:
    """What samples tell of our own sight: agents that fell silent, clocks that differ."""
    objects, node = state.objects, agent.node
    known = objects.nodes().get(("", node))
    was = (len(state.silent_agents), state.clock_skews.get(node))
    if health.unknown is not None and known is not None and is_ready(known) is True:
        state.silent_agents.add(node)
    else:
        state.silent_agents.discard(node)
    if abs(agent.skew_s) > CLOCKS_AGREE_S:
        state.clock_skews[node] = round(agent.skew_s)
    else:
        state.clock_skews.pop(node, None)
    silent, agents = len(state.silent_agents), len(state.gpus.agents)
    if AGENT in objects.states and was == (silent, state.clock_skews.get(node)):
        return
    names = ", ".join(sorted(state.silent_agents)[:3])
    objects.states[AGENT] = SyncState.STALE if silent > agents * SILENT_SHARE else SyncState.SYNCED
    objects.details[AGENT] = f"{silent} of {agents} silent: {names}{', …' if silent > 3 else ''}" if silent else ""
    dirty.sources.add(AGENT)


def _tell_placement(state: State, node: str) -> None:
    health = state.gpu_health.get(node)
    withdrawn = {part.resource: part.withdrawn for part in state.ledger.parts_of(node) if part.withdrawn}
    if health is None or not withdrawn:
        state.placement.put_bad_gpus(node, None)
        return
    state.placement.put_bad_gpus(node, BadGpus(withdrawn, "; ".join(words for _, words in health.bad)))


def pool_of_gpu(state: State, gpu: Gpu) -> str:
    """The pool that a GPU is part of, or would be if its node advertised it; empty where nothing names it."""
    pools = state.ledger.pools_of(gpu.node)
    if gpu.profile:
        suffix = f"-MIG-{gpu.profile.replace('+', '.')}"
        pools = tuple(pool for pool in pools if pool.endswith(suffix)) or pools
    if len(pools) == 1:
        return pools[0]
    product = normalise(gpu.product) if gpu.product else ""
    named = [pool for pool in pools if product and pool.startswith(product)]
    return min(named, key=lambda pool: (len(pool), pool), default=next(iter(pools), "") or product)


def tell_gpus(state: State, nodes: set[str]) -> Iterator[tuple[Subject, Facts]]:
    """Labels and facts of all GPUs of these nodes."""
    for node in sorted(nodes) if len(nodes) > 1 else nodes:
        agent = state.gpus.agents.get(node)
        states = state.gpu_states.get(node, {})
        if agent is None or _is_gone(state, node):
            continue
        _note_owners(state, {}, states)
        for uuid, gpu in agent.gpus.items():
            if uuid in states:
                yield (
                    Subject(SubjectKind.GPU, "", uuid),
                    read_gpu(state, agent, gpu, states[uuid], pool_of_gpu(state, gpu)),
                )


def usage_of(state: State, pod: Key, node: str, now: datetime) -> Facts | None:
    """What the agent of its node tells of a pod's containers; None where it tells nothing of it."""
    agent = state.gpus.agents.get(node)
    if agent is None or pod not in agent.usage:
        return None
    return usage_facts(agent.usage[pod], silence(agent, now))


def skew_of(state: State) -> float:
    """Of the agent whose clock differs most, in seconds; 0 while all agree."""
    return float(max(state.clock_skews.values(), key=abs, default=0.0))
