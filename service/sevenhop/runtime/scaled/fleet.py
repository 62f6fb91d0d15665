"""
Many clusters at one local door, on any worker: it asks the worker that has what is asked about.

    GET  /get/{view}        rows of this worker's clusters, small listings of all; with ``?cluster=`` of that one
    GET  /fleet/{view}      the same of all clusters, as their workers last told, with how long ago that is
    GET  /explain?subject=  everything about one subject, of the cluster that knows it
    GET  /plan/{id}, /audit, POST /silence, /silence/{id}/expire, /decide, /switch, /breaker   as at any service
    GET  /doctor            partitions, lag, what stalls, dead letters

Where several clusters can be meant, ``cluster`` (in the query, or in the body) says which.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import Any

import msgspec
from aiohttp import web
from redis.exceptions import RedisError

from sevenhop.channels.door import Handler, RefusedError
from sevenhop.core import views
from sevenhop.core.events import Silenced
from sevenhop.runtime.answers import Said, SilenceRequest, refused, silence_of
from sevenhop.runtime.clock import Clock
from sevenhop.runtime.control_path import SOCKET, way_to_door
from sevenhop.runtime.scaled.directory import Directory, UnseenError, WhichError
from sevenhop.runtime.scaled.fleet_front import FleetFront
from sevenhop.runtime.scaled.questions import Answering
from sevenhop.runtime.scaled.telling import DECIDED, TOLD, rows_of
from sevenhop.runtime.scaled.worker import Worker


class FleetDoor:
    """Serves until cancelled; only the user who runs the worker can connect."""

    def __init__(
        self,
        worker: Worker,
        directory: Directory,
        front: FleetFront,
        answering: Answering,
        clock: Clock,
        folder: Path,
        posts: Mapping[str, Handler],
    ) -> None:
        """
        Args:
            posts: Further paths, such as those of `Deciding`.
        """
        self._worker = worker
        self._directory = directory
        self._front = front
        self._answering = answering
        self._clock = clock
        self._folder = folder
        self._posts = posts

    async def run(self) -> None:
        """
        Raises:
            OSError: The socket cannot be made in the state folder.
        """
        app = web.Application()
        app.add_routes(
            [
                web.get("/get/{view}", _answered(self._get)),
                web.get("/fleet/{view}", _answered(self._fleet)),
                web.get("/explain", _answered(self._explain)),
                web.get("/plan/{id}", _answered(self._plan)),
                web.get("/audit", _answered(self._audit)),
                web.get("/doctor", _answered(self._doctor)),
                web.post("/silence", _answered(self._silence)),
                web.post("/silence/{id}/expire", _answered(self._expire)),
            ]
        )
        for route, handler in self._posts.items():
            app.router.add_post(route, handler)
        self._folder.mkdir(parents=True, exist_ok=True)
        path = self._folder / SOCKET
        with contextlib.suppress(FileNotFoundError):
            path.unlink()
        runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.5)
        await runner.setup()
        try:
            with way_to_door(self._folder) as way:
                await web.UnixSite(runner, way).start()
            path.chmod(0o600)
            async with asyncio.TaskGroup() as tasks:
                tasks.create_task(self._directory.telling.run(), name="telling")
                tasks.create_task(self._answering.run(), name="answering")
        finally:
            await runner.cleanup()

    async def _get(self, request: web.Request) -> Said:
        view, cluster = request.match_info["view"], request.query.get("cluster", "")
        if view not in views.VIEWS:
            return refused(404, f"no such listing; there are {', '.join(views.VIEWS)}")
        if cluster:
            said = await self._directory.ask(await self._directory.pick(cluster), "get", {"view": view})
            return Said([{"cluster": cluster, **row} for row in _plain(said.data)]) if said.status == 200 else said
        cells = list(self._directory.cells())
        rows = [row for cell in cells for row in rows_of(cell, view, self._clock())]
        if view in DECIDED:
            told = await self._directory.telling.read(view)
            rows += told.rows(view, self._clock(), without=(cell.cluster for cell in cells))
        return Said(rows)

    async def _fleet(self, request: web.Request) -> Said:
        view = request.match_info["view"]
        if view not in TOLD:
            return refused(404, f"not told by all workers; there are {', '.join(TOLD)}; or name one with --cluster")
        return Said((await self._directory.telling.read(view)).rows(view, self._clock()))

    async def _explain(self, request: web.Request) -> Said:
        query = {name: value for name, value in request.query.items() if name != "cluster"}
        return await self._directory.ask_where_known("explain", query, request.query.get("cluster", ""))

    async def _plan(self, request: web.Request) -> Said:
        query = {"id": request.match_info["id"]}
        return await self._directory.ask_where_known("plan", query, request.query.get("cluster", ""))

    async def _audit(self, request: web.Request) -> Said:
        return await self._directory.ask(await self._directory.pick(request.query.get("cluster", "")), "audit")

    async def _silence(self, request: web.Request) -> Said:
        try:
            wanted = msgspec.json.decode(await request.read(), type=SilenceRequest)
            event = silence_of(wanted, self._clock())
        except (msgspec.MsgspecError, ValueError) as error:
            return refused(400, str(error))
        await self._front.silence(event, wanted.cluster)
        return Said({"id": event.silence_id, "expires_at": wanted.expires_at})

    async def _expire(self, request: web.Request) -> Said:
        query = {"id": request.match_info["id"]}
        said = await self._directory.ask_where_known("expiry", query, request.query.get("cluster", ""))
        if said.status != 200:
            return said
        event = msgspec.convert(_plain(said.data["event"]), Silenced)
        await self._front.silence(event, said.data["cluster"])
        return Said({"id": event.silence_id, "expires_at": event.expires_at})

    async def _doctor(self, _request: web.Request) -> Said:
        return Said(doctor_of(self._worker))


def doctor_of(worker: Worker) -> dict[str, Any]:
    """What a worker says of itself."""
    return {
        "partitions": {
            str(number): {
                "ready": partition.is_ready,
                "offsets": partition.fence.offsets,
                "epoch": partition.fence.epoch,
                "forgotten": partition.fence.forgotten,
                "clusters": {
                    name: {
                        "blind": cell.sight.is_blind,
                        "term": cell.sight.term,
                        "stale_records": cell.sight.stale_records,
                        "outbox": cell.store.waiting()[0],
                        "key": worker.keys.doubt(name),
                        "failing": dict(cell.outbox.failures),
                    }
                    for name, cell in partition.cells.items()
                },
            }
            for number, partition in sorted(worker.partitions.items())
        },
        "lag": {str(number): lag for number, lag in sorted(worker.lag().items())},
        "stalled": worker.stalled,
        "dead_letters": worker.dead_letters,
        **{name: value for report in worker.reports for name, value in report().items()},
    }


def _answered(answer: Callable[[web.Request], Awaitable[Said]]) -> Handler:
    async def handle(request: web.Request) -> web.Response:
        try:
            said = await answer(request)
        except WhichError as error:
            said = refused(404, str(error))
        except (UnseenError, TimeoutError) as error:
            said = refused(503, str(error))
        except RefusedError as error:
            said = refused(409, str(error))
        except (RedisError, OSError) as error:
            said = refused(503, f"Redis does not answer: {type(error).__name__}; ask again")
        body = msgspec.json.encode(said.data, enc_hook=str)
        return web.Response(status=said.status, body=body, content_type="application/json")

    return handle


def _plain(data: Any) -> Any:
    """Of this worker's engine, or already plain from another's."""
    return msgspec.to_builtins(data, enc_hook=str)
