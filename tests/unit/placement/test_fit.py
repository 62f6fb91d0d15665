"""Would it fit: every filter, on clusters of one to three nodes."""

from __future__ import annotations

from typing import Any

import pytest

from sevenhop.core.events import SyncState
from sevenhop.core.placement.cluster import Cluster
from sevenhop.core.placement.fit import Fit, HeldBack, fits
from tests.placement_builders import GPU, add, custom, node, pod, the_pod, world

TAINT = [{"key": "dedicated", "value": "a", "effect": "NoSchedule"}]
ZONE = "topology.kubernetes.io/zone"


def _fit(*items: dict[str, Any], subject: str = "x") -> Fit:
    objects = world(*items)
    return fits(Cluster(objects), the_pod(objects, subject))


@pytest.mark.parametrize(
    ("host", "asked", "first"),
    [
        pytest.param(node("n"), {}, "", id="fits"),
        pytest.param(node("n", cordoned=True), {}, "cordoned", id="cordoned"),
        pytest.param(
            node("n", cordoned=True),
            {"tolerations": [{"key": "node.kubernetes.io/unschedulable", "operator": "Exists"}]},
            "",
            id="cordoned and tolerated",
        ),
        pytest.param(node("n", taints=TAINT), {}, "untolerated-taint", id="tainted"),
        pytest.param(
            node("n", taints=[{"key": "noisy", "effect": "PreferNoSchedule"}]), {}, "", id="a preference never blocks"
        ),
        pytest.param(
            node("n", taints=[{"key": "node.kubernetes.io/not-ready", "effect": "NoSchedule"}]),
            {},
            "node-not-ready",
            id="not ready",
        ),
        pytest.param(node("n"), {"nodeSelector": {"pool": "gpu"}}, "node-selector", id="selector"),
        pytest.param(node("n", cpu="1"), {"cpu": "1001m"}, "insufficient cpu", id="a thousandth of a cpu too much"),
        pytest.param(node("n", cpu="1"), {"cpu": "1"}, "", id="exactly full"),
        pytest.param(node("n", memory="1Gi"), {"memory": "1025Mi"}, "insufficient memory", id="memory"),
        pytest.param(node("n"), {"gpus": 1}, f"insufficient {GPU}", id="no such resource"),
        pytest.param(node("n", pods=0), {}, "too-many-pods", id="pod limit"),
    ],
)
def test_a_node_is_refused_for_the_first_reason(host: dict[str, Any], asked: dict[str, Any], first: str) -> None:
    """Filters that look at one node."""
    answer = _fit(host, pod("x", **asked))
    assert answer.failing.get("n", "") == first
    assert bool(answer.nodes) is (first == "")


def test_finished_pods_hold_nothing_and_terminating_ones_still_do() -> None:
    """Both have a node; only one of them has left it."""
    done = pod("done", on="n", gpus=4, phase="Succeeded")
    leaving = pod("leaving", on="n", gpus=4)
    leaving["metadata"]["deletionTimestamp"] = "2026-11-30T04:00:00Z"
    assert _fit(node("n", gpus=4), done, pod("x", gpus=4)).nodes
    assert not _fit(node("n", gpus=4), leaving, pod("x", gpus=4)).nodes


def test_a_node_in_debt_takes_no_gpu_pod_but_takes_others() -> None:
    """Six bound of four that are left: freeing two gives nothing, and cpu is not affected."""
    items = (node("n", gpus=4, capacity=8), pod("a", on="n", gpus=2), pod("b", on="n", gpus=4))
    objects = world(*items, pod("x", gpus=1), pod("plain"))
    cluster = Cluster(objects)
    assert not fits(cluster, the_pod(objects, "x"), without=[("prod", "a")]).nodes
    assert fits(cluster, the_pod(objects, "x"), without=[("prod", "b")]).nodes
    assert fits(cluster, the_pod(objects, "plain")).nodes


@pytest.mark.parametrize(
    ("used", "wanted", "free"),
    [
        pytest.param({"hostPort": 80}, {"hostPort": 80}, False, id="same port"),
        pytest.param({"hostPort": 80}, {"hostPort": 81}, True, id="another port"),
        pytest.param({"hostPort": 80, "protocol": "UDP"}, {"hostPort": 80}, True, id="another protocol"),
        pytest.param(
            {"hostPort": 80, "hostIP": "10.0.0.1"}, {"hostPort": 80, "hostIP": "10.0.0.2"}, True, id="addresses"
        ),
        pytest.param({"hostPort": 80, "hostIP": "10.0.0.1"}, {"hostPort": 80}, False, id="every address meets one"),
    ],
)
def test_host_ports_conflict_by_address_and_protocol(used: dict[str, Any], wanted: dict[str, Any], free: bool) -> None:
    """One pod has the port already."""
    there, x = pod("there", on="n"), pod("x")
    for each, port in ((there, used), (x, wanted)):
        each["spec"]["containers"][0]["ports"] = [{"containerPort": 80, **port}]
    assert bool(_fit(node("n"), there, x).nodes) is free


def _spread(**more: Any) -> dict[str, Any]:
    return {
        "maxSkew": 1,
        "topologyKey": ZONE,
        "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": {"matchLabels": {"app": "d"}},
        **more,
    }


A, B = {ZONE: "a"}, {ZONE: "b"}
IN_A = pod("p1", on="a1", labels={"app": "d"})


@pytest.mark.parametrize(
    ("items", "constraint", "where"),
    [
        pytest.param((node("a1", labels=A), node("b1", labels=B), IN_A), _spread(), ("b1",), id="the emptier zone"),
        pytest.param(
            (node("a1", labels=A), node("b1", labels=B), IN_A), _spread(maxSkew=2), ("a1", "b1"), id="skew of two"
        ),
        pytest.param((node("a1", labels=A), node("c1"), IN_A), _spread(), ("a1",), id="a node without the key is out"),
        pytest.param((node("a1", labels=A), IN_A), _spread(minDomains=2), (), id="too few domains make the minimum 0"),
        pytest.param(
            (node("a1", labels=A), node("b1", labels=B, cordoned=True), IN_A),
            _spread(),
            (),
            id="a cordoned node counts",
        ),
        pytest.param(
            (node("a1", labels=A), node("b1", labels=B, taints=TAINT), IN_A),
            _spread(nodeTaintsPolicy="Honor"),
            ("a1",),
            id="a tainted node does not, where taints are honoured",
        ),
        pytest.param(
            (node("a1", labels=A), node("b1", labels=B), IN_A),
            _spread(labelSelector={}),
            ("a1", "b1"),
            id="an empty selector counts nobody",
        ),
        pytest.param(
            (node("a1", labels=A), node("b1", labels=B), IN_A),
            _spread(whenUnsatisfiable="ScheduleAnyway"),
            ("a1", "b1"),
            id="a preference never blocks",
        ),
        pytest.param(
            (node("a1", labels=A), node("b1", labels=B), pod("p", on="a1", namespace="other", labels={"app": "d"})),
            _spread(),
            ("a1", "b1"),
            id="other namespaces do not count",
        ),
    ],
)
def test_topology_spread_counts_what_the_scheduler_counts(
    items: tuple[dict[str, Any], ...], constraint: dict[str, Any], where: tuple[str, ...]
) -> None:
    """One replica runs in zone a; where may the next go."""
    answer = _fit(*items, pod("x", labels={"app": "d"}, topologySpreadConstraints=[constraint]))
    assert answer.nodes == where


def test_a_terminating_replica_is_not_counted_by_spread() -> None:
    """It still holds its node's resources, but spread looks ahead."""
    leaving = pod("p1", on="a1", labels={"app": "d"})
    leaving["metadata"]["deletionTimestamp"] = "2026-11-30T04:00:00Z"
    x = pod("x", labels={"app": "d"}, topologySpreadConstraints=[_spread()])
    assert _fit(node("a1", labels=A), node("b1", labels=B), leaving, x).nodes == ("a1", "b1")


def test_only_nodes_with_every_topology_key_make_a_domain() -> None:
    """Zone b has no rack label, so its emptiness is not held against zone a."""
    rack = {"rack": "r1"}
    items = (node("a1", labels={**A, **rack}), node("b1", labels=B), IN_A)
    both = [_spread(), _spread(topologyKey="rack", maxSkew=5)]
    x = pod("x", labels={"app": "d"}, topologySpreadConstraints=both)
    assert _fit(*items, x).nodes == ("a1",)


def test_a_selector_narrows_the_domains_that_spread_counts() -> None:
    """Nodes that the pod could never use make no domain."""
    items = (node("a1", labels={**A, "pool": "g"}), node("b1", labels=B), IN_A)
    x = pod("x", labels={"app": "d"}, nodeSelector={"pool": "g"}, topologySpreadConstraints=[_spread()])
    assert _fit(*items, x).nodes == ("a1",)


def _affinity(kind: str, **term: Any) -> dict[str, Any]:
    full = {"topologyKey": ZONE, "labelSelector": {"matchLabels": {"app": "d"}}, **term}
    return {kind: {"requiredDuringSchedulingIgnoredDuringExecution": [full]}}


@pytest.mark.parametrize(
    ("labels", "affinity", "where"),
    [
        pytest.param({}, _affinity("podAffinity"), ("a1", "a2"), id="near"),
        pytest.param(
            {}, _affinity("podAntiAffinity"), ("b1", "c1"), id="away: a node without the key cannot violate it"
        ),
        pytest.param({}, _affinity("podAffinity", labelSelector={"matchLabels": {"app": "no"}}), (), id="near nobody"),
        pytest.param(
            {"app": "no"},
            _affinity("podAffinity", labelSelector={"matchLabels": {"app": "no"}}),
            ("a1", "a2", "b1"),
            id="the first of its kind may start",
        ),
        pytest.param({}, _affinity("podAffinity", namespaces=["other"]), (), id="another namespace"),
        pytest.param(
            {},
            _affinity("podAffinity", namespaceSelector={"matchLabels": {"team": "t"}}),
            ("a1", "a2"),
            id="namespaces by label",
        ),
        pytest.param(
            {"rev": "2"},
            _affinity("podAntiAffinity", matchLabelKeys=["rev"]),
            ("a1", "a2", "b1", "c1"),
            id="only its own revision",
        ),
        pytest.param(
            {"rev": "1"},
            _affinity("podAntiAffinity", mismatchLabelKeys=["rev"]),
            ("a1", "a2", "b1", "c1"),
            id="only others",
        ),
    ],
)
def test_pod_affinity_looks_at_domains(
    labels: dict[str, str], affinity: dict[str, Any], where: tuple[str, ...]
) -> None:
    """One pod with app=d and rev=1 runs in zone a."""
    items = (
        node("a1", labels=A),
        node("a2", labels=A),
        node("b1", labels=B),
        node("c1"),
        custom("v1", "Namespace", "prod", metadata={"name": "prod", "labels": {"team": "t"}}),
        pod("p1", on="a1", labels={"app": "d", "rev": "1"}),
    )
    assert _fit(*items, pod("x", labels=labels, affinity=affinity)).nodes == where


def test_the_anti_affinity_of_others_binds_too() -> None:
    """The waiting pod says nothing; a running one does not want it near."""
    hermit = pod("hermit", on="a1", affinity=_affinity("podAntiAffinity"))
    answer = _fit(node("a1", labels=A), node("b1", labels=B), hermit, pod("x", labels={"app": "d"}))
    assert answer.nodes == ("b1",)
    assert answer.failing == {"a1": "pod-anti-affinity"}


PVC, PV, CLASS = "PersistentVolumeClaim", "PersistentVolume", "StorageClass"


def _mount(name: str = "x", claim: str = "w", **more: Any) -> dict[str, Any]:
    return pod(name, volumes=[{"name": "v", "persistentVolumeClaim": {"claimName": claim}}], **more)


def _claim(
    volume: str = "", *, storage: str = "10Gi", storage_class: str = "local", modes: str = "ReadWriteOnce"
) -> Any:
    spec = {"accessModes": [modes], "storageClassName": storage_class, "resources": {"requests": {"storage": storage}}}
    phase = "Bound" if volume else "Pending"
    return custom("v1", PVC, "w", "prod", spec={**spec, "volumeName": volume}, status={"phase": phase})


def _volume(name: str, *, on: str = "", size: str = "10Gi", labels: dict[str, str] | None = None) -> dict[str, Any]:
    terms = [{"matchExpressions": [{"key": "kubernetes.io/hostname", "operator": "In", "values": [on]}]}]
    spec: dict[str, Any] = {
        "capacity": {"storage": size},
        "accessModes": ["ReadWriteOnce"],
        "storageClassName": "local",
    }
    if on:
        spec["nodeAffinity"] = {"required": {"nodeSelectorTerms": terms}}
    meta = {"name": name, "labels": labels or {}}
    return custom("v1", PV, name, metadata=meta, spec=spec, status={"phase": "Available"})


WAITS = custom(
    "storage.k8s.io/v1",
    CLASS,
    "local",
    provisioner="kubernetes.io/no-provisioner",
    volumeBindingMode="WaitForFirstConsumer",
)


@pytest.mark.parametrize(
    ("items", "trouble", "where"),
    [
        pytest.param((), "pvc-missing", (), id="no claim"),
        pytest.param((_claim(storage_class="gone"),), "pvc-unbound", (), id="no storage class"),
        pytest.param((_claim(), WAITS, _volume("v1", on="b1")), "", ("b1",), id="waits, a volume on one node"),
        pytest.param(
            (_claim(storage="11Gi"), WAITS, _volume("v1", on="b1")), "", (), id="waits, the volume is too small"
        ),
        pytest.param((_claim("v1"), _volume("v1", on="a1")), "", ("a1",), id="bound, on one node"),
        pytest.param((_claim("v1"), _volume("v1", labels=B)), "", ("b1", "c1"), id="bound, in one zone"),
        pytest.param((_claim("v9"), _volume("v1")), "pv-unavailable", (), id="bound to what is gone"),
    ],
)
def test_volumes_decide_where_a_pod_may_run(items: tuple[Any, ...], trouble: str, where: tuple[str, ...]) -> None:
    """Missing, waiting, bound: node c1 has no zone label and is not asked for one."""
    answer = _fit(node("a1", labels=A), node("b1", labels=B), node("c1"), *items, _mount())
    assert answer.trouble == trouble
    assert answer.nodes == where


def test_a_claim_for_one_pod_only_keeps_the_second_away() -> None:
    """ReadWriteOncePod, and somebody runs with it, on whatever node."""
    items = (node("a1"), node("b1"), _claim("v1", modes="ReadWriteOncePod"), _volume("v1"))
    answer = _fit(*items, _mount("first", on="a1"), _mount())
    assert answer.failing == {"a1": "pvc-in-use", "b1": "pvc-in-use"}


def test_a_claim_that_was_not_collected_is_not_called_missing() -> None:
    """A running pod mounts a claim that is not here either, so absence proves nothing."""
    answer = _fit(node("a1"), _mount("other", claim="elsewhere", on="a1"), _mount())
    assert answer.trouble == ""
    assert "PersistentVolumeClaim prod/w was not seen" in answer.unmodelled


def test_a_storage_class_that_was_not_collected_is_not_called_missing() -> None:
    """Another claim is bound with a class that is not here either: whether this one may wait is not known."""
    other = _claim("v1", storage_class="fast")
    other["metadata"] = {"name": "other", "namespace": "prod"}
    answer = _fit(node("a1"), other, _claim(storage_class="fast"), _mount())
    assert answer.trouble == ""
    assert "StorageClass fast was not seen" in answer.unmodelled


def test_a_device_class_that_was_not_collected_is_not_called_missing() -> None:
    """Another claim is allocated with it."""
    api, request = "resource.k8s.io/v1", {"name": "r", "exactly": {"deviceClassName": "gpu"}}
    spec = {"devices": {"requests": [request]}}
    items = (
        custom(api, "ResourceClaim", "held", "prod", spec=spec, status={"allocation": {"devices": {}}}),
        custom(api, "ResourceClaim", "mine", "prod", spec=spec),
    )
    x = pod("x", resourceClaims=[{"name": "gpu", "resourceClaimName": "mine"}])
    assert _fit(node("n"), *items, x).trouble == ""
    assert _fit(node("n"), items[1], x).trouble == "device-class-missing"


def test_a_kind_that_is_not_synced_proves_no_absence() -> None:
    """Before the first list has finished, a missing claim may just not have come yet."""
    objects = world(node("a1"), _mount())
    objects.states[PVC] = SyncState.NOT_SYNCED
    answer = fits(Cluster(objects), the_pod(objects, "x"))
    assert answer.trouble == ""
    assert "PersistentVolumeClaim prod/w was not seen" in answer.unmodelled


@pytest.mark.parametrize(
    ("spec", "reason"),
    [
        ({"schedulingGates": [{"name": "g"}]}, HeldBack.GATED),
        ({"schedulerName": "volcano"}, HeldBack.OTHER_SCHEDULER),
        ({"on": "n"}, HeldBack.NOT_PENDING),
    ],
)
def test_a_pod_that_nobody_tries_fits_nowhere(spec: dict[str, Any], reason: HeldBack) -> None:
    """Gated, another scheduler's, or placed already."""
    answer = _fit(node("n"), pod("x", **spec))
    assert answer.held_back is reason
    assert not answer.nodes


def test_a_pod_that_preempted_for_a_node_holds_its_place_there() -> None:
    """Its victims are gone and it is about to be bound: a lower priority may not slip in."""
    waiting = pod("vip", gpus=4, priority=10, status={"nominatedNodeName": "n"})
    objects = world(node("n", gpus=4), waiting, pod("x", gpus=1), pod("peer", gpus=1, priority=20))
    cluster = Cluster(objects)
    assert not fits(cluster, the_pod(objects, "x")).nodes
    assert fits(cluster, the_pod(objects, "vip")).nodes
    assert fits(cluster, the_pod(objects, "peer")).nodes


def _dra(objects_gpus: int, *, extended: str = "") -> list[dict[str, Any]]:
    api = "resource.k8s.io/v1"
    devices = [{"name": f"g{i}", "attributes": {"type": {"string": "gpu"}}} for i in range(objects_gpus)]
    spec = {"driver": "d", "nodeName": "n", "pool": {"name": "n", "generation": 1}, "devices": devices}
    named = {"extendedResourceName": extended} if extended else {}
    return [
        custom(
            api, "DeviceClass", "gpu", spec={"selectors": [{"cel": {"expression": 'device.driver == "d"'}}], **named}
        ),
        custom(api, "ResourceSlice", "s", spec=spec),
    ]


def test_an_extended_resource_is_served_by_a_device_class_where_no_plugin_does() -> None:
    """No node advertises it, and the pod fits nevertheless."""
    assert _fit(node("n"), *_dra(2, extended=GPU), pod("x", gpus=2)).nodes == ("n",)
    assert _fit(node("n"), *_dra(2, extended=GPU), pod("x", gpus=3)).failing == {"n": "dra-unsatisfiable"}
    assert _fit(node("n"), *_dra(2), pod("x", gpus=2)).failing == {"n": f"insufficient {GPU}"}


def test_devices_of_a_pod_that_leaves_are_free_again() -> None:
    """Its generated claim goes with it; one that others share does not."""
    api = "resource.k8s.io/v1"
    request = {"devices": {"requests": [{"name": "r", "exactly": {"deviceClassName": "gpu", "count": 2}}]}}
    held = {"devices": {"results": [{"driver": "d", "pool": "n", "device": f"g{i}", "request": "r"} for i in range(2)]}}
    reserved = [{"resource": "pods", "name": "old", "uid": "uid-old"}]
    template = custom(api, "ResourceClaimTemplate", "t", "prod", spec={"spec": request})
    claim = custom(
        api, "ResourceClaim", "c-old", "prod", spec=request, status={"allocation": held, "reservedFor": reserved}
    )
    uses: dict[str, Any] = {"resourceClaims": [{"name": "gpu", "resourceClaimTemplateName": "t"}]}
    old = pod("old", on="n", status={"resourceClaimStatuses": [{"name": "gpu", "resourceClaimName": "c-old"}]}, **uses)
    objects = world(node("n"), *_dra(2), template, claim, old, pod("x", **uses))
    cluster = Cluster(objects)
    assert fits(cluster, the_pod(objects, "x")).failing == {"n": "dra-unsatisfiable"}
    assert fits(cluster, the_pod(objects, "x"), without=[("prod", "old")]).nodes == ("n",)
    shared = {**claim, "status": {"allocation": held, "reservedFor": [*reserved, {"resource": "pods", "name": "peer"}]}}
    kind, key = add(objects, shared)
    cluster.update(kind, key)
    kind, key = add(objects, pod("peer", on="n"))
    cluster.update(kind, key)
    assert not fits(cluster, the_pod(objects, "x"), without=[("prod", "old")]).nodes
