"""What a component is told to be does not hang on the order in which its pods were listed."""

from __future__ import annotations

from itertools import permutations

import pytest

from sevenhop.core.facts.schema import Unknown
from tests import builders as b
from tests.unit.inventory.scenes import Scene

NODES = (b.node("n", gpus=8), b.node("m", gpus=4, product="NVIDIA-L4"))
OF = b.deployment("chat", gpus=1, replicas=3)
SET = b.replicaset(OF)
PODS = (
    b.pod_of(SET, "a", unschedulable="0/2", selector={"nvidia.com/gpu.product": "NVIDIA-L4"}),
    b.pod_of(SET, "b", unschedulable="0/2", selector={"nvidia.com/gpu.product": b.H100}),
    b.pod_of(SET, "c", unschedulable="0/2"),
)


@pytest.mark.parametrize("order", list(permutations(range(3))), ids=str)
def test_pods_that_want_different_products(order: tuple[int, ...]) -> None:
    """One of them speaks for the component, and always the same one."""
    of = Scene(*NODES, OF, SET, *(PODS[i] for i in order))

    assert of.inventory.facts[next(s for s in of.inventory.facts if s.kind == "component")]["product"] == "NVIDIA-L4"


def test_an_autoscaler_is_seen_by_every_pool() -> None:
    """That there is one is a fact of pools for which nobody waits, too."""
    of = Scene(*NODES)
    assert of.fact(f"pool:{b.H100}", "autoscaler") == "none"

    words = "pod didn't trigger scale-up: 1 max node group size reached"
    of.put(b.kube_event(b.pod("other"), "NotTriggerScaleUp", words, component="cluster-autoscaler"))
    assert of.fact(f"pool:{b.H100}", "autoscaler") == "idle"


def test_what_the_autoscaler_says_later_reaches_the_pool() -> None:
    """First it adds a node for who waits, then it may not: the pool tells what it said last."""
    waits = b.pod_of(SET, "b", unschedulable="0/2", selector={"nvidia.com/gpu.product": b.H100})
    holds = b.pod("h", node="n", gpus=8, image="org/other:1", args=())
    of = Scene(*NODES, holds, OF, SET, waits)
    for number, (reason, words) in enumerate(
        (
            ("NotTriggerScaleUp", "pod didn't trigger scale-up: 1 in backoff after failed scale-up"),
            ("NotTriggerScaleUp", "pod didn't trigger scale-up: 1 max node group size reached"),
        )
    ):
        of.put(b.kube_event(waits, reason, words, seen=b.at(number), component="cluster-autoscaler", name=f"e{number}"))
        assert of.fact(f"pool:{b.H100}", "autoscaler") == ("backoff", "maxed")[number]


@pytest.mark.parametrize("order", [(0, 1), (1, 0)], ids=str)
def test_why_it_is_unknown_what_pods_wait_for(order: tuple[int, int]) -> None:
    """Where our verdict and the scheduler's disagree on every pod, the oldest pod's words are told."""
    roomy = b.node("n", gpus=8)
    says = [b.pod_of(SET, name, unschedulable=f"0/{n} nodes are available: {n} Insufficient nvidia.com/gpu.")
            for n, name in ((1, "a"), (2, "b"))]  # fmt: skip
    of = Scene(roomy, OF, SET, *(says[i] for i in order))
    of.wait(60)

    subject = next(s for s in of.inventory.facts if s.kind == "component")
    found = of.inventory.facts[subject]["component.waiting.cause"]
    assert isinstance(found, Unknown)
    assert found.detail.startswith("0/1 nodes")
