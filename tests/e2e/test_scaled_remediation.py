"""
Remediation over two processes: the worker decides and holds no credentials of any cluster, the edge carries out.

Real control plane, Kafka and Redis; the edge has the rights that docs/reference renders and no others, and the API
server lets nobody but it lower what is lent.
"""

from __future__ import annotations

import contextlib
import os
import random
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import cast

import pytest

from tests.e2e import remediation_objects as objects
from tests.e2e.remediation_kills import Kills, Lane
from tests.e2e.remediation_scenes import DECODE, DynamoStandIn, waiting_scene
from tests.e2e.remediation_stage import (
    ALLOWED,
    PagerDuty,
    Stage,
    borrowed,
    events_on,
    on_approval,
    pagerduty_process,
    quick_rules,
)
from tests.e2e.scaled_roles import Role, Row
from tests.e2e.service import Service
from tests.e2e.slack import FakeSlack
from tests.fakes.slack_server import APP_TOKEN
from tests.saying import Say
from tests.testbed import build
from tests.testbed.client import Client
from tests.testbed.cluster import Cluster
from tests.testbed.kafka import Kafka
from tests.testbed.redis import Redis
from tests.testbed.waiting import eventually

SOAK = os.environ.get("SEVENHOP_ROUNDS") == "soak"
KILLS = int(os.environ.get("SEVENHOP_KILLS", "40" if SOAK else "4"))
SEED = int(os.environ.get("SEVENHOP_SEED", "7"))

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(300 + 60 * KILLS)]

EDGE = "system:serviceaccount:sevenhop-edge:sevenhop"
RECOVERED = "🟢 RECOVERED"
_ADMISSION = "admissionregistration.k8s.io/v1"


class EdgeAndWorker:
    """Both processes in the place of one `Service`: what is asked goes to the worker, what is killed is the edge."""

    def __init__(self, edge: Role, worker: Role, cluster: str) -> None:
        self.edge, self.worker, self.cluster = edge, worker, cluster

    @property
    def state(self) -> Path:
        return self.worker.state

    def start(self) -> None:
        for role in (self.worker, self.edge):
            if role.code is not None or not role.has_run:
                role.start()
        try:
            eventually(lambda: self.worker.serves(self.cluster), timeout=150, every=0.2)
        except TimeoutError:
            pytest.fail(f"{self.worker.tail()}\n\n{self.edge.tail()}")

    def kill(self) -> None:
        self.edge.kill()

    def stop(self) -> None:
        self.edge.stop()
        self.worker.stop()

    def rows(self, view: str) -> list[Row]:
        return self.worker.rows(view)

    def ask(self, *words: str) -> subprocess.CompletedProcess[str]:
        return self.worker.ask(*words)


class ScaledStage(Stage):
    """The stage of the embedded stories, played by an edge and a worker."""

    def __init__(
        self,
        folder: Path,
        cluster: Cluster,
        slack: FakeSlack,
        pagerduty: PagerDuty,
        streams: tuple[Kafka, Redis],
        *,
        name: str,
        times: dict[str, str],
    ) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.cluster, self.slack, self.pagerduty, self.port = cluster, slack, pagerduty, 0
        kafka, redis = streams
        both = {
            "kafka": {"servers": kafka.servers.split(","), "partitions": 2, "replicas": 1, "prefix": name},
            "redis": {"url": redis.url},
        }
        edge = Role(folder, "edge", {
            **both, "cluster": name,
            "kubernetes": {"kubeconfig": str(cluster.kubeconfig(EDGE)), "discovery_interval": "2s"},
        })  # fmt: skip
        worker = Role(folder, "worker", {
            **both,
            "kubernetes": {"kubeconfig": str(folder / "there-is-none")},
            "rules": [str(quick_rules(folder / "quick"))],
            "incidents": {"group_wait": "0s"},
            **on_approval(folder, times),
            "receivers": {"slack": {**slack.settings, "app_token": APP_TOKEN}, "pagerduty": pagerduty.settings},
        })  # fmt: skip
        self.both = EdgeAndWorker(edge, worker, name)
        self.service = cast("Service", self.both)


@pytest.fixture(scope="module")
def pagerduty(testbed: Cluster) -> Iterator[PagerDuty]:
    objects.install(testbed.client, EDGE)
    with pagerduty_process() as found, DynamoStandIn(testbed.client):
        yield found


@pytest.fixture(scope="module")
def streams() -> Iterator[tuple[Kafka, Redis]]:
    with Kafka(1) as kafka, Redis() as redis:
        yield kafka, redis


@contextlib.contextmanager
def only_lowered_by(client: Client, namespace: str, user: str) -> Iterator[None]:
    """The API server lets nobody else lower a Deployment's replicas in this namespace."""
    name = f"lowered-{namespace}"
    expression = f"object.spec.replicas >= oldObject.spec.replicas || request.userInfo.username == '{user}'"
    resources = {"apiGroups": ["apps"], "apiVersions": ["v1"], "operations": ["UPDATE"]}
    policy = {
        "apiVersion": _ADMISSION,
        "kind": "ValidatingAdmissionPolicy",
        "metadata": {"name": name},
        "spec": {
            "failurePolicy": "Fail",
            "matchConstraints": {"resourceRules": [{**resources, "resources": ["deployments", "deployments/scale"]}]},
            "validations": [{"expression": expression, "message": "not yours to lower"}],
        },
    }
    here = {"matchLabels": {"kubernetes.io/metadata.name": namespace}}
    binding = {
        "apiVersion": _ADMISSION,
        "kind": "ValidatingAdmissionPolicyBinding",
        "metadata": {"name": name},
        "spec": {"policyName": name, "validationActions": ["Deny"], "matchResources": {"namespaceSelector": here}},
    }
    client.create(build.deployment("probe", namespace, cpu="1000"))
    client.create(policy)
    client.create(binding)
    path = client.path("apps/v1", "Deployment", "probe", namespace)

    def denies() -> bool:
        body = b'{"spec":{"replicas":0}}'
        status, text = client.request("PATCH", path + "?dryRun=All", body, "application/merge-patch+json")
        return status == 422 and "not yours to lower" in text

    try:
        eventually(denies, timeout=30, every=0.3, what="the policy to hold")
        yield
    finally:
        client.delete(_ADMISSION, "ValidatingAdmissionPolicyBinding", name)
        client.delete(_ADMISSION, "ValidatingAdmissionPolicy", name)


def test_approved_at_the_worker_and_carried_out_by_the_edge(
    testbed: Cluster, slack: FakeSlack, pagerduty: PagerDuty, streams: tuple[Kafka, Redis], tmp_path: Path
) -> None:
    """
    Approved in Slack at a worker: the edge scales the donor with its own credentials, the decode worker gets Ready, the
    one page resolves; and when the lease ends, and there is room, the donor is as before.
    """
    stage = ScaledStage(
        tmp_path, testbed, slack, pagerduty, streams, name="lent", times={"lease": "25s", "cooldown": "10m"}
    )
    with waiting_scene(testbed, "lent") as here:
        here.short_of_one()
        with only_lowered_by(testbed.client, here.namespace, EDGE):
            try:
                stage.service.start()
                plan = stage.plan(here.namespace)
                stage.wait_told(here.product, f"PLAN {plan['plan']}")
                stage.click(ALLOWED, "approve", here.product)
                done = stage.wait_for(plan["plan"], "succeeded", timeout=60)
                donor, seen = here.deployment(), stage.wait_told(here.product, RECOVERED)
                here.runs(1, DECODE)
                pages = pagerduty.about(here.namespace)
                here.node(4)
                given = stage.wait_for(plan["plan"], "restored", timeout=90)
                after = here.deployment()
                verified = stage.service.ask("audit", "verify", "--cluster", "lent")
            finally:
                stage.service.stop()
    print("", *given["history"], seen, verified.stdout, sep="\n  ")
    assert donor["spec"]["replicas"] == 2
    assert plan["plan"] in borrowed(donor)
    assert [page["status"] for page in pages] == ["resolved"]
    assert any("approved by Kim" in line for line in done["history"])
    assert (after["spec"]["replicas"], borrowed(after)) == (3, "")
    assert verified.returncode == 0, verified.stderr
    assert events_on(testbed, here.namespace, "summarizer") == ["RemediationApplied", "RemediationRestored"]


def test_an_edge_that_dies_with_an_order(
    testbed: Cluster,
    slack: FakeSlack,
    pagerduty: PagerDuty,
    streams: tuple[Kafka, Redis],
    tmp_path: Path,
    say: Say,
) -> None:
    """
    Killed while it carries out and while it gives back: no patch is made twice, none is forgotten.

    The donors' generations count every change of number or mark, by whomever.
    """
    stage = ScaledStage(
        tmp_path, testbed, slack, pagerduty, streams, name="mortal", times={"lease": "2h", "cooldown": "1s"}
    )
    with ExitStack() as opened:
        lanes = [Lane(opened.enter_context(waiting_scene(testbed, f"edge-{number}"))) for number in range(2)]
        opened.callback(stage.service.stop)
        stage.service.start()
        kills = Kills(stage, lanes, random.Random(SEED))
        try:
            tally = kills.play(KILLS)
        finally:
            say(f"{kills.tally}")
            print(stage.both.worker.tail(60), stage.both.edge.tail(60), sep="\n")
    assert tally.wrong == []
    assert tally.kills >= KILLS
    assert tally.cycles
