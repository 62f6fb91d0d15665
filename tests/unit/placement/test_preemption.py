"""Would the scheduler make room by itself, and at whose expense."""

from __future__ import annotations

from typing import Any

import pytest

from sevenhop.core.placement.cluster import Cluster
from sevenhop.core.placement.evaluation import class_of, evaluate, masks_of
from sevenhop.core.placement.preemption import Preemption, PreemptionReason, preempt
from tests.placement_builders import custom, node, pod, the_pod, world


def _preempt(*items: dict[str, Any]) -> Preemption:
    objects = world(*items)
    cluster = Cluster(objects)
    subject = the_pod(objects, "x")
    answer = preempt(cluster, subject, evaluate(cluster, class_of(cluster, subject)))
    anew = Cluster(objects)
    assert {v.name: (v.free, set(v.residents)) for v in cluster.order} == {
        v.name: (v.free, set(v.residents)) for v in anew.order
    }, "the simulation must leave the cluster as it was"
    assert masks_of(cluster, class_of(cluster, subject), cluster.order) == masks_of(
        anew, class_of(anew, subject), anew.order
    )
    return answer


LOW = pod("low", on="n1", gpus=4, priority=1)


@pytest.mark.parametrize(
    ("items", "reason"),
    [
        pytest.param((node("n1", gpus=4), LOW, pod("x", gpus=4, priority=5)), "helps", id="a lower priority leaves"),
        pytest.param(
            (node("n1", gpus=4), LOW, pod("x", gpus=4, priority=1)), "no_lower_priority", id="equal priorities"
        ),
        pytest.param(
            (node("n1", gpus=4), LOW, pod("x", gpus=4, priority=5, preemptionPolicy="Never")),
            "policy_never",
            id="never",
        ),
        pytest.param(
            (node("n1", gpus=4), LOW, pod("x", gpus=5, priority=5)), "not_helpful", id="the node is too small"
        ),
        pytest.param(
            (node("n1", gpus=4, cordoned=True), LOW, pod("x", gpus=4, priority=5)),
            "not_helpful",
            id="the node is cordoned",
        ),
        pytest.param(
            (
                node("n1", gpus=4),
                pod("low", on="n1", gpus=1, priority=1),
                pod("high", on="n1", gpus=3, priority=9),
                pod("x", gpus=4, priority=5),
            ),
            "not_enough",
            id="the lower ones hold too little",
        ),
        pytest.param(
            (
                node("n1", gpus=4),
                {**LOW, "metadata": {**LOW["metadata"], "deletionTimestamp": "2026-11-30T04:00:00Z"}},
                pod("x", gpus=4, priority=5, status={"nominatedNodeName": "n1"}),
            ),
            "under_way",
            id="its victims are leaving",
        ),
    ],
)
def test_why_preemption_helps_or_does_not(items: tuple[dict[str, Any], ...], reason: str) -> None:
    """One node, one reason."""
    assert _preempt(*items).reason == PreemptionReason(reason)


def test_only_as_many_leave_as_must_and_the_least_important_first() -> None:
    """Of three pods one is enough: the one with the lowest priority."""
    items = [pod(f"p{i}", on="n1", gpus=1, priority=i) for i in range(3)]
    answer = _preempt(node("n1", gpus=3), *items, pod("x", gpus=1, priority=9))
    assert answer.victims == (("prod", "p0"),)


def test_the_pod_limit_of_a_node_is_room_too() -> None:
    """Two small pods fill a node that takes two: one of them must leave, though nothing else is short."""
    items = [pod(f"p{i}", on="n1", priority=1) for i in range(2)]
    answer = _preempt(node("n1", pods=2), *items, pod("x", priority=5))
    assert answer.reason is PreemptionReason.HELPS
    assert len(answer.victims) == 1


def test_a_disruption_budget_steers_to_another_node() -> None:
    """Equal victims on two nodes; those of one are protected."""
    budget = custom(
        "policy/v1",
        "PodDisruptionBudget",
        "b",
        "prod",
        spec={"minAvailable": 1, "selector": {"matchLabels": {"app": "kept"}}},
        status={"disruptionsAllowed": 0},
    )
    kept = pod("kept", on="n1", gpus=4, priority=1, labels={"app": "kept"})
    free = pod("free", on="n2", gpus=4, priority=1)
    answer = _preempt(node("n1", gpus=4), node("n2", gpus=4), kept, free, budget, pod("x", gpus=4, priority=5))
    assert answer.node == "n2"
    assert answer.nodes == ("n1", "n2")
    alone = _preempt(node("n1", gpus=4), kept, budget, pod("x", gpus=4, priority=5))
    assert alone.over_budget == (("prod", "kept"),), "a budget does not stop the scheduler, and we say so"


def test_anti_affinity_of_a_lower_priority_is_preempted() -> None:
    """More than room is in the way: all filters are asked again."""
    term = {"topologyKey": "kubernetes.io/hostname", "labelSelector": {"matchLabels": {"app": "d"}}}
    hermit = pod(
        "hermit",
        on="n1",
        priority=1,
        affinity={"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}},
    )
    bystander = pod("bystander", on="n1", priority=1)
    answer = _preempt(node("n1"), hermit, bystander, pod("x", priority=5, labels={"app": "d"}))
    assert answer.victims == (("prod", "hermit"),)


def test_whom_the_pod_wants_beside_it_must_stay() -> None:
    """
    Its affinity is to a pod that would have to leave for it: the scheduler then makes room nowhere.

    With a pod of that kind beside it that ranks as high as itself, it does.
    """
    term = {"labelSelector": {"matchLabels": {"app": "m"}}, "topologyKey": "kubernetes.io/hostname"}
    affinity = {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
    wants = pod("x", gpus=4, priority=5, affinity=affinity)
    low = pod("low", on="n1", gpus=4, priority=1, labels={"app": "m"})

    assert _preempt(node("n1", gpus=4), low, wants).reason is PreemptionReason.NOT_ENOUGH
    stays = pod("high", on="n1", priority=9, labels={"app": "m"})
    assert _preempt(node("n1", gpus=4), low, stays, wants).reason is PreemptionReason.HELPS
