"""
A simulated API server in a process of its own, which goes on while others are killed.

``python -m tests.e2e.crash_cluster`` prints its base URL as its first line.  Nothing in it acts by itself: who tells
the story creates, changes and deletes objects over the API.
"""

from __future__ import annotations

import asyncio
import signal
from datetime import UTC, datetime

from sevenhop.core.objects.kinds import KINDS
from sevenhop.simulation.server import ApiServerSimulation
from sevenhop.simulation.store import Store

_SERVED = ("Node", "Pod", "Deployment.apps", "ReplicaSet.apps", "Event")
"""Few kinds: each costs every start a list."""


async def serve() -> None:
    """Until SIGTERM or SIGINT."""
    stop = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    store = Store(lambda: datetime.now(UTC), [KINDS[name] for name in _SERVED])
    async with ApiServerSimulation(store, bookmark_s=5.0).serve() as url:
        print(url, flush=True)
        await stop.wait()


if __name__ == "__main__":
    asyncio.run(serve())
