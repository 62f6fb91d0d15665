"""If these pods were gone: which of the pending pods would then run, and where."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence

import msgspec

from sevenhop.core.inventory.objects import Key, Objects
from sevenhop.core.objects.pod import Pod
from sevenhop.core.placement.claims import claims_demand
from sevenhop.core.placement.cluster import Cluster
from sevenhop.core.placement.constraints import first_slug
from sevenhop.core.placement.devices import DeviceKey, allocate
from sevenhop.core.placement.evaluation import Evaluation, class_of, evaluate
from sevenhop.core.placement.fit import HeldBack, held_back, unmodelled
from sevenhop.core.placement.nodes import NodeView
from sevenhop.core.placement.preemption import PreemptionReason, preempt

_MOST_COMPARED = 200


class WhatIf(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """
    Attributes:
        pod: (namespace, name)
        fits: Whether it runs in the end.
        nodes: Where it could be placed when its turn came; which one the scheduler takes depends on scores.
        reason: In words, why or why not.
        preempts: Whom the scheduler would evict for it.
        unmodelled: What was not taken into account.
    """

    pod: Key
    fits: bool
    nodes: tuple[str, ...] = ()
    reason: str = ""
    preempts: tuple[Key, ...] = ()
    unmodelled: tuple[str, ...] = ()


def what_if(objects: Objects, delete: Sequence[Key]) -> list[WhatIf]:
    """
    Delete first, then place every pending pod in the scheduler's order, each before the next.

    Deleted pods do not come back, as after a scale-down.  The order is priority, then age.
    """
    return what_if_on(Cluster(objects), delete)


def what_if_on(cluster: Cluster, delete: Sequence[Key]) -> list[WhatIf]:
    """The same on a cluster that is kept current; it is left as it was."""
    waiting = sorted((p for k, p in cluster.pending.items() if k not in set(delete)), key=queue_order)
    undo: list[Callable[[], None]] = []
    out: list[WhatIf] = []
    with cluster.removed(delete):
        try:
            for pod in waiting:
                answer, back = _place(cluster, pod)
                out.append(answer)
                undo.extend(back)
        finally:
            for each in reversed(undo):
                each()
    return out


def queue_order(pod: Pod) -> tuple[int, str, Key]:
    """The scheduler's active queue: higher priority first, then who has waited longer."""
    created = pod.metadata.creation_timestamp
    return (-(pod.spec.priority or 0), created.isoformat() if created else "", pod.metadata.key)


def _place(cluster: Cluster, pod: Pod) -> tuple[WhatIf, list[Callable[[], None]]]:
    key = pod.metadata.key
    reason = held_back(pod)
    if reason is not None:
        return WhatIf(pod=key, fits=False, reason=_held_back_text(pod, reason)), []
    wanted = class_of(cluster, pod)
    if wanted.trouble:
        return WhatIf(pod=key, fits=False, reason=wanted.trouble_text, unmodelled=unmodelled(pod)), []
    evaluation = evaluate(cluster, wanted)
    left_out = (*evaluation.problems, *unmodelled(pod))
    nodes = tuple(cluster.order[i].name for i in evaluation.groups().get(0, ()))
    if nodes:
        view = _choose(cluster, nodes)
        back = cluster.place(pod, view.name, devices_for(cluster, pod, view))
        return WhatIf(pod=key, fits=True, nodes=nodes, reason=f"fits on {_some(nodes)}", unmodelled=left_out), [back]
    lowest = cluster.residents.lowest_priority()
    may_preempt = lowest is not None and lowest < (pod.spec.priority or 0)
    room = preempt(cluster, pod, evaluation) if may_preempt else None
    if room is not None and room.reason is PreemptionReason.HELPS and room.node is not None:
        undo: list[Callable[[], None]] = []
        for victim in room.victims:
            cluster.remove(victim, undo)
        undo.append(cluster.place(pod, room.node, devices_for(cluster, pod, cluster.views[room.node])))
        text = f"fits after the scheduler has preempted {_some([f'{ns}/{name}' for ns, name in room.victims])}"
        answer = WhatIf(pod=key, fits=True, nodes=room.nodes, reason=text, preempts=room.victims, unmodelled=left_out)
        return answer, undo
    return WhatIf(pod=key, fits=False, reason=_refusal(evaluation), unmodelled=left_out), []


def _choose(cluster: Cluster, names: Sequence[str]) -> NodeView:
    """
    One of the nodes that fit; the scheduler's scores are not modelled.

    The one with the most free cpu, which its default score leans to; of many, among the first.
    """
    views = (cluster.views[n] for n in names[:_MOST_COMPARED])
    return max(views, key=lambda v: (v.free.get("cpu", 0), v.free.get("memory", 0), v.name))


def devices_for(cluster: Cluster, pod: Pod, view: NodeView) -> Mapping[Key, tuple[DeviceKey, ...]]:
    """What the claims of a pod would be given on a node that it fits on; empty without claims."""
    claims, keys = claims_demand(cluster, pod)
    wanted = class_of(cluster, pod)
    needs = list(claims.needs)
    names = list(keys)
    for resource, amount in wanted.demand.needs:
        device_class = cluster.ledger.class_for_resource(resource) if "/" in resource else None
        if device_class is not None and view.allocatable.get(resource, 0) <= 0:
            needs.append(cluster.ledger.need_of_resource(device_class, resource, amount))
            names.append((pod.metadata.namespace, f"{pod.metadata.name}-{resource}"))
    if not needs:
        return {}
    got = allocate(cluster.ledger, view.name, view.labels, needs).devices
    return dict(zip(names, got, strict=True)) if got is not None else {}


def _held_back_text(pod: Pod, reason: HeldBack) -> str:
    match reason:
        case HeldBack.GATED:
            return "held by scheduling gates " + ", ".join(g.name for g in pod.spec.scheduling_gates)
        case HeldBack.OTHER_SCHEDULER:
            return f"left to the scheduler {pod.spec.scheduler_name}"
        case HeldBack.NOT_PENDING:
            return "does not wait for a node"


def _refusal(evaluation: Evaluation) -> str:
    out: Counter[str] = Counter()
    for mask, nodes in evaluation.counts().items():
        out[first_slug(mask, evaluation.resources)] += nodes
    if not out:
        return "there are no nodes"
    return "fits on no node: " + ", ".join(f"{slug} on {count}" for slug, count in out.most_common())


def _some(names: Sequence[str]) -> str:
    return ", ".join(names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "")
