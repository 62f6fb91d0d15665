"""A set of objects is diagnosed by what is in it: the order in which they were collected changes no letter."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sevenhop.cli.diagnose import document_of
from sevenhop.cli.output import to_json
from sevenhop.core import bundle
from sevenhop.core.hops.scheduling import why_pending
from sevenhop.core.inventory.objects import Objects
from sevenhop.core.inventory.policy import Policy
from sevenhop.core.objects.base import Object
from sevenhop.core.objects.decode import UndecodableError, convert
from sevenhop.core.objects.kinds import KINDS, kind_of
from sevenhop.core.placement.cluster import Cluster
from sevenhop.frameworks import FRAMEWORKS
from tests import builders as b
from tests import placement_builders as m
from tests.golden.test_samples import documents
from tests.scheduler_cases import cases, objects_of, synced
from tests.shared import shared_path

Manifest = dict[str, Any]

Items = Sequence[tuple[str, Object]]
"""(kind, object), in the order in which they are collected."""

EVERY = 16
"""One in so many recorded cases is drawn from at random; all of them are turned round once."""


def items_of(objects: Objects) -> Items:
    return [(kind, obj) for kind in KINDS for obj in objects.of(kind).values()]


def answer(items: Items) -> str:
    """What ``diagnose -o json`` prints."""
    objects = synced()
    for kind, obj in items:
        objects.put(kind, obj)
    return to_json(document_of(bundle.diagnose(objects, FRAMEWORKS, Policy(), now=None)))


def recorded() -> Iterator[tuple[str, Items]]:
    for name in ("verdicts", "whatif"):
        for case in cases(name):
            yield f"{name} {case['id']}", items_of(objects_of(case))


@cache
def some_recorded() -> tuple[tuple[str, Items], ...]:
    return tuple(found for number, found in enumerate(recorded()) if number % EVERY == 0)


def test_every_recorded_cluster_turned_round() -> None:
    """The last object first: the same document of every recorded case."""
    assert [name for name, items in recorded() if answer(items) != answer(list(reversed(items)))] == []


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_recorded_clusters_in_any_order(data: st.DataObject) -> None:
    """Whatever came first: the same document."""
    name, items = data.draw(st.sampled_from(some_recorded()))

    assert answer(items) == answer(data.draw(st.permutations(items))), name


def samples() -> list[str]:
    root = shared_path("data/samples")
    return sorted(str(path.relative_to(root)) for path in root.rglob("*.yaml"))


def _items_in(path: Path) -> Items:
    found: dict[tuple[str, str, str], tuple[str, Object]] = {}
    for document in documents(path):
        kind = kind_of(str(document.get("apiVersion", "")), str(document.get("kind", "")))
        if kind is None or not (document.get("metadata") or {}).get("name"):
            continue
        try:
            obj = convert(kind, document)
        except UndecodableError:
            continue
        # The later one of a name stands: which that is must not hang on the order here.
        found[(kind.name, *obj.metadata.key)] = (kind.name, obj)
    return list(found.values())


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_samples_in_any_order(data: st.DataObject) -> None:
    """Several manifests together, however their files are read: the same document."""
    names = data.draw(st.lists(st.sampled_from(samples()), min_size=1, max_size=4, unique=True))
    items = {
        (kind, obj.metadata.key): (kind, obj)
        for name in names
        for kind, obj in _items_in(shared_path(f"data/samples/{name}"))
    }

    assert answer(list(items.values())) == answer(data.draw(st.permutations(list(items.values()))))


# What nothing but its name tells apart

GPU_QUOTA = {"requests.nvidia.com/gpu": "4"}
NEEDY = [{"name": "vllm", "resources": {"requests": {"nvidia.com/gpu": "2"}, "limits": {"nvidia.com/gpu": "2"}}}]


def _set(name: str, revision: str, **status: Any) -> Manifest:
    owner = [{"kind": "Deployment", "name": "llama", "uid": "uid-llama", "controller": True}]
    notes = {"deployment.kubernetes.io/revision": revision}
    spec = {"replicas": 2, "template": {"spec": {"containers": NEEDY}}}
    meta = {"ownerReferences": owner, "annotations": notes}
    return m.custom("apps/v1", "ReplicaSet", name, "prod", metadata=meta, spec=spec, status=status)


def _told(about: str, kind: str, reason: str, text: str, name: str) -> Manifest:
    event = m.event(about, reason, text, kind=kind)
    event["metadata"]["name"] = name
    return {**event, "lastTimestamp": "2026-11-30T12:00:00Z"}


def _quota(name: str) -> Manifest:
    used = {"requests.nvidia.com/gpu": "3"}
    return m.custom("v1", "ResourceQuota", name, "prod", spec={"hard": GPU_QUOTA},
                    status={"hard": GPU_QUOTA, "used": used})  # fmt: skip


def _limits(name: str, most: str) -> Manifest:
    limits = [{"type": "Container", "max": {"nvidia.com/gpu": most}}]
    return m.custom("v1", "LimitRange", name, "prod", spec={"limits": limits})


CLAIM = m.custom("v1", "PersistentVolumeClaim", "weights", "prod", spec={}, status={"phase": "Pending"})
RAY = m.custom("ray.io/v1", "RayCluster", "llama", "prod", spec={}, status={})
ROLLOUT = [
    m.node("g1", gpus=4),
    m.custom("apps/v1", "Deployment", "llama", "prod", spec={"strategy": {"type": "RollingUpdate"}}),
    _set("rs-1", "1"),
    _set("rs-2", "2"),
    m.pod("new", gpus=4, owner=("ReplicaSet", "rs-2", "uid-rs-2")),
    *(m.pod(f"old-{n}", on="g1", gpus=1, owner=("ReplicaSet", "rs-1", "uid-rs-1")) for n in (10, 2, 1, 9)),
]

TIES = {
    "events of one second about a pod": [
        m.pod("a", on="n", gpus=1, phase="Pending"),
        _told("a", "Pod", "FailedMount", 'MountVolume.SetUp failed for volume "w": secret "hf-2" not found', "a.2"),
        _told("a", "Pod", "FailedMount", 'MountVolume.SetUp failed for volume "w": secret "hf-1" not found', "a.1"),
    ],
    "verdicts of one second": [
        m.pod("a", gpus=1),
        _told("a", "Pod", "FailedScheduling", "0/3 nodes are available: 3 Insufficient nvidia.com/gpu.", "a.1"),
        _told("a", "Pod", "FailedScheduling", "0/3 nodes are available: 3 Insufficient cpu.", "a.2"),
    ],
    "events of one second about a pod that was not collected": [
        _told("gone", "Thing", "FailedCreate", 'pods "x" is forbidden: exceeded quota: a', "a.2"),
        _told("gone", "Thing", "FailedCreate", "admission webhook denied the request", "a.1"),
    ],
    "refusals of one second": [
        _set("rs-1", "1"),
        _told("rs-1", "ReplicaSet", "FailedCreate", 'pods "x" is forbidden: exceeded quota: a', "a.2"),
        _told("rs-1", "ReplicaSet", "FailedCreate", 'admission webhook "w" denied the request: no', "a.1"),
    ],
    "a claim in trouble twice in one second": [
        CLAIM,
        _told("weights", "PersistentVolumeClaim", "ProvisioningFailed", "rpc error: quota exceeded", "a.2"),
        _told("weights", "PersistentVolumeClaim", "ProvisioningFailed", "storageclass fast not found", "a.1"),
    ],
    "an operator refused twice in one second": [
        RAY,
        _told("llama", "RayCluster", "FailedToCreateHeadPod", 'pods "x" is forbidden: exceeded quota: a', "a.2"),
        _told("llama", "RayCluster", "FailedToCreateWorkerPod", "admission webhook denied the request", "a.1"),
    ],
    "quotas": [_set("rs-1", "1"), _quota("q-10"), _quota("q-2")],
    "limit ranges": [_set("rs-1", "1"), _limits("b", "1"), _limits("a", "0")],
    "old pods of a rollout": ROLLOUT,
}


@pytest.mark.parametrize("items", TIES.values(), ids=TIES.keys())
def test_what_only_a_name_tells_apart(items: Sequence[Manifest]) -> None:
    """Of equals one is told first, and it is the same one in whatever order they came."""
    first, second = m.world(*items), m.world(*reversed(items))

    assert answer(items_of(first)) == answer(items_of(second))


def test_old_pods_are_listed_by_their_numbers() -> None:
    """The pods that a rollout waits for: ``old-2`` before ``old-10``."""
    objects = m.world(*ROLLOUT)

    found = why_pending(Cluster(objects), m.the_pod(objects, "new"))

    assert any("old pods old-1, old-2, old-9" in each.text for each in found.evidence), found


# Names as people list them


def _cluster(*objects: Any) -> Objects:
    found = synced()
    for obj in objects:
        found.put("Node" if obj.metadata.namespace == "" else "Pod", obj)
    return found


NUMBERED = [b.node(f"gpu-{number}", gpus=1) for number in (10, 2, 1, 9, 11)]


def test_nodes_are_listed_by_their_numbers() -> None:
    """``gpu-2`` stands before ``gpu-10`` in evidence, though it came later, and sorts later as a text."""
    holders = [b.pod(f"h-{n.metadata.name}", node=n.metadata.name, gpus=1) for n in NUMBERED]
    waits = b.pod("waits", gpus=1, unschedulable="0/5")
    objects = _cluster(*NUMBERED, *holders, waits)

    found = why_pending(Cluster(objects), waits)

    named = [each.source for each in found.evidence if each.source.startswith("node/")]
    assert named == ["node/gpu-1", "node/gpu-2", "node/gpu-9", "node/gpu-10", "node/gpu-11"]


def test_a_node_that_comes_and_goes_leaves_the_order() -> None:
    """Kept current one node at a time, the live view lists them as one that is built at once."""
    waits = b.pod("waits", gpus=2, unschedulable="0/5")
    objects = _cluster(waits)
    live = Cluster(objects)
    for each in (*NUMBERED, b.node("gpu-3", gpus=1)):
        objects.put("Node", each)
        live.update("Node", each.metadata.key)
        why_pending(live, waits)
    objects.drop("Node", ("", "gpu-9"))
    live.update("Node", ("", "gpu-9"))
    on_last = b.pod("late", node="gpu-11", gpus=1)
    objects.put("Pod", on_last)
    live.update("Pod", on_last.metadata.key)

    assert [view.name for view in live.order] == ["gpu-1", "gpu-2", "gpu-3", "gpu-10", "gpu-11"]
    assert why_pending(live, waits) == why_pending(Cluster(objects), waits)
    assert [view.index for view in live.order] == list(range(5))
