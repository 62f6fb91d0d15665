"""The sentences of the scheduling hop: summary with the arithmetic, evidence that names nodes, what would help."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice

from sevenhop.core.hops.diagnosis import Evidence
from sevenhop.core.hops.scheduling_binding import Binding
from sevenhop.core.hops.scheduling_gpus import GpuVerdict, is_accelerator, offers
from sevenhop.core.placement import constraints as c
from sevenhop.core.placement.cluster import Cluster
from sevenhop.core.placement.evaluation import Evaluation, SchedulingClass
from sevenhop.core.placement.nodes import NodeView
from sevenhop.core.placement.preemption import Preemption, PreemptionReason
from sevenhop.core.placement.selectors import describe, describe_terms
from sevenhop.core.placement.taints import CONDITION_TAINTS, CORDON, untolerated
from sevenhop.core.words import counted, in_order, inflected

_MOST_EVIDENCE = 8

_WHY: dict[str, str] = {
    "cordoned": "{n} cordoned",
    "untolerated-taint": "{n} tainted without a toleration",
    "node-not-ready": "{n} not ready",
    "node-selector": "{n} outside its nodeSelector",
    "node-affinity": "{n} outside its node affinity",
    "host-port": "{n} with the host port in use",
    "too-many-pods": "{n} at the limit of pods",
    "pvc-in-use": "{n} barred by a claim in use",
    "volume-zone": "{n} out of reach of its volume",
    "pv-unavailable": "{n} without a volume to bind",
    "topology-spread": "{n} barred by topology spread",
    "pod-affinity": "{n} outside its pod affinity",
    "pod-anti-affinity": "{n} barred by anti-affinity",
    "dra-unsatisfiable": "{n} without the devices",
}

_FREE_IT: dict[str, str] = {
    "cordoned": "Uncordon one of: {nodes}.",
    "untolerated-taint": "A toleration for {detail}, if these nodes are meant for this pod.",
    "node-not-ready": "One of these nodes becoming ready: {nodes}.",
    "node-selector": "A nodeSelector that fits a node (now {detail}).",
    "node-affinity": "Node affinity that fits a node (now {detail}).",
    "host-port": "Another host port, or none: {detail} in use on {nodes}.",
    "too-many-pods": "Fewer pods on {nodes}, or a higher pod limit there.",
    "pvc-in-use": "The other user of the ReadWriteOncePod claim leaving.",
    "volume-zone": "Capacity where the volume is, or a volume where the capacity is.",
    "pv-unavailable": "A matching PersistentVolume for {nodes}.",
    "topology-spread": "Capacity in the domain with the fewest replicas, or a larger maxSkew.",
    "pod-affinity": "Capacity where the pods are that it wants to be near, or no affinity.",
    "pod-anti-affinity": "A node or domain without the pods that it must not share one with.",
    "dra-unsatisfiable": "Free devices that match its claim.",
}


def amount(resource: str, units: int) -> str:
    """
    A number of units for people.

    >>> amount("cpu", 1500), amount("memory", 16 * 2**30), amount("nvidia.com/gpu", 2)
    ('1.5 cpu', '16 Gi memory', '2 × nvidia.com/gpu')
    """
    if resource == "cpu":
        return f"{units / 1000:g} cpu"
    if resource in ("memory", "ephemeral-storage") or resource.startswith("hugepages-"):
        return f"{bytes_text(units)} {resource}"
    return f"{units} × {resource}"


def bytes_text(value: int) -> str:
    for name, size in (("Ti", 2**40), ("Gi", 2**30), ("Mi", 2**20), ("Ki", 2**10)):
        if abs(value) >= size:
            return f"{round(value / size, 1):g} {name}"
    return f"{value} B"


def summary(cluster: Cluster, wanted: SchedulingClass, evaluation: Evaluation, bound: Binding) -> str:
    """One sentence, with the numbers in it."""
    needs = dict(wanted.demand.needs)
    if bound.gpus is not None:
        return _gpu_summary(bound.gpus, _where_excluded(evaluation))
    total = len(cluster.order)
    nodes = counted(total, "node")
    if bound.cause == "extended-resource-unknown":
        need = amount(bound.resource, needs[bound.resource])
        return f"needs {need}; none of the {counted(total, 'node')} offers a resource of that name"
    if bound.cause == "dra-extended-resource":
        return (
            f"needs {amount(bound.resource, needs[bound.resource])} of a device class; "
            f"on none of the {counted(total, 'node')} are that many of its devices free"
        )
    if not bound.alone:
        named = [_need_or_slug(d, needs) for d in bound.demands]
        why = f"even the nearest fail on {_and(named)} at once" if len(named) > 1 else f"not even without {named[0]}"
        return f"fits none of {nodes}, {why} ({_reasons(cluster, evaluation)})"
    if bound.cause == "resource-combination":
        parts = [amount(d, needs[d]) for d in bound.demands if d in needs]
        return f"needs {_and(parts)} on one node; each is free somewhere, on none of {nodes} all are"
    if bound.resource:
        return _resource_summary(cluster, evaluation, bound, needs[bound.resource])
    detail = _detail(cluster, wanted, evaluation, bound)
    other = f"; {bound.cause} binds" if len(evaluation.counts()) > 1 else ""
    return f"fits none of {nodes}: {_reasons(cluster, evaluation)}{other}{f' ({detail})' if detail else ''}"


def without_verdict(summary: str, bound: Binding) -> str:
    """The numbers of a summary, without the word that they come down to."""
    return summary if bound.gpus is None else summary.removesuffix(f": {_verdict_word(bound.gpus)}")


def _gpu_summary(verdict: GpuVerdict, outside: str) -> str:
    parts = []
    if outside:
        parts.append(outside)
    if verdict.none:
        parts.append(f"{verdict.none} {inflected(verdict.none, 'carries', 'carry')} none")
    for free, count in sorted(verdict.free):
        parts.append(f"{count} {inflected(count, 'is', 'are')} full" if free == 0 else f"{count} with {free} free")
    arithmetic = ", ".join(parts)
    together = f" ({verdict.total_free} free in all)" if len(verdict.free) > 1 or verdict.total_free else ""
    need = amount(verdict.resource, verdict.need)
    nodes = counted(verdict.nodes, "node")
    return f"needs {need} on one node; of {nodes} {arithmetic}{together}: {_verdict_word(verdict)}"


def _verdict_word(verdict: GpuVerdict) -> str:
    suspects, verb = _some(verdict.suspects), _advertise(verdict.suspects)
    bad = f" ({verdict.bad})" if verdict.bad else ""
    return {
        "gpu-shortage": "shortage",
        "gpu-fragmentation": "fragmentation",
        "gpu-never-fits": f"never fits, the largest has {verdict.largest}",
        "gpus-unhealthy": f"{suspects} {verb} fewer than there are{bad}",
        "device-plugin-not-advertising": f"{suspects} should have some and {verb} none",
        "mig-shortage": "too few slices of this profile",
    }[verdict.cause]


def _advertise(nodes: Sequence[str]) -> str:
    return inflected(len(nodes), "advertises", "advertise")


def _resource_summary(cluster: Cluster, evaluation: Evaluation, bound: Binding, need: int) -> str:
    bit = bound.bits
    short = [cluster.order[i] for i in evaluation.groups().get(bit, ())]
    most = max((v.free.get(bound.resource, 0) for v in short), default=0)
    largest = max((v.allocatable.get(bound.resource, 0) for v in short), default=0)
    never = ", more than there is even when empty" if need > largest else ""
    others = _reasons(cluster, evaluation, without=bit)
    has = inflected(len(short), "has", "have")
    return (
        f"needs {amount(bound.resource, need)} on one node; the {len(short)} otherwise suitable of "
        f"{counted(len(cluster.order), 'node')} {has} at most {_value(bound.resource, most)} free{never}"
        f"{f' ({others})' if others else ''}"
    )


def _value(resource: str, units: int) -> str:
    return amount(resource, units).removesuffix(resource).rstrip(" ×")


def _need_or_slug(demand: str, needs: dict[str, int]) -> str:
    return amount(demand, needs[demand]) if demand in needs else demand


def reasons(evaluation: Evaluation) -> tuple[tuple[str, int], ...]:
    """First constraint that excludes a node, in our words, and of how many, most first."""
    out: dict[str, int] = {}
    for mask, nodes in evaluation.counts().items():
        if mask:
            slug = c.first_slug(mask, evaluation.resources)
            out[slug] = out.get(slug, 0) + nodes
    return tuple(sorted(out.items(), key=lambda kv: (-kv[1], kv[0])))


def _reasons(cluster: Cluster, evaluation: Evaluation, *, without: int = 0) -> str:
    """The same in words, CPU-only nodes told from full ones."""
    out: dict[str, int] = {}
    for mask, indexes in evaluation.groups().items():
        if not mask or mask == without:
            continue
        slug = c.first_slug(mask, evaluation.resources)
        resource = slug.removeprefix("insufficient ")
        having = len(indexes)
        if is_accelerator(resource):
            having = sum(1 for i in indexes if offers(cluster.order[i], resource))
            out[f"no {resource}"] = out.get(f"no {resource}", 0) + len(indexes) - having
        out[slug] = out.get(slug, 0) + having
    return ", ".join(
        _WHY[slug].format(n=nodes) if slug in _WHY else f"{nodes} with {slug}"
        for slug, nodes in sorted(out.items(), key=lambda kv: (-kv[1], kv[0]))
        if nodes
    )


def _where_excluded(evaluation: Evaluation) -> str:
    out: dict[str, int] = {}
    for mask, nodes in evaluation.counts().items():
        if mask & c.ELIGIBILITY:
            slug = c.first_slug(mask, evaluation.resources)
            out[slug] = out.get(slug, 0) + nodes
    return ", ".join(_WHY[slug].format(n=nodes) for slug, nodes in sorted(out.items(), key=lambda kv: (-kv[1], kv[0])))


def _detail(cluster: Cluster, wanted: SchedulingClass, evaluation: Evaluation, bound: Binding) -> str:
    """What exactly the binding policy says: the selector, the taint, the port."""
    demand, static = wanted.demand, wanted.demand.static
    match bound.demands[0]:
        case "node-selector":
            return ", ".join(f"{k}={v}" for k, v in static.node_selector)
        case "node-affinity":
            return describe_terms(static.node_affinity or ())
        case "untolerated-taint":
            return _and(_taints(cluster, wanted, evaluation, bound.bits))
        case "host-port":
            return _and([f"{protocol} {port}" for _, protocol, port in demand.ports])
        case "topology-spread":
            parts = [f"maxSkew {s.max_skew} over {s.topology_key} of {describe(s.selector)}" for s in demand.spreads]
            return _and(parts)
        case "pod-affinity":
            return _and([f"near {describe(t.selector)} by {t.topology_key}" for t in demand.affinity])
        case "pod-anti-affinity":
            own = [f"not with {describe(t.selector)} by {t.topology_key}" for t in demand.anti_affinity]
            others = in_order(describe(t.selector) for t in wanted.repelled_by)
            return _and(own or [f"kept away by pods that refuse {each}" for each in others])
        case "pvc-in-use":
            return _and([name for _, name in wanted.volumes.exclusive])
        case _:
            return ""


def _taints(cluster: Cluster, wanted: SchedulingClass, evaluation: Evaluation, bits: int) -> list[str]:
    out: dict[str, None] = {}
    for mask, indexes in evaluation.groups().items():
        if not mask & bits or mask & ~bits:
            continue
        for taints in {cluster.order[i].node.metadata.name: cluster.order[i].taints for i in indexes}.values():
            for taint in untolerated(taints, wanted.demand.static.tolerances):
                if taint.key != CORDON and taint.key not in CONDITION_TAINTS:
                    value = f"={taint.value}" if taint.value else ""
                    out[f"{taint.key}{value}:{taint.effect}"] = None
    return in_order(out)


def evidence(cluster: Cluster, wanted: SchedulingClass, evaluation: Evaluation, bound: Binding) -> tuple[Evidence, ...]:
    """The nodes that tell most, the nearest first: those that only the binding demand excludes."""
    accelerators = [r for r in evaluation.resources if is_accelerator(r)]
    groups = evaluation.groups()
    order = sorted(groups, key=lambda mask: (bool(mask & ~bound.bits), mask.bit_count(), mask))
    near = list(islice(_nodes_of(cluster, groups, order, accelerators), _MOST_EVIDENCE))
    if not near:
        near = list(islice(_nodes_of(cluster, groups, order, ()), _MOST_EVIDENCE))
    return tuple(
        Evidence(f"node/{view.name}", _node_text(cluster, view, mask, wanted, evaluation)) for view, mask in near
    )


def _nodes_of(
    cluster: Cluster, groups: Mapping[int, Sequence[int]], order: Iterable[int], resources: Sequence[str]
) -> Iterator[tuple[NodeView, int]]:
    for mask in order:
        for index in groups[mask]:
            view = cluster.order[index]
            if all(offers(view, r) for r in resources):
                yield view, mask


def _node_text(cluster: Cluster, view: NodeView, mask: int, wanted: SchedulingClass, evaluation: Evaluation) -> str:
    parts = []
    for index in c.resource_indexes(mask):
        name = evaluation.resources[index]
        parts.append(_holding(view, name))
        if view.name in cluster.bad_gpus and is_accelerator(name):
            parts.append(cluster.bad_gpus[view.name].words)
    if mask & c.CORDONED:
        parts.append("cordoned")
    for taint in untolerated(view.taints, wanted.demand.static.tolerances) if mask & (c.TAINT | c.NOT_READY) else ():
        if taint.key != CORDON:
            value = f"={taint.value}" if taint.value else ""
            parts.append(f"taint {taint.key}{value}:{taint.effect} is not tolerated")
    for key, value in wanted.demand.static.node_selector if mask & c.SELECTOR else ():
        if view.labels.get(key) != value:
            has = view.labels.get(key)
            parts.append(f"label {key} is {has}, not {value}" if has is not None else f"has no label {key}={value}")
    if mask & c.TOO_MANY_PODS:
        parts.append(f"{len(view.residents)} of {counted(view.max_pods, 'pod')}")
    told = c.CORDONED | c.TAINT | c.NOT_READY | c.SELECTOR | c.TOO_MANY_PODS | c.DEVICES
    parts += [slug for bit, slug, _ in c.NAMES if mask & bit and bit & ~told]
    if mask & c.DEVICES:
        parts.append(_devices(cluster, view))
    for name in evaluation.resources:
        if is_accelerator(name) and offers(view, name) and not any(name in p for p in parts):
            parts.append(_holding(view, name))
    return "; ".join(parts)


def _devices(cluster: Cluster, view: NodeView) -> str:
    ledger = cluster.ledger
    here = list(ledger.on(view.name, view.labels))
    free = sum(1 for d in here if d.key not in ledger.holders and not d.taints)
    tainted = sum(1 for d in here if d.taints)
    if not here:
        return "no devices"
    return f"{free} of {counted(len(here), 'device')} free{f', {tainted} tainted' if tainted else ''}"


def _holding(view: NodeView, name: str) -> str:
    has, capacity = view.allocatable.get(name, 0), view.capacity.get(name, 0)
    fewer = f" (capacity {_value(name, capacity)})" if capacity > has and "/" in name else ""
    return f"{_value(name, view.bound(name))} of {_value(name, has)} {name} bound{fewer}"


def would_help(cluster: Cluster, wanted: SchedulingClass, evaluation: Evaluation, bound: Binding) -> tuple[str, ...]:
    """What would have to change, a sentence for each demand that would help alone; the binding one first."""
    needs = dict(wanted.demand.needs)
    out = []
    for demand in bound.alone:
        bits = _bits(demand, evaluation)
        groups = evaluation.groups()
        near = sorted(i for mask, indexes in groups.items() if mask and not mask & ~bits for i in indexes)
        nodes = [cluster.order[i].name for i in near]
        if demand in needs:
            out.append(_free_resource(cluster, demand, needs[demand], nodes, bound))
            continue
        single = Binding(cause=demand, demands=(demand,), bits=bits)
        detail = _detail(cluster, wanted, evaluation, single)
        out.append(_FREE_IT[demand].format(nodes=_some(nodes), detail=detail))
    return tuple(out)


def _bits(demand: str, evaluation: Evaluation) -> int:
    index = evaluation.index(demand)
    if index is not None:
        return c.resource_bit(index)
    return sum(bit for bit, slug, _ in c.NAMES if slug == demand)


def _free_resource(cluster: Cluster, resource: str, need: int, nodes: Sequence[str], bound: Binding) -> str:
    if bound.cause == "extended-resource-unknown":
        return f"A node that offers {resource}, or another resource name."
    if bound.cause == "gpu-never-fits" and bound.gpus is not None:
        return f"Asking for at most {bound.gpus.largest} per pod, or a node with {need}."
    if bound.cause in ("gpus-unhealthy", "device-plugin-not-advertising") and bound.gpus is not None:
        return f"The devices of {_some(bound.gpus.suspects)} being advertised again."
    views = [cluster.views[n] for n in nodes]
    if is_accelerator(resource):
        views = [v for v in views if offers(v, resource)] or views
    can = [v for v in views if v.allocatable.get(resource, 0) >= need] or views
    best = max(can, key=lambda v: v.free.get(resource, 0), default=None)
    if best is None:
        return f"More {resource} on one node."
    missing = need - best.free.get(resource, 0)
    return f"{amount(resource, missing)} more free on {best.name} (the nearest of {counted(len(views), 'node')})."


def not_preempted(room: Preemption, priority: int) -> str:
    """Why the scheduler does not make room by itself."""
    nodes = counted(room.candidates, "node")
    match room.reason:
        case PreemptionReason.NEVER:
            if room.lowest is None:
                return "its preemptionPolicy is Never"
            lower = "pods of lower priority are there" if room.lowest < priority else "nobody there ranks lower anyway"
            return f"its preemptionPolicy is Never ({lower}: lowest {room.lowest}, this pod {priority})"
        case PreemptionReason.NO_LOWER_PRIORITY:
            lowest = "" if room.lowest is None else f": the lowest is {room.lowest}, this pod has {priority}"
            return f"nobody on the {nodes} that eviction could help ranks lower{lowest}"
        case PreemptionReason.NOT_HELPFUL:
            return "evicting pods helps on no node: what excludes them is not other pods, or they are too small"
        case PreemptionReason.NOT_ENOUGH:
            return f"evicting everyone of lower priority would not make enough room on any of the {nodes}"
        case PreemptionReason.HELPS | PreemptionReason.UNDER_WAY:
            return ""


def _and(parts: Sequence[str]) -> str:
    return " and ".join(dict.fromkeys(parts))


def _some(names: Sequence[str]) -> str:
    return ", ".join(names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "")
