"""The agent: reads, decides what to send, and sends, until it is stopped.  No part's failure ends another."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from collections.abc import Callable, Coroutine
from datetime import datetime
from pathlib import Path
from typing import Any

import msgspec

from sevenhop.agent.buffer import Buffer
from sevenhop.agent.cgroups import Cgroups
from sevenhop.agent.kmsg import KMSG, Kmsg, KmsgXid
from sevenhop.agent.nvml import Nvml
from sevenhop.agent.nvml_told import Xid
from sevenhop.agent.pod_resources import Device, PodResources, PodResourcesError
from sevenhop.agent.sampler import Sampler
from sevenhop.agent.saying import Said
from sevenhop.agent.sender import Sender

log = logging.getLogger("sevenhop.agent")

CHECK_S = 2.0
"""So often all GPUs are read to see whether something changed; XIDs do not wait for it."""

SETTLE_S = 0.2
"""Between two readings at least, however many XIDs come: a burst is dozens of lines."""


class Counts(msgspec.Struct, frozen=True, kw_only=True):
    """What the agent says of itself."""

    readings: int
    gpus: int
    sent: int
    rejected: int
    waiting: int
    dropped: dict[str, int]
    malformed_lines: int
    overwritten_lines: int
    replaced_processes: int
    abandoned_processes: int
    problems: tuple[str, ...]


def _up_s() -> float | None:
    """Since the node was booted; it does not depend on its clock being right."""
    boottime = getattr(time, "CLOCK_BOOTTIME", None)
    return round(time.clock_gettime(boottime), 1) if boottime is not None else None


class Agent:
    """Joins the parts; see each of them for what it does."""

    def __init__(
        self,
        sampler: Sampler,
        sender: Sender,
        buffer: Buffer,
        clock: Callable[[], datetime],
        *,
        pod_resources: PodResources,
        cgroups: Cgroups,
        kmsg: Path = KMSG,
        nvml: Nvml | None = None,
        check_s: float = CHECK_S,
    ) -> None:
        self._sampler = sampler
        self._sender = sender
        self._buffer = buffer
        self._clock = clock
        self._pod_resources = pod_resources
        self._cgroups = cgroups
        self._kmsg = Kmsg(self.hear_kmsg, kmsg)
        self._nvml = nvml or Nvml(self.hear_nvml, self.stir)
        self._check_s = check_s
        self._stirred = asyncio.Event()
        self._said = Said()
        self._gpus = 0
        self._readings = 0
        self._problems: tuple[str, ...] = ()

    async def run(self) -> None:
        """Until cancelled."""
        parts: list[Coroutine[Any, Any, None]] = [self._sender.run(), self._kmsg.run(), self._check()]
        try:
            async with asyncio.TaskGroup() as group:
                for part in parts:
                    group.create_task(part)
        finally:
            await self.close()

    async def close(self) -> None:
        """End what was started for reading."""
        await self._nvml.close()
        await self._pod_resources.close()

    def hear_nvml(self, xid: Xid) -> None:
        """The driver told NVML."""
        self._send(self._sampler.xid_by_nvml(self._clock(), xid))
        self.stir()

    def hear_kmsg(self, found: KmsgXid) -> None:
        """The driver wrote it into the kernel log."""
        self._send(self._sampler.xid_by_kmsg(self._clock(), found))
        self.stir()

    def stir(self) -> None:
        """Read now: something happened."""
        self._stirred.set()

    def counts(self) -> Counts:
        return Counts(
            readings=self._readings,
            gpus=self._gpus,
            sent=self._sender.sent,
            rejected=self._sender.rejected,
            waiting=len(self._buffer),
            dropped=dict(self._buffer.dropped),
            malformed_lines=self._kmsg.malformed,
            overwritten_lines=self._kmsg.lost,
            replaced_processes=self._nvml.replaced,
            abandoned_processes=self._nvml.abandoned,
            problems=self._problems,
        )

    async def check(self) -> None:
        """Read everything once, and send what is due."""
        read, told = await asyncio.gather(self._nvml.read(), self._devices())
        devices, refused = told
        readings, has_holders, vague = self._sampler.join(read, devices)
        holders = {holder for reading in readings for holder in reading.holders}
        about_node = [*read.problems, refused, *vague, self._cgroups.problem, self._kmsg.problem]
        problems = tuple(problem for problem in about_node if problem)
        self._readings += 1
        self._gpus = len(readings)
        self._problems = tuple(problem for problem in (*problems, self._sender.problem) if problem)
        self._said.update(self._problems)
        sample = self._sampler.sample(
            self._clock(),
            read,
            readings,
            has_holders=has_holders,
            up_s=_up_s(),
            problems=problems,
            usage=lambda: self._cgroups.usage(holders, asyncio.get_running_loop().time()),
        )
        if sample is not None:
            self._send(sample)

    async def _check(self) -> None:
        while True:
            self._stirred.clear()
            await self.check()
            await asyncio.sleep(min(SETTLE_S, self._check_s))
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(self._check_s):
                    await self._stirred.wait()

    async def _devices(self) -> tuple[tuple[Device, ...] | None, str]:
        try:
            return await self._pod_resources.devices(), ""
        except PodResourcesError as error:
            return None, str(error)

    def _send(self, event: Any) -> None:
        self._buffer.add(event)
        self._sender.wake()
