"""Facts of a component, from rows."""

from __future__ import annotations

from typing import Any

import pytest

from sevenhop.core.facts.component import failure_reason, floor, ready_replicas, waiting_reason
from sevenhop.core.facts.pod import failure_class
from sevenhop.core.facts.schema import Unknown, UnknownReason
from sevenhop.core.facts.workload import gang_incomplete, operator_says_ready
from sevenhop.core.hops.diagnosis import Category, Confidence, Diagnosis
from sevenhop.core.inventory.rows import PodRow, pod_row, shape_of
from sevenhop.core.inventory.workloads import Component, Membership
from sevenhop.core.subject import Hop
from tests.builders import at, pod


def why(cause: str, category: Category = Category.RESOURCE, hop: Hop = Hop.SCHEDULING, **more: Any) -> Diagnosis:
    return Diagnosis(hop=hop, category=category, cause=cause, confidence=Confidence.CERTAIN, summary=cause, **more)


def row(
    name: str, *, group: str = "", pending: Diagnosis | None = None, failure: Diagnosis | None = None, **changes: Any
) -> PodRow:
    made = pod(name, **changes)
    return pod_row(
        made,
        shape_of(made, {}),
        Membership(("prod", "w"), "c", group=group),
        pending=pending,
        failure=failure,
        restarts=0,
        load_overdue=False,
        unreadable=False,
    )


def waits(name: str, cause: str, since: float, category: Category = Category.RESOURCE) -> PodRow:
    return row(name, unschedulable="no", since=at(since), pending=why(cause, category))


@pytest.mark.parametrize(
    ("size", "ready", "expected"),
    [
        pytest.param(1, [("", True), ("", False), ("", True)], 2, id="single pods"),
        pytest.param(2, [("a", True), ("a", True), ("b", True), ("b", False)], 1, id="a group of which one is not"),
        pytest.param(2, [("", True), ("", True), ("", True)], 1, id="pods that name no group"),
        pytest.param(4, [("a", True), ("a", True)], 0, id="a group that is not complete"),
    ],
)
def test_ready_counts_replicas(size: int, ready: list[tuple[str, bool]], expected: int) -> None:
    """
    A multi-pod replica is ready when all its pods are.
    """
    rows = [row(f"p{i}", group=group, node="n", ready=is_ready) for i, (group, is_ready) in enumerate(ready)]

    assert ready_replicas(Component(name="c", pods_per_replica=size), rows) == expected


def test_a_terminating_pod_is_not_ready() -> None:
    """
    Its condition still says so, and no new request goes to it.
    """
    assert ready_replicas(Component(name="c"), [row("p", node="n", ready=True, deleted=at(0))]) == 0


@pytest.mark.parametrize(
    ("minimum", "desired", "stated", "expected"),
    [
        pytest.param(None, 4, None, 3, id="one may be missing"),
        pytest.param(None, 1, None, 1, id="never the last"),
        pytest.param(None, 0, None, 0, id="nothing is wanted"),
        pytest.param(2, 4, None, 2, id="its own"),
        pytest.param(2, 4, 1, 1, id="policy before its own"),
    ],
)
def test_the_floor(minimum: int | None, desired: int, stated: int | None, expected: int) -> None:
    """
    Replicas below which it is broken.
    """
    assert floor(Component(name="c", minimum=minimum), desired, stated) == expected


def test_no_count_has_no_floor() -> None:
    """
    What nobody states is unknown, not zero.
    """
    unknown = Unknown(UnknownReason.NO_SOURCE)

    assert floor(Component(name="c"), unknown, None) == unknown


def test_the_cause_of_most_waiting_pods() -> None:
    """
    Of two equally frequent ones, that of the pod that waits longest.
    """
    two_to_one = [waits("a", "gpu-shortage", 0), waits("b", "cordoned", 5), waits("c", "cordoned", 9)]
    a_draw = [waits("a", "cordoned", 5, Category.POLICY), waits("b", "gpu-shortage", 0)]

    assert waiting_reason(two_to_one, ()) == ("resource", "cordoned")
    assert waiting_reason(a_draw, ()) == ("resource", "gpu-shortage")
    assert waiting_reason((), ()) == ("", "")


def test_one_disagreement_does_not_hide_what_is_certain_of_another() -> None:
    """
    Unknown only where nothing is known of any.
    """
    disagrees = row("a", unschedulable="x", pending=why("unknown", Category.UNKNOWN, disagreement="scheduler: fits"))

    alone = waiting_reason([disagrees], ())

    assert alone == Unknown(UnknownReason.DISAGREE, "scheduler: fits")
    assert waiting_reason([disagrees, waits("b", "gpu-shortage", 0)], ()) == ("resource", "gpu-shortage")


def test_a_pod_that_fits_does_not_wait() -> None:
    """
    The scheduler has not looked at it yet, and nothing keeps it.
    """
    assert not row("a", pending=why("none", Category.NONE)).waiting
    assert row("a", pending=why("gpu-shortage")).waiting
    assert row("a", unschedulable="no").waiting


def test_the_failure_of_most_failing_pods() -> None:
    """
    Of two equally frequent ones, that of the oldest pod.
    """
    rows = [
        row("a", node="n", failure=why("oom", Category.RUNTIME, Hop.POD), created=at(50)),
        row("b", node="n", failure=why("image-not-found", Category.IMAGE, Hop.POD), created=at(10)),
    ]

    found = failure_reason(rows)

    assert found is not None
    assert found.cause == "image-not-found"


@pytest.mark.parametrize(
    ("category", "cause", "expected"),
    [
        pytest.param(Category.IMAGE, "image-not-found", "image-not-found", id="image"),
        pytest.param(Category.IMAGE, "registry-down", "image-registry-down", id="image by another name"),
        pytest.param(Category.CONFIG, "volume-mount-failed", "mount", id="mount"),
        pytest.param(Category.CONFIG, "configmap-missing", "config", id="config"),
        pytest.param(Category.RUNTIME, "host-oom", "oom-host", id="memory of the host"),
        pytest.param(Category.RUNTIME, "node-lost", "runtime", id="runtime"),
        pytest.param(Category.ENGINE, "gpu-oom", "engine", id="memory of the GPU is the engine's"),
        pytest.param(Category.MODEL_ARTIFACT, "hf-auth", "model-artifact", id="artifact"),
    ],
)
def test_classes_of_failure(category: Category, cause: str, expected: str) -> None:
    """
    Coarser than causes, fine enough for rules.
    """
    assert failure_class(why(cause, category)) == expected


def test_a_gang_is_incomplete_while_one_pod_has_a_node_and_another_waits() -> None:
    """
    All placed, or none placed, is complete or waiting as a whole.
    """
    placed = row("a", group="g", node="n")
    waiting = row("b", group="g", unschedulable="no")
    elsewhere = row("c", group="h", unschedulable="no")

    assert gang_incomplete([placed, waiting])
    assert not gang_incomplete([placed, elsewhere])
    assert not gang_incomplete([waiting])


@pytest.mark.parametrize(
    ("status", "expected"),
    [
        pytest.param({"conditions": [{"type": "Ready", "status": "True"}]}, True, id="a Ready condition"),
        pytest.param({"state": "successful"}, True, id="Dynamo"),
        pytest.param({"conditions": [{"type": "Ready", "status": "False"}]}, False, id="not ready"),
        pytest.param({"conditions": None}, False, id="nothing said"),
    ],
)
def test_what_an_operator_says(status: dict[str, Any], expected: bool) -> None:
    """
    Each framework's own way of saying ready.
    """
    assert operator_says_ready(status) is expected
