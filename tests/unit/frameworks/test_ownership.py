"""Owner chains."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from sevenhop.core.inventory.objects import Objects
from sevenhop.core.inventory.ownership import LONGEST_CHAIN, Owners
from sevenhop.core.objects.base import Meta
from tests.unit.frameworks.running import Manifest, dynamo_lws, obj, objects_of, pod, read


def chain(objects: Objects, manifest: Manifest) -> list[tuple[str, str, bool]]:
    _, found = read(manifest)
    return [
        (link.kind.partition(".")[0], link.name, link.obj is not None) for link in Owners(objects).above(found.metadata)
    ]


def test_through_the_leader() -> None:
    """
    The workers' StatefulSet belongs to the leader pod; the chain passes it up to the graph.
    """
    manifests = dynamo_lws().objects
    worker = next(m for m in manifests if m["metadata"]["name"] == "llama-70b-decode-1f-0-1")

    assert [(kind, name) for kind, name, _ in chain(objects_of(manifests), worker)] == [
        ("StatefulSet", "llama-70b-decode-1f-0"),
        ("Pod", "llama-70b-decode-1f-0"),
        ("StatefulSet", "llama-70b-decode-1f"),
        ("LeaderWorkerSet", "llama-70b-decode-1f"),
        ("DynamoComponentDeployment", "llama-70b-decode-1f"),
        ("DynamoGraphDeployment", "llama-70b"),
    ]


def test_an_owner_that_is_gone_is_still_named() -> None:
    """
    The chain ends at what is not visible, with its name.
    """
    gone = obj("apps/v1", "ReplicaSet", "web-abc")

    assert chain(Objects(), pod("web-abc-x", gone, {})) == [("ReplicaSet", "web-abc", False)]


def test_an_owner_of_the_same_name_is_not_the_owner() -> None:
    """
    Names are used again: an owner that was deleted and made anew does not own the old pods.
    """
    old = obj("apps/v1", "ReplicaSet", "web-abc")
    new: dict[str, Any] = {**old, "metadata": {**old["metadata"], "uid": "another"}}

    assert chain(objects_of([new]), pod("web-abc-x", old, {})) == [("ReplicaSet", "web-abc", False)]


def test_manifests_without_uids_are_joined_by_name() -> None:
    """
    What was never applied has no uids.
    """
    sets = obj("apps/v1", "ReplicaSet", "web-abc")
    del sets["metadata"]["uid"]
    member = pod("web-abc-x", {**sets, "metadata": {**sets["metadata"], "uid": ""}}, {})

    assert chain(objects_of([sets]), member) == [("ReplicaSet", "web-abc", True)]


@given(st.lists(st.tuples(st.integers(0, 6), st.integers(0, 6)), max_size=12))
def test_any_web_of_owners_ends(edges: list[tuple[int, int]]) -> None:
    """
    However objects own each other, also in circles, a chain is finite and names nobody twice.
    """
    objects = Objects()
    nodes = [obj("apps/v1", "ReplicaSet", f"n{n}") for n in range(7)]
    for child, owner in edges:
        nodes[child] = obj("apps/v1", "ReplicaSet", f"n{child}", owner=nodes[owner])
    for node in nodes:
        objects.put(*read(node))
    owners = Owners(objects)

    for found in objects.of("ReplicaSet.apps").values():
        names = [link.name for link in owners.above(found.metadata)]
        assert len(names) == len(set(names)) <= LONGEST_CHAIN


def test_forget() -> None:
    """
    A chain is remembered until its owner is said to have changed.
    """
    sets = obj("apps/v1", "ReplicaSet", "web-abc")
    objects = objects_of([])
    owners = Owners(objects)
    _, member = read(pod("web-abc-x", sets, {}))
    meta: Meta = member.metadata
    assert owners.above(meta)[0].obj is None

    objects.put(*read(sets))
    assert owners.above(meta)[0].obj is None
    owners.forget("ReplicaSet:web-abc")
    assert owners.above(meta)[0].obj is not None
