"""Who may give, how far, and the reason of everybody who does not."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec
import pytest

from sevenhop.core.inventory.policy import Policy
from sevenhop.core.inventory.workloads import Framework
from sevenhop.core.objects import cluster as c
from sevenhop.core.objects.base import LabelSelector
from sevenhop.core.objects.pod import Pod
from sevenhop.core.remediation.action import ObjectRef, Scale
from sevenhop.core.remediation.plan import Need, NoPlanReason
from sevenhop.core.remediation.planning import Reservation, Reservations, plan_for
from sevenhop.core.remediation.reduction import Conflict
from tests import builders as b
from tests.unit.remediation.planning.planning_scene import CONFLICT, FLOOR, SCALING, World, names, playbook

NEEDY = (("prod", "needy"), "engine")
GIVER = (("prod", "giver"), "engine")


def _world(policy: Policy | None = None, **giver: Any) -> World:
    world = World(policy=policy)
    world.nodes(gpu_1=4)
    world.donor("giver", ["gpu-1", "gpu-1"], **giver)
    world.waits("needy")
    return world


def _budget(**spec: Any) -> c.PodDisruptionBudget:
    return c.PodDisruptionBudget(
        metadata=b.meta("giver-budget"), spec=c.PdbSpec(selector=LabelSelector(match_labels={"app": "giver"}), **spec)
    )


def _with_budget() -> World:
    world = _world()
    world.objects.append(_budget(min_available=2))
    return world


def _namespace_says_no() -> World:
    world = _world()
    annotations = {"sevenhop.dev/remediation": "off"}
    world.objects.append(c.Namespace(metadata=b.meta("prod", "", annotations=annotations)))
    return world


def _rolling() -> World:
    world = World()
    world.nodes(gpu_1=4)
    owner = world.donor("giver", ["gpu-1"], replicas=2)
    newer = b.replicaset(owner, "newer", number=2)
    world.objects += [newer, b.pod_of(newer, "1", node="gpu-1")]
    world.waits("needy")
    return world


def _of_a_framework_without_a_row() -> World:
    world = World()
    world.nodes(gpu_1=4)
    graph = b.dynamo("giver", decode=2, annotations={"sevenhop.dev/tier": "batch"})
    world.objects += [graph, *(b.dynamo_pod(graph, "decode", str(i), node="gpu-1") for i in range(2))]
    world.waits("needy")
    return world


def _of_one_gang() -> World:
    world = _world()
    for each in world.objects:
        if isinstance(each, Pod) and each.metadata.name.startswith("giver-"):
            each.metadata.labels["scheduling.x-k8s.io/pod-group"] = "all-of-it"
    return world


def _elsewhere() -> World:
    """The donor's pods are on nodes of another product, and one more lower workload keeps the question open."""
    world = World()
    world.nodes(gpu_1=4, gpu_2=2)
    world.objects.append(b.node("a100", gpus=4, product="NVIDIA-A100-SXM4-80GB"))
    world.donor("other", ["gpu-1", "gpu-1"], tier="critical")
    world.donor("last", ["gpu-2"])
    world.donor("giver", ["a100", "a100"])
    world.waits("needy", selector={"nvidia.com/gpu.product": b.H100})
    return world


REFUSED: dict[str, tuple[Callable[[], World], str, str]] = {
    "the table refuses": (lambda: _world(annotations={CONFLICT: "autoscaled"}), "autoscaled", "stands against it"),
    "no row for its framework": (_of_a_framework_without_a_row, "not-proven", "dynamo is not proven"),
    "its own floor": (lambda: _world(annotations={FLOOR: "2"}), "floor", "at its floor of 2"),
    "the policy's minimum": (lambda: _world(Policy(minimums=(("prod/giver", 2),))), "floor", "the policy states it"),
    "a disruption budget": (_with_budget, "floor", "PodDisruptionBudget giver-budget"),
    "fewer ready than its floor": (
        lambda: _world(unready=[0, 1]),
        "floor",
        "0 ready, fewer than its floor of 1",
    ),
    "its owner says no": (
        lambda: _world(annotations={"sevenhop.dev/remediation": "off"}),
        "opted-out",
        'sevenhop.dev/remediation: "off"',
    ),
    "its namespace says no": (_namespace_says_no, "opted-out", "Namespace prod"),
    "it has given already": (lambda: _world(annotations={"sevenhop.dev/borrowed": "{}"}), "borrowed", "given already"),
    "a rollout is under way": (_rolling, "rollout", "a rollout is under way"),
    "replicas are being made": (lambda: _world(replicas=3), "in-motion", "2 of the 3 replicas"),
    "its replicas start together": (_of_one_gang, "indivisible", "one gang (all-of-it)"),
    "the same tier": (lambda: _world(tier="critical"), "tier", "the same tier: critical"),
}


@pytest.mark.parametrize(("build", "reason", "words"), REFUSED.values(), ids=REFUSED.keys())
def test_who_gives_nothing_is_listed_with_the_reason(build: Callable[[], World], reason: str, words: str) -> None:
    """No plan, and the one candidate stands among those considered, in words."""
    answer = build().answer(NEEDY)
    assert answer.plan is None
    assert answer.reason is NoPlanReason.NO_DONOR
    (only,) = answer.considered
    assert only.who.startswith("prod/giver")
    assert only.reason == reason
    assert words in only.text


def test_without_any_of_these_it_gives() -> None:
    """The donor that the refusals start from would do."""
    assert _world().plan(NEEDY).title == "giver 2 → 1, frees 2 H100 on gpu-1"


def test_the_last_replica_goes_only_where_the_owner_states_a_minimum_of_zero() -> None:
    """Never to zero by default."""

    def last(policy: Policy | None) -> World:
        world = World(policy=policy)
        world.nodes(gpu_1=2)
        world.donor("giver", ["gpu-1"])
        world.waits("needy")
        return world

    assert last(None).refused(NEEDY) is NoPlanReason.NO_DONOR
    assert last(Policy(minimums=(("prod/giver", 0),))).plan(NEEDY).title == "giver 1 → 0, frees 2 H100 on gpu-1"


def test_pods_that_could_not_run_there_anyway_do_not_wait_for_these_nodes() -> None:
    """A holder of another product is nobody to take from, and is not asked to give."""
    answer = _elsewhere().answer(NEEDY)
    assert answer.plan is None
    assert [each.who for each in answer.considered if "giver" in each.who] == []


def test_two_plans_do_not_take_from_the_same_donor() -> None:
    """What an approved plan takes from is left alone, and the plan is named."""
    taken = Reservations((Reservation(plan="7f3a", slot=(("prod", "else"), "engine"), pods=(), donors=(GIVER,)),))
    answer = _world().answer(NEEDY, reserved=taken)
    assert answer.plan is None
    assert [(each.reason, each.text) for each in answer.considered] == [("borrowed", "plan 7f3a takes from it already")]


def test_the_smallest_disturbance_is_chosen() -> None:
    """Fewest replicas; then who does not serve; then the lowest tier; then the smallest part of a workload."""
    world = World()
    world.nodes(gpu_1=4, gpu_2=4, gpu_3=4, gpu_4=4)
    world.donor("small", ["gpu-1", "gpu-1"], gpus=2)
    world.donor("large", ["gpu-2", "gpu-2", "gpu-3"], gpus=2)
    world.donor("standard", ["gpu-3"] * 1 + ["gpu-4"] * 2, gpus=2, tier="standard")
    world.waits("needy")
    plan = world.plan(NEEDY)
    assert plan.title == "large 3 → 2, frees 2 H100 on gpu-2"
    why = {each.who: each.text for each in plan.considered}
    assert why["prod/small/engine"] == "not needed: a larger part of it would go (50%, instead of 33%)"
    assert why["prod/standard/engine"] == "not needed: it ranks higher than who was chosen"


def test_who_does_not_serve_goes_before_who_does() -> None:
    """A replica that is not ready disturbs no request."""
    world = World()
    world.nodes(gpu_1=4, gpu_2=6)
    world.donor("serves", ["gpu-1", "gpu-1"])
    world.donor("starts", ["gpu-2", "gpu-2", "gpu-2"], tier="standard", unready=[1])
    world.waits("needy")
    assert names(world.plan(NEEDY)) == ["starts-aaaa-1"]


def test_donors_are_combined_where_one_is_not_enough() -> None:
    """Two workloads each give one replica on the same node."""
    world = World()
    world.nodes(gpu_1=4, gpu_2=4)
    world.donor("first", ["gpu-1", "gpu-2"])
    world.donor("second", ["gpu-1", "gpu-2"])
    world.waits("needy", gpus=4)
    plan = world.plan(NEEDY)
    assert plan.title == "first 2 → 1 and second 2 → 1, frees 4 H100 on gpu-1"
    assert plan.nodes == ("gpu-1",)
    assert world.refused(NEEDY, using=playbook(most_replicas=1)) is NoPlanReason.TOO_MUCH
    assert world.refused(NEEDY, using=playbook(most_gpus=3)) is NoPlanReason.TOO_MUCH


def test_where_not_all_can_be_helped_the_plan_says_how_many() -> None:
    """Fewer pods, as many as go, with the numbers in words and in the goal."""
    world = World()
    world.nodes(gpu_1=4)
    world.donor("giver", ["gpu-1", "gpu-1"])
    world.waits("needy", pods=3)
    plan = world.plan(NEEDY)
    assert plan.need is not None
    assert (len(plan.need.pods), plan.need.gpus, plan.need.ready_goal) == (1, 2, 1)
    assert "helps 1 of 3 pods that wait: more cannot be freed safely" in plan.notes


def test_a_group_is_helped_as_a_whole_or_not_at_all() -> None:
    """Pods of one gang all fit, or nothing is offered for any of them."""
    world = World()
    world.nodes(gpu_1=4)
    world.donor("giver", ["gpu-1", "gpu-1"])
    world.waits("needy", pods=2)
    for each in world.objects:
        if each.metadata.name.startswith("needy-aaaa-"):
            each.metadata.labels["scheduling.k8s.io/group-name"] = "needy"
    assert world.refused(NEEDY) is NoPlanReason.NOT_ENOUGH


def _with_a_gang(*members: str) -> World:
    """Two pods wait; these are a gang, and the first, `needy-aaaa-0`, finds its node's label nowhere."""
    world = World()
    world.nodes(gpu_1=4)
    world.donor("giver", ["gpu-1", "gpu-1"])
    world.waits("needy", pods=2)
    waiting = {each.metadata.name: each for each in world.objects if each.metadata.name.startswith("needy-aaaa-")}
    for name in members:
        waiting[f"needy-aaaa-{name}"].metadata.labels["scheduling.k8s.io/group-name"] = "needy"
    first = waiting["needy-aaaa-0"]
    assert isinstance(first, Pod)
    first.spec.node_selector["disk"] = "nvme"
    words = "0/1 nodes are available: 1 node(s) didn't match Pod's node affinity/selector."
    conditions = [msgspec.structs.replace(said, message=words) for said in first.status.conditions]
    world.objects.remove(first)
    world.objects.append(
        msgspec.structs.replace(first, status=msgspec.structs.replace(first.status, conditions=conditions))
    )
    return world


def test_a_group_of_which_one_waits_for_something_else_is_not_helped() -> None:
    """GPUs for the rest of it would stand idle, for it starts as a whole; who is no part of it is helped."""
    answer = _with_a_gang("0", "1").answer(NEEDY)
    assert (answer.plan, answer.reason) == (None, NoPlanReason.NOT_A_SHORTAGE)
    assert "needy-aaaa-0 waits for something else (node-selector)" in answer.text
    plan = _with_a_gang("0").plan(NEEDY)
    assert plan.need is not None
    assert plan.need.pods == (("prod", "needy-aaaa-1"),)


def test_two_that_give_by_one_object_do_not_give_in_one_plan() -> None:
    """Groups of one RayCluster, or parts of one graph: it carries one mark, so the second would be refused halfway."""
    world = World()
    world.nodes(gpu_1=4)
    world.donor("one", ["gpu-1"], annotations={"test/floor": "0"})
    world.donor("two", ["gpu-1"], annotations={"test/floor": "0"})
    world.waits("needy", gpus=4)
    minimums = Policy(minimums=(("prod/one", 0), ("prod/two", 0)))
    world.policy = minimums
    assert len(world.plan(NEEDY).scales) == 2
    above = ObjectRef("RayCluster.ray.io", "prod", "ray", "uid-ray")
    plain = SCALING[Framework.PLAIN]

    def actions(*given: Any) -> Any:
        made = plain.actions(*given)
        assert not isinstance(made, Conflict)
        return tuple(msgspec.structs.replace(a, marked=above) if isinstance(a, Scale) else a for a in made)

    need = world.need(NEEDY)
    assert isinstance(need, Need)
    answer = plan_for(
        world.state,
        need,
        playbook=playbook(),
        incident="incident-1",
        scaling={Framework.PLAIN: msgspec.structs.replace(plain, actions=actions)},
        reserved=Reservations(),
        now=b.at(600),
    )
    assert answer.plan is None
    assert any("one at a time" in each.text for each in answer.considered)
