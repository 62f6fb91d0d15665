"""What the report says of GPU agents: none, some, all; and which rules can fire with what they tell."""

from __future__ import annotations

from typing import Any

from sevenhop.core.engine import Engine
from sevenhop.runtime.doctor import available_facts, coverage
from tests.builders import node
from tests.unit.engine.machines import Machine
from tests.unit.inventory.gpu_agents import Agent


def gpu_row(engine: Engine) -> dict[str, Any]:
    return next(row for row in coverage(engine) if row["hop"] == "gpu")


def with_agents(*names: str) -> Engine:
    """Two nodes with GPUs, of which these have an agent."""
    machine = Machine()
    machine.tell(machine.feed.synced(), 0)
    machine.put(node("gpu-01", gpus=8), node("gpu-02", gpus=8), seconds=1)
    machine.tell([Agent(name, 8).sample(2) for name in names], 2)
    return machine.engine


def test_no_agent_is_a_blind_hop_with_a_way_out() -> None:
    """And what only agents tell is not available."""
    engine = with_agents()
    row = gpu_row(engine)
    assert (row["seen"], row["missing"]) == (
        False, ["gpu-agent: none is heard; docs/howto/gpu-agent.md says how to install it"],
    )  # fmt: skip
    assert "gpu.xid" not in available_facts(engine)
    assert "node.gpu.visible" not in available_facts(engine)


def test_nodes_without_an_agent_are_named_beside_those_with_one() -> None:
    """The hop is seen, in part; rules about it can fire."""
    engine = with_agents("gpu-01")
    row = gpu_row(engine)
    assert row["seen"]
    assert row["missing"] == ["gpu-agent: 1 of 2 nodes with GPUs are not heard, such as gpu-02"]
    assert {"gpu.xid", "gpu.present", "node.gpu.visible"} <= available_facts(engine)


def test_all_are_heard() -> None:
    """Nothing is missing."""
    row = gpu_row(with_agents("gpu-01", "gpu-02"))
    assert (row["seen"], row["missing"]) == (True, [])
