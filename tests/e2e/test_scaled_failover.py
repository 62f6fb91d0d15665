"""
What breaks under the scaled runtime, and what people are told meanwhile: each message once, and soon.

Three brokers, one Redis, two workers as processes.  In each round half of all nodes change state while a part of the
stage is broken; then the last thing told of each node must be true (else lost), and no state may have been told anew
without a change (doubled).  A delivery that is repeated with its own id is not doubled: a webhook dedups by it.

    SEVENHOP_ROUNDS=soak   fifty rounds, at least eight of each kind; three by default, of the kinds in turn
"""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import time
from collections.abc import Callable, Iterator

import pytest

from tests.e2e.scaled_play import CLUSTERS, Play
from tests.e2e.scaled_stage import PlayedEdge, Stage, WorkerProcess, stage, wait_until
from tests.saying import Say
from tests.testbed.kafka import Kafka
from tests.testbed.redis import Redis

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(3600)]

SERVED_WITHIN_S = 15.0
TOLD_WITHIN_S = 60.0
STOPPED_S = 30.0
KINDS = ("kill", "stop", "broker", "redis", "redis-forgets", "edge")
IS_SOAK = os.environ.get("SEVENHOP_ROUNDS") == "soak"
ROUNDS = {kind: 9 if kind in ("kill", "redis") else 8 for kind in KINDS} if IS_SOAK else dict.fromkeys(KINDS, 3)


@pytest.fixture(scope="module")
def play(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Play]:
    """A stage that plays: two workers, all partitions served, everything listed and well."""
    folder = tmp_path_factory.mktemp("scaled")
    with Redis() as redis, Kafka(3) as kafka, stage(folder, kafka, redis, "failover", CLUSTERS) as at:
        at.add_worker()
        at.add_worker()
        playing = Play(at)
        for cluster, edge in at.edges.items():
            edge.list_all(playing.nodes(cluster))
        wait_until("served", lambda: at.served() and all(map(has_work, at.workers)), 90, at.logs)
        yield playing


def busiest(at: Stage) -> WorkerProcess:
    return max(at.workers, key=lambda worker: len(worker.partitions()))


def has_work(worker: WorkerProcess) -> bool:
    """Whether it has joined the others; a round begins with two at work."""
    return bool(worker.partitions())


def break_it(kind: str, play: Play, round_number: int) -> tuple[Callable[[], bool], Callable[[], None]]:
    """
    Break one part.

    Returns:
        Whether everything is served again, and what mends the part for the next round.  Where no partition moves, what
        is asked is whether a change made after the break was told, in each cluster.
    """
    at = play.at
    if kind == "kill":
        victim = busiest(at)
        victim.kill()
        return (lambda: at.served(without=[victim])), victim.start
    if kind == "stop":
        victim = busiest(at)
        victim.signal(signal.SIGSTOP)
        stopped_at = time.monotonic()

        def go_on() -> None:
            time.sleep(max(0.0, stopped_at + STOPPED_S - time.monotonic()))
            victim.signal(signal.SIGCONT)
            time.sleep(3)

        return (lambda: at.served(without=[victim])), go_on
    if kind == "broker":
        broker = at.kafka.brokers[round_number % 3]
        broker.kill()
        return (lambda: at.served() and play.is_heard()), broker.start  # its partitions stay with the workers
    if kind in ("redis", "redis-forgets"):
        at.redis.crash()
        if kind == "redis-forgets":
            shutil.rmtree(at.redis.folder / "appendonlydir", ignore_errors=True)
        time.sleep(2)
        at.redis.come_back()
        return (lambda: at.served() and not any(worker.stalled() for worker in at.workers)), lambda: None
    cluster = CLUSTERS[round_number % len(CLUSTERS)]
    stalled = at.edges[cluster]
    fresh = PlayedEdge(cluster, at.kafka_settings, stalled.term + 1)
    at.edges[cluster] = fresh
    fresh.list_all(play.nodes(cluster))

    def wake() -> None:
        # The stalled edge comes back and tells what it had in hand: nothing of it is true any more.
        for name in play.names():
            stalled.set_ready(name, ready=not play.ready[cluster, name])
        time.sleep(2)
        stalled.close()

    return (lambda: at.served() and play.is_heard()), wake


@pytest.mark.parametrize("kind", KINDS)
def test_each_message_once(kind: str, play: Play, say: Say) -> None:
    """Whatever breaks: served again within 15 s, nothing lost, nothing told twice."""
    at = play.at
    faults: list[str] = []
    for number in range(ROUNDS[kind]):
        doubled_before, repeated_before = set(play.doubled()), play.repeated()
        told_before = len(at.inbox.ids())
        turned = play.change(number % 2)
        broken_at = time.monotonic()
        is_served, mend = break_it(kind, play, number)
        try:
            turned += play.change((number + 1) % 2)
            wait_until(f"{kind} {number}: served again", is_served, 60, at.logs)
            served_s = time.monotonic() - broken_at
            with contextlib.suppress(TimeoutError):  # what is lost is counted below
                wait_until("told", lambda: not play.lost(), TOLD_WITHIN_S)
            told_s = time.monotonic() - broken_at
        finally:
            mend()
        wait_until(f"{kind} {number}: mended", lambda: at.served() and all(map(has_work, at.workers)), 90, at.logs)
        time.sleep(1)
        lost, doubled = play.lost(), [each for each in play.doubled() if each not in doubled_before]
        said = (
            f"{kind} {number + 1}/{ROUNDS[kind]}: {turned} changes in flight, "
            f"{len(at.inbox.ids()) - told_before} deliveries; "
            f"served again after {served_s:.1f} s, all told after {told_s:.1f} s; "
            f"lost {len(lost)}, doubled {len(doubled)}, repeated with their own id {play.repeated() - repeated_before}"
        )
        say(f"{said}")
        if lost or doubled or served_s >= SERVED_WITHIN_S:
            # The rounds behind it are still worth having: all of them are shown before the test fails.
            faults.append(f"{said}\nlost {lost[:5]}, doubled {doubled[:5]}\n{at.logs()}")
    assert not faults, "\n\n".join(faults)
    wait_until("served in the end", at.served, 60, at.logs)
