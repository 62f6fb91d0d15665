"""Facts of one pool: one GPU product in one cluster."""

from __future__ import annotations

from functools import partial

from sevenhop.core.facts.schema import FactSpec, FactType
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
        doc="Sum over ready, uncordoned nodes of allocatable minus bound, never below 0 on a node.",
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
        doc="GPUs that pending pods of inference workloads ask of this pool.",
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
        doc="Share of the pool's GPUs that went bad within 10 minutes.",
        source="gpu agent",
        not_applicable=0.0,
        unknown_when="no agent (no_source)",
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
