"""What a cluster does to those who watch it: kinds come and go, rights are missing, the API server restarts."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from sevenhop.core.objects.kinds import KINDS
from tests.e2e.scenes import Scene, is_ready, scene
from tests.e2e.service import Service, sevenhop
from tests.testbed import build
from tests.testbed.client import ApiError, Object
from tests.testbed.cluster import Cluster
from tests.testbed.nodes import condition
from tests.testbed.waiting import eventually

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(180)]

CRDS = "apiextensions.k8s.io/v1", "CustomResourceDefinition"
RBAC = "rbac.authorization.k8s.io/v1"
MODELS = "models.kubeai.org"
UNSEEN = "EndpointSlice.discovery.k8s.io"
UNREACHABLE = 3


@pytest.fixture
def here(testbed: Cluster) -> Iterator[Scene]:
    """Two vLLM replicas on one node."""
    with scene(testbed) as here:
        here.pool.add_gpu_nodes(1)
        here.client.create(
            build.vllm_deployment(
                "chat", here.namespace, "org/chat", replicas=2, gpus=2, node_selector=here.pool.node_selector
            )
        )
        here.wait_for_pods(2, is_ready)
        yield here


@pytest.fixture
def without_models(testbed: Cluster) -> Iterator[None]:
    """The cluster does not know KubeAI, for as long as the test lasts."""
    before = testbed.client.find(*CRDS, MODELS)
    _drop_crd(testbed)
    yield
    _drop_crd(testbed)
    if before is not None:
        kept = {key: before["metadata"][key] for key in ("name", "labels", "annotations") if key in before["metadata"]}
        testbed.client.create({**before, "metadata": kept, "status": {}})


def _drop_crd(cluster: Cluster) -> None:
    cluster.client.delete(*CRDS, MODELS)
    eventually(lambda: cluster.client.find(*CRDS, MODELS) is None, what=f"the end of {MODELS}")


def _created(cluster: Cluster, manifest: Object) -> Object | None:
    try:
        return cluster.client.create(manifest)
    except ApiError as error:
        if error.status == 404:
            return None
        raise


def _models_crd() -> Object:
    anything = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    version = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": anything}}
    return {
        "apiVersion": CRDS[0],
        "kind": CRDS[1],
        "metadata": {"name": MODELS},
        "spec": {
            "group": "kubeai.org",
            "names": {"kind": "Model", "plural": "models"},
            "scope": "Namespaced",
            "versions": [version],
        },
    }


def test_a_crd_may_come_and_go(
    testbed: Cluster, here: Scene, without_models: None, start: Callable[..., Service]
) -> None:
    """A kind that is installed later is picked up without a restart, and its end is no trouble either."""
    service = start(name=here.namespace)
    states = [service.state_of("Model.kubeai.org")]
    testbed.client.create(_models_crd())
    testbed.client.wait_for(*CRDS, MODELS, until=lambda crd: condition(crd, "Established") == "True")
    model = {"url": "hf://org/m", "engine": "VLLM", "features": ["TextGeneration"], "minReplicas": 1, "replicas": 1}
    late = {
        "apiVersion": "kubeai.org/v1",
        "kind": "Model",
        "metadata": {"name": "late", "namespace": here.namespace},
        "spec": model,
    }
    # The API server serves a kind a moment after it calls it established.
    eventually(lambda: _created(testbed, late), timeout=20, every=0.2, what="an object of the new kind")

    def names() -> set[str]:
        return {row["workload"] for row in service.rows("workloads") if row["namespace"] == here.namespace}

    eventually(lambda: "late" in names(), timeout=20, every=0.2, what="the workload of the new kind")
    states.append(service.state_of("Model.kubeai.org"))
    _drop_crd(testbed)
    is_absent = lambda: service.state_of("Model.kubeai.org") == "absent"  # noqa: E731
    eventually(is_absent, timeout=20, every=0.2, what="the end of the kind")
    eventually(lambda: names() == {"chat"}, timeout=10, every=0.2, what="the end of its workload")

    assert states == ["absent", "synced"]
    assert not service.doctor()["trouble"]


def test_one_kind_is_forbidden_and_the_others_go_on(
    testbed: Cluster, here: Scene, start: Callable[..., Service]
) -> None:
    """What we may not read shows in `doctor` with its reason and makes its facts unknown; workloads are still named."""
    user = _reader_of_all_but(testbed, here, UNSEEN)
    service = start(user=user, name=here.namespace)
    report = service.doctor()
    rows = [row for row in service.rows("workloads") if row["namespace"] == here.namespace]

    assert [(t["kind"], t["state"]) for t in report["trouble"]] == [(UNSEEN, "forbidden")]
    assert "endpointslices" in report["trouble"][0]["detail"].lower()
    assert [(row["workload"], row["ready"], row["desired"]) for row in rows] == [("chat", 2, 2)]
    assert service.ask("doctor").returncode == 1


def _reader_of_all_but(cluster: Cluster, here: Scene, unseen: str) -> str:
    """A service account with the rights that we ask for, but one; its user name."""
    name = f"reader-{here.namespace}"
    rules = [
        {"apiGroups": [kind.group], "resources": [kind.plural], "verbs": ["get", "list", "watch"]}
        for kind in KINDS.values()
        if kind.name != unseen
    ]
    client = cluster.client
    client.create(
        {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": name, "namespace": here.namespace}}
    )
    client.create({"apiVersion": RBAC, "kind": "ClusterRole", "metadata": {"name": name}, "rules": rules})
    client.create(
        {
            "apiVersion": RBAC,
            "kind": "ClusterRoleBinding",
            "metadata": {"name": name},
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": name},
            "subjects": [{"kind": "ServiceAccount", "name": name, "namespace": here.namespace}],
        }
    )
    return f"system:serviceaccount:{here.namespace}:{name}"


def test_a_deletion_that_nobody_told_us_of(testbed: Cluster, here: Scene, start: Callable[..., Service]) -> None:
    """The API server restarts while a pod goes and we do not look: the inventory converges, and nothing is told."""
    service = start(name=here.namespace)

    def pods() -> set[str]:
        return {row["pod"] for row in service.rows("pods") if row["namespace"] == here.namespace}

    before = eventually(pods, what="pods")
    service.pause()
    try:
        victim = here.pods()[0]["metadata"]["name"]
        here.client.delete("v1", "Pod", victim, here.namespace, grace=0)
        real = {pod["metadata"]["name"] for pod in here.wait_for_pods(2, is_ready)}
        testbed.restart_component("kube-apiserver")
        time.sleep(1)
    finally:
        service.resume()
    eventually(lambda: pods() == real, timeout=60, every=0.3, what="the same pods as the cluster's")

    assert victim in before
    assert victim not in pods()
    assert service.console == ""


@pytest.mark.parametrize("command", [["scan"], ["run"], ["doctor"]], ids=lambda words: words[0])
def test_a_wrong_token_is_one_clear_line(testbed: Cluster, tmp_path: Path, command: list[str]) -> None:
    """Exit code 3, and one line on stderr that says who refuses and what to do; no traceback, no token."""
    good = testbed.kubeconfig().read_text("utf-8")
    token = testbed.token()
    bad = tmp_path / "kubeconfig"
    bad.write_text(good.replace(token, "expired-token-of-yesterday"), "utf-8")
    bad.chmod(0o600)
    answer = sevenhop(*command, "--kubeconfig", str(bad), "--state", str(tmp_path / "state"))
    lines = [line for line in answer.stderr.splitlines() if line.strip()]

    assert answer.returncode == UNREACHABLE
    assert answer.stdout == ""
    assert len(lines) == 1, answer.stderr
    assert "401" in lines[0] or "token" in lines[0].lower() or "credential" in lines[0].lower()
    assert "expired-token-of-yesterday" not in answer.stderr


def test_a_cluster_that_is_not_there(testbed: Cluster, tmp_path: Path) -> None:
    """Exit code 3 and one line with the address."""
    bad = tmp_path / "kubeconfig"
    bad.write_text(testbed.kubeconfig().read_text("utf-8").replace(testbed.url, "https://127.0.0.1:1"), "utf-8")
    answer = sevenhop("scan", "--kubeconfig", str(bad))

    assert answer.returncode == UNREACHABLE
    assert answer.stderr.count("\n") == 1, answer.stderr
    assert "127.0.0.1:1" in answer.stderr


def test_scan_names_workloads_and_what_cannot_be_seen(testbed: Cluster, here: Scene) -> None:
    """One look: workloads with their counts, capacity, and which hop is blind for want of what."""
    answer = sevenhop("scan", "--kubeconfig", str(testbed.kubeconfig()), "-o", "json")
    assert answer.returncode == 0, answer.stderr
    report = json.loads(answer.stdout)
    rows = [row for row in report["workloads"] if row["namespace"] == here.namespace]
    coverage = {row["hop"]: row for row in report["coverage"]}

    assert [(row["workload"], row["framework"], row["ready"], row["desired"]) for row in rows] == [
        ("chat", "plain", 2, 2)
    ]
    assert rows[0]["model"] == "org/chat" or rows[0]["model"] == "chat"
    assert list(coverage) == ["gpu", "discovery", "scheduling", "pod", "model", "service", "gateway"]
    assert coverage["scheduling"]["seen"]
    assert not coverage["gpu"]["seen"]
    assert any(pool["product"] == "NVIDIA-H100-80GB-HBM3" and pool["bound"] >= 4 for pool in report["capacity"])
    assert report["inert_rules"]
