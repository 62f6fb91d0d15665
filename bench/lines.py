"""
Watch lines to rules, on one core.

    bytes → lines → decode → inventory → facts → 100 rules → incidents

against nothing but the decoding of the same lines, in the same process, turn by turn: what else runs on the machine
slows both.
"""

from __future__ import annotations

import gc
import time
from collections.abc import Sequence
from datetime import timedelta

from bench.engines import START, Feed, new_engine
from bench.figures import Figure, Result, median
from bench.generate import Every, deployment, mixed_lines, node, pod
from sevenhop.core.engine import Engine
from sevenhop.core.events import Event
from sevenhop.core.objects.decode import decode
from sevenhop.core.objects.kinds import KINDS
from sevenhop.runtime.embedded import SLICE_EVENTS
from sevenhop.runtime.garbage import YOUNG
from sevenhop.sources.kubernetes.lines import LineSplitter, guess_line

NODES = 1000
DEPLOYMENTS = 500
REPLICAS = 8
ROUND_S = 1.0
"""Of the engine's own time in one round, however long it takes: time moves on as it does with events coming in."""

CHUNK_BYTES = 128 * 1024
"""About what one read of a busy socket gives."""

_POD = KINDS["Pod"]


def measure(*, quick: bool) -> list[Result]:
    """Every mix; the engine is built anew for each."""
    rounds, lines = (3, 2_000) if quick else (7, 6_000)
    return [
        *_measure(Every.MIXED, rounds, lines, rate=10_000, share=30),
        *_measure(Every.FACTS, rounds, lines, rate=None, share=10),
        *_measure(Every.ALERTS, rounds, lines // 2, rate=None, share=None),
    ]


def cluster_objects(nodes: int, deployments: int, replicas: int) -> list[dict[str, object]]:
    """Nodes, Deployments with their ReplicaSets, and pods of two GPUs that all run."""
    made: list[dict[str, object]] = [node(number) for number in range(nodes)]
    for of in range(deployments):
        made += deployment(of, replicas, gpus=2)
        made += [
            pod(number, of, gpus=2, node_name=f"node-{number // 4 % nodes:05}")
            for number in range(of * replicas, (of + 1) * replicas)
        ]
    return made


def _measure(every: Every, rounds: int, count: int, *, rate: float | None, share: float | None) -> list[Result]:
    engine, feed = new_engine(), Feed()
    feed.list_all(engine, cluster_objects(NODES, DEPLOYMENTS, REPLICAS))
    lines = list(
        mixed_lines(rounds * count, deployments=DEPLOYMENTS, replicas=REPLICAS, every=every, per_s=count / ROUND_S)
    )
    gc.set_threshold(YOUNG, 20, 100)  # as the service has it
    gc.collect()
    gc.freeze()
    decode_rates, rates, shares = [], [], []
    for number in range(rounds):
        part = lines[number * count : (number + 1) * count]
        chunks = _chunks(part)
        alone_s = _decode(part)
        whole_s = _run(engine, feed, chunks, number)
        decode_rates.append(count / alone_s)
        rates.append(count / whole_s)
        shares.append(100 * alone_s / whole_s)
    size = sum(map(len, lines)) / len(lines) / 1024
    return [
        Figure(bench="lines", what=f"{every}: decode alone", value=median(decode_rates), unit="events/s",
               note=f"{size:.1f} KiB a line"),
        Figure(bench="lines", what=f"{every}: to {len(engine.alerts.rules)} rules", value=median(rates),
               unit="events/s", aim=rate, note=f"best of {rounds}: {max(rates):,.0f}"),
        Figure(bench="lines", what=f"{every}: of the decode rate", value=median(shares), unit="%", aim=share,
               note=f"best of {rounds}: {max(shares):.0f} %"),
    ]  # fmt: skip


def _chunks(lines: Sequence[bytes]) -> list[bytes]:
    whole = b"".join(lines)
    return [whole[at : at + CHUNK_BYTES] for at in range(0, len(whole), CHUNK_BYTES)]


def _decode(lines: Sequence[bytes]) -> float:
    begin = time.process_time()
    for line in lines:
        guess = guess_line(line[:-1])
        if guess is None:
            raise ValueError(f"not a watch line: {line[:40]!r}")
        decode(_POD, guess[1])
    return time.process_time() - begin


def _run(engine: Engine, feed: Feed, chunks: Sequence[bytes], number: int) -> float:
    splitter, pods = LineSplitter(), feed.kinds["Pod"]
    waiting: list[Event] = []
    at = START + timedelta(seconds=ROUND_S * number)
    begin = time.process_time()
    for chunk in chunks:
        at += timedelta(seconds=ROUND_S / len(chunks))
        for line in splitter.feed(chunk):
            pods.line(line, at, waiting)
        while len(waiting) >= SLICE_EVENTS:
            engine.handle(waiting[:SLICE_EVENTS], at)
            waiting = waiting[SLICE_EVENTS:]
    engine.handle(waiting, at)
    return time.process_time() - begin
