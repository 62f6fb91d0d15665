"""
Facts of one GPU.  All of them come from the agent on the node; without it they are unknown, and rules on them inert.

Kubernetes objects alone tell that a node advertises fewer GPUs, never which one is gone.
"""

from __future__ import annotations

from functools import partial

from sevenhop.core.facts.schema import Facts, FactSpec, FactType, Unknown, UnknownReason
from sevenhop.core.subject import SubjectKind

NO_AGENT = Unknown(UnknownReason.NO_SOURCE, "gpu agent")

_row = partial(FactSpec, subject=SubjectKind.GPU, source="gpu agent", unknown_when="no agent on the node (no_source)")

SPECS: tuple[FactSpec, ...] = (
    _row(name="gpu.present", type=FactType.BOOL, doc="The driver sees the GPU. A silent agent is not a lost GPU."),
    _row(name="gpu.xid", type=FactType.INT, doc="Root cause among recent XIDs after folding; 0 for none."),
    _row(
        name="gpu.xid_class",
        type=FactType.STRING,
        doc="What the XID asks for.",
        values=("none", "app", "contained", "reset", "reboot", "replace"),
    ),
    _row(
        name="gpu.xid_repeats_24h",
        type=FactType.INT,
        unit="XIDs in 24 h",
        doc="The same XID on the same GPU, under different pods.",
    ),
    _row(name="gpu.remap_failed", type=FactType.BOOL, doc="Row remapping failed: the memory needs replacing."),
    _row(
        name="gpu.throttle",
        type=FactType.STRING,
        doc="Why clocks are held back.",
        values=("none", "power", "thermal", "hw"),
    ),
    _row(name="gpu.sm_active_ratio", type=FactType.DOUBLE, unit="ratio", doc="Share of time in which SMs worked."),
    _row(
        name="gpu.sm_occupancy_ratio", type=FactType.DOUBLE, unit="ratio", doc="Warps resident, of the most possible."
    ),
    _row(name="gpu.mem_used_ratio", type=FactType.DOUBLE, unit="ratio", doc="GPU memory in use."),
    _row(
        name="gpu.held_without_pod",
        type=FactType.BOOL,
        doc="A process holds memory while no pod has the GPU, none terminating either.",
    ),
)


def derive() -> Facts:
    """Every fact unknown, until an agent reports."""
    return {row.name: NO_AGENT for row in SPECS}
