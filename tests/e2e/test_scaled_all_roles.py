"""
Role `all`: edge and worker in one process, with one HTTP door for Slack, tokens, health and metrics.

Real control plane, Kafka and Redis; the process has the rights that docs/reference renders and no others.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import cast

import pytest
from prometheus_client.parser import text_string_to_metric_families

from tests.e2e import remediation_objects as objects
from tests.e2e.inbox import Inbox
from tests.e2e.processes import answer_of
from tests.e2e.remediation_scenes import DECODE, Open
from tests.e2e.remediation_stage import (
    ALLOWED,
    APPROVER,
    STRANGER,
    PagerDuty,
    Stage,
    borrowed,
    events_on,
    later,
    on_approval,
    pagerduty_process,
    quick_rules,
)
from tests.e2e.scaled_people import KEY
from tests.e2e.scaled_roles import Role, Row
from tests.e2e.service import Service, sevenhop
from tests.e2e.slack import FakeSlack
from tests.fakes.slack_server import SECRET
from tests.testbed.cluster import Cluster
from tests.testbed.kafka import Kafka
from tests.testbed.ports import free_ports
from tests.testbed.redis import Redis
from tests.testbed.waiting import eventually

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(300)]

NAME = "whole"
USER = "system:serviceaccount:sevenhop-whole:sevenhop"
MALLORY = "system:serviceaccount:approvers:mallory"
WITHIN_S = 3.0
"""Slack shows the person an error where no answer came within it."""

BEAT_S = 5


class OneProcess(Role):
    """Edge and worker together, in the place of one `Service`."""

    def __init__(self, folder: Path, cluster: str, settings: Row) -> None:
        super().__init__(folder, "all", settings)
        self._cluster = cluster

    def start(self, *, timeout: float = 150) -> OneProcess:
        """Start it, and return when it serves its own cluster."""
        super().start()
        try:
            eventually(lambda: self.serves(self._cluster), timeout=timeout, every=0.2)
        except TimeoutError:
            pytest.fail(self.tail(60))
        return self


class WholeStage(Stage):
    """The stage of the embedded stories, played by one process of the scaled runtime."""

    def __init__(
        self,
        folder: Path,
        cluster: Cluster,
        slack: FakeSlack,
        pagerduty: PagerDuty,
        streams: tuple[Kafka, Redis],
        hears: Inbox,
    ) -> None:
        self.cluster, self.slack, self.pagerduty, self.hears = cluster, slack, pagerduty, hears
        kafka, redis = streams
        (self.port,) = free_ports(1)
        self.process = OneProcess(folder, NAME, {
            "cluster": NAME,
            "kubernetes": {"kubeconfig": str(cluster.kubeconfig(USER)), "discovery_interval": "2s"},
            "kafka": {"servers": kafka.servers.split(","), "partitions": 2, "replicas": 1, "prefix": NAME},
            "redis": {"url": redis.url},
            "runtime": {"decision_key": KEY},
            "web": {"listen": f"127.0.0.1:{self.port}"},
            "rules": [str(quick_rules(folder / "quick"))],
            "incidents": {"group_wait": "0s"},
            **on_approval(folder, {"lease": "2h", "cooldown": "1s"}, f"kubernetes:{APPROVER}"),
            "receivers": {"slack": {**slack.settings, "signing_secret": SECRET}, "pagerduty": pagerduty.settings},
            "telemetry": {"heartbeat": {"url": hears.url, "every": f"{BEAT_S}s"}},
        })  # fmt: skip
        self.service = cast("Service", self.process)

    @property
    def url(self) -> str:
        """Of its HTTP door."""
        return f"http://127.0.0.1:{self.port}"

    def press_there(self, user: str, verb: str, about: str, **how: str) -> Row:
        """A button, over HTTP; the answer has to come within Slack's time."""
        answer = self.press(user, verb, about, to=f"{self.url}/slack/actions", **how)
        assert answer["seconds"] < WITHIN_S
        return answer

    @property
    def is_stopped(self) -> bool:
        return any(row["is_on"] for row in self.process.rows("safety") if row["what"] == "kill switch")


@pytest.fixture(scope="module")
def stage(testbed: Cluster, slack: FakeSlack, tmp_path_factory: pytest.TempPathFactory) -> Iterator[WholeStage]:
    objects.install(testbed.client, USER)
    for user in (APPROVER, MALLORY):
        objects.service_account(testbed.client, user)
    folder = tmp_path_factory.mktemp(NAME)
    with Kafka(1) as kafka, Redis() as redis, pagerduty_process() as pagerduty, closing(Inbox()) as hears:
        made = WholeStage(folder, testbed, slack, pagerduty, (kafka, redis), hears)
        with made.playing():
            yield made


def test_from_alert_to_recovery_by_one_process(stage: WholeStage, opens: Open) -> None:
    """
    Asked and approved in Slack over HTTP: the same process decides, scales the donor, sees the decode worker get Ready
    and resolves the one page.  A forged click gets 401, who may not is told so; neither decides anything.
    """
    here = opens("whole")
    plan = stage.plan_told(here)
    assert stage.press_there(ALLOWED, "approve", here.product, secret="of-another-app")["status"] == 401
    assert stage.press_there(STRANGER, "approve", here.product)["status"] == 200
    told = later(lambda: stage.slack.whispers(STRANGER), what="the stranger to be told")
    assert "may not approve" in told[-1]
    assert stage.state_of(plan["plan"]) == "proposed"
    assert (here.replicas(), borrowed(here.deployment())) == (3, "")

    assert stage.press_there(ALLOWED, "approve", here.product)["status"] == 200
    done = stage.wait_for(plan["plan"], "succeeded", timeout=60)
    here.runs(1, DECODE)
    donor = here.deployment()
    seen = stage.wait_told(here.product, "🟢 RECOVERED")
    pages = later(lambda: _resolved(stage, here.namespace), what="the end of the page")
    verified = stage.service.ask("audit", "verify", "--cluster", NAME)
    print("", *done["history"], seen, verified.stdout, sep="\n  ")
    assert [(each["person"], each["via"]) for each in done["approvals"]] == [(f"slack:{ALLOWED}", "slack")]
    assert donor["spec"]["replicas"] == 2
    assert plan["plan"] in borrowed(donor)
    assert len(pages) == 1
    assert verified.returncode == 0, verified.stderr
    assert events_on(stage.cluster, here.namespace, "summarizer") == ["RemediationApplied"]


def test_what_was_lent_is_given_back_by_the_next_process(stage: WholeStage, opens: Open) -> None:
    """Told to end, it ends well; started again it knows the plan, and gives back what the one before it lent."""
    here = opens("ended")
    plan = stage.plan_told(here)
    stage.press_there(ALLOWED, "approve", here.product)
    stage.wait_for(plan["plan"], "succeeded", timeout=60)
    stage.process.stop()
    ended = stage.process.code
    stage.process.start()
    assert ended == 0
    assert stage.state_of(plan["plan"]) == "succeeded"

    answer = stage.service.ask("runs", "restore", plan["plan"])
    assert answer.returncode == 0, answer.stdout + answer.stderr
    done = stage.wait_for(plan["plan"], "restored", timeout=60)
    print("", *done["history"], sep="\n  ")
    assert (here.replicas(), borrowed(here.deployment())) == (3, "")
    assert events_on(stage.cluster, here.namespace, "summarizer") == ["RemediationApplied", "RemediationRestored"]


def test_the_door_takes_tokens_as_an_edge_does(stage: WholeStage) -> None:
    """Its own API server says whose a token is; who may is followed and stands in the audit, a stranger is refused."""

    def switch(word: str, user: str) -> tuple[int, str]:
        words = ["switch", word, "--server", stage.url, "-m", "a test"]
        answer = sevenhop(*words, "--kubeconfig", str(stage.cluster.kubeconfig(user)))
        return answer.returncode, answer.stdout + answer.stderr

    code, said = switch("stop", MALLORY)
    assert code == 1
    assert f"refused (you are kubernetes:{MALLORY})" in said
    assert not stage.is_stopped
    code, said = switch("stop", APPROVER)
    assert code == 0, said + stage.process.tail()
    assert stage.is_stopped
    assert f"kubernetes:{APPROVER}" in stage.service.ask("audit", "list").stdout
    code, said = switch("resume", APPROVER)
    assert code == 0, said
    assert not stage.is_stopped


def test_one_door_shows_both_parts(stage: WholeStage) -> None:
    """It is healthy and ready; its metrics are those of edge and worker, each series once, and one heartbeat's."""
    later(lambda: _beating(stage) == {"edge", "worker"}, what="a heartbeat of each part")
    assert [answer_of(f"{stage.url}{path}")[0] for path in ("/healthz", "/readyz")] == [200, 200]
    _, page = answer_of(f"{stage.url}/metrics")
    series = [
        (sample.name, frozenset(sample.labels.items()), sample.value)
        for family in text_string_to_metric_families(page)
        for sample in family.samples
    ]
    print(*series, sep="\n")
    found = {(name, labels): value for name, labels, value in series}
    assert len(found) == len(series)
    assert found["sevenhop_leading", frozenset({("cluster", NAME)})] == 1
    assert [value for (name, _), value in found.items() if name == "sevenhop_partition_ready"] == [1, 1]
    assert found["sevenhop_heartbeat_configured", frozenset()] == 1
    since_s = time.time() - found["sevenhop_heartbeat_last_success_timestamp_seconds", frozenset()]
    assert 0 <= since_s < 2 * BEAT_S + WITHIN_S


def _beating(stage: WholeStage) -> set[str]:
    """The parts that have been heard of."""
    with stage.hears.lock:
        return {body["role"] for *_, body in stage.hears.deliveries}


def _resolved(stage: Stage, about: str) -> list[Row]:
    """All pages about this, once they are resolved."""
    pages = stage.pagerduty.about(about)
    return pages if pages and all(page["status"] == "resolved" for page in pages) else []
