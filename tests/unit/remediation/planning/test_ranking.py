"""The order in which a ReplicaSet removes its pods, as kube-controller-manager ranks them."""

from __future__ import annotations

from datetime import timedelta
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sevenhop.core.objects.pod import Container, ContainerStatus, Pod
from sevenhop.core.remediation.planning.ranking import deletion_cost, removal_order, standing
from sevenhop.core.remediation.planning.victims import Reducible, units_of
from sevenhop.core.remediation.reduction import Chooser
from tests import builders as b

NOW = b.at(86_400)


def _pod(name: str, *, node: str = "n1", cost: str = "", restarts: int = 0, sidecar: int = 0, **more: Any) -> Pod:
    made = b.pod(name, node=node, restarts=restarts, **more)
    if cost:
        made.metadata.annotations["controller.kubernetes.io/pod-deletion-cost"] = cost
    if sidecar:
        made.spec.init_containers = (Container(name="proxy", restart_policy="Always"),)
        made.status.init_container_statuses = (ContainerStatus(name="proxy", restart_count=sidecar),)
    return made


PAIRS: dict[str, tuple[Pod, Pod]] = {
    "without a node before with one": (_pod("a", node=""), _pod("b")),
    "pending before running": (_pod("a", phase="Pending", ready=False), _pod("b", ready=False)),
    "unknown before running": (_pod("a", phase="Unknown", ready=False), _pod("b", ready=False)),
    "not ready before ready, whatever the cost": (_pod("a", ready=False, cost="100"), _pod("b", cost="-100")),
    "lower cost first": (_pod("a", cost="-1"), _pod("b")),
    "cost among those that are not ready": (_pod("a", ready=False, cost="-1"), _pod("b", ready=False)),
    "ready for a shorter time first": (_pod("a", since=b.at(86_000)), _pod("b", since=b.at(0))),
    "more restarts first": (_pod("a", restarts=3), _pod("b", restarts=2)),
    "restarts of sidecars after those of containers": (_pod("a", restarts=1), _pod("b", sidecar=9)),
    "more restarts of a sidecar first": (_pod("a", sidecar=2), _pod("b", sidecar=1)),
    "younger first": (_pod("a", created=b.at(86_000)), _pod("b", created=b.at(0))),
    "equal in the logarithm of age: by uid": (
        _pod("a", uid="1", since=b.at(10)),
        _pod("b", uid="2", since=b.at(20)),
    ),
}


@pytest.mark.parametrize("pair", PAIRS.values(), ids=PAIRS.keys())
def test_the_first_goes_first(pair: tuple[Pod, Pod]) -> None:
    """Each criterion decides where all before it are equal."""
    first, second = pair
    for given_order in ((first, second), (second, first)):
        assert removal_order(given_order, NOW)[0] is first


def test_who_stands_beside_more_of_the_same_goes_first() -> None:
    """Two on one node go before one alone on another."""
    alone, one, other = _pod("a", node="n1"), _pod("b", node="n2"), _pod("c", node="n2")
    assert removal_order([alone, one, other], NOW)[-1] is alone


@pytest.mark.parametrize(
    ("text", "cost"),
    [
        ("", 0),
        ("5", 5),
        ("-5", -5),
        ("-05", -5),
        ("+5", 0),
        ("05", 0),
        ("0", 0),
        ("high", 0),
        ("3000000000", 0),
        ("٣", 0),
    ],
)
def test_a_cost_is_read_as_the_controller_reads_it(text: str, cost: int) -> None:
    """A plus sign, a leading zero, words, and what needs more than 32 bits are refused, and count as none."""
    assert deletion_cost(_pod("a", cost=text)) == cost


@st.composite
def _replicas(draw: st.DrawFn) -> list[Pod]:
    return [
        _pod(
            f"p-{number}",
            node=draw(st.sampled_from(["", "n1", "n1", "n2", "n3"])),
            ready=draw(st.sampled_from([None, None, False])),
            cost=draw(st.sampled_from(["", "", "-7", "9", "-2147483648", "-2147483647"])),
            since=b.NOON + timedelta(seconds=draw(st.integers(0, 80_000))),
            restarts=draw(st.integers(0, 2)),
        )
        for number in range(draw(st.integers(1, 6)))
    ]


@given(_replicas(), st.data())
def test_what_can_be_steered_goes_by_the_controllers_own_order(pods: list[Pod], data: st.DataObject) -> None:
    """A set that we say can be made to go is exactly what the full ranking takes; one that we refuse is not."""
    known = {pod.key: pod for pod in pods}
    units = units_of([_row(pod) for pod in pods], known, 1)
    assert units is not None
    wanted = frozenset(data.draw(st.sets(st.integers(0, len(pods) - 1), min_size=1)))
    reducible = Reducible(Chooser.REPLICA_SET, units, known, NOW)
    gone = reducible.closure(wanted)
    if gone is not None:
        assert wanted <= gone
        assert reducible.is_certain(gone)
        worst = max(standing(known[units[index].pods[0]]) for index in wanted)
        assert all(standing(known[units[index].pods[0]]) < worst for index in gone - wanted), "more go than must"


def _row(pod: Pod) -> Any:
    return SimpleNamespace(key=pod.key, group="", node=pod.spec.node_name, gpus=1, ready=True)
