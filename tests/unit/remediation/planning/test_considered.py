"""Every candidate that was not chosen is listed with its reason; and what a pod accepts decides who is one."""

from __future__ import annotations

from collections import Counter

import pytest

from sevenhop.core.facts.schema import Unknown, UnknownReason
from sevenhop.core.remediation.plan import NoPlanReason, Plan
from sevenhop.core.subject import Subject, SubjectKind
from tests import builders as b
from tests.unit.remediation.planning.generated_clusters import Made, made, world_of
from tests.unit.remediation.planning.planning_scene import World, playbook

NEEDY = (("prod", "needy"), "engine")
A100 = "NVIDIA-A100-SXM4-80GB"
LOOKED = (NoPlanReason.NO_DONOR, NoPlanReason.NOT_ENOUGH, NoPlanReason.NOT_SAFE, NoPlanReason.TOO_MUCH)
"""Answers that come only after everybody was looked at."""


def _holders(spec: Made) -> set[str]:
    """Workloads that hold GPUs on nodes that could take a pod of the need: its product, and large enough."""
    products = {product for _, product in spec.nodes.values()} if not spec.need.product else {spec.need.product}
    nodes = {n for n, (gpus, product) in spec.nodes.items() if product in products and gpus >= spec.need.gpus}
    return {f"prod/{donor.name}/engine" for donor in spec.donors if any(node in nodes for node, _ in donor.pods)}


def _chosen(plan: Plan | None) -> set[str]:
    return {f"{'/'.join(scale.workload)}/{scale.component}" for scale in plan.scales} if plan is not None else set()


def test_nobody_is_passed_over_in_silence() -> None:
    """On generated clusters each workload on GPUs that would do gives, or is named with a reason and words, once."""
    seen: Counter[str] = Counter()
    for seed in range(120):
        spec = made(seed)
        if spec is None:
            continue
        answer = world_of(spec).answer(NEEDY, using=playbook(3, 64))
        if answer.plan is None and answer.reason not in LOOKED:
            continue
        considered = answer.plan.considered if answer.plan is not None else answer.considered
        named = [each.who for each in considered]
        assert len(named) == len(set(named)), f"seed {seed}: {named}"
        assert all(each.reason and each.text for each in considered), f"seed {seed}"
        assert _holders(spec) - _chosen(answer.plan) <= set(named), f"seed {seed}: {answer}"
        assert not _chosen(answer.plan) & set(named), f"seed {seed}: chosen, and listed as not chosen"
        seen["plan" if answer.plan is not None else "none"] += 1
    assert min(seen["plan"], seen["none"]) >= 15, "the clusters say too little"


@pytest.mark.parametrize("accepts", [True, False])
def test_a_donor_of_another_product_gives_where_the_pod_accepts_it(accepts: bool) -> None:
    """A pod that asks for a GPU, and not for which, may run where only A100s can be freed."""
    world = World()
    world.nodes(gpu_1=2)
    world.objects.append(b.node("a100-1", gpus=4, product=A100))
    world.donor("other", ["gpu-1"], tier="critical")
    world.donor("giver", ["a100-1", "a100-1"])
    world.waits("needy", selector=None if accepts else {"nvidia.com/gpu.product": b.H100})
    answer = world.answer(NEEDY)
    assert (answer.plan is not None) is accepts, answer.text
    if answer.plan is not None:
        assert (answer.plan.nodes, answer.plan.scales[0].workload) == (("a100-1",), ("prod", "giver"))


def test_an_autoscaler_that_nobody_can_see_is_no_autoscaler_that_rests() -> None:
    """Whether nodes are being added is unknown: no plan, and the words say what cannot be seen."""
    world = World()
    world.nodes(gpu_1=4)
    world.donor("giver", ["gpu-1", "gpu-1"])
    world.waits("needy")
    assert world.plan(NEEDY)
    pool = Subject(SubjectKind.POOL, "", b.H100)
    facts = world.state.facts[pool]
    world.state.facts[pool] = {**facts, "pool.autoscaler": Unknown(UnknownReason.STALE, "Event")}
    answer = world.answer(NEEDY)
    assert (answer.plan, answer.reason) == (None, NoPlanReason.UNKNOWN)
    assert "autoscaler" in answer.text


def test_what_agents_say_of_a_pool_counts() -> None:
    """A fifth of the GPUs may go bad at once, and one more is too many: then the source is suspected."""
    world = World()
    world.nodes(gpu_1=4)
    world.donor("giver", ["gpu-1", "gpu-1"])
    world.waits("needy")
    pool = Subject(SubjectKind.POOL, "", b.H100)
    facts = world.state.facts[pool]
    world.state.facts[pool] = {**facts, "pool.bad_ratio_10m": 0.2}
    assert world.answer(NEEDY).plan is not None
    world.state.facts[pool] = {**facts, "pool.bad_ratio_10m": 0.21}
    assert world.answer(NEEDY).reason is NoPlanReason.POOL_TURNED_BAD
