"""Failed pods that stay behind: history once they were replaced, and the only witness until then."""

from __future__ import annotations

from typing import Any

import pytest

from sevenhop.core.objects.pod import Pod
from sevenhop.core.subject import Hop, Subject
from tests import builders as b
from tests.unit.inventory.held_back import WORKERS, ray, ray_pod
from tests.unit.inventory.scenes import SHORT, Scene

ENGINE = "component:prod/summarizer/engine"


def rejected(replicas: Any, suffix: str, *, made: float = 0) -> Pod:
    """A pod that the kubelet did not admit, as it leaves it behind."""
    pod = b.pod_of(replicas, suffix, node="n", phase="Failed", ready=False, created=b.at(made))
    pod.status.reason = "UnexpectedAdmissionError"
    pod.status.message = "Allocate failed due to requested number of devices unavailable for nvidia.com/gpu."
    pod.status.container_statuses = ()
    return pod


def scene(wanted: int, *pods: Any) -> Scene:
    """A Deployment of so many replicas; pods are made by what is given, from its ReplicaSet."""
    made = b.deployment("summarizer", replicas=wanted, gpus=1)
    replicas = b.replicaset(made)
    return Scene(b.node("n", gpus=8), made, replicas, *(make(replicas) for make in pods))


def ready(suffix: str) -> Any:
    return lambda replicas: b.pod_of(replicas, suffix, node="n")


def failed(suffix: str, made: float = 0) -> Any:
    return lambda replicas: rejected(replicas, suffix, made=made)


def waits(suffix: str) -> Any:
    return lambda replicas: b.pod_of(replicas, suffix, unschedulable=SHORT)


def just_made(suffix: str) -> Any:
    return lambda replicas: b.pod_of(replicas, suffix)


@pytest.mark.parametrize(
    ("wanted", "pods", "failing"),
    [
        pytest.param(2, [ready("a"), ready("b"), failed("x"), failed("y")], 0, id="all were replaced"),
        pytest.param(2, [ready("a"), failed("x"), failed("y")], 1, id="one was not"),
        pytest.param(2, [failed("x"), failed("y"), failed("z")], 2, id="none was, and others are older"),
        pytest.param(2, [ready("a"), waits("b"), failed("x")], 0, id="its replacement waits, which is another trouble"),
        pytest.param(1, [just_made("b"), failed("x")], 1, id="its replacement may be rejected too"),
        pytest.param(0, [failed("x"), failed("y")], 0, id="nothing is meant to run"),
    ],
)
def test_who_still_tells(wanted: int, pods: list[Any], failing: int) -> None:
    """As many as replicas are missing, and no more."""
    assert scene(wanted, *pods).fact(ENGINE, "failing") == failing


def test_a_component_that_was_scaled_to_zero_has_no_cause() -> None:
    """Whatever its last pods ended with."""
    here = scene(0, failed("x"))
    told = here.inventory.context(Subject.parse(ENGINE), b.at(60))

    assert told is not None
    assert told.report is not None
    assert (told.diagnosis, told.report.first_broken, told.pods) == (None, None, ())
    assert here.fact(ENGINE, "failure.cause") == ""


def test_the_report_counts_the_replica_that_only_a_failed_pod_tells_of() -> None:
    """One of two runs: one of two is broken, where it was rejected."""
    told = scene(2, ready("a"), failed("new", 10), failed("old", 5)).inventory.context(Subject.parse(ENGINE), b.at(60))

    assert told is not None
    assert told.report is not None
    line = told.report.line(Hop.DISCOVERY)
    assert (told.report.first_broken, line.broken, line.total) == (Hop.DISCOVERY, 1, 2)
    assert line.pods == ("summarizer-aaaa-new",)
    assert told.diagnosis is not None


def test_what_a_suspended_cluster_left_behind_is_history() -> None:
    """Two workers are asked for and nothing is to run."""
    cluster = ray(replicas=2, suspend=True)
    worker = ray_pod(cluster, "w0", "worker", "workers", gpus=2, phase="Failed", ready=False)
    worker.status.reason = "Evicted"

    assert Scene(b.node("gpu-0", gpus=8), cluster, worker).fact(WORKERS, "failing") == 0
    assert Scene(b.node("gpu-0", gpus=8), ray(replicas=2), worker).fact(WORKERS, "failing") == 1
