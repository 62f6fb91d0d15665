"""Facts of nodes and Services."""

from __future__ import annotations

import pytest

from sevenhop.core.facts.node import OURS, expected_gpus, in_maintenance
from sevenhop.core.facts.schema import Unknown
from sevenhop.core.facts.service import ports_fit
from sevenhop.core.inventory.history import SeenGpus
from sevenhop.core.objects.cluster import Node, Taint
from tests.builders import node, pod, service


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        pytest.param(node("n"), False, id="in service"),
        pytest.param(node("n", cordoned=True), True, id="cordoned"),
        pytest.param(node("n", cordoned=True, annotations={OURS: "run-1"}), False, id="cordoned by us"),
        pytest.param(node("n", taints=[Taint(key="karpenter.sh/disrupted")]), True, id="about to be removed"),
        pytest.param(node("n", taints=[Taint(key="example.com/maintenance-window")]), True, id="says maintenance"),
        pytest.param(node("n", taints=[Taint(key="nvidia.com/gpu")]), False, id="a taint that only keeps others out"),
        pytest.param(node("n", ready=False), False, id="not ready is no maintenance"),
    ],
)
def test_maintenance(given: Node, expected: bool) -> None:
    """
    Somebody else than us took the node out of service.
    """
    assert in_maintenance(given) is expected


@pytest.mark.parametrize(
    ("given", "seen", "expected"),
    [
        pytest.param(node("n", gpus=8), None, 8, id="what it has"),
        pytest.param(node("n", gpus=7, capacity=8), None, 8, id="capacity"),
        pytest.param(node("n", gpus=7), SeenGpus("", 8), 8, id="what it once showed"),
        pytest.param(node("n", gpus=7, labels={"nvidia.com/gpu.count": "8"}), None, 8, id="its label"),
        pytest.param(
            node("n", gpus=28, labels={"nvidia.com/gpu.count": "8", "nvidia.com/gpu.replicas": "4"}),
            None,
            32,
            id="shared",
        ),
        pytest.param(
            node("n", gpus=56, resource="nvidia.com/mig-1g.10gb", labels={"nvidia.com/gpu.count": "8"}),
            None,
            56,
            id="slices are not GPUs",
        ),
        pytest.param(node("n"), None, 0, id="none"),
    ],
)
def test_expected_gpus(given: Node, seen: SeenGpus | None, expected: int) -> None:
    """
    The most that anything promises.
    """
    assert expected_gpus(given, seen) == expected


@pytest.mark.parametrize(
    ("target", "expected"),
    [
        pytest.param("http", True, id="a name that is declared"),
        pytest.param("metrics", False, id="a name that is not"),
        pytest.param(8000, True, id="a number that is declared"),
    ],
)
def test_target_ports(target: str | int, expected: bool) -> None:
    """
    A name that no pod declares leads nowhere.
    """
    assert ports_fit(service("s", selector={"a": "b"}, target=target), [pod("p")]) is expected


def test_a_number_that_is_not_declared_is_unknown() -> None:
    """
    Containers may listen on what they do not declare.
    """
    assert isinstance(ports_fit(service("s", selector={"a": "b"}, target=9000), [pod("p")]), Unknown)
