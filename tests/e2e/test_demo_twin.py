"""The demo's story on a real control plane: the same alert, word for word, but for uids, nodes and times."""

from __future__ import annotations

import io
import re
import time
from collections.abc import Callable, Iterator
from datetime import datetime, timedelta
from pathlib import Path

import pytest

from sevenhop.core.objects.kinds import KINDS
from sevenhop.demo.manifests import Item, with_owner_uids
from sevenhop.demo.stage import REMEDIATION, open_stage
from sevenhop.demo.story import BEGINS, NO_DONOR, SHORTAGE, SURGE, Action, Create, KillPods, Patch, Story
from sevenhop.demo.world import World
from tests.e2e.scenes import is_ready
from tests.e2e.service import Service
from tests.testbed import crds, nodes
from tests.testbed.client import Client
from tests.testbed.cluster import Cluster
from tests.testbed.waiting import eventually

pytestmark = [
    pytest.mark.e2e,
    pytest.mark.timeout(240),
    pytest.mark.skipif(crds.shared_folder() is None, reason="the frameworks' CRDs are not here (SEVENHOP_SHARED)"),
]


_APART_S = 1.1
"""Who has waited longer is told by a time in whole seconds."""


@pytest.fixture(params=[SHORTAGE, SURGE, NO_DONOR], ids=lambda story: story.name)
def story(request: pytest.FixtureRequest, testbed: Cluster) -> Iterator[Story]:
    """A story of which the world stands on the control plane."""
    told: Story = request.param
    world = told.world()
    try:
        _build(testbed.client, world)
        yield told
    finally:
        _clear(testbed.client, world)


def _build(client: Client, world: World) -> None:
    uids: dict[tuple[str, str, str], str] = {}
    for now in world.rounds:
        for item in now.items:
            _create(client, item, uids)
        for (namespace, name), replicas in now.replicas.items():
            _act(client, Patch("Deployment.apps", namespace, name, {"spec": {"replicas": replicas}}))
        wanted = {
            key: replicas
            for earlier in world.rounds[: world.rounds.index(now) + 1]
            for key, replicas in earlier.replicas.items()
        }
        eventually(lambda wanted=wanted: _stand(client, wanted), timeout=40, every=0.2, what="a round of the world")  # type: ignore[misc]


def _create(client: Client, item: Item, uids: dict[tuple[str, str, str], str]) -> None:
    manifest = with_owner_uids(item.manifest, uids)
    if item.kind == "Node":
        played = {"annotations": {"kwok.x-k8s.io/node": "fake"}}
        manifest = {**manifest, "metadata": {**manifest["metadata"], **played}}
    made = client.create(manifest)
    meta = made["metadata"]
    uids[made["kind"], meta.get("namespace", ""), meta["name"]] = meta["uid"]
    if item.kind == "Node":
        client.wait_for("v1", "Node", meta["name"], until=nodes.is_schedulable)


def _stand(client: Client, wanted: dict[tuple[str, str], int]) -> bool:
    for (namespace, name), replicas in wanted.items():
        status = client.get("apps/v1", "Deployment", name, namespace).get("status", {})
        if status.get("readyReplicas", 0) != replicas:
            return False
    return all(is_ready(pod) for namespace in _spaces(wanted) for pod in client.list("v1", "Pod", namespace))


def _spaces(wanted: dict[tuple[str, str], int]) -> set[str]:
    return {namespace for namespace, _ in wanted}


def _act(client: Client, action: Action) -> None:
    if isinstance(action, KillPods):
        labels = ",".join(f"{key}={value}" for key, value in action.labels.items())
        for pod in client.list("v1", "Pod", action.namespace, labels=labels):
            if pod["spec"].get("nodeName", "") == action.node:
                client.delete("v1", "Pod", pod["metadata"]["name"], action.namespace, grace=0)
        return
    if isinstance(action, Create):
        client.create(dict(action.item.manifest))
        return
    kind = KINDS[action.kind]
    version = f"{kind.group}/{kind.versions[0]}" if kind.group else kind.versions[0]
    client.patch(version, kind.kind, action.name, action.namespace, dict(action.patch), subresource=action.subresource)


def _clear(client: Client, world: World) -> None:
    items = [
        item.manifest["metadata"]["name"] for now in world.rounds for item in now.items if item.kind == "Namespace"
    ]
    machines = [item.manifest["metadata"]["name"] for now in world.rounds for item in now.items if item.kind == "Node"]
    for name in items:
        client.delete("v1", "Namespace", name)
    for name in items:
        nodes.kill_pods(client, name)
    for name in machines:
        nodes.remove_node(client, name)
    is_gone = lambda: all(client.find("v1", "Namespace", name) is None for name in items)  # noqa: E731
    eventually(is_gone, timeout=60, every=0.3, what="the end of the world's namespaces")


async def _in_the_demo(story: Story, folder: Path) -> str:
    """What the console shows first, in the simulated cluster."""
    stream = io.StringIO()

    async def at_once(_: datetime) -> None:
        """Virtual time need not be waited for."""

    async with open_stage(story.world(), BEGINS, folder, stream) as stage:
        for step in story.opening:
            await stage.advance(BEGINS + step.at, at_once, lambda _: None)
            for action in step.actions:
                stage.act(action)
        for _ in range(20):
            if stream.getvalue():
                break
            await stage.advance(stage.clock() + timedelta(seconds=30), at_once, lambda _: None)
    return stream.getvalue()


def _normalised(text: str) -> list[str]:
    """Without times, uids and what controllers and schedulers choose: names' ends and which node."""
    text = re.sub(r"\b\d\d:\d\d(:\d\d)?\b", "TIME", text)
    text = re.sub(r"\bgpu-\d+\b", "NODE", text)
    text = re.sub(r"-[0-9a-z]{8,10}-[0-9a-z]{5}\b", "-POD", text)
    text = re.sub(r"\bPLAN [0-9a-f]{8}\b", "PLAN ID", text)  # over the donor's uid
    return [line.rstrip() for line in text.splitlines()]


def test_the_same_alert_as_in_the_demo(
    story: Story, testbed: Cluster, start: Callable[..., Service], tmp_path: Path
) -> None:
    """Simulated cluster and real control plane lead to the same message on the console."""
    import asyncio

    more = {"remediation": REMEDIATION}
    service = start(name=story.world().cluster, rules=(story.rule,), only_console=True, more=more)
    for step in story.opening:
        for action in step.actions:
            _act(testbed.client, action)
        time.sleep(_APART_S)
    real = eventually(lambda: service.console, timeout=40, every=0.1, what="the alert")
    eventually(lambda: "Look" in service.console, timeout=5, what="the whole message")
    real = service.console
    folder = tmp_path / "demo"
    folder.mkdir()
    simulated = asyncio.run(_in_the_demo(story, folder))
    print(real)

    assert _normalised(real) == _normalised(simulated)
