"""Why a pod has no node, in words."""

from __future__ import annotations

from typing import Any

import pytest

from sevenhop.core.events import SyncState
from sevenhop.core.hops.diagnosis import Category, Confidence, Diagnosis
from sevenhop.core.hops.scheduling import why_pending
from sevenhop.core.placement.cluster import Cluster
from tests.placement_builders import GPU, add, custom, event, node, pod, the_pod, world

TAINT = [{"key": "dedicated", "value": "training", "effect": "NoSchedule"}]


def _why(*items: dict[str, Any], subject: str = "x") -> Diagnosis:
    objects = world(*items)
    return why_pending(Cluster(objects), the_pod(objects, subject))


def _full(name: str, free: int, of: int = 4) -> tuple[dict[str, Any], ...]:
    return (node(name, gpus=of), *((pod(f"on-{name}", on=name, gpus=of - free),) if free < of else ()))


def test_fragmentation_is_told_with_its_arithmetic() -> None:
    """The numbers that a person would add up by hand, and the nodes by name."""
    items = (*_full("g1", 1), *_full("g2", 1), *_full("g3", 1), *_full("g4", 0), node("c1"), node("c2"))
    found = _why(*items, pod("x", gpus=2))
    assert (found.category, found.cause, found.confidence) == (
        Category.RESOURCE,
        "gpu-fragmentation",
        Confidence.CERTAIN,
    )
    assert found.summary == (
        f"needs 2 × {GPU} on one node; of 6 nodes 2 carry none, 1 is full, 3 with 1 free (3 free in all): fragmentation"
    )
    assert found.evidence[0].source == "node/g1"
    assert found.evidence[0].text == f"3 of 4 {GPU} bound"
    assert found.would_help == (f"1 × {GPU} more free on g1 (the nearest of 4 nodes).",)
    assert found.excluded == ((f"insufficient {GPU}", 6),)


@pytest.mark.parametrize(
    ("items", "asked", "cause"),
    [
        pytest.param(_full("g1", 1), {"gpus": 2}, "gpu-shortage", id="too few in all"),
        pytest.param(_full("g1", 4), {"gpus": 5}, "gpu-never-fits", id="more than any node has"),
        pytest.param(
            (node("g1", gpus=0, capacity=4),), {"gpus": 1}, "device-plugin-not-advertising", id="none advertised"
        ),
        pytest.param(
            (node("g1", gpus=2, capacity=4), pod("a", on="g1", gpus=2)),
            {"gpus": 2},
            "gpus-unhealthy",
            id="fewer advertised",
        ),
        pytest.param(
            (node("g1", gpus=2, capacity=4), pod("a", on="g1", gpus=3)),
            {"gpus": 2},
            "gpu-shortage",
            id="fewer advertised, and the missing ones would not do",
        ),
        pytest.param(
            (*_full("g1", 0), node("g2", gpus=0, capacity=4, cpu="2")),
            {"gpus": 1, "cpu": "3"},
            "gpu-shortage",
            id="a silent node that would not do anyway",
        ),
        pytest.param(
            (*_full("g1", 1), node("g2", gpus=4, cordoned=True)),
            {"gpus": 2},
            "gpu-shortage",
            id="free ones behind a cordon",
        ),
        pytest.param((node("c1"),), {"gpus": 1}, "extended-resource-unknown", id="a name that nobody offers"),
        pytest.param(
            (node("g1", gpus=4, cordoned=True), node("c1")), {"gpus": 1}, "cordoned", id="the GPUs are behind a cordon"
        ),
        pytest.param(
            (node("g1", gpus=4, taints=TAINT), node("c1")), {"gpus": 1}, "untolerated-taint", id="behind a taint"
        ),
        pytest.param(
            (node("g1", gpus=4, cpu="2"), node("c1")),
            {"gpus": 1, "cpu": "3"},
            "cpu-shortage",
            id="cpu beside free GPUs",
        ),
        pytest.param(
            (*_full("g1", 0), node("g2", gpus=4, cpu="2")),
            {"gpus": 1, "cpu": "3"},
            "resource-combination",
            id="never both",
        ),
        pytest.param(
            (node("g1", gpus=4, labels={"pool": "a"}), node("c1", labels={"pool": "b"})),
            {"gpus": 1, "nodeSelector": {"pool": "b"}},
            "node-selector",
            id="selects nodes without GPUs",
        ),
    ],
)
def test_the_binding_constraint_is_named(items: tuple[dict[str, Any], ...], asked: dict[str, Any], cause: str) -> None:
    """The one that, dropped alone, would let the pod run."""
    assert _why(*items, pod("x", **asked)).cause == cause


def test_two_constraints_on_the_only_node_are_both_named_and_no_shortage_claimed() -> None:
    """Neither alone would help, so nobody is sent after GPUs."""
    found = _why(node("g1", gpus=4, taints=TAINT), pod("a", on="g1", gpus=4), pod("x", gpus=1))
    assert found.cause == "untolerated-taint"
    assert f"untolerated-taint and 1 × {GPU} at once" in found.summary


def test_of_several_hopeless_nodes_the_nearest_is_told() -> None:
    """Two things on one node are nearer than three on another."""
    far = node("g1", gpus=4, taints=TAINT, cordoned=True)
    near = node("g2", gpus=4, labels={"pool": "a"}, cordoned=True)
    x = pod("x", gpus=1, nodeSelector={"pool": "a"})
    found = _why(far, pod("a", on="g1", gpus=4), near, pod("b", on="g2", gpus=4), x)
    assert found.summary.startswith(f"fits none of 2 nodes, even the nearest fail on cordoned and 1 × {GPU} at once")


@pytest.mark.parametrize(
    ("subject", "words"),
    [
        ({"priority": 0}, "nobody on the 1 node that eviction could help ranks lower: the lowest is 0, this pod has 0"),
        (
            {"priority": 5, "preemptionPolicy": "Never"},
            "its preemptionPolicy is Never (pods of lower priority are there",
        ),
        ({"priority": 5, "gpus": 5}, "evicting pods helps on no node"),
    ],
    ids=["equal priority", "never", "too small"],
)
def test_why_the_scheduler_did_not_preempt_is_told(subject: dict[str, Any], words: str) -> None:
    """The question that every engineer asks next."""
    assert words in _why(*_full("g1", 0), pod("x", **{"gpus": 4, **subject})).not_preempted


def test_a_pod_that_preempts_is_well() -> None:
    """The scheduler helps itself: nothing to alert on, and the victims are named."""
    found = _why(*_full("g1", 0), pod("x", gpus=4, priority=5))
    assert (found.hop, found.category, found.cause) == (None, Category.NONE, "preempting")
    assert "prod/on-g1" in found.summary


UNSCHEDULABLE = "0/1 nodes are available: {reason}. preemption: 0/1 nodes are available: 1 No preemption victims found."


@pytest.mark.parametrize(
    ("said", "cause"),
    [
        pytest.param(f"1 Insufficient {GPU}", "gpu-shortage", id="the same reason"),
        pytest.param(f"1 Insufficient cpu, 1 Insufficient {GPU}", "gpu-shortage", id="one more reason"),
        pytest.param("1 node(s) had untolerated taint(s)", "unknown", id="another reason"),
        pytest.param("1 node(s) didn't have enough moonlight", "unknown", id="a reason nobody knows"),
    ],
)
def test_a_verdict_that_the_scheduler_contradicts_is_unknown(said: str, cause: str) -> None:
    """Both are shown, and nothing is claimed."""
    found = _why(*_full("g1", 0), pod("x", gpus=1, message=UNSCHEDULABLE.format(reason=said)))
    assert found.cause == cause
    assert bool(found.disagreement) is (cause == "unknown")
    assert found.confidence is (Confidence.UNKNOWN if cause == "unknown" else Confidence.CERTAIN)


def test_a_pod_that_fits_while_the_scheduler_says_no_is_unknown() -> None:
    """Room may just have come free; nothing says whose word is newer."""
    found = _why(node("g1", gpus=4), pod("x", gpus=1, message=UNSCHEDULABLE.format(reason=f"1 Insufficient {GPU}")))
    assert (found.category, found.cause) == (Category.UNKNOWN, "unknown")
    assert "fits on 1 of 1 node " in found.summary
    assert "Insufficient" in found.disagreement


def test_without_nodes_the_schedulers_words_are_what_there_is() -> None:
    """Read from text, so only likely; never certain."""
    found = _why(pod("x", gpus=1, message="0/3 nodes are available: 3 node(s) had untolerated taint(s)."))
    assert (found.cause, found.confidence) == ("untolerated-taint", Confidence.LIKELY)


def test_without_nodes_and_words_nothing_is_known() -> None:
    """Not healthy, not broken."""
    objects = world(pod("x", gpus=1))
    objects.states["Node"] = SyncState.FORBIDDEN
    found = why_pending(Cluster(objects), the_pod(objects, "x"))
    assert (found.category, found.confidence) == (Category.UNKNOWN, Confidence.UNKNOWN)
    assert "forbidden" in found.summary


def test_half_a_list_of_nodes_is_not_certain() -> None:
    """While nodes are still being listed, one more may have room."""
    objects = world(*_full("g1", 0), pod("x", gpus=1))
    objects.states["Node"] = SyncState.NOT_SYNCED
    found = why_pending(Cluster(objects), the_pod(objects, "x"))
    assert found.confidence is Confidence.LIKELY
    assert "Nodes are not fully known (not_synced)" in found.unmodelled


def _rollout(surge: str, *, revision: str = "2") -> tuple[dict[str, Any], ...]:
    rolling = {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": surge}}
    deployment = custom("apps/v1", "Deployment", "llama", "prod", spec={"strategy": rolling})
    owned = [{"kind": "Deployment", "name": "llama", "uid": "uid-llama", "controller": True}]

    def replica_set(name: str, number: str) -> dict[str, Any]:
        notes = {"deployment.kubernetes.io/revision": number}
        return custom("apps/v1", "ReplicaSet", name, "prod", metadata={"ownerReferences": owned, "annotations": notes})

    old = pod("old", on="g1", gpus=4, owner=("ReplicaSet", "rs-1", "uid-rs-1"))
    new = pod("x", gpus=4, owner=("ReplicaSet", "rs-2", "uid-rs-2"))
    return (node("g1", gpus=4), deployment, replica_set("rs-1", "1"), replica_set("rs-2", revision), old, new)


def test_a_rollout_that_waits_for_itself_is_no_shortage() -> None:
    """Its own old pod holds just what the new one needs: the advice is maxSurge 0, nobody else's GPUs."""
    found = _why(*_rollout("25%"))
    assert (found.category, found.cause) == (Category.RESOURCE, "rollout-surge")
    assert "maxSurge: 0" in found.next_steps[0]
    assert found.summary == (
        f"the rollout of llama waits for itself: its new pod needs {GPU} that 1 old pod of its own holds "
        f"(maxSurge 25%); without it the new one fits on 1 node; now it needs 4 × {GPU} on one node; "
        "of 1 node 1 is full"
    )


@pytest.mark.parametrize(
    "items",
    [
        pytest.param(_rollout("0"), id="no surge is allowed"),
        pytest.param(_rollout("25%", revision="0"), id="the other pods are the newer ones"),
        pytest.param((*_rollout("25%"), pod("other", on="g1", gpus=1)), id="its old pods alone would not make room"),
    ],
)
def test_other_shortages_during_a_rollout_stay_shortages(items: tuple[dict[str, Any], ...]) -> None:
    """Only what the rollout itself holds makes it a surge."""
    assert _why(*items).cause == "gpu-shortage"


def test_a_node_that_is_being_added_is_the_cause() -> None:
    """Nobody should act meanwhile; what is short is still told."""
    said = event(
        "x", "TriggeredScaleUp", "pod triggered scale-up: [{group 1->2 (max: 4)}]", component="cluster-autoscaler"
    )
    found = _why(*_full("g1", 0), pod("x", gpus=1), said)
    assert (found.category, found.cause, found.confidence) == (
        Category.AUTOSCALER,
        "autoscaler-adding",
        Confidence.LIKELY,
    )
    assert GPU in found.summary


def test_an_autoscaler_at_its_maximum_does_not_hide_what_is_short() -> None:
    """It is evidence beside the shortage."""
    text = "pod didn't trigger scale-up: 1 max node group size reached"
    said = event("x", "NotTriggerScaleUp", text, component="cluster-autoscaler")
    found = _why(*_full("g1", 0), pod("x", gpus=1), said)
    assert found.cause == "gpu-shortage"
    assert any(text in e.text for e in found.evidence)


GATED: dict[str, Any] = {"schedulingGates": [{"name": "kueue.x-k8s.io/admission"}]}


def _kueue(message: str, status: str = "False") -> dict[str, Any]:
    return custom(
        "kueue.x-k8s.io/v1beta2",
        "Workload",
        "pod-x",
        "prod",
        metadata={"ownerReferences": [{"kind": "Pod", "name": "x", "uid": "uid-x", "controller": True}]},
        spec={"queueName": "team-a"},
        status={"conditions": [{"type": "QuotaReserved", "status": status, "message": message}]},
    )


@pytest.mark.parametrize(
    ("message", "category", "cause"),
    [
        pytest.param(
            f"couldn't assign flavors to pod set a: insufficient unused quota for {GPU} in flavor h100, 2 more needed",
            Category.GATED,
            "kueue-waiting",
            id="passes by itself",
        ),
        pytest.param(
            f"couldn't assign flavors to pod set a: insufficient quota for {GPU} in flavor h100, previously considered "
            "podsets requests (0) + current podset request (16) > maximum capacity (8)",
            Category.QUOTA,
            "kueue-exceeds-max",
            id="never passes",
        ),
    ],
)
def test_a_queue_that_holds_a_pod_is_named(message: str, category: Category, cause: str) -> None:
    """By Kueue's own words on the Workload."""
    found = _why(node("g1", gpus=8), pod("x", gpus=1, **GATED), _kueue(message))
    assert (found.category, found.cause) == (category, cause)
    assert "team-a" in found.summary


def test_a_gate_that_nobody_explains_is_named_itself() -> None:
    """Certain: the pod is not in the scheduler's queue."""
    found = _why(node("g1"), pod("x", schedulingGates=[{"name": "example.com/capacity"}]))
    assert (found.category, found.cause, found.confidence) == (Category.GATED, "scheduling-gate", Confidence.CERTAIN)
    assert "example.com/capacity" in found.summary


def test_another_scheduler_is_named_and_whether_it_works_here() -> None:
    """A scheduler that has placed nobody may not be installed."""
    alone = _why(node("g1"), pod("x", schedulerName="kai-scheduler"))
    assert (alone.category, alone.cause) == (Category.GATED, "other-scheduler")
    assert "is it installed?" in alone.summary
    works = _why(node("g1"), pod("x", schedulerName="kai-scheduler"), pod("y", on="g1", schedulerName="kai-scheduler"))
    assert "it has placed other pods here" in works.summary


def test_the_words_of_another_scheduler_are_taken() -> None:
    """Volcano says on the PodGroup that the gang is not complete."""
    group = custom(
        "scheduling.volcano.sh/v1beta1",
        "PodGroup",
        "gang",
        "prod",
        status={
            "conditions": [
                {
                    "type": "Unschedulable",
                    "status": "True",
                    "message": "4/2 tasks in gang unschedulable: pod group is not ready, 2 Pending, 4 minAvailable",
                }
            ]
        },
    )
    member = pod("x", schedulerName="volcano")
    member["metadata"]["annotations"] = {"scheduling.k8s.io/group-name": "gang"}
    found = _why(node("g1"), group, member)
    assert (found.cause, found.confidence) == ("gang-waiting", Confidence.LIKELY)


def test_a_device_selector_that_cannot_be_read_makes_no_claim() -> None:
    """What is not modelled is listed; whether the devices fit is unknown."""
    api = "resource.k8s.io/v1"
    request = {
        "name": "r",
        "exactly": {"deviceClassName": "gpu", "selectors": [{"cel": {"expression": "device.magic"}}]},
    }
    spec = {"driver": "d", "nodeName": "g1", "pool": {"name": "g1", "generation": 1}, "devices": [{"name": "g0"}]}
    found = _why(
        node("g1"),
        custom(api, "DeviceClass", "gpu", spec={}),
        custom(api, "ResourceSlice", "s", spec=spec),
        custom(api, "ResourceClaim", "c", "prod", spec={"devices": {"requests": [request]}}),
        pod("x", resourceClaims=[{"name": "gpu", "resourceClaimName": "c"}]),
    )
    assert found.category is Category.UNKNOWN
    assert any("device.magic" in each for each in found.unmodelled)


def test_a_verdict_is_worked_out_again_when_something_changed() -> None:
    """What is remembered for a class holds only as long as nothing moves."""
    objects = world(*_full("g1", 0), pod("x", gpus=4))
    cluster = Cluster(objects)
    assert "1 is full" in why_pending(cluster, the_pod(objects, "x")).summary
    cluster.update(*add(objects, pod("on-g1", on="g1", gpus=1)))
    assert "1 with 3 free" in why_pending(cluster, the_pod(objects, "x")).summary


def test_a_new_disruption_budget_changes_whom_preemption_takes() -> None:
    """The victim that was named is protected now, so the other node's is named."""
    victims = [pod(f"v{i}", on=f"g{i}", gpus=4, priority=1, labels={"app": f"v{i}"}) for i in range(2)]
    objects = world(node("g0", gpus=4), node("g1", gpus=4), *victims, pod("x", gpus=4, priority=5))
    cluster = Cluster(objects)
    assert "prod/v0" in why_pending(cluster, the_pod(objects, "x")).summary
    budget = custom(
        "policy/v1",
        "PodDisruptionBudget",
        "b",
        "prod",
        spec={"minAvailable": 1, "selector": {"matchLabels": {"app": "v0"}}},
        status={"disruptionsAllowed": 0},
    )
    cluster.update(*add(objects, budget))
    assert "prod/v1" in why_pending(cluster, the_pod(objects, "x")).summary


def test_a_pod_with_a_node_is_well() -> None:
    """Nothing waits."""
    assert _why(node("g1"), pod("x", on="g1")).category is Category.NONE


def test_without_nodes_an_autoscaler_still_speaks() -> None:
    """That a node is on its way, or that none may come, is not lost where only pods and Events are given."""
    short = "0/4 nodes are available: 4 Insufficient nvidia.com/gpu."
    coming = event("x", "TriggeredScaleUp", "pod triggered scale-up: [{gpus 2->3 (max: 8)}]")
    full = event("x", "NotTriggerScaleUp", "pod didn't trigger scale-up: 3 max node group size reached")

    adding, capped = (_why(pod("x", gpus=2, message=short), said) for said in (coming, full))

    assert (adding.category, adding.cause) == (Category.AUTOSCALER, "autoscaler-adding")
    assert (capped.category, capped.cause) == (Category.RESOURCE, "gpu-unavailable")
    assert "autoscaler" in capped.summary


def test_what_others_wrote_is_shown_masked_and_on_one_line() -> None:
    """Conditions and Events may carry tokens and escape sequences."""
    words = "0/1 nodes are available: 1 Insufficient nvidia.com/gpu token=abcdefgh12345678\x1b[2J."

    found = _why(*_full("g1", 0), pod("x", gpus=2, message=words))

    shown = repr(found)
    assert "Insufficient nvidia.com/gpu" in shown
    assert "abcdefgh12345678" not in shown
    assert "x1b" not in shown
