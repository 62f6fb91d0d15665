"""The whole way with donors that are custom resources: what rules their replicas is edited, marked, and given back."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from sevenhop.core.effects import Act
from sevenhop.core.events import StepResult, Verb
from sevenhop.core.objects.base import Custom
from sevenhop.core.remediation.borrowed import BORROWED, encode_borrow
from sevenhop.core.remediation.permit import Purpose
from sevenhop.core.remediation.states import PlanState
from tests.builders import dynamo, dynamo_pod, meta, node, owner, pod
from tests.unit.remediation.desk.desk_scene import Scene

TIER = {"sevenhop.dev/tier": "batch"}


def ray_cluster() -> Custom:
    container = {"name": "ray", "image": "rayproject/ray-llm:2.46", "resources": {"limits": {"nvidia.com/gpu": "2"}}}
    worker = {
        "groupName": "gpu",
        "replicas": 2,
        "minReplicas": 0,
        "maxReplicas": 4,
        "template": {"spec": {"containers": [container]}},
    }
    head = {"template": {"spec": {"containers": [{"name": "head", "image": "rayproject/ray-llm:2.46"}]}}}
    return Custom(
        kind="RayCluster",
        api_version="ray.io/v1",
        metadata=meta("summarizer", annotations=TIER, generation=1),
        spec={"headGroupSpec": head, "workerGroupSpecs": [worker]},
        status={"state": "ready", "observedGeneration": 1},
    )


def ray_pod(of: Custom, suffix: str, **changes: Any) -> Any:
    labels = {
        "ray.io/cluster": "summarizer",
        "ray.io/node-type": "worker",
        "ray.io/group": "gpu",
        "ray.io/is-ray-node": "yes",
    }
    return pod(
        f"summarizer-gpu-{suffix}", labels=labels, gpus=2, image="rayproject/ray-llm:2.46",
        owners=(owner(of, "RayCluster.ray.io"),), **changes,
    )  # fmt: skip


class CustomScene(Scene):
    """The donor is a custom resource; its operator removes the pods that the plan names."""

    def __init__(self, donor: Custom, pods: list[Any]) -> None:
        super().__init__()
        self.custom = donor
        self.donor_pods = pods

    def begin(self) -> Scene:
        self.tell(self.feed.synced(), 0)
        placed = [dynamo_pod(self.llama, "decode", str(n), node=f"gpu-{n}") for n in (0, 1)]
        nodes = [node("gpu-0", gpus=4), node("gpu-1", gpus=4)]
        self.put(*nodes, self.llama, self.custom, *placed, *self.donor_pods, seconds=1)
        self.put(self.waiting, seconds=10)
        self.until(130)
        return self

    def _apply(self, act: Act) -> None:
        (scale,) = act.plan.scales
        assert act.borrow is not None
        self.applied.append(act.id)
        self.edit([(edit.pointer, edit.after) for edit in scale.edits], {**TIER, BORROWED: encode_borrow(act.borrow)})
        self.delete(*[pod for pod in self.pods("summarizer") if pod.metadata.key in act.plan.victims])

    def _give_back(self, act: Act) -> None:
        (scale,) = act.plan.scales
        self.edit([(edit.pointer, edit.before) for edit in scale.edits], TIER)

    def edit(self, values: list[tuple[str, Any]], annotations: dict[str, str]) -> None:
        plain = msgspec.to_builtins(self.custom)
        for pointer, value in values:
            *path, last = pointer.removeprefix("/").split("/")
            at_ = plain
            for step in path:
                at_ = at_[int(step)] if isinstance(at_, list) else at_.setdefault(step, {})
            if isinstance(at_, list):
                at_[int(last) : int(last) + 1] = [] if value is None else [value]
            elif value is None:
                at_.pop(last, None)
            else:
                at_[last] = value
        self.custom = msgspec.convert(plain, Custom)
        self.custom.metadata.annotations = annotations
        self.put(self.custom)


def dynamo_donor() -> CustomScene:
    donor = dynamo("summarizer", decode=2, annotations=TIER)
    return CustomScene(donor, [dynamo_pod(donor, "decode", str(n), node=f"gpu-{n}") for n in (0, 1)])


def ray_donor() -> CustomScene:
    donor = ray_cluster()
    return CustomScene(donor, [ray_pod(donor, str(n), node=f"gpu-{n}") for n in (0, 1)])


@pytest.mark.parametrize("make", [dynamo_donor, ray_donor])
def test_lent_and_given_back_by_a_custom_resource(make: Any) -> None:
    """Dry run, patch, goal, and restore all pass the guards, and the number is back in the end."""
    scene = make()
    before = msgspec.to_builtins(scene.custom)["spec"]
    scene.begin()
    assert scene.cases, [line.text for line in scene.sent[-1].message.lines]
    assert scene.decides(Verb.APPROVE).accepted
    assert scene.does(Purpose.DRY_RUN).result is StepResult.DONE
    assert scene.does(Purpose.APPLY).result is StepResult.DONE
    assert msgspec.to_builtins(scene.custom)["spec"] != before
    scene.place(scene.case().plan.nodes[0])
    scene.passes(60)
    assert scene.case().state is PlanState.SUCCEEDED, scene.case().why
    assert scene.decides(Verb.RESTORE).accepted
    assert scene.does(Purpose.RESTORE).result is StepResult.DONE
    assert scene.case().state is PlanState.RESTORED
    assert BORROWED not in scene.custom.metadata.annotations


@pytest.mark.parametrize("make", [dynamo_donor, ray_donor])
def test_undone_by_a_custom_resource(make: Any) -> None:
    """The goal is missed: the undo passes the guards too."""
    scene = make()
    scene.begin()
    scene.decides(Verb.APPROVE)
    scene.does(Purpose.DRY_RUN)
    scene.does(Purpose.APPLY)
    scene.passes(1000)
    assert scene.does(Purpose.UNDO).result is StepResult.DONE
    assert scene.case().state is PlanState.UNDONE
