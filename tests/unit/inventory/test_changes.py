"""What counts as a change, and what does not."""

from __future__ import annotations

from datetime import timedelta

import pytest

from sevenhop.core.inventory.changes import KEPT_FOR, KEPT_MOST, ChangeLog, Found, changed_object, changes_between
from sevenhop.core.objects.base import Object
from sevenhop.core.objects.cluster import Taint
from tests.builders import NOON, at, deployment, dynamo, node


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        pytest.param(
            deployment("a", replicas=4, generation=1), deployment("a", replicas=3, generation=2),
            [("replicas", "4", "3")], id="replicas",
        ),
        pytest.param(
            deployment("a", image="vllm:1", generation=1), deployment("a", image="vllm:2", generation=2),
            [("image", "vllm:1", "vllm:2")], id="image",
        ),
        pytest.param(
            deployment("a", args=["--model", "m", "--max-model-len", "8192", "--port", "80"], generation=1),
            deployment("a", args=["--model", "m", "--max-model-len", "131072", "--port", "80"], generation=2),
            [("args", "--max-model-len 8192", "--max-model-len 131072")], id="one flag among many",
        ),
        pytest.param(
            deployment("a", generation=1, total=1), deployment("a", generation=1, total=4), [], id="status alone",
        ),
        pytest.param(
            dynamo("a", decode=4, generation=1), dynamo("a", decode=6, generation=2),
            [("replicas", "services.decode.replicas 4", "6")], id="replicas of a framework",
        ),
        pytest.param(
            node("n", gpus=8), node("n", gpus=7), [("allocatable", "nvidia.com/gpu=8", "nvidia.com/gpu=7")],
            id="a node advertises less",
        ),
        pytest.param(
            node("n"),
            node("n", cordoned=True, taints=[Taint(key="node.kubernetes.io/unschedulable", effect="NoSchedule")]),
            [("cordon", "schedulable", "cordoned")], id="a cordon is told once, not as a taint too",
        ),
        pytest.param(
            node("n"), node("n", taints=[Taint(key="gpu", value="x", effect="NoSchedule")]),
            [("taints", "", "gpu=x:NoSchedule")], id="a taint",
        ),
        pytest.param(node("n", ready=True), node("n", ready=False), [], id="readiness is no change by anybody"),
    ],
)  # fmt: skip
def test_what_changed(before: Object, after: Object, expected: list[Found]) -> None:
    """
    People's changes are told with what was and what is; what controllers note of themselves is not.
    """
    assert changes_between(before, after) == expected


def test_changes_are_kept_for_an_hour_newest_first() -> None:
    """
    An older one is forgotten, whether or not others came since.
    """
    log = ChangeLog()
    for seconds in (0, 60, 120):
        log.add(changed_object("Node", ("", "n"), ("cordon", "", str(seconds)), at(seconds), None, ""))

    told = [change.after for change in log.newest_first(NOON + KEPT_FOR + timedelta(seconds=30))]

    assert told == ["120", "60"]


def test_the_same_change_again_is_one() -> None:
    """
    A duplicate says nothing new.
    """
    log = ChangeLog()
    change = changed_object("Node", ("", "n"), ("cordon", "", "x"), NOON, None, "")
    log.add(change)
    log.add(change)

    assert len(log) == 1


def test_memory_is_bounded() -> None:
    """
    In a cluster that changes without end, the oldest are forgotten first.
    """
    log = ChangeLog()
    for number in range(KEPT_MOST + 5):
        log.add(changed_object("Node", ("", "n"), ("cordon", "", str(number)), NOON, None, ""))

    assert len(log) == KEPT_MOST
