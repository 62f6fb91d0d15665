"""When nothing is offered whatever could be given: the first reason that applies, in words."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta

from sevenhop.core.facts.schema import Unknown
from sevenhop.core.hops.pods import is_stuck_terminating
from sevenhop.core.hops.scheduling_words import not_preempted
from sevenhop.core.inventory.products import gpu_resources
from sevenhop.core.inventory.state import State
from sevenhop.core.objects.base import condition
from sevenhop.core.objects.pod import Pod
from sevenhop.core.placement.evaluation import class_of, evaluate
from sevenhop.core.placement.preemption import PreemptionReason, preempt
from sevenhop.core.remediation.plan import Answer, NoPlanReason
from sevenhop.core.remediation.planning.need import no_plan
from sevenhop.core.remediation.planning.simulate import Simulation
from sevenhop.core.remediation.planning.words import some
from sevenhop.core.subject import Subject, SubjectKind
from sevenhop.core.words import in_order

AT_ONCE = timedelta(minutes=10)
MOST_BAD = 0.2
"""Share of a pool that may go within `AT_ONCE` before the source is suspected."""


def autoscaler_adds(state: State, pool: str) -> Answer | None:
    """An autoscaler is adding nodes, or whether it is cannot be seen."""
    said = state.facts.get(Subject(SubjectKind.POOL, "", pool), {}).get("pool.autoscaler")
    if said == "adding":
        return no_plan(NoPlanReason.AUTOSCALER_ADDING, f"the cluster's autoscaler is adding nodes to {pool}")
    if isinstance(said, Unknown):
        return no_plan(NoPlanReason.UNKNOWN, f"whether an autoscaler is adding nodes is {said}")
    return None


def pool_turned_bad(state: State, pool: str, now: datetime) -> Answer | None:
    """
    Much of the pool went at once: nodes that fell silent, and GPUs that nodes no longer advertise.

    As far as objects tell; what the GPU agent says counts too, where there is one.
    """
    facts = state.facts.get(Subject(SubjectKind.POOL, "", pool), {})
    ratio = facts.get("pool.bad_ratio_10m")
    worst = float(ratio) if isinstance(ratio, float) else 0.0
    lost, total, names = _lost(state, pool, now)
    if total:
        worst = max(worst, lost / total)
    if worst <= MOST_BAD:
        return None
    seen = f" ({some(names)})" if names else ""
    text = f"{worst:.0%} of {pool} went bad within {AT_ONCE.seconds // 60} minutes{seen}: suspect the source first"
    return no_plan(NoPlanReason.POOL_TURNED_BAD, text)


def _lost(state: State, pool: str, now: datetime) -> tuple[int, int, list[str]]:
    """GPUs lost and in all, and the nodes that lost any."""
    withdrawn = _withdrawn(state, now)
    lost = total = 0
    names: list[str] = []
    for row in state.ledger.nodes_of(pool):
        node = state.objects.nodes().get(("", row.name))
        said = condition(node.status.conditions, "Ready") if node is not None else None
        gone = withdrawn.get(row.name, 0)
        total += row.allocatable + gone
        if not row.ready and said is not None and _is_recent(said.last_transition_time, now):
            gone += row.allocatable
        lost += gone
        if gone:
            names.append(row.name)
    return lost, total, names


def _withdrawn(state: State, now: datetime) -> dict[str, int]:
    """Node to the GPUs that it advertises fewer than ten minutes ago."""
    found: dict[str, int] = {}
    for change in state.changes.newest_first(now):
        if now - change.at > AT_ONCE:
            break
        if change.kind == "Node" and change.what == "allocatable":
            before, after = _amount(change.before), _amount(change.after)
            found[change.name] = found.get(change.name, 0) + before - after
    return {name: gpus for name, gpus in found.items() if gpus > 0}


def _amount(text: str) -> int:
    """GPUs in a change's words: ``nvidia.com/gpu=8``; 0 for "no GPUs"."""
    pairs = (word.partition("=") for word in text.split())
    return sum(gpu_resources({name: value for name, _, value in pairs if value.isdecimal()}).values())


def _is_recent(at: datetime | None, now: datetime) -> bool:
    return at is not None and now - at <= AT_ONCE


def fits_by_now(state: State, need: Sequence[Pod]) -> Answer | None:
    """The cluster has moved on: one of the pods fits as things are, and the scheduler will place it."""
    cluster = state.placement
    for pod in need:
        evaluation = evaluate(cluster, class_of(cluster, pod))
        if evaluation.fits:
            nodes = [cluster.order[index].name for index in evaluation.groups()[0]]
            text = f"{pod.metadata.name} fits by now, on {some(nodes)}: the scheduler places it"
            return no_plan(NoPlanReason.NOBODY_WAITS, text)
        unseen = [text for text in evaluation.problems if text.endswith(("was not seen", "were not seen"))]
        if unseen:
            return no_plan(NoPlanReason.UNKNOWN, f"where {pod.metadata.name} fits is unknown: {some(unseen)}")
    return None


def preemption(state: State, need: Sequence[Pod]) -> Answer | str:
    """That the scheduler makes room by itself; else why it does not."""
    cluster = state.placement
    texts: dict[str, None] = {}
    for pod in need:
        room = preempt(cluster, pod, evaluate(cluster, class_of(cluster, pod)))
        if room.reason is PreemptionReason.HELPS:
            who = some(f"{namespace}/{name}" for namespace, name in room.victims)
            text = f"the scheduler helps itself: it preempts {who} on {room.node}"
            return no_plan(NoPlanReason.PREEMPTION_HELPS, text)
        if room.reason is PreemptionReason.UNDER_WAY:
            text = f"the scheduler helps itself: pods are leaving {room.node} for {pod.metadata.name}"
            return no_plan(NoPlanReason.PREEMPTION_HELPS, text)
        texts[not_preempted(room, pod.spec.priority or 0)] = None
    return "; ".join(text for text in texts if text)


def releasing(state: State, simulation: Simulation, nodes: Iterable[str], now: datetime) -> Answer | None:
    """Pods that are ending already make the room; one that is stuck does not count."""
    pods = state.objects.pods()
    ending = [
        key
        for name in nodes
        for key, each in state.placement.views[name].residents.items()
        if each.terminating and key in pods and not is_stuck_terminating(pods[key], now)
    ]
    if not ending or not simulation.outcome(frozenset(ending)).holds:
        return None
    text = f"pods that are ending make the room: {some(in_order(name for _, name in ending))}"
    return no_plan(NoPlanReason.NOT_A_SHORTAGE, text)
