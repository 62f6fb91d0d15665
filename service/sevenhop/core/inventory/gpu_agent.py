"""One node's GPU agent and its GPUs, as they were last told."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta

import msgspec

from sevenhop.core.gpu_sample import ContainerUsage, GpuReading
from sevenhop.core.inventory.gpu_xids import XidRecord
from sevenhop.core.inventory.objects import Key

AGENT = "gpu-agent"
"""The source that samples come from, as a `SourceChanged` and a fact's subject name it."""

SILENT_AFTER = timedelta(seconds=60)
"""An agent sends every 15 s; one that has not been heard for four of them is silent, and its GPUs are unknown."""

CLOCKS_AGREE_S = 2.0
"""An agent's clock may differ by as much without anybody caring."""

ACTIVE_FOR = timedelta(minutes=2)
ACTIVE_APART = timedelta(seconds=10)
"""SM activity is remembered for so long, in readings so far apart: changes are sent at once, in between."""

Position = tuple[int, int, float]
"""(epoch, sequence, agent's time): the last only orders samples that are not numbered."""

NEVER: Position = (-1, -1, 0.0)


class Gpu(msgspec.Struct, gc=False, kw_only=True):
    """
    One GPU, or one MIG instance.

    Attributes:
        position: Of the observation that `present` comes from; `read_at` of the one that `reading` does.
        reading: The last one; None until the first sample, and of a GPU that is only remembered.
        present: The driver sees it; None where it could not be asked.
        missing_at: Since when it is not there, by our clock; `lost_at` the last time that it went.
        activity: SM activity of the last minutes, with the times, since the pods that have it do.
        held_before: Who had it last while nobody has, `released_at` since when.
        last_xid: See `GpuReading`; kept over restarts, because only a change of it is a new XID.
        undated: An XID that already stood there at our first look, at the time of that look: when it came is not known.
        cleared_at: When it was last seen to be reset: it came back, or its error counters began anew.
        was_well: It was seen to be well; what is bad at first sight went bad at an unknown time.
        is_bad: As last judged.
        bad_at: When it went bad; None while it is well, and where that is not known.
        victims: Who had it when it went bad.
    """

    uuid: str
    node: str
    index: int = -1
    product: str = ""
    pci: str = ""
    parent: str = ""
    profile: str = ""
    position: Position = NEVER
    read_at: Position = NEVER
    reading: GpuReading | None = None
    present: bool | None = None
    missing_at: datetime | None = None
    lost_at: datetime | None = None
    activity: tuple[tuple[datetime, float], ...] = ()
    held_before: tuple[Key, ...] = ()
    released_at: datetime | None = None
    xids: tuple[XidRecord, ...] = ()
    last_xid: int | None = None
    undated: XidRecord | None = None
    cleared_at: datetime | None = None
    was_well: bool = False
    is_bad: bool = False
    bad_at: datetime | None = None
    victims: tuple[Key, ...] = ()

    @property
    def name(self) -> str:
        """As people say it: ``GPU 3``."""
        if self.index >= 0:
            return f"{'MIG instance of GPU' if self.parent else 'GPU'} {self.index}"
        return f"the GPU at {self.pci}" if self.pci else f"GPU {self.uuid}"

    def pods(self) -> tuple[Key, ...]:
        """Who has it, by the last reading."""
        return pods_of(self.reading) if self.reading is not None else ()


class Agent(msgspec.Struct, gc=False, kw_only=True):
    """
    The agent of one node.

    Attributes:
        position: Of the newest sample; `whole_at` of the newest that named all GPUs.
        sampled_at: When that sample came, by our clock; `heard_at` the same, XIDs included.
        booted_at: When its node was booted, by our clock; None where it does not tell.
        watched_since: Since when samples come without a gap longer than `SILENT_AFTER`.
        skews: Its clock minus ours, at the last few samples; a sample that was held up looks as if the clock were slow,
            so the largest is the best guess.
        has_holders: Whether the kubelet told it who has what.
        kept: `worth_keeping` as it was last stored.
    """

    node: str
    position: Position = NEVER
    whole_at: Position = NEVER
    sampled_at: datetime | None = None
    heard_at: datetime | None = None
    booted_at: datetime | None = None
    watched_since: datetime | None = None
    skews: tuple[float, ...] = ()
    has_holders: bool = False
    driver: str = ""
    problems: tuple[str, ...] = ()
    gpus: dict[str, Gpu] = msgspec.field(default_factory=dict)
    kept: tuple[object, ...] = ()
    usage: dict[Key, tuple[ContainerUsage, ...]] = msgspec.field(default_factory=dict)

    @property
    def skew_s(self) -> float:
        return max(self.skews, default=0.0)

    def is_silent(self, now: datetime) -> bool:
        return self.sampled_at is None or now >= self.sampled_at + SILENT_AFTER

    def is_deaf(self, now: datetime) -> bool:
        """Not even an XID came lately."""
        return self.heard_at is None or now >= self.heard_at + SILENT_AFTER

    def falls_silent_at(self, now: datetime) -> datetime | None:
        """When it will be silent if nothing comes; None where it is."""
        times = [at + SILENT_AFTER for at in (self.sampled_at, self.heard_at) if at is not None]
        return min((at for at in times if at > now), default=None)

    def cleared_at(self, gpu: Gpu) -> datetime | None:
        """Since when nothing of before counts of a GPU: it was reset, or its node was booted anew."""
        booted = self.booted_at - timedelta(seconds=CLOCKS_AGREE_S) if self.booted_at is not None else None
        return max((at for at in (gpu.cleared_at, booted) if at is not None), default=None)

    def worth_keeping(self) -> tuple[object, ...]:
        """What no sample returns; it is stored when it changes."""
        return tuple(
            (
                g.uuid,
                g.index,
                g.pci,
                g.parent,
                g.xids,
                g.last_xid,
                g.undated,
                g.lost_at,
                g.cleared_at,
                g.was_well,
                g.is_bad,
                g.bad_at,
                g.victims,
            )
            for g in self.gpus.values()
        )

    def whole(self) -> list[Gpu]:
        """GPUs, without the instances that they are cut into; in order of index."""
        return sorted((g for g in self.gpus.values() if not g.parent), key=lambda g: (g.index, g.uuid))

    def parts(self, uuid: str) -> list[Gpu]:
        """MIG instances of a GPU."""
        return [g for g in self.gpus.values() if g.parent == uuid]


def lost_since(gpu: Gpu) -> datetime | None:
    """Since when nothing is told of it any more, its holders included; None while the driver sees it."""
    return gpu.missing_at if gpu.present is False else None


def came_later(created: datetime | None, told_at: datetime | None) -> bool:
    """Whether a pod was made after a GPU's holders were last told; what is not known counts as no."""
    return created is not None and told_at is not None and created > told_at + timedelta(seconds=CLOCKS_AGREE_S)


def with_activity(
    known: Sequence[tuple[datetime, float]], at: datetime, sm_active: float
) -> tuple[tuple[datetime, float], ...]:
    """The readings of the last two minutes with one more; one too soon after the last is left out."""
    if known and at - known[-1][0] < ACTIVE_APART:
        return tuple(known)
    return (*(each for each in known if at - each[0] < ACTIVE_FOR), (at, sm_active))


def pods_of(reading: GpuReading) -> tuple[Key, ...]:
    """Pods that the kubelet gave the device to, sorted."""
    if not reading.holders:
        return ()
    return tuple(sorted({(h.namespace, h.pod) for h in reading.holders}))
