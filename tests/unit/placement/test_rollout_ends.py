"""A rollout without a surge: between an old pod's deletion and its end, its GPUs are promised and not yet free."""

from __future__ import annotations

from typing import Any

from sevenhop.core.hops.diagnosis import Diagnosis
from sevenhop.core.hops.scheduling import why_pending
from sevenhop.core.placement.cluster import Cluster
from tests.placement_builders import custom, node, pod, the_pod, world


def _why(*, ending: bool) -> Diagnosis:
    rolling = {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 0, "maxUnavailable": 1}}
    owned = [{"kind": "Deployment", "name": "llama", "uid": "uid-llama", "controller": True}]

    def replica_set(name: str, number: str) -> dict[str, Any]:
        notes = {"deployment.kubernetes.io/revision": number}
        return custom("apps/v1", "ReplicaSet", name, "prod", metadata={"ownerReferences": owned, "annotations": notes})

    old = pod("old", on="g1", gpus=4, owner=("ReplicaSet", "rs-1", "uid-rs-1"))
    if ending:
        old["metadata"] |= {"deletionTimestamp": "2026-11-30T12:00:30Z", "deletionGracePeriodSeconds": 30}
    objects = world(
        node("g1", gpus=4),
        custom("apps/v1", "Deployment", "llama", "prod", spec={"strategy": rolling}),
        replica_set("rs-1", "1"),
        replica_set("rs-2", "2"),
        old,
        pod("x", gpus=4, owner=("ReplicaSet", "rs-2", "uid-rs-2")),
    )
    return why_pending(Cluster(objects), the_pod(objects, "x"))


def test_waiting_for_the_end_of_its_own_old_pod_is_no_shortage() -> None:
    """The GPUs come free by themselves, and nobody is advised to change a rollout that goes on."""
    found = _why(ending=True)
    assert found.cause == "rollout-surge"
    assert found.summary.startswith("waits for old pods of its own rollout to end: 1 of them still holds")
    assert not any("maxSurge" in text for text in (*found.next_steps, *found.would_help))


def test_an_old_pod_that_stays_makes_it_a_shortage() -> None:
    """Without a surge, and with nobody leaving, GPUs are short."""
    assert _why(ending=False).cause == "gpu-shortage"
