"""Who waits for a pool, by why it has no node: the same for the listing, the facts and the message."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from sevenhop.core.hops.causes_device import DEVICE_CAUSES
from sevenhop.core.hops.causes_scheduling import CAUSES
from sevenhop.core.inventory.pools import capacity
from sevenhop.core.inventory.pools_waiting import GIVEN_UP_HELPS, ON_REPAIR, WAITS
from sevenhop.core.objects import cluster as c
from sevenhop.core.objects.base import Object
from sevenhop.core.remediation.plan import Answer, Need, NoPlanReason
from sevenhop.core.remediation.planning.need import need_of
from sevenhop.core.subject import Subject
from sevenhop.core.views import VIEWS
from tests import builders as b
from tests.builders import H100, at
from tests.unit.engine.machines import Machine
from tests.unit.inventory.scenes import Scene

SAID = "0/9 nodes are available: {reason}."
ENGINE = b.deployment("engine", gpus=2, replicas=2, annotations={"sevenhop.dev/tier": "critical"})
MADE = b.replicaset(ENGINE)
BUSY = b.pod("busy", "other", node="gpu-0", gpus=4)
FULL: tuple[Object, ...] = (b.node("gpu-0", gpus=4), BUSY)


def waits(suffix: str = "0", reason: str = "1 Insufficient nvidia.com/gpu", **changes: Any) -> Object:
    return b.pod_of(MADE, suffix, unschedulable=SAID.format(reason=reason), **changes)


def split() -> tuple[Object, ...]:
    two = (b.node("gpu-0", gpus=2), b.node("gpu-1", gpus=2))
    return (*two, *(b.pod(f"busy-{n}", "other", node=f"gpu-{n}", gpus=1) for n in (0, 1)))


IN = {
    "gpu-shortage": (FULL, waits()),
    "gpu-fragmentation": (split(), waits()),
    "gpus-unhealthy": ((b.node("gpu-0", gpus=1, capacity=2),), waits()),
    "device-plugin-not-advertising": ((b.node("gpu-0", gpus=0, capacity=2),), waits()),
    "preempting": (FULL, waits(priority=9, reason="1 Insufficient nvidia.com/gpu")),
}
OUT = {
    "gpu-never-fits": ((b.node("gpu-0", gpus=1),), waits()),
    "node-selector": (FULL, waits(reason="1 node(s) didn't match Pod's node affinity/selector", selector={"a": "b"})),
    "untolerated-taint": (
        (b.node("gpu-0", gpus=4, taints=(c.Taint("team", "research", "NoSchedule"),)),),
        waits(reason="1 node(s) had untolerated taint {team: research}"),
    ),
    "cordoned": ((b.node("gpu-0", gpus=4, cordoned=True),), waits(reason="1 node(s) were unschedulable")),
    "node-not-ready": (
        (b.node("gpu-0", gpus=4, ready=False, taints=(c.Taint("node.kubernetes.io/not-ready", "", "NoSchedule"),)),),
        waits(reason="1 node(s) had untolerated taint {node.kubernetes.io/not-ready: }"),
    ),
    "scheduling-gate": (FULL, b.pod_of(MADE, "0", gates=("example.com/held",))),
    "unknown": ((b.node("gpu-0", gpus=4),), waits()),
}


def scene_of(cluster: Sequence[Object], *pods: Object) -> Scene:
    scene = Scene(*cluster, ENGINE, MADE, *pods)
    scene.wait(scene.seconds + 1)
    return scene


@pytest.mark.parametrize("cause", [*IN, *OUT])
def test_who_waits_and_who_does_not(cause: str) -> None:
    """GPUs of the pool are what keeps it, or something else is; the listing, the facts and the queue say the same."""
    cluster, pod = (IN | OUT)[cause]
    scene = scene_of(cluster, pod)
    state = scene.inventory.state
    rows = state.rows_of[("prod", "engine"), "engine"]
    assert [row.pending.cause for row in rows.values() if row.pending is not None] == [cause]

    gpus = 2 if cause in IN else 0

    pool = state.pool_of[("prod", "engine"), "engine"]
    assert sum(each.gpus for each in capacity(state, pool).waiting) == gpus
    if pool in state.ledger.pools() or gpus:
        assert scene.fact(f"pool:{pool}", "waiting_gpus") == gpus
        assert scene.fact(f"pool:{pool}", "waiting_on_repair") == (2 if cause in ON_REPAIR else 0)
        assert scene.fact(f"pool:{pool}", "waiting_tier") == ("critical" if gpus else "")
    assert [each.cause for each in capacity(state, pool).waiting] == ([cause] if gpus else [])


DECIDED_AGAINST = {
    "it fits": "none",
    "counted where victims leave GPUs": "preempting",
    "no node could ever meet it": "gpu-never-fits, extended-resource-unknown, kueue-exceeds-max, no-nodes",
    "another resource": (
        "extended-resource-shortage, cpu-shortage, memory-shortage, ephemeral-storage-shortage, too-many-pods, "
        "resource-combination, resource-unnamed, numa-alignment"
    ),
    "decided by the devices that its claims could get": "dra-extended-resource, dra-unsatisfiable",
    "shares of devices, whose number the pod does not state": "device-sharing-refused",
    "it waits for its own rollout": "rollout-surge",
    "where it may run": (
        "cordoned, node-not-ready, device-mode-mismatch, untolerated-taint, node-selector, node-affinity, host-port, "
        "pod-affinity, pod-anti-affinity, topology-spread, kueue-topology, volume-zone"
    ),
    "what may be": (
        "pod-security, admission-denied, pod-rejected, service-account-missing, resource-quota, quota-needs-requests, "
        "limit-range, scheduler-quota, queue-quota, queue-misconfigured, priority-class-missing"
    ),
    "what does not exist": (
        "pvc-unbound, pvc-missing, pv-unavailable, pvc-in-use, volume-limit, dra-claim-missing, device-class-missing"
    ),
    "held back": (
        "scheduling-gate, other-scheduler, kueue-waiting, queue-waiting, gang-waiting, gang-pods-missing"
    ),
    "unclear": (
        "unknown, gang-unexplained, scheduler-text-unread, device-plugin-suspected, autoscaler-no-template, "
        "autoscaler-other"
    ),
}  # fmt: skip


def test_every_cause_is_decided() -> None:
    """A cause that is new in the published list has to be put on one side."""
    against = [cause for words in DECIDED_AGAINST.values() for cause in words.split(", ")]

    assert sorted([*against, *WAITS]) == sorted({*CAUSES})
    assert not WAITS & DEVICE_CAUSES.keys()
    assert not GIVEN_UP_HELPS & ON_REPAIR


def test_only_those_that_wait_for_the_pool_are_counted() -> None:
    """Of a component with a pod that is held by a gate, the other one waits, and its cause is told."""
    scene = scene_of(FULL, waits("0"), *(b.pod_of(MADE, str(n), gates=("example.com/held",)) for n in (1, 2)))

    (entry,) = capacity(scene.inventory.state, H100).waiting

    assert (entry.pods, entry.gpus, entry.cause) == (1, 2, "gpu-shortage")


def test_victims_that_leave_no_gpus() -> None:
    """A pod that preempts for the sake of CPUs waits for no GPU."""
    big = b.pod("busy", "other", node="gpu-0")
    big.spec.containers[0].resources.requests["cpu"] = "64"
    scene = scene_of((b.node("gpu-0", gpus=4), big), waits(priority=9, reason="1 Insufficient cpu"))
    rows = scene.inventory.state.rows_of[("prod", "engine"), "engine"]

    assert [row.pending.cause for row in rows.values() if row.pending is not None] == ["preempting"]
    assert scene.fact(f"pool:{H100}", "waiting_gpus") == 0


def test_the_listing_and_the_message_name_the_same() -> None:
    """`get capacity`, and what a message takes its waiting list from."""
    machine = Machine()
    machine.put(b.node("gpu-0", gpus=1, capacity=2), ENGINE, MADE, waits(), seconds=0)
    machine.tell(machine.feed.synced(), 1)
    machine.tell((), 2)

    (row,) = VIEWS["capacity"](machine.engine, at(2))
    context = machine.engine.inventory.context(Subject.parse("component:prod/engine/engine"), at(2))

    assert [(each["workload"], each["gpus"], each["cause"]) for each in row["waiting"]] == [
        ("prod/engine", 2, "gpus-unhealthy")
    ]
    assert context is not None
    assert context.pool is not None
    assert [(each.workload, each.gpus) for each in context.pool.waiting] == [(("prod", "engine"), 2)]


def test_what_is_out_of_service_keeps_nobody_from_what_others_can_give() -> None:
    """A plan is for the first of those whom GPUs of others help; where there is none it says what is the matter."""
    other = b.deployment("other", gpus=4, annotations={"sevenhop.dev/tier": "standard"})
    made = b.replicaset(other)
    theirs = b.pod_of(made, "0", unschedulable=SAID.format(reason="1 Insufficient nvidia.com/gpu"))
    busy = b.pod("busy", "other", node="gpu-1", gpus=4)
    cluster = (b.node("gpu-0", gpus=1, capacity=2), b.node("gpu-1", gpus=4), busy)
    scene = scene_of(cluster, waits(), other, made, theirs)
    state = scene.inventory.state
    assert [each.cause for each in capacity(state, H100).waiting] == ["gpus-unhealthy", "gpu-shortage"]

    need = need_of(state, H100, at(9))
    assert isinstance(need, Need)
    assert need.workload == ("prod", "other")
    assert isinstance(need_of(state, (("prod", "other"), "engine"), at(9)), Need)
    scene.delete(theirs)
    scene.wait(scene.seconds + 1)

    answer = need_of(state, H100, at(9))
    assert isinstance(answer, Answer)
    assert (answer.reason, "gpus-unhealthy" in answer.text) == (NoPlanReason.NOT_A_SHORTAGE, True)
