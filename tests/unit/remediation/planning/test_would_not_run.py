"""GPUs for a pod that would not run with them are lost to both: then there is no plan, and it says what to mend."""

from __future__ import annotations

from typing import Any

import pytest

from sevenhop.core.hops.causes import CAUSES
from sevenhop.core.objects.pod import Pod
from sevenhop.core.remediation.plan import NoPlanReason
from sevenhop.core.remediation.planning.need import OF_THE_RELEASE
from tests import builders as b
from tests.unit.inventory.scenes import SHORT
from tests.unit.remediation.planning.planning_scene import World

NO_IMAGE: dict[str, Any] = {"waiting": "ImagePullBackOff", "message": 'Back-off pulling image "vllm": not found'}
DISK_FULL: dict[str, Any] = {
    "waiting": "ErrImagePull",
    "message": "failed to extract layer: write /var/lib/containerd/x: no space left on device",
}
LOADS: dict[str, Any] = {"ready": False}


def _world(*others: dict[str, Any], image: str = b.VLLM) -> tuple[World, tuple[tuple[str, str], str]]:
    """One pod waits; others of its component have a node, and stand there as given."""
    world = World()
    world.nodes(gpu_1=4, gpu_2=2 * max(1, len(others)))
    world.donor("giver", ["gpu-1", "gpu-1"])
    world.donor("full", ["gpu-2"] * max(0, 1 - len(others)), tier="critical")
    owner = b.deployment("needy", replicas=1 + len(others), gpus=2, annotations={"sevenhop.dev/tier": "critical"})
    replicaset = b.replicaset(owner)
    world.objects += [owner, replicaset]
    for number, state in enumerate(others):
        made = b.pod_of(replicaset, str(number), node="gpu-2", created=b.at(60), since=b.at(60), **state)
        world.objects.append(_with_image(made, image))
    world.objects.append(b.pod_of(replicaset, "9", unschedulable=SHORT, created=b.at(60), since=b.at(60)))
    return world, (("prod", "needy"), "engine")


def _with_image(pod: Pod, image: str) -> Pod:
    for container in pod.spec.containers:
        container.image = image
    for status in pod.status.container_statuses:
        status.image = image
    return pod


def test_a_release_that_does_not_start_gets_nothing() -> None:
    """Its other pod has GPUs and no image: one more would stand beside it, and the donor would have paid."""
    world, slot = _world(NO_IMAGE)
    answer = world.answer(slot)
    assert (answer.plan, answer.reason) == (None, NoPlanReason.NOT_A_SHORTAGE)
    assert "needy-aaaa-0 of the same release has its GPUs and does not start (image-not-found)" in answer.text
    assert "mend that first" in answer.text[:300], "messages show so much"


@pytest.mark.parametrize(
    ("others", "image"),
    [
        pytest.param([NO_IMAGE, {}], b.VLLM, id="another one of it is ready"),
        pytest.param([DISK_FULL], b.VLLM, id="the fault is the node's"),
        pytest.param([LOADS], b.VLLM, id="it loads"),
        pytest.param([NO_IMAGE], "vllm/vllm-openai:older", id="the fault is another release's"),
        pytest.param([], b.VLLM, id="nobody has tried"),
    ],
)
def test_what_may_run_gets_its_plan(others: list[dict[str, Any]], image: str) -> None:
    """Only the release's own fault, with nobody to show that it can run, is a reason to keep the GPUs."""
    world, slot = _world(*others, image=image)
    assert world.answer(slot).plan is not None, world.answer(slot).text


def test_only_known_causes_are_named() -> None:
    """Each is in the table of causes, and of the hops that a pod takes along: none of a device, a node or a network."""
    assert {CAUSES[cause].hop for cause in OF_THE_RELEASE} == {"pod", "model"}


@pytest.mark.parametrize(
    ("giver", "needy", "is_said"),
    [(1000, 0, True), (0, 0, False), (None, None, False), (0, 10, False)],
    ids=["higher", "equal", "none", "lower"],
)
def test_a_donor_that_outranks_whom_it_helps_is_told(giver: int | None, needy: int | None, is_said: bool) -> None:
    """Tiers and priorities may disagree: given back in a shortage, the scheduler would undo what the plan did."""
    world = World()
    world.nodes(gpu_1=4)
    world.donor("giver", ["gpu-1", "gpu-1"], priority=giver)
    slot = world.waits("needy", priority=needy)
    answer = world.answer(slot)
    if answer.plan is None:
        assert (needy, answer.reason) == (10, NoPlanReason.PREEMPTION_HELPS)
        return
    said = [note for note in answer.plan.notes if "may preempt" in note]
    assert bool(said) == is_said
    assert all("higher priority (1000)" in note for note in said)
