"""Who has the GPUs."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sevenhop.core.inventory.holds import hold_of
from sevenhop.core.inventory.ledger import Ledger, pools
from sevenhop.core.inventory.objects import Objects
from sevenhop.core.inventory.pool_names import pool_name
from sevenhop.core.inventory.products import Product
from sevenhop.core.objects.cluster import Node
from sevenhop.core.objects.pod import Pod
from tests.builders import H100, NOON, node, pod


def ledger(nodes: list[Node], pods: list[Pod]) -> Ledger:
    built = Ledger()
    for each in nodes:
        built.put_node(each.metadata.name, each)
    for one in pods:
        built.put_pod(one.metadata.key, hold_of(one, None, ""))
    return built


def test_free_counts_only_nodes_that_would_take_a_pod() -> None:
    """
    GPUs of a cordoned node and of one that is not ready are allocatable, and not free.
    """
    nodes = [node("a", gpus=8), node("b", gpus=8, cordoned=True), node("c", gpus=8, ready=False)]

    sums = ledger(nodes, [pod("p", node="a", gpus=3)]).pools()[H100]

    assert (sums.allocatable, sums.bound, sums.free, sums.cordoned) == (24, 3, 5, 8)


def test_a_terminating_pod_still_holds_what_it_has() -> None:
    """
    It is bound and releasing until it is gone; a finished one holds nothing.
    """
    pods = [
        pod("going", node="a", gpus=2, deleted=NOON),
        pod("done", node="a", gpus=4, phase="Succeeded"),
    ]

    sums = ledger([node("a", gpus=8)], pods).pools()[H100]

    assert (sums.bound, sums.releasing, sums.free) == (2, 2, 6)


def test_the_largest_block_is_on_one_node() -> None:
    """
    Three nodes with one free GPU each are three, and no pod gets two.
    """
    nodes = [node(name, gpus=2) for name in "abc"]
    pods = [pod(f"p-{name}", node=name, gpus=1) for name in "abc"]

    sums = ledger(nodes, pods).pools()[H100]

    assert (sums.free, sums.largest_free_block()) == (3, 1)


def test_more_bound_than_allocatable_is_not_negative() -> None:
    """
    A node that lost GPUs under its pods takes nothing from the other nodes' free ones.
    """
    sums = ledger([node("a", gpus=1, capacity=4), node("b", gpus=4)], [pod("p", node="a", gpus=4)]).pools()[H100]

    assert (sums.free, sums.unhealthy) == (4, 3)


def test_a_pod_before_its_node() -> None:
    """
    Kinds are listed side by side: what a pod holds counts as soon as its node is known.
    """
    built = Ledger()
    built.put_pod(("prod", "p"), hold_of(pod("p", node="a", gpus=2), None, ""))
    built.put_node("a", node("a", gpus=8))

    assert built.pools()[H100].bound == 2


@pytest.mark.parametrize(
    ("product", "resource", "expected"),
    [
        pytest.param(Product(name=H100), "nvidia.com/gpu", H100, id="whole"),
        pytest.param(Product(name="NVIDIA-A10G", shared_by=4), "nvidia.com/gpu", "NVIDIA-A10G-SHARED", id="shared"),
        pytest.param(
            Product(name="NVIDIA-A100-SXM4-40GB", mig="1g.5gb"), "nvidia.com/gpu", "NVIDIA-A100-SXM4-40GB-MIG-1g.5gb",
            id="MIG, single strategy",
        ),
        pytest.param(
            Product(name="NVIDIA-A100-SXM4-40GB", mig="mixed"), "nvidia.com/mig-3g.20gb",
            "NVIDIA-A100-SXM4-40GB-MIG-3g.20gb", id="MIG, mixed strategy",
        ),
        pytest.param(
            Product(name="NVIDIA-A100-SXM4-40GB", mig="mixed"), "nvidia.com/gpu", "NVIDIA-A100-SXM4-40GB",
            id="whole GPUs of a node that is cut in part",
        ),
        pytest.param(
            Product(name="NVIDIA-A10G", shared_by=4), "nvidia.com/gpu.shared",
            "NVIDIA-A10G-SHARED/nvidia.com/gpu.shared", id="shared, and renamed",
        ),
        pytest.param(
            Product(name="NVIDIA-A100-SXM4-40GB", mig="1g.5gb", shared_by=2), "nvidia.com/gpu",
            "NVIDIA-A100-SXM4-40GB-MIG-1g.5gb-SHARED", id="shares of MIG slices",
        ),
        pytest.param(Product(), "nvidia.com/gpu", "nvidia.com/gpu", id="a node that does not name its GPU"),
        pytest.param(Product(raw="odd card"), "amd.com/gpu", "odd card", id="a name that we do not know"),
    ],
)  # fmt: skip
def test_what_can_be_asked_for_apart_is_a_pool_of_its_own(product: Product, resource: str, expected: str) -> None:
    """
    Shares, slices and whole GPUs are different things to wait for.
    """
    assert pool_name(product, resource) == expected


def test_shares_under_two_names_are_two_pools() -> None:
    """A node offers some of its shares as ``nvidia.com/gpu`` and some renamed: neither is added to the other."""
    both = node("a", gpus=4, labels={"nvidia.com/gpu.product": f"{H100}-SHARED", "nvidia.com/gpu.replicas": "4"})
    both.status.allocatable["nvidia.com/gpu.shared"] = "8"
    objects = Objects()
    for kind, obj in (("Node", both), ("Pod", pod("p", node="a", gpus=3))):
        objects.put(kind, obj)

    found = pools(objects)

    assert [(each.product, each.resource, each.allocatable, each.bound) for each in found] == [
        (f"{H100}-SHARED", "nvidia.com/gpu", 4, 3),
        (f"{H100}-SHARED/nvidia.com/gpu.shared", "nvidia.com/gpu.shared", 8, 0),
    ]


_NODES = st.builds(
    lambda name, gpus, ready, cordoned: node(name, gpus=gpus, capacity=8, ready=ready, cordoned=cordoned),
    st.sampled_from("abc"), st.integers(0, 8), st.booleans(), st.booleans(),
)  # fmt: skip
_PODS = st.builds(
    lambda name, on, gpus, deleted: pod(name, node=on, gpus=gpus, deleted=NOON if deleted else None),
    st.sampled_from("pqr"), st.sampled_from("abc"), st.integers(0, 4), st.booleans(),
)  # fmt: skip


@given(st.lists(st.one_of(_NODES, _PODS), max_size=12))
def test_kept_current_equals_counted_anew(steps: list[Node | Pod]) -> None:
    """
    Sums that take differences agree with a count from nothing.
    """
    built, objects = Ledger(), Objects()
    for step in steps:
        if isinstance(step, Node):
            built.put_node(step.metadata.name, step)
            objects.put("Node", step)
        else:
            built.put_pod(step.metadata.key, hold_of(step, None, ""))
            objects.put("Pod", step)

    assert [built.capacity(name) for name in sorted(built.pools())] == pools(objects)


@given(st.lists(st.one_of(_NODES, _PODS), max_size=12))
def test_the_parts_add_up(steps: list[Node | Pod]) -> None:
    """
    Free, bound and largest block of a pool are what its nodes say.
    """
    built = Ledger()
    for step in steps:
        if isinstance(step, Node):
            built.put_node(step.metadata.name, step)
        else:
            built.put_pod(step.metadata.key, hold_of(step, None, ""))

    for name, sums in built.pools().items():
        rows = built.nodes_of(name)
        assert sums.free == sum(row.free for row in rows)
        assert sums.bound == sum(row.bound for row in rows)
        assert sums.largest_free_block() == max(row.free for row in rows)
