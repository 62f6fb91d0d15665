"""Slices, shared GPUs and products: only what the pod that waits can use counts, and the title says what comes free."""

from __future__ import annotations

import copy

import pytest

from sevenhop.core.objects.base import Object
from sevenhop.core.objects.cluster import Controller
from sevenhop.core.objects.pod import Container, Pod
from sevenhop.core.remediation.plan import NoPlanReason
from tests import builders as b
from tests.unit.remediation.planning.planning_scene import World, names, playbook

A100 = "NVIDIA-A100-SXM4-80GB"
LARGE, SMALL, SHARED = "nvidia.com/mig-3g.40gb", "nvidia.com/mig-1g.10gb", "nvidia.com/gpu.shared"
NEEDY = (("prod", "needy"), "engine")


def _ask(objects: list[Object], resource: str) -> None:
    """Whoever asks for whole GPUs asks for so many of these."""
    for obj in objects:
        spec = obj.spec if isinstance(obj, Pod) else obj.spec.template.spec if isinstance(obj, Controller) else None
        containers: list[Container] = list(spec.containers) if spec is not None else []
        for each in containers:
            for amounts in (each.resources.limits, each.resources.requests):
                if b.GPU in amounts:
                    amounts[resource] = amounts.pop(b.GPU)


def _world(resource: str, held: str) -> World:
    """A node with two of each, of which a donor and somebody as critical have two each."""
    world = World()
    machine = b.node("gpu-1", gpus=2, resource=resource)
    for amounts in (machine.status.allocatable, machine.status.capacity):
        amounts[held] = 2
    world.donor("giver", ["gpu-1", "gpu-1"], gpus=1)
    _ask(world.objects, held)
    if held != resource:
        world.donor("equal", ["gpu-1", "gpu-1"], gpus=1, tier="critical")
    world.waits("needy", gpus=1, words=f"0/1 nodes are available: 1 Insufficient {resource}.")
    _ask(world.objects, resource)
    world.objects.append(machine)
    return world


@pytest.mark.parametrize(
    ("resource", "words"),
    [(LARGE, "frees 1 H100 MIG 3g.40gb on gpu-1"), (SHARED, "frees 1 H100")],
    ids=["a slice", "a share"],
)
def test_who_holds_the_same_may_give(resource: str, words: str) -> None:
    """A slice, or a share in time, that one pod leaves is there for the next."""
    plan = _world(resource, resource).plan(NEEDY)
    assert names(plan) == ["giver-aaaa-0"]
    assert words in plan.title


@pytest.mark.parametrize(
    ("resource", "held"),
    [(LARGE, SMALL), (SMALL, LARGE), (LARGE, b.GPU), (b.GPU, LARGE), (SHARED, b.GPU)],
    ids=["a smaller slice", "a larger slice", "a whole GPU", "a slice for a whole GPU", "a whole GPU for a share"],
)
def test_another_kind_of_gpu_does_not_help(resource: str, held: str) -> None:
    """No slice becomes another, and nobody repartitions a GPU while a plan runs."""
    assert _world(resource, held).refused(NEEDY) in (NoPlanReason.NOT_ENOUGH, NoPlanReason.NO_DONOR)


def test_the_title_counts_each_product_by_itself() -> None:
    """Of a StatefulSet the highest goes first, though it holds another product: that frees two H100, and not four."""
    world = World()
    world.nodes(gpu_1=2)
    world.objects.append(b.node("a100", gpus=4, product=A100))
    world.donor("giver", ["a100", "gpu-1", "a100"], chooser="highest")
    slot = world.waits("needy", selector={"nvidia.com/gpu.product": b.H100})
    plan = world.plan(slot, using=playbook(most_replicas=3))
    assert plan.title == "giver 3 → 1, frees 2 H100 and 2 A100 on a100, gpu-1"
    assert plan.gpus == 4  # what is taken counts against the limits, whatever it is


def test_a_donor_of_another_namespace_is_named_with_it() -> None:
    """Two namespaces may hold a workload of one name: people must see which of them gives."""
    world = World()
    world.nodes(gpu_1=4, gpu_2=4)
    world.donor("giver", ["gpu-1", "gpu-1"])
    for obj in list(world.objects[2:]):
        twin = copy.deepcopy(obj)
        twin.metadata.namespace, twin.metadata.uid = "other", f"other-{twin.metadata.uid}"
        for owner in twin.metadata.owner_references:
            owner.uid = f"other-{owner.uid}"
        if isinstance(twin, Pod):
            twin.spec.node_name = "gpu-2"
        world.objects.append(twin)
    slot = world.waits("needy", selector={"kubernetes.io/hostname": "gpu-2"})
    assert world.plan(slot).title == "other/giver 2 → 1, frees 2 H100 on gpu-2"
