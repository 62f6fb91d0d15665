"""From one GPU to its facts and labels: what it is, and whom it hits."""

from __future__ import annotations

from collections.abc import Iterable

from sevenhop.core.facts import gpu as facts
from sevenhop.core.facts.labels import labels
from sevenhop.core.facts.schema import Facts, Unknown, UnknownReason
from sevenhop.core.inventory.gpu_agent import Agent, Gpu
from sevenhop.core.inventory.gpu_blame import waiting_for
from sevenhop.core.inventory.gpu_health import GpuState
from sevenhop.core.inventory.objects import Key
from sevenhop.core.inventory.pool_names import is_shared
from sevenhop.core.inventory.state import Slot, State
from sevenhop.core.inventory.workloads import Tier
from sevenhop.core.words import in_order, inflected

NO_HOLDERS = Unknown(UnknownReason.NO_SOURCE, "gpu agent: the kubelet does not say who has which device")
NOBODY = "no pod"
_SHOWN = 3


def read_gpu(state: State, agent: Agent, gpu: Gpu, judged: GpuState, pool: str) -> Facts:
    """Labels and facts of one GPU."""
    users = users_of(agent, gpu, judged)
    own = facts.derive(
        unknown=judged.unknown,
        present=judged.present,
        xid=judged.xid,
        undated=judged.undated,
        xid_class=judged.cls,
        repeats=judged.repeats,
        reading=gpu.reading if judged.present is not False else None,
        held_without_pod=_held_without_pod(state, agent, gpu),
        trouble=judged.trouble,
        hits=hits_text(state, users, [row.key for row in waiting_for(state, pool)] if judged.is_bad else ()),
    )
    return {**labels(state.cluster, node=gpu.node, gpu_uuid=gpu.uuid, product=pool), **_of_users(state, users), **own}


def users_of(agent: Agent, gpu: Gpu, judged: GpuState) -> tuple[Key, ...]:
    """Pods that have a GPU or an instance of it, and those that had it when it went bad."""
    found = {*judged.victims, *gpu.pods()}
    if not gpu.parent:
        found.update(pod for part in agent.parts(gpu.uuid) for pod in part.pods())
    return tuple(sorted(found))


def _of_users(state: State, users: Iterable[Key]) -> dict[str, str]:
    """
    The labels that all users share, so that a route or a silence about a workload finds its GPUs; the highest tier.
    """
    users = tuple(users)
    slots = slots_of(state, users)
    known = [state.labels_of[slot] for slot in slots if slot in state.labels_of]
    if not known:
        return {}
    shared = {
        name: value
        for name, value in known[0].items()
        if name in _USER_LABELS and all(other[name] == value for other in known)
    }
    if len(users) == 1:
        shared["pod"] = users[0][1]
    tiers = [Tier(each["tier"]) for each in known if each["tier"]]
    if tiers:
        shared["tier"] = max(tiers, key=lambda tier: tier.rank).value
    return shared


_USER_LABELS = ("namespace", "workload", "component", "role", "framework", "model", "model_version", "owner")


def slots_of(state: State, pods: Iterable[Key]) -> list[Slot]:
    """The components of pods, those that are gone included as long as they are remembered; sorted."""
    found = (slot_of_pod(state, pod) for pod in pods)
    return sorted({slot for slot in found if slot is not None})


def slot_of_pod(state: State, pod: Key) -> Slot | None:
    row = state.rows.get(pod)
    return (row.workload, row.component) if row is not None else state.gpus.owners.get(pod)


def hits_text(state: State, pods: Iterable[Key], waiting: Iterable[Key] = ()) -> str:
    """
    ``prod/llama-70b decode (decode-3; 1 waits)`` for each component, pods of no workload by their names;
    ``no pod`` for none.
    """
    named: dict[str, list[str]] = {}
    waits: dict[str, list[str]] = {}
    for where, found in ((named, pods), (waits, waiting)):
        for pod in found:
            slot = slot_of_pod(state, pod)
            place = f"{slot[0][0]}/{slot[0][1]} {slot[1]}" if slot is not None else pod[0]
            where.setdefault(place, []).append(pod[1])
    texts = []
    for place in in_order(named | waits):
        names = [_some(in_order(named[place]))] if place in named else []
        if place in waits:
            names.append(f"{len(waits[place])} {inflected(len(waits[place]), 'waits', 'wait')}")
        texts.append(f"{place} ({'; '.join(names)})")
    return _some(texts) if texts else NOBODY


def _some(texts: list[str]) -> str:
    more = f" and {len(texts) - _SHOWN} more" if len(texts) > _SHOWN else ""
    return ", ".join(texts[:_SHOWN]) + more


def _held_without_pod(state: State, agent: Agent, gpu: Gpu) -> bool | Unknown:
    """
    Whether memory is held that belongs to no pod.

    Not told of a GPU that is cut or shared, whose processes belong to parts of it, nor while a pod that has GPUs is
    still being ended on the node.
    """
    reading = gpu.reading
    if reading is None or gpu.present is not True:
        return facts.NOT_READ
    if not agent.has_holders:
        return NO_HOLDERS
    if reading.holders or agent.parts(gpu.uuid):
        return False
    held = facts.is_held(reading)
    if held is not True:
        return held
    if any(is_shared(pool) for pool in state.ledger.pools_of(gpu.node)):
        return False
    return not state.ledger.is_releasing(gpu.node)
