"""The embedded runtime: nothing is acknowledged before it is stored, and a stop is quick."""

from __future__ import annotations

import asyncio
import sqlite3
from datetime import timedelta
from pathlib import Path

import pytest

from sevenhop.channels.channel import PermanentDeliveryError, RetryableDeliveryError
from sevenhop.core.events import Silenced
from sevenhop.runtime import embedded as embedded_module
from sevenhop.runtime.embedded import INBOX_BATCHES
from sevenhop.stores.sqlite import SqliteStore, StoreError
from tests.builders import node
from tests.unit.runtime.harness import HANG, Plant, Script, node_rule, outbox_rule, quick_clock, running, until


def told(script: Script) -> list[tuple[str, str]]:
    """(title, status) of what arrived."""
    return [(n.message.title, n.message.status) for n in script.messages]


async def test_a_change_becomes_a_message_and_its_end_an_edit(tmp_path: Path) -> None:
    """Event in, message out, through the real store."""
    async with running(tmp_path, {"slack": (slack := Script())}) as plant:
        plant.told.synced(node("n1"))
        plant.told.node("n1", ready=False)
        await until(lambda: len(slack.messages) == 1)
        plant.told.node("n1", ready=True)
        await until(lambda: len(slack.messages) == 2)

    assert told(slack) == [("n1 is not ready", "firing"), ("n1 is not ready", "resolved")]
    assert [n.anew for n in slack.messages] == [True, False]


async def test_a_start_over_the_same_state_tells_nothing_again(tmp_path: Path) -> None:
    """A second process knows what the first one has told."""
    async with running(tmp_path, {"slack": (first := Script())}) as plant:
        plant.told.synced(node("n1", ready=False))
        await until(lambda: len(first.messages) == 1 and plant.embedded.is_idle)

    async with running(tmp_path, {"slack": (second := Script())}) as plant:
        plant.told.synced(node("n1", ready=False), node("n2", ready=False))
        await until(lambda: len(second.messages) == 1 and plant.embedded.is_idle)

    assert told(second) == [("n2 is not ready", "firing")]


async def test_a_full_disk_holds_input_back_and_loses_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Input waits while SQLite says that the disk is full, goes on when it is not, and each message comes once."""
    monkeypatch.setattr(embedded_module, "STORE_RETRY_S", 0.01)
    async with running(tmp_path, {"slack": (slack := Script())}) as plant:
        plant.told.synced(node("n1"), node("n2"))
        await until(lambda: plant.embedded.is_idle)
        with full_disk(plant.store):
            for name in ("n1", "n2"):
                plant.told.node(name, ready=False)
            await until(lambda: plant.embedded.stalled != "")
            assert "full" in plant.embedded.stalled
            assert slack.messages == []
        await until(lambda: len(slack.messages) == 2 and plant.embedded.is_idle)
        assert plant.embedded.stalled == ""

    assert sorted(told(slack)) == [("n1 is not ready", "firing"), ("n2 is not ready", "firing")]
    said = [r.message for r in caplog.records if "input waits" in r.message]
    assert len(said) == 1
    assert "free some space" in said[0]


async def test_a_reload_while_the_store_is_busy_waits_for_its_turn(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Steps are stored in the order in which they were taken: an older one never overwrites a newer one's rows."""
    monkeypatch.setattr(embedded_module, "STORE_RETRY_S", 0.01)
    async with running(tmp_path, {"slack": (slack := Script())}) as plant:
        plant.told.synced(node("n1"))
        await until(lambda: plant.embedded.is_idle)
        with full_disk(plant.store):
            plant.told.node("n1", ready=False)
            await until(lambda: plant.embedded.stalled != "")
            reloading = asyncio.create_task(plant.embedded.reload([node_rule("another")]))
            await asyncio.sleep(0.05)
            assert "another" not in plant.engine.alerts.rules
        await reloading
        await until(lambda: plant.embedded.is_idle and "another" in plant.engine.alerts.rules)

    with closing_store(tmp_path) as store:
        kept = {row.key: row.value for row in store.rows() if row.table == "alerts" and row.value is not None}
    assert [b'"another"' in value for value in kept.values() if b"firing" in value.split(b"history")[0]] == [True]
    assert slack.messages[0].message.status == "firing"


async def test_what_is_acknowledged_is_stored(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever sets a silence hears "done" when a crash can no longer undo it, and not before."""
    monkeypatch.setattr(embedded_module, "STORE_RETRY_S", 0.01)
    clock = quick_clock()
    async with running(tmp_path, {}, clock=clock) as plant:
        plant.told.synced(node("n1"))
        await until(lambda: plant.embedded.is_idle)
        silence = Silenced(
            at=clock(), silence_id="s1", matchers={"node": "n1"}, author="ann", comment="x" * 5000,
            expires_at=clock() + timedelta(hours=9),
        )  # fmt: skip
        with full_disk(plant.store):
            asking = asyncio.create_task(plant.embedded.emit_stored([silence]))
            await until(lambda: plant.embedded.stalled != "")
            assert not asking.done()
        await asyncio.wait_for(asking, 30)
        assert [row.key for row in plant.store.rows() if row.table == "silences"] == ["s1"]


async def test_a_damaged_store_ends_the_process(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Memory must not go on ahead of a store that is broken."""

    def broken(*_args: object, **_more: object) -> None:
        raise StoreError("state.db: malformed; move it away to start empty")

    async def watch() -> None:
        async with running(tmp_path, {"slack": Script()}) as plant:
            monkeypatch.setattr(plant.store, "commit", broken)
            plant.told.synced(node("n1", ready=False))
            await until(lambda: plant.has_ended)

    with pytest.raises(ExceptionGroup) as ended:
        await watch()

    assert ended.group_contains(StoreError, match="malformed")


async def test_a_stop_does_not_wait_for_a_channel_that_hangs(tmp_path: Path) -> None:
    """It would hang for ever; what was under way is asked about at the next start."""
    async with asyncio.timeout(60), running(tmp_path, {"slack": (slack := Script([HANG]))}) as plant:
        plant.told.synced(node("n1", ready=False))
        await until(lambda: len(slack.calls) == 1)
    assert slack.closed

    async with running(tmp_path, {"slack": (again := Script())}):
        await until(lambda: len(again.calls) == 1)
    assert again.calls[0][1]  # uncertain


async def fall_behind(plant: Plant) -> None:
    """More than the inbox takes, while nothing can be stored."""
    plant.told.synced(*(node(f"n{n}", ready=False) for n in range(20)))
    await until(lambda: plant.embedded.stalled != "")
    for n in range(INBOX_BATCHES + 50):
        plant.told.node(f"x{n}", ready=True)


async def test_sources_wait_while_the_engine_is_behind(tmp_path: Path) -> None:
    """Memory is bounded: what cannot be stored yet is not read from the API server either."""
    async with running(tmp_path, {}) as plant:
        with full_disk(plant.store):
            await fall_behind(plant)
            await asyncio.sleep(0.1)
            assert plant.told.waiting >= 40
        await until(lambda: plant.told.waiting == 0)


async def test_what_was_given_up_before_it_came_in_is_not_waited_for(tmp_path: Path) -> None:
    """A GPU agent's request is answered "behind" after some seconds, and comes again: it is not counted as open."""
    async with running(tmp_path, {}) as plant:
        with full_disk(plant.store):
            await fall_behind(plant)
            await until(lambda: plant.embedded.inbox_batches == INBOX_BATCHES)
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(0.05):
                    await plant.embedded.emit(plant.told.feed.applied(node("late")))
        await until(lambda: plant.told.waiting == 0 and plant.embedded.is_idle)


async def test_nothing_grows_with_what_has_passed(tmp_path: Path) -> None:
    """Later episodes leave no more rows and parcels than the first one: what is long over is forgotten."""
    counts = []
    async with running(tmp_path, {"slack": (slack := Script())}, clock=quick_clock(20_000)) as plant:
        plant.told.synced(node("n1"))
        for episode in range(1, 6):
            plant.told.node("n1", ready=False)
            await until(lambda wanted=episode: count_of(slack, "firing") == wanted)  # type: ignore[misc]
            plant.told.node("n1", ready=True)
            await until(lambda wanted=episode: count_of(slack, "resolved") == wanted)  # type: ignore[misc]
            await until(lambda: plant.engine.desk.incidents == {} and plant.embedded.is_idle)  # it is forgotten
            counts.append(len(list(plant.store.rows())))

    assert counts == [counts[0]] * 5


async def test_a_refused_token_is_told_through_the_other_receiver(tmp_path: Path) -> None:
    """Slack takes nothing any more: the self rule fires, and the receivers that still answer hear of it."""
    slack = Script([PermanentDeliveryError("invalid_auth: renew the token")] * 10)
    pager = Script()
    async with running(tmp_path, {"slack": slack, "pager": pager}, [node_rule(), outbox_rule()]) as plant:
        plant.told.synced(node("n1", ready=False))
        await until(lambda: ("Messages cannot be delivered", "firing") in told(pager))


async def test_a_receiver_that_recovers_ends_the_self_alert(tmp_path: Path) -> None:
    """Once Slack delivers again, the alert about it resolves."""
    slack, pager = Script([RetryableDeliveryError("rate limited", retry_after=10.0)]), Script()
    async with running(tmp_path, {"slack": slack, "pager": pager}, [node_rule(), outbox_rule()]) as plant:
        plant.told.synced(node("n1", ready=False))
        await until(lambda: ("Messages cannot be delivered", "resolved") in told(pager))

    assert ("n1 is not ready", "firing") in told(slack)


def count_of(script: Script, status: str) -> int:
    return len({n.episode for n in script.messages if n.message.status == status})


class full_disk:  # noqa: N801  reads as a statement: with full_disk(store)
    """No more pages for this database, as on a disk without space: SQLite itself says that it is full."""

    def __init__(self, store: SqliteStore) -> None:
        self._db = store._db

    def __enter__(self) -> None:
        (pages,) = self._db.execute("pragma page_count").fetchone()
        self._db.execute("create table if not exists filler (x)")
        self._db.execute(f"pragma max_page_count = {pages + 1}")
        with pytest.raises(sqlite3.OperationalError, match="full"):
            self._fill()

    def _fill(self) -> None:
        for _ in range(1000):
            self._db.execute("insert into filler values (zeroblob(500))")

    def __exit__(self, *_: object) -> None:
        self._db.execute("pragma max_page_count = 1000000")
        self._db.execute("drop table filler")


class closing_store:  # noqa: N801
    """The store after the process has ended."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def __enter__(self) -> SqliteStore:
        self._store = SqliteStore(self._folder)
        return self._store

    def __exit__(self, *_: object) -> None:
        self._store.close()


def test_plants_share_no_state(tmp_path: Path) -> None:
    """The folder is locked: a second process on the same state is refused."""
    first = Plant(tmp_path, {}, (), quick_clock())
    with pytest.raises(StoreError, match="in use by another"):
        SqliteStore(tmp_path)
    first.store.close()
