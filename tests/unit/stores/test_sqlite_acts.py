"""Steps and the audit trail in the store."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from pathlib import Path

import pytest

from sevenhop.core.effects import CLUSTER, Row
from sevenhop.core.events import StepDone, StepResult
from sevenhop.core.remediation.action import EvictPod, ObjectRef
from sevenhop.core.remediation.audit import AuditRecord, Head, append, verify, verify_lines
from sevenhop.stores.sqlite import SCHEMA_VERSION, SqliteStore, StoreError
from tests.builders import notify
from tests.unit.actions.scene import NOON, act

NOW = NOON.timestamp()
STEP = act(EvictPod(pod=ObjectRef("Pod", "chat", "stuck", "uid-1")))


@pytest.fixture
def store(tmp_path: Path) -> Iterator[SqliteStore]:
    opened = SqliteStore(tmp_path)
    yield opened
    opened.close()


def chain(count: int, last: AuditRecord | Head | None = None) -> list[AuditRecord]:
    made: list[AuditRecord] = []
    for number in range(count):
        last = append(last, at=NOON, what="step", who="sevenhop", text=f"step {number}", data={"n": number})
        made.append(last)
    return made


def done(effect_id: str = STEP.id) -> StepDone:
    return StepDone(at=NOON, effect_id=effect_id, result=StepResult.DONE, detail="done")


def test_a_step_reads_back_as_it_was(store: SqliteStore) -> None:
    """Plan, purpose and permission to lend, beside messages of other receivers."""
    store.commit([], [STEP, notify()], now=NOW)

    parcel = store.first(CLUSTER)
    assert parcel is not None
    assert (parcel.effect, parcel.was_sending) == (STEP, False)
    assert store.waiting_for() == {CLUSTER: 1, "slack": 1}


def test_ten_thousand_messages_later_a_step_is_still_known(store: SqliteStore, monkeypatch: pytest.MonkeyPatch) -> None:
    """Asked for again it is not done again, however much was told meanwhile."""
    monkeypatch.setattr("sevenhop.stores.sqlite._SENT_KEPT", 3)
    store.commit([], [STEP], now=NOW)
    parcel = store.first(CLUSTER)
    assert parcel is not None
    store.finish_step(parcel.seq, done(), now=NOW)
    for number in range(10):
        store.finish(0, f"message {number}", now=NOW + number)
    store.commit([], [STEP], now=NOW)

    assert store.first(CLUSTER) is None


def test_an_answer_that_cannot_be_read_is_unknown(store: SqliteStore) -> None:
    """A damaged answer does not stop the start, and is not taken for none."""
    store.finish_step(1, done(), now=NOW)
    with sqlite3.connect(store.path) as db:
        db.execute("update answers set event = x'7b'")

    (answer,) = store.answers()
    assert (answer.effect_id, answer.result) == (STEP.id, StepResult.UNKNOWN)


def test_the_trail_is_stored_with_its_step(store: SqliteStore) -> None:
    """Records, rows and steps together or not at all, and the chain holds over a restart."""
    first = chain(3)
    store.commit([Row("t", "k", b"1")], [STEP], first, now=NOW)
    last = store.last_record()
    assert last == first[-1]
    more = chain(2, last)
    store.commit([], (), more, now=NOW)

    assert list(store.records()) == [*first, *more]
    assert verify(store.records(), store.audit_head()) == []
    with pytest.raises(sqlite3.IntegrityError):
        store.commit([Row("t", "k", b"2")], (), first[:1], now=NOW)
    assert [row.value for row in store.rows()] == [b"1"]


@pytest.mark.parametrize(
    "statement",
    [
        "update audit set line = x'7b7d' where number = 2",
        "delete from audit where number = 2",
        "delete from audit",
        "update audit set number = 9 where number = 2",
    ],
)
def test_the_trail_is_only_appended_to(store: SqliteStore, statement: str) -> None:
    """The database itself refuses it, whoever asks."""
    store.commit([], (), chain(3), now=NOW)
    with sqlite3.connect(store.path) as db, pytest.raises(sqlite3.IntegrityError, match="only appended to"):
        db.execute(statement)


@pytest.mark.parametrize(
    ("statement", "named"),
    [
        pytest.param("update audit set line = replace(line, 'step 1', 'step 7') where number = 2", "2", id="changed"),
        pytest.param("update audit set line = x'7b7d' where number = 2", "2", id="not readable"),
        pytest.param("delete from audit where number = 2", "2", id="missing"),
        pytest.param("delete from audit where number = 3", "3", id="cut at the end"),
        pytest.param("delete from audit", "1", id="emptied"),
    ],
)
def test_who_goes_round_the_triggers_is_found(store: SqliteStore, statement: str, named: str) -> None:
    """The chain and the head that is kept apart name the record."""
    store.commit([], (), chain(3), now=NOW)
    with sqlite3.connect(store.path) as db:
        db.executescript("drop trigger audit_is_not_changed; drop trigger audit_is_not_cut;")
        db.execute(statement)

    problems = verify_lines(store.audit_lines(), store.audit_head())
    assert any(named in problem.text for problem in problems)
    assert store.last_record() is not None


def test_a_state_of_the_version_before_is_taken_over(tmp_path: Path) -> None:
    """Its schema says the newer version from then on, so the older program does not touch steps it cannot read."""
    SqliteStore(tmp_path).close()
    with sqlite3.connect(tmp_path / "state.db") as db:
        db.executescript("drop table acted; drop table answers; update meta set value = '1' where key = 'schema'")
    store = SqliteStore(tmp_path)
    store.commit([], [STEP], chain(1), now=NOW)
    store.close()
    with sqlite3.connect(tmp_path / "state.db") as db:
        assert db.execute("select value from meta where key = 'schema'").fetchone() == (str(SCHEMA_VERSION),)
        db.execute("update meta set value = '99' where key = 'schema'")
    with pytest.raises(StoreError, match="newer"):
        SqliteStore(tmp_path)
