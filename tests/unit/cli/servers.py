"""Local servers for commands that run in the test's own thread, or in a process of their own."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager, contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, TypeVar

from sevenhop.core.objects.kinds import KINDS
from sevenhop.simulation.server import ApiServerSimulation
from sevenhop.simulation.store import Store
from tests.fakes.slack_server import SlackServer

T = TypeVar("T")


@contextmanager
def _in_a_thread(make: Callable[[], AbstractAsyncContextManager[T]]) -> Iterator[T]:
    ready: list[T] = []
    is_ready, stop, loops = threading.Event(), asyncio.Event(), []

    async def main() -> None:
        loops.append(asyncio.get_running_loop())
        async with make() as made:
            ready.append(made)
            is_ready.set()
            await stop.wait()

    thread = threading.Thread(target=asyncio.run, args=(main(),))
    thread.start()
    assert is_ready.wait(10)
    try:
        yield ready[0]
    finally:
        loops[0].call_soon_threadsafe(stop.set)
        thread.join(10)


@contextmanager
def api_server(prepare: Callable[[ApiServerSimulation], object] = lambda _: None, **options: Any) -> Iterator[str]:
    """A simulated API server; `prepare` fills it and plans its faults before it listens.  Gives its URL."""

    @asynccontextmanager
    async def serve() -> AsyncIterator[str]:
        kinds = [KINDS[name] for name in ("Node", "Pod", "Deployment.apps", "ReplicaSet.apps", "Event")]
        server = ApiServerSimulation(Store(lambda: datetime.now(UTC), kinds), **options)
        prepare(server)
        async with server.serve() as url:
            yield url

    with _in_a_thread(serve) as url:
        yield url


@contextmanager
def slack_server(**options: Any) -> Iterator[SlackServer]:
    """A local Slack."""
    with _in_a_thread(lambda: SlackServer(**options)) as server:
        yield server


def write_kubeconfig(folder: Path, url: str, token: str = "any") -> Path:
    """A kubeconfig for `url`."""
    file = folder / "kubeconfig"
    file.write_text(
        json.dumps(
            {
                "apiVersion": "v1",
                "kind": "Config",
                "current-context": "here",
                "contexts": [{"name": "here", "context": {"cluster": "here", "user": "me"}}],
                "clusters": [{"name": "here", "cluster": {"server": url}}],
                "users": [{"name": "me", "user": {"token": token}}],
            }
        )
    )
    return file
