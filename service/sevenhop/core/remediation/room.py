"""Whether a donor's replicas would find room if they were given back now, without taking it from who is worth more."""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from sevenhop.core.inventory.state import State
from sevenhop.core.objects.pod import Pod, PodStatus
from sevenhop.core.placement.evaluation import class_of, masks_of
from sevenhop.core.remediation.action import Scale
from sevenhop.core.remediation.live import live_pods
from sevenhop.core.remediation.plan import Plan

MOST_COPIES = 64
"""More pods than this are not tried one by one: then it is not known, and the lease ends as promised."""


def room_for(state: State, plan: Plan) -> bool | None:
    """
    Whether everything that the plan took would run again at once.

    False where a pod would wait, or where somebody of a higher tier waits for the same GPUs, or another plan has just
    made room for whoever waits; None where it cannot be told: the donor has no pod left to judge by, or nobody can see.
    """
    if state.gate("Pod", "Node") or state.belonging_gate():
        return None
    if any(_others_come_first(state, scale) for scale in plan.scales):
        return False
    copies: list[Pod] = []
    for scale in plan.scales:
        like = live_pods(state, scale.workload, scale.component)
        if not like:
            return None
        copies += [_copy(like[0], number) for number in range((scale.before - scale.after) * scale.unit_pods)]
    if len(copies) > MOST_COPIES:
        return None
    return _all_fit(state, copies)


def _others_come_first(state: State, scale: Scale) -> bool:
    workload = state.workloads.get(scale.workload)
    if workload is None:
        return False
    rank = state.tier(workload).rank
    pool = state.pool_of.get((scale.workload, scale.component), "")
    if state.reserved.get(pool, 0) > 0:
        return True
    for slot in state.waiting_in.get(pool, {}):
        other = state.workloads.get(slot[0])
        if other is not None and state.tier(other).rank > rank:
            return True
    return False


def _copy(pod: Pod, number: int) -> Pod:
    """As its owner would make it again; volumes of its own and claims come with it, as far as they are modelled."""
    name = f"{pod.metadata.name}~{number}"
    meta = msgspec.structs.replace(pod.metadata, name=name, uid=f"{pod.metadata.uid}~{number}", deletion_timestamp=None)
    spec = msgspec.structs.replace(pod.spec, node_name="")
    return msgspec.structs.replace(pod, metadata=meta, spec=spec, status=PodStatus())


def _all_fit(state: State, copies: list[Pod]) -> bool:
    """Each is placed before the next; everything is taken back at the end."""
    cluster = state.placement
    undo: list[Callable[[], None]] = []
    with cluster.hushed():
        try:
            for copy in copies:
                wanted = class_of(cluster, copy)
                if wanted.trouble:
                    return False
                masks = masks_of(cluster, wanted, cluster.order)
                node = next((view.name for view, mask in zip(cluster.order, masks, strict=True) if not mask), None)
                if node is None:
                    return False
                undo.append(cluster.place(copy, node, {}))
                cluster.pending.pop(copy.metadata.key, None)
        finally:
            for copy, back in zip(reversed(copies[: len(undo)]), reversed(undo), strict=True):
                back()
                cluster.pending.pop(copy.metadata.key, None)
    return True
