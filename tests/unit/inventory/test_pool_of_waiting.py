"""Which pool a component waits for, where its pods do not name a product."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pytest

from sevenhop.core.objects.base import Object
from sevenhop.core.objects.cluster import Taint
from sevenhop.core.objects.pod import Resources
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


@pytest.mark.parametrize(
    ("product", "resource", "pool"),
    [
        pytest.param("NVIDIA-L4", "nvidia.com/gpu", "NVIDIA-L4", id="not a product whose name begins alike"),
        pytest.param(
            "NVIDIA-L4", "nvidia.com/gpu.shared", "NVIDIA-L4-SHARED/nvidia.com/gpu.shared", id="renamed shares"
        ),
        pytest.param("NVIDIA-L4", "nvidia.com/mig-1g.5gb", "NVIDIA-L4-MIG-1g.5gb", id="slices"),
    ],
)
def test_a_product_that_no_node_has(product: str, resource: str, pool: str) -> None:
    """The pool is called as if a node had it; a larger pool of another product is none of its business."""
    owner = b.deployment("engine", gpus=2, replicas=1, selector={"nvidia.com/gpu.product": product})
    replicaset = b.replicaset(owner)
    waits = b.pod_of(replicaset, "waits", unschedulable=SHORT)
    for spec in (owner.spec.template.spec, replicaset.spec.template.spec, waits.spec):
        spec.containers[0].resources = Resources(requests={resource: "2"}, limits={resource: "2"})
    other = b.node("large", gpus=8, product="NVIDIA-L40S", resource=resource)

    found = Scene(other, owner, replicaset, waits).fact("component:prod/engine/engine", "product")

    assert found == pool


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
