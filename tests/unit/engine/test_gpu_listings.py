"""What the listings of GPUs say when one is lost, cut, not offered or not seen, and who holds what."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from sevenhop.core.events import SyncState
from sevenhop.core.objects.base import Object
from sevenhop.core.views import VIEWS
from tests.builders import H100, at, deployment, node, pod, pod_of, replicaset
from tests.unit.engine.machines import Machine
from tests.unit.inventory.gpu_agents import Agent, uuid
from tests.unit.inventory.test_dra import DRA, claim, eight

SHORT = "0/2 nodes are available: 2 Insufficient nvidia.com/gpu."
ENGINE = deployment("engine", gpus=2, replicas=2)
MADE = replicaset(ENGINE)
HOLDER = pod_of(MADE, "0", node="n")


def machine_of(*objects: Object) -> Machine:
    machine = Machine()
    machine.put(*objects, seconds=0)
    machine.tell(machine.feed.synced(), 1)
    machine.tell((), 2)
    return machine


def rows(machine: Machine, what: str, **like: Any) -> list[dict[str, Any]]:
    found = VIEWS[what](machine.engine, at(machine.seconds))
    return [row for row in found if all(row[name] == value for name, value in like.items())]


def lost(machine: Machine, *, vanishes: bool = False) -> Agent:
    """GPU 3 of four is lost while it is held: its reading is an error, or there is none."""
    agent = Agent("n", 4)
    agent.pods = {2: [HOLDER], 3: [HOLDER]}
    agent.changes[3] = {"temperature_c": 61, "power_w": 300.0}
    machine.tell([agent.sample(5)], 5)
    agent.changes[3] = None if vanishes else {"error": "GPU is lost", "processes": None, "ecc_uncorrected": None}
    machine.tell([agent.sample(20), agent.xid(20, 79, 3)], 20)
    return agent


@pytest.mark.parametrize("vanishes", [False, True], ids=["an error", "not listed"])
def test_a_deleted_pod_holds_no_lost_gpu(vanishes: bool) -> None:
    """It had it: that is another column, and what the GPU measured last is not shown as if it were now."""
    machine = machine_of(node("n", gpus=4), ENGINE, MADE, HOLDER)
    agent = lost(machine, vanishes=vanishes)
    name = f"prod/{HOLDER.metadata.name}"
    (before,) = rows(machine, "gpus", gpu=uuid("n", 3))
    assert (before["state"], before["pods"], before["gone"]) == ("lost", [name], [])
    assert [before[field] for field in ("temperature_c", "power_w", "processes", "ecc_uncorrected")] == [None] * 4

    machine.delete(HOLDER, seconds=30)
    agent.pods[2] = []
    machine.tell([agent.sample(35)], 35)

    (after,) = rows(machine, "gpus", gpu=uuid("n", 3))
    assert (after["pods"], after["gone"]) == ([], [name])
    assert "engine engine" in after["hits"]
    (freed,) = rows(machine, "gpus", gpu=uuid("n", 2))
    assert (freed["pods"], freed["gone"]) == ([], [])


def test_what_a_silent_agent_said_last() -> None:
    """Numbers are not known any more; that a GPU was bad, and who has one, is."""
    machine = machine_of(node("n", gpus=4), ENGINE, MADE, HOLDER)
    lost(machine)
    machine.until(200)

    (bad,) = rows(machine, "gpus", gpu=uuid("n", 3))
    (well,) = rows(machine, "gpus", gpu=uuid("n", 2))
    (on_node,) = rows(machine, "nodes")

    assert (bad["state"], bad["trouble"]) == ("unknown", on_node["trouble"])
    assert bad["trouble"].startswith("GPU 3: XID 79")
    assert (well["state"], well["trouble"], well["pods"]) == ("unknown", "", [f"prod/{HOLDER.metadata.name}"])
    assert [well[field] for field in ("processes", "ecc_uncorrected", "sm_active_ratio", "xid")] == [None] * 4
    assert (on_node["visible"], on_node["unhealthy"], on_node["free"]) == (None, 1, 2)


def test_xids_are_told_of_whole_gpus() -> None:
    """An instance of a lost GPU is lost, and nothing is asked for of it."""
    machine = machine_of(node("n", gpus=1, resource="nvidia.com/mig-1g.10gb"))
    agent = Agent("n", 2)
    agent.changes[1] = {"uuid": "MIG-1", "parent": uuid("n", 0), "profile": "1g.10gb"}
    machine.tell([agent.sample(5)], 5)
    agent.changes = {0: {"error": "GPU is lost"}, 1: None}
    machine.tell([agent.sample(6), agent.xid(6, 79, 0)], 6)

    (whole,) = rows(machine, "gpus", gpu=uuid("n", 0))
    (part,) = rows(machine, "gpus", gpu="MIG-1")

    assert (whole["state"], whole["xid"], whole["xid_class"]) == ("lost", 79, "reboot")
    assert (part["state"], part["xid"], part["xid_class"], part["xid_repeats_24h"]) == ("lost", None, None, None)
    assert part["trouble"] == whole["trouble"]


def test_a_node_that_offers_none_of_its_gpus() -> None:
    """Its row says how many there should be, and that its pods keep what they have; so does the pool."""
    labels = {"nvidia.com/gpu.present": "true", "nvidia.com/gpu.product": H100, "nvidia.com/gpu.count": "8"}
    waits = pod_of(MADE, "1", unschedulable=SHORT)
    empty = node("empty", labels=labels, cordoned=True)
    machine = machine_of(node("n", labels=labels), empty, node("m", gpus=2), ENGINE, MADE, HOLDER, waits)

    shown = ("product", "expected", "allocatable", "bound", "free", "ready", "cordoned")
    (here,) = rows(machine, "nodes", node="n")
    (other,) = rows(machine, "nodes", node="empty")
    (pool,) = rows(machine, "capacity")
    (component,) = rows(machine, "workloads")

    assert tuple(here[name] for name in shown) == (H100, 8, 0, 2, 0, True, False)
    assert tuple(other[name] for name in shown) == (H100, 8, 0, 0, 0, True, True)
    assert (pool["product"], pool["allocatable"], pool["bound"], pool["free"]) == (H100, 2, 2, 2)
    assert [each["gpus"] for each in pool["held_by"]] == [2]
    assert (component["gpus"], component["pool"]) == (2, H100)


def test_nodes_without_gpus_tell_whether_they_are_ready() -> None:
    """And a kubelet that has not said anything yet is neither."""
    machine = machine_of(node("cpu"), node("down", ready=False), node("new", ready=None), node("gone", cordoned=True))

    found = {
        row["node"]: (row["ready"], row["cordoned"], row["expected"], row["product"]) for row in rows(machine, "nodes")
    }

    assert found == {
        "cpu": (True, False, 0, ""),
        "down": (False, False, 0, ""),
        "new": (None, False, 0, ""),
        "gone": (True, True, 0, ""),
    }


@pytest.mark.parametrize(
    ("state", "free"),
    [(SyncState.NOT_SYNCED, None), (SyncState.FORBIDDEN, None), (SyncState.STALE, 2)],
    ids=["not listed yet", "never allowed to be seen", "seen before"],
)
def test_free_is_not_known_while_pods_are_not_seen(state: SyncState, free: int | None) -> None:
    """GPUs are not free because nobody could look; what was seen before stands, and is said to be of then."""
    machine = machine_of(node("n", gpus=4), ENGINE, MADE, HOLDER)
    (before,) = rows(machine, "capacity")
    assert (before["free"], before["waiting_gpus"], before["unknown"]) == (2, 0, "")

    machine.tell(machine.feed.synced("Pod", state=state, seconds=5), 5)

    (pool,), (on_node,) = rows(machine, "capacity"), rows(machine, "nodes")
    why = f"unknown ({state.value}: Pod)"
    assert (pool["allocatable"], pool["unknown"], on_node["unknown"]) == (4, why, why)
    assert (pool["free"], on_node["free"], pool["largest_free_block"]) == (free, free, free)
    assert (pool["bound"], on_node["bound"]) == ((2, 2) if free else (None, None))
    assert pool["waiting_gpus"] == (0 if free else None)


def by_claim() -> Object:
    wants = msgspec.convert({"resourceClaims": [{"name": "g", "resourceClaimName": "c"}]}, type(HOLDER.spec))
    bare = pod_of(replicaset(deployment("chat")), "p", node="a")
    return msgspec.structs.replace(bare, spec=msgspec.structs.replace(bare.spec, resource_claims=wants.resource_claims))


@pytest.mark.parametrize("claim_first", [True, False], ids=["the claim first", "the pod first"])
def test_devices_by_claims_are_gpus_of_pod_and_component(claim_first: bool) -> None:
    """The same number in every listing, whichever of pod and claim is seen first."""
    of = deployment("chat")
    holder = by_claim()
    has = claim("c", "a", ["gpu-0", "gpu-1"], holder.metadata.name)
    machine = machine_of(node("a"), eight(), of, replicaset(of), has if claim_first else holder)
    machine.put(holder if claim_first else has, seconds=5)
    machine.tell((), 6)

    assert [(row["product"], row["bound"], row["free"]) for row in rows(machine, "capacity")] == [(DRA, 2, 6)]
    assert [(row["gpus"], row["pool"]) for row in rows(machine, "workloads")] == [(2, DRA)]
    assert [row["gpus"] for row in rows(machine, "pods")] == [2]


def test_a_component_in_two_pools() -> None:
    """What it holds is what its pods hold, in whatever pool: as the pools' holders add up."""
    a100 = "NVIDIA-A100-SXM4-80GB"
    both = [pod_of(MADE, "0", node="n"), pod_of(MADE, "1", node="m")]
    machine = machine_of(node("n", gpus=4), node("m", gpus=4, product=a100), ENGINE, MADE, *both, pod("other"))

    (component,) = rows(machine, "workloads", workload="engine")
    held = [each["gpus"] for row in rows(machine, "capacity") for each in row["held_by"]]

    assert (component["gpus"], held) == (4, [2, 2])
