"""The worlds of the demo: what stands where, and that it is what a real control plane would take."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from sevenhop.core.objects.decode import convert
from sevenhop.core.objects.kinds import KINDS
from sevenhop.demo.stage import StageError, _load_s, build, perform
from sevenhop.demo.story import BEGINS, STORIES, KillPods, Patch, Story
from sevenhop.demo.world import Round, World, crowded
from sevenhop.simulation.clock import VirtualClock
from sevenhop.simulation.cluster import SimulatedCluster
from sevenhop.simulation.operators import KServe

ALL = pytest.mark.parametrize("story", STORIES.values(), ids=STORIES)


def built(world: World) -> SimulatedCluster:
    cluster = SimulatedCluster(VirtualClock(BEGINS - timedelta(hours=3)), load_s=_load_s)
    build(cluster, world)
    return cluster


def gpus(pod: dict[str, Any]) -> int:
    return sum(int(c["resources"].get("limits", {}).get("nvidia.com/gpu", 0)) for c in pod["spec"]["containers"])


def free(cluster: SimulatedCluster) -> dict[str, int]:
    """Free GPUs of each node that has some."""
    left = {
        node["metadata"]["name"]: int(node["status"]["allocatable"]["nvidia.com/gpu"])
        for node in cluster.store.all("Node")
        if "nvidia.com/gpu" in node["status"]["allocatable"]
    }
    for pod in cluster.store.all("Pod"):
        if pod["spec"].get("nodeName") in left:
            left[pod["spec"]["nodeName"]] -= gpus(pod)
    return left


@ALL
def test_every_object_is_what_its_kind_says(story: Story) -> None:
    """Kind and version are served ones, and the core can read it."""
    for each in story.world().rounds:
        for kind, manifest in each.items:
            row = KINDS[kind]
            assert manifest["kind"] == row.kind
            group, _, version = manifest["apiVersion"].rpartition("/")
            assert (group, version) == (row.group, row.versions[0])
            convert(row, {**manifest, "metadata": {**manifest["metadata"], "uid": "u", "resourceVersion": "1"}})


@ALL
def test_every_owner_exists_before_what_it_owns(story: Story) -> None:
    """So that whoever creates the objects in order knows the uids."""
    known: set[tuple[str, str, str]] = set()
    for each in story.world().rounds:
        for _, manifest in each.items:
            meta = manifest["metadata"]
            space = meta.get("namespace", "")
            for owner in meta.get("ownerReferences", ()):
                assert (owner["kind"], space, owner["name"]) in known
            known.add((manifest["kind"], space, meta["name"]))


@ALL
def test_only_one_node_fits_each_pod(story: Story) -> None:
    """A scheduler that prefers otherwise places alike: what has room for a pod is only the node that joined last."""
    world = story.world()
    before: dict[str, int] = {}
    for number, each in enumerate(world.rounds, 1):
        cluster = built(World(world.cluster, world.rounds[:number]))
        new = {manifest["metadata"]["name"] for kind, manifest in each.items if kind == "Node"}
        joined = [pod for pod in cluster.store.all("Pod") if gpus(pod) and pod["spec"]["nodeName"] in new]
        assert joined or number == 1
        left = max(before.values(), default=0)
        assert all(gpus(pod) > left or pod["spec"].get("nodeSelector") for pod in joined)
        before = free(cluster)
    assert before


def test_the_crowded_world_adds_up() -> None:
    """Before the story 30 of 32 are in use; after its opening one node is full and three have one free each."""
    cluster = built(crowded())
    assert free(cluster) == {"gpu-02": 1, "gpu-05": 0, "gpu-06": 1, "gpu-07": 0}
    for step in STORIES["shortage"].opening:
        for action in step.actions:
            perform(cluster, action)
        cluster.advance(timedelta(seconds=5))
    assert free(cluster) == {"gpu-02": 1, "gpu-05": 1, "gpu-06": 1, "gpu-07": 0}
    waiting = [pod["metadata"]["name"] for pod in cluster.store.all("Pod") if not pod["spec"].get("nodeName")]
    assert [name.partition("-5")[0] for name in sorted(waiting)] == ["llama-70b-decode", "notebook-8"]


def test_a_cut_by_hand_helps_the_wrong_pod() -> None:
    """What the story says of it: the controller's own choice is on gpu-06, where notebook-8 has waited longer."""
    story = STORIES["shortage"]
    assert story.decision is not None
    cluster = built(crowded())
    cluster.add(KServe)
    for step in (*story.opening, story.decision.overtaken):
        for action in step.actions:
            perform(cluster, action)
        cluster.advance(timedelta(seconds=10))
    nodes = {pod["metadata"]["name"]: pod["spec"].get("nodeName", "") for pod in cluster.store.all("Pod")}
    assert nodes["notebook-8"] == "gpu-06"
    assert sum(name.startswith("summarizer") for name in nodes) == 3
    assert [name for name, node in nodes.items() if not node and name.startswith("llama-70b-decode")]


def test_operators_take_over_a_world_as_it_stands() -> None:
    """What is built keeps its replicas, and follows its InferenceService from then on."""
    cluster = built(crowded())
    cluster.add(KServe)
    cluster.advance(timedelta(minutes=1))

    def replicas() -> int:
        return int(cluster.store.get("Deployment.apps", "docs", "summarizer-predictor")["spec"]["replicas"])

    assert replicas() == 4
    for most in (3, 4):
        limits = {"spec": {"predictor": {"maxReplicas": most}}}
        perform(cluster, Patch("InferenceService.serving.kserve.io", "docs", "summarizer", limits))
        cluster.advance(timedelta(seconds=10))
        assert replicas() == most


def test_a_story_that_acts_on_nothing_is_found_out() -> None:
    """A step whose pods do not exist is a mistake in the story, not a quiet night."""
    cluster = built(crowded())
    with pytest.raises(StageError, match="no pod in chat"):
        perform(cluster, KillPods("chat", {"app": "unheard-of"}))


def test_a_world_that_does_not_fit_is_found_out() -> None:
    """Pods that are not Ready before the story begins would be its first alert."""
    cluster = SimulatedCluster(VirtualClock(BEGINS))
    build(cluster, World("c", crowded().rounds[:1]))
    perform(cluster, Patch("Deployment.apps", "search", "ranker", {"spec": {"replicas": 1}}))
    with pytest.raises(StageError, match="not Ready: ranker"):
        build(cluster, World("c", (Round((), {}),)))
