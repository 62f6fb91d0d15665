"""If these pods were gone."""

from __future__ import annotations

from typing import Any

from sevenhop.core.placement.what_if import WhatIf, what_if
from tests.placement_builders import node, pod, world


def _ask(delete: list[str], *items: dict[str, Any]) -> dict[str, WhatIf]:
    return {w.pod[1]: w for w in what_if(world(*items), [("prod", name) for name in delete])}


FULL = (node("n1", gpus=4), pod("a", on="n1", gpus=2), pod("b", on="n1", gpus=2))


def test_enough_is_freed_only_by_deleting_enough() -> None:
    """One donor of two gives two of the four that are wanted."""
    assert not _ask(["a"], *FULL, pod("x", gpus=4))["x"].fits
    answer = _ask(["a", "b"], *FULL, pod("x", gpus=4))["x"]
    assert answer.fits
    assert answer.nodes == ("n1",)


def test_the_queue_is_served_in_order_of_priority_then_age() -> None:
    """What is freed goes to whom the scheduler asks first, and what it takes is gone for the next."""
    old, new = pod("old", gpus=2), pod("new", gpus=2)
    old["metadata"]["creationTimestamp"] = "2026-11-30T04:00:00Z"
    new["metadata"]["creationTimestamp"] = "2026-11-30T05:00:00Z"
    by_age = _ask(["a"], *FULL, new, old)
    assert (by_age["old"].fits, by_age["new"].fits) == (True, False)
    new["spec"]["priority"] = 1
    new["spec"]["preemptionPolicy"] = "Never"
    by_priority = _ask(["a"], *FULL, new, old)
    assert (by_priority["old"].fits, by_priority["new"].fits) == (False, True)


def test_a_gated_pod_takes_nothing_and_says_why() -> None:
    """It is not in the queue, whatever is freed."""
    gated = pod("gated", gpus=2, priority=9, schedulingGates=[{"name": "kueue.x-k8s.io/admission"}])
    answers = _ask(["a"], *FULL, gated, pod("x", gpus=2))
    assert answers["x"].fits
    assert not answers["gated"].fits
    assert "kueue.x-k8s.io/admission" in answers["gated"].reason


def test_a_pod_of_another_scheduler_is_not_placed_by_ours() -> None:
    """We do not know what that scheduler would do."""
    answer = _ask(["a"], *FULL, pod("x", gpus=2, schedulerName="volcano"))["x"]
    assert not answer.fits
    assert "volcano" in answer.reason


def test_deleting_who_waits_takes_it_out_of_the_queue() -> None:
    """A pending pod that is deleted is not asked for, and takes nothing."""
    answers = _ask(["first", "a"], *FULL, pod("first", gpus=2, priority=9, preemptionPolicy="Never"), pod("x", gpus=2))
    assert set(answers) == {"x"}
    assert answers["x"].fits


def test_preemption_is_part_of_the_answer_and_named() -> None:
    """Where the scheduler makes room by itself the pod runs in the end, at somebody's expense."""
    answer = _ask([], *FULL, pod("x", gpus=2, priority=5))["x"]
    assert answer.fits
    assert len(answer.preempts) == 1
    assert "preempted" in answer.reason
