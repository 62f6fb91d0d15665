"""Objects of the frameworks become pods, through the real operator or one that is played."""

from __future__ import annotations

import pytest

from tests.testbed import build, crds, operators
from tests.testbed.build import Component
from tests.testbed.client import ApiError, Object
from tests.testbed.cluster import OPERATOR, Cluster
from tests.testbed.plugin import Pool
from tests.testbed.test_stages import is_ready
from tests.testbed.waiting import eventually

pytestmark = pytest.mark.e2e

needs_real_crds = pytest.mark.skipif(
    crds.shared_folder() is None, reason="the frameworks' CRDs are not here (SEVENHOP_SHARED)"
)

GRAPH = [
    Component(name="Frontend", type="frontend"),
    Component(name="prefill", type="prefill", gpus=1, model="org/model"),
    Component(name="decode", type="decode", replicas=2, gpus=2, model="org/model", scaling_adapter=True),
]


def ready_pods(cluster: Cluster, namespace: str, count: int) -> list[Object]:
    """Wait for exactly so many pods, all Ready, and return them by name."""

    def look() -> list[Object] | None:
        found = cluster.client.list("v1", "Pod", namespace)
        return found if len(found) == count and all(is_ready(pod) for pod in found) else None

    found = eventually(look, what=f"{count} ready pods")
    return sorted(found, key=lambda pod: str(pod["metadata"]["name"]))


def owners(cluster: Cluster, thing: Object) -> list[str]:
    """The kinds above a thing, from its owner to the root."""
    kinds = []
    while references := thing["metadata"].get("ownerReferences"):
        (owner,) = references
        kinds.append(owner["kind"])
        namespace = thing["metadata"]["namespace"]
        thing = cluster.client.get(owner["apiVersion"], owner["kind"], owner["name"], namespace)
        assert thing["metadata"]["uid"] == owner["uid"]
    return kinds


def label(pods: list[Object], key: str) -> set[str]:
    """The values of one label."""
    return {pod["metadata"]["labels"].get(key, "") for pod in pods}


def test_kuberay_makes_pods_of_a_cluster(testbed: Cluster, namespace: str, pool: Pool) -> None:
    """By the real operator."""
    pool.add_gpu_nodes(1)
    testbed.client.create(build.ray_cluster("ray", namespace, workers=2, gpus=1))

    pods = ready_pods(testbed, namespace, 3)

    assert label(pods, "ray.io/node-type") == {"head", "worker"}
    assert owners(testbed, pods[0]) == ["RayCluster"]
    testbed.client.wait_for(
        "ray.io/v1",
        "RayCluster",
        "ray",
        namespace,
        until=lambda ray: ray.get("status", {}).get("state") == "ready",
    )


def test_a_ray_service_can_be_given_its_status(testbed: Cluster, namespace: str, pool: Pool) -> None:
    """The operator finds no dashboard, so tests say it, while the operator cannot object."""
    pool.add_gpu_nodes(1)
    testbed.client.create(build.ray_service("serve", namespace, "org/model"))
    ready_pods(testbed, namespace, 2)
    (cluster,) = testbed.client.list("ray.io/v1", "RayCluster", namespace)

    with testbed.without(OPERATOR):
        active = {"rayClusterName": cluster["metadata"]["name"]}
        patch: Object = {"status": {"activeServiceStatus": active}}
        testbed.client.patch("ray.io/v1", "RayService", "serve", namespace, patch, subresource="status")
        stored = testbed.client.get("ray.io/v1", "RayService", "serve", namespace)

    assert stored["status"]["activeServiceStatus"]["rayClusterName"] == active["rayClusterName"]


@needs_real_crds
def test_dynamo_through_deployments(testbed: Cluster, namespace: str, pool: Pool) -> None:
    """The chain of the component backend, accepted by the real CRDs."""
    pool.add_gpu_nodes(1)
    operators.create_dynamo(testbed.client, build.dgd("llama", namespace, GRAPH), GRAPH)

    pods = ready_pods(testbed, namespace, 4)

    assert owners(testbed, pods[0]) == [
        "ReplicaSet",
        "Deployment",
        "DynamoComponentDeployment",
        "DynamoGraphDeployment",
    ]
    assert label(pods, "nvidia.com/dynamo-graph-deployment-name") == {"llama"}
    assert label(pods, "nvidia.com/dynamo-component") == {"Frontend", "prefill", "decode"}


@needs_real_crds
def test_dynamo_through_grove(testbed: Cluster, namespace: str, pool: Pool) -> None:
    """The chain of a multinode component: two replicas of a leader and a worker."""
    pool.add_gpu_nodes(1)
    graph = [GRAPH[0], Component(name="decode", type="decode", replicas=2, nodes=2, gpus=2)]
    operators.create_dynamo(testbed.client, build.dgd("llama", namespace, graph), graph, grove=True)

    pods = ready_pods(testbed, namespace, 5)

    assert owners(testbed, pods[0]) == [
        "PodClique",
        "PodCliqueScalingGroup",
        "PodCliqueSet",
        "DynamoGraphDeployment",
    ]
    assert owners(testbed, pods[-1]) == ["PodClique", "PodCliqueSet", "DynamoGraphDeployment"]


@needs_real_crds
def test_kserve(testbed: Cluster, namespace: str, pool: Pool) -> None:
    """A raw deployment with its autoscaler."""
    pool.add_gpu_nodes(1)
    service = build.inference_service("summarizer", namespace, "hf://org/model", min_replicas=2)
    operators.create_kserve(testbed.client, service)

    pods = ready_pods(testbed, namespace, 2)

    assert owners(testbed, pods[0]) == ["ReplicaSet", "Deployment", "InferenceService"]
    assert len(testbed.client.list("autoscaling/v2", "HorizontalPodAutoscaler", namespace)) == 1


@needs_real_crds
def test_leader_worker_set(testbed: Cluster, namespace: str, pool: Pool) -> None:
    """A worker's owners pass through its leader's pod."""
    pool.add_gpu_nodes(1)
    big = build.leader_worker_set("big", namespace, "org/model", replicas=2, size=2, gpus=2)
    operators.create_lws(testbed.client, big)

    pods = ready_pods(testbed, namespace, 4)

    assert [pod["metadata"]["name"] for pod in pods] == ["big-0", "big-0-1", "big-1", "big-1-1"]
    assert owners(testbed, pods[1]) == ["StatefulSet", "Pod", "StatefulSet", "LeaderWorkerSet"]


@needs_real_crds
def test_the_crds_are_the_real_ones(testbed: Cluster, namespace: str) -> None:
    """They refuse what the frameworks refuse."""
    graph = build.dgd("llama", namespace, GRAPH)
    graph["spec"]["components"][0]["type"] = "no-such-type"

    with pytest.raises(ApiError, match="Unsupported value"):
        testbed.client.create(graph, dry_run=True)


@needs_real_crds
def test_an_older_dynamo() -> None:
    """A cluster may serve the alpha version alone, as operators up to 1.1 have it."""
    with Cluster(frameworks=["dynamo"], serve_only={"nvidia.com": "v1alpha1"}) as cluster:
        graph = build.dgd("llama", "default", GRAPH, version="v1alpha1")
        operators.create_dynamo(cluster.client, graph, GRAPH)

        found = cluster.client.list("nvidia.com/v1alpha1", "DynamoComponentDeployment", "default")
        assert len(found) == len(GRAPH)
        with pytest.raises(ApiError, match="404"):
            cluster.client.list("nvidia.com/v1beta1", "DynamoGraphDeployment")
