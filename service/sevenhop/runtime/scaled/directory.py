"""Many clusters as one: which there are, which one is meant, and what the one that has it says."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any

import redis.asyncio as aioredis
from redis.exceptions import RedisError

from sevenhop.channels.door import RefusedError
from sevenhop.core.effects import CLUSTER
from sevenhop.core.words import inflected
from sevenhop.runtime.answers import Said, described, expiry_of, explained, listing, no_silence, refused, status_of
from sevenhop.runtime.answers import told_of as message_of
from sevenhop.runtime.clock import Clock
from sevenhop.runtime.scaled.cell import Cell
from sevenhop.runtime.scaled.questions import PATIENCE_S, Asking, Question
from sevenhop.runtime.scaled.telling import TELL_EVERY_S, Telling
from sevenhop.runtime.scaled.topics import partition_of
from sevenhop.runtime.scaled.worker import Worker
from sevenhop.stores.redis import field_of
from sevenhop.stores.redis_fence import places_with, to_its_end

MOST_NAMED = 10

TOLD_WITHIN_S = TELL_EVERY_S + 1.0
"""After Redis began anew: by then each worker that serves has told of its clusters."""

LOOK_S = 0.3

Trail = Callable[[Any], Any]
"""The audit trail of a store, for people."""


class WhichError(RefusedError):
    """Which cluster is meant cannot be said; one line that says what to add."""


class UnseenError(RefusedError):
    """Redis does not answer, so what the other workers have cannot be known."""


class Directory:
    """
    Args:
        trail: See `Trail`.
    """

    def __init__(self, worker: Worker, client: aioredis.Redis, partitions: int, clock: Clock, trail: Trail) -> None:
        self._worker = worker
        self._client = client
        self._partitions = partitions
        self._clock = clock
        self._trail = trail
        self.telling = Telling(client, self.cells, clock, self._served)
        self._asking = Asking(client, partitions, clock)

    # Which there are

    def cells(self) -> Iterator[Cell]:
        """The clusters that are ours."""
        for _, partition in sorted(self._worker.partitions.items()):
            if partition.is_ready:
                yield from partition.cells.values()

    def cell(self, cluster: str) -> Cell | None:
        return next((cell for cell in self.cells() if cell.cluster == cluster), None)

    async def clusters(self) -> list[str]:
        """
        All that any worker knows, in order of name.

        Raises:
            UnseenError: Redis does not answer.
        """
        try:
            told = await self.telling.clusters()
        except (RedisError, OSError) as error:
            raise UnseenError(f"Redis does not answer: {type(error).__name__}; ask again") from None
        return sorted(told | {cell.cluster for cell in self.cells()})

    async def untold(self) -> list[int]:
        """
        Partitions whose clusters nobody has told of since Redis began anew, so that `clusters` may lack some.

        Raises:
            UnseenError: Redis does not answer.
        """
        try:
            return await self.telling.untold(self._partitions)
        except (RedisError, OSError) as error:
            raise UnseenError(f"Redis does not answer: {type(error).__name__}; ask again") from None

    def _served(self) -> list[int]:
        return [number for number, partition in self._worker.partitions.items() if partition.is_ready]

    async def pick(self, cluster: str) -> str:
        """
        The one that is meant: the named one, else the only one; just after Redis began anew once that can be told.

        Raises:
            WhichError: None, or several.
            UnseenError: Redis does not answer.
        """
        loop = asyncio.get_running_loop()
        until = loop.time() + TOLD_WITHIN_S
        while True:
            untold = await self.untold()  # before the clusters, which may be told meanwhile
            known = await self.clusters()
            if cluster in known:
                return cluster
            is_sure = not untold or (not cluster and len(known) > 1)
            if is_sure or loop.time() > until:
                break
            await asyncio.sleep(LOOK_S)
        names = ", ".join(known[:MOST_NAMED]) + (f" and {len(known) - MOST_NAMED} more" if known[MOST_NAMED:] else "")
        lacking = untold_words(untold)
        if not known:
            raise WhichError("no edge has told of any cluster yet" + lacking)
        if cluster:
            raise WhichError(f"no cluster is called {cluster[:80]!r} here; there are {names}{lacking}")
        if len(known) > 1 or untold:
            raise WhichError(f"say which cluster, with --cluster: {names}{lacking}")
        return known[0]

    async def having(self, table: str, key: str) -> list[str]:
        """
        Clusters that keep a row, by what is stored: also while the worker that has them is being replaced.

        Raises:
            UnseenError: Redis does not answer.
        """
        fields: dict[str, list[bytes]] = {}
        of: dict[bytes, str] = {}
        for cluster in await self.clusters():
            field = field_of(cluster, table, key)
            fields.setdefault(f"p{partition_of(cluster, self._partitions)}", []).append(field)
            of[field] = cluster
        try:
            found = await to_its_end(places_with(self._client, fields))
        except (RedisError, OSError) as error:
            raise UnseenError(f"Redis does not answer: {type(error).__name__}; ask again") from None
        return sorted(of[field] for field in found)

    # What one says

    async def ask(
        self, cluster: str, what: str, query: Mapping[str, str] | None = None, patience_s: float = PATIENCE_S
    ) -> Said:
        """The answer of the worker that has a cluster, whichever that is."""
        cell = self.cell(cluster)
        if cell is not None:
            return self._answer(cell, what, query or {})
        return await self._asking.ask(cluster, what, dict(query or {}), patience_s)

    async def ask_all(
        self, clusters: Iterable[str], what: str, query: Mapping[str, str] | None = None, patience_s: float = PATIENCE_S
    ) -> dict[str, Said]:
        """The same of several, at once."""
        names = list(clusters)
        said = await asyncio.gather(*(self.ask(name, what, query, patience_s) for name in names))
        return dict(zip(names, said, strict=True))

    async def ask_where_known(self, what: str, query: Mapping[str, str], cluster: str = "") -> Said:
        """
        The answer of the named cluster; without a name, of the only one that knows what is asked about.

        Raises:
            WhichError: The name is of none.
            UnseenError: Redis does not answer.
        """
        if cluster:
            return await self.ask(await self.pick(cluster), what, query)
        asked = await self.clusters()
        if not asked:
            raise WhichError("no edge has told of any cluster yet")
        said = await self.ask_all(asked, what, query)
        found = [name for name, each in said.items() if each.status == 200]
        if len(found) == 1:
            return said[found[0]]
        if found:
            raise WhichError(f"several clusters know it, say which with --cluster: {', '.join(found[:MOST_NAMED])}")
        # One that does not answer may know it.
        return min(said.values(), key=lambda each: (each.status < 500, each.status))

    def answer(self, question: Question) -> Said | None:
        """A question of another worker; None if the cluster is not ours (any more)."""
        cell = self.cell(question.cluster)
        return self._answer(cell, question.what, question.query) if cell is not None else None

    def _answer(self, cell: Cell, what: str, query: Mapping[str, str]) -> Said:
        found = _ANSWERS.get(what)
        if found is not None:
            return found(cell, query, self._clock())
        if what == "audit":
            return Said(self._trail(cell.store))
        return refused(404, f"this worker knows no answer to {what[:40]!r}; upgrade all workers")


def untold_words(untold: Sequence[int]) -> str:
    """
    What is to be added to an answer that may lack clusters.

    >>> untold_words([])
    ''
    """
    if not untold:
        return ""
    which = f"{inflected(len(untold), 'partition')} {', '.join(map(str, untold))}"
    return f"; Redis began anew, and no worker has told since which clusters are in {which}: say it again in a minute"


def _expiry(cell: Cell, query: Mapping[str, str], now: datetime) -> Said:
    found = expiry_of(cell.engine, query.get("id", ""), now)
    return (
        Said({"cluster": cell.cluster, "event": found})
        if found is not None
        else refused(404, no_silence(query.get("id", "")))
    )


def _listing(cell: Cell, query: Mapping[str, str], now: datetime) -> Said:
    return listing(cell.engine, query.get("view", ""), now)


def _message(cell: Cell, query: Mapping[str, str], _now: datetime) -> Said:
    return Said(message_of(cell.engine, query.get("incident", "")))


_ANSWERS: dict[str, Callable[[Cell, Mapping[str, str], datetime], Said]] = {
    "get": _listing,
    "explain": lambda cell, query, now: explained(cell.engine, query, now),
    "plan": lambda cell, query, _now: described(
        cell.engine, query.get("id", ""), cell.outbox.failures.get(CLUSTER, "")
    ),
    "expiry": _expiry,
    "message": _message,
    "status": lambda cell, _query, now: Said(status_of(cell.engine, now)),
}
