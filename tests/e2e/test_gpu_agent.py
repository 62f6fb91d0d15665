"""
The GPU agent as it runs on a node: the real pynvml on a double of NVIDIA's library, a real kubelet's gRPC, HTTP to the
receiving side of the service.  On a machine with a GPU `make gpu` also runs it against that one.
"""

from __future__ import annotations

import asyncio
import ctypes
import json
import os
import subprocess
import sys
import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from sevenhop.core.gpu_sample import Holder, Throttle
from tests.e2e.gpu_node import FALLEN, Node, node_with_agent
from tests.fakes.kubelet import devices, kubelet, pod
from tests.fakes.nvml_double import UUID, Script, build
from tests.shared import ROOT

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(90)]


@pytest.fixture(scope="session")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The double of a driver of today."""
    return build(tmp_path_factory.mktemp("nvml"))


@pytest.fixture
async def node(tmp_path: Path, library: Path) -> AsyncIterator[Node]:
    async with node_with_agent(tmp_path, library) as node:
        await node.until(lambda: len(node.latest()) == 2, "the first whole sample")
        yield node


GPU_0, GPU_1 = UUID.format(0), UUID.format(1)


async def test_a_healthy_node(node: Node) -> None:
    """Every value of every GPU, and who holds it."""
    await node.until(lambda: node.samples()[-1].seq >= 1, "a sample")
    sample = node.samples()[0]
    assert (sample.node, sample.is_whole, sample.driver, sample.has_holders) == ("gpu-01", True, "550.54.15", True)
    first = sample.readings[0]
    assert (first.index, first.uuid, first.product, first.pci) == (0, GPU_0, "NVIDIA H100 80GB HBM3", "0000:3b:00.0")
    assert (first.memory_used_mib, first.memory_total_mib, first.utilization) == (1000, 81559, 0.4)
    assert (first.power_w, first.temperature_c, first.throttle) == (301.5, 50, Throttle.POWER)
    assert (first.ecc_uncorrected, first.ecc_corrected, first.remap_pending, first.remap_failed) == (0, 2, False, False)
    assert (first.nvlinks_down, first.processes, first.error) == (0, 1, "")
    assert [reading.holders for reading in sample.readings] == [(Holder("prod", "decode-0", "main"),), ()]
    assert sample.received_at is not None
    assert abs((sample.received_at - sample.at).total_seconds()) < 2


async def test_xid_79_and_the_gpu_is_lost(node: Node) -> None:
    """Both ways report it, the GPU keeps its name, and the others go on."""
    node.script.xid(0, 79)
    node.script.gpu(0, lost="1")
    with node.kmsg.open("a") as log:
        log.write(f"{FALLEN}\nNVRM: Xid (broken\n")
    took = await node.until(lambda: node.latest()[GPU_0].error, "the lost GPU")
    await node.until(lambda: {via for _, _, via in node.xids()} == {"nvml", "kmsg"}, "the XID both ways")
    print(f"GPU lost → at the service: {took:.2f} s")
    lost = node.latest()[GPU_0]
    assert (lost.error, lost.product, lost.pci, lost.temperature_c) == (
        "GPU is lost", "NVIDIA H100 80GB HBM3", "0000:3b:00.0", None,
    )  # fmt: skip
    assert lost.holders == (Holder("prod", "decode-0", "main"),)
    assert node.latest()[GPU_1].error == ""
    assert sorted(set(node.xids())) == [(79, "0000:3b:00.0", "kmsg"), (79, "0000:3b:00.0", "nvml")]


@pytest.mark.parametrize(
    ("change", "field", "value"),
    [
        pytest.param({"ecc_u": "3"}, "ecc_uncorrected", 3, id="double-bit errors"),
        pytest.param({"remap": "0,1"}, "remap_failed", True, id="remapping failed"),
        pytest.param({"remap": "1,0"}, "remap_pending", True, id="remapping pending"),
        pytest.param({"throttle": "72"}, "throttle", Throttle.THERMAL, id="too hot"),
        pytest.param({"links": "16/18"}, "nvlinks_down", 2, id="links down"),
    ],
)
async def test_a_change_does_not_wait_for_the_summary(
    node: Node, change: dict[str, str], field: str, value: object
) -> None:
    """It comes alone, within a second or two."""
    node.script.gpu(1, **change)
    took = await node.until(lambda: getattr(node.latest()[GPU_1], field) == value, field, limit_s=8)
    print(f"{field} → at the service: {took:.2f} s")
    assert [reading.uuid for reading in node.samples()[-1].readings] == [GPU_1]


async def test_instances(node: Node) -> None:
    """MIG instances are named with their profile, their GPU and their own use."""
    uuid = "MIG-12345678-0000-0000-0000-000000000000"
    node.holders = pod("small-0", devices("nvidia.com/mig-1g.10gb", uuid))
    node.script.mig(1, 2, uuid=uuid, profile="1g.10gb", gi="9", used="10", total="9856", procs="1", gpm="80,20")
    await node.until(lambda: uuid in node.latest() and node.latest()[uuid].holders, "the instance")
    found = node.latest()[uuid]
    assert (found.parent, found.profile, found.index) == (GPU_1, "1g.10gb", 1)
    assert (found.memory_used_mib, found.memory_total_mib) == (10, 9856)
    assert found.holders == (Holder("prod", "small-0", "main"),)


async def test_activity(tmp_path: Path, library: Path) -> None:
    """SM activity and occupancy between two readings, where the GPU has GPM."""
    async with node_with_agent(tmp_path, library, "--summary", "0.5") as node:
        node.script.gpu(1, gpm=None)
        await node.until(lambda: GPU_0 in node.latest() and node.latest()[GPU_0].sm_active is not None, "activity")
        await node.until(lambda: len(node.samples()) > 4, "more samples")
        assert (node.latest()[GPU_0].sm_active, node.latest()[GPU_0].sm_occupancy) == (0.455, 0.125)
        assert node.latest()[GPU_1].sm_active is None


async def test_a_gpu_whose_calls_hang(node: Node) -> None:
    """The agent stays up and says so; the others go on; it is seen again when it answers."""
    node.script.gpu(0, hang="1")
    took = await node.until(lambda: node.latest()[GPU_0].error, "the time limit")
    print(f"hanging call → at the service: {took:.2f} s")
    assert "did not answer within" in node.latest()[GPU_0].error
    node.script.gpu(1, throttle="72")
    await node.until(lambda: node.latest()[GPU_1].throttle is Throttle.THERMAL, "the other GPU")
    assert node.log.count("GPU 0: NVML did not answer") == 1


async def test_a_slow_gpu_is_not_given_up(node: Node) -> None:
    """Twenty calls of 20 ms are slow, not hung."""
    node.script.gpu(0, slow="20", ecc_u="1")
    await node.until(lambda: node.latest()[GPU_0].ecc_uncorrected == 1, "the slow GPU")
    assert node.latest()[GPU_0].error == ""


async def test_an_old_driver(tmp_path: Path) -> None:
    """What it can tell is told; what it cannot is named once, and unknown."""
    async with node_with_agent(tmp_path, build(tmp_path / "old", old=True)) as node:
        node.script.gpu(0, retired="1")
        await node.until(lambda: node.latest().get(GPU_0) and node.latest()[GPU_0].remap_pending, "a retired page")
        first = node.latest()[GPU_0]
        assert (first.throttle, first.processes, first.temperature_c) == (Throttle.POWER, 1, 50)
        assert (first.sm_active, first.remap_failed) == (None, None)
        problem = next(each for each in node.samples()[-1].problems if "cannot tell" in each)
        assert "nvmlDeviceGetRemappedRows" in problem
        assert "nvmlGpmQueryDeviceSupport" in problem
        assert "Throttle" not in problem
        await asyncio.sleep(1)
        assert node.log.count("cannot tell") == 1


async def test_no_driver_at_all(tmp_path: Path) -> None:
    """The agent stays up, and says what is missing."""
    async with node_with_agent(tmp_path, None) as node:
        await node.until(node.samples, "a sample that says why")
        sample = node.samples()[0]
        if sample.readings:
            pytest.skip("this machine has a driver")
        assert not sample.is_whole
        assert "libnvidia-ml.so.1 is not there" in sample.problems[0]
        with node.kmsg.open("a") as log:
            log.write(f"{FALLEN}\n")
        await node.until(node.xids, "an XID from the kernel log all the same")


async def test_an_outage_of_the_service(node: Node) -> None:
    """What happened meanwhile is told when it is back, XIDs each once, and the agent ends when it is told to."""
    assert node._server is not None
    address = node._server.address.removeprefix("http://")
    await node.away()
    for xid in (13, 31, 43):
        node.script.xid(0, xid)
        await asyncio.sleep(0.1)
    node.script.gpu(0, ecc_u="5")
    await asyncio.sleep(1.5)
    node.events.clear()
    await node.serve(address)
    await node.until(lambda: len(node.xids()) == 3, "the XIDs", limit_s=40)
    await node.until(lambda: node.latest().get(GPU_0) and node.latest()[GPU_0].ecc_uncorrected == 5, "the change")
    assert [xid for xid, _, _ in node.xids()] == [13, 31, 43]
    assert [event.seq for event in node.events] == sorted(event.seq for event in node.events)


async def test_what_the_agent_costs(tmp_path: Path, library: Path) -> None:
    """Its processes' CPU and memory with eight GPUs, at its usual pace; printed, and bounded generously."""
    node = Node(tmp_path, library)
    node.script = Script(tmp_path / "nvml.txt", gpus=8)
    async with kubelet(tmp_path / "kubelet.sock", lambda: node.holders):
        node.start(await node.serve(), "--check", "2")
        try:
            await node.until(lambda: len(node.latest()) == 8, "eight GPUs")
            assert node.process is not None
            family = [node.process.pid, *_children(node.process.pid)]
            before, began = sum(map(_cpu_s, family)), time.monotonic()
            await asyncio.sleep(10)
            share = (sum(map(_cpu_s, family)) - before) / (time.monotonic() - began)
            memory = sum(map(_pss_mib, family))
            print(f"8 GPUs: {share:.1%} of a core, {memory:.0f} MiB in {len(family)} processes")
            assert len(family) == 2
            assert share < 0.5
            assert memory < 250
        finally:
            node.process.terminate()  # type: ignore[union-attr]
            assert node.process.wait(10) == 0  # type: ignore[union-attr]
            await node.away()


@pytest.fixture
def real_gpu() -> None:
    """Skips, by name, where there is no NVIDIA driver."""
    try:
        ctypes.CDLL("libnvidia-ml.so.1")
    except OSError:
        pytest.skip("no NVIDIA driver on this machine")


def test_a_real_gpu(real_gpu: None) -> None:
    """Its own driver, unscripted: read twice, and what was seen is printed."""
    command = [sys.executable, "-m", "sevenhop.cli.main", "gpu-agent", "--once", "--node", "this"]
    began = time.monotonic()
    answer = subprocess.run(command, cwd=ROOT, capture_output=True, timeout=60, check=True)
    print(f"{time.monotonic() - began:.1f} s\n{answer.stdout.decode()}\n{answer.stderr.decode()}")
    events: list[dict[str, Any]] = json.loads(answer.stdout)
    last = events[-1]
    assert last["driver"]
    assert last["is_whole"]
    for reading in last["readings"]:
        assert reading["uuid"].startswith(("GPU-", "MIG-"))
        assert reading["error"] == ""
        if not reading["parent"]:
            assert reading["product"]
            assert 0 < reading["memory_used_mib"] <= reading["memory_total_mib"]
            assert 0 < reading["temperature_c"] < 120


def _children(pid: int) -> list[int]:
    text = Path(f"/proc/{pid}/task/{pid}/children").read_text()
    return [int(each) for each in text.split()]


def _cpu_s(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def _pss_mib(pid: int) -> float:
    """Memory with what is shared counted once."""
    rows = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    return int(next(row for row in rows if row.startswith("Pss:")).split()[1]) / 1024
