"""Two replicas and one Lease on a real API server: one works, and when it dies the other goes on where it was."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.scaled_stage import ROOT, Inbox, wait_until
from tests.saying import Say
from tests.testbed import build
from tests.testbed.cluster import Cluster
from tests.testbed.kafka import Kafka
from tests.testbed.nodes import set_gpus
from tests.testbed.plugin import Pool
from tests.testbed.redis import Redis

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(300)]

RULE = """\
id: node-has-few-gpus
status: experimental
subject: node
expr: node.gpu.allocatable < 8
for: 0s
severity: warning
annotations:
  summary: "{{ node }} offers few GPUs"
description: A node offers fewer GPUs than all of ours have, and what waits for them waits longer.
false_positives: [A node that has fewer by design.]
triage: |
  1. Look at the node.
"""
TAKEN_OVER_WITHIN_S = 15.0


class Process:
    """One ``sevenhop run``."""

    def __init__(self, folder: Path, settings: dict[str, Any]) -> None:
        folder.mkdir(parents=True)
        self.log = folder / "log"
        config = folder / "sevenhop.yaml"
        config.write_text(json.dumps({"state": str(folder / "state"), **settings}))
        with self.log.open("wb") as log:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "sevenhop.cli.main", "run", "--config", str(config)],
                cwd=ROOT, stdout=log, stderr=log, env=os.environ | {"NO_COLOR": "1"},
            )  # fmt: skip

    def says(self, text: str) -> bool:
        return text in self.log.read_text(errors="replace")

    def kill(self) -> None:
        self._process.kill()
        self._process.wait()

    def tail(self) -> str:
        return "\n".join(self.log.read_text(errors="replace").splitlines()[-20:])


@pytest.fixture
def inbox() -> Iterator[Inbox]:
    made = Inbox()
    yield made
    made.close()


@pytest.fixture
def redis() -> Iterator[Redis]:
    with Redis() as running:
        yield running


def settings_of(testbed: Cluster, folder: Path, inbox: Inbox, redis: Redis, role: str, lease: str) -> dict[str, Any]:
    rules = folder / "discovery"
    rules.mkdir(exist_ok=True)
    (rules / "node-has-few-gpus.yaml").write_text(RULE)
    return {
        "cluster": "leased",
        "rules": [str(rules)],
        "kubernetes": {"kubeconfig": str(testbed.kubeconfig())},
        "incidents": {"group_wait": "0s", "recall_wait": "1s"},
        "receivers": {"hook": {"type": "webhook", "url": inbox.url}},
        "runtime": {"role": role, "lease": f"default/{lease}" if lease else ""},
        "redis": {"url": redis.url},
    }


def told(inbox: Inbox) -> list[tuple[str, str]]:
    """(node, status) of each delivery, each id once."""
    seen: dict[str, tuple[str, str]] = {}
    with inbox.lock:
        for _, delivery, body in inbox.deliveries:
            seen.setdefault(delivery, (body["incident"]["cause"].removeprefix("node:"), body["status"]))
    return list(seen.values())


def hand_over(testbed: Cluster, pool: Pool, inbox: Inbox, replicas: list[Process], works: str, seen: Any) -> float:
    """One incident is told, the worker of the two is killed, a second incident is told once; seconds to take over."""
    first, second = pool.names
    wait_until("one works", lambda: any(replica.says(works) for replica in replicas), 60, seen)
    worker = next(replica for replica in replicas if replica.says(works))
    (other,) = [replica for replica in replicas if replica is not worker]
    set_gpus(testbed.client, first, 7)
    wait_until("told", lambda: (first, "firing") in told(inbox), 60, seen)
    assert not other.says(works)

    worker.kill()
    killed_at = time.monotonic()
    set_gpus(testbed.client, second, 7)
    wait_until("taken over", lambda: other.says(works), 60, seen)
    took_s = time.monotonic() - killed_at
    wait_until("told by the other", lambda: (second, "firing") in told(inbox), 60, seen)
    time.sleep(3)
    assert [row for row in told(inbox) if row[0] in pool.names] == [(first, "firing"), (second, "firing")]
    return took_s


def test_two_embedded_replicas(
    testbed: Cluster, pool: Pool, tmp_path: Path, inbox: Inbox, redis: Redis, say: Say
) -> None:
    """The one that waits takes over within 15 s, and what was told is not told again."""
    pool.add(build.gpu_node("leased-0"), build.gpu_node("leased-1"))
    settings = settings_of(testbed, tmp_path, inbox, redis, "embedded", "embedded")
    replicas = [Process(tmp_path / f"replica-{number}", settings) for number in range(2)]
    try:
        took_s = hand_over(testbed, pool, inbox, replicas, "watching leased", lambda: _tails(replicas))
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
        settings = settings_of(testbed, tmp_path, inbox, redis, "edge", "edge") | {"kafka": kafka_settings}
        replicas = [Process(tmp_path / f"edge-{number}", settings) for number in range(2)]
        settings = settings_of(testbed, tmp_path, inbox, redis, "worker", "") | {"kafka": kafka_settings}
        worker = Process(tmp_path / "worker", settings)
        try:
            seen = [*replicas, worker]
            took_s = hand_over(testbed, pool, inbox, replicas, "edge of leased", lambda: _tails(seen))
        finally:
            for process in (*replicas, worker):
                process.kill()
    say(f"edge taken over after {took_s:.1f} s")
    assert took_s < TAKEN_OVER_WITHIN_S


def _tails(processes: list[Process]) -> str:
    return "\n\n".join(process.tail() for process in processes)
