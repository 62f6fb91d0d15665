"""A JobSet is one workload where some of its pods run an engine, and none otherwise."""

from __future__ import annotations

from typing import Any

import pytest

from sevenhop.core.inventory.discovery import Discovery
from sevenhop.core.inventory.workloads import Framework, Workload
from sevenhop.frameworks import FRAMEWORKS
from tests.unit.frameworks.running import Manifest, container, job_set, objects_of, replicated_job

SERVE = container(gpus=8, args=["--model", "org/llama-405b", "--revision", "v2"])
WORKER = container("worker", gpus=4, command=["ray", "start"])
TRAIN = container("train", "registry/trainer:1", gpus=8, command=["torchrun", "train.py"])


def discovered(*manifests: Manifest) -> Discovery:
    discovery = Discovery(objects_of(manifests), FRAMEWORKS)
    discovery.settle()
    return discovery


def only(*manifests: Manifest) -> Workload:
    (workload,) = discovered(*manifests).workloads.values()
    return workload


def counts(workload: Workload) -> dict[str, tuple[str, int | None, int]]:
    """Component to (role, pods that are wanted, GPUs of one)."""
    return {part.name: (part.role, part.desired, part.gpus_per_replica) for part in workload.components}


def test_a_set_is_one_workload() -> None:
    """Not one for each of its Jobs: its replicated jobs are the components, counted in pods."""
    workload = only(
        *job_set("llama", replicated_job("leader", SERVE), replicated_job("workers", WORKER, replicas=2, parallelism=3))
    )

    assert (workload.key, workload.framework) == (("prod", "llama"), Framework.PLAIN)
    assert workload.kind == "JobSet.jobset.x-k8s.io"
    assert (workload.model.name, workload.model.version) == ("org/llama-405b", "v2")
    assert counts(workload) == {"leader": ("leader", 1, 8), "workers": ("worker", 6, 4)}
    assert [part.scale for part in workload.components] == [None, None]


@pytest.mark.parametrize(
    ("job", "pods"),
    [
        pytest.param({}, 2, id="one pod each"),
        pytest.param({"parallelism": 4}, 8, id="several pods each"),
        pytest.param({"parallelism": 4, "completions": 3}, 6, id="no more than are to complete"),
        pytest.param({"parallelism": 2, "completions": 8}, 4, id="so many at a time"),
        pytest.param({"parallelism": 0}, 0, id="none"),
    ],
)
def test_how_many_pods_are_wanted(job: dict[str, Any], pods: int) -> None:
    """Replicas times the pods that each Job has at a time."""
    (part,) = only(*job_set("s", replicated_job("engine", SERVE, replicas=2, **job))).components

    assert part.desired == pods


def test_replicas_default_to_one() -> None:
    """As the API server fills in."""
    root = job_set("s", replicated_job("engine", SERVE))[0]
    del root["spec"]["replicatedJobs"][0]["replicas"]

    assert only(root).components[0].desired == 1


@pytest.mark.parametrize(
    ("spec", "status", "queue", "expected"),
    [
        pytest.param({"suspend": True}, {}, False, (0, "suspended"), id="suspended"),
        pytest.param({"suspend": True}, {}, True, (0, "queued"), id="held by a queue"),
        pytest.param({}, {"terminalState": "Completed"}, False, (0, "stopped"), id="completed"),
        pytest.param({}, {"conditions": [{"type": "Completed", "status": "True"}]}, False, (0, "stopped"),
                     id="completed, by its condition"),
        pytest.param({}, {"terminalState": "Failed"}, False, (1, ""), id="failed: it still wants its pods"),
        pytest.param({}, {"conditions": [{"type": "Completed", "status": "False"}]}, False, (1, ""), id="running"),
    ],
)  # fmt: skip
def test_nothing_is_meant_to_run(
    spec: dict[str, Any], status: dict[str, Any], queue: bool, expected: tuple[int, str]
) -> None:
    """A suspended or completed set lacks no pods."""
    root = job_set("s", replicated_job("engine", SERVE), **spec)[0]
    root["status"] = status
    if queue:
        root["metadata"]["labels"] = {"kueue.x-k8s.io/queue-name": "q"}
    (part,) = only(root).components

    assert (part.desired, part.intended_zero) == expected


def test_a_set_that_trains_is_no_inference() -> None:
    """Neither the set nor any of its Jobs is a workload; it is listed with its reason, once."""
    discovery = discovered(*job_set("train", replicated_job("trainer", TRAIN, replicas=3)))

    assert discovery.workloads == {}
    assert [(kind, key) for kind, key, _ in discovery.skipped] == [("JobSet.jobset.x-k8s.io", ("prod", "train"))]


def test_a_job_of_its_own_serves_nobody_still() -> None:
    """A batch Job that runs an engine and belongs to no set stays out."""
    jobs = [m for m in job_set("s", replicated_job("engine", SERVE)) if m["kind"] != "JobSet"]
    for each in jobs:
        if each["kind"] == "Job":
            del each["metadata"]["ownerReferences"], each["metadata"]["labels"]
            each["spec"]["template"]["metadata"]["labels"] = {}
        else:
            each["metadata"]["labels"] = {}

    assert discovered(*jobs).workloads == {}


def test_the_set_may_not_be_read() -> None:
    """Its Jobs tell the same, the set's own switch aside."""
    seen = job_set(
        "llama", replicated_job("leader", SERVE), replicated_job("workers", WORKER, replicas=2, parallelism=3)
    )

    assert counts(only(*seen[1:])) == counts(only(*seen))


def test_a_job_that_is_held_back_wants_no_pods_yet() -> None:
    """Where the set may not be read, a suspended Job says so itself: of two, the other one is wanted."""
    seen = job_set("s", replicated_job("engine", SERVE, replicas=2))[1:]
    held = next(each for each in seen if each["kind"] == "Job")
    held["spec"]["suspend"] = True
    without_its_pod = [each for each in seen if each["metadata"]["name"] != f"{held['metadata']['name']}-0"]

    assert only(*without_its_pod).components[0].desired == 1


def test_a_set_of_another_shape_does_not_stop_the_rest() -> None:
    """What a strict schema would refuse is listed, and every other workload is read."""
    broken = job_set("broken", replicated_job("engine", SERVE))[0]
    broken["spec"]["replicatedJobs"][0]["template"]["spec"]["template"]["spec"]["containers"] = "none"
    discovery = discovered(broken, *job_set("llama", replicated_job("leader", SERVE)))

    assert list(discovery.workloads) == [("prod", "llama")]
    assert any(key == ("prod", "broken") for _, key, _ in discovery.skipped)


def test_the_pods_of_a_component() -> None:
    """By the label that the controller writes; a pod without it is an engine of the set all the same."""
    manifests = job_set("llama", replicated_job("leader", SERVE), replicated_job("workers", WORKER, parallelism=2))
    discovery = discovered(*manifests)

    assert discovery.pods_of(("prod", "llama"), "workers") == {
        ("prod", "llama-workers-0-0"),
        ("prod", "llama-workers-0-1"),
    }
