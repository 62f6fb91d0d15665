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

from sevenhop.core.effects import CLUSTER, Act, Effect, Notify, Row
from sevenhop.core.events import StepDone
from sevenhop.core.remediation.audit import AuditRecord, Head
from sevenhop.stores import sqlite_acts, sqlite_audit
from sevenhop.stores.store import Parcel as Parcel
from sevenhop.stores.store import StoreBusyError as StoreBusyError
from sevenhop.stores.store import StoreError as StoreError
from sevenhop.stores.store import UnreadableStepError as UnreadableStepError

SCHEMA_VERSION = 2
"""2: steps in the cluster, which an older version would take for damaged messages, and the audit trail."""

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

_FIRST = "select seq, id, effect, attempts, due, state from outbox where receiver = ? order by seq limit 1"

# The id of a step begins with that of its plan (`case.ask`).
_FIRST_STEP = """
select seq, id, effect, attempts, due, state from outbox as o where receiver = ? and not exists (
    select 1 from outbox as p where p.receiver = o.receiver and p.seq < o.seq
    and substr(p.id, 1, instr(p.id, '/')) = substr(o.id, 1, instr(o.id, '/'))
) order by due, seq limit 1
"""

_SENT_KEPT = 10_000
"""Ids of delivered effects that are remembered, so that an effect asked for again is not sent again."""


_effects = msgspec.json.Decoder(Notify | Act)


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
        self.unreadable: list[tuple[str, str, str]] = []  # (receiver, effect id, why) of what the outbox lost
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
        try:
            self._db = self._open()
            self._acts = sqlite_acts.Acts(self._db)
            self._audit = sqlite_audit.AuditTrail(self._db)
        except BaseException:
            self._lock.close()
            raise

    def _open(self) -> sqlite3.Connection:
        try:
            return self._connect()
        except sqlite3.OperationalError as error:
            # It says nothing of what is in the file: somebody has it, it may not be read, or the disk is full.
            raise StoreError(f"{self.path}: {error}; {_way_out(str(error))}") from None
        except sqlite3.DatabaseError:
            stamp = datetime.now(tz=UTC).strftime("%Y%m%dT%H%M%S")
            self.set_aside = self.path.with_name(f"state.db.damaged-{stamp}")
            for suffix in ("-wal", "-shm", ""):
                beside = self.path.with_name(self.path.name + suffix)
                if beside.exists():
                    beside.rename(self.set_aside.with_name(self.set_aside.name + suffix))
            return self._connect()

    def _connect(self) -> sqlite3.Connection:
        db = sqlite3.connect(self.path, isolation_level=None, timeout=1.0)
        try:
            db.execute("pragma journal_mode = wal")
            db.execute("pragma synchronous = normal")
            (answer,) = db.execute("pragma quick_check(1)").fetchone()
            if answer != "ok":
                raise sqlite3.DatabaseError(answer)
            db.executescript(_SCHEMA + sqlite_acts.SCHEMA + sqlite_audit.SCHEMA)
            row = db.execute("select value from meta where key = 'schema'").fetchone()
            if row is None:
                db.execute("insert into meta values ('schema', ?)", (str(SCHEMA_VERSION),))
            elif int(row[0]) > SCHEMA_VERSION:
                raise StoreError(
                    f"{self.path}: written by a newer sevenhop (schema {row[0]}, this one reads {SCHEMA_VERSION}); "
                    "upgrade, or choose another folder with --state"
                )
            else:
                db.execute("update meta set value = ? where key = 'schema'", (str(SCHEMA_VERSION),))
        except BaseException:
            db.close()
            raise
        return db

    def rows(self) -> Iterator[Row]:
        """Everything that was stored, for loading the engine."""
        with closing(self._db.execute("select tab, key, value from state order by tab, key")) as cursor:
            for table, key, value in cursor:
                yield Row(table, key, value)

    def commit(
        self,
        rows: Iterable[Row],
        effects: Sequence[Effect] = (),
        records: Iterable[AuditRecord] = (),
        *,
        heard: Iterable[str] = (),
        now: float,
    ) -> None:
        """
        Store one step: all of it or nothing.

        An effect whose id was already asked for is not asked for again.  A newer revision for the same receiver and
        incident takes the place of an unsent older one, and posts anew if that one would have.  Steps in the cluster
        take nobody's place.

        Args:
            records: Of the audit trail; they follow the last one that is stored.
            heard: Ids of steps whose answers (`answers`) this step has taken in.

        Raises:
            StoreBusyError: Nothing was stored; keep the step and try again.
            StoreError: The file is damaged.
        """
        with self._transaction():
            for row in rows:
                self._save(row)
            for effect in effects:
                self._enqueue(effect, now)
            self._audit.append(records)
            self._acts.heard(heard)

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
        if isinstance(effect, Act):
            if not self._acts.is_done(effect.id):
                self._insert(effect, now)
            return
        if not isinstance(effect, Notify):
            raise TypeError(f"the outbox cannot carry a {type(effect).__name__}")
        if self._db.execute("select 1 from sent where id = ?", (effect.id,)).fetchone():
            return
        for seq, blob in self._db.execute(
            "select seq, effect from outbox where receiver = ? and incident = ? and state = 'pending' and revision < ?",
            (effect.receiver, effect.incident, effect.revision),
        ).fetchall():
            if _is_anew(blob) and not effect.anew:
                effect = msgspec.structs.replace(effect, anew=True)
            self._db.execute("delete from outbox where seq = ?", (seq,))
        self._insert(effect, now)

    def _insert(self, effect: Notify | Act, now: float) -> None:
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

        Of steps in the cluster the oldest of each plan, and of these the one that is due first.

        One that cannot be read (damaged, or of another version) would hold up all behind it for ever: it is taken out,
        and named in `unreadable`.

        Raises:
            UnreadableStepError: A step in the cluster; it stays until `finish_step`.
        """
        while True:
            found = self._db.execute(_FIRST_STEP if receiver == CLUSTER else _FIRST, (receiver,)).fetchone()
            if found is None:
                return None
            seq, effect_id, blob, attempts, due, state = found
            try:
                return Parcel(seq, _effects.decode(blob), attempts, due, state == "sending")
            except msgspec.MsgspecError as error:
                if receiver == CLUSTER:
                    raise UnreadableStepError(seq, effect_id, str(error)) from None
                self.unreadable.append((receiver, effect_id, str(error)))
                with self._transaction():
                    self._db.execute("delete from outbox where seq = ?", (seq,))

    def begin_sending(self, seq: int) -> bool:
        """
        From here on it may have arrived, whatever happens to this process.

        False if it is not there any more: a newer revision took its place, and is to be sent instead.  Errors as
        `commit`.
        """
        with self._transaction():
            found = self._db.execute(
                "update outbox set state = 'sending', attempts = attempts + 1 where seq = ?", (seq,)
            )
            return found.rowcount == 1

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

    def finish_step(self, seq: int, done: StepDone, *, now: float) -> None:
        """
        It is known what came of a step in the cluster: out of the outbox, never done again, and kept for the engine.

        Errors as `commit`.
        """
        with self._transaction():
            self._db.execute("delete from outbox where seq = ?", (seq,))
            self._acts.finish(done, now)

    def answers(self) -> list[StepDone]:
        """What came of steps and was not taken in by the engine (`commit` with `heard`), oldest first."""
        return self._acts.answers()

    def records(self) -> Iterator[AuditRecord]:
        """
        The audit trail in order.

        Raises:
            AuditError: A record was changed so that it cannot be read; `audit.verify_lines` of `audit_lines` names it.
        """
        return self._audit.records()

    def audit_lines(self) -> Iterator[bytes]:
        """The audit trail as it is kept."""
        return self._audit.lines()

    def audit_head(self) -> Head | None:
        """Number and hash of the record that was written last, kept apart from the trail."""
        return self._audit.head()

    def last_record(self) -> AuditRecord | Head | None:
        """What the next record is appended to."""
        return self._audit.last()

    def waiting_for(self) -> dict[str, int]:
        """Receiver to the number of parcels that wait for it."""
        return dict(self._db.execute("select receiver, count(*) from outbox group by receiver order by receiver"))

    def why_not_writable(self) -> str:
        """Empty if something can be stored now, tried with a real write; else why not."""
        try:
            with self._transaction():
                self._db.execute("insert or replace into meta values ('written', datetime('now'))")
        except StoreError as error:
            return str(error)
        return ""

    def waiting(self) -> tuple[int, float | None]:
        """(parcels in the outbox, due time of the oldest), for metrics and `doctor`."""
        count, oldest = self._db.execute("select count(*), min(due) from outbox").fetchone()
        return count, oldest

    def close(self) -> None:
        self._db.close()
        self._lock.close()


def _way_out(error: str) -> str:
    """What a person does about an error of SQLite's that is not a damaged file."""
    if "disk" in error:
        return "free some space"
    if "locked" in error:
        return "another program has it open; end that, then start again"
    return "let sevenhop read and write it, or choose another folder with --state"


def _is_anew(blob: bytes) -> bool:
    notify = _effects.decode(blob)
    return isinstance(notify, Notify) and notify.anew
