"""
Many clusters at one local door: what this worker has, and what all workers have said to Redis.

    GET /get/{view}      rows of the clusters of this worker, each with its cluster
    GET /fleet/{view}    the same of all clusters, at most `TELL_EVERY_S` old, with the time of each
    GET /doctor          partitions, lag, what stalls, dead letters
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import redis.asyncio as aioredis
from aiohttp import web
from redis.exceptions import RedisError

from sevenhop.core import views
from sevenhop.runtime.clock import Clock
from sevenhop.runtime.control_path import SOCKET
from sevenhop.runtime.scaled.cell import Cell
from sevenhop.runtime.scaled.worker import Worker

log = logging.getLogger("sevenhop.fleet")

KEY = "sevenhop:fleet"
"""Hash of ``cluster|view`` to rows.  For people only: it is not fenced, and nothing is decided by it."""

TOLD = ("workloads", "components", "capacity", "incidents", "alerts", "sources")
TELL_EVERY_S = 5.0


class FleetDoor:
    """Serves until cancelled."""

    def __init__(self, worker: Worker, client: aioredis.Redis, clock: Clock, folder: Path) -> None:
        self._worker = worker
        self._client = client
        self._clock = clock
        self._folder = folder
        self._told: dict[str, bytes] = {}

    async def run(self) -> None:
        """
        Raises:
            OSError: The socket cannot be made in the state folder.
        """
        app = web.Application()
        app.add_routes(
            [
                web.get("/get/{view}", self._get),
                web.get("/fleet/{view}", self._fleet),
                web.get("/doctor", self._doctor),
            ]
        )
        self._folder.mkdir(parents=True, exist_ok=True)
        path = self._folder / SOCKET
        with contextlib.suppress(FileNotFoundError):
            path.unlink()
        runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.5)
        await runner.setup()
        try:
            await web.UnixSite(runner, str(path)).start()
            path.chmod(0o600)
            while True:
                await asyncio.sleep(TELL_EVERY_S)
                await self._tell()
        finally:
            await runner.cleanup()

    def rows(self, view: str) -> list[Any]:
        """Rows of a listing, of all clusters that are this worker's."""
        return [row for cell in self._cells() for row in self._rows_of(cell, view)]

    def _cells(self) -> Iterator[Cell]:
        for _, partition in sorted(self._worker.partitions.items()):
            if partition.is_ready:
                yield from partition.cells.values()

    def _rows_of(self, cell: Cell, view: str) -> list[Any]:
        found = msgspec.to_builtins(views.VIEWS[view](cell.engine, self._clock()), enc_hook=str)
        return [{"cluster": cell.cluster, **row} for row in found]

    async def _tell(self) -> None:
        changed: dict[Any, Any] = {}
        for cell in self._cells():
            for view in TOLD:
                rows = msgspec.json.encode(self._rows_of(cell, view))
                if self._told.get(f"{cell.cluster}|{view}") != rows:
                    changed[f"{cell.cluster}|{view}"] = rows
                await asyncio.sleep(0)
        if not changed:
            return
        try:
            answer: Any = self._client.hset(KEY, mapping=changed)
            await answer
        except (RedisError, OSError) as error:
            log.debug("the fleet's view waits: %s", error)  # said loudly by the fence
        else:
            self._told |= changed

    async def _get(self, request: web.Request) -> web.Response:
        view = request.match_info["view"]
        if view not in views.VIEWS:
            return _json({"error": f"no such listing; there are {', '.join(views.VIEWS)}"}, 404)
        return _json(self.rows(view))

    async def _fleet(self, request: web.Request) -> web.Response:
        view = request.match_info["view"]
        if view not in TOLD:
            return _json({"error": f"not told by all workers; there are {', '.join(TOLD)}"}, 404)
        try:
            asked: Any = self._client.hgetall(KEY)
            found: dict[bytes, bytes] = await asked
        except (RedisError, OSError) as error:
            return _json({"error": f"Redis does not answer: {error}"}, 503)
        rows: list[Any] = []
        for field, value in sorted(found.items()):
            if field.decode().rpartition("|")[2] == view:
                rows += msgspec.json.decode(value)
        return _json(rows)

    async def _doctor(self, _request: web.Request) -> web.Response:
        worker = self._worker
        return _json(
            {
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
                            }
                            for name, cell in partition.cells.items()
                        },
                    }
                    for number, partition in sorted(worker.partitions.items())
                },
                "lag": {str(number): lag for number, lag in sorted(worker.lag().items())},
                "stalled": worker.stalled,
                "dead_letters": worker.dead_letters,
            }
        )


def _json(data: Any, status: int = 200) -> web.Response:
    return web.Response(status=status, body=msgspec.json.encode(data, enc_hook=str), content_type="application/json")
