"""
The door of a real edge: it asks its own API server whose token it is, and a worker that holds none of that decides.

The edge's account has the rights that docs/reference renders and no others.
"""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e import remediation_objects as objects
from tests.e2e.remediation_stage import APPROVER, PLAYBOOK
from tests.e2e.scaled_people import KEY
from tests.e2e.scaled_roles import Role
from tests.e2e.service import sevenhop
from tests.e2e.test_scaled_slack import free_port
from tests.testbed.cluster import Cluster
from tests.testbed.kafka import Kafka
from tests.testbed.redis import Redis
from tests.testbed.waiting import eventually

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(300)]

NAME = "edge-door"
EDGE = "system:serviceaccount:sevenhop-edge-door:sevenhop"
STRANGER = "system:serviceaccount:approvers:mallory"


class Doors:
    """An edge that listens, and a worker that listens elsewhere."""

    def __init__(self, edge: Role, worker: Role, ports: tuple[int, int], cluster: Cluster) -> None:
        self.edge, self.worker, self.cluster = edge, worker, cluster
        self.ports = ports

    def switch(self, word: str, user: str, *, at: str = "edge", cluster: str = "") -> subprocess.CompletedProcess[str]:
        port = self.ports[0 if at == "edge" else 1]
        words = ["switch", word, "--server", f"http://127.0.0.1:{port}", "-m", "a test"]
        words += ["--kubeconfig", str(self.cluster.kubeconfig(user)), *(["--cluster", cluster] if cluster else [])]
        return sevenhop(*words)

    @property
    def is_stopped(self) -> bool:
        return any(row["is_on"] for row in self.worker.rows("safety") if row["what"] == "kill switch")


@pytest.fixture(scope="module")
def doors(testbed: Cluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Doors]:
    folder = tmp_path_factory.mktemp(NAME)
    objects.install(testbed.client, EDGE)
    for user in (APPROVER, STRANGER):
        objects.service_account(testbed.client, user)
    ports = (free_port(), free_port())
    with Kafka(1) as kafka, Redis() as redis:
        both = {
            "kafka": {"servers": kafka.servers.split(","), "partitions": 2, "replicas": 1, "prefix": NAME},
            "remediation": {"playbooks": {PLAYBOOK: {"mode": "approve"}}, "approvers": [f"kubernetes:{APPROVER}"]},
        }
        key = sevenhop_key(folder)
        edge = Role(
            folder, "edge",
            {
                **both, "cluster": NAME, "kubernetes": {"kubeconfig": str(testbed.kubeconfig(EDGE))},
                "web": {"listen": f"127.0.0.1:{ports[0]}"}, "runtime": {"decision_key": key},
            },
        )  # fmt: skip
        worker = Role(
            folder, "worker",
            {
                **both, "redis": {"url": redis.url}, "web": {"listen": f"127.0.0.1:{ports[1]}"},
                "runtime": {"decision_key": KEY},
            },
        )  # fmt: skip
        edge.start()
        worker.start()
        try:
            eventually(lambda: worker.serves(NAME) and worker.rows("workloads") is not None, timeout=90, every=0.2)
            yield Doors(edge, worker, ports, testbed)
        except TimeoutError:
            pytest.fail(f"{worker.tail()}\n\n{edge.tail()}")
        finally:
            edge.stop()
            worker.stop()


def sevenhop_key(folder: Path) -> str:
    """The edge's key, as an operator makes it of that of the workers."""
    config = folder / "key.yaml"
    config.write_text(f"runtime: {{decision_key: {KEY}}}\n")
    answer = sevenhop("edge-key", NAME, "--config", str(config))
    assert answer.returncode == 0, answer.stderr
    return answer.stdout.strip()


def test_a_token_is_reviewed_by_the_edge_and_followed_by_the_worker(doors: Doors) -> None:
    """The command is answered once the worker has stored it, and the audit names whom the API server named."""
    stopped = doors.switch("stop", APPROVER)
    assert stopped.returncode == 0, stopped.stderr + doors.edge.tail()
    assert stopped.stdout.startswith("the kill switch is on")
    assert doors.is_stopped
    assert f"kubernetes:{APPROVER}" in doors.worker.ask("audit", "list").stdout
    resumed = doors.switch("resume", APPROVER, cluster=NAME)
    assert resumed.returncode == 0, resumed.stderr
    assert not doors.is_stopped


def test_a_stranger_is_known_by_name_and_refused(doors: Doors) -> None:
    """The API server vouches for who it is; the worker says that this one may not."""
    answer = doors.switch("stop", STRANGER)
    assert answer.returncode == 1
    assert f"refused (you are kubernetes:{STRANGER})" in answer.stdout
    assert not doors.is_stopped


def test_another_cluster_is_refused_at_the_edge(doors: Doors) -> None:
    """Its API server knows nobody of another cluster."""
    answer = doors.switch("stop", APPROVER, cluster="elsewhere")
    assert answer.returncode == 1
    assert f"this is the edge of {NAME}; ask at the edge of elsewhere" in answer.stdout


def test_a_worker_says_where_a_token_goes(doors: Doors) -> None:
    """It has no API server: the person is told what to use instead, and nothing is done."""
    answer = doors.switch("stop", APPROVER, at="worker")
    assert answer.returncode == 2
    assert "a worker has no API server to ask who you are" in answer.stderr
    assert "at the cluster's edge" in answer.stderr
    assert not doors.is_stopped
