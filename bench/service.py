"""The service as `sevenhop run` composes it, in this process, against an API server in another one."""

from __future__ import annotations

import asyncio
import contextlib
import json
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from bench.rulebook import rulebook_of
from sevenhop.app import build_embedded, build_engine
from sevenhop.core.engine import Engine
from sevenhop.rulebook.load import Rulebook
from sevenhop.runtime.clock import Clock
from sevenhop.runtime.garbage import keep_pauses_short
from sevenhop.settings import Settings
from sevenhop.sources.kubernetes.connect import connect
from sevenhop.sources.kubernetes.source import KubernetesSource
from sevenhop.stores.sqlite import SqliteStore

TICK_S = 0.001


class Service:
    """
    Attributes:
        pauses_ms: By how much the loop was late for each tick of a millisecond.
        own_pauses_ms: As much of it as this process used the CPU: the rest others did, or the disk.
    """

    def __init__(self, engine: Engine, source: KubernetesSource) -> None:
        self.engine = engine
        self.source = source
        self.pauses_ms: list[float] = []
        self.own_pauses_ms: list[float] = []

    @property
    def is_listed(self) -> bool:
        """Whether every kind was listed once, or cannot be."""
        return all(row.state.value != "not_synced" for row in self.source.status())

    async def watch_pauses(self) -> None:
        """Note how late each tick comes, until cancelled."""
        loop = asyncio.get_running_loop()
        while True:
            due, used_s = loop.time() + TICK_S, time.process_time()
            await asyncio.sleep(TICK_S)
            late_s = max(0.0, loop.time() - due)
            self.pauses_ms.append(1000 * late_s)
            self.own_pauses_ms.append(1000 * min(late_s, time.process_time() - used_s))


class Server:
    """The API server's process; see `bench.api_server`."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process
        ready = self._answer()
        self.url: str = ready["url"]
        self.webhook: str = ready["webhook"]

    def ask(self, what: dict[str, Any]) -> Any:
        """Let it work; waits for the answer."""
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(what) + "\n")
        self._process.stdin.flush()
        return self._answer()

    def _answer(self) -> Any:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            raise RuntimeError(f"the API server's process ended with {self._process.wait()}")
        return json.loads(line)


@contextmanager
def api_server(*, nodes: int, deployments: int, replicas: int, others: int = 0) -> Iterator[Server]:
    """A simulated API server in a process of its own, ended with the block; its objects are five minutes old."""
    start = datetime.now(tz=UTC).replace(microsecond=0) - timedelta(minutes=5)
    sizes = {"nodes": nodes, "deployments": deployments, "replicas": replicas, "others": others}
    arguments = [part for name, value in sizes.items() for part in (f"--{name}", str(value))]
    command = [sys.executable, "-m", "bench.api_server", "--start", start.isoformat(), *arguments]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        try:
            yield Server(process)
        finally:
            process.terminate()


@asynccontextmanager
async def running_service(server: Server, folder: Path, rulebook: Rulebook | None = None) -> AsyncIterator[Service]:
    """
    A service that watches `server` and tells its webhook at once.

    Args:
        folder: For its state and the kubeconfig.
        rulebook: 100 rules if not given.
    """
    config = folder / "kubeconfig"
    config.write_text(json.dumps(kubeconfig_of(server.url)))
    settings = Settings.model_validate(
        {
            "cluster": "bench",
            "state": folder / "state",
            "receivers": {"hook": {"type": "webhook", "url": server.webhook}},
            "incidents": {"group_wait": "0s"},
        }
    )
    clock = Clock()
    store = SqliteStore(settings.state)
    engine = build_engine(settings, rulebook or rulebook_of(100), "bench")
    embedded = build_embedded(settings, engine, store, clock)
    async with await connect(str(config)) as api:
        source = KubernetesSource(api, clock=clock)
        service = Service(engine, source)
        tasks = [
            asyncio.create_task(embedded.run([source])),
            asyncio.create_task(keep_pauses_short(lambda: service.is_listed)),
        ]
        try:
            yield service
        finally:
            for task in tasks:
                task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await asyncio.gather(*tasks)
            await embedded.close()
            store.close()


async def until_listed(service: Service, within_s: float) -> None:
    """
    Wait until everything is listed and taken in.

    Raises:
        TimeoutError: It is not within that time.
    """
    async with asyncio.timeout(within_s):
        while not service.is_listed or any(  # noqa: ASYNC110
            state.value == "not_synced" for state in service.engine.inventory.state.objects.states.values()
        ):
            await asyncio.sleep(0.05)


def kubeconfig_of(url: str) -> dict[str, Any]:
    """For a server that lets everybody in."""
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "bench",
        "clusters": [{"name": "bench", "cluster": {"server": url}}],
        "users": [{"name": "bench", "user": {}}],
        "contexts": [{"name": "bench", "context": {"cluster": "bench", "user": "bench"}}],
    }
