"""When nothing is offered, whatever could be given."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from msgspec.structs import replace

from sevenhop.core.events import SyncState
from sevenhop.core.hops.diagnosis import Confidence
from sevenhop.core.inventory.policy import Policy
from sevenhop.core.inventory.workloads import Tier
from sevenhop.core.objects import cluster as c
from sevenhop.core.objects.base import Object
from sevenhop.core.objects.pod import Pod
from sevenhop.core.remediation.plan import Answer, NoPlanReason
from sevenhop.core.remediation.planning import Reservations, plan_for
from sevenhop.core.remediation.planning.need import not_helped
from sevenhop.core.remediation.playbook import Mode
from tests import builders as b
from tests.unit.inventory.scenes import SHORT
from tests.unit.remediation.planning.planning_scene import SCALING, World, playbook

NEEDY = (("prod", "needy"), "engine")


def _world(**needy: object) -> World:
    """Two full nodes of four GPUs, a donor of batch tier with one pod on each and two on the first."""
    world = World()
    world.nodes(gpu_1=4, gpu_2=4)
    world.donor("giver", ["gpu-1", "gpu-1", "gpu-2"])
    world.donor("other", ["gpu-2"], tier="critical")
    world.waits("needy", **needy)  # type: ignore[arg-type]
    return world


def _nobody() -> World:
    world = World()
    world.nodes(gpu_1=8)
    world.donor("giver", ["gpu-1"])
    world.waits("needy", pods=0, running=["gpu-1"])
    return world


def _too_big() -> World:
    return _world(gpus=6)


def _selector() -> World:
    words = "0/2 nodes are available: 2 node(s) didn't match Pod's node affinity/selector."
    return _world(selector={"zone": "nowhere"}, words=words)


def _preempts() -> World:
    return _world(priority=1000)


def _unsure() -> World:
    world = World()
    world.nodes(gpu_1=8)  # room enough, and yet the scheduler says that there is none
    world.donor("giver", ["gpu-1"])
    world.waits("needy")
    return world


def _surge() -> World:
    world = World()
    world.nodes(gpu_1=4)
    world.donor("giver", ["gpu-1"])
    owner = b.deployment("needy", gpus=2, updated=1, total=2, annotations={"sevenhop.dev/tier": "critical"})
    old, new = b.replicaset(owner, "old"), b.replicaset(owner, "new", number=2)
    world.objects += [owner, old, new, b.pod_of(old, "1", node="gpu-1"), b.pod_of(new, "2", unschedulable=SHORT)]
    return world


def _adding() -> World:
    world = _world()
    waiting = next(o for o in world.objects if o.metadata.name == "needy-aaaa-0")
    assert isinstance(waiting, Pod)
    text = "pod triggered scale-up: [{h100 1->2 (max: 4)}]"
    world.objects.append(
        b.kube_event(waiting, "TriggeredScaleUp", text, seen=b.at(580), component="cluster-autoscaler")
    )
    return world


def _no_tiers() -> World:
    world = World()
    world.nodes(gpu_1=4)
    world.donor("giver", ["gpu-1", "gpu-1"], tier="")
    world.waits("needy", tier="")
    return world


def _nobody_lower() -> World:
    world = World()
    world.nodes(gpu_1=4)
    world.donor("giver", ["gpu-1", "gpu-1"], tier="critical")
    world.waits("needy")
    return world


def _blind() -> World:
    world = _world()
    world.live.source("Node", state=SyncState.STALE)
    return world


def _no_events() -> World:
    world = _world()
    world.live.source("Event", state=SyncState.FORBIDDEN)
    return world


def _gone_bad() -> World:
    """One of three nodes fell silent a minute ago: a third of the pool."""
    world = _world()
    world.nodes(gpu_3=4)
    world.donor("third", ["gpu-3", "gpu-3"])
    silent = b.node("gpu-3", gpus=4, ready=False)
    silent.status.conditions[0].last_transition_time = b.at(540)
    silent.spec.taints = (c.Taint(key="node.kubernetes.io/not-ready", effect="NoSchedule"),)
    world.live.put(silent, seconds=590)
    return world


def _gpus_withdrawn() -> World:
    """One of two nodes advertises half of its GPUs since a minute: a quarter of the pool."""
    world = _world()
    world.live.put(b.node("gpu-1", gpus=2, capacity=4), seconds=540)
    return world


def _ending() -> World:
    """A neighbour is being deleted already, and its room is enough."""
    world = World()
    world.nodes(gpu_1=4, gpu_2=4)
    world.donor("giver", ["gpu-1", "gpu-2"])
    world.donor("other", ["gpu-2"], tier="critical")
    world.objects.append(b.pod("leaving", node="gpu-1", gpus=2, deleted=b.at(610)))
    world.waits("needy")
    return world


REFUSED: dict[str, tuple[Callable[[], World], NoPlanReason, str]] = {
    "nobody waits": (_nobody, NoPlanReason.NOBODY_WAITS, "no pod of prod/needy/engine waits"),
    "never fits": (_too_big, NoPlanReason.NOT_A_SHORTAGE, "gpu-never-fits"),
    "waits for a node selector": (_selector, NoPlanReason.NOT_A_SHORTAGE, "node-selector"),
    "the scheduler preempts": (_preempts, NoPlanReason.PREEMPTION_HELPS, "helps itself"),
    "we and the scheduler disagree": (_unsure, NoPlanReason.DISAGREE, "disagree"),
    "its own rollout holds it": (_surge, NoPlanReason.NOT_A_SHORTAGE, "maxSurge: 0"),
    "an autoscaler adds nodes": (_adding, NoPlanReason.AUTOSCALER_ADDING, "node is being added"),
    "no tiers anywhere": (_no_tiers, NoPlanReason.NO_TIERS, "1 workload holds H100, none ranks lower; set sevenhop"),
    "nobody ranks lower": (_nobody_lower, NoPlanReason.NO_DONOR, "none ranks lower than prod/needy (critical)"),
    "nodes are stale": (_blind, NoPlanReason.UNKNOWN, "stale: Node"),
    "events are forbidden": (_no_events, NoPlanReason.UNKNOWN, "forbidden: Event"),
    "a node fell silent": (_gone_bad, NoPlanReason.POOL_TURNED_BAD, "33% of"),
    "GPUs were withdrawn": (_gpus_withdrawn, NoPlanReason.POOL_TURNED_BAD, "25% of"),
    "pods are ending anyway": (_ending, NoPlanReason.NOT_A_SHORTAGE, "leaving"),
}


@pytest.mark.parametrize(("build", "reason", "words"), REFUSED.values(), ids=REFUSED.keys())
def test_no_plan_and_the_reason(build: Callable[[], World], reason: NoPlanReason, words: str) -> None:
    """Each of these alone is enough for no plan, and its words name it."""
    answer = build().answer(NEEDY)
    assert (answer.plan, answer.reason) == (None, reason), answer.text
    assert words in answer.text


def test_without_any_of_these_there_is_a_plan() -> None:
    """The cluster that the refusals start from is one in which a plan is offered."""
    assert _world().plan(NEEDY).title == "giver 3 → 2, frees 2 H100 on gpu-1"


def test_a_playbook_that_is_off_plans_nothing() -> None:
    """Nobody is asked, and nothing is recorded."""
    assert _world().refused(NEEDY, using=playbook(mode=Mode.OFF)) is NoPlanReason.OFF


def test_what_went_bad_long_ago_is_no_sudden_loss() -> None:
    """A node that has been silent for an hour does not make the source suspect."""
    world = _world()
    world.nodes(gpu_3=4)
    silent = b.node("gpu-3", gpus=4, ready=False)
    silent.status.conditions[0].last_transition_time = b.at(-3600)
    silent.spec.taints = (c.Taint(key="node.kubernetes.io/not-ready", effect="NoSchedule"),)
    world.live.put(silent, seconds=590)
    assert world.answer(NEEDY).plan is not None


def test_a_pod_that_is_stuck_while_ending_does_not_count() -> None:
    """Its deadline and once more its grace are over: nobody knows when it leaves."""
    world = _ending()
    assert world.answer(NEEDY, seconds=6000).plan is not None


def _asked_again(world: World, *changed: Object) -> Answer:
    """The need of a moment ago, in a cluster that has moved on and whose facts have not been derived anew."""
    need = world.need(NEEDY)
    assert not isinstance(need, Answer)
    for event in world.live.feed.applied(*changed, seconds=601):
        world.live.inventory.apply(event)
    return plan_for(
        world.state,
        need,
        playbook=playbook(),
        incident="incident-1",
        scaling=SCALING,
        reserved=Reservations(),
        now=b.at(601),
    )


def test_what_fits_by_now_needs_no_plan() -> None:
    """The cluster is looked at as it is, not as it was when the pod was judged."""
    answer = _asked_again(_world(), b.node("gpu-1", gpus=8))
    assert answer.reason is NoPlanReason.NOBODY_WAITS
    assert "fits by now, on gpu-1" in answer.text


def test_who_can_be_preempted_by_now_needs_no_plan() -> None:
    """A neighbour of lower priority has come meanwhile: the scheduler helps itself."""
    world = _world()
    victim = next(o for o in world.objects if o.metadata.name == "giver-aaaa-0")
    assert isinstance(victim, Pod)
    assert world.plan(NEEDY).victims == (victim.key,)
    victim.spec.priority = -10
    answer = _asked_again(world, victim)
    assert answer.reason is NoPlanReason.PREEMPTION_HELPS
    assert "it preempts prod/giver-aaaa-0 on gpu-1" in answer.text


def test_a_shortage_that_is_only_likely_is_no_ground() -> None:
    """What was read from text alone, because nodes cannot be seen, is not computed."""
    world = _world()
    row = world.state.rows[("prod", "needy-aaaa-0")]
    assert not_helped([row]) is None
    assert row.pending is not None
    likely = replace(row, pending=replace(row.pending, confidence=Confidence.LIKELY))
    answer = not_helped([likely])
    assert answer is not None
    assert answer.reason is NoPlanReason.UNKNOWN
    assert "only likely" in answer.text


def test_one_plan_for_the_top_of_the_list() -> None:
    """Who waits behind somebody of a higher tier, or longer in the same tier, is told who comes first."""
    world = _world()
    world.waits("later", since=90)
    world.waits("lesser", tier="standard", since=10)
    pool = world.state.pool_of[NEEDY]
    need = world.need(pool)
    assert not isinstance(need, Answer)
    assert need.workload == ("prod", "needy")
    for name in ("later", "lesser"):
        answer = world.answer((("prod", name), "engine"))
        assert answer.reason is NoPlanReason.NOT_FIRST
        assert "prod/needy/engine (critical) comes first" in answer.text


def test_a_tier_may_come_from_the_policy_or_from_priority() -> None:
    """Nothing need be annotated where the settings, or PriorityClasses, say who is worth more."""
    policy = Policy(namespaces=(("prod", Tier.STANDARD), ("lab", Tier.BATCH)))
    world = World(policy=policy)
    world.nodes(gpu_1=4)
    owner = b.deployment("giver", "lab", replicas=2, gpus=2)
    replicaset = b.replicaset(owner)
    world.objects += [owner, replicaset, *(b.pod_of(replicaset, str(i), node="gpu-1") for i in range(2))]
    world.waits("needy", tier="")
    assert world.plan(NEEDY).title == "lab/giver 2 → 1, frees 2 H100 on gpu-1"


def test_all_that_is_asked_for_is_counted() -> None:
    """The need is the whole component: its waiting pods, their GPUs, and the replicas that mean success."""
    world = World()
    world.nodes(gpu_1=4, gpu_2=4)
    world.donor("giver", ["gpu-1", "gpu-2", "gpu-2"])
    world.waits("needy", pods=2, running=["gpu-1"])
    need = world.need("NVIDIA-H100-80GB-HBM3")
    assert not isinstance(need, Answer)
    assert (len(need.pods), need.gpus, need.tier, need.ready_goal) == (2, 4, "critical", 3)
