"""What a GPU says of itself, as the agent on its node, or dcgm-exporter, reads it.  Unread values are None."""

from __future__ import annotations

from enum import StrEnum

import msgspec


class Throttle(StrEnum):
    """Why clocks are held down, in the order of their weight (NVML clocks event reasons)."""

    HW = "hw"  # hardware slowdown: power brake, or hardware thermal
    THERMAL = "thermal"
    POWER = "power"  # the power cap: usual under load
    NONE = "none"


class Holder(msgspec.Struct, frozen=True, gc=False, order=True):
    """A container that the kubelet gave the device to (Pod Resources API)."""

    namespace: str
    pod: str
    container: str = ""


class GpuReading(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """
    One GPU, or one MIG instance.

    Attributes:
        index: NVML's; changes over a reset.
        uuid: Its identity: ``GPU-…`` or ``MIG-…``.
        product: As the driver calls it; normalised by the inventory.
        pci: ``0000:3b:00.0``, small letters, four digits of domain.
        parent: UUID of the GPU that a MIG instance is part of; empty for a whole one.
        profile: Such as ``1g.10gb``; empty for a whole one.
        utilization, sm_active, sm_occupancy: 0 to 1.
        power_w, temperature_c: Watts, degrees Celsius.
        ecc_uncorrected, ecc_corrected: Since the driver was loaded.
        remap_pending, remap_failed: Row remapping; on older GPUs the pages that wait to be retired count as pending.
        nvlinks_down: Links that should be up and are not.
        processes: Processes that use it; a process without a pod's container is nobody's.
        last_xid: The XID that a source shows until another one comes, without its time (DCGM does); 0 for none yet.
            None where XIDs are told as they come.
        error: Why it could not be read, such as ``GPU is lost``; other values are then None.
    """

    index: int
    uuid: str
    product: str = ""
    pci: str = ""
    parent: str = ""
    profile: str = ""
    memory_used_mib: int | None = None
    memory_total_mib: int | None = None
    utilization: float | None = None
    sm_active: float | None = None
    sm_occupancy: float | None = None
    power_w: float | None = None
    temperature_c: int | None = None
    throttle: Throttle | None = None
    ecc_uncorrected: int | None = None
    ecc_corrected: int | None = None
    remap_pending: bool | None = None
    remap_failed: bool | None = None
    nvlinks_down: int | None = None
    processes: int | None = None
    last_xid: int | None = None
    holders: tuple[Holder, ...] = ()
    error: str = ""


class ContainerUsage(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """
    CPU and memory of one container that holds a GPU, from cgroup v2.

    Attributes:
        cpu_cores: Used, averaged since the last sample.
        cpu_throttled: Share of the periods in which it was throttled, 0 to 1.
        memory_bytes, memory_limit_bytes: In use without the page cache; None for no limit.
    """

    holder: Holder
    cpu_cores: float | None = None
    cpu_throttled: float | None = None
    memory_bytes: int | None = None
    memory_limit_bytes: int | None = None
