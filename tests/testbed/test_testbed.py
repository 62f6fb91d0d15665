"""The cluster itself: its programs work together, can be disturbed, and leave nothing behind."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.testbed import binaries, build, nodes
from tests.testbed.client import ApiError, Client
from tests.testbed.cluster import NOBODY, VIEWER, Cluster, ClusterFailed
from tests.testbed.plugin import Pool
from tests.testbed.waiting import eventually

pytestmark = pytest.mark.e2e


def test_pods_of_a_deployment_run_and_serve(testbed: Cluster, namespace: str, pool: Pool) -> None:
    """Scheduler, controllers and kubelets do their part; endpoints follow."""
    names = pool.add_gpu_nodes(2)
    testbed.client.create(build.vllm_deployment("plain", namespace, "org/model", gpus=2, replicas=3))
    testbed.client.create(build.service("plain", namespace, {"app": "plain"}))

    testbed.client.wait_for(
        "apps/v1",
        "Deployment",
        "plain",
        namespace,
        until=lambda found: found["status"].get("readyReplicas") == 3,
    )

    pods = testbed.client.list("v1", "Pod", namespace)
    assert {pod["spec"]["nodeName"] for pod in pods} <= set(names)

    def addresses() -> set[str]:
        slices = testbed.client.list("discovery.k8s.io/v1", "EndpointSlice", namespace)
        return {ip for found in slices for e in found["endpoints"] or [] for ip in e["addresses"]}

    ips = {pod["status"]["podIP"] for pod in pods}
    eventually(lambda: addresses() == ips, what="an endpoint for every pod")


def test_a_pod_that_asks_for_too_much_gets_the_verdict(testbed: Cluster, namespace: str, pool: Pool) -> None:
    """The words are the real scheduler's."""
    pool.add_gpu_nodes(2)
    pool.add(build.cpu_node("cpu-00"))
    testbed.client.create(build.pod("wide", namespace, gpus=16))

    pod = testbed.client.wait_for(
        "v1",
        "Pod",
        "wide",
        namespace,
        until=lambda found: nodes.condition(found, "PodScheduled") == "False",
    )

    (verdict,) = pod["status"]["conditions"]
    assert verdict["reason"] == "Unschedulable"
    assert verdict["message"].startswith("0/3 nodes are available: 3 Insufficient nvidia.com/gpu.")


def test_the_scheduler_can_be_gone_for_a_while(testbed: Cluster, namespace: str, pool: Pool) -> None:
    """A pod waits without a verdict, and is placed afterwards."""
    pool.add_gpu_nodes(1)
    with testbed.without("kube-scheduler"):
        testbed.client.create(build.pod("early", namespace, gpus=1))
        pod = testbed.client.get("v1", "Pod", "early", namespace)
        assert "conditions" not in pod["status"]

    testbed.client.wait_for("v1", "Pod", "early", namespace, until=lambda pod: pod["spec"].get("nodeName"))


def test_a_paused_api_server_does_not_answer(testbed: Cluster) -> None:
    """Connections stay, answers do not come, and then it goes on."""
    impatient = Client(testbed.url, testbed.ca_file, testbed.token(), timeout=0.5)
    with testbed.paused("kube-apiserver"), pytest.raises(TimeoutError):
        impatient.list("v1", "Node")
    impatient.close()

    assert testbed.client.get("v1", "Namespace", "default")


def test_the_api_server_comes_back_with_what_it_had(testbed: Cluster, namespace: str, pool: Pool) -> None:
    """On the same port, and the programs that hang on it find it again."""
    testbed.restart_component("kube-apiserver")

    pool.add_gpu_nodes(1)
    testbed.client.create(build.pod("late", namespace, gpus=1))
    testbed.client.wait_for("v1", "Pod", "late", namespace, until=lambda pod: pod["status"]["phase"] == "Running")


def test_users_may_what_their_roles_say(testbed: Cluster, namespace: str) -> None:
    """A viewer reads, nobody does not, and a service account gets a token of its own."""
    assert testbed.client_for(VIEWER).list("v1", "Pod", namespace) == []
    with pytest.raises(ApiError, match="403"):
        testbed.client_for(VIEWER).list("v1", "Node")
    with pytest.raises(ApiError, match="403"):
        testbed.client_for(NOBODY).list("v1", "Pod", namespace)

    account = {"apiVersion": "v1", "kind": "ServiceAccount"}
    testbed.client.create(account | {"metadata": {"name": "sevenhop", "namespace": namespace}})
    kubeconfig = testbed.kubeconfig(f"system:serviceaccount:{namespace}:sevenhop")
    with pytest.raises(ApiError, match=f"system:serviceaccount:{namespace}:sevenhop"):
        testbed.client_for(f"system:serviceaccount:{namespace}:sevenhop").list("v1", "Node")
    assert json.loads(kubeconfig.read_text())["users"][0]["user"]["token"]


def test_the_client_can_apply_and_patch(testbed: Cluster, namespace: str) -> None:
    """In each of the API's four ways, and for trial."""
    client = testbed.client
    manifest = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "x", "namespace": namespace}}
    client.apply(manifest | {"data": {"a": "1"}})
    client.patch("v1", "ConfigMap", "x", namespace, {"data": {"b": "2"}})
    client.patch("v1", "ConfigMap", "x", namespace, {"data": {"c": "3"}}, strategic=True)
    client.patch("v1", "ConfigMap", "x", namespace, [{"op": "remove", "path": "/data/b"}])
    client.patch("v1", "ConfigMap", "x", namespace, {"data": {"d": "4"}}, dry_run=True)

    assert client.get("v1", "ConfigMap", "x", namespace)["data"] == {"a": "1", "c": "3"}
    client.delete("v1", "ConfigMap", "x", namespace)
    client.delete("v1", "ConfigMap", "x", namespace)
    assert client.find("v1", "ConfigMap", "x", namespace) is None


def test_two_clusters_at_once(testbed: Cluster) -> None:
    """They know nothing of each other."""
    with Cluster() as other:
        nodes.add_nodes(other.client, [build.gpu_node("only-there")])

        assert testbed.client.find("v1", "Node", "only-there") is None
        uids = [cluster.client.get("v1", "Namespace", "kube-system")["metadata"]["uid"] for cluster in (testbed, other)]
        assert uids[0] != uids[1]
    assert not other.folder.exists()


def test_a_start_that_fails_shows_the_log() -> None:
    """And ends what was started before."""
    cluster = Cluster(api_server_flags=["--no-such-flag"])

    with pytest.raises(ClusterFailed, match="unknown flag: --no-such-flag"):
        cluster.start()

    assert not cluster.folder.exists()


_OWNER = """
import json, sys
from tests.testbed.cluster import Cluster
cluster = Cluster().start()
print(cluster.folder, flush=True)
sys.stdin.read()
"""


@pytest.mark.parametrize("victim", ["owner", "supervisor"])
def test_kill_9_leaves_nothing_behind(victim: str) -> None:
    """Neither the death of the test runner nor that of its helper leaves a program running."""
    owner = subprocess.Popen(
        [sys.executable, "-c", _OWNER],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        cwd=Path(__file__).parents[2],
    )
    assert owner.stdin is not None
    assert owner.stdout is not None
    folder = Path(owner.stdout.readline().strip())
    programs = processes(folder)
    assert len(programs) >= 6  # the supervisor and five programs
    (supervisor,) = [pid for pid, line in programs.items() if "supervisor.py" in line]

    os.kill(owner.pid if victim == "owner" else supervisor, signal.SIGKILL)
    try:
        eventually(lambda: not processes(folder), timeout=10, what="the end of all programs")
        if victim == "owner":
            eventually(lambda: not folder.exists(), what="the end of the folder")
    finally:
        owner.kill()
        owner.communicate()
        shutil.rmtree(folder, ignore_errors=True)


def processes(folder: Path) -> dict[int, str]:
    """The processes that have this folder on their command line."""
    found = {}
    for path in Path("/proc").iterdir():
        try:
            line = (path / "cmdline").read_text().replace("\0", " ") if path.name.isdigit() else ""
        except OSError:
            continue  # it ended meanwhile
        if str(folder) in line:
            found[int(path.name)] = line
    return found


def test_up_and_down(tmp_path: Path) -> None:
    """`up` leaves a cluster with six nodes, `down` ends it."""
    # Its record is beside the programs, which must be found: a cache of its own with links to them.
    cache = tmp_path / "sevenhop"
    cache.mkdir()
    (cache / "testbed").mkdir()
    for path in binaries.cache_folder().iterdir():
        if path.name != "up.json":
            (cache / "testbed" / path.name).symlink_to(path)
    env = os.environ | {"XDG_CACHE_HOME": str(tmp_path)}

    def run(command: str) -> str:
        line = [sys.executable, "-m", "tests.testbed", command]
        return subprocess.run(
            line, cwd=Path(__file__).parents[2], env=env, text=True, capture_output=True, check=True
        ).stdout

    said = run("up")
    try:
        (export,) = [line for line in said.splitlines() if line.startswith("export KUBECONFIG=")]
        kubeconfig = Path(export.partition("=")[2])
        config = json.loads(kubeconfig.read_text())
        cluster, user = config["clusters"][0]["cluster"], config["users"][0]["user"]
        client = Client(cluster["server"], Path(cluster["certificate-authority"]), user["token"])
        assert len(client.list("v1", "Node")) == 6
        client.close()
        assert "up already" in run("up")
    finally:
        run("down")
    assert not processes(kubeconfig.parent)
    assert not kubeconfig.parent.exists()
