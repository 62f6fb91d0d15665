"""What KWOK's pods and nodes do when a test tells them to fail."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tests.testbed import build, nodes
from tests.testbed.client import Object
from tests.testbed.cluster import Cluster
from tests.testbed.plugin import Pool
from tests.testbed.stages import ANNOTATION

pytestmark = pytest.mark.e2e

Until = Callable[[Object], Any]


class Pods:
    """Pods of one test that fail as told."""

    def __init__(self, cluster: Cluster, namespace: str) -> None:
        self._client, self._namespace = cluster.client, namespace

    def start(self, failure: str, **options: str) -> None:
        """Create a pod named after its failure; options are the annotations after `testbed-`."""
        annotations = {ANNOTATION: failure}
        annotations |= {f"{ANNOTATION}-{key.replace('_', '-')}": v for key, v in options.items()}
        pod = build.pod(failure, self._namespace, annotations=annotations, init_container="fetch")
        self._client.create(pod)

    def turn(self, name: str, failure: str) -> None:
        """Tell a living pod to do something else."""
        patch = {"metadata": {"annotations": {ANNOTATION: failure}}}
        self._client.patch("v1", "Pod", name, self._namespace, patch)

    def wait(self, name: str, until: Until) -> Object:
        """Return the pod once `until` holds."""
        return self._client.wait_for("v1", "Pod", name, self._namespace, until=until, timeout=15)

    def delete(self, name: str) -> None:
        """Ask for the end of a pod."""
        self._client.delete("v1", "Pod", name, self._namespace)

    def find(self, name: str) -> Object | None:
        """Return the pod if it is still there."""
        return self._client.find("v1", "Pod", name, self._namespace)


@pytest.fixture
def pods(testbed: Cluster, namespace: str, pool: Pool) -> Pods:
    """A node to run on, and pods for it."""
    pool.add_gpu_nodes(1)
    return Pods(testbed, namespace)


def first(pod: Object, kind: str = "containerStatuses") -> Object:
    """The status of the pod's first container, or nothing yet."""
    statuses: list[Object] = pod["status"].get(kind) or [{}]
    return statuses[0]


def waits(reason: str, kind: str = "containerStatuses") -> Until:
    """Does the first container wait for this reason?"""
    return lambda pod: first(pod, kind).get("state", {}).get("waiting", {}).get("reason") == reason


def runs(pod: Object) -> bool:
    """Has the pod started?"""
    return bool(pod["status"]["phase"] == "Running")


def is_ready(thing: Object) -> bool:
    """Is the condition Ready true?"""
    return nodes.condition(thing, "Ready") == "True"


def test_image_pull_fails(pods: Pods) -> None:
    """Pending; the error and the wait for the next try take turns."""
    pods.start("image-pull-fails", backoff="200ms")

    pod = pods.wait("image-pull-fails", waits("ImagePullBackOff"))

    assert pod["status"]["phase"] == "Pending"
    assert "Back-off pulling image" in first(pod)["state"]["waiting"]["message"]
    pods.wait("image-pull-fails", waits("ErrImagePull"))


def test_config_error(pods: Pods) -> None:
    """Pending, with the message that the test wants."""
    pods.start("config-error", message='secret "other" not found')

    pod = pods.wait("config-error", waits("CreateContainerConfigError"))

    assert first(pod)["state"]["waiting"]["message"] == 'secret "other" not found'


def test_creating(pods: Pods) -> None:
    """A container that is being created, and stays so."""
    pods.start("creating")

    pods.wait("creating", waits("ContainerCreating"))


def test_init_fails(pods: Pods) -> None:
    """The first init container restarts; the others wait for it."""
    pods.start("init-fails", after="100ms", backoff="100ms", message="403 from huggingface.co")

    pod = pods.wait("init-fails", lambda pod: first(pod, "initContainerStatuses").get("restartCount", 0) > 1)

    last = first(pod, "initContainerStatuses")["lastState"]["terminated"]
    assert (last["exitCode"], last["message"]) == (1, "403 from huggingface.co")
    assert first(pod)["state"]["waiting"]["reason"] == "PodInitializing"


def test_crash_loop(pods: Pods) -> None:
    """Restarts count up while the pod has been unready since one and the same moment."""
    pods.start("crash-loop", after="100ms", backoff="100ms", exit_code="3")

    early = pods.wait("crash-loop", waits("CrashLoopBackOff"))
    late = pods.wait("crash-loop", lambda pod: first(pod)["restartCount"] > 2)

    last = first(early)["lastState"]["terminated"]
    assert (last["exitCode"], last["reason"]) == (3, "Error")
    assert runs(late)
    since = [c["lastTransitionTime"] for p in (early, late) for c in p["status"]["conditions"] if c["type"] == "Ready"]
    assert since[0] == since[1]


def test_oom(pods: Pods) -> None:
    """A server that was fine is killed for its memory."""
    pods.start("healthy")
    pods.wait("healthy", is_ready)

    pods.turn("healthy", "oom")
    pod = pods.wait("healthy", waits("CrashLoopBackOff"))

    last = first(pod)["lastState"]["terminated"]
    assert (last["exitCode"], last["reason"]) == (137, "OOMKilled")
    assert not is_ready(pod)


def test_slow_load(pods: Pods) -> None:
    """Running, and Ready only after the time that the test wants."""
    pods.start("slow-load", after="1s")

    assert not is_ready(pods.wait("slow-load", runs))
    pods.wait("slow-load", is_ready)


def test_unready_and_healthy_again(pods: Pods) -> None:
    """The readiness probe fails, until the annotation says otherwise."""
    pods.start("unready")
    assert not is_ready(pods.wait("unready", runs))

    pods.turn("unready", "healthy")
    pods.wait("unready", is_ready)
    pods.turn("unready", "unready")
    pod = pods.wait("unready", lambda pod: not is_ready(pod))

    assert first(pod)["restartCount"] == 0


def test_rejected(pods: Pods) -> None:
    """Failed before any container was made."""
    pods.start("rejected", reason="Evicted", message="The node was low on resource: memory.")

    pod = pods.wait("rejected", lambda pod: pod["status"]["phase"] == "Failed")

    assert pod["status"]["reason"] == "Evicted"
    assert "containerStatuses" not in pod["status"]


def test_drain(pods: Pods) -> None:
    """A deleted pod takes its time, as one that still answers requests."""
    pods.start("healthy", drain="1s")
    pods.wait("healthy", is_ready)

    pods.delete("healthy")

    pod = pods.find("healthy")
    assert pod is not None
    assert pod["metadata"]["deletionTimestamp"]


def test_a_node_that_loses_a_gpu_keeps_its_capacity(testbed: Cluster, pool: Pool) -> None:
    """As a device plugin reports it: allocatable falls, capacity does not."""
    (name,) = pool.add_gpu_nodes(1)

    nodes.set_gpus(testbed.client, name, 7)

    status = testbed.client.get("v1", "Node", name)["status"]
    assert status["allocatable"]["nvidia.com/gpu"] == "7"
    assert status["capacity"]["nvidia.com/gpu"] == "8"


def test_a_lost_node_stays_lost_until_it_returns(testbed: Cluster, pool: Pool) -> None:
    """KWOK must not heal it; the controller manager taints it as it would any other."""
    (name,) = pool.add_gpu_nodes(1)

    nodes.lose_node(testbed.client, name)

    node = testbed.client.wait_for("v1", "Node", name, until=lambda node: node["spec"].get("taints"))
    assert nodes.condition(node, "Ready") == "Unknown"
    assert node["spec"]["taints"][0]["key"] == "node.kubernetes.io/unreachable"
    nodes.return_node(testbed.client, name)


def test_a_node_can_say_that_it_is_not_ready(testbed: Cluster, pool: Pool) -> None:
    """By its annotation; it is Ready again without it."""
    (name,) = pool.add_gpu_nodes(1)

    def annotate(value: str | None) -> None:
        patch = {"metadata": {"annotations": {ANNOTATION: value}}}
        testbed.client.patch("v1", "Node", name, "", patch)

    annotate("not-ready")
    testbed.client.wait_for("v1", "Node", name, until=lambda node: not is_ready(node))
    annotate(None)
    testbed.client.wait_for("v1", "Node", name, until=is_ready)
