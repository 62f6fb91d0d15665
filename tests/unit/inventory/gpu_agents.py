"""What the agent of one node says, for tests: all GPUs well unless a test says otherwise."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from sevenhop.core.events import GpusSampled, XidSeen
from sevenhop.core.gpu_sample import ContainerUsage, GpuReading, Holder, Throttle
from sevenhop.core.objects.pod import Pod
from tests.builders import at

WELL: dict[str, Any] = {
    "product": "NVIDIA H100 80GB HBM3", "memory_used_mib": 40_000, "memory_total_mib": 80_000, "utilization": 0.9,
    "sm_active": 0.5, "sm_occupancy": 0.25, "throttle": Throttle.NONE, "ecc_uncorrected": 0, "ecc_corrected": 0,
    "remap_failed": False, "remap_pending": False,
}  # fmt: skip


def uuid(node: str, index: int) -> str:
    return f"GPU-{node}-{index}"


def pci(index: int) -> str:
    return f"0000:{index + 16:02x}:00.0"


def reading(node: str, number: int, *, pods: Iterable[Pod] = (), **changes: Any) -> GpuReading:
    holders = tuple(Holder(pod.metadata.namespace, pod.metadata.name, "main") for pod in pods)
    known = {"index": number, "uuid": uuid(node, number), "pci": pci(number), "holders": holders}
    known["processes"] = len(holders)
    return GpuReading(**{**WELL, **known, **changes})


class Agent:
    """
    Attributes:
        pods: By index of the GPU, who has it.
        changes: By index, what its reading says beside; ``None`` for a GPU that the driver does not list.
    """

    def __init__(self, node: str, gpus: int = 8, *, epoch: int = 1) -> None:
        self.node = node
        self.gpus = gpus
        self.epoch = epoch
        self.seq = 0
        self.pods: dict[int, Sequence[Pod]] = {}
        self.changes: dict[int, dict[str, Any] | None] = {}

    def sample(
        self,
        seconds: float,
        *,
        only: Sequence[int] | None = None,
        usage: tuple[ContainerUsage, ...] = (),
        skew: float = 0,
        **fields: Any,
    ) -> GpusSampled:
        """What it says at this time after noon; with `only`, of these GPUs."""
        self.seq += 1
        found: Mapping[int, dict[str, Any] | None] = {i: self.changes.get(i, {}) for i in range(self.gpus)}
        known: dict[str, Any] = {
            "at": at(seconds + skew), "received_at": at(seconds), "epoch": self.epoch, "seq": self.seq,
            "node": self.node, "is_whole": only is None, "usage": usage,
            "readings": tuple(
                reading(self.node, i, pods=self.pods.get(i, ()), **changes)
                for i, changes in found.items()
                if changes is not None and (only is None or i in only)
            ),
        }  # fmt: skip
        return GpusSampled(**{**known, **fields})

    def xid(self, seconds: float, number: int, index: int = 0, **fields: Any) -> XidSeen:
        known: dict[str, Any] = {"at": at(seconds), "node": self.node, "xid": number, "pci": pci(index)}
        return XidSeen(**{**known, **fields})
