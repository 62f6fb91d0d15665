"""
Two embedded replicas as the chart makes them: its settings, its environment, its account, a real API server and Redis.

One works.  It is killed, stopped for longer than its Lease, and told to end.  The other goes on each time, and nothing
is told twice or not at all: neither in Slack, which is asked, nor by the webhook, whose every request is counted.
"""

from __future__ import annotations

import json
import signal
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.chart import CHART, of_kind, pod_templates, rendered
from tests.e2e.inbox import Inbox
from tests.e2e.processes import Run
from tests.e2e.rules import few_gpus_rule
from tests.e2e.slack import FakeSlack
from tests.e2e.test_chart_rights import Installed
from tests.saying import Say
from tests.testbed import build
from tests.testbed.cluster import Cluster
from tests.testbed.nodes import set_gpus
from tests.testbed.plugin import Pool
from tests.testbed.redis import Redis
from tests.testbed.waiting import eventually

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(300)]

VALUES = CHART / "ci" / "two-replicas-values.yaml"
NODES = [f"paired-{number}" for number in range(5)]
TAKEN_OVER_WITHIN_S = 15.0
HANDED_OVER_WITHIN_S = 6.0


class Pair:
    """Two replicas, and what they tell."""

    def __init__(
        self,
        folder: Path,
        cluster: Cluster,
        installed: Installed,
        slack: FakeSlack,
        inbox: Inbox,
        values: dict[str, Any],
    ) -> None:
        self._folder, self._cluster, self._slack, self.inbox = folder, cluster, slack, inbox
        objects = rendered(VALUES, values, folder=folder, namespace=installed.namespace)
        (config,) = [each for each in of_kind(objects, "ConfigMap") if each["metadata"]["name"].endswith("-config")]
        self._config = folder / "sevenhop.yaml"
        self._config.write_text(config["data"]["sevenhop.yaml"], "utf-8")
        (container,) = pod_templates(objects)["service"]["spec"]["containers"]
        secrets = {"SEVENHOP__RECEIVERS__SLACK__TOKEN": slack.settings["token"]}
        given = {v["name"]: secrets.get(v["name"], v.get("value", "")) for v in container["env"]}
        self._environ = {name: value for name, value in given.items() if value and name.startswith("SEVENHOP__")}
        self._kubeconfig = cluster.kubeconfig(installed.user)
        self._made = 0
        self.replicas: list[Run] = []

    def add(self) -> Run:
        """One more pod of the Deployment; what the kubelet decides for it is a folder, a port and an account here."""
        name = f"sevenhop-{self._made}"
        self._made += 1
        run = Run(self._folder, name, config=self._config)
        run.environ |= {
            **self._environ,
            "SEVENHOP__STATE": str(run.folder / "state"),
            "SEVENHOP__WEB__LISTEN": f"127.0.0.1:{run.port}",
            "SEVENHOP__KUBERNETES__KUBECONFIG": str(self._kubeconfig),
            "SEVENHOP__RULES": json.dumps([str(self._folder / "discovery")]),
        }
        self.replicas.append(run)
        return run.start()

    def leading(self) -> list[Run]:
        return [run for run in self.replicas if run.value("leading", cluster="prod-eu") == 1]

    def wait_for_one(self, *, but: Run | None = None, within: float = 30) -> tuple[Run, float]:
        """The replica that works, once it does, and the seconds until then."""
        began = time.monotonic()
        look = lambda: [run for run in self.leading() if run is not but]  # noqa: E731
        try:
            (found,) = eventually(look, timeout=within, every=0.1, what="a replica that works")
        except TimeoutError as error:
            raise TimeoutError("\n".join([str(error), *(run.tail() for run in self.replicas)])) from None
        return found, time.monotonic() - began

    def lose_gpus(self, node: str) -> None:
        set_gpus(self._cluster.client, node, 7)

    def told(self, node: str) -> tuple[int, int]:
        """How often this node's trouble was posted in Slack, and how many requests the webhook got about it."""
        with self.inbox.lock:
            requests = [
                body for *_, body in self.inbox.deliveries
                if (body["incident"]["cause"], body["status"]) == (f"node:{node}", "firing")
            ]  # fmt: skip
        return len(self._slack.posts_about(node)), len(requests)

    def wait_told(self, node: str) -> None:
        eventually(lambda: min(self.told(node)) >= 1, timeout=40, every=0.2, what=f"{node} to be told")


@pytest.fixture(scope="module")
def pair(testbed: Cluster, slack: FakeSlack, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pair]:
    folder = tmp_path_factory.mktemp("pair")
    few_gpus_rule(folder)  # in the folder that each replica's environment names
    with ExitStack() as stack:
        inbox = Inbox()
        stack.callback(inbox.close)
        redis = stack.enter_context(Redis())
        open_slack = {key: value for key, value in slack.settings.items() if key != "token"}
        values = {
            "config": {
                "redis": {"url": redis.url, "ca": None},
                "receivers": {"slack": open_slack, "hook": {"type": "webhook", "url": inbox.url}},
                "incidents": {"group_wait": "0s", "recall_wait": "1s"},
                "kubernetes": {"discovery_interval": "2s"},
            },
            "secrets": {"settings": {"receivers.slack.token": "slack-token"}},
        }
        installed = stack.enter_context(Installed(testbed, folder, VALUES, more=values))
        pool = Pool(testbed.client, {})
        stack.callback(lambda: [testbed.client.delete("v1", "Node", name) for name in pool.names])  # type: ignore[func-returns-value]
        pool.add(*(build.gpu_node(name) for name in NODES))
        made = Pair(folder, testbed, installed, slack, inbox, values)
        stack.callback(lambda: [run.stop() for run in made.replicas])  # type: ignore[func-returns-value]
        made.add()
        made.add()
        yield made


def test_one_works_and_the_other_is_ready_to(pair: Pair) -> None:
    """Both are healthy and ready; what only the one that works can do, the other turns away at once."""
    leads, _ = pair.wait_for_one()
    (waits,) = [run for run in pair.replicas if run is not leads]
    eventually(lambda: leads.get("/readyz")[0] == 200, timeout=30, every=0.2, what="all kinds")
    eventually(lambda: waits.get("/healthz")[0] != 0, timeout=30, every=0.2, what="the other one's door")

    assert (leads.get("/healthz")[0], waits.get("/healthz")[0], waits.get("/readyz")[0]) == (200, 200, 200)
    assert waits.value("leading", cluster="prod-eu") == 0
    status, closes = _post(waits, "/v1/gpu-samples")
    assert (status, closes) == (503, True)
    assert "waiting for the lease" in waits.said()
    assert "watching prod-eu" not in waits.said()


def test_one_is_killed_in_the_middle(pair: Pair, say: Say) -> None:
    """kill -9 while a change is under way: the other tells it, once, and tells nothing again."""
    leads, _ = pair.wait_for_one()
    pair.lose_gpus(NODES[0])
    pair.wait_told(NODES[0])
    pair.lose_gpus(NODES[1])
    leads.kill()
    _, took_s = pair.wait_for_one(but=leads)
    pair.wait_told(NODES[1])
    time.sleep(3)

    assert [pair.told(node) for node in NODES[:2]] == [(1, 1), (1, 1)]
    assert took_s < TAKEN_OVER_WITHIN_S
    say(f"killed: the other works after {took_s:.1f} s")
    pair.replicas.remove(leads)
    pair.add()


def test_one_stops_for_longer_than_its_lease_and_comes_back(pair: Pair, say: Say) -> None:
    """SIGSTOP: the other takes over; the one that comes back stores and tells nothing more, and ends."""
    leads, _ = pair.wait_for_one()
    eventually(lambda: len(pair.replicas) == 2 and all(run.get("/healthz")[0] == 200 for run in pair.replicas),
               timeout=30, every=0.2, what="two replicas")  # fmt: skip
    leads.signal(signal.SIGSTOP)
    try:
        began = time.monotonic()
        pair.lose_gpus(NODES[2])
        others = [run for run in pair.replicas if run is not leads]
        eventually(lambda: others[0].value("leading", cluster="prod-eu") == 1, timeout=30, every=0.1, what="the other")
        took_s = time.monotonic() - began
        pair.wait_told(NODES[2])
    finally:
        leads.signal(signal.SIGCONT)
    code = eventually(lambda: leads.code, timeout=30, every=0.2, what="the end of the one that came back")
    pair.lose_gpus(NODES[3])
    pair.wait_told(NODES[3])
    time.sleep(3)

    assert [pair.told(node) for node in NODES[:4]] == [(1, 1)] * 4
    assert code not in (0, None)
    assert took_s < TAKEN_OVER_WITHIN_S
    say(f"stopped: the other works after {took_s:.1f} s; the first ends with code {code}")
    pair.replicas.remove(leads)
    pair.add()


def test_one_is_told_to_end(pair: Pair, say: Say) -> None:
    """SIGTERM, as in a rollout: the Lease is given back, so the other need not wait for its end."""
    leads, _ = pair.wait_for_one()
    eventually(lambda: len(pair.replicas) == 2 and all(run.get("/readyz")[0] == 200 for run in pair.replicas),
               timeout=30, every=0.2, what="two replicas")  # fmt: skip
    began = time.monotonic()
    leads.stop()
    _, _ = pair.wait_for_one(but=leads)
    took_s = time.monotonic() - began
    pair.lose_gpus(NODES[4])
    pair.wait_told(NODES[4])
    time.sleep(2)

    assert leads.code == 0
    assert [pair.told(node) for node in NODES] == [(1, 1)] * 5
    assert took_s < HANDED_OVER_WITHIN_S
    say(f"told to end: the other works after {took_s:.1f} s")


def _post(run: Run, path: str) -> tuple[int, bool]:
    """Status, and whether the connection is closed after it."""
    request = urllib.request.Request(f"http://127.0.0.1:{run.port}{path}", b"{}", {"Connection": "keep-alive"})
    try:
        with urllib.request.urlopen(request, timeout=5) as answer:
            return answer.status, answer.headers.get("Connection", "").lower() == "close"
    except urllib.error.HTTPError as error:
        return error.code, error.headers.get("Connection", "").lower() == "close"
