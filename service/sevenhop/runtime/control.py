"""
The local door of a running service: HTTP over a unix socket in the state folder, for the command line on the same host.

    GET  /get/{view}              rows
    GET  /explain?subject=&at=    everything about one subject
    GET  /doctor                  sources, outbox, rulebook
    GET  /plan/{id}               everything about one plan; a prefix of its id will do
    GET  /audit                   the audit trail, a line each, and what is wrong with it
    POST /silence                 {"matchers": [...], "author", "comment", "expires_at"}
    POST /silence/{id}/expire
    POST /decide, /switch, /breaker   see `deciding`

Whoever names a ``cluster`` and means another one than this service watches is told so.
"""

from __future__ import annotations

import contextlib
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import Any

import msgspec
from aiohttp import web

from sevenhop.channels.door import Handler
from sevenhop.core.effects import CLUSTER
from sevenhop.core.engine import Engine
from sevenhop.core.events import Event
from sevenhop.runtime.answers import (
    Said,
    SilenceRequest,
    described,
    expiry_of,
    explained,
    listing,
    no_silence,
    refused,
    silence_of,
)
from sevenhop.runtime.clock import Clock
from sevenhop.runtime.control_path import SOCKET, way_to_door

Doctor = Callable[[], dict[str, Any]]
Audit = Callable[[], dict[str, Any]]


class Control:
    """Serves until closed; only the user who runs the service can connect."""

    def __init__(
        self,
        engine: Engine,
        emit: Callable[[list[Event]], Awaitable[None]],
        clock: Clock,
        doctor: Doctor,
        *,
        audit: Audit | None = None,
        posts: Mapping[str, Handler] | None = None,
    ) -> None:
        """
        Args:
            audit: The trail, as the store has it.
            posts: Further paths, such as those of `Deciding`.
        """
        self._engine = engine
        self._emit = emit
        self._clock = clock
        self._doctor = doctor
        self._audit = audit
        self._posts = dict(posts or {})
        self._runner: web.AppRunner | None = None

    async def start(self, folder: Path) -> None:
        """
        Raises:
            OSError: The socket cannot be made.
        """
        app = web.Application()
        app.add_routes(
            [
                web.get("/get/{view}", self._get),
                web.get("/explain", self._explain),
                web.get("/doctor", self._report),
                web.get("/plan/{id}", self._plan),
                web.get("/audit", self._trail),
                web.post("/silence", self._silence),
                web.post("/silence/{id}/expire", self._expire),
            ]
        )
        for route, handler in self._posts.items():
            app.router.add_post(route, handler)
        path = folder / SOCKET
        with contextlib.suppress(FileNotFoundError):
            path.unlink()  # of an earlier process: the folder's lock says that none is running
        # The default would wait a minute for an answer that nobody reads any more.
        self._runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.5)
        await self._runner.setup()
        with way_to_door(folder) as way:
            await web.UnixSite(self._runner, way).start()
        path.chmod(0o600)

    async def close(self) -> None:
        if self._runner is not None:
            await self._runner.cleanup()

    async def _get(self, request: web.Request) -> web.Response:
        return self._of_ours(request, lambda: listing(self._engine, request.match_info["view"], self._clock()))

    async def _explain(self, request: web.Request) -> web.Response:
        return self._of_ours(request, lambda: explained(self._engine, request.query, self._clock()))

    async def _plan(self, request: web.Request) -> web.Response:
        failing = self._doctor().get("outbox", {}).get("failing", {}).get(CLUSTER, "")
        return self._of_ours(request, lambda: described(self._engine, request.match_info["id"], failing))

    async def _trail(self, request: web.Request) -> web.Response:
        audit = self._audit
        if audit is None:
            return _shown(refused(404, "there is no audit trail here"))
        return self._of_ours(request, lambda: Said(audit()))

    async def _report(self, _request: web.Request) -> web.Response:
        return _shown(Said(self._doctor()))

    async def _silence(self, request: web.Request) -> web.Response:
        try:
            wanted = msgspec.json.decode(await request.read(), type=SilenceRequest)
            event = silence_of(wanted, self._clock())
        except (msgspec.MsgspecError, ValueError) as error:
            return _shown(refused(400, str(error)))
        if why := self._not_ours(wanted.cluster):
            return _shown(why)
        await self._emit([event])
        return _shown(Said({"id": event.silence_id, "expires_at": wanted.expires_at}))

    async def _expire(self, request: web.Request) -> web.Response:
        if why := self._not_ours(request.query.get("cluster", "")):
            return _shown(why)
        event = expiry_of(self._engine, request.match_info["id"], self._clock())
        if event is None:
            return _shown(refused(404, no_silence(request.match_info["id"])))
        await self._emit([event])
        return _shown(Said({"id": event.silence_id, "expires_at": event.expires_at}))

    def _of_ours(self, request: web.Request, answer: Callable[[], Said]) -> web.Response:
        return _shown(self._not_ours(request.query.get("cluster", "")) or answer())

    def _not_ours(self, cluster: str) -> Said | None:
        own = self._engine.remediation.cluster
        if cluster in ("", own):
            return None
        return refused(404, f"this service watches {own}, not {cluster[:80]}")


def _shown(said: Said) -> web.Response:
    body = msgspec.json.encode(said.data, enc_hook=str)
    return web.Response(status=said.status, body=body, content_type="application/json")
