"""What all workers have said: of which cluster, and how long ago."""

from __future__ import annotations

import asyncio
import json
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace

import pytest

from sevenhop.core import views
from sevenhop.core.engine import Engine
from sevenhop.core.incidents.settings import DeskSettings
from sevenhop.core.inventory.policy import Policy
from sevenhop.runtime.scaled.cell import Cell
from sevenhop.runtime.scaled.telling import Fleet, Telling

NOON = datetime(2026, 11, 30, 12, tzinfo=UTC)


def fleet(*told: tuple[str, str, float | None]) -> Fleet:
    """Of (cluster, workload, seconds ago or None)."""
    fields: dict[bytes, bytes] = {}
    for cluster, workload, ago_s in told:
        rows = [{"cluster": cluster, "workload": workload}]
        fields[f"{cluster}|workloads".encode()] = json.dumps(rows).encode()
        fields[f"{cluster}|plans".encode()] = b"[]"
        if ago_s is not None:
            fields[f"{cluster}|@told".encode()] = (NOON - timedelta(seconds=ago_s)).isoformat().encode()
    return Fleet(fields)


def test_each_row_says_how_old_it_is() -> None:
    """What a worker said that has died since is not taken for what is; unknown is not new."""
    said = fleet(("b", "llama", 90), ("a", "qwen", 3.9), ("c", "old", None)).rows("workloads", NOON)
    assert [(row["cluster"], row["workload"], row["told_s"]) for row in said] == [
        ("a", "qwen", 3),
        ("b", "llama", 90),
        ("c", "old", None),
    ]


def test_rows_of_ours_are_left_to_us() -> None:
    """Of a worker's own clusters its own engine tells, and other listings are not mixed in."""
    said = fleet(("a", "qwen", 1), ("b", "llama", 1))
    assert [row["cluster"] for row in said.rows("workloads", NOON, without=["a"])] == ["b"]
    assert said.rows("plans", NOON) == []


def test_a_name_with_the_separator_in_it() -> None:
    """Names of clusters are free text."""
    said = fleet(("eu|1", "llama", 1))
    assert [row["cluster"] for row in said.rows("workloads", NOON)] == ["eu|1"]
    assert list(said.told_at) == ["eu|1"]


class Memory:
    """As much of Redis as the telling uses."""

    def __init__(self) -> None:
        self.fields: dict[bytes, bytes] = {}

    async def hset(self, _key: str, mapping: dict[str, bytes]) -> None:
        self.fields |= {name.encode(): value for name, value in mapping.items()}

    async def hkeys(self, _key: str) -> list[bytes]:
        return list(self.fields)

    async def hmget(self, _key: str, fields: list[bytes]) -> list[bytes | None]:
        return [self.fields.get(field) for field in fields]

    async def hdel(self, _key: str, *fields: bytes) -> None:
        for field in fields:
            del self.fields[field]


def cell(name: str) -> Cell:
    engine = Engine(name, (), (), Policy(), DeskSettings(receivers=("slack",)))
    return SimpleNamespace(cluster=name, engine=engine)  # type: ignore[return-value]  # all that is asked of one


async def test_a_cluster_that_is_watched_no_more_is_forgotten() -> None:
    """A day after the last word of it; one that is told of stays, and so does one that may be taken over still."""
    redis, ours, now = Memory(), [cell("gone"), cell("kept")], [NOON]
    telling = Telling(redis, lambda: ours, lambda: now[0])  # type: ignore[arg-type]
    await telling.tell()
    assert await telling.clusters() == {"gone", "kept"}
    ours.pop(0)
    for hours in (23, 25):
        now[0] = NOON + timedelta(hours=hours)
        await telling.tell()
        await telling.forget()
        assert await telling.clusters() == ({"gone", "kept"} if hours == 23 else {"kept"})
    assert {field.rpartition(b"|")[0] for field in redis.fields} == {b"kept"}


async def test_a_new_cluster_is_told_of_at_once() -> None:
    """Whoever decides about it the moment after need not wait for the next round."""
    redis, ours = Memory(), [cell("a")]
    telling = Telling(redis, lambda: ours, lambda: NOON)  # type: ignore[arg-type]
    running = asyncio.create_task(telling.run())
    try:
        async with asyncio.timeout(2):  # shorter than a round
            while await telling.clusters() != {"a"}:  # noqa: ASYNC110  what is waited for has no event
                await asyncio.sleep(0.001)
            telling.begin("b")
            while await telling.clusters() != {"a", "b"}:  # noqa: ASYNC110
                await asyncio.sleep(0.001)
    finally:
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)


async def test_partitions_whose_clusters_are_all_told_of() -> None:
    """Also one without any; after Redis forgot, none is until its worker has told again."""
    redis, served = Memory(), [0]
    telling = Telling(redis, lambda: [cell("2")], lambda: NOON, lambda: served)  # type: ignore[arg-type]
    assert await telling.untold(3) == [0, 1, 2]
    await telling.tell()
    assert await telling.untold(3) == [1, 2]
    assert await telling.clusters() == {"2"}
    served.append(1)
    redis.fields.clear()
    assert await telling.untold(3) == [0, 1, 2]
    await telling.tell()
    assert await telling.untold(3) == [2]


async def test_what_is_read_of_one_listing() -> None:
    """Only that listing leaves Redis: the others may be large."""
    redis = Memory()
    telling = Telling(redis, lambda: [cell("a")], lambda: NOON)  # type: ignore[arg-type]
    await telling.tell()
    told = await telling.read("safety")
    assert [(row["cluster"], row["what"], row["told_s"]) for row in told.rows("safety", NOON)] == [
        ("a", "kill switch", 0),
        ("a", "circuit breaker", 0),
    ]
    assert told.rows("workloads", NOON) == []


async def test_a_listing_that_fails_ends_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """The worker goes on, other clusters are told of, and this one is still known: people decide about it."""

    def fails(_engine: Engine, _now: datetime) -> None:
        raise ZeroDivisionError("a fault of ours")

    redis, ours = Memory(), [cell("a"), cell("b")]
    monkeypatch.setitem(views.VIEWS, "sources", fails)
    telling = Telling(redis, lambda: ours, lambda: NOON)  # type: ignore[arg-type]
    await telling.tell()
    assert await telling.clusters() == {"a", "b"}
    assert (await telling.read("workloads")).rows("workloads", NOON) == []
    assert {b"a|workloads", b"b|workloads"} <= set(redis.fields)


async def test_what_somebody_else_wrote_there_ends_nothing() -> None:
    """A value that is no time cannot be read, and the next round tells all the same."""
    redis = Memory()
    redis.fields[b"x|@told"] = b"nonsense"
    telling = Telling(redis, lambda: [cell("a")], lambda: NOON)  # type: ignore[arg-type]
    running = asyncio.create_task(telling.run())
    async with asyncio.timeout(30):
        while b"a|@told" not in redis.fields and not running.done():  # noqa: ASYNC110  what is waited for has no event
            await asyncio.sleep(0.001)
    assert not running.done()
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)
