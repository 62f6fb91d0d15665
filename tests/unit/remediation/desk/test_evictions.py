"""Removing one pod: what the API server would refuse, what would hang, who else starts anew, and which budget holds."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import pytest

from sevenhop.core.inventory.inventory import Inventory
from sevenhop.core.objects import cluster as c
from sevenhop.core.objects.base import LabelSelector, Object
from sevenhop.core.remediation.budgets import budgets_of
from sevenhop.core.remediation.guards_question import PodBudget
from sevenhop.core.remediation.plan import NoPlanReason
from sevenhop.core.subject import Subject, SubjectKind
from tests.builders import meta, node, pod_of
from tests.unit.frameworks import running
from tests.unit.remediation.desk.test_object_plans import (
    BROKEN,
    PLUGIN,
    REPLICAS,
    RESTART,
    answer,
    chat,
    component,
    inventory,
    plugin_pod,
)

CRASHING: dict[str, Any] = {**BROKEN, "phase": "Running"}
ONE_STUCK = [PodBudget(name="prod/keep", allowed=0, victims=1)]


def budget(name: str = "keep", app: str = "chat", policy: str = "", **status: Any) -> c.PodDisruptionBudget:
    spec = c.PdbSpec(
        selector=LabelSelector(match_labels={"app": app}), min_available=2, unhealthy_pod_eviction_policy=policy
    )
    return c.PodDisruptionBudget(metadata=meta(name), spec=spec, status=c.PdbStatus(**status))


def three(stuck: dict[str, Any]) -> list[Object]:
    """One of three pods is stuck."""
    pods = [pod_of(REPLICAS, str(n), node=f"gpu-{n}", **(stuck if n == 1 else {})) for n in range(3)]
    return [*(node(f"gpu-{n}", gpus=4) for n in range(3)), *pods]


HEALTHY: dict[str, Any] = {"current_healthy": 2, "desired_healthy": 2}
SICK: dict[str, Any] = {"current_healthy": 1, "desired_healthy": 2}


@pytest.mark.parametrize(
    ("stuck", "found", "against"),
    [
        pytest.param(CRASHING, budget(**HEALTHY), [], id="the others are as healthy as they should be"),
        pytest.param(CRASHING, budget(current_healthy=1, desired_healthy=1), [], id="one other is enough, and well"),
        pytest.param(CRASHING, budget(**SICK), ONE_STUCK, id="the others are not"),
        pytest.param(CRASHING, budget(policy="IfHealthyBudget", **SICK), ONE_STUCK, id="the same, said aloud"),
        pytest.param(CRASHING, budget(policy="AlwaysAllow", **SICK), [], id="what is not ready may always go"),
        pytest.param(CRASHING, budget(), ONE_STUCK, id="a budget that nobody has counted yet"),
        pytest.param(CRASHING, budget(app="other", **SICK), [], id="a budget of others"),
        pytest.param(
            {**BROKEN, "phase": "Pending"}, budget(**SICK), [], id="budgets are not asked about what is pending"
        ),
    ],
)
def test_a_budget_is_read_as_eviction_reads_it(stuck: dict[str, Any], found: Object, against: list[PodBudget]) -> None:
    """The stuck pod is the one that is not available: a budget that counts on the others does not keep it."""
    made = inventory(*three(stuck), found)
    plan = answer(made, RESTART, component()).plan
    assert plan is not None
    assert budgets_of(made.state, plan) == tuple(against)


def test_two_budgets_over_one_pod() -> None:
    """The API server answers 500 then; nobody is asked to approve what cannot be done."""
    found = answer(inventory(*three(CRASHING), budget(**HEALTHY), budget("also", **HEALTHY)), RESTART, component())
    assert (found.plan, found.reason) == (None, NoPlanReason.NOT_SAFE)
    assert "2 PodDisruptionBudgets (also, keep)" in found.text


@pytest.mark.parametrize(
    ("nodes", "words"),
    [
        pytest.param([node("gpu-1", gpus=4, ready=False)], "node gpu-1 is not Ready", id="silent"),
        pytest.param([], "node gpu-1 is gone", id="gone"),
    ],
)
def test_nothing_is_removed_from_a_silent_node(nodes: list[Object], words: str) -> None:
    """Its kubelet would not confirm: the pod would hang in Terminating, and of a StatefulSet no other would come."""
    others = [each for each in chat("gpu-1") if each.metadata.name != "gpu-1"]
    found = answer(inventory(*others, *nodes), RESTART, component())
    assert (found.plan, found.reason) == (None, NoPlanReason.NOT_SAFE)
    assert words in found.text


def test_a_plugin_of_a_silent_node_stays() -> None:
    """The same for the device plugin of a node."""
    made = inventory(node("gpu-0", gpus=2, capacity=4, ready=False), plugin_pod(ready=False))
    found = answer(made, PLUGIN, component("gpu-0"), node="gpu-0")
    assert (found.plan, found.reason) == (None, NoPlanReason.NOT_SAFE)
    assert "is not Ready" in found.text


def _crashed(scene: Callable[[], running.Scene], name: str) -> Inventory:
    """All pods of a scene run on one node, and one of them crashes."""
    objects: list[Object] = [node("gpu-1", gpus=64)]
    for manifest in copy.deepcopy(scene().objects):
        if manifest["kind"] == "Pod":
            is_well = manifest["metadata"]["name"] != name
            ended = {"exitCode": 137, "reason": "OOMKilled", "finishedAt": "2026-11-30T12:00:05Z"}
            running_since = {"running": {"startedAt": "2026-11-30T12:00:00Z"}}
            crash = {"waiting": {"reason": "CrashLoopBackOff", "message": "back-off"}}
            manifest["spec"]["nodeName"] = "gpu-1"
            manifest["status"] = {
                "phase": "Running",
                "conditions": [
                    {"type": "PodScheduled", "status": "True"},
                    {"type": "Ready", "status": "True" if is_well else "False"},
                ],
                "containerStatuses": [
                    {
                        "name": manifest["spec"]["containers"][0]["name"],
                        "ready": is_well,
                        "restartCount": 0 if is_well else 4,
                        "state": running_since if is_well else crash,
                        **({} if is_well else {"lastState": {"terminated": ended}}),
                    }
                ],
            }
        objects.append(running.read(manifest)[1])
    return inventory(*objects)


@pytest.mark.parametrize(
    ("scene", "name", "words"),
    [
        pytest.param(
            running.leader_worker_set, "llama-405b-0-1", "1 other pod of its group may start anew", id="group"
        ),
        pytest.param(running.ray_service, "chat-x7k2p-head", "4 workers of its Ray cluster may start", id="head"),
        pytest.param(running.ray_service, "chat-x7k2p-h100-01", "1 other pod of its group may", id="one of two hosts"),
        pytest.param(running.plain_stateful, "qwen-0", "; its owner makes it again", id="by itself"),
    ],
)
def test_who_else_starts_anew_is_said(scene: Callable[[], running.Scene], name: str, words: str) -> None:
    """People agree to all that the removal of one pod sets off."""
    made = _crashed(scene, name)
    row = next(row for row in made.state.rows.values() if row.key[1] == name)
    subject = Subject(SubjectKind.COMPONENT, row.workload[0], f"{row.workload[1]}/{row.component}")
    found = answer(made, RESTART, subject)
    assert found.plan is not None, found.text
    assert words in found.plan.title
    assert found.plan.title.endswith("again") == (scene is running.plain_stateful)
