"""The cluster kept current one object at a time is the cluster built anew."""

from __future__ import annotations

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from sevenhop.core.hops.diagnosis import Diagnosis
from sevenhop.core.hops.scheduling import why_pending
from sevenhop.core.inventory.objects import Key, Objects
from sevenhop.core.placement.cluster import Cluster
from sevenhop.core.placement.evaluation import class_of, evaluate
from sevenhop.core.placement.fit import fits
from sevenhop.core.placement.preemption import Preemption, preempt
from tests.placement_builders import add, node, pod, the_pod, world

ZONE = "topology.kubernetes.io/zone"
NAMES = ("n1", "n2", "n3")

hosts = st.builds(
    lambda name, gpus, zone, cordoned, taint: node(
        name,
        gpus=gpus,
        labels=dict([(ZONE, zone)] if zone else []),
        cordoned=cordoned,
        taints=[{"key": "t", "effect": "NoSchedule"}] if taint else [],
    ),
    st.sampled_from(NAMES),
    st.sampled_from((0, 4, 8)),
    st.sampled_from(("a", "b", "")),
    st.booleans(),
    st.booleans(),
)

_anti: Any = {
    "requiredDuringSchedulingIgnoredDuringExecution": [
        {"topologyKey": ZONE, "labelSelector": {"matchLabels": {"app": "x"}}}
    ]
}

residents = st.builds(
    lambda name, on, gpus, app, phase, hermit, priority: pod(
        name,
        on=on,
        gpus=gpus,
        labels={"app": app},
        phase=phase,
        priority=priority,
        affinity={"podAntiAffinity": _anti} if hermit else None,
    ),
    st.sampled_from(("p1", "p2", "p3", "p4")),
    st.sampled_from((*NAMES, "unknown")),
    st.integers(0, 4),
    st.sampled_from(("x", "y")),
    st.sampled_from(("Running", "Succeeded")),
    st.booleans(),
    st.integers(0, 2),
)

changes = st.one_of(
    hosts.map(lambda item: ("put", item)),
    residents.map(lambda item: ("put", item)),
    st.sampled_from(NAMES).map(lambda name: ("drop", ("Node", ("", name)))),
    st.sampled_from(("p1", "p2", "p3", "p4")).map(lambda name: ("drop", ("Pod", ("prod", name)))),
)

_spread = {
    "maxSkew": 1,
    "topologyKey": ZONE,
    "whenUnsatisfiable": "DoNotSchedule",
    "labelSelector": {"matchLabels": {"app": "x"}},
}

SUBJECTS = (
    pod("plain", gpus=2),
    pod("unwanted", labels={"app": "x"}),
    pod("spread", gpus=1, labels={"app": "x"}, topologySpreadConstraints=[_spread]),
    pod("near", affinity={"podAffinity": _anti}),
    pod("away", affinity={"podAntiAffinity": _anti}, tolerations=[{"key": "t", "operator": "Exists"}]),
)


def _answers(cluster: Cluster) -> dict[str, dict[str, str]]:
    out = {}
    for subject in SUBJECTS:
        name = subject["metadata"]["name"]
        found = cluster.objects.pods()[("prod", name)]
        masks = evaluate(cluster, class_of(cluster, found)).masks
        out[name] = {view.name: str(mask) for view, mask in zip(cluster.order, masks, strict=True)}
    return out


def _apply(objects: Objects, cluster: Cluster, change: tuple[str, Any]) -> None:
    if change[0] == "put":
        cluster.update(*add(objects, change[1]))
    else:
        kind, key = change[1]
        objects.drop(kind, key)
        cluster.update(kind, key)


@settings(max_examples=80, deadline=None)
@given(st.lists(changes, max_size=14))
def test_updates_one_by_one_lead_to_what_a_rebuild_finds(steps: list[tuple[str, Any]]) -> None:
    """Whatever comes and goes, and whatever was asked in between."""
    objects = world(*SUBJECTS, node("n1", gpus=4, labels={ZONE: "a"}))
    cluster = Cluster(objects)
    for step in steps:
        _apply(objects, cluster, step)
        _answers(cluster)
    assert _answers(cluster) == _answers(Cluster(objects))
    assert set(cluster.pending) == set(Cluster(objects).pending)
    assert cluster.residents.lowest_priority() == Cluster(objects).residents.lowest_priority()


FULL = [node(name, gpus=4, labels={ZONE: "a"}) for name in NAMES]
HOLDERS = [pod(f"p{n}", on=on, gpus=4, priority=rank) for n, on, rank in ((1, "n1", 1), (2, "n2", 2), (3, "n3", 1))]
RANKS = tuple(pod(f"rank-{rank}-{gpus}", gpus=gpus, priority=rank) for rank in (0, 1, 2) for gpus in (4, 8))


def _verdicts(cluster: Cluster) -> dict[str, tuple[Preemption, Diagnosis]]:
    out = {}
    for each in RANKS:
        found = cluster.objects.pods()[("prod", each["metadata"]["name"])]
        room = preempt(cluster, found, evaluate(cluster, class_of(cluster, found)))
        out[found.metadata.name] = (room, why_pending(cluster, found))
    return out


@settings(max_examples=60, deadline=None)
@given(st.lists(changes, max_size=10))
def test_pods_of_one_class_share_a_verdict_that_is_each_one_s_own(steps: list[tuple[str, Any]]) -> None:
    """What is kept for all priorities of a class is what each pod would be told alone, in a cluster built anew."""
    objects = world(*RANKS, *FULL, *HOLDERS)
    cluster = Cluster(objects)
    for step in steps:
        _apply(objects, cluster, step)
        _verdicts(cluster)
    told = _verdicts(cluster)
    for each in RANKS:
        name = each["metadata"]["name"]
        anew = Cluster(objects)
        found = the_pod(objects, name)
        room = preempt(anew, found, evaluate(anew, class_of(anew, found)))
        assert told[name] == (room, why_pending(Cluster(objects), found))


@settings(max_examples=60, deadline=None)
@given(st.lists(hosts, max_size=3), st.lists(residents, max_size=5), st.sets(st.sampled_from(("p1", "p2", "p3"))))
def test_a_question_leaves_the_cluster_as_it_was(
    nodes: list[dict[str, Any]], pods: list[dict[str, Any]], names: set[str]
) -> None:
    """Pods taken out in thought are back afterwards, and the answer is that of a cluster without them."""
    objects = world(*SUBJECTS, *nodes, *pods)
    cluster = Cluster(objects)
    before = _answers(cluster)
    without: list[Key] = [("prod", name) for name in sorted(names)]
    for subject in SUBJECTS:
        name = subject["metadata"]["name"]
        asked = fits(cluster, the_pod(objects, name), without=without)
        rest = world(*SUBJECTS, *nodes, *(p for p in pods if p["metadata"]["name"] not in names))
        assert asked.nodes == fits(Cluster(rest), the_pod(rest, name)).nodes
    assert _answers(cluster) == before


def test_a_heartbeat_of_a_node_changes_no_verdict() -> None:
    """Ten thousand of them a minute must cost nothing."""
    objects = world(node("n1", gpus=4), pod("x", gpus=1))
    cluster = Cluster(objects)
    before = (cluster.epoch, len(cluster.log))
    beat = node("n1", gpus=4)
    beat["status"]["conditions"] = [{"type": "Ready", "status": "True"}]
    cluster.update(*add(objects, beat))
    assert (cluster.epoch, len(cluster.log)) == before


def test_equal_demands_are_one_class() -> None:
    """Two thousand replicas that wait for the same are worked out once."""
    objects = world(
        node("n1"), pod("a", gpus=1, labels={"hash": "1"}), pod("b", gpus=1, labels={"hash": "2"}), pod("c", gpus=2)
    )
    cluster = Cluster(objects)
    a, b, c = (class_of(cluster, the_pod(objects, name)) for name in "abc")
    assert a == b
    assert a != c
    assert evaluate(cluster, a) is evaluate(cluster, b)


FIVE = [node(f"h{i}", gpus=4, labels={ZONE: "a" if i < 3 else "b"}) for i in range(5)]


def test_a_verdict_is_patched_for_the_node_that_changed() -> None:
    """One pod more on one of five nodes: that node's mask and its group change, and nothing else."""
    objects = world(*FIVE, pod("x", gpus=4))
    cluster = Cluster(objects)
    wanted = class_of(cluster, the_pod(objects, "x"))
    assert evaluate(cluster, wanted).groups() == {0: [0, 1, 2, 3, 4]}
    cluster.update(*add(objects, pod("p", on="h1", gpus=1)))
    after = evaluate(cluster, wanted)
    assert after.groups()[0] == [0, 2, 3, 4]
    assert [bool(mask) for mask in after.masks] == [False, True, False, False, False]


def test_a_pod_that_keeps_others_away_changes_its_whole_domain() -> None:
    """The term is known already; a second pod with it comes to zone b, and all of zone b is closed."""
    hermits = [pod(f"hermit-{i}", on=on, affinity={"podAntiAffinity": _anti}) for i, on in enumerate(("h0", "h3"))]
    objects = world(*FIVE, hermits[0], pod("x", labels={"app": "x"}))
    cluster = Cluster(objects)
    assert fits(cluster, the_pod(objects, "x")).nodes == ("h3", "h4")
    cluster.update(*add(objects, hermits[1]))
    assert fits(cluster, the_pod(objects, "x")).nodes == ()


def test_a_pod_that_runs_proves_what_it_uses() -> None:
    """Claims that nobody collected are not called missing once a pod runs with one, whichever was seen first."""
    volumes = [{"name": "w", "persistentVolumeClaim": {"claimName": "w"}}]
    objects = world(node("n1"), pod("waits", volumes=volumes))
    cluster = Cluster(objects)
    waits = the_pod(objects, "waits")
    assert class_of(cluster, waits).trouble == "pvc-missing"

    cluster.update(*add(objects, pod("runs", on="n1", volumes=volumes)))
    assert class_of(cluster, waits).trouble == ""

    cluster.update(*add(objects, pod("runs", on="n1", volumes=volumes, phase="Succeeded")))
    assert class_of(cluster, waits).trouble == "pvc-missing"


def test_where_a_pod_fits_is_told_alike_in_whatever_order_nodes_came() -> None:
    """A fact's words that changed with every restart would be news each time."""
    both = [world(*nodes, pod("x", gpus=4)) for nodes in (FIVE, FIVE[::-1])]
    first, second = (why_pending(Cluster(objects), the_pod(objects, "x")).summary for objects in both)
    assert first == second
    assert "(h0, h1, h2, …)" in first


def test_a_pod_that_comes_before_anybody_looked_at_a_new_node() -> None:
    """What was worked out in between is forgotten, although the nodes have no numbers yet by which to tell of it."""
    objects = world(node("n1", gpus=8), node("n3", gpus=8))
    live = Cluster(objects)
    live.update(*add(objects, node("n2", gpus=8)))
    live.remember("question", "answer")

    live.update(*add(objects, pod("late", on="n1", gpus=8)))

    assert live.where(("prod", "late")) == "n1"
    assert live.remembered("question") is None
