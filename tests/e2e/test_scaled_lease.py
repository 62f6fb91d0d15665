"""Two replicas and one Lease on a real API server: one works, and when it dies the other goes on where it was."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.e2e.inbox import Inbox
from tests.e2e.rules import few_gpus_rule
from tests.e2e.scaled_roles import Role, Row, tails
from tests.e2e.scaled_stage import wait_until
from tests.saying import Say
from tests.testbed import build
from tests.testbed.cluster import Cluster
from tests.testbed.kafka import Kafka
from tests.testbed.nodes import set_gpus
from tests.testbed.plugin import Pool
from tests.testbed.redis import Redis

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(300)]

TAKEN_OVER_WITHIN_S = 15.0


@pytest.fixture
def inbox() -> Iterator[Inbox]:
    made = Inbox()
    yield made
    made.close()


@pytest.fixture
def redis() -> Iterator[Redis]:
    with Redis() as running:
        yield running


def settings_of(testbed: Cluster, folder: Path, inbox: Inbox, redis: Redis, lease: str = "") -> Row:
    return {
        "cluster": "leased",
        "rules": [str(few_gpus_rule(folder))],
        "kubernetes": {"kubeconfig": str(testbed.kubeconfig())},
        "incidents": {"group_wait": "0s", "recall_wait": "1s"},
        "receivers": {"hook": {"type": "webhook", "url": inbox.url}},
        "runtime": {"lease": f"default/{lease}" if lease else ""},
        "redis": {"url": redis.url},
    }


def hand_over(
    testbed: Cluster, pool: Pool, inbox: Inbox, replicas: list[Role], works: str, seen: Callable[[], str]
) -> float:
    """One incident is told, the worker of the two is killed, a second incident is told once; seconds to take over."""
    first, second = pool.names
    wait_until("one works", lambda: any(works in replica.log for replica in replicas), 60, seen)
    worker = next(replica for replica in replicas if works in replica.log)
    (other,) = [replica for replica in replicas if replica is not worker]
    set_gpus(testbed.client, first, 7)
    wait_until("told", lambda: (first, "firing") in inbox.told(), 60, seen)
    assert works not in other.log

    worker.kill()
    killed_at = time.monotonic()
    set_gpus(testbed.client, second, 7)
    wait_until("taken over", lambda: works in other.log, 60, seen)
    took_s = time.monotonic() - killed_at
    wait_until("told by the other", lambda: (second, "firing") in inbox.told(), 60, seen)
    time.sleep(3)
    assert [row for row in inbox.told() if row[0] in pool.names] == [(first, "firing"), (second, "firing")]
    return took_s


def test_two_embedded_replicas(
    testbed: Cluster, pool: Pool, tmp_path: Path, inbox: Inbox, redis: Redis, say: Say
) -> None:
    """The one that waits takes over within 15 s, and what was told is not told again."""
    pool.add(build.gpu_node("leased-0"), build.gpu_node("leased-1"))
    settings = settings_of(testbed, tmp_path, inbox, redis, "embedded")
    replicas = [Role(tmp_path / f"replica-{number}", "embedded", settings).start() for number in range(2)]
    try:
        took_s = hand_over(testbed, pool, inbox, replicas, "watching leased", lambda: tails(replicas))
    finally:
        for replica in replicas:
            replica.kill()
    say(f"embedded replica taken over after {took_s:.1f} s")
    assert took_s < TAKEN_OVER_WITHIN_S


def test_two_edges(testbed: Cluster, pool: Pool, tmp_path: Path, inbox: Inbox, redis: Redis, say: Say) -> None:
    """API server → edge → Kafka → worker → webhook, and the edge dies in the middle."""
    pool.add(build.gpu_node("edged-0"), build.gpu_node("edged-1"))
    with Kafka(1) as kafka:
        kafka_settings = {"servers": kafka.servers.split(","), "partitions": 2, "replicas": 1}
        settings = settings_of(testbed, tmp_path, inbox, redis, "edge") | {"kafka": kafka_settings}
        replicas = [Role(tmp_path / f"edge-{number}", "edge", settings).start() for number in range(2)]
        settings = settings_of(testbed, tmp_path, inbox, redis) | {"kafka": kafka_settings}
        worker = Role(tmp_path / "worker", "worker", settings).start()
        try:
            took_s = hand_over(testbed, pool, inbox, replicas, "edge of leased", lambda: tails([*replicas, worker]))
        finally:
            for process in (*replicas, worker):
                process.kill()
    say(f"edge taken over after {took_s:.1f} s")
    assert took_s < TAKEN_OVER_WITHIN_S
