"""From observations to facts: what becomes known, what becomes unknown, and when to look again."""

from __future__ import annotations

import pytest

from sevenhop.core.events import Deleted, SyncState, Unreadable
from sevenhop.core.facts.schema import Unknown, UnknownReason
from sevenhop.core.inventory.policy import Policy
from sevenhop.core.inventory.workloads import Tier
from sevenhop.core.objects.base import Condition, LabelSelector
from sevenhop.core.objects.cluster import (
    HorizontalPodAutoscaler,
    HpaSpec,
    HpaStatus,
    PdbSpec,
    PodDisruptionBudget,
    PriorityClass,
    QuotaAmounts,
    ResourceQuota,
    ScaleTarget,
)
from sevenhop.core.subject import Subject
from tests.builders import (
    GPU,
    H100,
    at,
    deployment,
    dynamo,
    dynamo_pod,
    endpoint_slice,
    kube_event,
    meta,
    node,
    pod,
    pod_of,
    replicaset,
    service,
)
from tests.unit.inventory.scenes import SHORT, Scene

DECODE = "component:prod/llama-70b/decode"
ENGINE = "component:prod/summarizer/engine"
POOL = f"pool:{H100}"
LLAMA = dynamo("llama-70b", decode=3, annotations={"sevenhop.dev/tier": "critical", "sevenhop.dev/owner": "@serving"})
SUMMARIZER = deployment("summarizer", replicas=2, gpus=2, annotations={"sevenhop.dev/tier": "batch"})
REPLICAS = replicaset(SUMMARIZER)


def story() -> Scene:
    """Two nodes of four H100s each, full; one decode worker waits."""
    scene = Scene(node("gpu-0", gpus=4), node("gpu-1", gpus=4), LLAMA, SUMMARIZER, REPLICAS)
    scene.put(*(dynamo_pod(LLAMA, "decode", str(n), node=f"gpu-{n}") for n in (0, 1)))
    scene.put(*(pod_of(REPLICAS, str(n), node=f"gpu-{n}") for n in (0, 1)))
    scene.put(dynamo_pod(LLAMA, "decode", "2", unschedulable=SHORT, since=at(3)))
    return scene


def test_the_story() -> None:
    """
    One decode worker waits for GPUs that a batch model could give.
    """
    scene = story()

    assert scene.fact(DECODE, "ready") == 2
    assert scene.fact(DECODE, "waiting") == 1
    assert scene.fact(DECODE, "waiting.cause") == "gpu-shortage"
    assert scene.fact(DECODE, "waiting.since") == at(3)
    assert scene.fact(DECODE, "waiting.gpus") == 2
    assert scene.fact(DECODE, "tier") == "critical"
    assert scene.fact(DECODE, "owner") == "@serving"
    assert scene.fact(DECODE, "product") == H100
    assert scene.fact(POOL, "waiting_gpus") == 2
    assert scene.fact(POOL, "waiting_tier") == "critical"
    assert scene.fact(POOL, "reclaimable") == 2


def test_only_what_changed_is_told() -> None:
    """
    A status that changes no fact tells nobody anything.
    """
    scene = story()
    again = pod_of(REPLICAS, "0", node="gpu-0")
    again.status.conditions = (*again.status.conditions, Condition(type="Initialized", status="True"))

    told = scene.put(again)

    assert told.changed == {}
    assert told.gone == set()


def test_a_pod_of_another_name_changes_nothing_for_its_component() -> None:
    """
    The controller re-created the waiting pod: the same wait, since the same moment.
    """
    scene = story()
    scene.delete(dynamo_pod(LLAMA, "decode", "2"))

    scene.put(dynamo_pod(LLAMA, "decode", "9", unschedulable=SHORT, since=at(20)), seconds=20)

    assert scene.fact(DECODE, "waiting") == 1
    assert scene.fact(DECODE, "waiting.since") == at(3)
    assert not scene.knows("pod:prod/llama-70b-decode-2")


def test_deletion_of_an_earlier_incarnation_is_ignored() -> None:
    """
    The new pod has the old one's name and another uid.
    """
    scene = story()
    scene.tell(
        [Deleted(at=at(9), epoch=1, seq=10**6, kind="Pod", namespace="prod", name="summarizer-aaaa-0", uid="old")]
    )

    assert scene.fact(ENGINE, "ready") == 2


@pytest.mark.parametrize(
    ("state", "reason"),
    [
        pytest.param(SyncState.NOT_SYNCED, UnknownReason.NOT_SYNCED, id="not listed yet"),
        pytest.param(SyncState.STALE, UnknownReason.STALE, id="silent for too long"),
        pytest.param(SyncState.FORBIDDEN, UnknownReason.FORBIDDEN, id="refused"),
    ],
)
def test_what_cannot_be_seen_is_unknown(state: SyncState, reason: UnknownReason) -> None:
    """
    Facts from pods are unknown, with the reason; what the root says stays known; and all of it comes back.
    """
    scene = story()

    scene.source("Pod", state=state)

    assert scene.fact(DECODE, "ready") == Unknown(reason, "Pod")
    assert scene.fact(DECODE, "desired") == 3
    assert scene.fact(POOL, "free") == Unknown(reason, "Pod")
    assert scene.fact("pod:prod/summarizer-aaaa-0", "ready") == Unknown(reason, "Pod")
    scene.source("Pod", state=SyncState.SYNCED)
    assert scene.fact(DECODE, "ready") == 2


def test_a_root_that_cannot_be_seen_hides_what_it_states() -> None:
    """
    Its pods still say what they are.
    """
    scene = story()

    scene.source("DynamoGraphDeployment.nvidia.com", state=SyncState.FORBIDDEN)

    assert scene.fact(DECODE, "desired") == Unknown(UnknownReason.FORBIDDEN, "DynamoGraphDeployment.nvidia.com")
    assert scene.fact(DECODE, "ready") == 2
    assert scene.fact(ENGINE, "desired") == 2


def test_a_kind_that_is_not_served_is_known() -> None:
    """
    There are no autoscalers where the API server has no such kind.
    """
    scene = story()

    scene.source("HorizontalPodAutoscaler.autoscaling", state=SyncState.ABSENT)

    assert scene.fact(DECODE, "scaler_maxed") is False


def test_an_object_that_cannot_be_read_makes_its_own_facts_unknown() -> None:
    """
    The pod's facts and its component's are unknown, others are not, and the source counts it until it can be read.
    """
    scene = story()
    scene.tell(
        [Unreadable(at=at(9), epoch=1, seq=10**6, kind="Pod", namespace="prod", name="summarizer-aaaa-0", error="?")]
    )

    assert scene.fact("pod:prod/summarizer-aaaa-0", "ready") == Unknown(
        UnknownReason.UNREADABLE, "Pod summarizer-aaaa-0"
    )
    assert isinstance(scene.fact(ENGINE, "ready"), Unknown)
    assert scene.fact(DECODE, "ready") == 2
    assert scene.fact("source:Pod", "unreadable") == 1
    scene.feed.epoch = 2
    scene.put(pod_of(REPLICAS, "0", node="gpu-0"))
    assert scene.fact(ENGINE, "ready") == 2
    assert scene.fact("source:Pod", "unreadable") == 0


def test_what_the_store_remembers_and_nobody_finds_is_gone() -> None:
    """
    Only once everything was listed: before that it may still come.
    """
    scene = Scene(synced=False)
    scene.inventory.expect([Subject.parse("component:prod/old/decode")])

    assert scene.wait(1).gone == set()
    assert scene.tell(scene.feed.synced()).gone == {Subject.parse("component:prod/old/decode")}
    assert scene.wait(3).gone == set()


def test_verdicts_are_computed_at_most_every_100_ms() -> None:
    """
    The second change waits, and the inventory says until when.
    """
    scene = story()
    scene.wait(10)
    scene.put(node("gpu-2", gpus=8), seconds=10)
    scene.put(node("gpu-3", gpus=8), seconds=10.05)
    scene.delete(node("gpu-2", gpus=8), node("gpu-3", gpus=8), seconds=10.06)

    assert scene.inventory.next_wake == at(10.1)
    assert isinstance(scene.fact(DECODE, "waiting.cause"), Unknown)
    scene.wait(10.1)
    assert scene.fact(DECODE, "waiting.cause") == "gpu-shortage"


def test_a_disagreement_with_the_scheduler_is_unknown() -> None:
    """
    A node came that would take the pod; the scheduler's last word is that none does.
    """
    scene = story()

    scene.put(node("gpu-2", gpus=8))

    cause = scene.fact(DECODE, "waiting.cause")
    assert isinstance(cause, Unknown)
    assert cause.reason is UnknownReason.DISAGREE
    assert scene.fact(DECODE, "waiting") == 1
    assert scene.fact("pod:prod/llama-70b-decode-2", "pending.agrees") is False
    assert scene.fact(POOL, "waiting_gpus") == 0


def test_a_rollout_that_waits_for_itself_takes_nobody_elses_gpus() -> None:
    """
    Its surge pod is told as that, and is no queue for the pool.
    """
    app = deployment("solo", replicas=1, gpus=8, generation=2, total=2, updated=1)
    old, new = replicaset(app, "old"), replicaset(app, "new", number=2)
    scene = Scene(node("gpu-0", gpus=8), app, old, new, pod_of(old, "0", node="gpu-0"))

    scene.put(pod_of(new, "0", unschedulable="0/1 nodes are available: 1 Insufficient nvidia.com/gpu."))

    assert scene.fact("component:prod/solo/engine", "surge_blocked") is True
    assert scene.fact("component:prod/solo/engine", "rolling") is True
    assert scene.fact("component:prod/solo/engine", "waiting.cause") == "rollout-surge"
    assert scene.fact(POOL, "waiting_gpus") == 0


@pytest.mark.parametrize(
    ("budget", "policy", "expected"),
    [
        pytest.param(None, Policy(), 1, id="one may be missing, never the last"),
        pytest.param(PdbSpec(min_available=2), Policy(), 2, id="minAvailable"),
        pytest.param(PdbSpec(max_unavailable="50%"), Policy(), 1, id="maxUnavailable as a share"),
        pytest.param(PdbSpec(min_available=1), Policy(minimums=(("prod/summ*", 2),)), 2, id="policy first"),
    ],
)
def test_the_floor(budget: PdbSpec | None, policy: Policy, expected: int) -> None:
    """
    Policy, else a PodDisruptionBudget, else desired minus one.
    """
    scene = Scene(SUMMARIZER, REPLICAS, pod_of(REPLICAS, "0", node="n"), policy=policy)
    if budget is not None:
        budget.selector = LabelSelector(match_labels={"app": "summarizer"})
        scene.put(PodDisruptionBudget(metadata=meta("floor"), spec=budget))

    assert scene.fact(ENGINE, "min") == expected


def test_an_autoscaler_at_its_maximum() -> None:
    """
    It says that it is limited by it, and is there.
    """
    limited = Condition(type="ScalingLimited", status="True", reason="TooManyReplicas")
    hpa = HorizontalPodAutoscaler(
        metadata=meta("hpa"),
        spec=HpaSpec(scale_target_ref=ScaleTarget(kind="Deployment", name="summarizer"), max_replicas=2),
        status=HpaStatus(desired_replicas=2, conditions=(limited,)),
    )
    scene = Scene(SUMMARIZER, REPLICAS, pod_of(REPLICAS, "0", node="n"))
    assert scene.fact(ENGINE, "scaler_maxed") is False

    scene.put(hpa)

    assert scene.fact(ENGINE, "scaler_maxed") is True


def test_the_tier_of_a_workload_that_states_none() -> None:
    """
    The value of its PriorityClass tells, whenever that becomes known.
    """
    app = deployment("app", priority_class="gold")
    rs = replicaset(app)
    scene = Scene(app, rs, pod_of(rs, "0", node="n", priority=2_000_000))

    scene.put(PriorityClass(metadata=meta("gold", ""), value=2_000_000))

    assert scene.fact("workload:prod/app", "tier") == Tier.CRITICAL
    assert scene.fact("component:prod/app/engine", "tier") == Tier.CRITICAL
    assert scene.fact("pod:prod/app-aaaa-0", "tier") == Tier.CRITICAL


def test_an_ignored_namespace_counts_in_the_ledger_only() -> None:
    """
    Its pods hold GPUs, and are no workload.
    """
    lab = deployment("toy", "lab", gpus=2)
    rs = replicaset(lab)

    scene = Scene(node("n", gpus=4), lab, rs, pod_of(rs, "0", node="n"), policy=Policy(ignored_namespaces=("lab",)))

    assert scene.fact(POOL, "free") == 2
    assert not scene.knows("workload:lab/toy")


def test_restarts_leave_their_window_by_time_alone() -> None:
    """
    The inventory says when to look again, and the fact has changed then.
    """
    scene = Scene(SUMMARIZER, REPLICAS, pod_of(REPLICAS, "0", node="n"))
    scene.put(pod_of(REPLICAS, "0", node="n", restarts=3, last_end=at(5)), seconds=6)
    assert scene.fact(ENGINE, "restarts_10m") == 3

    told = scene.wait(605)

    assert Subject.parse(ENGINE) in told.changed
    assert scene.fact(ENGINE, "restarts_10m") == 0


def test_a_pod_past_its_start_up_fails_by_time_alone() -> None:
    """
    Without probes a container may take ten seconds to be seen ready.
    """
    scene = Scene(SUMMARIZER, REPLICAS)
    scene.put(pod_of(REPLICAS, "0", node="n", ready=False, since=at(2)), seconds=3)
    assert scene.fact(ENGINE, "failing") == 0

    wake = scene.inventory.next_wake
    scene.wait(13)

    assert wake is not None
    assert wake <= at(13)
    assert scene.fact(ENGINE, "failing") == 1


def test_a_failure_and_its_event() -> None:
    """
    The Event that comes after the status tells the cause.
    """
    broken = pod_of(
        REPLICAS, "0", node="n", waiting="ImagePullBackOff", message='Back-off pulling image "x"', ready=False
    )
    scene = Scene(SUMMARIZER, REPLICAS, broken)
    assert str(scene.fact(ENGINE, "failure.class")).startswith("image-")

    scene.put(
        kube_event(
            broken,
            "Failed",
            'Failed to pull image "x": rpc error: code = NotFound desc = failed to resolve reference "x": not found',
            seen=at(5),
        )
    )

    assert scene.fact(ENGINE, "failure.cause") == "image-not-found"
    assert scene.fact(ENGINE, "failure.hop") == "pod"
    assert scene.fact(ENGINE, "failing_nodes") == 1


@pytest.mark.parametrize(
    ("reason", "text", "expected"),
    [
        pytest.param("TriggeredScaleUp", "pod triggered scale-up: [{ng 1->2 (max: 4)}]", "adding", id="adding"),
        pytest.param(
            "NotTriggerScaleUp", "pod didn't trigger scale-up: 1 max node group size reached", "maxed", id="maxed"
        ),
        pytest.param(
            "NotTriggerScaleUp",
            "pod didn't trigger scale-up: 1 in backoff after failed scale-up",
            "backoff",
            id="backoff",
        ),
    ],
)
def test_what_the_autoscaler_says(reason: str, text: str, expected: str) -> None:
    """
    `none` before any was ever heard; then its word about the pods that wait here; `idle` when these are gone.
    """
    scene = story()
    assert scene.fact(POOL, "autoscaler") == "none"

    waits = dynamo_pod(LLAMA, "decode", "2", unschedulable=SHORT, since=at(3))
    scene.put(kube_event(waits, reason, text, seen=at(20), component="cluster-autoscaler"), seconds=20)

    assert scene.fact(POOL, "autoscaler") == expected
    scene.delete(waits)
    scene.wait(200)
    assert scene.fact(POOL, "autoscaler") == "idle"


def test_a_service_and_its_endpoints() -> None:
    """
    It leads to the workload whose pods it selects; a pod in its EndpointSlice says so.
    """
    front = service("summarizer", selector={"app": "summarizer"})
    pods = [pod_of(REPLICAS, str(n), node="n") for n in (0, 1)]
    scene = Scene(SUMMARIZER, REPLICAS, *pods, front)
    assert scene.fact("service:prod/summarizer", "ready_endpoints") == 0

    scene.put(endpoint_slice(front, pods))

    assert scene.fact("service:prod/summarizer", "ready_endpoints") == 2
    assert scene.fact("service:prod/summarizer", "workload") == "summarizer"
    assert scene.fact("pod:prod/summarizer-aaaa-0", "in_endpoints") is True
    scene.put(endpoint_slice(front, pods[1:]))
    assert scene.fact("pod:prod/summarizer-aaaa-0", "in_endpoints") is False


def test_a_service_that_selects_nothing_stays_in_sight() -> None:
    """
    Its name leads to the workload that its selector misses.
    """
    scene = Scene(SUMMARIZER, REPLICAS, pod_of(REPLICAS, "0", node="n"))

    scene.put(service("summarizer", selector={"app": "sumarizer"}))

    assert scene.fact("service:prod/summarizer", "selected") == 0
    assert scene.fact("service:prod/summarizer", "expects_pods") is True


def test_a_service_of_no_workload_is_no_subject() -> None:
    """
    Databases and the like are nobody's inference.
    """
    scene = Scene(SUMMARIZER, REPLICAS, service("postgres", selector={"app": "postgres"}))

    assert not scene.knows("service:prod/postgres")


def test_a_node_that_advertises_less_than_it_did() -> None:
    """
    What it once showed is what it should show.
    """
    scene = Scene(node("gpu-0", gpus=8))

    scene.put(node("gpu-0", gpus=7))

    assert scene.fact("node:gpu-0", "gpu.expected") == 8
    assert scene.fact("node:gpu-0", "gpu.allocatable") == 7


def test_the_device_plugin_of_a_node() -> None:
    """
    Its pod's readiness tells; without such a pod, what the node advertises.
    """
    plugin = pod(
        "nvidia-device-plugin-x", "kube-system", node="gpu-0", args=[], image="nvcr.io/nvidia/k8s-device-plugin"
    )
    scene = Scene(node("gpu-0", gpus=8))
    assert scene.fact("node:gpu-0", "plugin_ready") is True

    plugin.status.conditions = (Condition(type="Ready", status="False"),)
    scene.put(plugin)
    assert scene.fact("node:gpu-0", "plugin_ready") is False
    scene.delete(plugin)
    scene.put(node("gpu-0", gpus=0, capacity=8))

    assert isinstance(scene.fact("node:gpu-0", "plugin_ready"), Unknown)


def test_a_device_plugin_that_is_gone_tells_nothing() -> None:
    """
    From the moment when its pod goes, though nothing else on the node changes, the node's own word counts.
    """
    scene = Scene(node("gpu-0", gpus=8), pod("nvidia-device-plugin-x", "kube-system", node="gpu-0", ready=False))
    assert scene.fact("node:gpu-0", "plugin_ready") is False

    scene.delete(pod("nvidia-device-plugin-x", "kube-system", node="gpu-0"))

    assert scene.fact("node:gpu-0", "plugin_ready") is True


def test_loads_that_fail_on_one_node_only() -> None:
    """
    The same release runs on another node.
    """
    crash = {"waiting": "CrashLoopBackOff", "restarts": 2, "last_end": at(1), "ready": False}
    scene = Scene(node("gpu-0", gpus=4), node("gpu-1", gpus=4), SUMMARIZER, REPLICAS)
    scene.put(pod_of(REPLICAS, "0", node="gpu-0", **crash))
    assert scene.fact("node:gpu-0", "loads_fail_only_here") is False

    scene.put(pod_of(REPLICAS, "1", node="gpu-1"))

    assert scene.fact("node:gpu-0", "loads_fail_only_here") is True
    assert scene.fact("node:gpu-1", "loads_fail_only_here") is False
    elsewhere = pod_of(REPLICAS, "2", node="gpu-1", **crash)
    scene.put(elsewhere)
    assert scene.fact("node:gpu-0", "loads_fail_only_here") is False
    scene.delete(elsewhere)
    assert scene.fact("node:gpu-0", "loads_fail_only_here") is True


def test_a_change_is_told_for_half_an_hour() -> None:
    """
    Then the fact falls back, by time alone.
    """
    scene = Scene(SUMMARIZER, REPLICAS, pod_of(REPLICAS, "0", node="n"))
    assert isinstance(scene.fact("workload:prod/summarizer", "changed_30m"), Unknown)

    scene.put(deployment("summarizer", replicas=3, gpus=2, generation=2), seconds=60)

    assert scene.fact("workload:prod/summarizer", "changed_30m") is True
    told = scene.inventory.context(Subject.parse("workload:prod/summarizer"), at(61))
    assert told is not None
    assert [(c.what, c.before, c.after) for c in told.changes] == [("replicas", "2", "3")]
    scene.wait(60 + 1800)
    assert scene.fact("workload:prod/summarizer", "changed_30m") is False


def test_a_workload_that_goes_takes_its_subjects_along() -> None:
    """
    Workload, component, pods and Service are gone; the pool stays with its nodes.
    """
    scene = story()
    front = service("summarizer", selector={"app": "summarizer"})
    scene.put(front)

    pods = [pod_of(REPLICAS, str(n)) for n in (0, 1)]
    gone = scene.delete(SUMMARIZER, REPLICAS, *pods).gone

    assert {str(s) for s in gone} == {
        "workload:prod/summarizer",
        ENGINE,
        "pod:prod/summarizer-aaaa-0",
        "pod:prod/summarizer-aaaa-1",
        "service:prod/summarizer",
    }
    assert scene.fact(POOL, "free") == 4


def test_pods_that_take_any_product_wait_for_one_pool() -> None:
    """
    Where siblings run decides; the shortage is told once.
    """
    app = deployment("app", replicas=2, gpus=4)
    rs = replicaset(app)
    scene = Scene(node("a", gpus=4), node("b", gpus=2, product="NVIDIA-L4"), node("c", gpus=2, product="NVIDIA-L4"))
    scene.put(
        app,
        rs,
        pod_of(rs, "0", node="a"),
        pod_of(rs, "1", unschedulable="0/3 nodes are available: 3 Insufficient nvidia.com/gpu."),
    )

    assert scene.fact("component:prod/app/engine", "product") == H100
    assert scene.fact(POOL, "waiting_gpus") == 4
    assert scene.fact("pool:NVIDIA-L4", "waiting_gpus") == 0


def test_a_gang_of_which_some_wait() -> None:
    """
    Pods that only work together, one placed and one not.
    """
    app = deployment("app", replicas=2, gpus=4, labels={"pod-group-name": "g"})
    rs = replicaset(app)
    scene = Scene(node("a", gpus=4), app, rs, pod_of(rs, "0", node="a"))
    assert scene.fact("workload:prod/app", "gang_incomplete") is False

    scene.put(pod_of(rs, "1", unschedulable="0/1 nodes are available: 1 Insufficient nvidia.com/gpu."))

    assert scene.fact("workload:prod/app", "gang_incomplete") is True


def test_resource_of_the_pool() -> None:
    """
    The context of a pool holds everyone in it, and words for who cannot give.
    """
    scene = story()
    told = scene.inventory.context(Subject.parse(POOL), at(60))

    assert told is not None
    assert told.pool is not None
    assert told.pool.resource == GPU
    assert [(h.workload, h.tier, h.gpus, h.reducible, h.reason) for h in told.pool.holdings] == [
        (("prod", "llama-70b"), "critical", 4, False, "decode: critical, the same tier as who waits"),
        (("prod", "summarizer"), "batch", 4, True, "could give 2"),
    ]
    assert [(w.workload, w.component, w.tier, w.gpus) for w in told.pool.waiting] == [
        (("prod", "llama-70b"), "decode", "critical", 2)
    ]


def test_nothing_to_compute_wants_no_call() -> None:
    """
    A verdict that stands is not computed again until something changes.
    """
    scene = story()
    scene.wait(100)

    wake = scene.inventory.next_wake

    assert wake is not None
    assert wake >= at(1_800)


def test_pods_that_may_not_be_created_wait_too() -> None:
    """
    A quota refuses the second replica: nothing exists that could be Pending, and still it waits.
    """
    app = deployment("app", replicas=2, gpus=2)
    rs = replicaset(app, created=1)
    quota = ResourceQuota(
        metadata=meta("gpus"),
        spec={"hard": {"requests.nvidia.com/gpu": "2"}},
        status=QuotaAmounts(hard={"requests.nvidia.com/gpu": "2"}, used={"requests.nvidia.com/gpu": "2"}),
    )
    rs.status.conditions = (
        Condition(type="ReplicaFailure", status="True", reason="FailedCreate", last_transition_time=at(4)),
    )

    scene = Scene(node("n", gpus=8), quota, app, rs, pod_of(rs, "0", node="n"))

    assert scene.fact("component:prod/app/engine", "waiting") == 1
    assert scene.fact("component:prod/app/engine", "waiting.cause") == "resource-quota"
    assert scene.fact("component:prod/app/engine", "waiting.category") == "quota"
    assert scene.fact("component:prod/app/engine", "waiting.since") == at(4)
    scene.put(replicaset(app), pod_of(rs, "1", node="n"))
    assert scene.fact("component:prod/app/engine", "waiting") == 0


def test_the_pool_of_a_component_follows_the_nodes() -> None:
    """
    Kinds are listed side by side: a node that comes later still tells what it is waited for.
    """
    app = deployment("app", gpus=4)
    scene = Scene(app, replicaset(app))
    assert scene.fact("component:prod/app/engine", "product") == GPU

    scene.put(node("a", gpus=4))

    assert scene.fact("component:prod/app/engine", "product") == H100


def test_one_component_may_tell_the_tier_of_all() -> None:
    """
    The highest priority among a workload's pods holds for the whole workload.
    """
    graph = dynamo("both", decode=1, prefill=1)
    scene = Scene(graph, dynamo_pod(graph, "decode", "0", node="n"))
    assert scene.fact("component:prod/both/decode", "tier") == Tier.STANDARD

    scene.put(dynamo_pod(graph, "prefill", "0", node="n", priority=2_000_000))

    assert scene.fact("component:prod/both/decode", "tier") == Tier.CRITICAL
    assert scene.fact("pod:prod/both-decode-0", "tier") == Tier.CRITICAL


def test_until_owners_are_listed_pods_may_belong_elsewhere() -> None:
    """
    A ReplicaSet that is not listed yet may be a Deployment's; one that is merely stale tells as before.
    """
    scene = story()

    scene.source("ReplicaSet.apps", state=SyncState.NOT_SYNCED)
    assert scene.fact(ENGINE, "ready") == Unknown(UnknownReason.NOT_SYNCED, "ReplicaSet.apps")

    scene.source("ReplicaSet.apps", state=SyncState.STALE)
    assert scene.fact(ENGINE, "ready") == 2
