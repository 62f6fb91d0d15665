"""
What breaks under the scaled runtime, and what people are told meanwhile: each message once, and soon.

Three brokers, one Redis, two workers as processes.  In each round half of all nodes change state while a part of the
stage is broken; then the last thing told of each node must be true (else lost), and no state may have been told anew
without a change (doubled).  A delivery that is repeated with its own id is not doubled: a webhook dedups by it.

    SEVENHOP_ROUNDS=soak   fifty rounds, at least eight of each kind; three by default, of the kinds in turn
"""

from __future__ import annotations

import os
import shutil
import signal
import time
from collections import Counter
from collections.abc import Callable, Iterator
from itertools import pairwise

import pytest

from tests.e2e.scaled_stage import PlayedEdge, Stage, WorkerProcess, stage, wait_until
from tests.testbed.kafka import Kafka
from tests.testbed.redis import Redis

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(3600)]

CLUSTERS = ("alpha", "beta", "gamma", "delta")
NODES = 30
SERVED_WITHIN_S = 15.0
TOLD_WITHIN_S = 60.0
STOPPED_S = 30.0
KINDS = ("kill", "stop", "broker", "redis", "redis-forgets", "edge")
IS_SOAK = os.environ.get("SEVENHOP_ROUNDS") == "soak"
ROUNDS = {kind: 9 if kind in ("kill", "redis") else 8 for kind in KINDS} if IS_SOAK else dict.fromkeys(KINDS, 3)


class Play:
    """The nodes' true state, and what was told of them."""

    def __init__(self, at: Stage) -> None:
        self.at = at
        self.ready = {(cluster, f"n{number}"): True for cluster in CLUSTERS for number in range(NODES)}

    def names(self) -> list[str]:
        return [f"n{number}" for number in range(NODES)]

    def nodes(self, cluster: str) -> dict[str, bool]:
        """Its nodes as they truly are."""
        return {name: self.ready[cluster, name] for name in self.names()}

    def change(self, half: int) -> int:
        """Turn every second node; returns how many."""
        turned = [place for place in self.ready if int(place[1][1:]) % 2 == half]
        for cluster, name in turned:
            self.ready[cluster, name] = not self.ready[cluster, name]
            self.at.edges[cluster].set_ready(name, ready=self.ready[cluster, name])
        return len(turned)

    def told(self) -> dict[tuple[str, str], list[tuple[str, str]]]:
        """Node to (status, delivery), each delivery once, in the order in which they came."""
        seen: set[str] = set()
        found: dict[tuple[str, str], list[tuple[str, str]]] = {}
        with self.at.inbox.lock:
            deliveries = list(self.at.inbox.deliveries)
        for _, delivery, body in deliveries:
            if delivery in seen:
                continue
            seen.add(delivery)
            place = (body["incident"]["cluster"], body["incident"]["cause"].removeprefix("node:"))
            found.setdefault(place, []).append((body["status"], delivery))
        return found

    def lost(self) -> list[tuple[str, str]]:
        """Nodes of which what was told last is not true."""
        told = self.told()
        return [
            place
            for place, ready in self.ready.items()
            if (told.get(place, [("resolved", "")])[-1][0] == "resolved") is not ready
        ]

    def doubled(self) -> list[str]:
        """Deliveries that tell anew what was told before them."""
        return [
            delivery
            for told in self.told().values()
            for (before, _), (status, delivery) in pairwise(told)
            if before == status
        ]

    def trouble(self) -> str:
        return f"{self.lost()[:5]}\n{self.at.logs()}"

    def repeated(self) -> int:
        return sum(count - 1 for count in Counter(self.at.inbox.ids()).values())


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
        wait_until("served", at.served, 90, at.logs)
        yield playing


def busiest(at: Stage) -> WorkerProcess:
    return max(at.workers, key=lambda worker: len(worker.partitions()))


def start_ended(at: Stage) -> None:
    """As a supervisor does."""
    for worker in at.workers:
        if worker.code is not None:
            worker.start()


def break_it(kind: str, play: Play, round_number: int) -> tuple[Callable[[], bool], Callable[[], None]]:
    """
    Break one part.

    Returns:
        Whether everything is served again, and what mends the part for the next round.
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
            start_ended(at)

        return (lambda: at.served(without=[victim])), go_on
    if kind == "broker":
        broker = at.kafka.brokers[round_number % 3]
        broker.kill()
        return at.served, lambda: broker.start()
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

    return at.served, wake


@pytest.mark.parametrize("kind", KINDS)
def test_each_message_once(kind: str, play: Play, capsys: pytest.CaptureFixture[str]) -> None:
    """Whatever breaks: served again within 15 s, nothing lost, nothing told twice."""
    at = play.at
    for number in range(ROUNDS[kind]):
        told_before = len(at.inbox.ids())
        turned = play.change(number % 2)
        broken_at = time.monotonic()
        is_served, mend = break_it(kind, play, number)
        turned += play.change((number + 1) % 2)
        wait_until(f"{kind} {number}: served again", is_served, 60, at.logs)
        served_s = time.monotonic() - broken_at
        wait_until(f"{kind} {number}: told", lambda: not play.lost(), TOLD_WITHIN_S, play.trouble)
        told_s = time.monotonic() - broken_at
        mend()
        start_ended(at)
        wait_until(f"{kind} {number}: mended", at.served, 90, at.logs)
        time.sleep(1)
        lost, doubled = play.lost(), play.doubled()
        with capsys.disabled():
            print(
                f"\n{kind} {number + 1}/{ROUNDS[kind]}: {turned} changes in flight, "
                f"{len(at.inbox.ids()) - told_before} deliveries; "
                f"served again after {served_s:.1f} s, all told after {told_s:.1f} s; "
                f"lost {len(lost)}, doubled {len(doubled)} (repeated with their own id so far: {play.repeated()})",
                end="",
            )
        assert not lost
        assert not doubled, doubled
        assert served_s < SERVED_WITHIN_S, at.logs()
    wait_until("served in the end", at.served, 60, at.logs)
