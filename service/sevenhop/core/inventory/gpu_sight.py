"""What GPU agents let us say about the pods of a hop report, and whom one GPU, node or pool concerns."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from datetime import datetime

from sevenhop.core.hops.causes import CAUSES
from sevenhop.core.hops.diagnosis import Confidence, Diagnosis, Evidence
from sevenhop.core.hops.gather import NO_AGENT, DeviceSight
from sevenhop.core.hops.xids import LEFT_ALONE, words_of
from sevenhop.core.inventory.gpu_blame import bad_gpu_of, diagnosis_of_gpu, waiting_for, waits_for_bad
from sevenhop.core.inventory.gpu_watch import WINDOW
from sevenhop.core.inventory.objects import Key
from sevenhop.core.inventory.read_gpu import slot_of_pod, slots_of, users_of
from sevenhop.core.inventory.rows import PodRow
from sevenhop.core.inventory.state import State, component_subject
from sevenhop.core.subject import Subject, SubjectKind
from sevenhop.core.words import by_name


def device_sight(state: State, rows: Sequence[PodRow], pools: Collection[str]) -> DeviceSight:
    """
    Args:
        rows: Pods of a component or a workload.
        pools: That they run in, or wait for.
    """
    nodes = {row.node for row in rows if row.node and row.gpus and row.live}
    bad = {row.key: found[1].trouble for row in rows if (found := bad_gpu_of(state, row.key)) is not None}
    return DeviceSight(
        unknown=_unseen(state, nodes) if nodes else _unseen_in(state, pools),
        on_bad=bad,
        waits=frozenset(row.key for row in rows if waits_for_bad(row)) if _any_bad(state, pools) else frozenset(),
        evidence=tuple(
            Evidence(f"node/{node}", words)
            for node in sorted(state.bad_gpu_nodes)
            if node in nodes or not set(pools).isdisjoint(state.ledger.pools_of(node))
            for _, words in state.gpu_health[node].bad
        ),
    )


def _any_bad(state: State, pools: Collection[str]) -> bool:
    return any(not set(pools).isdisjoint(state.ledger.pools_of(node)) for node in state.bad_gpu_nodes)


def _unseen_in(state: State, pools: Collection[str]) -> str:
    """
    The same of all nodes of pools.

    Worked out once for hundreds of components that wait for one: a pool has thousands of nodes.
    """
    stamp = (state.ledger.moves, state.gpu_sight_changes)
    if state.unseen_in[0] != stamp:
        state.unseen_in = (stamp, {})
    known = state.unseen_in[1]
    key = frozenset(pools)
    if key not in known:
        known[key] = _unseen(state, {node for pool in key for node in state.ledger.members(pool)})
    return known[key]


def _unseen(state: State, nodes: Iterable[str]) -> str:
    """Why it is not known how the GPUs of these nodes are; empty if it is."""
    nodes = sorted(nodes)
    silent = [node for node in nodes if (health := state.gpu_health.get(node)) is None or health.unknown is not None]
    if nodes and not silent:
        return ""
    told = [health for node in silent if (health := state.gpu_health.get(node)) is not None]
    if not told:
        return NO_AGENT if len(silent) == len(nodes) else f"{NO_AGENT[:-1]} on {silent[0]})"
    unknown = told[0].unknown
    return f"{unknown.reason} ({unknown.detail})" if unknown is not None else NO_AGENT


def rows_of_gpu(state: State, subject: Subject) -> list[PodRow]:
    """Pods that have a GPU, that had it when it went bad, and that wait because it is bad; in order of name."""
    facts = state.facts.get(subject, {})
    node, pool = str(facts.get("node", "")), str(facts.get("product", ""))
    rows = {key: row for key in _users(state, node, subject.name) if (row := state.rows.get(key)) is not None}
    if node in state.bad_gpu_nodes and _is_bad(state, node, subject.name):
        rows |= {row.key: row for row in waiting_for(state, pool)}
    return [row for _, row in sorted(rows.items())]


def hits(state: State, subject: Subject) -> tuple[str, ...]:
    """``prod/llama-70b decode 3/4 ready (decode-3)`` for each component that bad GPUs of a GPU or node concern."""
    node = subject.name if subject.kind is SubjectKind.NODE else str(state.facts.get(subject, {}).get("node", ""))
    uuids = [uuid for uuid, _ in _bad_on(state, node)] if subject.kind is SubjectKind.NODE else [subject.name]
    pods = sorted({pod for uuid in uuids for pod in _users(state, node, uuid)}, key=by_name)
    texts = []
    for slot in slots_of(state, pods):
        own = state.facts.get(component_subject(slot), {})
        counts = [own.get(f"component.{word}") for word in ("ready", "desired")]
        ready = "/".join(str(each) if isinstance(each, int) else "?" for each in counts)
        names = ", ".join(pod[1] for pod in pods if slot_of_pod(state, pod) == slot)
        texts.append(f"{slot[0][0]}/{slot[0][1]} {slot[1]} {ready} ready ({names})")
    others = [f"{pod[0]}/{pod[1]}" for pod in pods if slot_of_pod(state, pod) is None]
    return (*texts, *others)


def devices_of(state: State, subject: Subject, now: datetime) -> tuple[str, ...]:
    """
    UUIDs of bad GPUs that account for what is wrong with a GPU, node or pool; with ``?`` for what they leave open.
    """
    if subject.kind is SubjectKind.GPU:
        node = str(state.facts.get(subject, {}).get("node", ""))
        return (subject.name,) if _is_bad(state, node, subject.name) else ()
    if subject.kind is SubjectKind.NODE:
        found = tuple(uuid for uuid, _ in _bad_on(state, subject.name))
        has, expected = (state.facts.get(subject, {}).get(f"node.gpu.{word}") for word in ("allocatable", "expected"))
        missing = expected - has if isinstance(has, int) and isinstance(expected, int) else 0
        explained = sum(part.withdrawn for part in state.ledger.parts_of(subject.name))
        return (*found, f"{subject.name}?") if found and missing > explained else found
    if subject.kind is SubjectKind.POOL:
        return tuple(
            uuid
            for node in sorted(state.bad_gpu_nodes)
            if subject.name in state.ledger.pools_of(node)
            for uuid, _ in _bad_on(state, node)
            if (bad_at := state.gpus.agents[node].gpus[uuid].bad_at) is not None and now - bad_at < 2 * WINDOW
        )
    return ()


def gpu_diagnosis(state: State, subject: Subject) -> Diagnosis | None:
    """
    What is wrong with one GPU, or with the first bad one of a node.

    Of a node that advertises fewer than it has while none of them is bad: the XID after which its device plugin
    withdrew one that goes on working.
    """
    node = subject.name if subject.kind is SubjectKind.NODE else str(state.facts.get(subject, {}).get("node", ""))
    uuid = subject.name if subject.kind is SubjectKind.GPU else next((u for u, _ in _bad_on(state, node)), "")
    judged = state.gpu_states.get(node, {}).get(uuid)
    if judged is not None and judged.trouble:
        return diagnosis_of_gpu(node, judged)
    return _withdrawn_well(state, node) if subject.kind is SubjectKind.NODE and node in state.short_of_gpus else None


def _withdrawn_well(state: State, node: str) -> Diagnosis | None:
    agent = state.gpus.agents.get(node)
    if agent is None:
        return None
    told = [
        (record.at, gpu.name, record.xid)
        for gpu in agent.whole()
        for record in gpu.xids
        if record.xid not in LEFT_ALONE and (agent.booted_at is None or record.at > agent.booted_at)
    ]
    if not told:
        return None
    at, name, xid = max(told)
    row = CAUSES["gpus-unhealthy"]
    text = f"{name}: {words_of(xid)}, at {at:%H:%M:%S} UTC"
    return Diagnosis(
        hop=row.hop,
        category=row.category,
        cause=row.slug,
        confidence=Confidence.LIKELY,
        summary=f"{name}: {words_of(xid)}; the device plugin offers a GPU no more after it, until it is restarted",
        evidence=(Evidence(f"node/{node}", text),),
        next_steps=row.next_steps,
    )


def _bad_on(state: State, node: str) -> tuple[tuple[str, str], ...]:
    health = state.gpu_health.get(node)
    return health.bad if health is not None else ()


def _is_bad(state: State, node: str, uuid: str) -> bool:
    judged = state.gpu_states.get(node, {}).get(uuid)
    return judged is not None and judged.is_bad


def _users(state: State, node: str, uuid: str) -> tuple[Key, ...]:
    agent, judged = state.gpus.agents.get(node), state.gpu_states.get(node, {}).get(uuid)
    if agent is None or judged is None or uuid not in agent.gpus:
        return ()
    return users_of(agent, agent.gpus[uuid], judged)
