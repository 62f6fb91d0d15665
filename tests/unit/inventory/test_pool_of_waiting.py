"""Which pool a component waits for, where its pods do not name a product."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pytest

from sevenhop.core.objects.base import Object
from sevenhop.core.objects.cluster import Taint
from tests import builders as b
from tests.unit.inventory.scenes import SHORT, Scene

A100 = "NVIDIA-A100-SXM4-80GB"
MINE = {"cloud.example/pool": "mine"}


def _pool(nodes: Sequence[Object], selector: Mapping[str, str] | None, running: str = "") -> object:
    owner = b.deployment("engine", gpus=2, replicas=2, selector=selector)
    replicaset = b.replicaset(owner)
    pods = [b.pod_of(replicaset, "waits", unschedulable=SHORT)]
    if running:
        pods.append(b.pod_of(replicaset, "runs", node=running))
    return Scene(*nodes, owner, replicaset, *pods).fact("component:prod/engine/engine", "product")


@pytest.mark.parametrize(
    ("small", "selector", "expected"),
    [
        (b.node("small", gpus=2, product=A100, labels=MINE), MINE, A100),
        (b.node("small", gpus=2, product=A100, labels=MINE), None, b.H100),
        (b.node("small", gpus=2, product=A100, labels=MINE, cordoned=True), MINE, A100),
        (b.node("small", gpus=2, product=A100), {"cloud.example/pool": "nobody's"}, b.H100),
    ],
    ids=["its selector", "any: the largest", "cordoned for now", "selects no node at all"],
)
def test_a_selector_says_which_pool(small: Object, selector: Mapping[str, str] | None, expected: str) -> None:
    """A pod that names no product waits for the pool whose nodes its selector leaves to it, not for the largest."""
    large = [b.node(f"large-{number}", gpus=8) for number in range(3)]
    assert _pool([*large, small], selector) == expected


def test_taints_say_which_pool() -> None:
    """Nodes that belong to somebody else by a taint are not what it waits for."""
    taint = Taint(key="team", value="research", effect="NoSchedule")
    large = [b.node(f"large-{number}", gpus=8, taints=(taint,)) for number in range(3)]
    assert _pool([*large, b.node("small", gpus=2, product=A100)], None) == A100


def test_siblings_that_run_elsewhere_do_not_say_it() -> None:
    """A rollout moves the component to another pool: who waits for the new one does not queue for the old one."""
    large = [b.node(f"large-{number}", gpus=8) for number in range(3)]
    small = b.node("small", gpus=2, product=A100, labels=MINE)
    assert _pool([*large, small], MINE, running="large-0") == A100
