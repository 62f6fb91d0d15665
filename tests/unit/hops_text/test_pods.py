"""Whether a pod is well."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from sevenhop.core.hops.pods import NotWell, awaits_node, is_well, newest_time, not_well_reason
from tests.unit.hops_text.pods_of_text import NOON, Doc, container, pod, running

NOW = datetime(2026, 1, 2, 12, 0, tzinfo=UTC)
FAILED = {"terminated": {"exitCode": 1, "reason": "Error"}}
DONE = {"terminated": {"exitCode": 0, "reason": "Completed"}}
RUNS = {"running": {"startedAt": NOON}}
LONG_AGO = {"running": {"startedAt": "2026-01-02T10:00:00Z"}}


@pytest.mark.parametrize(
    ("status", "reason"),
    [
        pytest.param({"phase": "Succeeded"}, None, id="succeeded"),
        pytest.param({"phase": "Pending"}, NotWell.PENDING, id="pending"),
        pytest.param({"phase": "Failed"}, NotWell.FAILED, id="failed"),
        pytest.param({"phase": "Unknown"}, NotWell.UNREACHABLE, id="unknown phase"),
        pytest.param({}, None, id="a manifest without status"),
        pytest.param(running(container(RUNS, ready=True), ready="True"), None, id="ready"),
        pytest.param(running(container(RUNS), ready="False"), None, id="just started"),
        pytest.param(running(container(LONG_AGO)), NotWell.NOT_READY, id="past its budget"),
        pytest.param(running(container({"running": {}})), NotWell.NOT_READY, id="not ready since nobody knows when"),
        pytest.param(
            running(container({"waiting": {"reason": "CrashLoopBackOff"}})), NotWell.CONTAINER_WAITING, id="waits"
        ),
        pytest.param(running(container(FAILED)), NotWell.CONTAINER_FAILED, id="failed container"),
        pytest.param(running(container(RUNS, last=FAILED)), NotWell.CONTAINER_FAILED, id="between two crashes"),
        pytest.param(
            running(container(RUNS, last=FAILED, ready=True), ready="True"), None, id="crashed once, ready since"
        ),
        pytest.param(running(container(RUNS, last=DONE)), None, id="restarted without an error"),
    ],
)
def test_reason(status: Doc, reason: NotWell | None) -> None:
    """
    Every situation has one reason, or none.
    """
    assert not_well_reason(pod(status=status), NOW) is reason


@pytest.mark.parametrize(
    ("seconds", "well"),
    [
        pytest.param(0, True, id="at once"),
        pytest.param(10 + 600 + 30, True, id="startup and readiness budget used up to the second"),
        pytest.param(10 + 600 + 31, False, id="one second later"),
    ],
)
def test_budget_of_probes(seconds: int, *, well: bool) -> None:
    """
    A model may load as long as its startup probe and its readiness probe allow together.
    """
    probes = {
        "startupProbe": {"periodSeconds": 10, "failureThreshold": 60},
        "readinessProbe": {"periodSeconds": 10, "failureThreshold": 3},
    }
    subject = pod(status=running(container(RUNS)), spec={"containers": [{"name": "engine", **probes}]})

    assert is_well(subject, NOW + timedelta(seconds=seconds)) is well


@pytest.mark.parametrize(
    ("seconds", "reason"),
    [
        pytest.param(-60, None, id="within its grace"),
        pytest.param(30, None, id="once more the grace"),
        pytest.param(31, NotWell.STUCK_TERMINATING, id="stuck"),
    ],
)
def test_terminating(seconds: int, reason: NotWell | None) -> None:
    """
    A pod that is being deleted is well until it should long be gone.
    """
    subject = pod(status=running(container(FAILED)), deletionTimestamp=NOON)

    assert not_well_reason(subject, NOW + timedelta(seconds=seconds)) is reason


def test_a_failing_sidecar_counts() -> None:
    """
    A restartable init container must run like any other; an ordinary one that has ended need not.
    """
    sidecar = {"name": "proxy", "restartPolicy": "Always"}
    status = running(container(RUNS, ready=True), ready="True")
    failing = status | {"initContainerStatuses": [{"name": "proxy", "state": FAILED}]}

    assert not_well_reason(pod(status=failing, spec={"initContainers": [sidecar]}), NOW) is NotWell.CONTAINER_FAILED
    assert is_well(pod(status=failing, spec={"initContainers": [{"name": "proxy"}]}), NOW)


def test_without_a_clock_the_pods_own_times_count() -> None:
    """
    In a file there is no clock: the newest time that the pod mentions stands for it.
    """
    status = running(container(LONG_AGO))
    status["conditions"][0]["lastTransitionTime"] = NOON
    subject = pod(status=status)

    assert newest_time(subject) == NOW
    assert not_well_reason(subject, None) is NotWell.NOT_READY


@pytest.mark.parametrize(
    ("status", "node", "awaits"),
    [
        pytest.param({"phase": "Pending"}, "", True, id="nobody has looked at it"),
        pytest.param({"phase": "Pending"}, "gpu-1", False, id="has a node"),
        pytest.param({"phase": "Pending", "containerStatuses": [container({})]}, "", False, id="a kubelet wrote"),
        pytest.param({"phase": "Failed"}, "", False, id="ended"),
        pytest.param(
            {"phase": "Pending", "conditions": [{"type": "PodScheduled", "status": "True"}]}, "", False, id="scheduled"
        ),
    ],
)
def test_who_can_say_what_is_wrong(status: Doc, node: str, *, awaits: bool) -> None:
    """
    The scheduler is asked only about pods that no kubelet has seen.
    """
    assert awaits_node(pod(status=status, spec={"nodeName": node})) is awaits
