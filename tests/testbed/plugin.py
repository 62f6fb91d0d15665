"""pytest fixtures: one cluster for the session, a namespace and nodes of its own for each test.

A `conftest.py` takes them with

    from tests.testbed import plugin

    def pytest_configure(config):
        if not config.pluginmanager.has_plugin("tests.testbed.plugin"):
            config.pluginmanager.register(plugin, "tests.testbed.plugin")

which several may do: it stays one cluster. Where its programs cannot be built the tests are skipped
with the reason, or fail if CI is set: there nobody reads why a test was skipped.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import pytest

from tests.shared import missing
from tests.testbed import binaries, build, crds, nodes
from tests.testbed.client import Client, Object
from tests.testbed.cluster import Cluster

_POOL = "sevenhop.dev/testbed-pool"
_failure = pytest.StashKey[str]()


@dataclass
class Pool:
    """
    The nodes of one test; they go when it ends.

    Attributes:
        node_selector: Puts a pod on these nodes and no others.
    """

    client: Client
    node_selector: Mapping[str, str]
    names: list[str] = field(default_factory=list)

    def add(self, *manifests: Object) -> list[str]:
        """Add nodes, give them the pool's label, and return their names once they are Ready."""
        for manifest in manifests:
            manifest["metadata"]["labels"].update(self.node_selector)
            self.names.append(manifest["metadata"]["name"])
        return nodes.add_nodes(self.client, manifests)

    def add_gpu_nodes(self, count: int, **how: Any) -> list[str]:
        """Add nodes ``gpu-00`` and so on; `how` goes to `build.gpu_node`."""
        first = len(self.names)
        names = [f"gpu-{number:02}" for number in range(first, first + count)]
        return self.add(*(build.gpu_node(name, **how) for name in names))


def pytest_collection_finish(session: pytest.Session) -> None:
    """Build what the collected tests need now: a test's time limit would end a cold build."""
    if session.config.option.collectonly:
        return
    if not any("testbed" in getattr(item, "fixturenames", ()) for item in session.items):
        return
    reporter = session.config.pluginmanager.get_plugin("terminalreporter")
    say = reporter.write_line if reporter else lambda _: None
    if crds.shared_folder() is None:
        say(crds.NOT_SHARED)
    try:
        for part in binaries.PARTS:
            binaries.ensure(part, say)
    except binaries.BuildFailed as failure:
        session.config.stash[_failure] = str(failure)


@pytest.fixture(scope="session")
def testbed(request: pytest.FixtureRequest) -> Iterator[Cluster]:
    """A running cluster with the CRDs of all frameworks and the KubeRay operator, and no nodes."""
    failure = request.config.stash.get(_failure, None)
    if failure is not None:
        missing(f"the test bed cannot be built: {failure}")
    with Cluster(operator=True, frameworks=None) as cluster:
        yield cluster


@pytest.fixture
def pool(testbed: Cluster) -> Iterator[Pool]:
    """The nodes of this test, none to begin with."""
    pool = Pool(testbed.client, {_POOL: uuid.uuid4().hex[:8]})
    yield pool
    for name in pool.names:
        nodes.remove_node(testbed.client, name)


@pytest.fixture
def namespace(testbed: Cluster, pool: Pool) -> Iterator[str]:
    """
    A fresh namespace; at the end its pods are gone at once, and everything else some seconds later.

    It uses `pool` so that it ends before the nodes do, and no controller starts pods anew.
    """
    name = f"test-{uuid.uuid4().hex[:8]}"
    testbed.client.create(build.namespace(name))
    yield name
    testbed.client.delete("v1", "Namespace", name)  # from now on nothing can be created in it,
    nodes.kill_pods(testbed.client, name)  # but it takes 5 s until it is emptied
