"""
Facts of one GPU.  All of them come from the agent on the node; without it they are unknown, and rules on them inert.

Kubernetes objects alone tell that a node advertises fewer GPUs, never which one is gone.
"""

from __future__ import annotations

from functools import partial

from sevenhop.core.facts.schema import Facts, FactSpec, FactType, Unknown, UnknownReason
from sevenhop.core.gpu_sample import GpuReading
from sevenhop.core.hops.xids import XidClass, words_of
from sevenhop.core.subject import SubjectKind

NO_AGENT = Unknown(UnknownReason.NO_SOURCE, "gpu agent")
NOT_READ = Unknown(UnknownReason.NO_SOURCE, "gpu agent: this GPU or driver does not tell")

HELD_MIB = 300
"""GPU memory that somebody must hold to be worth a look: tools that only read counters take less."""

_row = partial(
    FactSpec,
    subject=SubjectKind.GPU,
    source="gpu agent",
    unknown_when="no agent on the node (no_source), a silent one (stale after 60 s), or a value that it cannot read",
)

SPECS: tuple[FactSpec, ...] = (
    _row(name="gpu.present", type=FactType.BOOL, doc="The driver sees the GPU. A silent agent is not a lost GPU."),
    _row(
        name="gpu.xid",
        type=FactType.INT,
        doc="Root cause among recent XIDs: 3 h for what asks for a reset or more, 10 min for others; 0 for none, "
        "for consequences alone (43, 45), and for links that fail because a peer did.",
        unknown_when="no agent on the node (no_source), a silent one (stale after 60 s), or dcgm-exporter showed one "
        "at our first look, which may be old (window, for as long as it could stand)",
    ),
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
        doc="How often the commonest XID came, bursts of 3 min counted once; 0 unless two different pods had the GPU.",
    ),
    _row(name="gpu.remap_failed", type=FactType.BOOL, doc="Row remapping failed: the memory needs replacing."),
    _row(
        name="gpu.throttle",
        type=FactType.STRING,
        doc="Why clocks are held back.",
        values=("none", "power", "thermal", "hw"),
    ),
    _row(
        name="gpu.utilization_ratio",
        type=FactType.DOUBLE,
        unit="ratio",
        doc="Share of time in which any kernel ran, on however few SMs; every GPU tells it.",
    ),
    _row(
        name="gpu.sm_active_ratio",
        type=FactType.DOUBLE,
        unit="ratio",
        doc="Share of time in which SMs worked; from Hopper on (GPM), or by dcgm-exporter's profiling.",
    ),
    _row(
        name="gpu.sm_occupancy_ratio", type=FactType.DOUBLE, unit="ratio", doc="Warps resident, of the most possible."
    ),
    _row(name="gpu.mem_used_ratio", type=FactType.DOUBLE, unit="ratio", doc="GPU memory in use."),
    _row(
        name="gpu.held_without_pod",
        type=FactType.BOOL,
        doc="A process holds memory while no pod has the GPU, none terminating either.",
    ),
    _row(
        name="gpu.trouble",
        type=FactType.STRING,
        doc="What is wrong with it in a few words, with its number on the node; empty while it is well.",
    ),
    _row(
        name="gpu.hits",
        type=FactType.STRING,
        doc="Who has it, or had it when it went bad: components with their pods.",
    ),
)


def derive(
    *,
    unknown: Unknown | None = NO_AGENT,
    present: bool | Unknown = NO_AGENT,
    xid: int = 0,
    undated: Unknown | None = None,
    xid_class: XidClass | None = XidClass.NONE,
    repeats: int = 0,
    reading: GpuReading | None = None,
    held_without_pod: bool | Unknown = NO_AGENT,
    trouble: str = "",
    hits: str = "",
) -> Facts:
    """
    Facts of one GPU.

    Args:
        unknown: Why nothing can be said now; every fact is then this.  None while the agent speaks.
        undated: Why it is not known which XID stands; what else is known of the GPU is not touched by it.
        xid_class: None where nothing tells what the XID asks for.
        reading: The last one; None before the first.
    """
    if unknown is not None:
        return {row.name: unknown for row in SPECS}
    cls: str | Unknown = NOT_READ
    if undated is not None and xid_class is XidClass.NONE:
        cls = undated
    elif xid_class is not None:
        cls = str(xid_class)
    elif xid:
        cls = Unknown(UnknownReason.NO_SOURCE, f"what {words_of(xid)}, asks for")
    return {
        "gpu.present": present,
        "gpu.xid": xid if undated is None else undated,
        "gpu.xid_class": cls,
        "gpu.xid_repeats_24h": repeats,
        "gpu.remap_failed": _told(reading.remap_failed if reading is not None else None, reading),
        "gpu.throttle": _told(str(reading.throttle) if reading is not None and reading.throttle else None, reading),
        "gpu.utilization_ratio": _ratio(reading.utilization if reading is not None else None, reading),
        "gpu.sm_active_ratio": _ratio(reading.sm_active if reading is not None else None, reading),
        "gpu.sm_occupancy_ratio": _ratio(reading.sm_occupancy if reading is not None else None, reading),
        "gpu.mem_used_ratio": _ratio(_memory(reading), reading),
        "gpu.held_without_pod": held_without_pod,
        "gpu.trouble": trouble,
        "gpu.hits": hits,
    }


def is_held(reading: GpuReading) -> bool | Unknown:
    """Whether a process holds memory of the GPU."""
    if reading.processes is None:
        return _unread(reading)
    return reading.processes > 0 and (reading.memory_used_mib is None or reading.memory_used_mib >= HELD_MIB)


def _memory(reading: GpuReading | None) -> float | None:
    if reading is None or reading.memory_used_mib is None or not reading.memory_total_mib:
        return None
    return reading.memory_used_mib / reading.memory_total_mib


def _ratio(value: float | None, reading: GpuReading | None) -> float | Unknown:
    """Rounded to a hundredth: a level that trembles is no news."""
    return _unread(reading) if value is None else round(min(1.0, max(0.0, value)), 2)


def _told(value: bool | str | None, reading: GpuReading | None) -> bool | str | Unknown:
    return _unread(reading) if value is None else value


def _unread(reading: GpuReading | None) -> Unknown:
    if reading is not None and reading.error:
        return Unknown(UnknownReason.UNREADABLE, reading.error)
    return NOT_READ
