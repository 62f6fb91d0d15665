"""What `get gpus`, `get nodes`, `get capacity` and `get workloads` show of GPUs."""

from __future__ import annotations

import argparse
import json
from typing import Any

import msgspec
import pytest

from sevenhop.cli.get import show
from sevenhop.cli.output import UsageError
from sevenhop.core.events import SyncState
from sevenhop.core.views import VIEWS
from tests.builders import H100, at, deployment, node, pod_of, replicaset
from tests.unit.engine.machines import Machine
from tests.unit.inventory.gpu_agents import Agent, uuid

SUMMARIZER = deployment("summarizer", replicas=2, gpus=2, annotations={"sevenhop.dev/tier": "batch"})
REPLICAS = replicaset(SUMMARIZER)
PODS = [pod_of(REPLICAS, str(n), node="n") for n in (0, 1)]


@pytest.fixture
def machine() -> Machine:
    """Two replicas on a node of eight GPUs, of which one is lost and one could not be read."""
    found = Machine()
    found.put(node("n", gpus=8), node("cpu"), SUMMARIZER, REPLICAS, *PODS, seconds=0)
    found.tell(found.feed.synced(), 1)
    agent = Agent("n", 8)
    agent.pods = {0: [PODS[0]], 1: [PODS[0]], 2: [PODS[1]], 3: [PODS[1]]}
    agent.changes = {6: {"error": "no answer within 5 s"}, 7: {"error": "GPU is lost"}, 1: {"remap_failed": True}}
    found.tell([agent.sample(2), agent.xid(3, 79, 7)], 3)
    return found


def rows(machine: Machine, what: str) -> list[dict[str, Any]]:
    return VIEWS[what](machine.engine, at(machine.seconds))


def test_gpus(machine: Machine) -> None:
    """
    One row each, with who has it; what was not read is None.
    """
    found = {row["index"]: row for row in rows(machine, "gpus")}

    assert [found[index]["state"] for index in range(8)] == ["ok", "bad", "ok", "ok", "ok", "ok", "unknown", "lost"]
    assert (found[0]["gpu"], found[0]["node"], found[0]["product"]) == (uuid("n", 0), "n", H100)
    assert found[0]["pods"] == [f"prod/{PODS[0].metadata.name}"]
    assert (found[7]["xid"], found[7]["xid_class"]) == (79, "reboot")
    assert found[7]["sm_active_ratio"] is None
    assert found[6]["unknown"] == "unknown (unreadable: no answer within 5 s)"


def test_nodes(machine: Machine) -> None:
    """
    Visible, allocatable, bound, free and unhealthy are numbers of their own.
    """
    found = {row["node"]: row for row in rows(machine, "nodes")}

    shown = {name: found["n"][name] for name in ("expected", "visible", "allocatable", "bound", "free", "unhealthy")}
    assert shown == {"expected": 8, "visible": 6, "allocatable": 8, "bound": 4, "free": 3, "unhealthy": 2}
    assert found["n"]["trouble"] == "GPU 1: remapping of a memory row failed; GPU 7: XID 79, fallen off the bus"
    assert found["cpu"]["allocatable"] == 0


def test_capacity(machine: Machine) -> None:
    """
    Unhealthy and reserved stand beside what is free.
    """
    (row,) = rows(machine, "capacity")

    assert (row["allocatable"], row["bound"], row["free"], row["unhealthy"], row["reserved"]) == (8, 4, 3, 2, 0)


def printed(capsys: pytest.CaptureFixture[str], machine: Machine, what: str, **options: str) -> list[dict[str, Any]]:
    known = {"what": what, "namespace": "", "output": "json", "gpu": "", "sort": "", **options}
    show(msgspec.to_builtins(rows(machine, what), enc_hook=str), argparse.Namespace(**known))
    found = json.loads(capsys.readouterr().out)
    assert isinstance(found, list)
    return found


def test_workloads_on_a_product_by_what_they_could_give(machine: Machine, capsys: pytest.CaptureFixture[str]) -> None:
    """
    Replicas above the minimum times the GPUs of each; by any part of the product's name.
    """
    other = deployment("larger", replicas=1, gpus=0)
    machine.put(other, seconds=5)

    (row,) = printed(capsys, machine, "workloads", gpu="h100")
    assert (row["workload"], row["gpus"], row["reclaimable"]) == ("summarizer", 4, 2)
    assert printed(capsys, machine, "workloads", gpu="A100") == []
    ordered = printed(capsys, machine, "workloads", sort="gpus")
    assert [row["gpus"] for row in ordered] == [4, 0]


def test_a_field_that_no_row_has_is_named(machine: Machine, capsys: pytest.CaptureFixture[str]) -> None:
    """
    With those that there are.
    """
    with pytest.raises(UsageError, match="nothing here to sort by 'reclaimible'"):
        printed(capsys, machine, "workloads", sort="reclaimible")


def test_the_nodes_add_up_to_the_pool() -> None:
    """
    A GPU that its node does not advertise any more counts as unhealthy in both listings.
    """
    machine = Machine()
    machine.put(node("n", gpus=7, capacity=8), node("m", gpus=8), seconds=0)
    machine.tell(machine.feed.synced(), 1)

    shown = {row["node"]: row["unhealthy"] for row in rows(machine, "nodes")}
    assert shown == {"n": 1, "m": 0}
    assert rows(machine, "capacity")[0]["unhealthy"] == 1


@pytest.mark.parametrize("state", [SyncState.FORBIDDEN, SyncState.NOT_SYNCED], ids=str)
def test_a_pool_whose_nodes_were_never_seen_has_no_numbers(state: SyncState) -> None:
    """Somebody waits for it, by the scheduler's words; how large it is, nobody knows: that is not zero."""
    found = Machine()
    found.tell(found.feed.synced(), 0)
    found.tell(found.feed.synced("Node", state=state), 1)
    words = "0/2 nodes are available: 2 Insufficient nvidia.com/gpu."
    found.put(SUMMARIZER, REPLICAS, pod_of(REPLICAS, "w", unschedulable=words), seconds=2)
    found.tell([], 30)
    (pool,) = rows(found, "capacity")
    assert [each["workload"] for each in pool["waiting"]] == ["prod/summarizer"]
    assert {pool[name] for name in ("allocatable", "cordoned", "unhealthy", "bound", "free")} == {None}
    assert str(state) in pool["unknown"]
