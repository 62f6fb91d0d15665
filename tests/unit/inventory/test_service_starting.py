"""`service.starting`: a first start, or one from zero, is no outage; everything else is."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from sevenhop.core.keeping import history_rows, load_histories
from sevenhop.core.objects import pod as p
from tests import builders as b
from tests.unit.inventory.scenes import Scene

SERVICE = "service:prod/chat"
NODE = b.node("n", gpus=8)
BUDGET = msgspec.convert({"periodSeconds": 10, "failureThreshold": 600}, p.Probe)


def deployment(replicas: int = 1) -> Any:
    return b.deployment("chat", gpus=1, replicas=replicas)


def pod(*, ready: bool, name: str = "p", **how: Any) -> p.Pod:
    """With half an hour and more to load."""
    made = b.pod_of(b.replicaset(deployment()), name, **{"node": "n", "ready": ready, **how})
    main = msgspec.structs.replace(made.spec.containers[0], startup_probe=BUDGET)
    return msgspec.structs.replace(made, spec=msgspec.structs.replace(made.spec, containers=(main,)))


def scene(*pods: p.Pod) -> Scene:
    of = deployment()
    front = b.service("chat", selector={"app": "chat"})
    held = [each for each in pods if each.status.container_statuses]
    return Scene(NODE, of, b.replicaset(of), *pods, front, b.endpoint_slice(front, held))


def listed(*pods: p.Pod) -> Any:
    return b.endpoint_slice(b.service("chat", selector={"app": "chat"}), pods)


def starting(of: Scene) -> object:
    return of.fact(SERVICE, "starting")


def test_a_model_that_loads_for_the_first_time() -> None:
    """Its pod runs and is not ready, and nothing was before."""
    assert starting(scene(pod(ready=False))) is True


def test_ready_is_not_starting() -> None:
    """With an endpoint it serves."""
    assert starting(scene(pod(ready=True))) is False


def test_what_was_ready_and_is_not_is_an_outage() -> None:
    """However young the pod that is there now is."""
    of = scene(pod(ready=True))
    of.put(pod(ready=False), listed(pod(ready=False)))
    assert starting(of) is False


def test_from_zero_it_starts_anew() -> None:
    """It was scaled to zero in between."""
    ready = pod(ready=True)
    of = scene(ready)
    of.put(deployment(0), listed())
    of.delete(ready)
    again = pod(ready=False, name="q")
    of.put(deployment(1), again, listed(again))
    assert starting(of) is True


@pytest.mark.parametrize(
    "how",
    [
        pytest.param({"unschedulable": "0/1 nodes are available", "node": "", "gpus": 9}, id="has no place"),
        pytest.param({"waiting": "CrashLoopBackOff", "restarts": 3, "last_end": b.NOON}, id="crashes"),
    ],
)
def test_only_what_is_on_its_way_starts(how: dict[str, Any]) -> None:
    """A pod that cannot become ready by itself is no start."""
    assert starting(scene(pod(ready=False, **how))) is False


def test_what_a_queue_holds_is_not_expected_to_serve() -> None:
    """It is not meant to run yet, so it neither starts nor fails."""
    of = scene(pod(ready=False, gates=("kueue.x-k8s.io/admission",), node=""))
    assert of.fact(SERVICE, "expects_pods") is False


def test_it_is_remembered_over_a_restart_of_ours() -> None:
    """Otherwise an outage would look like a start to the next process, and end as recovered."""
    before = scene(pod(ready=True))
    rows = list(history_rows(before.inventory.state))
    of = Scene(synced=False)
    assert load_histories(of.inventory.state, rows) == []
    down = pod(ready=False)
    of.put(
        NODE, deployment(), b.replicaset(deployment()), down, b.service("chat", selector={"app": "chat"}), listed(down)
    )
    of.tell(of.feed.synced())
    assert starting(of) is False


def test_a_first_load_that_fails_is_no_start_any_more() -> None:
    """The pod runs, is not ready, and then crashes: neither its phase nor its readiness changed, and yet it is told."""
    of = scene(pod(ready=False, phase="Running"))
    assert starting(of) is True

    of.put(pod(ready=False, phase="Running", waiting="CrashLoopBackOff", last_end=b.at(0), restarts=1))
    assert starting(of) is False
