"""Clusters in which something is about to happen: nodes and namespaces of their own, gone when the block ends."""

from __future__ import annotations

import contextlib
import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from tests.testbed import build, nodes
from tests.testbed.client import Client, Object
from tests.testbed.cluster import Cluster
from tests.testbed.plugin import Pool
from tests.testbed.waiting import eventually

POOL_LABEL = "sevenhop.dev/testbed-pool"


@dataclass
class Scene:
    """Nodes and one namespace of a cluster."""

    cluster: Cluster
    pool: Pool
    namespace: str

    @property
    def client(self) -> Client:
        return self.cluster.client

    def pods(self, labels: str = "") -> list[Object]:
        """Those of the namespace, without the terminating ones."""
        found = self.client.list("v1", "Pod", self.namespace, labels=labels)
        return [pod for pod in found if not pod["metadata"].get("deletionTimestamp")]

    def wait_for_pods(self, count: int, until: Callable[[Object], Any], labels: str = "") -> list[Object]:
        """Exactly so many pods, for each of which `until` holds."""

        def look() -> list[Object] | None:
            found = self.pods(labels)
            return found if len(found) == count and all(map(until, found)) else None

        return eventually(look, timeout=40, every=0.2, what=f"{count} such pods {labels}")


@contextlib.contextmanager
def scene(cluster: Cluster) -> Iterator[Scene]:
    """An empty scene; its nodes carry a label of their own, see `Scene.pool.node_selector`."""
    pool = Pool(cluster.client, {POOL_LABEL: uuid.uuid4().hex[:8]})
    name = f"test-{uuid.uuid4().hex[:8]}"
    cluster.client.create(build.namespace(name))
    try:
        yield Scene(cluster, pool, name)
    finally:
        cluster.client.delete("v1", "Namespace", name)
        nodes.kill_pods(cluster.client, name)
        for node in pool.names:
            nodes.remove_node(cluster.client, node)


def is_ready(pod: Object) -> bool:
    return nodes.condition(pod, "Ready") == "True"


def is_refused(pod: Object) -> bool:
    """Has the scheduler said that it cannot place the pod?"""
    return nodes.condition(pod, "PodScheduled") == "False"


def refused_at(pod: Object) -> datetime:
    """When it said so first, UTC, in whole seconds."""
    (found,) = [c for c in pod["status"]["conditions"] if c["type"] == "PodScheduled"]
    return datetime.fromisoformat(found["lastTransitionTime"])
