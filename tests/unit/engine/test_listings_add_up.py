"""Whatever happens to nodes, pods and GPUs, the listings agree with each other and with the facts that rules read."""

from __future__ import annotations

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from sevenhop.core.objects.base import Object
from sevenhop.core.subject import Subject
from sevenhop.core.views import VIEWS
from tests.builders import NOON, at, deployment, node, pod, pod_of, replicaset
from tests.unit.engine.machines import Machine
from tests.unit.inventory.gpu_agents import Agent

NODES = ("a", "b")
WAITS = "0/2 nodes are available: 2 Insufficient nvidia.com/gpu."
ENGINE = deployment("engine", gpus=2, replicas=3)
MADE = replicaset(ENGINE)
ADDED_UP = ("allocatable", "bound", "releasing", "free", "unhealthy")

_nodes = st.builds(
    lambda name, gpus, ready, cordoned: node(name, gpus=gpus, capacity=4, ready=ready, cordoned=cordoned),
    st.sampled_from(NODES),
    st.integers(0, 4),
    st.booleans(),
    st.booleans(),
)
_others = st.builds(
    lambda name, on, gpus, deleted, phase: pod(
        name, "other", node=on, gpus=gpus, deleted=NOON if deleted else None, phase=phase
    ),
    st.sampled_from(("p", "q")),
    st.sampled_from(NODES),
    st.integers(0, 3),
    st.booleans(),
    st.sampled_from(("Running", "Failed")),
)
_mine = st.builds(
    lambda name, on: pod_of(MADE, name, node=on) if on else pod_of(MADE, name, unschedulable=WAITS),
    st.sampled_from(("0", "1", "2")),
    st.sampled_from(("", *NODES)),
)
_samples = st.tuples(
    st.sampled_from(NODES),
    st.dictionaries(st.integers(0, 3), st.sampled_from(({"error": "GPU is lost"}, {"remap_failed": True}, None))),
    st.dictionaries(st.integers(0, 3), st.sampled_from(("0", "1", "2"))),
)


@settings(max_examples=60, deadline=None)
@given(st.lists(st.one_of(_nodes, _others, _mine, _samples), max_size=12), st.booleans())
def test_the_listings_agree(steps: list[Any], silent: bool) -> None:
    """
    Nodes add up to their pool, holders to what is bound, who waits to the fact; nothing is free that is bound, bad or
    out of service; and nobody is shown to have a GPU whom the cluster does not have there.
    """
    machine = Machine()
    machine.put(*(node(name, gpus=4) for name in NODES), ENGINE, MADE, seconds=0)
    machine.tell(machine.feed.synced(), 1)
    agents = {name: Agent(name, 4) for name in NODES}
    pods: dict[tuple[str, str], Object] = {}
    for seconds, step in enumerate(steps, start=2):
        if isinstance(step, tuple):
            name, bad, held = step
            agents[name].changes = bad
            agents[name].pods = {index: [pod_of(MADE, suffix)] for index, suffix in held.items()}
            machine.tell([agents[name].sample(seconds)], seconds)
            continue
        key = step.metadata.key
        if key in pods and getattr(pods[key].spec, "node_name", "") not in ("", getattr(step.spec, "node_name", "")):  # type: ignore[attr-defined]
            machine.delete(pods[key], seconds=seconds)  # a pod never moves
        pods[key] = step
        machine.put(step, seconds=seconds)
    machine.until(100 if silent else 20)

    _agree(machine)


def _agree(machine: Machine) -> None:
    listed = {what: VIEWS[what](machine.engine, at(machine.seconds)) for what in ("nodes", "gpus", "capacity")}
    live = machine.engine.inventory.state.objects.pods()
    for pool in listed["capacity"]:
        here = [row for row in listed["nodes"] if row["product"] == pool["product"]]
        facts = machine.engine.inventory.facts[Subject.parse(f"pool:{pool['product']}")]
        assert {name: sum(row[name] for row in here) for name in ADDED_UP} == {name: pool[name] for name in ADDED_UP}
        assert sum(each["gpus"] for each in pool["held_by"]) == pool["bound"]
        assert sum(each["gpus"] for each in pool["waiting"]) == pool["waiting_gpus"] == facts["pool.waiting_gpus"]
        assert (pool["free"], pool["releasing"]) == (facts["pool.free"], facts["pool.releasing"])
        assert pool["largest_free_block"] == max((row["free"] for row in here), default=0)
    for row in listed["nodes"]:
        assert row["free"] <= max(0, row["allocatable"] - row["bound"])
        assert row["free"] == 0 or (row["ready"] and not row["cordoned"])
        bad = [gpu for gpu in listed["gpus"] if gpu["node"] == row["node"] and gpu["trouble"]]
        known = [gpu for gpu in listed["gpus"] if gpu["node"] == row["node"]]
        assert len(known) < 4 or row["free"] <= 4 - len(bad)  # of one that no sample ever named nothing is told
        assert row["unhealthy"] >= min(len(bad), row["allocatable"])
    for gpu in listed["gpus"]:
        for name in gpu["pods"]:
            namespace, _, who = name.partition("/")
            assert live[namespace, who].spec.node_name == gpu["node"]
