"""GPUs that a node offers and its agent has never named are unknown: not well, and not simply free."""

from __future__ import annotations

from typing import Any

import pytest

from sevenhop.core.gpu_views import gpus, nodes
from sevenhop.core.objects.base import Object
from tests import builders as b
from tests.builders import H100, at
from tests.unit.engine.machines import Machine
from tests.unit.inventory.gpu_agents import Agent, uuid
from tests.unit.inventory.test_dra import device, part, slice_

SHARED = {"nvidia.com/gpu.replicas": "4", "nvidia.com/gpu.product": f"{H100}-SHARED"}


def machine_of(agent: Agent | None, *objects: Object) -> Machine:
    machine = Machine()
    machine.tell(machine.feed.synced(), 1)
    machine.put(*objects, seconds=1)
    if agent is not None:
        machine.tell([agent.sample(2)], 2)
    return machine


def states(machine: Machine) -> list[tuple[str, str]]:
    """(uuid, state), in order"""
    return [(row["gpu"], row["state"]) for row in gpus(machine.engine, at(3))]


@pytest.mark.parametrize(
    ("node", "agent", "missing"),
    [
        pytest.param(b.node("n", gpus=4), Agent("n", 4), 0, id="all of them"),
        pytest.param(b.node("n", gpus=4), Agent("n", 2), 2, id="fewer"),
        pytest.param(b.node("n", gpus=2, capacity=4), Agent("n", 2), 0, id="those that are offered"),
        pytest.param(b.node("n", gpus=16, labels=SHARED), Agent("n", 3), 1, id="shares of four"),
        pytest.param(b.node("n", gpus=16, labels=SHARED), Agent("n", 4), 0, id="shares, all told"),
        pytest.param(b.node("n", gpus=8, labels={"nvidia.com/gpu.product": f"{H100}-SHARED"}), Agent("n", 1), 0,
                     id="shares of an unknown number"),
        pytest.param(b.node("n", gpus=4, resource="amd.com/gpu"), Agent("n", 0), 0, id="of another vendor"),
        pytest.param(b.node("n", gpus=4), None, 0, id="no agent: all is told so elsewhere"),
    ],
)  # fmt: skip
def test_each_that_is_not_named_is_a_row(node: Object, agent: Agent | None, missing: int) -> None:
    """A node that offers more than its agent tells of has that many GPUs of which nothing is known."""
    named = [(uuid("n", index), "ok") for index in range(agent.gpus)] if agent is not None else []

    assert states(machine_of(agent, node)) == [*named, *[("", "unknown")] * missing]


def test_the_row_says_why() -> None:
    """It has every column of the others, and no reading, no XID and no pod."""
    found = gpus(machine_of(Agent("n", 1), b.node("n", gpus=2)).engine, at(3))
    told, unnamed = found

    assert list(told) == list(unnamed)
    assert unnamed["unknown"] == "unknown (no_source: gpu-agent has named 1 of 2)"
    nothing: Any = [unnamed[name] for name in ("xid", "present", "temperature_c", "throttle", "index")]
    assert nothing == [None] * 5
    assert (unnamed["node"], unnamed["product"], unnamed["pods"]) == ("n", H100, [])


def test_the_node_says_so_beside_what_is_free() -> None:
    """The scheduler would give it away, so it is free; that nobody has seen it stands beside the number."""
    (row,) = nodes(machine_of(Agent("n", 1), b.node("n", gpus=2)).engine, at(3))

    assert (row["free"], row["unknown"]) == (2, "unknown (no_source: gpu-agent has named 1 of 2)")


def test_slices_are_counted_by_profile() -> None:
    """Instances of one profile do not stand in for those of another."""
    agent = Agent("n", 2)
    agent.changes[1] = {"uuid": "MIG-1", "parent": uuid("n", 0), "profile": "1g.10gb"}
    machine = machine_of(agent, b.node("n", gpus=2, resource="nvidia.com/mig-1g.10gb"))

    assert [(row["profile"], row["state"]) for row in gpus(machine.engine, at(3)) if not row["gpu"]] == [
        ("1g.10gb", "unknown")
    ]


def slices(*products: str) -> Object:
    """One slice of a GPU of each product, cut beforehand, as NVIDIA's DRA driver publishes them."""
    made = [{**part(number, "", "1g.10gb+me"), "consumesCounters": None} for number in range(len(products))]
    for each, product in zip(made, products, strict=True):
        each["attributes"]["productName"] = {"string": product}
    return slice_("n", made)


@pytest.mark.parametrize(
    ("published", "named", "missing"),
    [
        pytest.param(slices("NVIDIA H100 80GB HBM3"), 1, 0, id="the one that is named"),
        pytest.param(slices("NVIDIA H100 80GB HBM3", "NVIDIA H100 80GB HBM3"), 1, 1, id="one more"),
        pytest.param(slices("NVIDIA H100 80GB HBM3", "NVIDIA A100-SXM4-80GB"), 2, 0, id="of two products, all named"),
        pytest.param(slices("NVIDIA H100 80GB HBM3", "NVIDIA A100-SXM4-80GB"), 0, 2, id="of two products, none named"),
    ],
)
def test_slices_that_a_driver_publishes(published: Object, named: int, missing: int) -> None:
    """They go by the same profile as the agent's, with NVIDIA's ``+`` and without, whatever else their name says."""
    agent = Agent("n", 1 + named)
    for number in range(1, agent.gpus):
        agent.changes[number] = {"uuid": f"MIG-{number}", "parent": uuid("n", 0), "profile": "1g.10gb+me"}
    machine = machine_of(agent, b.node("n"), published)

    assert [row["profile"] for row in gpus(machine.engine, at(3)) if not row["gpu"]] == ["1g.10gb.me"] * missing


def test_whole_ones_that_a_driver_publishes() -> None:
    """As with a device plugin's."""
    machine = machine_of(Agent("n", 1), b.node("n"), slice_("n", [device(0), device(1)]))

    assert states(machine) == [(uuid("n", 0), "ok"), ("", "unknown")]


def test_before_its_first_sample_an_agent_has_told_of_none() -> None:
    """An XID alone does not say which GPUs there are: how they are is told as unknown elsewhere, not one by one."""
    machine = machine_of(None, b.node("n", gpus=4))
    machine.tell([Agent("n", 4).xid(2, 31)], 2)

    assert "" not in dict(states(machine))


def test_a_node_that_is_not_known_offers_nothing() -> None:
    """Its agent is heard before the node is listed."""
    assert states(machine_of(Agent("n", 1))) == []


def test_a_node_whose_gpus_are_all_named_says_nothing() -> None:
    """Nothing stands beside what is free."""
    (row,) = nodes(machine_of(Agent("n", 2), b.node("n", gpus=2)).engine, at(3))

    assert (row["free"], row["unknown"]) == (2, "")


def test_one_that_is_lost_was_named() -> None:
    """The driver saw it once: it is lost, and that is known."""
    agent = Agent("n", 2)
    machine = machine_of(agent, b.node("n", gpus=2))
    agent.changes[1] = None
    machine.tell([agent.sample(3)], 3)

    assert states(machine) == [(uuid("n", 0), "ok"), (uuid("n", 1), "lost")]
