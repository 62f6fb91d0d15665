"""
The embedded store: one SQLite file in WAL mode, called directly in the loop.

A commit of one input batch takes microseconds; through an executor it would take a hundred.  WAL with
synchronous=NORMAL survives kill -9; a power cut may lose the last transactions, never the file.
"""

from __future__ import annotations

import fcntl
import os
import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing, contextmanager
from datetime import UTC, datetime
from pathlib import Path

import msgspec

from sevenhop.core.effects import Effect, Notify, Row

SCHEMA_VERSION = 1

_SCHEMA = """
create table if not exists meta (key text primary key, value text not null) without rowid;
create table if not exists state (tab text not null, key text not null, value blob not null, primary key (tab, key))
  without rowid;
create table if not exists outbox (
  seq integer primary key autoincrement,
  id text not null unique,
  receiver text not null,
  incident text not null,
  revision integer not null,
  state text not null check (state in ('pending', 'sending')),
  attempts integer not null default 0,
  due real not null default 0,
  effect blob not null
);
create index if not exists outbox_by_receiver on outbox (receiver, seq);
create table if not exists sent (id text primary key, at real not null) without rowid;
"""

_SENT_KEPT = 10_000
"""Ids of delivered effects that are remembered, so that an effect asked for again is not sent again."""


class StoreError(Exception):
    """The state cannot be used; the message names the file and what to do."""


class StoreBusyError(StoreError):
    """Nothing was stored, and the same call may succeed later: the disk is full, or the file is locked."""


class Parcel(msgspec.Struct, frozen=True, gc=False):
    """
    One effect in the outbox.

    `was_sending` means that an earlier process died, or a call timed out, while it was being sent: whether it arrived
    is not known.
    """

    seq: int
    effect: Notify
    attempts: int
    due: float
    was_sending: bool


_effects = msgspec.json.Decoder(Notify)


class SqliteStore:
    """
    State rows and the outbox of one installation.

    One process at a time: the folder is locked for as long as the store is open.
    """

    def __init__(self, folder: Path) -> None:
        """
        Open or create the state in `folder`.

        A damaged file is moved aside (`set_aside` then names it) and an empty state begins: derived identities make
        that safe.

        Raises:
            StoreError: The folder cannot be written, or another process has it.
        """
        self.set_aside: Path | None = None
        self.problems: list[str] = []  # what was in the outbox and could not be read
        try:
            folder.mkdir(parents=True, exist_ok=True)
            self._lock = (folder / "lock").open("a+")
        except OSError as error:
            raise StoreError(f"{folder}: {error.strerror}; choose a writable folder with --state") from None
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            self._lock.seek(0)
            holder = self._lock.read().strip() or "unknown"
            self._lock.close()
            raise StoreError(
                f"{folder}: in use by another sevenhop (pid {holder}); stop it, or choose another folder with --state"
            ) from None
        try:
            self._lock.truncate(0)
            self._lock.write(str(os.getpid()))
            self._lock.flush()
        except OSError as error:
            raise StoreError(f"{folder}: {error.strerror}; free some space") from None
        self.path = folder / "state.db"
        self._db = self._open()

    def _open(self) -> sqlite3.Connection:
        try:
            return self._connect()
        except sqlite3.DatabaseError as error:
            if isinstance(error, sqlite3.OperationalError) and "disk" in str(error):
                raise StoreError(f"{self.path}: {error}; free some space") from None
            stamp = datetime.now(tz=UTC).strftime("%Y%m%dT%H%M%S")
            self.set_aside = self.path.with_name(f"state.db.damaged-{stamp}")
            for suffix in ("-wal", "-shm"):
                self.path.with_name(self.path.name + suffix).unlink(missing_ok=True)
            self.path.rename(self.set_aside)
            return self._connect()

    def _connect(self) -> sqlite3.Connection:
        db = sqlite3.connect(self.path, isolation_level=None, timeout=1.0)
        try:
            db.execute("pragma journal_mode = wal")
            db.execute("pragma synchronous = normal")
            (answer,) = db.execute("pragma quick_check(1)").fetchone()
            if answer != "ok":
                raise sqlite3.DatabaseError(answer)
            db.executescript(_SCHEMA)
            row = db.execute("select value from meta where key = 'schema'").fetchone()
            if row is None:
                db.execute("insert into meta values ('schema', ?)", (str(SCHEMA_VERSION),))
            elif int(row[0]) > SCHEMA_VERSION:
                raise StoreError(
                    f"{self.path}: written by a newer sevenhop (schema {row[0]}, this one reads {SCHEMA_VERSION}); "
                    "upgrade, or choose another folder with --state"
                )
        except BaseException:
            db.close()
            raise
        return db

    def rows(self) -> Iterator[Row]:
        """Everything that was stored, for loading the engine."""
        with closing(self._db.execute("select tab, key, value from state order by tab, key")) as cursor:
            for table, key, value in cursor:
                yield Row(table, key, value)

    def commit(self, rows: Iterable[Row], effects: Sequence[Effect] = (), *, now: float) -> None:
        """
        Store one step: all of it or nothing.

        An effect whose id was already asked for is not asked for again.  A newer revision for the same receiver and
        incident takes the place of an unsent older one, and posts anew if that one would have.

        Raises:
            StoreBusyError: Nothing was stored; keep the step and try again.
            StoreError: The file is damaged.
        """
        with self._transaction():
            for row in rows:
                self._save(row)
            for effect in effects:
                self._enqueue(effect, now)

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        """All that is written in it, or nothing; errors as `commit`."""
        try:
            self._db.execute("begin immediate")
            try:
                yield
                self._db.execute("commit")
            except BaseException:
                if self._db.in_transaction:
                    self._db.execute("rollback")
                raise
        except sqlite3.OperationalError as error:
            raise StoreBusyError(f"{self.path}: {error}") from None
        except sqlite3.IntegrityError:
            raise  # ours to mend, not the operator's
        except sqlite3.DatabaseError as error:
            raise StoreError(f"{self.path}: {error}; move it away to start empty") from None

    def _save(self, row: Row) -> None:
        if row.value is None:
            self._db.execute("delete from state where tab = ? and key = ?", (row.table, row.key))
        else:
            self._db.execute("insert or replace into state values (?, ?, ?)", (row.table, row.key, row.value))

    def _enqueue(self, effect: Effect, now: float) -> None:
        if not isinstance(effect, Notify):
            raise TypeError(f"the outbox cannot carry a {type(effect).__name__}")
        if self._db.execute("select 1 from sent where id = ?", (effect.id,)).fetchone():
            return
        for seq, blob in self._db.execute(
            "select seq, effect from outbox where receiver = ? and incident = ? and state = 'pending' and revision < ?",
            (effect.receiver, effect.incident, effect.revision),
        ).fetchall():
            if _effects.decode(blob).anew and not effect.anew:
                effect = msgspec.structs.replace(effect, anew=True)
            self._db.execute("delete from outbox where seq = ?", (seq,))
        self._db.execute(
            "insert or ignore into outbox (id, receiver, incident, revision, state, due, effect) "
            "values (?, ?, ?, ?, 'pending', ?, ?)",
            (effect.id, effect.receiver, effect.incident, effect.revision, now, msgspec.json.encode(effect)),
        )

    def receivers(self) -> list[str]:
        """Receivers that something waits for."""
        return [name for (name,) in self._db.execute("select distinct receiver from outbox order by receiver")]

    def first(self, receiver: str) -> Parcel | None:
        """
        The oldest parcel of a receiver: one at a time, so that trigger and resolve keep their order.

        One that cannot be read (damaged, or of another version) would hold up all behind it for ever: it is taken out,
        and named in `problems`.
        """
        while True:
            found = self._db.execute(
                "select seq, id, effect, attempts, due, state from outbox where receiver = ? order by seq limit 1",
                (receiver,),
            ).fetchone()
            if found is None:
                return None
            seq, effect_id, blob, attempts, due, state = found
            try:
                return Parcel(seq, _effects.decode(blob), attempts, due, state == "sending")
            except msgspec.MsgspecError as error:
                self.problems.append(f"message {effect_id} for {receiver}: {error}")
                with self._transaction():
                    self._db.execute("delete from outbox where seq = ?", (seq,))

    def begin_sending(self, seq: int) -> None:
        """From here on it may have arrived, whatever happens to this process.  Errors as `commit`."""
        with self._transaction():
            self._db.execute("update outbox set state = 'sending', attempts = attempts + 1 where seq = ?", (seq,))

    def postpone(self, seq: int, due: float, *, certain: bool) -> None:
        """Try again at `due`; `certain` says that it surely did not arrive.  Errors as `commit`."""
        state = "pending" if certain else "sending"
        with self._transaction():
            self._db.execute("update outbox set state = ?, due = ? where seq = ?", (state, due, seq))

    def finish(self, seq: int, effect_id: str, rows: Iterable[Row] = (), *, now: float) -> None:
        """
        It arrived, or was refused for good: out of the outbox, and never again; `rows` are stored with that.

        Errors as `commit`.
        """
        with self._transaction():
            self._db.execute("delete from outbox where seq = ?", (seq,))
            self._db.execute("insert or replace into sent values (?, ?)", (effect_id, now))
            self._db.execute(
                "delete from sent where id in (select id from sent order by at desc limit -1 offset ?)", (_SENT_KEPT,)
            )
            for row in rows:
                self._save(row)

    def waiting_for(self) -> dict[str, int]:
        """Receiver to the number of parcels that wait for it."""
        return dict(self._db.execute("select receiver, count(*) from outbox group by receiver order by receiver"))

    def waiting(self) -> tuple[int, float | None]:
        """(parcels in the outbox, due time of the oldest), for metrics and `doctor`."""
        count, oldest = self._db.execute("select count(*), min(due) from outbox").fetchone()
        return count, oldest

    def close(self) -> None:
        self._db.close()
        self._lock.close()
