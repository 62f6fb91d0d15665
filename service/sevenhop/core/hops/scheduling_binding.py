"""
Which of a pod's demands binds: drop one at a time and see which single one would let it run.

Works on the masks of one evaluation: a demand's bits are dropped, and a node whose mask becomes empty fits.  Only
where topology spread counts other nodes than before is the class evaluated anew.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

import msgspec

from sevenhop.core.hops.scheduling_gpus import GpuVerdict, gpu_verdict, is_accelerator, is_offered_otherwise, offers
from sevenhop.core.placement import constraints as c
from sevenhop.core.placement.cluster import Cluster
from sevenhop.core.placement.demand import Static
from sevenhop.core.placement.evaluation import Evaluation, SchedulingClass, evaluate
from sevenhop.core.placement.taints import CONDITION_TAINTS, CORDON, Tolerance

_DEMANDS: tuple[tuple[str, int], ...] = (
    ("dra-unsatisfiable", c.DEVICES),
    ("pvc-in-use", c.IN_USE),
    ("pv-unavailable", c.VOLUME_BINDING),
    ("volume-zone", c.VOLUME_AFFINITY | c.ZONE),
    ("topology-spread", c.SPREAD | c.SPREAD_LABEL),
    ("pod-affinity", c.AFFINITY),
    ("too-many-pods", c.TOO_MANY_PODS),
    ("host-port", c.PORTS),
    ("pod-anti-affinity", c.ANTI_AFFINITY | c.REPELLED),
    ("untolerated-taint", c.TAINT),
    ("node-not-ready", c.NOT_READY),
    ("cordoned", c.CORDONED),
    ("node-affinity", c.NODE_AFFINITY),
    ("node-selector", c.SELECTOR),
)
"""Demand and its bits; of several that would help alone, the earlier is named.  Resources come after `pod-affinity`:
a pod that may only run in one place waits for that place."""

_BEFORE_RESOURCES = 6

_PLAIN_SHORTAGE = {
    "cpu": "cpu-shortage",
    "memory": "memory-shortage",
    "ephemeral-storage": "ephemeral-storage-shortage",
}


class Binding(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """
    Attributes:
        cause: Slug of the published list.
        demands: The demand that binds, or those that bind together; a slug or a resource name each.
        alone: Every demand that would help if it alone were dropped, in order.
        resource: The resource that is short; empty for other causes.
        gpus: The arithmetic, where the resource is an accelerator.
        bits: Bits of the demands.
    """

    cause: str
    demands: tuple[str, ...]
    alone: tuple[str, ...] = ()
    resource: str = ""
    gpus: GpuVerdict | None = None
    bits: int = 0


def binding(cluster: Cluster, wanted: SchedulingClass, evaluation: Evaluation) -> Binding:
    """The binding demand of a class that fits on no node; there is at least one node."""
    unknown = _unknown_resource(cluster, wanted, evaluation)
    if unknown is not None:
        return unknown
    alone = helping_alone(cluster, wanted, evaluation)
    ranked = _ranked(alone, evaluation)
    if not ranked:
        return _together(cluster, wanted, evaluation)
    first = ranked[0]
    short = [d for d in ranked if d in evaluation.resources]
    if first in evaluation.resources and (len(short) > 1 or (short and "too-many-pods" in ranked)):
        return Binding(
            cause="resource-combination",
            demands=tuple(short),
            alone=tuple(ranked),
            bits=_bits_of(short, evaluation),
        )
    return _named(cluster, wanted, evaluation, first, tuple(ranked))


def helping_alone(cluster: Cluster, wanted: SchedulingClass, evaluation: Evaluation) -> list[str]:
    """
    Demands that would let the pod run if each alone were dropped: slugs of `_DEMANDS` and resource names.

    An accelerator counts as dropped only on nodes that have such: elsewhere the pod would not want to run.
    """
    masks = evaluation.counts()
    out: list[str] = []
    for slug, bits in _DEMANDS:
        if any(mask and not mask & ~bits for mask in masks):
            out.append(slug)
    for index, resource in enumerate(evaluation.resources):
        bit = c.resource_bit(index)
        if bit in masks and (
            not is_accelerator(resource) or any(offers(cluster.order[i], resource) for i in evaluation.groups()[bit])
        ):
            out.append(resource)
    if wanted.demand.spreads:
        moving = _moving_spread(cluster, wanted, evaluation)
        out = [s for s in out if s not in moving] + [s for s, helps in moving.items() if helps]
    return out


def demand_bits(demand: str, evaluation: Evaluation) -> int:
    """Bits of a demand: one of `_DEMANDS` or a resource."""
    index = evaluation.index(demand)
    return c.resource_bit(index) if index is not None else dict(_DEMANDS)[demand]


def _bits_of(demands: Iterable[str], evaluation: Evaluation) -> int:
    bits = 0
    for each in demands:
        bits |= demand_bits(each, evaluation)
    return bits


def _ranked(alone: Iterable[str], evaluation: Evaluation) -> list[str]:
    slugs = [slug for slug, _ in _DEMANDS]
    accelerators = [r for r in evaluation.resources if is_accelerator(r)]
    others = [r for r in evaluation.resources if not is_accelerator(r)]
    order = (*slugs[:_BEFORE_RESOURCES], *accelerators, *others, *slugs[_BEFORE_RESOURCES:])
    return sorted(alone, key=order.index)


def _moving_spread(cluster: Cluster, wanted: SchedulingClass, evaluation: Evaluation) -> dict[str, bool]:
    """Demands whose dropping changes which nodes spread counts, so that the masks cannot tell; whether each helps."""
    static = wanted.demand.static
    seen = 0
    for mask in evaluation.counts():
        seen |= mask
    candidates: list[tuple[str, int, Callable[[], Static]]] = [
        ("node-selector", c.SELECTOR, lambda: msgspec.structs.replace(static, node_selector=())),
        ("node-affinity", c.NODE_AFFINITY, lambda: msgspec.structs.replace(static, node_affinity=None)),
        ("untolerated-taint", c.TAINT, lambda: _tolerating(cluster, static, _is_policy)),
        ("node-not-ready", c.NOT_READY, lambda: _tolerating(cluster, static, CONDITION_TAINTS.__contains__)),
        ("cordoned", c.CORDONED, lambda: _tolerating(cluster, static, CORDON.__eq__)),
    ]
    out: dict[str, bool] = {}
    for slug, bit, relaxed in candidates:
        if seen & bit:
            demand = msgspec.structs.replace(wanted.demand, static=relaxed())
            out[slug] = 0 in evaluate(cluster, msgspec.structs.replace(wanted, demand=demand)).masks
    return out


def _is_policy(key: str) -> bool:
    return key != CORDON and key not in CONDITION_TAINTS


def _tolerating(cluster: Cluster, static: Static, which: Callable[[str], bool]) -> Static:
    keys = {t.key for view in cluster.order for t in view.taints if which(t.key)}
    if which(CORDON):
        keys.add(CORDON)
    more = tuple(Tolerance(key, "Exists", "", "") for key in sorted(keys))
    return msgspec.structs.replace(static, tolerances=tuple(sorted({*static.tolerances, *more})))


def _unknown_resource(cluster: Cluster, wanted: SchedulingClass, evaluation: Evaluation) -> Binding | None:
    """A resource whose name no node knows binds whatever else does."""
    for resource, amount in wanted.demand.needs:
        if "/" not in resource or resource in evaluation.delegated:
            continue
        known = any(
            (resource in v.allocatable or resource in v.capacity or offers(v, resource))
            and not is_offered_otherwise(v, resource)
            for v in cluster.order
        )
        if not known:
            return Binding(
                cause="extended-resource-unknown",
                demands=(resource,),
                alone=(resource,) if amount else (),
                resource=resource,
                bits=_bits_of((resource,), evaluation),
            )
    return None


def _named(
    cluster: Cluster, wanted: SchedulingClass, evaluation: Evaluation, demand: str, alone: tuple[str, ...]
) -> Binding:
    bits = demand_bits(demand, evaluation)
    if demand in evaluation.resources:
        if is_accelerator(demand):
            verdict = gpu_verdict(cluster, evaluation, demand, dict(wanted.demand.needs)[demand])
            return Binding(
                cause=verdict.cause, demands=(demand,), alone=alone, resource=demand, gpus=verdict, bits=bits
            )
        cause = _PLAIN_SHORTAGE.get(demand, "extended-resource-shortage")
        return Binding(cause=cause, demands=(demand,), alone=alone, resource=demand, bits=bits)
    cause = demand
    if demand == "dra-unsatisfiable" and evaluation.delegated and not wanted.claims.needs:
        cause = "dra-extended-resource"
        return Binding(cause=cause, demands=(demand,), alone=alone, resource=evaluation.delegated[0], bits=bits)
    return Binding(cause=cause, demands=(demand,), alone=alone, bits=bits)


def _together(cluster: Cluster, wanted: SchedulingClass, evaluation: Evaluation) -> Binding:
    """
    No single demand would help: name what the nearest nodes have against the pod, together.

    Never a GPU shortage: where GPUs alone are not what is missing, saying so would send people after them.
    """
    near = _nearest(cluster, evaluation)
    demands = [slug for slug, bits in _DEMANDS if near & bits]
    resources = [evaluation.resources[i] for i in c.resource_indexes(near)]
    if not demands:
        never = _never_fits(cluster, wanted, evaluation, resources)
        cause = never or ("resource-combination" if len(resources) > 1 else _single(resources[0]))
        return Binding(cause=cause, demands=tuple(resources), resource=resources[0], bits=near)
    policy = [d for d in demands if demand_bits(d, evaluation) & c.ELIGIBILITY]
    first = (policy or demands)[0]
    named = _named(cluster, wanted, evaluation, first, ())
    return msgspec.structs.replace(
        named, demands=(first, *(d for d in demands if d != first), *resources), bits=near, gpus=None
    )


def _single(resource: str) -> str:
    # One resource that is short everywhere helps alone, unless it is an accelerator that these nodes do not have.
    return _PLAIN_SHORTAGE.get(resource, "node-selector" if is_accelerator(resource) else "extended-resource-shortage")


def _never_fits(cluster: Cluster, wanted: SchedulingClass, evaluation: Evaluation, resources: Iterable[str]) -> str:
    needs = dict(wanted.demand.needs)
    for resource in resources:
        if is_accelerator(resource):
            verdict = gpu_verdict(cluster, evaluation, resource, needs[resource])
            if verdict.cause in ("gpu-never-fits", "device-plugin-not-advertising"):
                return verdict.cause
    return ""


def _nearest(cluster: Cluster, evaluation: Evaluation) -> int:
    """The mask with the fewest demands in it, of nodes that have the accelerators at all if any does."""
    wanted = [r for r in evaluation.resources if is_accelerator(r)]
    groups = evaluation.groups()
    having = {
        mask: count
        for mask, indexes in groups.items()
        if (count := sum(1 for i in indexes if all(offers(cluster.order[i], r) for r in wanted)))
    }
    counts = having or {mask: len(indexes) for mask, indexes in groups.items()}
    return min(counts, key=lambda mask: (mask.bit_count(), -counts[mask], mask), default=0)
