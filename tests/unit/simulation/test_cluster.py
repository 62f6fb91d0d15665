"""Controllers, kubelets and scheduler of the simulated cluster, in virtual time."""

from __future__ import annotations

import gzip
import json
from collections import Counter
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from sevenhop.core.objects.kinds import KINDS
from sevenhop.simulation.clock import VirtualClock
from sevenhop.simulation.cluster import SimulatedCluster, gpu_node
from sevenhop.simulation.controllers import is_ready
from sevenhop.simulation.scheduler import Scheduler
from sevenhop.simulation.store import Data, Store
from tests.shared import shared_path

NOON = datetime(2026, 11, 30, 12, tzinfo=UTC)
H100 = "NVIDIA-H100-80GB-HBM3"


def deployment(name: str, replicas: int, *, gpus: int = 2, **extra: Any) -> Data:
    labels = {"app": name}
    limits = {"nvidia.com/gpu": str(gpus)}
    container = {"name": "main", "image": "i:1", "resources": {"limits": limits, "requests": limits}}
    template = {"metadata": {"labels": labels}, "spec": {"containers": [container], **extra.pop("pod", {})}}
    return {
        "metadata": {"name": name, "namespace": "x"},
        "spec": {"replicas": replicas, "selector": {"matchLabels": labels}, "template": template, **extra},
    }


@pytest.fixture
def cluster() -> SimulatedCluster:
    made = SimulatedCluster(VirtualClock(NOON), load_s=lambda _: 60)
    made.store.create("Node", gpu_node("gpu-1", H100, 4))
    made.store.create("Node", gpu_node("cpu-1", "", 0))
    return made


def pods(cluster: SimulatedCluster) -> list[Data]:
    return cluster.store.all("Pod")


def condition(pod: Data) -> Data:
    return next(c for c in pod["status"]["conditions"] if c["type"] == "PodScheduled")


def seconds(cluster: SimulatedCluster, amount: float) -> None:
    cluster.advance(timedelta(seconds=amount))


def test_from_deployment_to_ready_pods(cluster: SimulatedCluster) -> None:
    """Pods are made, bound, running and, after their load time to the second, ready."""
    cluster.store.create("Deployment.apps", deployment("d", 2))
    seconds(cluster, 61)
    assert [p["status"]["phase"] for p in pods(cluster)] == ["Running", "Running"]
    assert not any(map(is_ready, pods(cluster)))
    seconds(cluster, 1)

    assert all(map(is_ready, pods(cluster)))
    assert {p["spec"]["nodeName"] for p in pods(cluster)} == {"gpu-1"}
    status = cluster.store.get("Deployment.apps", "x", "d")["status"]
    assert (status["replicas"], status["readyReplicas"], status["unavailableReplicas"]) == (2, 2, 0)
    reasons = Counter(e["reason"] for e in cluster.store.all("Event"))
    assert reasons == {"Scheduled": 2}


def test_a_shortage_in_the_schedulers_words(cluster: SimulatedCluster) -> None:
    """What fits nowhere waits with the text of kube-scheduler 1.36, and is bound once there is room."""
    cluster.store.create("Deployment.apps", deployment("d", 3))
    seconds(cluster, 5)
    waiting = next(p for p in pods(cluster) if not p["spec"].get("nodeName"))
    since = condition(waiting)["lastTransitionTime"]

    text = (
        "0/2 nodes are available: 2 Insufficient nvidia.com/gpu. no new claims to deallocate, "
        "preemption: 0/2 nodes are available: 1 No preemption victims found for incoming pod, "
        "1 Preemption is not helpful for scheduling."
    )
    assert (condition(waiting)["reason"], condition(waiting)["message"]) == ("Unschedulable", text)
    failed = [e for e in cluster.store.all("Event") if e["reason"] == "FailedScheduling"]
    assert [(e["message"], e["involvedObject"]["name"]) for e in failed] == [(text, waiting["metadata"]["name"])]

    cluster.store.create("Node", gpu_node("cpu-2", "", 0))
    seconds(cluster, 5)
    waiting = next(p for p in pods(cluster) if not p["spec"].get("nodeName"))
    assert condition(waiting)["message"].startswith("0/3 nodes")
    assert condition(waiting)["lastTransitionTime"] == since

    cluster.store.create("Node", gpu_node("gpu-2", H100, 2))
    seconds(cluster, 1)
    assert all(p["spec"].get("nodeName") for p in pods(cluster))


def test_scaling_down_removes_the_cheapest_and_frees_its_place(cluster: SimulatedCluster) -> None:
    """The pod with the lowest deletion cost leaves, holds its GPUs until it has ended, and the waiting one moves in."""
    cluster.store.create("Deployment.apps", deployment("donor", 2))
    seconds(cluster, 70)
    cluster.store.create("Deployment.apps", deployment("asks", 1))
    seconds(cluster, 1)
    victim = pods(cluster)[-1]["metadata"]["name"]
    assert victim.startswith("donor")
    cluster.store.change(
        "Pod",
        "x",
        victim,
        lambda p: {
            **p,
            "metadata": {**p["metadata"], "annotations": {"controller.kubernetes.io/pod-deletion-cost": "-100"}},
        },
    )
    cluster.store.change("Deployment.apps", "x", "donor", lambda d: {**d, "spec": {**d["spec"], "replicas": 1}})
    cluster.settle()
    assert cluster.store.get("Pod", "x", victim)["metadata"]["deletionTimestamp"]
    assert not next(p for p in pods(cluster) if p["metadata"]["name"].startswith("asks"))["spec"].get("nodeName")
    seconds(cluster, 1)

    assert cluster.store.find("Pod", "x", victim) is None
    assert next(p for p in pods(cluster) if p["metadata"]["name"].startswith("asks"))["spec"]["nodeName"] == "gpu-1"


def test_a_rollout_that_blocks_itself(cluster: SimulatedCluster) -> None:
    """A surge pod waits for the GPUs of its own old pods; with maxSurge 0 the rollout goes through."""
    cluster.apply(
        "Deployment.apps", deployment("d", 2, strategy={"rollingUpdate": {"maxUnavailable": 0, "maxSurge": 1}})
    )
    seconds(cluster, 70)
    changed = deployment("d", 2, strategy={"rollingUpdate": {"maxUnavailable": 0, "maxSurge": 1}})
    changed["spec"]["template"]["spec"]["containers"][0]["image"] = "i:2"
    cluster.apply("Deployment.apps", changed)
    seconds(cluster, 300)
    assert [bool(p["spec"].get("nodeName")) for p in pods(cluster)].count(False) == 1
    assert len(pods(cluster)) == 3

    changed["spec"]["strategy"] = {"rollingUpdate": {"maxUnavailable": 1, "maxSurge": 0}}
    cluster.apply("Deployment.apps", changed)
    seconds(cluster, 600)
    assert [p["spec"]["containers"][0]["image"] for p in pods(cluster)] == ["i:2", "i:2"]
    assert all(map(is_ready, pods(cluster)))


def test_preemption(cluster: SimulatedCluster) -> None:
    """A pod of higher priority gets the place of a lower one, which is told so."""
    cluster.store.create("PriorityClass.scheduling.k8s.io", {"metadata": {"name": "high"}, "value": 1000})
    cluster.store.create("Deployment.apps", deployment("low", 2))
    seconds(cluster, 70)
    cluster.store.create("Deployment.apps", deployment("high", 1, pod={"priorityClassName": "high"}))
    seconds(cluster, 40)

    high = next(p for p in pods(cluster) if p["metadata"]["name"].startswith("high"))
    assert high["spec"]["nodeName"] == "gpu-1"
    assert "Preempted" in {e["reason"] for e in cluster.store.all("Event")}


def test_the_queue(cluster: SimulatedCluster) -> None:
    """Of two that wait, the one of higher priority is placed first, though it came later."""
    cluster.store.create("PriorityClass.scheduling.k8s.io", {"metadata": {"name": "high"}, "value": 1000})
    cluster.store.create("Deployment.apps", deployment("a-low", 1, gpus=4))
    cluster.store.create("Deployment.apps", deployment("b-high", 1, gpus=4, pod={"priorityClassName": "high"}))
    seconds(cluster, 1)

    bound = [p["metadata"]["name"] for p in pods(cluster) if p["spec"].get("nodeName")]
    assert len(bound) == 1
    assert bound[0].startswith("b-high")
    assert {e["reason"] for e in cluster.store.all("Event")} == {"Scheduled", "FailedScheduling"}


def test_a_rollout_without_surge(cluster: SimulatedCluster) -> None:
    """With no surge, and a share of unavailable pods that rounds to none, one at a time is replaced all the same."""
    rolling = {"rollingUpdate": {"maxUnavailable": "25%", "maxSurge": 0}}
    cluster.apply("Deployment.apps", deployment("d", 2, strategy=rolling))
    seconds(cluster, 70)
    changed = deployment("d", 2, strategy=rolling)
    changed["spec"]["template"]["spec"]["containers"][0]["image"] = "i:2"
    cluster.apply("Deployment.apps", changed)
    seconds(cluster, 300)

    assert [p["spec"]["containers"][0]["image"] for p in pods(cluster)] == ["i:2", "i:2"]


def test_gated_pods_are_left_alone(cluster: SimulatedCluster) -> None:
    """A pod with a scheduling gate waits without an Event."""
    cluster.store.create("Deployment.apps", deployment("d", 1, pod={"schedulingGates": [{"name": "kueue"}]}))
    seconds(cluster, 5)

    assert condition(pods(cluster)[0])["reason"] == "SchedulingGated"
    assert cluster.store.all("Event") == []


def test_what_belongs_to_a_deleted_owner_goes(cluster: SimulatedCluster) -> None:
    """Deleting a Deployment ends its ReplicaSet and its pods."""
    cluster.store.create("Deployment.apps", deployment("d", 2))
    seconds(cluster, 10)
    cluster.store.delete("Deployment.apps", "x", "d")
    seconds(cluster, 10)

    assert (cluster.store.all("ReplicaSet.apps"), pods(cluster)) == ([], [])


def test_the_same_story_twice(cluster: SimulatedCluster) -> None:
    """Nothing but the given time decides: names, uids and versions are the same in every run."""

    def tell() -> list[Data]:
        again = SimulatedCluster(VirtualClock(NOON), load_s=lambda _: 60)
        again.store.create("Node", gpu_node("gpu-1", H100, 4))
        again.store.create("Deployment.apps", deployment("d", 3))
        again.advance(timedelta(seconds=90))
        return [data for kind in again.store.kinds() for data in again.store.all(kind.name)]

    assert tell() == tell()


def test_recorded_verdicts_of_the_real_scheduler() -> None:
    """Of recorded cases of kube-scheduler 1.36, what fits is bound, and the refusals read the same, word by word."""
    lines = gzip.decompress(shared_path("data/scheduler/verdicts.jsonl.gz").read_bytes()).splitlines()
    cases = [case for case in map(json.loads, lines) if case["class"] == "verdict"][::4]
    plurals = {kind.plural.lower(): kind.name for kind in KINDS.values()}
    outcomes: Counter[tuple[str, bool]] = Counter()
    for case in cases:
        pod = _schedule(case, plurals)
        verdict = case["verdict"]
        if verdict["fits"]:
            outcomes["bound", bool(pod["spec"].get("nodeName"))] += 1
        else:
            message = next((c["message"] for c in pod["status"].get("conditions", ())), None)
            outcomes["text", message == verdict["message"]] += 1

    assert outcomes["bound", False] == 0
    assert outcomes["text", True] >= 0.95 * (outcomes["text", True] + outcomes["text", False])


def _schedule(case: Data, plurals: dict[str, str]) -> Data:
    store = Store(lambda: NOON)
    subject = (case["subject"]["namespace"], case["subject"]["name"])
    for plural, objects in case["objects"].items():
        for data in objects if plural != "events" else ():
            is_subject = plural == "pods" and (data["metadata"]["namespace"], data["metadata"]["name"]) == subject
            store.create(plurals[plural.lower()], {**data, "status": {}} if is_subject else data)
    Scheduler(store, lambda: NOON).step()
    return store.get("Pod", *subject)
