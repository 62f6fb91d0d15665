"""
GPUs that a waiting pod asks for by ResourceClaims: of which pool, and how many.

A request names a device class and selectors, never a pool.  So it is answered by the devices themselves: what would
the claims get on the nodes that nothing else keeps the pod from, if nobody held a device there?  A request that even
then gets nothing waits for no GPU: nobody's giving up would help.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import cast

import msgspec

from sevenhop.core.inventory.objects import Key
from sevenhop.core.inventory.rows import PodRow
from sevenhop.core.inventory.state import State
from sevenhop.core.objects.pod import Pod
from sevenhop.core.placement import constraints as c
from sevenhop.core.placement.claims import claims_demand
from sevenhop.core.placement.devices import ClaimNeed, DeviceKey, could_allocate
from sevenhop.core.placement.evaluation import Evaluation, SchedulingClass, class_of, evaluate
from sevenhop.core.placement.nodes import NodeView

BY_CLAIM = frozenset(("dra-unsatisfiable", "dra-extended-resource"))
"""Causes that stand in devices by claims."""


class Asked(msgspec.Struct, frozen=True, gc=False):
    """
    What one pod asks of one pool.

    Attributes:
        counts: How many devices, ascending; several where it depends on the node or on the alternative.
        on_repair: Only if devices that are tainted as broken were whole again.
    """

    counts: tuple[int, ...]
    on_repair: bool = False

    @property
    def gpus(self) -> int:
        """The number, and 0 where there is not one."""
        return self.counts[0] if len(self.counts) == 1 else 0

    @property
    def unclear(self) -> str:
        """Why there is no number; empty if there is."""
        if len(self.counts) < 2:
            return ""
        return f"{self.counts[0]} to {self.counts[-1]} devices, as the node has them or the alternative wants them"


_NOTHING: Mapping[str, Asked] = {}


def asked_by_claims(state: State, row: PodRow, counted: Collection[Key] = ()) -> Mapping[str, Asked]:
    """
    Pools that a waiting pod waits for by its claims, and what it asks of each; empty for who waits for anything else.

    Several pools are alternatives: devices of one of them would do.

    Args:
        counted: Claims that are left out, since another pod that shares them has been asked.
    """
    pod = state.objects.pods().get(row.key)
    if pod is None or row.node or not (pod.spec.resource_claims or _is_served(row)):
        return _NOTHING
    cluster = state.placement
    wanted = class_of(cluster, pod)
    needs = tuple(need for need, claim in _own(state, pod) if claim not in counted)
    key = ("asked by claims", wanted, needs)
    known = cast("Mapping[str, Asked] | None", cluster.remembered(key))
    if known is None:
        known = _asked(state, wanted, needs)
        cluster.remember(key, known)
    return known


def claims_of(state: State, row: PodRow) -> frozenset[Key]:
    """Claims of a pod that are not allocated yet."""
    pod = state.objects.pods().get(row.key)
    return frozenset(key for _, key in _own(state, pod)) if pod is not None else frozenset()


def _own(state: State, pod: Pod) -> Iterator[tuple[ClaimNeed, Key]]:
    demand, keys = claims_demand(state.placement, pod)
    return zip(demand.needs, keys, strict=True)


def _is_served(row: PodRow) -> bool:
    return row.pending is not None and row.pending.cause == "dra-extended-resource"


def _asked(state: State, wanted: SchedulingClass, own: tuple[ClaimNeed, ...]) -> Mapping[str, Asked]:
    evaluation = evaluate(state.placement, wanted)
    needs = (*own, *_served(state, wanted, evaluation))
    near = [state.placement.order[index] for index in evaluation.groups().get(c.DEVICES, ())]
    if not needs or not near or evaluation.fits or wanted.trouble:
        return _NOTHING
    for healed in (False, True):
        counts: dict[str, set[int]] = {}
        for view in near:
            for pool, count in _could_have(state, view, needs, healed=healed):
                counts.setdefault(pool, set()).add(count)
        if counts:
            return {pool: Asked(tuple(sorted(found)), on_repair=healed) for pool, found in counts.items()}
    return _NOTHING


def _served(state: State, wanted: SchedulingClass, evaluation: Evaluation) -> Iterator[ClaimNeed]:
    """Extended resources that the scheduler would make a claim for."""
    ledger, amounts = state.placement.ledger, dict(wanted.demand.needs)
    for name in evaluation.delegated:
        device_class = ledger.class_for_resource(name)
        if device_class is not None:
            yield ledger.need_of_resource(device_class, name, amounts[name])


def _could_have(
    state: State, view: NodeView, needs: tuple[ClaimNeed, ...], *, healed: bool
) -> Iterator[tuple[str, int]]:
    """(pool, devices) on an empty node, for each way to choose among alternatives."""
    pools = {part.resource: part.pool for part in state.ledger.parts_of(view.name)}
    for devices in could_allocate(state.placement.ledger, view.name, view.labels, needs, healed=healed):
        yield from _by_pool(state, pools, devices).items()


def _by_pool(state: State, pools: Mapping[str, str], devices: Iterable[DeviceKey]) -> dict[str, int]:
    """A network card that comes with a GPU, and a device that is in no pool, is not counted."""
    found: dict[str, int] = {}
    for device in devices:
        pool = pools.get(state.devices.resource_of(device))
        if pool is not None:
            found[pool] = found.get(pool, 0) + 1
    return found
