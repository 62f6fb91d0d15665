"""Plans in words, as a person reads them before saying yes."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from sevenhop.core.objects.pod import Pod
from sevenhop.core.remediation.action import Edit, ObjectRef
from sevenhop.core.remediation.cards import question_of
from sevenhop.core.remediation.case import Case, Stage
from sevenhop.core.remediation.plan import Plan
from sevenhop.core.remediation.planning import plan_lines
from sevenhop.core.remediation.planning.words import short_product
from sevenhop.core.remediation.states import PlanState
from tests import builders as b
from tests.guard_questions import NOW, plan, scale
from tests.unit.remediation.planning.planning_scene import World

NEEDY = (("prod", "needy"), "engine")


@pytest.mark.parametrize(
    ("pool", "short"),
    [
        (b.H100, "H100"),
        ("NVIDIA-A100-SXM4-80GB", "A100"),
        ("NVIDIA-A100-SXM4-40GB-MIG-1g.5gb", "A100 MIG 1g.5gb"),
        ("NVIDIA-GB200", "GB200"),
        ("NVIDIA-L40S", "L40S"),
        ("Tesla-T4", "T4"),
        ("NVIDIA-H100-80GB-HBM3/gpu.nvidia.com", "H100"),
        ("nvidia.com/gpu", "GPU"),
        ("", "GPU"),
    ],
)
def test_a_product_as_people_say_it(pool: str, short: str) -> None:
    """Memory and form factor are left out; what names no product is a GPU."""
    assert short_product(pool) == short


def test_a_plan_says_everything_that_is_agreed_to() -> None:
    """The change and its field, who goes, where it then fits, why nobody is preempted, the cost, what else was seen."""
    world = World()
    world.nodes(gpu_1=4, gpu_2=4)
    world.donor("summarizer", ["gpu-1", "gpu-1", "gpu-2"])
    world.donor("ranker", ["gpu-2"], tier="critical")
    world.waits("needy")
    assert plan_lines(world.plan(NEEDY)) == [
        "summarizer 3 → 2, frees 2 H100 on gpu-1",
        "through Deployment prod/summarizer: /spec/replicas 3 → 2",
        "goes: summarizer-aaaa-0 (steered by pod-deletion-cost)",
        "then 1 pod of needy/engine fits by simulation on gpu-1",
        "not preempted: nobody on the 2 nodes that eviction could help ranks lower: the lowest is 0, this pod has 0",
        "nobody ahead in the scheduler's queue could take the room",
        "1 pod of prod/summarizer/engine drains (up to 30 s, requests unknown); 2 replicas stay",
        "the next deployment sets it back",
        "lent for 2 h, then given back",
        "also looked at: prod/ranker/engine (the same tier: critical)",
    ]


ROOT = ObjectRef("RayService.ray.io", "batch", "ranker", "uid-root")
LIVE = ObjectRef("RayCluster.ray.io", "batch", "ranker-live", "uid-live")


def _ray(**more: Any) -> Plan:
    durable = Edit("/spec/rayClusterConfig/workerGroupSpecs/0/replicas", 3, 2)
    also = ((ROOT, (durable,), ()),)
    given: dict[str, Any] = {"target": LIVE, "edits": (Edit("/spec/replicas", 3, 2),), "also": also, "marked": ROOT}
    return plan(scale(3, 2, **(given | more)))


def test_every_object_that_is_changed_is_named() -> None:
    """Beside what is ruled also what makes the change last, each with its fields: a person agrees to all of them."""
    assert plan_lines(_ray())[1] == (
        "through RayCluster batch/ranker-live: /spec/replicas 3 → 2 and RayService batch/ranker: "
        "/spec/rayClusterConfig/workerGroupSpecs/0/replicas 3 → 2"
    )
    question = question_of(Case(plan=_ray(), state=PlanState.PROPOSED, since=NOW, stage=Stage.DECISION))
    assert question.endswith("Changes: RayCluster batch/ranker-live, RayService batch/ranker")


def test_where_only_the_mark_stands_is_named() -> None:
    """An object that gets nothing but our annotation is written to all the same."""
    only_marked = _ray(also=())
    assert plan_lines(only_marked)[1].endswith("3 → 2 and RayService batch/ranker: its mark")
    question = question_of(Case(plan=only_marked, state=PlanState.PROPOSED, since=NOW, stage=Stage.DECISION))
    assert "RayService batch/ranker" in question


def test_in_how_many_cases_it_helps_is_in_the_question() -> None:
    """Who says yes sees it in the dialog, not only in the notes; where it helps whoever comes first nothing is said."""
    case = Case(plan=plan(), state=PlanState.PROPOSED, since=NOW, stage=Stage.DECISION)
    assert "cases" not in question_of(case)
    warned = replace(case, plan=replace(case.plan, helps_first=(1, 2)))
    assert "helps in 1 of 2 cases of who is tried first" in question_of(warned)


@pytest.mark.parametrize(
    ("annotations", "said"),
    [
        ({"karpenter.sh/do-not-disrupt": "true"}, "giver-aaaa-0 says karpenter.sh/do-not-disrupt: true"),
        ({"cluster-autoscaler.kubernetes.io/safe-to-evict": "false"}, "safe-to-evict: false"),
        ({"cluster-autoscaler.kubernetes.io/safe-to-evict": "true"}, ""),
        ({}, ""),
    ],
    ids=["karpenter", "cluster autoscaler", "may be moved", "nothing"],
)
def test_an_owner_who_wants_a_pod_left_alone_is_heard(annotations: dict[str, str], said: str) -> None:
    """It speaks to autoscalers, so it is no refusal; who approves should know."""
    world = World()
    world.nodes(gpu_1=4)
    world.donor("giver", ["gpu-1", "gpu-1"])
    for obj in world.objects:
        if isinstance(obj, Pod):
            obj.metadata.annotations |= annotations
    notes = [note for note in world.plan(world.waits("needy")).notes if "does not want it moved" in note]
    assert [said in note for note in notes] == ([True] if said else [])
