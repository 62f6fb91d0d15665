"""A node with a double of NVIDIA's library, a kubelet's gRPC and a real agent; and a service that hears it."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from datetime import UTC, datetime
from pathlib import Path

from sevenhop.core.events import Event, GpusSampled, XidSeen
from sevenhop.core.gpu_sample import GpuReading
from sevenhop.sources.gpu_push.receiver import GpuPush
from sevenhop.sources.gpu_push.senders import NODE
from sevenhop.sources.gpu_push.settings import GpuPushSettings
from sevenhop.sources.kubernetes.identity import UserInfo
from sevenhop.web.server import WebServer
from tests.fakes.kubelet import devices, kubelet, pod
from tests.fakes.nvml_double import UUID, Script
from tests.shared import ROOT

FALLEN = "NVRM: Xid (PCI:0000:3b:00): 79, pid='<unknown>', name=<unknown>, GPU has fallen off the bus."


class Node:
    """A node with its agent, and the service that hears it."""

    def __init__(self, folder: Path, library: Path | None, name: str = "gpu-01") -> None:
        self.folder = folder
        self.script = Script(folder / "nvml.txt")
        self.kmsg = folder / "kmsg"
        self.kmsg.touch()
        self.events: list[Event] = []
        self.holders = pod("decode-0", devices("nvidia.com/gpu", UUID.format(0)))
        (folder / "token").write_text("good")
        path = {} if library is None else {"LD_LIBRARY_PATH": str(library)}
        self._environment = {
            **os.environ,
            **path,
            "SEVENHOP_FAKE_NVML": str(folder / "nvml.txt"),
            "NODE_NAME": name,
        }
        self.process: subprocess.Popen[bytes] | None = None
        self._server: WebServer | None = None

    async def serve(self, listen: str = "127.0.0.1:0") -> str:
        async def review(_: str) -> UserInfo:
            return UserInfo(username="system:serviceaccount:sevenhop:agent", extra={NODE: ["gpu-01"]})

        async def emit(events: list[Event]) -> None:
            self.events += events

        push = GpuPush(GpuPushSettings(accounts=["sevenhop/agent"]), review, emit, lambda: datetime.now(UTC))
        self._server = WebServer(listen, posts=push.routes())
        await self._server.start()
        return self._server.address

    async def away(self) -> None:
        """The service is gone."""
        assert self._server is not None
        await self._server.close()

    def start(self, address: str, *more: str) -> None:
        command = [sys.executable, "-m", "sevenhop.cli.main", "gpu-agent", "--service", address, "--check", "0.3"]
        places = ("--token", "token"), ("--kmsg", "kmsg"), ("--pod-resources", "kubelet.sock")
        for option, name in places:
            command += [option, str(self.folder / name)]
        with (self.folder / "log").open("wb") as log:
            self.process = subprocess.Popen([*command, *more], cwd=ROOT, env=self._environment, stderr=log)

    @property
    def log(self) -> str:
        return (self.folder / "log").read_text("utf-8", "replace")

    def samples(self) -> list[GpusSampled]:
        return [event for event in self.events if isinstance(event, GpusSampled)]

    def latest(self) -> dict[str, GpuReading]:
        """The last reading of each GPU, over whole samples and parts."""
        found: dict[str, GpuReading] = {}
        for sample in self.samples():
            found = {} if sample.is_whole else found
            found |= {reading.uuid: reading for reading in sample.readings}
        return found

    def xids(self) -> list[tuple[int, str, str]]:
        return [(event.xid, event.pci, event.via) for event in self.events if isinstance(event, XidSeen)]

    async def until(self, true: Callable[[], object], what: str, limit_s: float = 20) -> float:
        """Wait for it; returns the seconds that it took."""
        began = time.monotonic()
        while not true():
            assert self.process is not None
            assert self.process.poll() is None, self.log
            assert time.monotonic() - began < limit_s, (
                f"not within {limit_s} s: {what}\n{self.log}\n{self.samples()[-1:]}"
            )
            await asyncio.sleep(0.02)
        return time.monotonic() - began


@asynccontextmanager
async def node_with_agent(folder: Path, library: Path | None, *more: str) -> AsyncIterator[Node]:
    node = Node(folder, library)
    async with AsyncExitStack() as stack:
        await stack.enter_async_context(kubelet(folder / "kubelet.sock", lambda: node.holders))
        address = await node.serve()
        stack.push_async_callback(node.away)
        node.start(address, *more)
        try:
            yield node
        finally:
            assert node.process is not None
            node.process.terminate()
            try:
                node.process.wait(10)
            except subprocess.TimeoutExpired:
                node.process.kill()
                raise
