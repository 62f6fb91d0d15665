"""
A plan in a large cluster: 5,000 nodes of eight GPUs, all taken, 150,000 pods, 2,000 of them waiting.

One replica that does; four replicas of one node for a pod that needs all of it; and no plan, because two thousand pods
are ahead in the queue and every donor was looked at for nothing.
"""

from __future__ import annotations

import gc
import time
from collections.abc import Iterator
from datetime import timedelta
from typing import Any

from bench.engines import START, Feed, new_engine
from bench.figures import Figure, Result, median
from bench.generate import deployment, node, pod
from sevenhop.core.inventory.state import Slot, State
from sevenhop.core.remediation.plan import Answer, NoPlanReason
from sevenhop.core.remediation.planning import Reservations, need_of, plan_for
from sevenhop.core.remediation.playbook import Goal, Mode, Playbook
from sevenhop.frameworks.scaling import SCALING

ROUNDS = 5
REPLICAS = 8
GPUS = 2
PODS_A_NODE = 4
TIER = "sevenhop.dev/tier"
SMALL, WHOLE, LATE = 900_001, 900_002, 900_003
"""Numbers of the three Deployments that a plan is asked for."""


def measure(*, quick: bool) -> list[Result]:
    """A tenth of the cluster when `quick`."""
    nodes, others, waiting = (500, 13_000, 200) if quick else (5_000, 128_000, 2_000)
    engine, feed = new_engine(), Feed()
    feed.list_all(engine, _objects(nodes, others, waiting))
    now = START + timedelta(minutes=10)
    engine.handle((), now)
    state = engine.inventory.state
    gc.collect()
    gc.freeze()
    pods = len(state.objects.pods())
    name = f"{nodes:,} nodes, {pods:,} pods, {waiting:,} waiting"
    asks = (
        (SMALL, "one replica does", None),
        (WHOLE, "four replicas of one node", None),
        (LATE, "no plan for any of three: all who wait are ahead", NoPlanReason.NOT_SAFE),
    )
    return [
        Figure(bench="plan", what=f"{name}: {what}", value=_seconds(state, number, expected), unit="s", aim=1.0,
               better="less")
        for number, what, expected in asks
    ]  # fmt: skip


def _objects(nodes: int, others: int, waiting: int) -> Iterator[dict[str, Any]]:
    for number in range(nodes):
        yield node(number)
    placed = nodes * PODS_A_NODE
    for of in range(placed // REPLICAS):
        yield from _tiered(deployment(of, REPLICAS, gpus=GPUS), ("batch", "standard", "critical")[of % 3])
    for number in range(placed):
        yield pod(number, number // REPLICAS, gpus=GPUS, node_name=f"node-{number // PODS_A_NODE:05}")
    for number in range(others):
        yield pod(1_000_000 + number, number // 100, gpus=0, node_name=f"node-{number % nodes:05}")
    for of in range(waiting // REPLICAS):
        yield from _tiered(deployment(500_000 + of, REPLICAS, gpus=GPUS), "standard")
        for number in range(REPLICAS):
            waits = pod(2_000_000 + of * REPLICAS + number, 500_000 + of, gpus=1 + of % 4, node_name="")
            yield _since(waits, 120, zone=0)
    # Between the departures of several replicas anybody smaller may come, so the whole node is in a zone of its own.
    for of, pods, gpus, seconds, zone in ((WHOLE, 1, 8, 50, 1), (SMALL, 1, 2, 60, 2), (LATE, 3, 2, 180, 0)):
        yield from _tiered(deployment(of, pods, gpus=gpus), "critical")
        for number in range(pods):
            yield _since(pod(3_000_000 + of * 10 + number, of, gpus=gpus, node_name=""), seconds, zone=zone)


def _tiered(objects: list[dict[str, Any]], tier: str) -> list[dict[str, Any]]:
    for each in objects:
        each["metadata"]["annotations"] = {TIER: tier}
        each["status"]["updatedReplicas"] = each["status"]["replicas"]  # no rollout is under way
    return objects


def _since(waits: dict[str, Any], seconds: int, *, zone: int) -> dict[str, Any]:
    waits["spec"]["nodeSelector"] = {"topology.kubernetes.io/zone": f"zone-{zone}"}
    at = (START + timedelta(seconds=seconds)).strftime("%Y-%m-%dT%H:%M:%SZ")
    waits["metadata"]["creationTimestamp"] = waits["status"]["conditions"][0]["lastTransitionTime"] = at
    return waits


def _seconds(state: State, number: int, expected: NoPlanReason | None) -> float:
    found = []
    for _ in range(ROUNDS):
        begin = time.process_time()
        answer = _ask(state, number)
        found.append(time.process_time() - begin)
        if answer.reason is not expected or (expected is None) != (answer.plan is not None):
            raise ValueError(f"{answer.reason}: {answer.text}")
    return median(found)


def _ask(state: State, number: int) -> Answer:
    slot: Slot = ((f"team-{number % 50}", f"model-{number:05}"), "engine")
    pool = state.pool_of[slot]
    # Each is asked as if it stood at the top of the list.
    before = state.waiting_in[pool]
    state.waiting_in[pool] = {slot: before[slot]}
    try:
        need = need_of(state, slot, START)
    finally:
        state.waiting_in[pool] = before
    if isinstance(need, Answer):
        return need
    playbook = Playbook(
        id="free-gpu-capacity", steps=("scale",), mode=Mode.APPROVE, goal=Goal.BENEFICIARY_READY, most_replicas=4
    )
    return plan_for(
        state,
        need,
        playbook=playbook,
        incident="bench",
        scaling=SCALING,
        reserved=Reservations(),
        now=START + timedelta(minutes=10),
    )
