"""What every row of the table does."""

from __future__ import annotations

from collections.abc import Callable
from typing import cast

import pytest

from sevenhop.core.facts.schema import Unknown, UnknownReason
from sevenhop.core.inventory.workloads import Framework
from sevenhop.core.objects.kinds import KINDS
from sevenhop.core.remediation.action import Scale, Steer
from sevenhop.core.remediation.reduction import Conflict, ConflictReason, Ruler
from sevenhop.frameworks.scaling import SCALING
from tests.unit.frameworks import running
from tests.unit.frameworks.running import SCENES, Scene
from tests.unit.scaling import scenes
from tests.unit.scaling.case import lws, ray
from tests.unit.scaling.test_rulers import Case as Ruled
from tests.unit.scaling.test_rulers import each_case
from tests.unit.scaling.world import World

R = ConflictReason
plain, dynamo, isvc = scenes.plain, scenes.dynamo, scenes.isvc


@pytest.mark.parametrize("kind", sorted({kind for spec in SCALING.values() for kind in spec.reads}))
def test_blind(kind: str) -> None:
    """
    Where a kind that matters cannot be seen, nothing is reduced, and the kind is named.
    """
    readers = {framework for framework, spec in SCALING.items() if kind in spec.reads}
    makers: dict[Framework, tuple[Callable[[], World], str]] = {
        Framework.DYNAMO: (dynamo, "VllmDecodeWorker"),
        Framework.KUBERAY: (ray, "h100"),
        Framework.KSERVE: (isvc, "predictor"),
        Framework.LWS: (lws, "engine"),
        Framework.LLM_D: (lambda: scenes.world(running.llm_d), "decode"),
        Framework.NIM: (scenes.nim, "engine"),
        Framework.PLAIN: (plain, "engine"),
    }
    assert readers <= makers.keys()
    for framework in readers:
        make, component = makers[framework]
        world = World(make().manifests.values(), blind={kind: Unknown(UnknownReason.FORBIDDEN, kind)})
        found = world.rule(component)
        assert isinstance(found, Conflict), framework
        assert (found.reason, kind in found.text, "forbidden" in found.text) == (R.UNKNOWN, True, True)


@pytest.mark.parametrize("framework", [f for f in Framework if not SCALING[f].patches], ids=str)
def test_not_proven_says_why(framework: Framework) -> None:
    """
    A framework without a proven path patches nothing, and gives a reason that differs from all others.
    """
    world = scenes.plain()
    workload, component = world.find("engine")
    found = SCALING[framework].rule(world, workload, component, [])

    assert isinstance(found, Conflict)
    assert found.reason is R.NOT_PROVEN
    assert framework in found.text
    assert len(SCALING[framework].docs) > 30


def test_every_framework_has_a_row() -> None:
    """
    Whoever adds a framework says what is patched, or that nothing is.
    """
    assert set(SCALING) == set(Framework)
    assert [framework for framework, spec in SCALING.items() if spec.framework is not framework] == []


@pytest.mark.parametrize("framework", list(Framework), ids=str)
def test_only_kinds_that_are_read(framework: Framework) -> None:
    """
    What is patched or looked at is a kind of the table of kinds, and what is patched is seen first.
    """
    spec = SCALING[framework]

    assert {kind for kind, _ in spec.patches} | set(spec.reads) <= set(KINDS)
    assert {kind for kind, _ in spec.patches} <= set(spec.reads)
    assert {subresource for _, subresource in spec.patches} <= {"", "scale"}


@each_case
def test_patches_are_granted(case: Ruled) -> None:
    """
    Everything that is written, and the object that is marked, is in the row that rights are granted from.
    """
    scale = case.world.scale(case.component, case.replicas - 1)
    workload, _ = case.world.find(case.component)
    granted = set(SCALING[workload.framework].patches)

    assert (scale.target.kind, scale.subresource) in granted
    assert (scale.marked.kind, "") in granted
    assert {(ref.kind, "") for ref, _, _ in scale.also} <= granted


@pytest.mark.parametrize("scene", SCENES, ids=lambda scene: scene.name)
def test_agrees_with_what_the_inventory_shows(scene: Scene) -> None:
    """
    The object that is patched is the one that `sevenhop get workloads` names as ruling the replicas.
    """
    world = World(scene.objects)
    for workload, name in sorted(set(scene.pods.values())):
        found, part = world.find(name, workload)
        ruler = world.rule(name, workload)
        if isinstance(ruler, Ruler):
            assert part.scale is not None
            assert (ruler.target.kind, ruler.target.namespace, ruler.target.name) == (
                part.scale.kind,
                part.scale.namespace,
                part.scale.name,
            )
            assert ruler.unit_pods == part.scale.unit_pods
        else:
            assert len(ruler.text) > 20, found.key


def test_a_steered_replica_set_is_told_first() -> None:
    """
    The victims' cost is lowered before the replicas are, and for pods that a ReplicaSet chooses among alone.
    """
    steer, scale = cast("tuple[Steer, Scale]", scenes.plain().act("engine", 2))

    assert [pod.name for pod in steer.pods] == ["summarizer-abc-2"]
    assert steer.pods[0].uid
    assert scale.after == 2
    assert len(cast("tuple[Scale]", scenes.world(running.plain_stateful).act("engine", 1))) == 1
