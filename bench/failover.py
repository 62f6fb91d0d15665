"""
A worker is killed while 60 changes are under way and 60 more follow: until the other one serves all, and all are told.

The stage is that of the failover tests: three brokers, Redis, two workers, six partitions, four clusters.  The tests do
much more (`make soak`); this one only puts the seconds beside the other figures.
"""

from __future__ import annotations

import tempfile
import time
from pathlib import Path

from bench.figures import Figure, Result, median
from bench.scaled_bed import or_skipped
from sevenhop.runtime.scaled.quiet import quieten
from tests.e2e.scaled_play import CLUSTERS, Play
from tests.e2e.scaled_stage import Stage, stage, wait_until
from tests.testbed.kafka import Kafka
from tests.testbed.redis import Redis

WITHIN_S = 15.0
_PATIENCE_S = 90.0


def measure(*, quick: bool) -> list[Result]:
    """Five rounds; two when `quick`."""
    with tempfile.TemporaryDirectory() as name:
        return or_skipped("failover", "a worker is killed", lambda: _measure(Path(name), 2 if quick else 5))


def _measure(folder: Path, rounds: int) -> list[Result]:
    quieten()
    served: list[float] = []
    told: list[float] = []
    with Redis() as redis, Kafka(3) as kafka, stage(folder, kafka, redis, "failover", CLUSTERS) as at:
        at.add_worker()
        at.add_worker()
        play = Play(at)
        for cluster, edge in at.edges.items():
            edge.list_all(play.nodes(cluster))
        for number in range(rounds):
            wait_until("both work", lambda: at.served() and _both(at), _PATIENCE_S, at.logs)
            play.change(number % 2)
            began = time.monotonic()
            victim = max(at.workers, key=lambda worker: len(worker.partitions()))
            victim.kill()
            play.change((number + 1) % 2)
            wait_until("served", lambda: at.served(without=[victim]), _PATIENCE_S, at.logs)  # noqa: B023  used at once
            served.append(time.monotonic() - began)
            wait_until("told", lambda: not play.lost(), _PATIENCE_S, at.logs)
            told.append(time.monotonic() - began)
            victim.start()
        doubled = len(play.doubled())
    return [
        Figure(bench="failover", what="a worker is killed: served again", value=median(served), unit="s", aim=WITHIN_S,
               better="less", note=f"{rounds} rounds, longest {max(served):.1f} s; kafka.session_timeout is 6 s of it"),
        Figure(bench="failover", what="a worker is killed: all told", value=median(told), unit="s", better="less",
               note=f"120 changes a round; lost 0, doubled {doubled}"),
    ]  # fmt: skip


def _both(at: Stage) -> bool:
    return all(worker.partitions() for worker in at.workers)
