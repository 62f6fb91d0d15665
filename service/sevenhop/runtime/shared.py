"""
Two replicas of the embedded runtime on one Redis: one works, the other waits for its Lease.

The Lease says who should work; the fence of the store says who can.  A replica that lost its Lease without noticing
(stopped for half a minute, cut off from the API server) stores nothing more and sends nothing more, and ends.
"""

from __future__ import annotations

import logging
import os
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from sevenhop.runtime.embedded import Emit
from sevenhop.runtime.leader import Lease
from sevenhop.settings import Settings
from sevenhop.sources.kubernetes.api import ApiServer
from sevenhop.stores.redis import RedisStore
from sevenhop.stores.redis_fence import Fence, connect
from sevenhop.web.server import WebServer

log = logging.getLogger("sevenhop")


class Holding:
    """A source that tells nothing: keeps the Lease, and ends the process when it is lost."""

    def __init__(self, lease: Lease | None) -> None:
        self._lease = lease

    async def run(self, emit: Emit) -> None:  # noqa: ARG002
        if self._lease is not None:
            await self._lease.hold()


@asynccontextmanager
async def shared_store(settings: Settings, api: ApiServer, cluster: str) -> AsyncIterator[tuple[RedisStore, Holding]]:
    """
    The store, once it is this replica's turn, and what keeps it so (run it with the sources).

    Waits for the Lease, if the settings name one, and for Redis.
    """
    redis = settings.redis
    client = connect(redis.url, password=redis.password.get_secret_value(), ca=str(redis.ca or ""))
    lease = None
    if settings.runtime.lease:
        lease = Lease(api, settings.runtime.lease, identity())
    try:
        if lease is not None:
            await _wait_for_turn(settings, lease)
        fence = Fence(client, f"cluster:{cluster}")
        await fence.claim()
        store = RedisStore(fence, cluster)
        await store.load_trail()
        yield store, Holding(lease)
    finally:
        if lease is not None:
            await lease.release()
        await client.aclose()


def identity() -> str:
    """This replica's name in a Lease: the pod's, and the process, for a restarted one is another."""
    return f"{os.environ.get('HOSTNAME') or socket.gethostname()}-{os.getpid()}"


async def _wait_for_turn(settings: Settings, lease: Lease) -> None:
    """A replica that waits is healthy and not ready, and says so where it is asked."""
    web = settings.web
    server = None
    if web.listen:
        server = WebServer(
            web.listen, certificate=web.tls_certificate, key=web.tls_key, ready=lambda: "another replica works"
        )
        await server.start()
    try:
        log.info("waiting for the lease %s/%s", lease.namespace, lease.name)
        await lease.acquire()
    finally:
        if server is not None:
            await server.close()
