"""Every store keeps the same promises: the embedded one, and the shared one on a real server."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from datetime import UTC, datetime, timedelta
from inspect import isawaitable
from itertools import count
from pathlib import Path
from typing import Any

import msgspec
import pytest
import redis.asyncio as aioredis
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from sevenhop.core.effects import Row
from sevenhop.core.events import StepDone, StepResult
from sevenhop.core.remediation.audit import AuditRecord, append
from sevenhop.stores.redis import RedisStore
from sevenhop.stores.redis_fence import Fence, FencedError, connect
from sevenhop.stores.sqlite import SqliteStore
from tests.builders import notify
from tests.shared import missing
from tests.testbed.binaries import BuildFailed
from tests.testbed.redis import Redis

NOON = datetime(2026, 11, 30, 12, tzinfo=UTC)
HISTORY = ("crash", "commit", "send", "finish")
_places = count(1)

Open = Callable[[], Awaitable[Any]]
"""Opens the state that there is, as a new process does."""


@pytest.fixture(scope="module")
def server() -> Iterator[Redis]:
    """A real server; where none can be had, its cases are skipped, but not in CI."""
    try:
        running = Redis(remembers=False).start()
    except BuildFailed as failure:
        missing(str(failure))
    yield running
    running.stop()


@pytest.fixture
async def client(server: Redis) -> AsyncIterator[aioredis.Redis]:
    made = connect(server.url)
    yield made
    await made.aclose()


@pytest.fixture(params=["sqlite", pytest.param("redis", marks=pytest.mark.e2e)])
async def reopen(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Open]:
    """Opens the same state again and again; what was open before is closed, as by a crash."""
    opened: list[SqliteStore] = []
    if request.param == "sqlite":

        async def open_sqlite() -> SqliteStore:
            while opened:
                opened.pop().close()
            opened.append(SqliteStore(tmp_path))
            return opened[-1]

        yield open_sqlite
        while opened:
            opened.pop().close()
        return
    made = connect(request.getfixturevalue("server").url)
    place = f"test-{next(_places)}"

    async def open_redis() -> RedisStore:
        fence = Fence(made, place)
        await fence.claim()
        store = RedisStore(fence, "c")
        await store.load_trail()
        return store

    yield open_redis
    await made.aclose()


async def done(result: Any) -> Any:
    """What a store's method came to."""
    return await result if isawaitable(result) else result


def record(last: AuditRecord | None, text: str) -> AuditRecord:
    return append(last, at=NOON, what="decided", who="sevenhop", text=text)


async def test_what_was_committed_is_there_after_a_crash(reopen: Open) -> None:
    """Rows and effects of a committed step outlive the process; forgotten rows are forgotten."""
    store = await reopen()
    await done(store.commit([Row("alerts", "a", b"1"), Row("alerts", "b", b"\xff2")], [notify(1)], now=0))
    await done(store.commit([Row("alerts", "b", None)], now=0))

    store = await reopen()

    assert list(store.rows()) == [Row("alerts", "a", b"1")]
    assert store.first("slack").effect == notify(1)
    assert store.receivers() == ["slack"]


async def test_an_effect_asked_for_twice_is_there_once(reopen: Open) -> None:
    """Neither what waits nor what has arrived is asked for again, by this process or the next."""
    store = await reopen()
    await done(store.commit([], [notify(1)], now=0))
    await done(store.commit([], [notify(1)], now=0))
    assert store.waiting()[0] == 1
    parcel = store.first("slack")
    await done(store.finish(parcel.seq, parcel.effect.id, now=1))

    store = await reopen()
    await done(store.commit([], [notify(1)], now=2))

    assert store.first("slack") is None


async def test_a_newer_revision_takes_the_place_of_an_unsent_one(reopen: Open) -> None:
    """One message per incident and receiver waits, and posts anew if the one before would have."""
    store = await reopen()
    await done(store.commit([], [notify(1, anew=True), notify(1, incident="i-2")], now=0))
    await done(store.commit([], [notify(2)], now=0))

    store = await reopen()

    assert store.waiting()[0] == 2
    first = store.first("slack")
    assert first.effect.incident == "i-2"
    await done(store.finish(first.seq, first.effect.id, now=0))
    assert store.first("slack").effect == notify(2, anew=True)


async def test_what_is_being_sent_keeps_its_place(reopen: Open) -> None:
    """A message under way may have arrived: a newer one waits behind it, and after a crash it is in doubt."""
    store = await reopen()
    await done(store.commit([], [notify(1)], now=0))
    assert await done(store.begin_sending(store.first("slack").seq))
    await done(store.commit([], [notify(2)], now=0))

    store = await reopen()

    parcel = store.first("slack")
    assert (parcel.effect.revision, parcel.was_sending, parcel.attempts) == (1, True, 1)


async def test_what_was_superseded_is_not_sent(reopen: Open) -> None:
    """Who looked at a parcel before a newer one took its place may not send it any more."""
    store = await reopen()
    await done(store.commit([], [notify(1)], now=0))
    looked_at = store.first("slack")
    await done(store.commit([], [notify(2)], now=0))

    assert not await done(store.begin_sending(looked_at.seq))


@pytest.mark.parametrize("certain", [True, False])
async def test_a_postponed_parcel_is_due_later(reopen: Open, certain: bool) -> None:
    """It keeps its due time, its attempts, and whether it may have arrived."""
    store = await reopen()
    await done(store.commit([], [notify(1)], now=0))
    seq = store.first("slack").seq
    await done(store.begin_sending(seq))
    await done(store.postpone(seq, 90.0, certain=certain))

    store = await reopen()

    parcel = store.first("slack")
    assert (parcel.due, parcel.attempts, parcel.was_sending) == (90.0, 1, not certain)
    assert store.waiting() == (1, 90.0)
    assert store.waiting_for() == {"slack": 1}


async def test_the_answer_of_a_step_is_kept_until_it_was_heard(reopen: Open) -> None:
    """A crash between a step and the engine's hearing of it tells it again."""
    store = await reopen()
    await done(store.commit([], [notify(1)], now=0))
    answer = StepDone(at=NOON, effect_id="s-1", result=StepResult.DONE, detail="scaled")
    await done(store.finish_step(store.first("slack").seq, answer, now=5.0))

    store = await reopen()
    assert store.answers() == [answer]
    await done(store.commit([], heard=["s-1"], now=6.0))

    store = await reopen()
    assert store.answers() == []


async def test_the_audit_trail_goes_on_where_it_was(reopen: Open) -> None:
    """The next process appends to the last record, and none is written twice."""
    store = await reopen()
    first = record(None, "one")
    await done(store.commit([], [], [first], now=0))

    store = await reopen()

    last = store.last_record()
    assert (last.number, last.hash) == (first.number, first.hash)
    second = append(last, at=NOON, what="decided", who="sevenhop", text="two")
    await done(store.commit([], [], [second], now=0))
    lines = list(store.audit_lines())
    assert [msgspec.json.decode(line)["text"] for line in lines] == ["one", "two"]
    with pytest.raises(Exception, match=r"audit|UNIQUE"):
        await done(store.commit([], [], [second], now=0))


async def test_ids_of_what_arrived_are_forgotten_in_the_end(reopen: Open, monkeypatch: pytest.MonkeyPatch) -> None:
    """The oldest go first, so the store does not grow with history."""
    monkeypatch.setattr("sevenhop.stores.sqlite._SENT_KEPT", 2)
    monkeypatch.setattr("sevenhop.stores.redis._SENT_KEPT", 2)
    store = await reopen()
    for number in range(3):
        await done(store.commit([], [notify(1, incident=f"i-{number}")], now=0))
        parcel = store.first("slack")
        await done(store.finish(parcel.seq, parcel.effect.id, now=float(number)))

    store = await reopen()
    await done(store.commit([], [notify(1, incident=f"i-{number}") for number in range(3)], now=9))

    assert store.waiting()[0] == 1
    assert store.first("slack").effect.incident == "i-0"


# What only the shared store has to promise


async def claimed(client: aioredis.Redis, place: str) -> Fence:
    fence = Fence(client, place)
    await fence.claim()
    return fence


@pytest.mark.e2e
async def test_who_was_replaced_stores_nothing_more(client: aioredis.Redis) -> None:
    """After another claim every write is refused, a delivery's claim too, and nothing of it is there."""
    place = f"fenced-{next(_places)}"
    old = await claimed(client, place)
    store = RedisStore(old, "c")
    await store.commit([Row("alerts", "a", b"1")], [notify(1)], now=0)
    parcel = store.first("slack")
    assert parcel is not None

    new = await claimed(client, place)

    with pytest.raises(FencedError):
        await store.begin_sending(parcel.seq)
    with pytest.raises(FencedError):
        await store.commit([Row("alerts", "a", b"2")], now=0)
    fresh = RedisStore(new, "c")
    assert list(fresh.rows()) == [Row("alerts", "a", b"1")]
    parcel = fresh.first("slack")
    assert parcel is not None
    assert not parcel.was_sending


@pytest.mark.e2e
async def test_a_claim_says_whether_somebody_else_wrote(client: aioredis.Redis) -> None:
    """Our own claim again, without a writer in between, keeps what is in memory; after another one it is read anew."""
    place = f"claims-{next(_places)}"
    fence = await claimed(client, place)
    await RedisStore(fence, "c").commit([Row("alerts", "a", b"1")], now=0)
    assert await fence.claim()

    other = await claimed(client, place)
    await RedisStore(other, "c").commit([Row("alerts", "a", b"2")], now=0)

    assert not await fence.claim()
    assert list(RedisStore(fence, "c").rows()) == [Row("alerts", "a", b"2")]


@pytest.mark.e2e
async def test_two_clusters_of_a_place_share_a_write(client: aioredis.Redis) -> None:
    """A step of several clusters and the input's offset are there together or not at all, each cluster by itself."""
    from sevenhop.stores.redis_fence import Changes

    place = f"shared-{next(_places)}"
    fence = await claimed(client, place)
    changes = Changes(offsets={"objects": 7})
    RedisStore(fence, "a").stage(changes, [Row("alerts", "x", b"1")], [notify(1)], now=0)
    RedisStore(fence, "b").stage(changes, [Row("alerts", "x", b"2")], now=0)
    await fence.write(changes)

    again = await claimed(client, place)

    assert again.offsets == {"objects": 7}
    assert list(RedisStore(again, "a").rows()) == [Row("alerts", "x", b"1")]
    assert list(RedisStore(again, "b").rows()) == [Row("alerts", "x", b"2")]
    assert RedisStore(again, "b").first("slack") is None


@pytest.mark.e2e
@pytest.mark.parametrize("forgets", ["everything", "the last write", "the claim"])
async def test_a_server_that_forgot_is_told_again(client: aioredis.Redis, forgets: str) -> None:
    """Whatever the server lost of what it had promised, the next write brings it back, and the one before stays out."""
    place = f"forgets-{next(_places)}"
    name = f"{{sevenhop:{place}}}"
    before = await claimed(client, place)
    await RedisStore(before, "c").commit([Row("alerts", "old", b"0")], now=0)
    kept = {key: await client.dump(f"{name}:{key}") for key in ("fence", "data")}
    fence = await claimed(client, place)
    if forgets == "the last write":
        kept = {key: await client.dump(f"{name}:{key}") for key in ("fence", "data")}
    store = RedisStore(fence, "c")
    await store.commit([Row("alerts", "a", b"1")], [notify(1)], now=0)

    await client.delete(f"{name}:fence", f"{name}:data", f"{name}:offsets")
    if forgets != "everything":
        for key, value in kept.items():
            await client.restore(f"{name}:{key}", 0, value or b"")
    await store.commit([Row("alerts", "b", b"2")], now=0)

    assert fence.forgotten == 1
    with pytest.raises(FencedError):
        await RedisStore(before, "c").commit([], [notify(9)], now=0)
    again = RedisStore(await claimed(client, place), "c")
    assert {row.key for row in again.rows()} == {"old", "a", "b"}
    assert again.first("slack") is not None


@pytest.mark.e2e
async def test_a_server_that_is_away_is_waited_for(server: Redis) -> None:
    """Nothing is raised and nothing is lost: the write says why it waits, and is stored once the server is back."""
    client = connect(server.url)
    fence = await claimed(client, f"away-{next(_places)}")
    store = RedisStore(fence, "c")
    server.pause()
    try:
        writing = asyncio.ensure_future(store.commit([], [notify(1)], now=0))
        await asyncio.sleep(3.5)
        assert not writing.done()
        assert "Redis" in fence.stalled
    finally:
        server.resume()
    await asyncio.wait_for(writing, 15)
    await client.aclose()

    assert fence.stalled == ""
    assert store.waiting()[0] == 1


@pytest.mark.e2e
async def test_a_cancelled_write_is_over_and_the_next_one_is_whole(client: aioredis.Redis) -> None:
    """Whenever the cancellation comes: it arrives, and what was asked for before and after it is stored."""
    place = f"cancelled-{next(_places)}"
    fence = await claimed(client, place)
    for turns in range(60):
        store = RedisStore(fence, "c")
        task = asyncio.ensure_future(store.begin_sending(0))
        writing = asyncio.ensure_future(_write(store, str(turns)))
        for _ in range(3 + turns % 12):  # it has begun
            await asyncio.sleep(0)
        if not writing.done():
            writing.cancel()
            with pytest.raises(asyncio.CancelledError):
                await writing
        await task
    await RedisStore(fence, "c").commit([Row("alerts", "last", b"1")], now=0)

    assert fence.forgotten == 0
    again = RedisStore(await claimed(client, place), "c")
    assert {row.key for row in again.rows()} == {*map(str, range(60)), "last"}


async def _write(store: RedisStore, key: str) -> None:
    await store.commit([Row("alerts", key, b"1")], now=0)


@pytest.mark.e2e
@settings(max_examples=25, deadline=timedelta(seconds=20), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(steps=st.lists(st.tuples(st.sampled_from("abc"), st.sampled_from(HISTORY)), max_size=20))
async def test_both_stores_end_in_the_same_state(
    server: Redis, tmp_path_factory: pytest.TempPathFactory, steps: list[tuple[str, str]]
) -> None:
    """Any history of commits, deliveries and crashes leaves the same rows and the same outbox in both."""
    client = connect(server.url)
    place, folder = f"same-{next(_places)}", tmp_path_factory.mktemp("same")
    sqlite = SqliteStore(folder)
    shared = RedisStore(await claimed(client, place), "c")
    for number, (key, step) in enumerate(steps):
        if step == "crash":
            sqlite.close()
            sqlite = SqliteStore(folder)
            shared = RedisStore(await claimed(client, place), "c")
        for store in (sqlite, shared):
            parcel = store.first("slack")
            if step == "commit":
                value = None if number % 3 == 2 else str(number).encode()
                await done(store.commit([Row("alerts", key, value)], [notify(number, incident=key)], now=number))
            elif parcel is not None and step == "send":
                await done(store.begin_sending(parcel.seq))
            elif parcel is not None and step == "finish":
                await done(store.finish(parcel.seq, parcel.effect.id, now=number))
    looks = [_look(store) for store in (sqlite, shared)]
    sqlite.close()
    await client.aclose()

    assert looks[0] == looks[1]


def _look(store: Any) -> Any:
    parcel = store.first("slack")
    said = None if parcel is None else (parcel.effect, parcel.attempts, parcel.was_sending)
    return list(store.rows()), store.waiting(), store.waiting_for(), said
