"""The audit trail in the store: appended with the step that it tells of, and neither changed nor taken out."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator
from contextlib import closing

import msgspec

from sevenhop.core.remediation.audit import AuditError, AuditRecord, Head, line_of, parse_line

SCHEMA = """
create table if not exists audit (number integer primary key, line blob not null);
create trigger if not exists audit_is_not_changed before update on audit
  begin select raise(abort, 'the audit trail is only appended to'); end;
create trigger if not exists audit_is_not_cut before delete on audit
  begin select raise(abort, 'the audit trail is only appended to'); end;
"""

_HEAD = "audit_head"
"""Number and hash of the last record, beside the trail: a chain by itself does not show that its end was cut off."""


class AuditTrail:
    """Of one store; writing is part of a transaction of its owner."""

    def __init__(self, db: sqlite3.Connection) -> None:
        self._db = db

    def append(self, records: Iterable[AuditRecord]) -> None:
        """
        Raises:
            sqlite3.IntegrityError: There is a record of that number.
        """
        head = None
        for record in records:
            self._db.execute("insert into audit values (?, ?)", (record.number, line_of(record)))
            head = Head(record.number, record.hash)
        if head is not None:
            text = msgspec.json.encode(head).decode()
            self._db.execute("insert or replace into meta values (?, ?)", (_HEAD, text))

    def lines(self) -> Iterator[bytes]:
        """As they are kept, in order, for `audit.verify_lines`."""
        with closing(self._db.execute("select line from audit order by number")) as cursor:
            for (line,) in cursor:
                yield bytes(line) if not isinstance(line, str) else line.encode()

    def records(self) -> Iterator[AuditRecord]:
        """
        In order.

        Raises:
            AuditError: One of them was changed so that it cannot be read.
        """
        return map(parse_line, self.lines())

    def head(self) -> Head | None:
        """What the last record was when it was written; None before the first one."""
        row = self._db.execute("select value from meta where key = ?", (_HEAD,)).fetchone()
        try:
            return None if row is None else msgspec.json.decode(row[0], type=Head)
        except msgspec.MsgspecError:
            return None

    def last(self) -> AuditRecord | Head | None:
        """What the next record is appended to; as far as it is known where the last record cannot be read."""
        row = self._db.execute("select line from audit order by number desc limit 1").fetchone()
        try:
            return self.head() if row is None else parse_line(bytes(row[0]))
        except (AuditError, TypeError):
            return self.head()
