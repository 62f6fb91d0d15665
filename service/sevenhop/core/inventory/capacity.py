"""GPU capacity of one pool: who has it, who waits, who could give."""

from __future__ import annotations

from datetime import datetime

import msgspec

from sevenhop.core.inventory.objects import Key


class Holding(msgspec.Struct, frozen=True, gc=False):
    """
    GPUs bound by one workload in a pool; `workload` is empty for pods of no inference workload.

    Attributes:
        reason: Why it gives nothing, or what it could give, in words.
        gives: GPUs that it could give to the highest tier that waits, in whole replicas above its minimum.
    """

    workload: Key | None
    tier: str
    gpus: int
    pods: int
    reducible: bool = False
    reason: str = ""
    gives: int = 0


class Waiting(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """
    A component that waits for GPUs of this pool, as `pools_waiting` says; the most valuable first.

    Attributes:
        pods, gpus: That wait for the pool, and what these ask for; others of the component may wait for other things.
        since: When the component began to wait, for whatever.
        cause: Of most of those pods.
        on_repair: The part of `gpus` that the pool has and does not offer: bad, or of a device plugin that is down.
        helped_by_others: GPUs that somebody gives up are what some of them lack.
        unclear: Why `gpus` is not all that they ask for, in words; empty where it is.
    """

    workload: Key
    component: str
    tier: str
    pods: int
    gpus: int
    since: datetime | None = None
    cause: str = ""
    on_repair: int = 0
    helped_by_others: bool = True
    unclear: str = ""


class NodeFree(msgspec.Struct, frozen=True, gc=False):
    name: str
    allocatable: int
    bound: int
    releasing: int
    free: int
    ready: bool
    cordoned: bool
    unhealthy: int = 0  # bad by the agent, and still advertised


class PoolCapacity(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """
    One GPU product in one cluster, counted in GPUs (or MIG instances, where `resource` says so).

    Attributes:
        bound: Of all non-terminal pods that have a node, terminating ones included.
        releasing: The part of `bound` that terminating pods hold.
        free: Sum over ready, uncordoned nodes of max(0, allocatable − bound − unhealthy ones that nobody has).
        unhealthy: Capacity minus allocatable, where a node states both, and what agents call bad beyond that.
        largest_free_block: Most free GPUs on one ready, uncordoned node.
        reserved: Promised to somebody by plans that are approved or running.
    """

    product: str
    resource: str
    nodes: tuple[NodeFree, ...]
    allocatable: int
    bound: int
    releasing: int
    free: int
    cordoned: int
    unhealthy: int
    largest_free_block: int
    reserved: int = 0
    holdings: tuple[Holding, ...] = ()
    waiting: tuple[Waiting, ...] = ()


class Change(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """
    Something that somebody changed, kept for an hour: "changed before" is the first line an SRE reads.

    `what` is one of image, args, replicas, spec, node-labels, taints, cordon, allocatable, route, rollout.
    """

    at: datetime
    kind: str
    namespace: str
    name: str
    what: str
    before: str
    after: str
    workload: Key | None = None
    by: str = ""
