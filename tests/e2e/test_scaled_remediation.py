"""
Remediation over two processes: the worker decides and holds no credentials of any cluster, the edge carries out.

Real control plane, Kafka and Redis; the edge has the rights that docs/reference renders and no others, and the API
server lets nobody but it lower what is lent.
"""

from __future__ import annotations

import contextlib
import json
import os
import random
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack
from itertools import count
from pathlib import Path
from typing import cast

import pytest

from sevenhop.runtime.scaled.signing import edge_key
from sevenhop.settings_scaled import KafkaSettings
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
from tests.e2e.scaled_forgery import forgeries, of_worker, patch_of, put, refused
from tests.e2e.scaled_people import KEY
from tests.e2e.scaled_roles import Role, Row
from tests.e2e.service import Service
from tests.e2e.slack import FakeSlack
from tests.fakes.slack_server import APP_TOKEN
from tests.saying import Say
from tests.testbed import build
from tests.testbed.client import Client
from tests.testbed.cluster import Cluster
from tests.testbed.kafka import Kafka
from tests.testbed.ports import free_ports
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
    """
    The stage of the embedded stories, played by an edge and a worker, each with its key.

    Args:
        key: Of the worker; empty for none on both sides.
        key_at_edge: Another than it ought to have.

    Attributes:
        listens: Where the edge does.
    """

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
        key: str = KEY,
        key_at_edge: str | None = None,
    ) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        if key_at_edge is None:
            key_at_edge = edge_key(key, name) if key else ""
        self.listens = f"127.0.0.1:{free_ports(1)[0]}"
        self.cluster, self.slack, self.pagerduty, self.port = cluster, slack, pagerduty, 0
        kafka, redis = streams
        its_kafka = {"servers": kafka.servers.split(","), "partitions": 2, "replicas": 1, "prefix": name}
        self.kafka = KafkaSettings.model_validate(its_kafka)
        both = {
            "kafka": its_kafka,
            "redis": {"url": redis.url},
        }
        edge = Role(folder, "edge", {
            **both, "cluster": name, "web": {"listen": self.listens},
            "runtime": {"decision_key": key_at_edge},
            "kubernetes": {"kubeconfig": str(cluster.kubeconfig(EDGE)), "discovery_interval": "2s"},
        })  # fmt: skip
        worker = Role(folder, "worker", {
            **both, "runtime": {"decision_key": key},
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


@pytest.mark.parametrize(("name", "key"), [("lent", KEY), ("trusted", "")], ids=["signed", "without a key"])
def test_approved_at_the_worker_and_carried_out_by_the_edge(
    testbed: Cluster,
    slack: FakeSlack,
    pagerduty: PagerDuty,
    streams: tuple[Kafka, Redis],
    tmp_path: Path,
    name: str,
    key: str,
) -> None:
    """
    Approved in Slack at a worker: the edge scales the donor with its own credentials, the decode worker gets Ready, the
    one page resolves; and when the lease ends, and there is room, the donor is as before.  Without a key each process
    says once that nothing is signed.
    """
    stage = ScaledStage(
        tmp_path, testbed, slack, pagerduty, streams, name=name, times={"lease": "40s", "cooldown": "10m"}, key=key
    )
    with waiting_scene(testbed, name) as here:
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
                verified = stage.service.ask("audit", "verify", "--cluster", name)
                doctor = stage.service.ask("doctor")
            finally:
                stage.service.stop()
    print("", *given["history"], seen, verified.stdout, sep="\n  ")
    assert donor["spec"]["replicas"] == 2
    assert plan["plan"] in borrowed(donor)
    assert [page["status"] for page in pages] == ["resolved"]
    assert any("approved by Kim" in line for line in done["history"])
    assert (after["spec"]["replicas"], borrowed(after)) == (3, "")
    assert verified.returncode == 0, verified.stderr
    said = [role.log.count("runtime.decision_key is not set") for role in (stage.both.edge, stage.both.worker)]
    assert said == ([0, 0] if key else [1, 1])
    assert doctor.stdout.count("Not signed: runtime.decision_key is not set") == (0 if key else 1)
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


def test_an_order_that_no_worker_gave_changes_nothing_and_is_told(
    testbed: Cluster, slack: FakeSlack, pagerduty: PagerDuty, streams: tuple[Kafka, Redis], tmp_path: Path
) -> None:
    """
    Written straight into Kafka: refused by the edge, named in its log and counted.

    One that a worker did sign is carried out once, whoever copies it, also by an edge that has just begun; and a plan
    that is approved meanwhile goes its way.
    """
    name = "forged"
    stage = ScaledStage(
        tmp_path, testbed, slack, pagerduty, streams, name=name, times={"lease": "2h", "cooldown": "10m"}
    )
    edge = stage.both.edge
    with waiting_scene(testbed, name) as here:
        here.short_of_one()
        try:
            stage.service.start()
            plan = stage.plan(here.namespace)
            donor = here.deployment()
            forged = forgeries(patch_of(name, "none", donor, b'{"spec":{"replicas":0}}'))
            put(stage.kafka, name, *forged.values())
            eventually(lambda: refused(stage.listens) == {"unsigned": 1, "forged": 2}, timeout=20, every=0.2)
            assert here.deployment()["metadata"]["generation"] == donor["metadata"]["generation"]
            assert edge.log.count("is refused: unsigned: ") == 1
            assert edge.log.count("is refused: forged: ") == 2

            def notes(text: str) -> bytes:
                return b'{"metadata":{"annotations":{"noted":%s}}}' % text.encode()

            def noted() -> str:
                return str(here.deployment()["metadata"].get("annotations", {}).get("noted", ""))

            true = of_worker(patch_of(name, "true", donor, notes('"yes"')))
            put(stage.kafka, name, true)
            eventually(lambda: noted() == "yes", timeout=20, every=0.2, what="the order of a worker")
            testbed.client.patch("apps/v1", "Deployment", "summarizer", here.namespace, [
                {"op": "remove", "path": "/metadata/annotations/noted"}
            ])  # fmt: skip
            put(stage.kafka, name, true)
            eventually(lambda: refused(stage.listens).get("replayed") == 1, timeout=20, every=0.2)
            edge.kill()
            edge.start()
            eventually(lambda: "term " in edge.log and refused(stage.listens) == {}, timeout=40, every=0.2)
            probes = count(1)

            def listens() -> bool:
                """What is ordered before it does is not carried out by it."""
                probe = f"probe-{next(probes)}"
                put(stage.kafka, name, of_worker(patch_of(name, probe, donor, notes(f'"{probe}"'))))
                return noted().startswith("probe-")

            eventually(listens, timeout=40, every=1.0, what="an order at the edge that took over")
            marker = of_worker(patch_of(name, "marker", donor, notes('"later"')))
            put(stage.kafka, name, true, marker)
            eventually(lambda: noted() == "later", timeout=20, every=0.2, what="the order behind the copy")
            assert refused(stage.listens) == {"replayed": 1}

            stage.wait_told(here.product, f"PLAN {plan['plan']}")
            stage.click(ALLOWED, "approve", here.product)
            stage.wait_for(plan["plan"], "succeeded", timeout=60)
            assert here.replicas() == 2
            assert stage.both.worker.log.count("unsigned") == 0
        finally:
            stage.service.stop()


def test_an_edge_with_another_key_carries_out_nothing_and_the_run_says_so(
    testbed: Cluster, slack: FakeSlack, pagerduty: PagerDuty, streams: tuple[Kafka, Redis], tmp_path: Path
) -> None:
    """
    A worker says so within seconds, before anybody approves; then the plan says why it waits, and nothing is ordered.

    Once the edge has the right key the same plan goes its way.
    """
    name = "miskeyed"
    stage = ScaledStage(
        tmp_path, testbed, slack, pagerduty, streams, name=name, times={"lease": "2h", "cooldown": "10m"},
        key_at_edge=edge_key(KEY, "elsewhere"),
    )  # fmt: skip
    edge, why = stage.both.edge, "the edge of miskeyed signs with another key: "
    with waiting_scene(testbed, name) as here:
        here.short_of_one()
        try:
            stage.service.start()
            said = f"No plan can be carried out in miskeyed: {why}"
            eventually(lambda: said in stage.service.ask("doctor").stdout, timeout=10, every=0.5)
            assert stage.service.ask("doctor").returncode == 1
            plan = stage.plan(here.namespace)
            donor = here.deployment()
            stage.wait_told(here.product, f"PLAN {plan['plan']}")
            stage.click(ALLOWED, "approve", here.product)
            eventually(lambda: why in stage.describe(plan["plan"])["failing"], timeout=15, every=0.5)
            assert here.deployment()["metadata"]["generation"] == donor["metadata"]["generation"]
            assert "an order (" not in edge.log
            assert not any(secret in stage.both.worker.log + edge.log for secret in (KEY, edge_key(KEY, name)))

            edge.stop()
            settings = json.loads(edge.config.read_text())
            settings["runtime"]["decision_key"] = edge_key(KEY, name) + "\n"  # as a Secret made from a file has it
            edge.config.write_text(json.dumps(settings))
            edge.start()
            done = stage.wait_for(plan["plan"], "succeeded", timeout=90)
            assert (here.replicas(), done["failing"]) == (2, "")
            assert stage.service.ask("doctor").stdout.count(why) == 0
        finally:
            stage.service.stop()
