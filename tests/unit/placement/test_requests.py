"""What a pod asks for and what it holds."""

from __future__ import annotations

from typing import Any

import pytest

from sevenhop.core.objects.decode import convert
from sevenhop.core.objects.kinds import KINDS
from sevenhop.core.objects.pod import Pod
from sevenhop.core.placement.requests import pod_requests


def _pod(spec: dict[str, Any], status: dict[str, Any] | None = None) -> Pod:
    found = convert(KINDS["Pod"], {"metadata": {"name": "p", "namespace": "n"}, "spec": spec, "status": status or {}})
    assert isinstance(found, Pod)
    return found


def _c(name: str, cpu: str, *, sidecar: bool = False, gpus: str = "") -> dict[str, Any]:
    container: dict[str, Any] = {
        "name": name,
        "resources": {"requests": {"cpu": cpu, **({"nvidia.com/gpu": gpus} if gpus else {})}},
    }
    return {**container, "restartPolicy": "Always"} if sidecar else container


@pytest.mark.parametrize(
    ("spec", "cpu"),
    [
        pytest.param({"containers": [_c("a", "1"), _c("b", "500m")]}, 1500, id="containers are summed"),
        pytest.param({"containers": [_c("a", "1")], "initContainers": [_c("i", "3")]}, 3000, id="a larger init binds"),
        pytest.param(
            {"containers": [_c("a", "4")], "initContainers": [_c("i", "3")]}, 4000, id="a smaller one does not"
        ),
        pytest.param(
            {"containers": [_c("a", "1")], "initContainers": [_c("s", "2", sidecar=True)]},
            3000,
            id="a sidecar is added",
        ),
        pytest.param(
            {"containers": [_c("a", "1")], "initContainers": [_c("s", "2", sidecar=True), _c("i", "3")]},
            5000,
            id="an init container runs beside the sidecars before it",
        ),
        pytest.param(
            {"containers": [_c("a", "1")], "initContainers": [_c("i", "3"), _c("s", "2", sidecar=True)]},
            3000,
            id="and not beside those after it",
        ),
        pytest.param({"containers": [_c("a", "1")], "overhead": {"cpu": "250m"}}, 1250, id="overhead is added"),
        pytest.param(
            {"containers": [_c("a", "1")], "resources": {"requests": {"cpu": "6"}}, "overhead": {"cpu": "1"}},
            7000,
            id="pod-level values replace, then overhead is added",
        ),
        pytest.param(
            {"containers": [{"name": "a", "resources": {"limits": {"cpu": "2"}}}]}, 2000, id="a limit stands in"
        ),
    ],
)
def test_requests_are_what_the_scheduler_adds_up(spec: dict[str, Any], cpu: int) -> None:
    """The formula of init containers, sidecars, pod-level values and overhead."""
    assert pod_requests(_pod(spec))["cpu"] == cpu


@pytest.mark.parametrize(
    ("status", "cpu"),
    [
        pytest.param({}, 2000, id="no status: what the spec asks"),
        pytest.param(
            {"containerStatuses": [{"name": "a", "resources": {"requests": {"cpu": "3"}}}]}, 3000, id="shrinking"
        ),
        pytest.param(
            {"containerStatuses": [{"name": "a", "resources": {"requests": {"cpu": "1"}}}]}, 2000, id="growing"
        ),
        pytest.param(
            {
                "containerStatuses": [
                    {"name": "a", "resources": {"requests": {"cpu": "1"}}, "allocatedResources": {"cpu": "4"}}
                ]
            },
            4000,
            id="allocated counts too",
        ),
        pytest.param(
            {
                "containerStatuses": [{"name": "a", "resources": {"requests": {"cpu": "1"}}}],
                "conditions": [{"type": "PodResizePending", "status": "True", "reason": "Infeasible"}],
            },
            1000,
            id="an infeasible resize counts what it has",
        ),
    ],
)
def test_a_resize_in_flight_holds_the_most_of_what_it_may_hold(status: dict[str, Any], cpu: int) -> None:
    """Spec, status and allocation of a bound pod are all counted, unless the node has refused the resize."""
    assert pod_requests(_pod({"containers": [_c("a", "2")]}, status), bound=True)["cpu"] == cpu


def test_zero_requests_ask_for_nothing() -> None:
    """A request of zero is no request: the resource need not exist."""
    asked = pod_requests(_pod({"containers": [_c("a", "1", gpus="0")]}))
    assert asked == {"cpu": 1000}


def test_pod_level_values_leave_devices_alone() -> None:
    """Only cpu, memory and huge pages can be stated for the whole pod."""
    spec = {"containers": [_c("a", "1", gpus="2")], "resources": {"requests": {"cpu": "3"}}}
    assert pod_requests(_pod(spec)) == {"cpu": 3000, "nvidia.com/gpu": 2}
