"""
What the GPU agent itself costs on a node with eight GPUs, at its usual pace: both of its processes.

The real agent and pynvml, on a double of NVIDIA's library and a kubelet's gRPC; what a real driver does in a call comes
on top.
"""

from __future__ import annotations

import asyncio
import shutil
import tempfile
import time
from pathlib import Path

from bench.figures import Figure, Result, Skipped
from bench.scaled_bed import cpu_s
from tests.e2e.gpu_node import Node
from tests.fakes.kubelet import kubelet
from tests.fakes.nvml_double import Script, build

GPUS = 8
REQUESTED_MIB, REQUESTED_PERCENT = 64.0, 1.0
"""What the chart asks for the agent: ``memory: 64Mi, cpu: 10m``."""


def measure(*, quick: bool) -> list[Result]:
    """A minute; 20 s when `quick`."""
    if shutil.which("cc") is None:
        return [Skipped(bench="agent", what="the agent on a double of NVML", why="no C compiler")]
    with tempfile.TemporaryDirectory() as name:
        return asyncio.run(_measure(Path(name), 20.0 if quick else 60.0))


async def _measure(folder: Path, seconds: float) -> list[Result]:
    node = Node(folder, build(folder / "nvml"))
    node.script = Script(folder / "nvml.txt", gpus=GPUS)
    async with kubelet(folder / "kubelet.sock", lambda: node.holders):
        node.start(await node.serve(), "--check", "2")
        try:
            await node.until(lambda: len(node.latest()) == GPUS, "all GPUs")
            assert node.process is not None
            family = [node.process.pid, *_children(node.process.pid)]
            used, began = sum(map(cpu_s, family)), time.monotonic()
            await asyncio.sleep(seconds)
            share = 100 * (sum(map(cpu_s, family)) - used) / (time.monotonic() - began)
            memory = sum(map(_pss_mib, family))
        finally:
            if node.process is not None:
                node.process.terminate()
                await asyncio.to_thread(node.process.wait, 10)
            await node.away()
    name = f"{GPUS} GPUs"
    return [
        Figure(bench="agent", what=f"{name}: CPU", value=share, unit="% of a core", aim=REQUESTED_PERCENT,
               better="less", note=f"a reading each 2 s, over {seconds:.0f} s, {len(family)} processes"),
        Figure(bench="agent", what=f"{name}: memory", value=memory, unit="MiB", aim=REQUESTED_MIB, better="less",
               note="what is shared counted once; the aims are the chart's requests"),
    ]  # fmt: skip


def _children(pid: int) -> list[int]:
    return [int(each) for each in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def _pss_mib(pid: int) -> float:
    rows = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    return int(next(row for row in rows if row.startswith("Pss:")).split()[1]) / 1024
