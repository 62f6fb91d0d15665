"""
GPU samples: 2,000 nodes with 8 GPUs each, every agent every 15 seconds, on one worker with 100 rules.

Each sample is decoded from its JSON, and each of its readings says something new: load and memory tremble.  The lag is
that of the worst moment, when all agents send in the same instant: how long until the last of them is told.
"""

from __future__ import annotations

import gc
import time
import tracemalloc
from collections.abc import Iterator
from datetime import datetime, timedelta
from random import Random

import msgspec

from bench.engines import START, Feed, new_engine
from bench.figures import Figure, Result, median
from bench.generate import PRODUCT, deployment, node, pod
from sevenhop.core.engine import Engine
from sevenhop.core.events import GpusSampled
from sevenhop.core.gpu_sample import GpuReading, Holder, Throttle

GPUS = 8
EVERY_S = 15
BATCH = 100
_decoder = msgspec.json.Decoder(GpusSampled)


def measure(*, quick: bool) -> list[Result]:
    """Rounds of samples of all agents; a tenth of the nodes when `quick`."""
    nodes, rounds = (200, 3) if quick else (2_000, 3)
    engine, feed = new_engine(), Feed()
    feed.list_all(engine, gpu_nodes(nodes))
    pods = dict(enumerate(sorted(key for key, row in engine.inventory.state.rows.items() if row.node)))
    chance = Random(7)
    first = list(_lines(nodes, 0, pods, chance))
    gc.collect()
    tracemalloc.start()
    before = tracemalloc.get_traced_memory()[0]
    _handle(engine, first, START + timedelta(seconds=EVERY_S))
    grown_mb = (tracemalloc.get_traced_memory()[0] - before) / 2**20
    tracemalloc.stop()
    gc.collect()
    gc.freeze()
    per_s: list[float] = []
    lags: list[float] = []
    decode: list[float] = []
    for number in range(1, rounds + 1):
        lines = list(_lines(nodes, number, pods, chance))
        begin = time.process_time()
        for line in lines:
            _decoder.decode(line)
        decode.append(time.process_time() - begin)
        took = _handle(engine, lines, START + timedelta(seconds=EVERY_S * (number + 1)))
        lags.append(took)
        per_s.append(nodes / took)
    needed = nodes / EVERY_S
    name = f"{nodes:,} nodes × {GPUS} GPUs"
    return [
        Figure(bench="gpu", what=f"{name}: samples told", value=median(per_s), unit="samples/s", aim=needed,
               note=f"{needed:.0f}/s come; every reading changes, {BATCH} a step"),
        Figure(bench="gpu", what=f"{name}: lag when all agents send at once", value=median(lags), unit="s",
               aim=float(EVERY_S), better="less", note="the aim is the time until they send again"),
        Figure(bench="gpu", what=f"{name}: of the pure decode rate", value=median(decode) / median(lags), unit="ratio"),
        Figure(bench="gpu", what=f"{name}: memory for GPUs and their facts", value=grown_mb, unit="MiB", better="less"),
    ]  # fmt: skip


def gpu_nodes(nodes: int) -> list[dict[str, object]]:
    """Full nodes: four pods of one model with two GPUs each."""
    objects: list[dict[str, object]] = [node(number) for number in range(nodes)]
    for number in range(nodes):
        objects += deployment(number, 4, gpus=2)
        objects += [
            pod(4 * number + index, number, gpus=2, node_name=f"node-{number:05}") for index in range(GPUS // 2)
        ]
    return objects


def sample(number: int, seq: int, at: datetime, pods: dict[int, tuple[str, str]], chance: Random) -> GpusSampled:
    """What the agent of a node tells; `pods` are those of all nodes, in order."""
    readings = tuple(_reading(number, index, pods, chance) for index in range(GPUS))
    return GpusSampled(
        at=at, received_at=at, epoch=1, seq=seq, node=f"node-{number:05}", is_whole=True, readings=readings,
        driver="570.124.06",
    )  # fmt: skip


def _handle(engine: Engine, lines: list[bytes], at: datetime) -> float:
    """Seconds of processor time until all of them are told."""
    begin = time.process_time()
    for number in range(0, len(lines), BATCH):
        engine.handle([_decoder.decode(line) for line in lines[number : number + BATCH]], at)
    return time.process_time() - begin


def _lines(nodes: int, seq: int, pods: dict[int, tuple[str, str]], chance: Random) -> Iterator[bytes]:
    at = START + timedelta(seconds=EVERY_S * (seq + 1))
    for number in range(nodes):
        yield msgspec.json.encode(sample(number, seq, at, pods, chance))


def _reading(number: int, index: int, pods: dict[int, tuple[str, str]], chance: Random) -> GpuReading:
    namespace, name = pods[4 * number + index // 2]
    return GpuReading(
        index=index, uuid=f"GPU-{number:05}-{index}", product=PRODUCT, pci=f"0000:{index + 16:02x}:00.0",
        memory_used_mib=chance.randrange(20_000, 80_000), memory_total_mib=81_559, utilization=chance.random(),
        sm_active=chance.random(), sm_occupancy=chance.random(), power_w=chance.uniform(100, 700), temperature_c=60,
        throttle=Throttle.NONE, ecc_uncorrected=0, ecc_corrected=0, remap_pending=False, remap_failed=False,
        nvlinks_down=0, processes=1, holders=(Holder(namespace, name, "main"),),
    )  # fmt: skip
