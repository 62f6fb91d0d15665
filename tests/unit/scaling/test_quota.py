"""The quota of a pod that goes may admit somebody else: told where Kueue's own words show it, and nowhere else."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from sevenhop.core.objects.pod import Pod
from sevenhop.frameworks.scaling.quota import Quota
from tests.unit.frameworks.running import Manifest, container, obj, pod
from tests.unit.scaling import scenes
from tests.unit.scaling.world import World, other

GPU, H100 = "nvidia.com/gpu", "h100"
LACKS = (
    "couldn't assign flavors to pod set main: "
    "insufficient unused quota for nvidia.com/gpu in flavor h100, {} more needed"
)
API = "kueue.x-k8s.io/v1beta2"


def local(name: str, queue: str, **spec: Any) -> Manifest:
    return other(API, "LocalQueue", name, spec={"clusterQueue": queue, **spec})


def cluster(name: str, cohort: str = "", limits: dict[str, int] | None = None, **spec: Any) -> Manifest:
    quota = {"name": GPU, "nominalQuota": 8, **(limits or {})}
    groups = [{"coveredResources": [GPU], "flavors": [{"name": H100, "resources": [quota]}]}]
    made = other(API, "ClusterQueue", name, spec={"resourceGroups": groups, "cohortName": cohort, **spec})
    del made["metadata"]["namespace"]
    return made


def renamed(queue: Manifest) -> Manifest:
    """As v1beta1 called the field."""
    queue["spec"]["cohort"] = queue["spec"].pop("cohortName")
    return queue


def holds(of: Manifest, queue: str = "cq-a", flavor: str = H100, **more: Any) -> Manifest:
    """The admitted Workload of the victim."""
    assigned = [{"name": "main", "flavors": {GPU: flavor}}]
    made = other(
        API,
        "Workload",
        "pod-summarizer",
        owner=of,
        status={"admission": {"clusterQueue": queue, "podSetAssignments": assigned}},
    )
    return {**made, **more}


def waits(message: str, queue: str = "team-b", **changes: Any) -> Manifest:
    """A Workload without quota, in Kueue's words."""
    said = {"type": "QuotaReserved", "status": "False", "reason": "Pending", "message": message}
    return other(
        API,
        "Workload",
        "train",
        spec={"queueName": queue, **changes.pop("spec", {})},
        status={"conditions": [said, *changes.pop("conditions", [])]},
        **changes,
    )


def scene(*more: Manifest, holder: Callable[[Manifest], Manifest] = holds) -> World:
    """A donor in ClusterQueue cq-a, whose pods hold two GPUs of flavor h100 each; team-b waits in the same."""
    made = scenes.plain()
    victim = next(m for m in made.manifests.values() if m["kind"] == "Pod")
    return World([*made.manifests.values(), holder(victim), local("team-b", "cq-a"), cluster("cq-a"), *more])


def told(world: World, needy: list[Pod] | None = None) -> str:
    first = next(m["metadata"]["uid"] for m in world.manifests.values() if m["kind"] == "Pod")
    victims = [each for each in world.pods("engine", "summarizer") if each.metadata.uid == first]
    assert len(victims) == 1
    return Quota(world).taker(victims, needy or [])


def _deleted(workload: Manifest) -> Manifest:
    workload["metadata"]["deletionTimestamp"] = "2026-11-30T12:00:00Z"
    return workload


def elsewhere(**queue: Any) -> list[Manifest]:
    """team-c waits in another ClusterQueue."""
    return [local("team-c", "cq-b"), cluster("cq-b", **queue), waits(LACKS.format(2), "team-c")]


def test_who_would_be_admitted_is_named() -> None:
    """With its queue, and with what comes back."""
    assert told(scene(waits(LACKS.format(2)))) == (
        "Kueue would admit Workload prod/train of ClusterQueue cq-a with the quota that comes back "
        "(2 nvidia.com/gpu of flavor h100), and its pods could take the room"
    )


@pytest.mark.parametrize(
    ("flavors", "lacks", "said"),
    [
        pytest.param({GPU: H100, "cpu": "default"}, LACKS.format(2), "(2 nvidia.com/gpu of flavor h100)", id="devices"),
        pytest.param(
            {"cpu": "default"},
            "insufficient unused quota for cpu in flavor default, 500m more needed",
            "(flavor default)",
            id="no devices",
        ),
    ],
)
def test_what_comes_back_is_told_by_what_is_scarce(flavors: dict[str, str], lacks: str, said: str) -> None:
    """Of GPUs the number; processors come back beside them and are not told."""

    def holder(of: Manifest) -> Manifest:
        made = holds(of)
        made["status"]["admission"]["podSetAssignments"][0]["flavors"] = flavors
        return made

    def asks(world: World) -> World:
        for each in world.manifests.values():
            if each["kind"] == "Pod":
                each["spec"]["containers"][0].setdefault("resources", {}).setdefault("requests", {})["cpu"] = "1"
        world.read()
        return world

    assert said in told(asks(scene(waits(lacks), holder=holder)))


TWO = f"{LACKS.format(2)}, insufficient unused quota for {{}} in flavor {{}}, 4 more needed"
CLEAR: dict[str, Callable[[], World]] = {
    "it lacks less": lambda: scene(waits(LACKS.format(1))),
    "either of two flavors will do": lambda: scene(waits(TWO.format(GPU, "a100"))),
    "no status yet of another condition": lambda: scene(
        waits(LACKS.format(2), conditions=[{"type": "Finished", "status": "False"}])
    ),
    "another condition is true": lambda: scene(
        waits(LACKS.format(2), conditions=[{"type": "Requeued", "status": "True"}])
    ),
    "another ClusterQueue of the cohort": lambda: scene(
        cluster("cq-a", cohort="all"),
        *elsewhere(cohort="all"),
    ),
    "as v1beta1 writes the cohort": lambda: scene(renamed(cluster("cq-a", cohort="all")), *elsewhere(cohort="all")),
    "the queue is not held": lambda: scene(cluster("cq-a", stopPolicy="None"), waits(LACKS.format(2))),
}


@pytest.mark.parametrize("make", CLEAR.values(), ids=CLEAR.keys())
def test_what_shows_it_clearly(make: Callable[[], World]) -> None:
    """Nothing but what comes back is lacking, and it can be had there."""
    assert told(make())


UNCLEAR: dict[str, Callable[[], World]] = {
    "nobody waits": scene,
    "it lacks more": lambda: scene(waits(LACKS.format(3))),
    "of another flavor": lambda: scene(waits(LACKS.format(1).replace(H100, "a100"))),
    "processors are lacking too": lambda: scene(waits(TWO.format("cpu", "default"))),
    "an amount that is none": lambda: scene(waits(LACKS.format("many"))),
    "more than it may ever have": lambda: scene(
        waits(LACKS.format(2) + ", insufficient quota for cpu in flavor default, request > maximum capacity (9 > 8)")
    ),
    "two pod sets": lambda: scene(waits(f"{LACKS.format(1)}; {LACKS.format(2)}")),
    "Kueue has not said why": lambda: scene(waits("")),
    "it has quota": lambda: scene(waits(LACKS.format(2), conditions=[{"type": "QuotaReserved", "status": "True"}])),
    "it has finished": lambda: scene(waits(LACKS.format(2), conditions=[{"type": "Finished", "status": "True"}])),
    "it is being deleted": lambda: scene(_deleted(waits(LACKS.format(2)))),
    "it is switched off": lambda: scene(waits(LACKS.format(2), spec={"active": False})),
    "its LocalQueue is not seen": lambda: scene(waits(LACKS.format(2), "unknown")),
    "its LocalQueue is held": lambda: scene(
        local("team-d", "cq-a", stopPolicy="Hold"), waits(LACKS.format(2), "team-d")
    ),
    "its ClusterQueue is held": lambda: scene(cluster("cq-a", stopPolicy="HoldAndDrain"), waits(LACKS.format(2))),
    "another ClusterQueue without a cohort": lambda: scene(*elsewhere()),
    "another cohort": lambda: scene(cluster("cq-a", cohort="all"), *elsewhere(cohort="others")),
    "borrowing is limited": lambda: scene(
        cluster("cq-a", cohort="all"), *elsewhere(cohort="all", limits={"borrowingLimit": 2})
    ),
    "lending is limited": lambda: scene(
        cluster("cq-a", cohort="all", limits={"lendingLimit": 2}), *elsewhere(cohort="all")
    ),
    "the donor is of another flavor": lambda: scene(waits(LACKS.format(2)), holder=lambda of: holds(of, flavor="a100")),
    "the donor is in another ClusterQueue": lambda: scene(
        waits(LACKS.format(2)), holder=lambda of: holds(of, queue="cq-z")
    ),
    "the donor has no admission": lambda: scene(waits(LACKS.format(2)), holder=lambda of: holds(of, status={})),
    "the Workload is of a pod that had the name before": lambda: scene(
        waits(LACKS.format(2)), holder=lambda of: holds({**of, "metadata": {**of["metadata"], "uid": "older"}})
    ),
}


@pytest.mark.parametrize("make", UNCLEAR.values(), ids=UNCLEAR.keys())
def test_what_does_not_show_it(make: Callable[[], World]) -> None:
    """What is not certain is left to the note that every plan on a queue carries."""
    assert told(make()) == ""


def _needy(**labels: str) -> Manifest:
    return pod("needy-0", None, labels, container(gpus=2))


@pytest.mark.parametrize(
    ("labels", "is_told"),
    [
        pytest.param({}, True, id="in no queue"),
        pytest.param({"kueue.x-k8s.io/queue-name": "team-b"}, False, id="in the same"),
        pytest.param({"kueue.x-k8s.io/local-queue-name": "team-b"}, False, id="by the other label"),
        pytest.param({"kueue.x-k8s.io/cluster-queue-name": "cq-a"}, False, id="by its ClusterQueue"),
        pytest.param({"kueue.x-k8s.io/cluster-queue-name": "cq-b"}, True, id="in another ClusterQueue"),
        pytest.param({"kueue.x-k8s.io/queue-name": "unknown"}, True, id="in a queue that is not there"),
    ],
)
def test_whoever_stands_in_the_same_queue_is_ordered_by_it(labels: dict[str, str], is_told: bool) -> None:
    """Those that are to be helped have quota there, and whoever comes after them is Kueue's to order."""
    world = scene(waits(LACKS.format(2)), _needy(**labels))
    needy = [each for each in world.objects.pods().values() if each.metadata.name == "needy-0"]
    assert bool(told(world, needy)) is is_told


def test_the_label_may_stand_on_what_owns_them() -> None:
    """Controllers do not hand every label down."""
    owner = obj("apps/v1", "StatefulSet", "needy", labels={"kueue.x-k8s.io/queue-name": "team-b"}, spec={"replicas": 1})
    world = scene(waits(LACKS.format(2)), owner, pod("needy-0", owner, {}, container(gpus=2)))
    needy = [each for each in world.objects.pods().values() if each.metadata.name == "needy-0"]
    assert told(world, needy) == ""


def test_a_group_gives_back_as_one() -> None:
    """The Workload of a group has its name, and each pod of it counts."""
    world = scenes.plain()
    pods = [m for m in world.manifests.values() if m["kind"] == "Pod"][:2]
    for each in pods:
        each["metadata"]["labels"] = {**each["metadata"]["labels"], "kueue.x-k8s.io/pod-group-name": "pod-summarizer"}
    group = holds(pods[0])
    del group["metadata"]["ownerReferences"]
    world = World([*world.manifests.values(), group, local("team-b", "cq-a"), waits(LACKS.format(4))])
    victims = [each for each in world.pods("engine") if "kueue.x-k8s.io/pod-group-name" in each.metadata.labels]
    assert len(victims) == 2
    assert "4 nvidia.com/gpu" in Quota(world).taker(victims, [])
    assert Quota(world).taker(victims[:1], []) == ""
