"""A plan holds for every set of victims that the controller may choose, and after the queue ahead was served."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from msgspec.structs import replace

from sevenhop.core.objects.base import LabelSelector
from sevenhop.core.objects.cluster import Controller
from sevenhop.core.objects.pod import Pod, TopologySpread
from sevenhop.core.remediation.action import Steer
from sevenhop.core.remediation.plan import NoPlanReason
from sevenhop.core.remediation.planning import Reservation, Reservations, plan_lines, reservation, reserve
from tests import builders as b
from tests.unit.inventory.scenes import SHORT
from tests.unit.remediation.planning.planning_scene import UNSTEERED, World, names, playbook

NEEDY = (("prod", "needy"), "engine")
A100 = "NVIDIA-A100-SXM4-80GB"


def _world(on: Sequence[str], *, chooser: str = "replica-set", unready: Sequence[int] = (), **more: object) -> World:
    """The need fits on gpu-1 and gpu-2 alone; two more nodes of another product are full as well."""
    world = World()
    world.nodes(gpu_1=4, gpu_2=4)
    world.objects += [b.node("a100-1", gpus=4, product=A100), b.node("a100-2", gpus=4, product=A100)]
    world.donor("giver", on, chooser=chooser, unready=unready, **more)  # type: ignore[arg-type]
    world.donor("rest", _rest(on), tier="critical")
    world.waits("needy", selector={"nvidia.com/gpu.product": b.H100})
    return world


def _rest(on: Sequence[str]) -> list[str]:
    return [name for name in ("gpu-1", "gpu-2", "a100-1", "a100-2") for _ in range(2 - on.count(name))]


def test_a_replica_set_is_steered_to_where_it_helps() -> None:
    """The one pod on the right node is told apart by its deletion cost, before the replicas are fewer."""
    plan = _world(["a100-1", "a100-2", "gpu-1"]).plan(NEEDY)
    assert names(plan) == ["giver-aaaa-2"]
    steer = plan.actions[0]
    assert isinstance(steer, Steer)
    assert [ref.name for ref in steer.pods] == ["giver-aaaa-2"]
    assert plan.helps_in == (1, 1)


def test_what_is_not_ready_goes_first_whatever_it_costs() -> None:
    """A pod that is not ready elsewhere goes too, so it takes two replicas, and is refused where one may go."""
    world = _world(["a100-1", "a100-2", "gpu-1"], unready=[0])
    assert names(world.plan(NEEDY)) == ["giver-aaaa-0", "giver-aaaa-2"]
    assert world.refused(NEEDY, using=playbook(most_replicas=1)) is NoPlanReason.TOO_MUCH


def test_somebody_elses_lower_cost_cannot_be_undercut() -> None:
    """A pod elsewhere that was annotated with the lowest cost of all would go instead."""
    world = _world(["a100-1", "a100-2", "gpu-1"], costs={0: "-2147483648"})
    assert world.refused(NEEDY, using=playbook(most_replicas=1)) is not None


def test_without_steering_it_must_help_whichever_goes() -> None:
    """Where the path cannot annotate costs, equals are chosen by their age at that moment: not ours to know."""
    free = _world(["a100-1", "gpu-2", "gpu-1"], annotations={UNSTEERED: ""})
    answer = free.answer(NEEDY, using=playbook(most_replicas=1))
    assert answer.reason is NoPlanReason.NOT_SAFE
    assert "2 of 3 choices" in next(each.text for each in answer.considered if "giver" in each.who)
    both = _world(["gpu-1", "gpu-2"], annotations={UNSTEERED: ""})
    assert both.plan(NEEDY).helps_in == (2, 2)


@pytest.mark.parametrize(
    ("on", "helps"), [(["a100-1", "a100-2", "gpu-1"], True), (["gpu-1", "a100-1", "a100-2"], False)]
)
def test_the_highest_ordinal_goes_and_cannot_be_steered(on: list[str], helps: bool) -> None:
    """It helps if the highest is where it is needed, and is not offered otherwise."""
    answer = _world(on, chooser="highest").answer(NEEDY, using=playbook(most_replicas=1))
    assert (answer.plan is not None) is helps
    if answer.plan is not None:
        assert names(answer.plan) == ["giver-aaaa-2"]


def test_the_highest_ordinals_go_together() -> None:
    """To reach the second highest the highest must go as well."""
    plan = _world(["a100-1", "gpu-1", "a100-2"], chooser="highest").plan(NEEDY)
    assert names(plan) == ["giver-aaaa-1", "giver-aaaa-2"]


def test_a_patch_that_names_the_pods_takes_any() -> None:
    """Nothing has to be steered."""
    plan = _world(["gpu-1", "a100-1", "a100-2"], chooser="named").plan(NEEDY)
    assert names(plan) == ["giver-aaaa-0"]
    assert not any(isinstance(action, Steer) for action in plan.actions)


def test_an_operator_that_chooses_by_itself_must_help_in_every_case() -> None:
    """Two of three choices are not enough, and the words say so; one of one product is."""
    answer = _world(["gpu-1", "gpu-2", "a100-1"], chooser="any").answer(NEEDY, using=playbook(most_replicas=1))
    assert answer.reason is NoPlanReason.NOT_SAFE
    assert "only in 2 of 3 choices" in answer.text
    plan = _world(["gpu-1", "gpu-2"], chooser="any").plan(NEEDY)
    assert plan.helps_in == (2, 2)
    assert plan.nodes == ("gpu-1", "gpu-2")
    assert any("whichever of 2 choices" in line for line in plan_lines(plan))


def test_enough_of_any_are_enough() -> None:
    """Of three pods two go: whichever they are, one of them is where it helps."""
    plan = _world(["gpu-1", "gpu-2", "a100-1"], chooser="any").plan(NEEDY)
    assert plan.scales[0].after == 1
    assert plan.helps_in == (3, 3)


# The queue


def _queue(since: float, **rival: object) -> World:
    """The room of one replica, and somebody else who waits for as much since `since`; the need since 60."""
    world = World()
    world.nodes(gpu_1=4)
    world.donor("giver", ["gpu-1", "gpu-1"])
    world.waits("needy")
    world.waits("rival", tier="standard", since=since, **rival)  # type: ignore[arg-type]
    return world


@pytest.mark.parametrize("since", [30, 60])
def test_who_waits_longer_takes_the_room(since: float) -> None:
    """Of equal priority the older is served first; equally old may be."""
    answer = _queue(since).answer(NEEDY)
    assert answer.reason is NoPlanReason.NOT_SAFE
    assert "1 other pod that waits may be served first" in answer.text


def test_of_equal_priority_the_younger_may_come_first_too() -> None:
    """Equals are tried in the order of their last attempts: no plan for one of them, and what would decide it."""
    answer = _queue(90).answer(NEEDY)
    assert answer.reason is NoPlanReason.NOT_SAFE
    assert "1 other pod that waits may be served first" in answer.text
    assert "prod/rival/engine of the same priority, which age does not decide" in answer.text
    assert "a higher one for prod/needy/engine would" in answer.text


def test_a_larger_plan_that_serves_an_equal_too_comes_before_one_that_may_not_help() -> None:
    """One replica would do if the younger came later; two do in any case."""
    world = World()
    world.nodes(gpu_1=4, gpu_2=4)
    world.donor("giver", ["gpu-1", "gpu-2"] * 2)
    world.waits("needy")
    world.waits("rival", tier="standard", since=90)
    plan = world.plan(NEEDY)
    assert (plan.scales[0].before, plan.scales[0].after) == (4, 2)
    assert plan.helps_first == (1, 1)


def test_of_a_lower_priority_comes_later() -> None:
    """That it waits too is said, for it may be tried first while the other is in back-off."""
    plan = _queue(30, priority=-1).plan(NEEDY)
    assert any("1 pod behind in the queue could use the room too: it helps in 1 of 2 cases" in n for n in plan.notes)
    assert plan.helps_first == (1, 2)


def test_in_how_many_cases_it_helps_is_counted() -> None:
    """Of three who wait behind one alone leaves enough: as the queue stands and with that one first it helps."""
    world = World()
    world.nodes(gpu_1=4, gpu_2=4)
    world.donor("giver", ["gpu-1", "gpu-2"], gpus=4)
    world.waits("needy", gpus=2)
    for name, gpus in (("small", 1), ("large", 3), ("whole", 4)):
        world.waits(name, tier="standard", since=90, gpus=gpus, priority=-1)
    plan = world.plan(NEEDY)
    assert plan.helps_first == (2, 5)  # nobody, small, large, whole, all of them


def test_alike_pods_behind_are_counted_each() -> None:
    """Ten equal pods behind are ten cases, and all of them at once is one more."""
    world = World()
    world.nodes(gpu_1=2, gpu_2=2)
    world.donor("giver", ["gpu-1", "gpu-2"])
    world.waits("needy")
    world.waits("rival", tier="standard", since=90, pods=10, priority=-1)
    assert world.plan(NEEDY).helps_first == (1, 12)


def test_one_who_comes_first_and_leaves_enough_is_no_warning() -> None:
    """Room for both is room whoever comes first: nothing is said, and the card is not longer for it."""
    world = World()
    world.nodes(gpu_1=4, gpu_2=4)
    world.donor("giver", ["gpu-1", "gpu-2"], gpus=4)
    world.waits("needy", gpus=2)
    world.waits("rival", tier="standard", since=90, gpus=2)
    plan = world.plan(NEEDY)
    assert plan.helps_first == (1, 1)
    assert not any("behind in the queue" in note for note in plan.notes)


def test_between_two_departures_somebody_smaller_may_come() -> None:
    """Two pods leave one after the other; a younger and smaller pod fits after the first already."""
    world = World()
    world.nodes(gpu_1=4)
    world.donor("giver", ["gpu-1"] * 2 + ["gpu-2"])
    world.nodes(gpu_2=2)
    world.waits("needy", gpus=4)
    assert world.plan(NEEDY).gpus == 4
    crowded = World()
    crowded.objects = list(world.objects)
    crowded.waits("rival", tier="standard", since=90)
    answer = crowded.answer(NEEDY)
    assert answer.reason is NoPlanReason.NOT_SAFE
    assert "1 other pod that waits may be served first" in answer.text


def test_of_equal_disturbances_one_is_taken_that_holds_whoever_comes_first() -> None:
    """A younger pod could only run on the first node, so the second is the better place."""
    world = World()
    world.objects += [b.node("gpu-1", gpus=4, labels={"zone": "a"}), b.node("gpu-2", gpus=4, labels={"zone": "b"})]
    world.donor("giver", ["gpu-1", "gpu-1", "gpu-2", "gpu-2"])
    world.waits("needy")
    words = (
        "0/2 nodes are available: 1 Insufficient nvidia.com/gpu, 1 node(s) didn't match Pod's node affinity/selector."
    )
    world.waits("rival", tier="standard", since=90, selector={"zone": "a"}, words=words)
    plan = world.plan(NEEDY)
    assert plan.nodes == ("gpu-2",)
    assert not any("behind in the queue" in note for note in plan.notes)


def test_higher_priority_takes_the_room_however_young() -> None:
    """Priority comes before age."""
    world = _queue(90, priority=10)
    for each in world.objects:
        if isinstance(each, Pod) and each.metadata.name.startswith(("giver", "rival")):
            each.spec.preemption_policy = "Never"
    assert world.refused(NEEDY) is NoPlanReason.NOT_SAFE


def test_a_plan_may_serve_both() -> None:
    """Where room for two can be made, who waits longer is served as well, and it is said."""
    world = World()
    world.nodes(gpu_1=6)
    world.donor("giver", ["gpu-1", "gpu-1", "gpu-1"])
    world.waits("needy")
    world.waits("rival", tier="standard", since=30)
    plan = world.plan(NEEDY)
    assert plan.scales[0].after == 1
    assert "1 other pod that waits may be served first; it fits all the same" in plan.notes


def test_who_could_not_run_there_does_not_count() -> None:
    """A pod ahead that waits for another product takes nothing here."""
    world = _queue(
        30, selector={"nvidia.com/gpu.product": A100}, words="0/1 nodes are available: 1 node(s) didn't match."
    )
    assert world.answer(NEEDY).plan is not None


@pytest.mark.parametrize("is_at_work", [True, False])
def test_another_scheduler_counts_where_it_is_at_work(is_at_work: bool) -> None:
    """Its pods may take room at any time; of one that placed nothing here nothing is to be feared."""
    world = _queue(90)
    if is_at_work:
        placed = b.pod("placed", node="gpu-1")
        placed.spec.scheduler_name = "volcano"
        world.objects.append(placed)
    for each in world.objects:
        if isinstance(each, Pod) and each.metadata.name.startswith("rival"):
            each.spec.scheduler_name = "volcano"
    assert (world.answer(NEEDY).plan is None) is is_at_work


@pytest.mark.parametrize("since", [0, 90])
def test_a_donors_own_waiting_pod_does_not_get_the_room_back(since: float) -> None:
    """A StatefulSet's lower ordinal waits: what its highest frees would be taken by it, however young it is."""
    world = World()
    world.nodes(gpu_1=4)
    owner = world.donor("giver", [], chooser="highest", replicas=3)
    replicaset = next(o for o in world.objects if o.metadata.name == "giver-aaaa")
    assert isinstance(replicaset, Controller)
    assert owner.spec.replicas == 3
    world.objects += [
        b.pod_of(replicaset, "0", unschedulable=SHORT, created=b.at(since)),
        b.pod_of(replicaset, "1", node="gpu-1"),
        b.pod_of(replicaset, "2", node="gpu-1"),
    ]
    world.waits("needy")
    assert world.refused(NEEDY, using=playbook(most_replicas=1)) is NoPlanReason.NOT_SAFE


def test_what_is_promised_to_another_plan_is_not_promised_twice() -> None:
    """The other plan's pod is served first, whatever its age, and its room counts in the ledger."""
    world = _queue(90)
    pod = ("prod", "rival-aaaa-0")
    held = Reservations(
        (Reservation(plan="7f3a", slot=(("prod", "rival"), "engine"), pods=(pod,), pool=b.H100, gpus=2),)
    )
    assert world.refused(NEEDY, reserved=held) is NoPlanReason.NOT_SAFE
    reserve(world.state, held)
    assert world.state.reserved == {b.H100: 2}


def test_what_leaves_for_another_plan_makes_its_room() -> None:
    """The other plan's victim is about to go, so whichever room its pod gets, there is one left."""
    world = World()
    world.nodes(gpu_1=4, gpu_2=4)
    world.donor("giver", ["gpu-1", "gpu-1"])
    world.donor("lent", ["gpu-2", "gpu-2"])
    world.waits("needy")
    world.waits("rival", tier="standard", since=90)
    slot, pod = (("prod", "rival"), "engine"), ("prod", "rival-aaaa-0")
    lent = (("prod", "lent"), "engine")
    victim = ("prod", "lent-aaaa-0")
    leaves = Reservation(plan="7f3a", slot=slot, pods=(pod,), donors=(lent,), victims=(victim,))
    assert world.plan(NEEDY, reserved=Reservations((leaves,))).nodes == ("gpu-1", "gpu-2")
    stays = Reservation(plan="7f3a", slot=slot, pods=(pod,), donors=(lent,))
    assert world.refused(NEEDY, reserved=Reservations((stays,))) is NoPlanReason.NOT_SAFE


def test_of_a_plan_whose_victims_are_not_known_none_is_counted_on() -> None:
    """Where the operator chooses, nobody knows whose place becomes free until it is."""
    world = _world(["gpu-1", "gpu-2"], chooser="any")
    held = reservation(world.state, world.plan(NEEDY))
    assert held is not None
    assert held.victims == ()


def test_a_plan_does_not_stand_in_its_own_way() -> None:
    """Asked again while it is approved, the same commitment comes out, and its own reservation is passed over."""
    world = _queue(30, priority=-1)
    plan = world.plan(NEEDY)
    own = reservation(world.state, plan)
    assert own is not None
    assert (own.gpus, own.donors) == (2, ((("prod", "giver"), "engine"),))
    assert world.plan(NEEDY, reserved=Reservations((own,))).hash == plan.hash


def test_what_people_were_asked_about_stands_while_it_holds() -> None:
    """A better choice of as many replicas does not take its place; one of fewer does."""
    world = World()
    world.nodes(gpu_1=4, gpu_2=4)
    world.donor("giver", ["gpu-1", "gpu-1", "gpu-2", "gpu-2"])
    world.waits("needy")
    first = world.plan(NEEDY)
    other = replace(first, victims=(("prod", "giver-aaaa-3"),))
    assert (first.nodes, world.plan(NEEDY, standing=other).nodes) == (("gpu-1",), ("gpu-2",))
    larger = replace(first, victims=(("prod", "giver-aaaa-2"), ("prod", "giver-aaaa-3")))
    assert world.plan(NEEDY, standing=larger) == first


def test_planning_leaves_everything_as_it_was_and_says_the_same_again() -> None:
    """The same state gives the same plan, whatever was asked of it before."""
    world = _world(["a100-1", "a100-2", "gpu-1"], unready=[0])
    for each in world.objects:
        if isinstance(each, Pod) and each.metadata.name.startswith("needy"):
            # More than room decides now: it is tried on the cluster itself.
            each.spec.topology_spread_constraints = (
                TopologySpread(topology_key="kubernetes.io/hostname", label_selector=LabelSelector()),
            )
    cluster = world.state.placement
    before = {view.name: (dict(view.free), set(view.residents)) for view in cluster.order}, set(cluster.pending)
    first = world.plan(NEEDY)
    after = {view.name: (dict(view.free), set(view.residents)) for view in cluster.order}, set(cluster.pending)
    assert before == after
    assert world.plan(NEEDY) == first
