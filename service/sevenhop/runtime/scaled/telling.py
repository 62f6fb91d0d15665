"""What all workers have said of their clusters, in Redis: at most `TELL_EVERY_S` old while a worker has the cluster."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Callable, Iterable
from datetime import datetime, timedelta
from typing import Any

import msgspec
import redis.asyncio as aioredis
from redis.exceptions import RedisError

from sevenhop.core import views
from sevenhop.runtime.scaled.cell import Cell
from sevenhop.stores.redis_fence import to_its_end

log = logging.getLogger("sevenhop.fleet")

KEY = "sevenhop:fleet"
"""Hash of ``cluster|view`` to rows.  For people only: it is not fenced, and nothing is decided by it."""

DECIDED = ("plans", "runs", "shadow", "safety", "silences")
"""Small, and of interest whichever worker is asked."""

TOLD = ("workloads", "components", "capacity", "incidents", "alerts", "sources", *DECIDED)
TELL_EVERY_S = 5.0
SLICE_ROWS = 20
"""Of components, some milliseconds; then others have their turn."""
TELL_ALL_EVERY = 12
"""So often, of these, everything is told anew: a Redis that forgot, or a row of an earlier owner, is mended by it."""

FORGOTTEN_AFTER = timedelta(days=1)

_TOLD_AT = "@told"
_SERVED = "@served"
"""Of a partition's number: its worker has told of all clusters in it, since Redis has had this memory."""


class Fleet:
    """
    What was told, as it was read at one moment.

    Attributes:
        told_at: Cluster to when its owner last spoke; those of which nobody ever spoke are not in it.
    """

    def __init__(self, fields: dict[bytes, bytes]) -> None:
        self._rows: dict[tuple[str, str], bytes] = {}
        self.told_at: dict[str, datetime] = {}
        for field, value in fields.items():
            cluster, view = _parts(field)
            if view == _TOLD_AT:
                self.told_at[cluster] = datetime.fromisoformat(value.decode())
            else:
                self._rows[cluster, view] = value

    def rows(self, view: str, now: datetime, *, without: Iterable[str] = ()) -> list[dict[str, Any]]:
        """Rows of a listing with their cluster, and how many seconds ago its owner last spoke."""
        left_out = frozenset(without)
        found: list[dict[str, Any]] = []
        for (cluster, of), value in sorted(self._rows.items()):
            if of == view and cluster not in left_out:
                told_at = self.told_at.get(cluster)
                told_s = int((now - told_at) / timedelta(seconds=1)) if told_at is not None else None
                found += [{**row, "told_s": told_s} for row in msgspec.json.decode(value)]
        return found


class Telling:
    """
    Args:
        cells: The clusters that are ours, now.
        served: The partitions that are ours and rebuilt, now: all clusters in them are known.
    """

    def __init__(
        self,
        client: aioredis.Redis,
        cells: Callable[[], Iterable[Cell]],
        now: Callable[[], datetime],
        served: Callable[[], Iterable[int]] = tuple,
    ) -> None:
        self._client = client
        self._cells = cells
        self._served = served
        self._now = now
        self._told: dict[str, bytes] = {}
        self._begun: set[str] = set()
        self._news = asyncio.Event()

    def begin(self, cluster: str) -> None:
        """A cluster is ours from now on: it is told of at once, so that every door knows it before anybody decides."""
        self._begun.add(cluster)
        self._news.set()

    async def run(self) -> None:
        """Tell, until cancelled."""
        times = 0
        while True:
            if times % TELL_ALL_EVERY == 0:
                self._told.clear()
                with contextlib.suppress(RedisError, OSError, ValueError):  # the last of what somebody else wrote there
                    await self.forget()
            await self.tell()
            times += 1
            await self._until_next()

    async def _until_next(self) -> None:
        loop = asyncio.get_running_loop()
        until = loop.time() + TELL_EVERY_S
        while True:
            try:
                async with asyncio.timeout_at(until):
                    await self._news.wait()
            except TimeoutError:
                return
            self._news.clear()
            begun, self._begun = self._begun, set()
            await self._store({f"{cluster}|{_TOLD_AT}": self._now().isoformat().encode() for cluster in begun})

    async def tell(self) -> None:
        """What has changed since it was told, and that we are there."""
        # Before their clusters are listed: one that is rebuilt meanwhile has its turn in the next round.
        changed: dict[str, bytes] = {f"{number}|{_SERVED}": b"1" for number in self._served()}
        for cell in list(self._cells()):
            try:
                await self._tell_of(cell, changed)
            except Exception:  # a fault in a listing must not end the worker
                log.exception("what is to be told of cluster %s fails", cell.cluster)
            changed[f"{cell.cluster}|{_TOLD_AT}"] = self._now().isoformat().encode()
        if changed and await self._store(changed):
            self._told |= changed

    async def _tell_of(self, cell: Cell, changed: dict[str, bytes]) -> None:
        components = await self._components(cell)
        for view in TOLD:
            if views.VIEWS[view] is views.workloads:
                rows = components
            else:
                rows = msgspec.json.encode(rows_of(cell, view, self._now()), enc_hook=str)
            if self._told.get(f"{cell.cluster}|{view}") != rows:
                changed[f"{cell.cluster}|{view}"] = rows
            await asyncio.sleep(0)

    async def _components(self, cell: Cell) -> bytes:
        """A tenth of a second for a thousand of them: in slices, else everything would stand still for so long."""
        rows: list[dict[str, Any]] = []
        for row in views.component_rows(cell.engine, self._now()):
            rows.append({"cluster": cell.cluster, **msgspec.to_builtins(row, enc_hook=str)})
            if len(rows) % SLICE_ROWS == 0:
                await asyncio.sleep(0)
        return msgspec.json.encode(rows, enc_hook=str)

    async def _store(self, changed: dict[str, bytes]) -> bool:
        try:
            stored: Any = self._client.hset(KEY, mapping=changed)  # type: ignore[arg-type]
            await to_its_end(stored)
        except (RedisError, OSError) as error:
            log.debug("the fleet's view waits: %s", error)  # said loudly by the fence
            return False
        return True

    async def read(self, view: str) -> Fleet:
        """
        What was told of one listing.

        Raises:
            RedisError, OSError: Redis does not answer.
        """

        async def load() -> dict[bytes, bytes]:
            wanted = [field for field in await self._fields() if _parts(field)[1] in (view, _TOLD_AT)]
            if not wanted:
                return {}
            asked: Any = self._client.hmget(KEY, wanted)
            return {field: value for field, value in zip(wanted, await asked, strict=True) if value is not None}

        return Fleet(await to_its_end(load()))

    async def clusters(self) -> set[str]:
        """
        All clusters that any worker has told of.

        Raises:
            RedisError, OSError: Redis does not answer.
        """
        return {cluster for cluster, view in map(_parts, await to_its_end(self._fields())) if view == _TOLD_AT}

    async def untold(self, partitions: int) -> list[int]:
        """
        Numbers of partitions of which no worker has told since Redis began anew: there may be clusters in them.

        Raises:
            RedisError, OSError: Redis does not answer.
        """
        told = {of for of, view in map(_parts, await to_its_end(self._fields())) if view == _SERVED}
        return [number for number in range(partitions) if str(number) not in told]

    async def forget(self) -> None:
        """Drop clusters of which no worker has spoken for `FORGOTTEN_AFTER`: they are watched no more."""
        now = self._now()
        told_at = (await self.read(_TOLD_AT)).told_at
        gone = {cluster for cluster, at in told_at.items() if now - at > FORGOTTEN_AFTER}

        async def drop() -> None:
            fields = [field for field in await self._fields() if _parts(field)[0] in gone]
            if fields:
                answer: Any = self._client.hdel(KEY, *fields)
                await answer

        if gone:
            log.info("no worker has spoken of %s for long; left out of the fleet's view", ", ".join(sorted(gone)))
            await to_its_end(drop())

    async def _fields(self) -> list[bytes]:
        asked: Any = self._client.hkeys(KEY)
        found: list[bytes] = await asked
        return found


def _parts(field: bytes) -> tuple[str, str]:
    cluster, _, view = field.decode().rpartition("|")
    return cluster, view


def rows_of(cell: Cell, view: str, now: datetime) -> list[dict[str, Any]]:
    """Rows of a listing of one cluster, each with its name."""
    found = msgspec.to_builtins(views.VIEWS[view](cell.engine, now), enc_hook=str)
    return [{"cluster": cell.cluster, **row} for row in found]
