"""Plans for generated clusters, compared with an exhaustive search over all victims and placements."""

from __future__ import annotations

from collections import Counter

import pytest

from sevenhop.core.remediation.plan import Plan
from tests.unit.remediation.planning.generated_clusters import (
    Made,
    cut_of,
    is_reachable,
    is_safe,
    keeps_floor,
    made,
    smallest_safe,
    world_of,
)
from tests.unit.remediation.planning.planning_scene import playbook

CLUSTERS = 400
MOST_REPLICAS = 3


def _clusters() -> list[tuple[int, Made]]:
    found: list[tuple[int, Made]] = []
    seed = 0
    while len(found) < CLUSTERS:
        spec = made(seed)
        if spec is not None:
            found.append((seed, spec))
        seed += 1
    return found


def _victims(spec: Made, plan: Plan) -> dict[int, list[int]]:
    """Of each donor, by place, the places of its pods that go."""
    pods = [(place, i) for place, donor in enumerate(spec.donors) for i in range(len(donor.pods))]
    names = {f"{spec.donors[place].name}-aaaa-{i}": (place, i) for place, i in pods}
    out: dict[int, list[int]] = {}
    for _, name in plan.victims:
        place, index = names[name]
        out.setdefault(place, []).append(index)
    return out


def test_plans_agree_with_an_exhaustive_search(capsys: pytest.CaptureFixture[str]) -> None:
    """Every plan is safe, in reach and the smallest; nearly all that could be offered are; none where none helps."""
    said: Counter[str] = Counter()
    missed: list[int] = []
    for seed, spec in _clusters():
        answer = world_of(spec).answer((("prod", "needy"), "engine"), using=playbook(MOST_REPLICAS, 64))
        best = {helped: smallest_safe(spec, MOST_REPLICAS, helped) for helped in range(1, spec.need.pods + 1)}
        possible = [helped for helped, replicas in best.items() if replicas is not None]
        plan = answer.plan
        if plan is None:
            said["missed" if possible else "rightly none"] += 1
            missed += [seed] if possible else []
            continue
        assert plan.need is not None
        helped = len(plan.need.pods)
        cuts = _victims(spec, plan)
        for place, indexes in cuts.items():
            assert is_reachable(spec.donors[place], indexes), f"seed {seed}: {plan.title} cannot be steered"
            assert keeps_floor(spec.donors[place], indexes), f"seed {seed}: {plan.title} goes below a floor"
        safe = is_safe(spec, [cut_of(spec, place, indexes) for place, indexes in cuts.items()], helped)
        assert safe, f"seed {seed}: {plan.title} does not help for every choice"
        said["offered"] += 1
        said["smallest"] += sum(scale.before - scale.after for scale in plan.scales) == best[helped]
        said["helps as many as can be"] += helped == max(possible)
    with capsys.disabled():
        print(f"\n{CLUSTERS} generated clusters: {dict(said)}; missed seeds {missed[:10]}")
    assert said["offered"] >= 100, "the clusters say too little"
    assert said["rightly none"] >= 50, "the clusters say too little"
    assert said["offered"] >= 0.95 * (said["offered"] + said["missed"])
    assert said["smallest"] >= 0.98 * said["offered"]
