"""What every framework in the table must do; a new one is found by itself."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from sevenhop.core.inventory.discovery import Discovery
from sevenhop.core.inventory.framework import CLAIMABLE, FrameworkSpec
from sevenhop.core.inventory.objects import Key, Objects
from sevenhop.core.inventory.workloads import Workload
from sevenhop.core.objects.kinds import KINDS
from sevenhop.frameworks import FRAMEWORKS
from tests.unit.frameworks.running import SCENES, Manifest, Scene, key, objects_of, read

GOLDEN = Path(__file__).parent.parent / "golden" / "samples.yaml"
ROLES = frozenset(
    (
        "head", "worker", "leader", "prefill", "decode", "router", "frontend", "predictor", "transformer", "explainer",
        "planner", "epp", "engine",
    )
)  # fmt: skip

each_framework = pytest.mark.parametrize("spec", FRAMEWORKS, ids=lambda spec: spec.framework.value)
each_scene = pytest.mark.parametrize("scene", SCENES, ids=lambda scene: scene.name)


def discovered(objects: Objects) -> Discovery:
    discovery = Discovery(objects, FRAMEWORKS)
    discovery.settle()
    return discovery


def places(discovery: Discovery, objects: Objects) -> dict[str, tuple[str, str]]:
    found = {pod: discovery.membership(pod) for pod in objects.pods()}
    return {pod[1]: (m.workload[1], m.component) for pod, m in found.items() if m is not None}


@each_framework
def test_row(spec: FrameworkSpec) -> None:
    """
    A row says in words what it is and how it scales, and names only kinds that are read.
    """
    assert len(spec.docs) > 30
    assert len(spec.scale) > 20
    assert spec.roots or spec.claims
    assert [kind for kind in (*spec.roots, *spec.below, *(k for k, _ in spec.aside)) if kind not in KINDS] == []
    assert [kind for kind in spec.claims if kind not in CLAIMABLE] == []
    assert (spec.claim is None) == (not spec.claims)


@each_framework
def test_has_a_sample_and_runs_somewhere(spec: FrameworkSpec) -> None:
    """
    Nobody can add a framework without a manifest that a person read and a picture of how it looks while it runs.
    """
    rows = yaml.safe_load(GOLDEN.read_text("utf-8")).values()
    sampled = {workload["framework"] for row in rows for workload in row.get("workloads", {}).values()}

    assert spec.framework.value in sampled
    assert spec.framework.value in {scene.framework for scene in SCENES}


def test_no_kind_has_two_frameworks() -> None:
    """
    A root kind belongs to one framework; precedence never has to guess.
    """
    kinds = [kind for spec in FRAMEWORKS for kind in spec.roots]

    assert sorted(set(kinds)) == sorted(kinds)


@each_scene
def test_running(scene: Scene) -> None:
    """
    With everything visible each pod is in its component, and the workload states counts, roles and where to scale.
    """
    objects = objects_of(scene.objects)
    discovery = discovered(objects)

    assert scene.pods == places(discovery, objects)
    (workload,) = discovery.workloads.values()
    assert scene.framework == workload.framework.value
    assert [part.name for part in workload.components if part.role not in ROLES] == []
    assert [part.name for part in workload.components if part.desired is None] == []
    for part in workload.components:
        assert part.scale is None or (part.scale.kind in KINDS and part.scale.path and part.scale.name)


@each_scene
def test_only_pods(scene: Scene) -> None:
    """
    Where roots and controllers are not visible, labels and owner references still tell workload and component.
    """
    objects = objects_of(m for m in scene.objects if m["kind"] == "Pod")
    discovery = discovered(objects)

    assert scene.alone == places(discovery, objects)
    assert {place[0] for place in scene.alone.values()} == {name for _, name in discovery.workloads}


@each_scene
def test_without_its_root(scene: Scene) -> None:
    """
    A root that may not be read, with everything below visible: the same workload and the same places.
    """
    if len(scene.objects) < 3 or scene.objects[0]["kind"] in ("Deployment", "StatefulSet", "InferencePool"):
        pytest.skip("its root is a controller like any other")
    objects = objects_of(scene.objects[1:])

    assert scene.pods == places(discovered(objects), objects)


@each_scene
def test_only_manifests(scene: Scene) -> None:
    """
    Before anything runs, the workload is there under the same name, and no pods are.
    """
    manifests = [m for m in scene.objects if m["kind"] != "Pod"]
    if not manifests:
        pytest.skip("a bare pod is its own manifest")
    with_pods, without = discovered(objects_of(scene.objects)), discovered(objects_of(manifests))

    assert set(with_pods.workloads) == set(without.workloads)
    for name, workload in without.workloads.items():
        assert [part.name for part in workload.components if without.pods_of(name, part.name)] == []


def state(discovery: Discovery, objects: Objects) -> tuple[dict[Key, Workload], Any, Any]:
    return dict(discovery.workloads), places(discovery, objects), discovery.skipped


@given(data=st.data())
@settings(max_examples=100, deadline=None)
def test_the_order_does_not_matter(data: st.DataObject) -> None:
    """
    Objects in any order, settled at any point, some of them come and go in between: the same workloads in the end,
    also where one kind of them is not visible.
    """
    scene = data.draw(st.sampled_from(SCENES))
    hidden = data.draw(st.sampled_from(["", *sorted({m["kind"] for m in scene.objects})]))
    visible = [m for m in scene.objects if m["kind"] != hidden]
    expected = state(discovered(objects_of(visible)), objects_of(visible))
    order = data.draw(st.permutations(visible))
    passing = data.draw(st.sets(st.integers(0, len(order)), max_size=3))

    objects = Objects()
    discovery = Discovery(objects, FRAMEWORKS)
    for at, manifest in enumerate(order):
        kind, obj = read(manifest)
        objects.put(kind, obj)
        discovery.touch(kind, obj.key)
        if data.draw(st.booleans()):
            discovery.settle()
        if at in passing:
            objects.drop(kind, obj.key)
            discovery.touch(kind, obj.key)
            discovery.settle()
            objects.put(kind, obj)
            discovery.touch(kind, obj.key)
    discovery.settle()

    workloads, where, skipped = state(discovery, objects)
    assert expected[0] == workloads
    assert expected[1] == where
    assert expected[2] == skipped


@each_scene
def test_touching_again_changes_nothing(scene: Scene) -> None:
    """
    A re-list touches everything; nothing of it is news.
    """
    objects = objects_of(scene.objects)
    discovery = discovered(objects)
    for manifest in scene.objects:
        kind, obj = read(manifest)
        objects.put(kind, obj)
        discovery.touch(kind, obj.key)

    assert discovery.settle() == set()


@each_scene
def test_nothing_is_left(scene: Scene) -> None:
    """
    When all objects are gone so are the workloads, and nothing is remembered of them.
    """
    objects = objects_of(scene.objects)
    discovery = discovered(objects)
    names = set(discovery.workloads)
    gone = _take_away(objects, discovery, scene.objects)

    assert names <= gone
    assert dict(discovery.workloads) == {}
    assert discovery.skipped == []
    left = ("_seen", "_roots", "_pools", "_scalers", "_claiming", "_placements", "_unused", "_group_of", "_groups")
    assert {name: held for name in left if len(held := getattr(discovery, name))} == {}


def _take_away(objects: Objects, discovery: Discovery, manifests: list[Manifest]) -> set[Key]:
    changed: set[Key] = set()
    for manifest in manifests:
        kind, obj = read(manifest)
        objects.drop(kind, obj.key)
        discovery.touch(kind, obj.key)
        changed |= discovery.settle()
    return changed


def test_two_namespaces_do_not_meet() -> None:
    """
    The same names in another namespace are another workload.
    """
    scene = SCENES[0]
    other = [
        {**m, "metadata": {**m["metadata"], "namespace": "dev", "uid": "dev" + m["metadata"]["uid"]}}
        for m in scene.objects
    ]
    for manifest in other:
        for owner in manifest["metadata"].get("ownerReferences", []):
            assert not owner["uid"].startswith("dev")
        manifest["metadata"]["ownerReferences"] = [
            {**owner, "uid": "dev" + owner["uid"]} for owner in manifest["metadata"].get("ownerReferences", [])
        ]
    discovery = discovered(objects_of([*scene.objects, *other]))

    assert set(discovery.workloads) == {key("llama-70b"), ("dev", "llama-70b")}
