"""Plans in words, as a person reads them before saying yes."""

from __future__ import annotations

import pytest

from sevenhop.core.remediation.planning import plan_lines
from sevenhop.core.remediation.planning.words import short_product
from tests import builders as b
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
