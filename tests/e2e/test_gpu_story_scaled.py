"""A GPU falls off the bus, and all of it goes through Kafka: agent, edge, worker, Slack; on a real control plane."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.e2e.gpu_scene import gpu_node, prepare_account, ready, settings_of
from tests.e2e.remediation_scenes import DECODE, DynamoStandIn, waiting_scene
from tests.e2e.rules import hurried_rules
from tests.e2e.scaled_roles import Role
from tests.e2e.slack import FakeSlack, shown
from tests.fakes.nvml_double import build as build_double
from tests.testbed.cluster import Cluster
from tests.testbed.kafka import Kafka
from tests.testbed.ports import free_ports
from tests.testbed.redis import Redis
from tests.testbed.waiting import eventually

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(400)]

HOLDS = {"gpu-lost": "1s", "node-advertises-fewer-gpus": "5s"}
QUIET_S = 8.0
"""Longer than either of these holds: what would be told by mistake has been told by then."""


def test_through_kafka(testbed: Cluster, slack: FakeSlack, tmp_path: Path) -> None:
    """
    Agent, edge, Kafka, worker, Slack: the same message, from a worker that has never seen the cluster; though here the
    device plugin is the first to notice.
    """
    listen = f"127.0.0.1:{free_ports(1)[0]}"
    with ExitStack() as opened:
        kafka, redis = opened.enter_context(Kafka(1)), opened.enter_context(Redis())
        here = opened.enter_context(waiting_scene(testbed, "xid-kafka"))
        opened.enter_context(DynamoStandIn(testbed.client))
        prepare_account(testbed.client, here.namespace)
        node = opened.enter_context(gpu_node(here, tmp_path / "node", build_double(tmp_path / "nvml"), 2))
        here.llama(2)
        ready(here, DECODE)
        (victim,) = [pod["metadata"]["name"] for pod in here.pods(DECODE)]
        both = {
            "kafka": {"servers": kafka.servers.split(","), "partitions": 2, "replicas": 1},
            "redis": {"url": redis.url},
        }
        edge = Role(tmp_path, "edge", {
            **both, **settings_of(here.namespace, listen), "cluster": here.namespace,
            "kubernetes": {"kubeconfig": str(testbed.kubeconfig())},
        })  # fmt: skip
        worker = Role(tmp_path, "worker", {
            **both, "rules": [str(hurried_rules(tmp_path, HOLDS))], "incidents": {"group_wait": "0s"},
            "receivers": {"slack": slack.settings},
        })  # fmt: skip
        for role in (edge, worker):
            opened.callback(role.stop)
            role.start()
        node.start(f"http://{listen}")

        def are_held() -> bool:
            return [row["pods"] for row in worker.rows("gpus")] == [[f"{here.namespace}/{victim}"]] * 2

        eventually_or_logs(are_held, edge, worker)
        node.withdraw(1)
        time.sleep(1)
        began = time.time()
        node.falls_off_the_bus(1)
        eventually_or_logs(lambda: bool(slack.posts_about(here.namespace)), edge, worker)
        (post,) = slack.posts_about(here.namespace)
        print(f"XID → message through Kafka: {post['at'] - began:.2f} s")
        time.sleep(QUIET_S)
        posts, said = slack.posts_about(here.namespace), shown(slack.messages_about(here.namespace)[0])
        gpus = worker.rows("gpus")
    print(said)
    assert len(posts) == 1
    assert f"{node.name} lost GPU 1: XID 79, fallen off the bus; hits {here.namespace}/llama-70b decode" in said
    assert f"{node.name} advertises 1 of 2 GPUs" in said
    assert [(gpu["cluster"], gpu["index"], gpu["xid"]) for gpu in gpus] == [
        (here.namespace, 0, 0),
        (here.namespace, 1, 79),
    ]


def eventually_or_logs(look: Callable[[], bool], *roles: Role) -> None:
    try:
        eventually(look, timeout=150, every=0.2)
    except TimeoutError:
        pytest.fail("\n\n".join(role.tail() for role in roles))
