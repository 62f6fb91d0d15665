"""If these pods were gone: which of the pending pods would then run, and where."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import msgspec

from sevenhop.core.inventory.objects import Key, Objects
from sevenhop.core.objects.pod import Pod
from sevenhop.core.placement.claims import claims_demand
from sevenhop.core.placement.cluster import Cluster
from sevenhop.core.placement.devices import DeviceKey, allocate
from sevenhop.core.placement.evaluation import class_of, evaluate
from sevenhop.core.placement.fit import Fit, HeldBack, fits, held_back
from sevenhop.core.placement.nodes import NodeView
from sevenhop.core.placement.preemption import PreemptionReason, preempt


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
    fit = fits(cluster, pod)
    if fit.nodes:
        view = _choose(cluster, fit.nodes)
        back = cluster.place(pod, view.name, _devices(cluster, pod, view))
        return WhatIf(pod=key, fits=True, nodes=fit.nodes, reason=f"fits on {_some(fit.nodes)}", unmodelled=fit.unmodelled), [back]
    if fit.trouble:
        return WhatIf(pod=key, fits=False, reason=fit.trouble_text, unmodelled=fit.unmodelled), []
    room = preempt(cluster, pod, evaluate(cluster, class_of(cluster, pod)))
    if room.reason is PreemptionReason.HELPS and room.node is not None:
        undo: list[Callable[[], None]] = []
        for victim in room.victims:
            cluster.remove(victim, undo)
        undo.append(cluster.place(pod, room.node, _devices(cluster, pod, cluster.views[room.node])))
        text = f"fits after the scheduler has preempted {_some(tuple(f'{ns}/{name}' for ns, name in room.victims))}"
        return WhatIf(pod=key, fits=True, nodes=room.nodes, reason=text, preempts=room.victims, unmodelled=fit.unmodelled), undo
    return WhatIf(pod=key, fits=False, reason=_refusal(fit), unmodelled=fit.unmodelled), []


def _choose(cluster: Cluster, names: Sequence[str]) -> NodeView:
    """
    One of the nodes that fit; the scheduler's scores are not modelled.

    The one with the most free cpu: LeastAllocated is its default leaning.
    """
    return max((cluster.views[n] for n in names), key=lambda v: (v.free.get("cpu", 0), v.free.get("memory", 0), v.name))


def _devices(cluster: Cluster, pod: Pod, view: NodeView) -> Mapping[Key, tuple[DeviceKey, ...]]:
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


def _refusal(fit: Fit) -> str:
    if not fit.excluded:
        return "there are no nodes"
    return "fits on no node: " + ", ".join(f"{slug} on {count}" for slug, count in fit.excluded)


def _some(names: Sequence[str]) -> str:
    return ", ".join(names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "")
