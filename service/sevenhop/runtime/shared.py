"""
Two replicas of the embedded runtime on one Redis: one works, the other waits for its Lease.

The Lease says who should work; the fence of the store says who can.  One that waits is ready: to take over.  A replica
that lost its Lease without noticing (stopped for half a minute, cut off from the API server) stores nothing more and
sends nothing more, and ends.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import socket
from collections.abc import AsyncIterator, Awaitable, Callable
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

_RELEASE_WITHIN_S = 2.0


class Holding:
    """
    Keeps a Lease from when it is made, and is a source that ends the process when it is lost.

    Not only from when sources run: until then the state is read and channels are asked what they show, which may take
    longer than a Lease lasts.
    """

    def __init__(self, lease: Lease | None) -> None:
        self._lease = lease
        self._renewing = asyncio.create_task(lease.hold(), name="lease") if lease is not None else None

    async def run(self, emit: Emit) -> None:  # noqa: ARG002  tells nothing
        await self._held()

    async def meanwhile(self, work: Awaitable[object]) -> None:
        """
        Do this while the Lease is ours.

        Raises:
            LeaseLostError: It was lost before that was done, which is then given up.
        """
        working = asyncio.ensure_future(work)
        try:
            await asyncio.wait({working, *self._tasks()}, return_when=asyncio.FIRST_COMPLETED)
            if not working.done():
                await self._held()
            await working
        finally:
            working.cancel()
            await asyncio.wait({working})

    async def close(self) -> None:
        """Let another replica have it at once."""
        for task in self._tasks():
            task.cancel()
            await asyncio.wait({task})  # first: what it has under way would take the Lease again
            if not task.cancelled():
                task.exception()  # told where it is run, if it still is
        if self._lease is not None:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(_RELEASE_WITHIN_S):
                    await self._lease.release()

    async def _held(self) -> None:
        for task in self._tasks():
            await asyncio.shield(task)  # a stop renews it to its end, where `close` lets it go

    def _tasks(self) -> list[asyncio.Task[None]]:
        return [] if self._renewing is None else [self._renewing]


@asynccontextmanager
async def shared_store(settings: Settings, api: ApiServer, cluster: str) -> AsyncIterator[tuple[RedisStore, Holding]]:
    """
    The store, once it is this replica's turn, and what keeps it so (run it with the sources).

    Waits for the Lease, if the settings name one, and for Redis.

    Raises:
        StoreError: Redis will never take us with these settings.
        LeaseLostError: While we waited for Redis.  The process has to end: its claim is under way, and would take the
            place from the one that has the Lease now.
    """
    await check(_client(settings), settings.redis.url, settings.redis.ca)
    client = _client(settings)
    lease = Lease(api, settings.runtime.lease, identity()) if settings.runtime.lease else None
    fence = Fence(client, f"cluster:{cluster}")
    holding = None
    try:
        async with door_of_waiting(settings, cluster, lambda: fence.stalled):
            if lease is not None:
                log.info("waiting for the lease %s/%s", lease.namespace, lease.name)
                await lease.acquire()
            holding = Holding(lease)
            await holding.meanwhile(fence.claim())
            store = RedisStore(fence, cluster)
            await store.load_trail()
        yield store, holding
    finally:
        if holding is not None:
            await holding.close()
        await client.aclose()


def _client(settings: Settings) -> aioredis.Redis:
    redis = settings.redis
    return connect(redis.url, password=redis.password.get_secret_value(), ca=str(redis.ca or ""))


def identity() -> str:
    """This replica's name in a Lease: the pod's, and the process, for a restarted one is another."""
    return f"{os.environ.get('HOSTNAME') or socket.gethostname()}-{os.getpid()}"


@asynccontextmanager
async def door_of_waiting(settings: Settings, cluster: str, why_not: Callable[[], str]) -> AsyncIterator[str]:
    """
    What a replica answers while it waits; gives its address, empty where the settings want no door.

    It is ready: to take over, and rollouts, drains and budgets count on that.  What only the one that works can do is
    turned away with the connection closed, so that whoever asks again through the Service finds that one.
    """
    web = settings.web
    if not web.listen:
        yield ""
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
        yield server.address
    finally:
        await server.close()


async def _turn_away(_request: Request) -> Response:
    answer = Response(status=503, text="another replica works; ask again\n")
    answer.force_close()
    return answer
