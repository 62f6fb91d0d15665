"""
Clusters in which one decode worker waits, and who could give.

Dynamo's operator cannot run on the test bed: `DynamoStandIn` does the part of it that these tests need, which is to
carry the replicas of a graph's components to their Deployments.  KubeRay's operator, the scheduler and the controllers
are the real ones.
"""

from __future__ import annotations

import contextlib
import threading
import uuid
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from tests.e2e.scenes import POOL_LABEL, Scene, is_ready, is_refused
from tests.testbed import build, nodes, operators
from tests.testbed.build import Component
from tests.testbed.client import ApiError, Client, Object
from tests.testbed.cluster import Cluster
from tests.testbed.plugin import Pool
from tests.testbed.waiting import eventually

GRAPH = ("nvidia.com/v1beta1", "DynamoGraphDeployment")
DECODE = "nvidia.com/dynamo-component=decode"
HOST = "kubernetes.io/hostname"


class Waiting(Scene):
    """A scene with a product of its own, so that nobody else's shortage is its."""

    product: str = ""

    def node(self, gpus: int) -> str:
        """One more node; its name."""
        name = f"{self.namespace}-{len(self.pool.names)}"
        self.pool.add(build.gpu_node(name, product=self.product, gpus=gpus))
        return name

    @property
    def where(self) -> dict[str, str]:
        return dict(self.pool.node_selector)

    def keeper(self, node: str, gpus: int) -> None:
        """Holds GPUs of one node, and ranks as high as who waits."""
        manifest = build.vllm_deployment(
            f"keeper-{node[-1]}", self.namespace, "org/keeper", gpus=gpus, node_selector={**self.where, HOST: node},
            annotations={"sevenhop.dev/tier": "critical"},
        )  # fmt: skip
        self.client.create(manifest)

    def plain_donor(self, name: str = "summarizer", *, spread: bool = False, tier: str = "batch", **more: Any) -> None:
        """A Deployment without any framework."""
        pods: dict[str, Any] = {"affinity": _apart(name)} if spread else {}
        given = {"gpus": 1, "replicas": 2, "node_selector": self.where, **pods, **more}
        self.client.create(
            build.vllm_deployment(name, self.namespace, f"org/{name}", annotations={"sevenhop.dev/tier": tier}, **given)
        )

    def ray_donor(
        self, name: str, *, workers: int, gpus: int, tier: str = "batch", served: bool = False, autoscaled: bool = False
    ) -> None:
        """
        A RayCluster; the real operator makes its pods.

        Args:
            served: By a RayService, which makes the cluster.
            autoscaled: With Ray's own autoscaler, which is in the head pod.
        """
        notes = {"sevenhop.dev/tier": tier}
        if served:
            manifest = build.ray_service(
                name, self.namespace, f"org/{name}", workers=workers, gpus=gpus, annotations=notes
            )
        else:
            manifest = build.ray_cluster(name, self.namespace, workers=workers, gpus=gpus, annotations=notes)
        spec = manifest["spec"]["rayClusterConfig"] if served else manifest["spec"]
        if autoscaled:
            spec["enableInTreeAutoscaling"] = True
        for group in (spec["headGroupSpec"], *spec["workerGroupSpecs"]):
            group["template"]["spec"]["nodeSelector"] = self.where
        self.client.create(manifest)

    def llama(
        self,
        gpus: int,
        replicas: int = 1,
        *,
        annotations: Mapping[str, str] | None = None,
        priority_class: str = "",
        tier: str = "critical",
    ) -> None:
        """The Dynamo graph that waits, with so many decode workers; `annotations` choose what its pods do wrong."""
        graph = [
            Component(name="Frontend", type="frontend", node_selector=self.where),
            Component(
                name="decode", type="decode", replicas=replicas, gpus=gpus, model="org/llama-70b",
                node_selector=self.where, pod_annotations=annotations or {},
            ),
        ]  # fmt: skip
        owner = {"sevenhop.dev/tier": tier, "sevenhop.dev/owner": "@llm-serving"}
        manifest = build.dgd("llama-70b", self.namespace, graph, annotations=owner, priority_class=priority_class)
        operators.create_dynamo(self.client, manifest, graph)

    def dynamo_donor(self, name: str, replicas: int, *, tier: str = "batch") -> None:
        """Another Dynamo graph, whose decode workers have one GPU each."""
        graph = [
            Component(
                name="decode", type="decode", replicas=replicas, gpus=1, model=f"org/{name}", node_selector=self.where
            )
        ]
        manifest = build.dgd(name, self.namespace, graph, annotations={"sevenhop.dev/tier": tier})
        operators.create_dynamo(self.client, manifest, graph)

    def ask_for_decode(self, replicas: int) -> None:
        """As a person does, on the graph; the stand-in carries it on."""
        graph = self.client.get(*GRAPH, "llama-70b", self.namespace)
        at = next(n for n, c in enumerate(graph["spec"]["components"]) if c["name"] == "decode")
        patch = [{"op": "replace", "path": f"/spec/components/{at}/replicas", "value": replicas}]
        self.client.patch(*GRAPH, "llama-70b", self.namespace, patch)

    def short_of_one(self, *, donor: int = 3, **llama: Any) -> None:
        """Four GPUs: a donor holds three, a keeper one; then a decode worker asks for one.  `llama` as there."""
        node = self.node(4)
        self.keeper(node, 1)
        self.plain_donor(replicas=donor)
        self.runs(donor, "app=summarizer")
        self.runs(1, f"app=keeper-{node[-1]}")
        self.llama(1, **llama)
        self.waits(1)

    def waits(self, count: int = 1, labels: str = DECODE) -> list[Object]:
        """The pods that the scheduler refuses, once there are so many."""

        def look() -> list[Object] | None:
            found = [pod for pod in self.pods(labels) if is_refused(pod)]
            return found if len(found) == count else None

        return eventually(look, timeout=40, every=0.2, what=f"{count} pods {labels} that wait")

    def runs(self, count: int, labels: str) -> list[Object]:
        """Exactly so many pods, all Ready."""
        return self.wait_for_pods(count, is_ready, labels)

    def deployment(self, name: str = "summarizer") -> Object:
        return self.client.get("apps/v1", "Deployment", name, self.namespace)

    def replicas(self, name: str = "summarizer") -> int:
        return int(self.deployment(name)["spec"]["replicas"])

    def ray(self, name: str) -> Object:
        return self.client.get("ray.io/v1", "RayCluster", name, self.namespace)


Open = Callable[[str], Waiting]


class DynamoStandIn:
    """Carries the replicas of graphs to their children, in all namespaces, until it is stopped."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def __enter__(self) -> DynamoStandIn:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join(10)

    def _run(self) -> None:
        while not self._stop.wait(0.5):
            # A graph may be deleted, or the API server be away, while it is looked at: the next round sees.
            with contextlib.suppress(ApiError, OSError):
                self._round()

    def _round(self) -> None:
        wanted = {
            (graph["metadata"]["namespace"], graph["metadata"]["name"], component["name"]): component["replicas"]
            for graph in self._client.list(*GRAPH)
            for component in graph["spec"]["components"]
        }
        for version, kind in ((GRAPH[0], "DynamoComponentDeployment"), ("apps/v1", "Deployment")):
            for child in self._client.list(version, kind, labels="nvidia.com/dynamo-component"):
                labels, meta = child["metadata"]["labels"], child["metadata"]
                name = labels["nvidia.com/dynamo-graph-deployment-name"]
                replicas = wanted.get((meta["namespace"], name, labels["nvidia.com/dynamo-component"]))
                if replicas is not None and child["spec"]["replicas"] != replicas:
                    patch = {"spec": {"replicas": replicas}}
                    self._client.patch(version, kind, meta["name"], meta["namespace"], patch)


@contextlib.contextmanager
def waiting_scene(cluster: Cluster, name: str, product: str = "") -> Iterator[Waiting]:
    """An empty scene, in a namespace that begins with its name."""
    namespace = f"{name}-{uuid.uuid4().hex[:5]}"
    pool = Pool(cluster.client, {POOL_LABEL: namespace})
    cluster.client.create(build.namespace(namespace))
    here = Waiting(cluster, pool, namespace)
    here.product = product or f"NVIDIA-{namespace}"
    try:
        yield here
    finally:
        cluster.client.delete("v1", "Namespace", namespace)
        nodes.kill_pods(cluster.client, namespace)
        for node in pool.names:
            nodes.remove_node(cluster.client, node)


@contextlib.contextmanager
def opened_scenes(cluster: Cluster) -> Iterator[Open]:
    """Opens scenes by name, which end with the block."""
    with contextlib.ExitStack() as opened:
        yield lambda name: opened.enter_context(waiting_scene(cluster, name))


def _apart(name: str) -> dict[str, Any]:
    """One pod of this app on each node."""
    term = {"labelSelector": {"matchLabels": {"app": name}}, "topologyKey": HOST}
    return {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
