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
"""

from __future__ import annotations

import contextlib
from collections.abc import Awaitable, Callable, Mapping
from datetime import datetime
from hashlib import sha256
from pathlib import Path
from typing import Any

import msgspec
from aiohttp import web

from sevenhop.channels.door import Handler
from sevenhop.core import views
from sevenhop.core.engine import Engine
from sevenhop.core.events import Event, Silenced
from sevenhop.core.incidents.matchers import parse_matchers
from sevenhop.core.remediation import views as remediation
from sevenhop.runtime.clock import Clock
from sevenhop.runtime.control_path import SOCKET

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
        await web.UnixSite(self._runner, str(path)).start()
        path.chmod(0o600)

    async def close(self) -> None:
        if self._runner is not None:
            await self._runner.cleanup()

    async def _get(self, request: web.Request) -> web.Response:
        view = views.VIEWS.get(request.match_info["view"])
        if view is None:
            return _error(404, f"no such listing; there are {', '.join(views.VIEWS)}")
        return _json(view(self._engine, self._clock()))

    async def _explain(self, request: web.Request) -> web.Response:
        text = request.query.get("subject", "")
        try:
            subjects = views.find_subjects(self._engine, text)
        except ValueError as error:
            return _error(400, str(error))
        if not subjects:
            return _error(404, f"nothing is called {text!r}; `sevenhop get workloads` lists what is known")
        at = request.query.get("at", "")
        now = self._clock()
        if at:
            try:
                moment = datetime.fromisoformat(at)
            except ValueError:
                return _error(400, f"at: expected a time such as 2026-11-30T03:02:05Z, got {at!r}")
            return _json([views.history_of(self._engine, subject, moment) for subject in subjects[:10]])
        return _json([views.explanation_of(self._engine, subject, now) for subject in subjects[:10]])

    async def _plan(self, request: web.Request) -> web.Response:
        wanted = request.match_info["id"]
        desk = self._engine.remediation
        found = [case.id for case in desk.cases if case.id.startswith(wanted)]
        if not found:
            return _error(404, f"no plan {wanted}; `sevenhop get plans` lists them")
        if len(found) > 1:
            return _error(409, f"{len(found)} plans begin with {wanted}: {', '.join(sorted(found)[:5])}")
        return _json(remediation.describe(desk, found[0]))

    async def _trail(self, _request: web.Request) -> web.Response:
        if self._audit is None:
            return _error(404, "there is no audit trail here")
        return _json(self._audit())

    async def _report(self, _request: web.Request) -> web.Response:
        return _json(self._doctor())

    async def _silence(self, request: web.Request) -> web.Response:
        try:
            wanted = msgspec.json.decode(await request.read(), type=SilenceRequest)
            parse_matchers(wanted.matchers)
        except (msgspec.MsgspecError, ValueError) as error:
            return _error(400, str(error))
        now = self._clock()
        place = "\0".join([*wanted.matchers, wanted.author, now.isoformat()])
        silence_id = sha256(place.encode()).hexdigest()[:8]
        await self._emit(
            [
                Silenced(
                    at=now,
                    silence_id=silence_id,
                    matchers={},
                    where=tuple(wanted.matchers),
                    author=wanted.author,
                    comment=wanted.comment,
                    expires_at=wanted.expires_at,
                )
            ]
        )
        return _json({"id": silence_id, "expires_at": wanted.expires_at})

    async def _expire(self, request: web.Request) -> web.Response:
        now = self._clock()
        found = next((s for s in self._engine.desk.silences(now) if s.id == request.match_info["id"]), None)
        if found is None:
            return _error(404, f"no silence {request.match_info['id']} is in force; `sevenhop silence list` lists them")
        await self._emit(
            [
                Silenced(
                    at=now,
                    silence_id=found.id,
                    matchers={},
                    where=tuple(str(m) for m in found.matchers),
                    author=found.author,
                    comment=found.comment,
                    expires_at=now,
                )
            ]
        )
        return _json({"id": found.id, "expires_at": now})


class SilenceRequest(msgspec.Struct, forbid_unknown_fields=True):
    matchers: list[str]
    author: str
    comment: str
    expires_at: datetime


def _json(data: Any) -> web.Response:
    return web.Response(body=msgspec.json.encode(data, enc_hook=str), content_type="application/json")


def _error(status: int, message: str) -> web.Response:
    return web.Response(status=status, body=msgspec.json.encode({"error": message}), content_type="application/json")
