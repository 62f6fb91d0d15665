"""
Steps in the cluster: which were done, and what came of them until the engine has taken that in.

A step is finished and its answer kept in one transaction; the answer goes in another, with what the engine made
of it.  A crash between the two finds the answer here, and tells it again.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable
from datetime import UTC, datetime

import msgspec

from sevenhop.core.events import StepDone, StepResult

SCHEMA = """
create table if not exists acted (id text primary key, at real not null) without rowid;
create table if not exists answers (id text primary key, event blob not null) without rowid;
"""

_KEPT = 10_000
"""Ids of steps that were done: apart from those of messages, so that a day of many messages forgets none of them."""

_decode = msgspec.json.Decoder(StepDone).decode


class Acts:
    """Of one store; writing is part of a transaction of its owner."""

    def __init__(self, db: sqlite3.Connection) -> None:
        self._db = db

    def is_done(self, effect_id: str) -> bool:
        return self._db.execute("select 1 from acted where id = ?", (effect_id,)).fetchone() is not None

    def finish(self, done: StepDone, now: float) -> None:
        """It is done, with this answer, and never done again."""
        self._db.execute("insert or replace into acted values (?, ?)", (done.effect_id, now))
        self._db.execute(
            "delete from acted where id in (select id from acted order by at desc limit -1 offset ?)", (_KEPT,)
        )
        event = msgspec.json.encode(done)
        self._db.execute("insert or replace into answers values (?, ?)", (done.effect_id, event))

    def heard(self, effect_ids: Iterable[str]) -> None:
        """The engine has taken these answers in."""
        self._db.executemany("delete from answers where id = ?", [(effect_id,) for effect_id in effect_ids])

    def answers(self) -> list[StepDone]:
        """What the engine has yet to be told, oldest first."""
        found = []
        query = "select answers.id, event, at from answers left join acted on acted.id = answers.id"
        for effect_id, event, at in self._db.execute(query).fetchall():
            try:
                found.append(_decode(event))
            except msgspec.MsgspecError as error:
                when = datetime.fromtimestamp(at or 0, UTC)
                detail = f"what came of it cannot be read any more ({error}); look at the donor"
                found.append(StepDone(at=when, effect_id=effect_id, result=StepResult.UNKNOWN, detail=detail))
        return sorted(found, key=lambda done: done.at)
