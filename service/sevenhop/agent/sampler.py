"""
From readings to what is sent: changes at once, one summary of the node every 15 s, XIDs one by one.

Holds no clock and no connection; `agent.py` calls it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from datetime import datetime, timedelta

import msgspec

from sevenhop.agent.changes import changed, with_links
from sevenhop.agent.holders import match
from sevenhop.agent.kmsg import KmsgXid
from sevenhop.agent.nvml import NodeReading
from sevenhop.agent.nvml_told import Xid
from sevenhop.agent.pod_resources import Device
from sevenhop.core.events import GpusSampled, XidSeen
from sevenhop.core.gpu_sample import ContainerUsage, GpuReading

SUMMARY = timedelta(seconds=15)

MAX_PROBLEMS = 32
MAX_PROBLEM = 300


class Sampler:
    """
    Args:
        node: Name of the Kubernetes node.
        epoch: The agent's start, in milliseconds since 1970: greater than that of any agent before on this node.
    """

    def __init__(self, node: str, epoch: int, summary: timedelta = SUMMARY) -> None:
        self._node = node
        self._epoch = epoch
        self._summary = summary
        self._seq = 0
        self._told: dict[str, GpuReading] = {}
        self._told_problems: tuple[str, ...] | None = None
        self._told_has_holders = True
        self._summary_at: datetime | None = None
        self._most_up: dict[str, int] = {}

    def join(
        self, read: NodeReading, devices: Iterable[Device] | None
    ) -> tuple[tuple[GpuReading, ...], bool, tuple[str, ...]]:
        """
        Readings with their holders and links, whether holders are known, and what could not be placed.

        Args:
            devices: None where the kubelet does not say.
        """
        readings = with_links(read.readings, read.links_up, self._most_up)
        if devices is None:
            return readings, False, ()
        held = match(devices, readings, read.minors)
        joined = tuple(msgspec.structs.replace(each, holders=held.by.get(each.uuid, ())) for each in readings)
        return joined, held.is_known, held.vague

    def sample(
        self,
        at: datetime,
        read: NodeReading,
        readings: tuple[GpuReading, ...],
        *,
        has_holders: bool,
        up_s: float | None = None,
        problems: Iterable[str] = (),
        usage: Callable[[], tuple[ContainerUsage, ...]] = tuple,
    ) -> GpusSampled | None:
        """
        What is to be sent now; None if the summary is not due and nothing that matters changed.

        `usage` is asked for summaries alone, so that CPU is averaged from one to the next.

        A GPU that vanished, and a problem that came or went, need a whole sample: they are told at once as well.
        """
        said = tuple(dict.fromkeys(problem[:MAX_PROBLEM] for problem in problems))[:MAX_PROBLEMS]
        new = changed(self._told, readings)
        has_vanished = read.is_whole and bool(self._told.keys() - {each.uuid for each in readings})
        is_due = (
            self._summary_at is None
            or at - self._summary_at >= self._summary
            or at < self._summary_at  # the clock was set back
            or has_vanished
            or has_holders != self._told_has_holders
            or said != self._told_problems
        )
        if not is_due and not new:
            return None
        if is_due:
            self._summary_at = at
            self._told_problems, self._told_has_holders = said, has_holders
            if read.is_whole:
                self._told.clear()
        self._told.update((each.uuid, each) for each in readings)
        return GpusSampled(
            at=at,
            epoch=self._epoch,
            seq=self._next(),
            node=self._node,
            is_whole=is_due and read.is_whole,
            readings=readings if is_due else new,
            usage=usage() if is_due else (),
            has_holders=has_holders,
            driver=read.driver,
            problems=said,
            up_s=up_s,
        )

    def xid_by_nvml(self, at: datetime, xid: Xid) -> XidSeen:
        return XidSeen(
            at=at, epoch=self._epoch, seq=self._next(), node=self._node, xid=xid.xid, pci=xid.pci, uuid=xid.uuid
        )

    def xid_by_kmsg(self, now: datetime, found: KmsgXid) -> XidSeen:
        return XidSeen(
            at=now - timedelta(seconds=found.ago_s),
            epoch=self._epoch,
            seq=self._next(),
            node=self._node,
            xid=found.line.xid,
            pci=found.line.pci,
            uuid=found.uuid,
            pid=found.line.pid,
            text=found.line.text,
            via="kmsg",
        )

    def _next(self) -> int:
        self._seq += 1
        return self._seq
