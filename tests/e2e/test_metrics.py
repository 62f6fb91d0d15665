"""
Watching the watcher with the real tools: one story on the control plane, while a real Prometheus scrapes the service, a
real Alertmanager hears its heartbeat, and a receiver takes its traces.
"""

from __future__ import annotations

import json
import threading
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib import resources
from pathlib import Path
from typing import Any

import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from prometheus_client.parser import text_string_to_metric_families

from sevenhop.telemetry.table import METRICS
from tests.e2e.scenes import is_ready, is_refused, scene
from tests.e2e.service import Service
from tests.e2e.slack import FakeSlack
from tests.testbed import build
from tests.testbed.cluster import Cluster
from tests.testbed.ports import free_ports
from tests.testbed.prometheus import alertmanager, prometheus, promtool
from tests.testbed.waiting import eventually

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(240)]

SHORT = "component-short-of-gpus"
RULES = resources.files("sevenhop.telemetry")
ELSEWHERE = ("edge_", "partition", "dead_letters_", "store_forgotten_", "gpu_push_", "dcgm_")


@dataclass
class Seen:
    """What was there when the story had been told; the tests below judge it."""

    namespace: str = ""
    page: str = ""
    health: dict[str, int] = field(default_factory=dict)
    alerts: list[dict[str, Any]] = field(default_factory=list)
    joined: list[dict[str, Any]] = field(default_factory=list)
    firing: list[str] = field(default_factory=list)
    spans: list[Any] = field(default_factory=list)
    log: str = ""
    doctor: str = ""


@pytest.fixture(scope="module")
def seen(testbed: Cluster, slack: FakeSlack, tmp_path_factory: pytest.TempPathFactory) -> Seen:
    """The whole story, once."""
    folder = tmp_path_factory.mktemp("watching")
    with ExitStack() as stack:
        here = stack.enter_context(scene(testbed))
        taken = stack.enter_context(_traces())
        hears = alertmanager(folder)
        stack.callback(hears.stop)
        hears.start()
        (port,) = free_ports(1)
        more = {
            "web": {"listen": f"127.0.0.1:{port}"},
            "telemetry": {
                "traces": taken.url,
                "heartbeat": {"type": "alertmanager", "url": f"http://127.0.0.1:{hears.port}", "every": "5s"},
            },
        }
        service = Service(
            folder / "service", testbed.kubeconfig(), slack=slack, rules=(SHORT,), name=here.namespace, more=more,
            words=("--log-format", "json"),
        )  # fmt: skip
        stack.callback(service.stop)
        scrapes = prometheus(folder, [f"127.0.0.1:{port}"], _rules(folder), {"honor_labels": True})
        stack.callback(scrapes.stop)
        scrapes.start()

        told = Seen(here.namespace)
        here.pool.add_gpu_nodes(1)
        service.start()
        where = here.pool.node_selector
        here.client.create(
            build.vllm_deployment(
                "chat", here.namespace, "org/chat", served_name="chat-8b", gpus=8, node_selector=where
            )
        )
        here.wait_for_pods(1, is_ready, "app=chat")
        here.client.create(build.vllm_deployment("late", here.namespace, "org/late", gpus=8, node_selector=where))
        here.wait_for_pods(1, is_refused, "app=late")
        eventually(lambda: slack.posts_about(here.namespace), timeout=30, every=0.2, what="a post")
        eventually(lambda: len(taken.traces) > 0, timeout=15, every=0.2, what="traces")

        base = f"http://127.0.0.1:{port}"
        # What is counted over all facts is up to ten seconds old.
        told.page = eventually(
            lambda: _page_with(f"{base}/metrics", 'pod="late-'), timeout=20, every=1, what="both pods"
        )
        told.health = {path: _get(base + path)[0] for path in ("/healthz", "/readyz")}
        eventually(lambda: _ours(hears.port), timeout=15, every=0.2, what="a heartbeat")
        told.alerts = _ours(hears.port)
        told.doctor = service.ask("doctor").stdout
        told.joined = eventually(
            lambda: _query(scrapes.port, 'up{job="sevenhop"} * on () group_right sevenhop_pod_info'),
            timeout=15, every=0.5, what="a scrape",
        )  # fmt: skip
        told.firing = [row["metric"]["alertname"] for row in _query(scrapes.port, 'ALERTS{alertstate="firing"}')]
        service.stop()
        told.log = service.errors
        told.spans = [span for request in taken.traces for span in _spans(request)]
    return told


def test_the_page_pleases_promtool(seen: Seen) -> None:
    """Names, help, types and units as Prometheus wants them."""
    ours = "".join(f"{line}\n" for line in seen.page.splitlines() if "sevenhop_" in line)
    done = promtool("check", "metrics", text=ours)

    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_every_metric_of_the_table_is_served(seen: Seen) -> None:
    """
    All that one process has in this story: neither the stream of the scaled roles, nor sources of GPU samples.

    What needs a step in the cluster has its family and no series.
    """
    names = {line.split()[2] for line in seen.page.splitlines() if line.startswith("# TYPE sevenhop_")}

    assert names == {name for name in METRICS if not name.removeprefix("sevenhop_").startswith(ELSEWHERE)}


def test_the_story_is_in_the_numbers(seen: Seen) -> None:
    """One incident, told to both receivers, of a pod whose cause was computed and agreed to."""
    found = {
        (s.name, *(v for _, v in sorted(s.labels.items()))): s.value
        for family in text_string_to_metric_families(seen.page)
        for s in family.samples
    }
    cluster = seen.namespace
    assert found["sevenhop_notify_decisions_total", cluster, "first_firing"] >= 2
    assert found["sevenhop_deliveries_total", cluster, "delivered", "slack"] >= 1
    assert found["sevenhop_source_state", cluster, "Pod", "synced"] == 1
    assert found["sevenhop_source_staleness_seconds", cluster, "Pod"] < 60
    assert found["sevenhop_pods_disagreeing", cluster] == 0
    assert found["sevenhop_outbox_messages", cluster, "slack"] == 0
    assert found["sevenhop_input_stalled",] == 0


def test_prometheus_joins_pods_with_what_they_serve(seen: Seen) -> None:
    """With honor_labels the pod's namespace is the pod's, and the model is there to group by."""
    pods = {row["metric"]["pod"].rsplit("-", 2)[0]: row["metric"] for row in seen.joined}

    assert set(pods) == {"chat", "late"}
    assert pods["chat"]["namespace"] == seen.namespace
    assert pods["chat"]["inference_workload"] == "chat"
    assert pods["chat"]["model"] == "chat-8b"
    assert (pods["chat"]["node"] != "", pods["late"].get("node", "")) == (True, "")


def test_a_service_that_is_well_fires_none_of_its_own_alerts(seen: Seen) -> None:
    """The shipped rules, in a real Prometheus, with nothing wrong."""
    assert seen.firing == []


def test_health_is_answered(seen: Seen) -> None:
    """Both, once it is synced."""
    assert seen.health == {"/healthz": 200, "/readyz": 200}


def test_alertmanager_takes_the_heartbeat_and_ends_it_by_itself(seen: Seen) -> None:
    """It is active now, and its end is set ahead: when nobody tells it any more, it resolves."""
    (alert,) = seen.alerts
    ahead = datetime.fromisoformat(alert["endsAt"]) - datetime.fromisoformat(alert["updatedAt"])

    assert alert["labels"]["cluster"] == seen.namespace
    assert alert["status"]["state"] == "active"
    assert timedelta(seconds=30) < ahead <= timedelta(seconds=70)
    assert "Heartbeat to an Alertmanager every 5 s: last taken at" in seen.doctor


def test_one_trace_leads_from_the_observation_to_the_message(seen: Seen) -> None:
    """As an OTLP receiver gets it: wait, engine, store and delivery, in one trace."""
    of_trace: dict[bytes, set[str]] = {}
    for span in seen.spans:
        of_trace.setdefault(span.trace_id, set()).add(span.name)
    whole = {"sevenhop.event", "sevenhop.wait", "sevenhop.engine", "sevenhop.store", "sevenhop.deliver"}

    assert whole in of_trace.values()


def test_each_log_line_is_an_object(seen: Seen) -> None:
    """With the cluster, and the incident and workload where it is about one."""
    lines = [json.loads(line) for line in seen.log.splitlines()]
    told = [line for line in lines if line.get("incident") and line.get("receiver") == "slack"]

    assert [line["message"] for line in lines if line.get("cluster") != seen.namespace] == []
    assert told[0]["workload"] == "late"
    assert told[0]["reason"] == "first_firing"


@pytest.mark.parametrize("words", [("check", "rules", "alerts.yaml"), ("test", "rules", "alerts.test.yaml")])
def test_our_alert_rules_hold(words: tuple[str, ...], tmp_path: Path) -> None:
    """Promtool reads them, and plays their timelines: each fires, and each is quiet in good times."""
    for name in ("alerts.yaml", "alerts.test.yaml"):
        (tmp_path / name).write_text((RULES / name).read_text("utf-8"), "utf-8")
    done = promtool(*words[:-1], str(tmp_path / words[-1]))

    assert done.returncode == 0, done.stdout + done.stderr


class _Traces:
    def __init__(self, port: int) -> None:
        self.url = f"http://127.0.0.1:{port}"
        self.traces: list[ExportTraceServiceRequest] = []


@contextmanager
def _traces() -> Iterator[_Traces]:
    """An OTLP/HTTP receiver that keeps what it gets."""
    taken: _Traces

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            if self.headers.get("Content-Encoding") == "gzip":
                import gzip

                body = gzip.decompress(body)
            if self.path == "/v1/traces":
                taken.traces.append(ExportTraceServiceRequest.FromString(body))
            self.send_response(200)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, *_: Any) -> None:
            """Quiet."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    taken = _Traces(server.server_port)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield taken
    finally:
        server.shutdown()
        server.server_close()
        thread.join(5)


def _spans(request: ExportTraceServiceRequest) -> list[Any]:
    return [span for each in request.resource_spans for scope in each.scope_spans for span in scope.spans]


def _rules(folder: Path) -> Path:
    path = folder / "alerts.yaml"
    path.write_text((RULES / "alerts.yaml").read_text("utf-8"), "utf-8")
    return path


def _get(url: str) -> tuple[int, str]:
    try:
        with urllib.request.urlopen(url, timeout=10) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode()


def _page_with(url: str, text: str) -> str:
    _, found = _get(url)
    return found if text in found else ""


def _ours(port: int) -> list[dict[str, Any]]:
    _, text = _get(f"http://127.0.0.1:{port}/api/v2/alerts?filter=alertname%3DSevenhopAlive")
    found: list[dict[str, Any]] = json.loads(text)
    return found


def _query(port: int, expr: str) -> list[dict[str, Any]]:
    _, text = _get(f"http://127.0.0.1:{port}/api/v1/query?{urllib.parse.urlencode({'query': expr})}")
    found: list[dict[str, Any]] = json.loads(text)["data"]["result"]
    return found
