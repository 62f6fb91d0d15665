"""
GPU nodes of the real control plane, each with an agent of its own: the double of NVIDIA's library, a kubelet that says
which pod it gave which GPU, and the token of the agent's pod.

The kubelet gives the pods that the scheduler put on its node their GPUs, lowest first, and no GPU that is out of order.
"""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
import threading
import zlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.e2e.remediation_scenes import Waiting
from tests.e2e.scenes import is_ready
from tests.fakes.kubelet import devices, kubelet, pod
from tests.fakes.nvml_double import Script
from tests.shared import ROOT
from tests.testbed import build, nodes
from tests.testbed.client import Client, Object

AUDIENCE = "sevenhop-test"
ACCOUNT = "gpu-agent"
FALLEN = "NVRM: Xid (PCI:0000:{bus:02x}:00): 79, pid='<unknown>', name=<unknown>, GPU has fallen off the bus."


def prepare_account(client: Client, namespace: str) -> None:
    """The agents' service account; `settings_of` names it."""
    client.create({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": ACCOUNT, "namespace": namespace}})


def settings_of(namespace: str, listen: str) -> dict[str, Any]:
    """Of a service, or an edge, that takes these agents' samples."""
    return {
        "web": {"listen": listen},
        "gpu_push": {"accounts": [f"{namespace}/{ACCOUNT}"], "audience": AUDIENCE},
    }


def token_of(client: Client, namespace: str, pod_name: str) -> str:
    """A token as the kubelet asks for one for the agent's pod: for an audience, and bound to the pod."""
    uid = client.get("v1", "Pod", pod_name, namespace)["metadata"]["uid"]
    spec = {
        "audiences": [AUDIENCE],
        "boundObjectRef": {"apiVersion": "v1", "kind": "Pod", "name": pod_name, "uid": uid},
    }
    request = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": spec}
    path = client.path("v1", "ServiceAccount", ACCOUNT, namespace, "token")
    status, text = client.request("POST", path, json.dumps(request).encode(), "application/json")
    assert status == 201, text
    return str(json.loads(text)["status"]["token"])


class _Kubelet:
    """
    The kubelet of one node, in a thread.

    Attributes:
        withdrawn: GPUs that the device plugin does not give out any more, by index.
        refuses: A gRPC status with which every question is answered, if any.
    """

    def __init__(self, client: Client, node: str, uuids: list[str], socket: Path) -> None:
        self._client = client
        self._node = node
        self._uuids = uuids
        self._free = list(range(len(uuids)))
        self._given: dict[tuple[str, str], list[int]] = {}
        self._socket = socket
        self.withdrawn: set[int] = set()
        self.refuses: Any = None
        self._loop = asyncio.new_event_loop()
        self._stop = asyncio.Event()
        self._there = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._lock = threading.Lock()

    def start(self) -> None:
        self._thread.start()
        assert self._there.wait(10), "the kubelet's socket"

    def stop(self) -> None:
        self._loop.call_soon_threadsafe(self._stop.set)
        self._thread.join(10)

    def holders(self) -> dict[str, list[int]]:
        """Pod (namespace/name) to the GPUs that it was given, as of now."""
        self._give()
        return {"/".join(pod): list(indexes) for pod, indexes in self._given.items()}

    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)
        self._loop.run_until_complete(self._serve())

    async def _serve(self) -> None:
        async with kubelet(self._socket, self._answer):
            self._there.set()
            await self._stop.wait()

    def _answer(self) -> Any:
        if self.refuses is not None:
            return self.refuses
        self._give()
        return b"".join(
            pod(name, devices("nvidia.com/gpu", *(self._uuids[index] for index in indexes)), namespace=namespace)
            for (namespace, name), indexes in sorted(self._given.items())
        )

    def _give(self) -> None:
        here = {
            _key(each): _gpus(each) for each in self._client.list("v1", "Pod", fields=f"spec.nodeName={self._node}")
        }
        with self._lock:
            for gone in self._given.keys() - here.keys():
                self._free += self._given.pop(gone)
            self._free.sort()
            for key, count in sorted(here.items()):
                good = [index for index in self._free if index not in self.withdrawn]
                if key in self._given or not 0 < count <= len(good):
                    continue
                self._given[key] = good[:count]
                self._free = [index for index in self._free if index not in good[:count]]


class GpuNode:
    """
    One node with its agent.

    Args:
        library: Folder of the double.
        env: More environment of the agent.
    """

    def __init__(
        self, here: Waiting, folder: Path, library: Path, gpus: int, *, env: Mapping[str, str] | None = None
    ) -> None:
        folder.mkdir(parents=True)
        self._here = here
        self._folder = folder
        self._library = library
        self._env = env or {}
        self.gpus = gpus
        self.name = here.node(gpus)
        self._pod = f"agent-{self.name}"[:60]
        mark = zlib.crc32(self.name.encode())
        self.uuids = [f"GPU-{mark:08x}-0000-0000-0000-{index:012x}" for index in range(gpus)]
        self.script = Script(folder / "nvml.txt", gpus=gpus)
        for index in range(gpus):
            self.script.gpu(index, name=here.product, uuid=self.uuids[index])
        self.kmsg = folder / "kmsg"
        self.kmsg.touch()
        manifest = build.pod(self._pod, here.namespace)
        manifest["spec"] |= {"serviceAccountName": ACCOUNT, "nodeName": self.name}
        here.client.create(manifest)
        self.kubelet = _Kubelet(here.cluster.client_for("admin"), self.name, self.uuids, folder / "kubelet.sock")
        self.process: subprocess.Popen[bytes] | None = None
        self._logs: list[Path] = []

    def token(self) -> str:
        return token_of(self._here.client, self._here.namespace, self._pod)

    def start(self, service: str, *, speaks_for: str = "") -> None:
        """Start the agent, for another node if asked; one that runs ends."""
        self.stop()
        (self._folder / "token").write_text(self.token())
        command = [sys.executable, "-m", "sevenhop.cli.main", "gpu-agent", "--service", service]
        command += ["--node", speaks_for or self.name, "--check", "0.5", "--summary", "2"]
        for option, name in (("--token", "token"), ("--kmsg", "kmsg"), ("--pod-resources", "kubelet.sock")):
            command += [option, str(self._folder / name)]
        env = {
            **os.environ, "LD_LIBRARY_PATH": str(self._library), "SEVENHOP_FAKE_NVML": str(self._folder / "nvml.txt"),
            **self._env,
        }  # fmt: skip
        self._logs.append(self._folder / f"log-{len(self._logs)}")
        with self._logs[-1].open("wb") as out:
            self.process = subprocess.Popen(command, cwd=ROOT, env=env, stderr=out)

    def stop(self) -> int:
        """SIGTERM; its exit code."""
        process, self.process = self.process, None
        if process is None:
            return 0
        process.terminate()
        try:
            return process.wait(10)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
            raise

    @property
    def log(self) -> str:
        """What the agent that runs has said; `logs` is that of all that ran."""
        return self._logs[-1].read_text("utf-8", "replace")

    @property
    def logs(self) -> str:
        return "".join(log.read_text("utf-8", "replace") for log in self._logs)

    def falls_off_the_bus(self, index: int) -> None:
        """XID 79 both ways, and the GPU answers nothing any more."""
        self.script.xid(index, 79)
        self.script.gpu(index, lost="1")
        with self.kmsg.open("a") as log:
            log.write(FALLEN.format(bus=0x3B + index) + "\n")

    def withdraw(self, index: int) -> None:
        """What the device plugin does about a GPU that is not well."""
        self.kubelet.withdrawn.add(index)
        nodes.set_gpus(self._here.client, self.name, self.gpus - len(self.kubelet.withdrawn), capacity=self.gpus)

    def is_rebooted(self) -> None:
        """All GPUs are there and well, and the plugin offers them."""
        for index in range(self.gpus):
            self.script.gpu(index, lost=None)
        self.kubelet.withdrawn.clear()
        nodes.set_gpus(self._here.client, self.name, self.gpus, capacity=self.gpus)

    def holders(self) -> Mapping[str, list[int]]:
        """Pod to the indexes of its GPUs."""
        return self.kubelet.holders()


@contextmanager
def gpu_node(
    here: Waiting, folder: Path, library: Path, gpus: int, *, env: Mapping[str, str] | None = None
) -> Iterator[GpuNode]:
    """A node whose agent is still to be started."""
    made = GpuNode(here, folder, library, gpus, env=env)
    made.kubelet.start()
    try:
        yield made
    finally:
        made.stop()
        made.kubelet.stop()


def ready(here: Waiting, labels: str, count: int = 1) -> list[Object]:
    """So many pods, all Ready."""
    return here.wait_for_pods(count, is_ready, labels)


def _key(found: Object) -> tuple[str, str]:
    return found["metadata"]["namespace"], found["metadata"]["name"]


def _gpus(found: Object) -> int:
    limits = (each.get("resources", {}).get("limits", {}) for each in found["spec"]["containers"])
    return sum(int(limit.get("nvidia.com/gpu", 0)) for limit in limits)
