"""The agent and the service with a real API server: which node a token may speak for, and what then is seen."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from sevenhop.app import build_gpu_push
from sevenhop.core.events import Event, GpusSampled
from sevenhop.core.gpu_wire import MSGPACK, VERSION, Batch, encode
from sevenhop.settings import Settings
from sevenhop.sources.gpu_push.receiver import PATH
from sevenhop.sources.kubernetes.connect import connect
from sevenhop.web.server import WebServer
from tests.e2e.gpu_node import Node
from tests.e2e.service import Service
from tests.fakes.nvml_double import build as build_double
from tests.testbed import build
from tests.testbed.cluster import Cluster
from tests.testbed.plugin import Pool
from tests.testbed.ports import free_ports
from tests.testbed.waiting import eventually

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(120)]

AUDIENCE = "sevenhop-test"


def token_of(testbed: Cluster, namespace: str, account: str, pod: str = "", audience: str = AUDIENCE) -> str:
    """A token as the kubelet asks for one: for an audience, and bound to a pod."""
    spec: dict[str, Any] = {"audiences": [audience]} if audience else {}
    if pod:
        uid = testbed.client.get("v1", "Pod", pod, namespace)["metadata"]["uid"]
        spec["boundObjectRef"] = {"apiVersion": "v1", "kind": "Pod", "name": pod, "uid": uid}
    request = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": spec}
    path = testbed.client.path("v1", "ServiceAccount", account, namespace, "token")
    status, text = testbed.client.request("POST", path, json.dumps(request).encode(), "application/json")
    assert status == 201, text
    return str(json.loads(text)["status"]["token"])


def batch_of(node: str) -> bytes:
    now = datetime.now(UTC)
    sample = GpusSampled(at=now, epoch=1, seq=1, node=node, is_whole=True, readings=())
    return encode(Batch(version=VERSION, node=node, sent_at=now, samples=(sample,)))


async def test_a_node_may_only_speak_for_itself(testbed: Cluster, pool: Pool, namespace: str) -> None:
    """Its agent's own token does; no other node's, no other pod's of the same node, none that is bound to nothing."""
    mine, other = pool.add_gpu_nodes(2)
    for account in ("gpu-agent", "tenant"):
        testbed.client.create(
            {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": account, "namespace": namespace}}
        )
        manifest = build.pod(f"{account}-x", namespace)
        manifest["spec"] |= {"serviceAccountName": account, "nodeName": mine}
        testbed.client.create(manifest)

    settings = Settings.model_validate(
        {"gpu_push": {"accounts": [f"{namespace}/gpu-agent"], "audience": AUDIENCE}, "web": {"listen": "127.0.0.1:0"}}
    )
    taken: list[Event] = []

    async def emit(events: list[Event]) -> None:
        taken.extend(events)

    agents = token_of(testbed, namespace, "gpu-agent", "gpu-agent-x")
    cases = [
        ("its own node", agents, mine, 200),
        ("another node", agents, other, 403),
        ("another pod of its node", token_of(testbed, namespace, "tenant", "tenant-x"), mine, 403),
        ("bound to no pod", token_of(testbed, namespace, "gpu-agent"), mine, 403),
        ("for another audience", token_of(testbed, namespace, "gpu-agent", "gpu-agent-x", ""), mine, 401),
        ("made up", agents[:-6] + "aaaaaa", mine, 401),
    ]
    async with await connect(str(testbed.kubeconfig())) as api:
        push = build_gpu_push(settings, api, emit, lambda: datetime.now(UTC))  # type: ignore[arg-type]
        assert push is not None
        server = WebServer(settings.web.listen, posts=push.routes())
        await server.start()
        found = []
        async with aiohttp.ClientSession() as session:
            for name, token, node, _ in cases:
                headers = {"Authorization": f"Bearer {token}", "Content-Type": MSGPACK}
                async with session.post(server.address + PATH, data=batch_of(node), headers=headers) as answer:
                    found.append((name, answer.status))
                    print(f"{name}: {answer.status} {(await answer.text()).strip()}")
                    assert token not in await answer.text()
        await server.close()

    assert found == [(name, status) for name, _, _, status in cases]
    assert [event.node for event in taken if isinstance(event, GpusSampled)] == [mine]
    assert {why.value: count for why, count in push.refused.items() if count} == {
        "other_node": 1, "other_account": 1, "not_bound": 1, "unknown_token": 2,
    }  # fmt: skip


async def test_from_a_gpu_to_the_list(
    testbed: Cluster, pool: Pool, namespace: str, start: Callable[..., Service], tmp_path: Path
) -> None:
    """Library, agent, token, API server, service: `get gpus` shows each GPU, and in a moment that one is lost."""
    (name,) = pool.add_gpu_nodes(1, gpus=2)
    testbed.client.create(
        {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "gpu-agent", "namespace": namespace}}
    )
    manifest = build.pod("agent-x", namespace)
    manifest["spec"] |= {"serviceAccountName": "gpu-agent", "nodeName": name}
    testbed.client.create(manifest)
    address = f"127.0.0.1:{free_ports(1)[0]}"
    service = start(
        only_console=True,
        more={
            "web": {"listen": address},
            "gpu_push": {"accounts": [f"{namespace}/gpu-agent"], "audience": AUDIENCE},
        },
    )
    folder = tmp_path / "node"
    folder.mkdir()
    node = Node(folder, build_double(tmp_path / "nvml"), name=name)
    (folder / "token").write_text(token_of(testbed, namespace, "gpu-agent", "agent-x"))
    node.start(f"http://{address}")
    try:
        eventually(lambda: len(service.rows("gpus")) == 2, timeout=20, what="both GPUs in the list")
        rows = service.rows("gpus")
        print(rows[0])
        assert [(row["node"], row["index"], row["pci"]) for row in rows] == [
            (name, 0, "0000:3b:00.0"),
            (name, 1, "0000:3c:00.0"),
        ]
        node.script.xid(0, 79)
        node.script.gpu(0, lost="1")
        began = time.monotonic()
        eventually(lambda: service.rows("gpus")[0]["xid"] == 79, timeout=20, every=0.05, what="the XID in the list")
        print(f"XID 79 → get gpus: {time.monotonic() - began:.2f} s")
        print(service.rows("gpus")[0])
    finally:
        assert node.process is not None
        node.process.terminate()
        assert node.process.wait(10) == 0, node.log
