"""
The roles of the scaled runtime, watched with the real tools: two edges of one cluster with a Lease and a worker, on a
real API server, Kafka and Redis.  A real Prometheus with the shipped rules scrapes them, a real Alertmanager hears of
them.
"""

from __future__ import annotations

import json
import urllib.parse
import urllib.request
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from importlib import resources
from pathlib import Path
from typing import Any

import pytest
from prometheus_client.parser import text_string_to_metric_families

from sevenhop.telemetry.table import METRICS
from tests.e2e.inbox import Inbox
from tests.e2e.processes import Run
from tests.e2e.rules import few_gpus_rule
from tests.testbed import build
from tests.testbed.cluster import Cluster
from tests.testbed.kafka import Kafka
from tests.testbed.nodes import set_gpus
from tests.testbed.plugin import Pool
from tests.testbed.prometheus import alertmanager, prometheus, promtool
from tests.testbed.redis import Redis
from tests.testbed.waiting import eventually

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(500)]

CLUSTER = "watched"
PARTITIONS = 2


@dataclass
class Seen:
    """What was there when the story had been told; the tests below judge it."""

    pages: dict[str, str] = field(default_factory=dict)
    health: dict[str, list[int]] = field(default_factory=dict)
    firing: list[str] = field(default_factory=list)
    beats: list[dict[str, Any]] = field(default_factory=list)
    redis_away: tuple[int, int, str] = (0, 0, "")
    stalled: float | None = None
    after_kill: str = ""


@pytest.fixture(scope="module")
def seen(testbed: Cluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Seen]:
    """One message by way of edge, Kafka and worker; Redis goes and comes back; the edge that leads is killed."""
    folder = tmp_path_factory.mktemp("roles")
    with ExitStack() as stack:
        inbox = Inbox()
        stack.callback(inbox.close)
        kafka = stack.enter_context(Kafka(1))
        redis = stack.enter_context(Redis())
        hears = alertmanager(folder)
        stack.callback(hears.stop)
        hears.start()
        pool = Pool(testbed.client, {})
        stack.callback(lambda: _remove(testbed, pool))
        settings = _settings(folder, testbed, kafka, redis, inbox, hears.port)
        edges = [
            Run(folder, f"edge-{n}", settings | {"runtime": {"role": "edge", "lease": "default/watched"}})
            for n in range(2)
        ]
        worker = Run(folder, "worker-0", settings | {"runtime": {"role": "worker", "edge_silence": "5s"}})
        for run in (*edges, worker):
            stack.callback(run.stop)
            run.start()
        try:
            yield _story(testbed, pool, folder, inbox, redis, edges, worker, hears.port)
        except BaseException:
            print("\n".join(run.tail() for run in (*edges, worker)))
            raise


def _remove(testbed: Cluster, pool: Pool) -> None:
    for name in pool.names:
        testbed.client.delete("v1", "Node", name)


def _story(
    testbed: Cluster, pool: Pool, folder: Path, inbox: Inbox, redis: Redis, edges: list[Run], worker: Run, hears: int
) -> Seen:
    told = Seen()
    pool.add(build.gpu_node("watched-0"))
    eventually(lambda: sorted(str(e.value("leading", cluster=CLUSTER)) for e in edges) == ["0.0", "1.0"],
               timeout=150, every=0.5, what="one edge that leads")  # fmt: skip
    eventually(lambda: worker.get("/readyz")[0] == 200, timeout=150, every=0.5, what="a worker that is ready")
    rules = folder / "alerts.yaml"
    rules.write_text((resources.files("sevenhop.telemetry") / "alerts.yaml").read_text("utf-8"), "utf-8")
    targets = [f"127.0.0.1:{run.port}" for run in (*edges, worker)]
    scrapes = prometheus(folder, targets, rules, {"honor_labels": True})
    scrapes.start()
    try:
        set_gpus(testbed.client, "watched-0", 7)
        eventually(lambda: inbox.ids(), timeout=90, every=0.2, what="a message")
        eventually(lambda: len(_beats(hears)) >= 3, timeout=60, every=0.5, what="heartbeats of both roles")
        eventually(lambda: worker.value("pod_info_left_out", cluster=CLUSTER) is not None, timeout=60, every=1)
        eventually(lambda: len(_query(scrapes.port, "up == 1")) == 3, timeout=60, every=1, what="three scrapes")
        told.beats = _beats(hears)
        told.firing = [row["metric"]["alertname"] for row in _query(scrapes.port, 'ALERTS{alertstate="firing"}')]
    finally:
        scrapes.stop()
    for run in (*edges, worker):
        told.pages[run.name] = run.get("/metrics")[1]
        told.health[run.name] = [run.get(path)[0] for path in ("/healthz", "/readyz")]

    redis.crash()
    eventually(lambda: worker.value("input_stalled") == 1, timeout=60, every=0.2, what="a worker that says so")
    told.redis_away = (worker.get("/healthz")[0], *worker.get("/readyz"))
    redis.come_back()
    eventually(lambda: worker.get("/readyz")[0] == 200, timeout=60, every=0.2, what="a worker that is well again")
    told.stalled = worker.value("input_stalled")

    leads = next(edge for edge in edges if edge.value("leading", cluster=CLUSTER) == 1)
    (waits,) = [edge for edge in edges if edge is not leads]
    leads.kill()
    eventually(lambda: worker.value("edge_silent", cluster=CLUSTER) == 1 or waits.value("leading", cluster=CLUSTER),
               timeout=60, every=0.2, what="silence, or the other edge")  # fmt: skip
    eventually(lambda: waits.value("leading", cluster=CLUSTER) == 1, timeout=60, every=0.2, what="the other edge")
    eventually(lambda: worker.value("edge_silent", cluster=CLUSTER) == 0, timeout=60, every=0.2, what="its voice")
    told.after_kill = waits.get("/metrics")[1]
    return told


def _settings(folder: Path, testbed: Cluster, kafka: Kafka, redis: Redis, inbox: Inbox, hears: int) -> dict[str, Any]:
    return {
        "cluster": CLUSTER,
        "rules": [str(few_gpus_rule(folder))],
        "kubernetes": {"kubeconfig": str(testbed.kubeconfig())},
        "incidents": {"group_wait": "0s", "recall_wait": "1s"},
        "receivers": {"hook": {"type": "webhook", "url": inbox.url}},
        "kafka": {"servers": kafka.servers.split(","), "partitions": PARTITIONS, "replicas": 1},
        "redis": {"url": redis.url},
        "gpu_push": {"accounts": ["default/agents"]},
        "dcgm": {"pages": ["http://127.0.0.1:1/metrics"]},
        "telemetry": {
            "heartbeat": {"type": "alertmanager", "url": f"http://127.0.0.1:{hears}", "every": "5s"},
        },
    }


def _query(port: int, expr: str) -> list[dict[str, Any]]:
    address = f"http://127.0.0.1:{port}/api/v1/query?query={urllib.parse.quote(expr)}"
    with urllib.request.urlopen(address, timeout=10) as answer:
        found: list[dict[str, Any]] = json.load(answer)["data"]["result"]
    return found


def _beats(port: int) -> list[dict[str, Any]]:
    address = f"http://127.0.0.1:{port}/api/v2/alerts?filter=alertname%3DSevenhopAlive"
    with urllib.request.urlopen(address, timeout=10) as answer:
        found: list[dict[str, Any]] = json.load(answer)
    return [alert["labels"] for alert in found]


def _values(page: str, name: str) -> dict[tuple[str, ...], float]:
    """Label values to value."""
    return {
        tuple(value for _, value in sorted(sample.labels.items())): sample.value
        for family in text_string_to_metric_families(page)
        for sample in family.samples
        if sample.name == f"sevenhop_{name}"
    }


def _names(page: str) -> set[str]:
    return {line.split()[2] for line in page.splitlines() if line.startswith("# TYPE sevenhop_")}


def _leading(seen: Seen) -> str:
    (name,) = [name for name, page in seen.pages.items() if _values(page, "leading") == {(CLUSTER,): 1.0}]
    return name


def test_the_pages_please_promtool(seen: Seen) -> None:
    """Of each role, names, help, types and units as Prometheus wants them."""
    for page in seen.pages.values():
        ours = "".join(f"{line}\n" for line in page.splitlines() if "sevenhop_" in line)
        done = promtool("check", "metrics", text=ours)
        assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_a_worker_tells_its_stream(seen: Seen) -> None:
    """Each partition is rebuilt and has nothing left to do; nothing was put aside."""
    page = seen.pages["worker-0"]
    partitions = {(str(number),) for number in range(PARTITIONS)}
    assert _values(page, "partitions") == {(): PARTITIONS}
    assert _values(page, "partition_ready") == dict.fromkeys(partitions, 1.0)
    assert _values(page, "partition_lag_records").keys() == partitions
    assert _values(page, "partition_claims_total")[("rebuilt",)] >= PARTITIONS
    assert set(_values(page, "dead_letters_total").values()) == {0.0}
    assert _values(page, "input_stalled") == {(): 0.0}


def test_a_worker_tells_of_each_cluster_what_the_embedded_runtime_tells(seen: Seen) -> None:
    """Events, decisions, deliveries and levels, with the cluster's name."""
    page = seen.pages["worker-0"]
    assert _values(page, "deliveries_total")[CLUSTER, "delivered", "hook"] == 1
    assert _values(page, "notify_decisions_total")[CLUSTER, "first_firing"] == 1
    assert _values(page, "outbox_messages")[CLUSTER, "hook"] == 0
    assert _values(page, "events_total")[CLUSTER, "applied", "Node"] >= 1
    assert _values(page, "edge_silence_seconds")[(CLUSTER,)] < 5
    assert _values(page, "edge_silent") == {(CLUSTER,): 0.0}
    assert _values(page, "rules")[(CLUSTER,)] == 1


def test_an_edge_tells_of_its_sources(seen: Seen) -> None:
    """How stale each kind is, what waits for Kafka, what agents pushed; the one that waits says that it does."""
    leads = seen.pages[_leading(seen)]
    (waits,) = [page for name, page in seen.pages.items() if name.startswith("edge") and name != _leading(seen)]
    assert _values(leads, "source_state")[CLUSTER, "Pod", "synced"] == 1
    assert _values(leads, "source_staleness_seconds")[CLUSTER, "Pod"] < 60
    assert _values(leads, "edge_events_sent_total")[(CLUSTER,)] > 0
    assert _values(leads, "edge_buffered_events")[(CLUSTER,)] < 100
    assert _values(leads, "edge_stalled") == {(CLUSTER,): 0.0}
    assert _values(leads, "gpu_push_refused_total")[CLUSTER, "other_node"] == 0
    assert _values(leads, "dcgm_failing_addresses") == {(CLUSTER,): 1.0}
    assert _values(waits, "leading") == {(CLUSTER,): 0.0}
    assert "sevenhop_source_state" not in _names(waits)


def test_every_metric_is_served_by_some_role(seen: Seen) -> None:
    """All of the table but those that only the embedded runtime has."""
    embedded = {"sevenhop_inbox_batches", "sevenhop_engine_behind_seconds"}
    no_pods = {"sevenhop_pod_info"}  # in this story nothing is served
    served = set().union(*(_names(page) for page in seen.pages.values()))
    assert set(METRICS) - served <= embedded | no_pods


def test_all_roles_are_healthy_and_ready(seen: Seen) -> None:
    """Also the edge that waits: it is ready to take over, so rollouts and drains go on."""
    assert seen.health == {name: [200, 200] for name in ("edge-0", "edge-1", "worker-0")}


def test_roles_that_are_well_fire_none_of_our_alerts(seen: Seen) -> None:
    """The shipped rules in a real Prometheus, over all three."""
    assert seen.firing == []


def test_an_alertmanager_hears_of_the_edge_the_worker_and_each_cluster(seen: Seen) -> None:
    """Three things whose end is noticed, each by itself; the edge that waits is none of them."""
    told = {(labels["role"], labels.get("cluster", "")) for labels in seen.beats}
    assert told == {("edge", CLUSTER), ("worker", ""), ("worker", CLUSTER)}


def test_redis_away_is_not_ready_and_still_healthy(seen: Seen) -> None:
    """A new process would meet the same Redis: it says what it waits for, and goes on by itself."""
    healthy, ready, text = seen.redis_away
    assert (healthy, ready) == (200, 503)
    assert "Redis" in text
    assert seen.stalled == 0


def test_the_other_edge_speaks_on(seen: Seen) -> None:
    """It leads, sends, and its sources are its own."""
    assert _values(seen.after_kill, "leading") == {(CLUSTER,): 1.0}
    assert _values(seen.after_kill, "source_state")[CLUSTER, "Pod", "synced"] == 1
    assert _values(seen.after_kill, "edge_events_sent_total")[(CLUSTER,)] > 0
