"""The embedded store: all of a step or nothing, and the outbox in order."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path

import msgspec
import pytest

from sevenhop.core.effects import Notify, Row
from sevenhop.stores.sqlite import SqliteStore, StoreBusyError, StoreError
from tests.builders import notify

NOON = datetime(2026, 11, 30, 12, tzinfo=UTC)


@pytest.fixture
def store(tmp_path: Path) -> Iterator[SqliteStore]:
    opened = SqliteStore(tmp_path)
    yield opened
    opened.close()


def test_what_was_committed_is_there_after_a_new_start(tmp_path: Path) -> None:
    """Rows and effects of a committed step survive the process."""
    first = SqliteStore(tmp_path)
    first.commit([Row("alert", "a", b"1"), Row("alert", "b", b"2")], [notify(1)], now=0)
    first.commit([Row("alert", "b", None)], now=0)
    first.close()

    second = SqliteStore(tmp_path)

    assert list(second.rows()) == [Row("alert", "a", b"1")]
    parcel = second.first("slack")
    assert parcel is not None
    assert parcel.effect == notify(1)
    second.close()


def test_a_step_is_stored_whole_or_not_at_all(store: SqliteStore) -> None:
    """A failure in the middle of a commit leaves the state as it was."""
    store.commit([Row("alert", "a", b"1")], now=0)

    with pytest.raises(sqlite3.Error):
        store.commit([Row("alert", "a", b"2"), Row("alert", None, b"3")], [notify(1)], now=0)  # type: ignore[arg-type]

    assert list(store.rows()) == [Row("alert", "a", b"1")]
    assert store.first("slack") is None


def test_an_effect_asked_for_twice_is_there_once(store: SqliteStore) -> None:
    """Replays do not send again: neither what waits nor what has arrived."""
    store.commit([], [notify(1)], now=0)
    store.commit([], [notify(1)], now=0)
    assert store.waiting()[0] == 1

    parcel = store.first("slack")
    assert parcel is not None
    store.begin_sending(parcel.seq)
    store.finish(parcel.seq, parcel.effect.id, now=1)
    store.commit([], [notify(1)], now=2)

    assert store.waiting()[0] == 0


def test_a_newer_revision_supersedes_an_unsent_one(store: SqliteStore) -> None:
    """Nobody reads an outdated state, and a new post is not lost when an edit overtakes it."""
    store.commit([], [notify(1, anew=True)], now=0)
    store.commit([], [notify(2)], now=0)

    parcel = store.first("slack")

    assert parcel is not None
    assert isinstance(parcel.effect, Notify)
    assert (parcel.effect.revision, parcel.effect.anew) == (2, True)
    assert store.waiting()[0] == 1


def test_what_is_being_sent_is_not_superseded(store: SqliteStore) -> None:
    """It may have arrived, so its outcome is found out first."""
    store.commit([], [notify(1, anew=True)], now=0)
    parcel = store.first("slack")
    assert parcel is not None
    store.begin_sending(parcel.seq)

    store.commit([], [notify(2)], now=0)

    first = store.first("slack")
    assert first is not None
    assert (first.effect.revision, first.was_sending) == (1, True)


def test_a_crash_while_sending_is_remembered(tmp_path: Path) -> None:
    """The next process knows that the parcel may have arrived."""
    first = SqliteStore(tmp_path)
    first.commit([], [notify(1)], now=0)
    parcel = first.first("slack")
    assert parcel is not None
    first.begin_sending(parcel.seq)
    first.close()

    second = SqliteStore(tmp_path)
    again = second.first("slack")

    assert again is not None
    assert (again.was_sending, again.attempts) == (True, 1)
    second.close()


def test_a_second_process_is_told_who_has_the_state(tmp_path: Path, store: SqliteStore) -> None:
    """One line that names the folder, the pid and what to do."""
    with pytest.raises(StoreError, match=rf"in use by another sevenhop \(pid {os.getpid()}\); stop it, or choose"):
        SqliteStore(tmp_path)


def test_a_damaged_file_is_set_aside(tmp_path: Path) -> None:
    """Nothing is deleted, and the service starts with an empty state."""
    (tmp_path / "state.db").write_bytes(b"this is no database, but somebody may want to look at it")

    store = SqliteStore(tmp_path)

    assert store.set_aside is not None
    assert store.set_aside.read_bytes().startswith(b"this is no database")
    assert list(store.rows()) == []
    store.close()


def test_a_file_that_somebody_holds_is_not_thrown_away(tmp_path: Path) -> None:
    """A copy being made says nothing of what is in the file: beginning empty would forget who was told what."""
    with closing(sqlite3.connect(tmp_path / "state.db", isolation_level=None)) as other:
        other.execute("create table kept (a)")
        other.execute("begin exclusive")

        with pytest.raises(StoreError, match=r"locked; another program has it open") as caught:
            SqliteStore(tmp_path)

    assert [path.name for path in tmp_path.glob("state.db.damaged*")] == []
    SqliteStore(tmp_path).close()
    assert caught.tb is not None  # which holds the store that failed: the folder is free although that still lives


def test_a_file_that_cannot_be_opened_stays_where_it_is(tmp_path: Path) -> None:
    """One line says what to do; nothing is moved."""
    (tmp_path / "state.db").mkdir()

    with pytest.raises(StoreError, match="let sevenhop read and write it"):
        SqliteStore(tmp_path)

    assert (tmp_path / "state.db").is_dir()


def test_a_newer_schema_is_refused(tmp_path: Path) -> None:
    """A downgrade does not silently drop what it cannot read."""
    SqliteStore(tmp_path).close()
    with sqlite3.connect(tmp_path / "state.db") as db:
        db.execute("update meta set value = '99' where key = 'schema'")
    db.close()

    with pytest.raises(StoreError, match="newer sevenhop"):
        SqliteStore(tmp_path)


def test_a_locked_file_can_be_tried_again(tmp_path: Path, store: SqliteStore) -> None:
    """While something else writes, nothing is stored and nothing is lost."""
    other = sqlite3.connect(tmp_path / "state.db", isolation_level=None)
    other.execute("begin immediate")

    with pytest.raises(StoreBusyError, match="locked"):
        store.commit([Row("alert", "a", b"1")], now=0)

    other.execute("rollback")
    other.close()
    store.commit([Row("alert", "a", b"1")], now=0)
    assert list(store.rows()) == [Row("alert", "a", b"1")]


def test_a_full_disk_stores_nothing_and_can_be_tried_again(store: SqliteStore) -> None:
    """SQLite's own limit stands for the disk's."""
    db = store._db
    pages = db.execute("pragma page_count").fetchone()[0]
    db.execute(f"pragma max_page_count = {pages}")

    with pytest.raises(StoreBusyError, match="full"):
        store.commit([Row("alert", str(n), b"x" * 4000) for n in range(50)], now=0)

    db.execute("pragma max_page_count = 1000000")
    assert list(store.rows()) == []
    store.commit([Row("alert", "a", b"1")], now=0)


def test_effects_survive_their_encoding() -> None:
    """What is read back is what was asked for."""
    effect = notify(3, anew=True)
    assert msgspec.json.decode(msgspec.json.encode(effect), type=Notify) == effect
