"""
A road to the real API server on which things happen: an answer is lost, or somebody else is first.

TLS on both sides, the API server's own certificate to the service, so that a kubeconfig differs in its address alone.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import ssl
import threading
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from aiohttp import ClientConnectionError, ClientSession, ClientTimeout, TCPConnector, web
from yarl import URL

from tests.testbed.cluster import Cluster

_OF_THE_CONNECTION = {"host", "connection", "transfer-encoding", "content-length", "keep-alive"}
"""Headers that are not passed on."""


@dataclass
class Trouble:
    """
    What happens to one request that would change something (no dry run), of those whose path has a text.

    Attributes:
        where: Text in the path, such as a namespace.
        skip: So many such requests pass first.
        first: Done before it goes on to the API server.
        loses_answer: The API server carries it out, and the connection is cut before it is answered.
        met: The request that it happened to.
    """

    where: str
    skip: int = 0
    first: Callable[[], object] | None = None
    loses_answer: bool = False
    met: str = ""


class ApiProxy:
    """
    One listener in a thread of its own, until the `with` block ends.

    Attributes:
        writes: Requests that changed, or should have changed, something, as ``PATCH path``.
    """

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._troubles: list[Trouble] = []
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self.writes: list[str] = []
        self.url = ""

    def __enter__(self) -> Self:
        self._thread.start()
        asyncio.run_coroutine_threadsafe(self._start(), self._loop).result(20)
        return self

    def __exit__(self, *_: object) -> None:
        asyncio.run_coroutine_threadsafe(self._stop(), self._loop).result(20)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(10)
        self._loop.close()

    def meet(self, trouble: Trouble) -> Trouble:
        """From now on this awaits the service; once."""
        self._troubles.append(trouble)
        return trouble

    def kubeconfig(self, user: str, folder: Path) -> Path:
        """The user's kubeconfig, by way of here."""
        direct = self._cluster.kubeconfig(user)
        path = folder / f"by-proxy-{direct.name}"
        config = json.loads(direct.read_text("utf-8"))
        config["clusters"][0]["cluster"]["server"] = self.url
        path.write_text(json.dumps(config), "utf-8")
        path.chmod(0o600)
        return path

    async def _start(self) -> None:
        trusts = ssl.create_default_context(cafile=str(self._cluster.ca_file))
        self._session = ClientSession(
            connector=TCPConnector(ssl=trusts, limit=0),
            timeout=ClientTimeout(total=None),
            auto_decompress=False,
        )
        app = web.Application(client_max_size=16 * 1024 * 1024)
        app.router.add_route("*", "/{path:.*}", self._pass_on)
        self._runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1)
        await self._runner.setup()
        ours = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        ours.load_cert_chain(self._cluster.ca_file, self._cluster.ca_file.with_suffix(".key"))
        await web.TCPSite(self._runner, "127.0.0.1", 0, ssl_context=ours).start()
        self.url = f"https://127.0.0.1:{self._runner.addresses[0][1]}"

    async def _stop(self) -> None:
        await self._runner.cleanup()
        await self._session.close()
        left = asyncio.all_tasks() - {asyncio.current_task()}  # watches, which end when either side goes away
        for task in left:
            task.cancel()
        await asyncio.gather(*left, return_exceptions=True)

    async def _pass_on(self, request: web.Request) -> web.StreamResponse:
        body = await request.read()
        trouble = self._trouble_of(request, body)
        if trouble is not None and trouble.first is not None:
            await asyncio.to_thread(trouble.first)
        url = URL(self._cluster.url + request.raw_path, encoded=True)
        headers = {name: value for name, value in request.headers.items() if name.lower() not in _OF_THE_CONNECTION}
        async with self._session.request(
            request.method, url, headers=headers, data=body or None, allow_redirects=False
        ) as answer:
            if trouble is not None and trouble.loses_answer:
                await answer.read()
                assert request.transport is not None
                request.transport.abort()
                return web.Response()
            kept = {name: value for name, value in answer.headers.items() if name.lower() not in _OF_THE_CONNECTION}
            response = web.StreamResponse(status=answer.status, headers=kept)
            await response.prepare(request)
            # A watch ends when either side goes away.
            with contextlib.suppress(ConnectionResetError, ClientConnectionError):
                async for part in answer.content.iter_any():
                    await response.write(part)
                await response.write_eof()
        return response

    def _trouble_of(self, request: web.Request, body: bytes) -> Trouble | None:
        """The one that this request meets."""
        if request.method in ("GET", "HEAD") or "dryRun" in request.query or b'"dryRun"' in body:
            return None
        self.writes.append(f"{request.method} {request.path}")
        for trouble in self._troubles:
            if trouble.where not in request.path or trouble.met:
                continue
            if trouble.skip == 0:
                trouble.met = self.writes[-1]
                return trouble
            trouble.skip -= 1
        return None
