"""Facts of one pool: one GPU product in one cluster."""

from __future__ import annotations

from functools import partial

from sevenhop.core.facts.schema import Facts, FactSpec, FactType, Unknown, UnknownReason
from sevenhop.core.inventory.ledger import Sums
from sevenhop.core.subject import SubjectKind

_row = partial(
    FactSpec,
    subject=SubjectKind.POOL,
    source="Node, Pod",
    not_applicable=0,
    unknown_when="nodes or pods cannot be seen",
)

SPECS: tuple[FactSpec, ...] = (
    _row(
        name="pool.allocatable",
        type=FactType.INT,
        unit="GPUs",
        doc="GPUs that the pool's nodes advertise to the scheduler.",
    ),
    _row(
        name="pool.free",
        type=FactType.INT,
        unit="GPUs",
        doc="Sum over ready, uncordoned nodes of allocatable minus bound and unhealthy, never below 0 on a node.",
    ),
    _row(
        name="pool.largest_free_block",
        type=FactType.INT,
        unit="GPUs",
        doc="Most free GPUs on one ready, uncordoned node: what one pod can get.",
    ),
    _row(name="pool.releasing", type=FactType.INT, unit="GPUs", doc="GPUs that terminating pods still hold."),
    _row(
        name="pool.waiting_gpus",
        type=FactType.INT,
        unit="GPUs",
        doc="GPUs that pending pods of inference workloads ask of this pool where GPUs are what keeps them: they are "
        "taken, split over nodes, bad, not offered, or on their way; by claims as well. Who waits for a cordoned node, "
        "a quota, a gate, a volume or its own rollout is not among them.",
        unknown_when="nodes or pods cannot be seen, or how many a claim takes hangs on the node (no_source)",
    ),
    _row(
        name="pool.waiting_on_repair",
        type=FactType.INT,
        unit="GPUs",
        doc="The part of `pool.waiting_gpus` that waits for GPUs which are there and not offered: bad ones, or those "
        "of a device plugin that is down.",
    ),
    _row(
        name="pool.waiting_tier",
        type=FactType.STRING,
        doc="The highest tier that waits.",
        not_applicable="",
        values=("critical", "standard", "batch"),
    ),
    _row(
        name="pool.reclaimable",
        type=FactType.INT,
        unit="GPUs",
        doc="GPUs that workloads of a lower tier than the highest waiting could give and stay above their minimum.",
    ),
    _row(
        name="pool.bad_ratio_10m",
        type=FactType.DOUBLE,
        unit="ratio",
        doc="Share of the GPUs of agents that have spoken for 10 minutes that went bad within 10 minutes, and are.",
        source="gpu agent",
        not_applicable=0.0,
        unknown_when="no agent (no_source), most are silent (stale), or most have not spoken for 10 minutes (window)",
    ),
    _row(
        name="pool.autoscaler",
        type=FactType.STRING,
        doc="What the cluster's autoscaler does about the pods that wait here, from its events.",
        source="Event",
        not_applicable="none",
        unknown_when="events cannot be seen",
        values=("none", "idle", "adding", "maxed", "backoff"),
    ),
)

NO_AGENT = Unknown(UnknownReason.NO_SOURCE, "gpu agent")


def derive(
    sums: Sums | None,
    *,
    waiting_gpus: int | Unknown,
    waiting_on_repair: int = 0,
    waiting_tier: str,
    reclaimable: int,
    autoscaler: str | Unknown,
    bad_ratio: float | Unknown = NO_AGENT,
    unknown: Unknown | None = None,
) -> Facts:
    """
    Facts of one pool.

    Args:
        sums: None for a product that pods wait for and no node has.
        waiting_gpus: Unknown where a pod asks for as many as a node has, and nodes differ.
        bad_ratio: Of its GPUs, as `gpu_watch` counts.
        unknown: Why nodes or pods cannot be seen; all that is counted from them is then this.
    """
    facts: Facts = {
        "pool.allocatable": sums.allocatable if sums else 0,
        "pool.free": sums.free if sums else 0,
        "pool.largest_free_block": sums.largest_free_block() if sums else 0,
        "pool.releasing": sums.releasing if sums else 0,
        "pool.waiting_gpus": waiting_gpus,
        "pool.waiting_on_repair": waiting_on_repair,
        "pool.waiting_tier": waiting_tier,
        "pool.reclaimable": reclaimable,
    }
    if unknown is not None:
        facts = dict.fromkeys(facts, unknown)
    facts["pool.bad_ratio_10m"] = bad_ratio
    facts["pool.autoscaler"] = autoscaler
    return facts
