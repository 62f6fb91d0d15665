"""
Two replicas of the embedded runtime on one Redis: one works, the other waits for its Lease.

The Lease says who should work; the fence of the store says who can.  One that waits is ready: to take over.  A replica
that lost its Lease without noticing (stopped for half a minute, cut off from the API server) stores nothing more and
sends nothing more, and ends.
"""

from __future__ import annotations

import logging
import os
import socket
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

import redis.asyncio as aioredis
from aiohttp.web import Request, Response

from sevenhop.runtime.embedded import Emit
from sevenhop.runtime.leader import Lease
from sevenhop.settings import Settings
from sevenhop.sources.kubernetes.api import ApiServer
from sevenhop.stores.redis import RedisStore
from sevenhop.stores.redis_fence import Fence, connect
from sevenhop.stores.redis_reach import check
from sevenhop.telemetry.levels import Sample
from sevenhop.telemetry.meter import Meter
from sevenhop.telemetry.scrape import Scrape
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

    Raises:
        StoreError: Redis will never take us with these settings.
    """
    await check(_client(settings), settings.redis.url, settings.redis.ca)
    client = _client(settings)
    lease = None
    if settings.runtime.lease:
        lease = Lease(api, settings.runtime.lease, identity())
    fence = Fence(client, f"cluster:{cluster}")
    try:
        async with _door(settings, cluster, lambda: fence.stalled):
            if lease is not None:
                log.info("waiting for the lease %s/%s", lease.namespace, lease.name)
                await lease.acquire()
            await fence.claim()
            store = RedisStore(fence, cluster)
            await store.load_trail()
        yield store, Holding(lease)
    finally:
        if lease is not None:
            await lease.release()
        await client.aclose()


def _client(settings: Settings) -> aioredis.Redis:
    redis = settings.redis
    return connect(redis.url, password=redis.password.get_secret_value(), ca=str(redis.ca or ""))


def identity() -> str:
    """This replica's name in a Lease: the pod's, and the process, for a restarted one is another."""
    return f"{os.environ.get('HOSTNAME') or socket.gethostname()}-{os.getpid()}"


@asynccontextmanager
async def _door(settings: Settings, cluster: str, why_not: Callable[[], str]) -> AsyncIterator[None]:
    """
    What a replica answers while it waits.

    It is ready: to take over, and rollouts, drains and budgets count on that.  What only the one that works can do is
    turned away with the connection closed, so that whoever asks again through the Service finds that one.
    """
    web = settings.web
    if not web.listen:
        yield
        return

    async def samples() -> list[Sample]:
        return [("sevenhop_leading", (cluster,), 0.0)]

    server = WebServer(
        web.listen,
        certificate=web.tls_certificate,
        key=web.tls_key,
        posts={"/{path:.*}": _turn_away},
        gets={"/metrics": Scrape(Meter(cluster).registry, samples).serve} if settings.telemetry.metrics else {},
        ready=why_not,
    )
    await server.start()
    try:
        yield
    finally:
        await server.close()


async def _turn_away(_request: Request) -> Response:
    answer = Response(status=503, text="another replica works; ask again\n")
    answer.force_close()
    return answer
