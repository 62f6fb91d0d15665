"""
The audit trail: what was decided and done, appended and never changed.

Each record carries the hash of the one before it, so that a changed, missing or moved record shows, and is named.  What
no chain can show by itself is a cut end; therefore the number and hash of the last record are kept apart (`Head`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime
from enum import StrEnum
from hashlib import sha256
from typing import Any

import msgspec


class What(StrEnum):
    """What a record is about; further words may be used, these are ours."""

    PROPOSED = "proposed"
    SHADOWED = "shadowed"
    DECIDED = "decided"
    REFUSED = "refused"  # a person, or a step that the guards did not let pass
    STATE = "state"  # a plan went into another state
    STEP = "step"  # asked for
    STEP_DONE = "step-done"
    SWITCH = "switch"
    BREAKER = "breaker"
    LEASE = "lease"


class AuditRecord(msgspec.Struct, frozen=True, kw_only=True):
    """
    Attributes:
        number: From 1, without gaps.
        at: UTC.
        what: See `What`.
        plan_id: Empty for what is about no plan.
        who: Verified id of the person; ``sevenhop`` for ourselves.
        text: One line for people.
        data: Details as plain JSON values.
        previous: Hash of the record before; empty for the first.
        hash: SHA-256 over all fields above, as hexadecimal digits.
    """

    number: int
    at: datetime
    what: str
    plan_id: str
    who: str
    text: str
    data: dict[str, Any]
    previous: str
    hash: str


class Head(msgspec.Struct, frozen=True, gc=False):
    """The last record of a trail, as it is known from elsewhere."""

    number: int
    hash: str


class AuditProblemKind(StrEnum):
    CHANGED = "changed"
    MISSING = "missing"
    MOVED = "moved"
    TWICE = "twice"
    CUT = "cut"  # the end is missing


class AuditProblem(msgspec.Struct, frozen=True, order=True, gc=False):
    """Attributes: number: Of the record, as far as it can be told; 0 for a line that cannot be read."""

    number: int
    kind: AuditProblemKind
    text: str

    def __str__(self) -> str:
        return self.text


class AuditError(ValueError):
    """A line is no audit record."""


def append(
    last: AuditRecord | Head | None,
    *,
    at: datetime,
    what: str,
    who: str,
    text: str,
    plan_id: str = "",
    data: Mapping[str, Any] | None = None,
) -> AuditRecord:
    """
    The next record after `last`, or the first.

    Args:
        at: With a time zone.
        data: What msgspec can write as JSON; kept as plain JSON values.

    Raises:
        ValueError: `at` has no time zone.
    """
    if at.tzinfo is None:
        raise ValueError(f"an audit record needs a time with a time zone, got {at.isoformat()}")
    record = AuditRecord(
        number=last.number + 1 if last is not None else 1,
        at=at.astimezone(UTC),
        what=_writable(str(what)),
        plan_id=_writable(plan_id),
        who=_writable(who),
        text=_writable(text),
        data=_plain(data or {}),
        previous=last.hash if last is not None else "",
        hash="",
    )
    return msgspec.structs.replace(record, hash=digest(record))


def digest(record: AuditRecord) -> str:
    """The hash that a record with these contents has."""
    return sha256(_canonical(msgspec.structs.astuple(record)[:-1])).hexdigest()


def verify(records: Iterable[AuditRecord], last: Head | None = None, after: Head | None = None) -> list[AuditProblem]:
    """
    Everything that is wrong with a trail, in the order of numbers; empty if it is whole.

    Args:
        records: In the order in which they are kept.
        last: What its last record is known to have been; without it a cut end cannot be found.
        after: The record before the first one, for a part of a trail; None for a whole one.
    """
    found: set[AuditProblem] = set()
    sound: dict[int, AuditRecord] = {}
    present: set[int] = set()
    highest = after.number if after is not None else 0
    start = highest
    for record in records:
        number = record.number
        if digest(record) != record.hash:
            found.add(_problem(number, AuditProblemKind.CHANGED, f"record {number} was changed"))
        elif number in sound:
            found.add(_problem(number, AuditProblemKind.TWICE, f"record {number} is there twice"))
        else:
            if number <= highest:
                text = f"record {number} was moved: it stands after {highest}"
                found.add(_problem(number, AuditProblemKind.MOVED, text))
            sound[number] = record
            highest = max(highest, number)
        present.add(number)
    for number in sorted(set(range(start + 1, highest)) - present):
        found.add(_problem(number, AuditProblemKind.MISSING, f"record {number} is missing"))
    found |= _broken_links(sound, after)
    if last is not None:
        found |= _against_head(sound, present, highest, last)
    return sorted(found)


def line_of(record: AuditRecord) -> bytes:
    """The record as one line of JSON without line end; the only way to write it."""
    return _canonical(record)


def export_lines(records: Iterable[AuditRecord]) -> Iterator[bytes]:
    """JSON Lines, each with its line end."""
    for record in records:
        yield line_of(record) + b"\n"


def parse_line(line: bytes) -> AuditRecord:
    """
    Read what `line_of` wrote.

    Raises:
        AuditError: It is no record, or was written in another way than we write.
    """
    line = line.removesuffix(b"\n")
    try:
        record = msgspec.json.decode(line, type=AuditRecord)
    except ValueError as error:  # msgspec's own, and those of Unicode
        raise AuditError(str(error)) from None
    except RecursionError:
        raise AuditError("nested too deeply") from None
    if line_of(record) != line:
        raise AuditError("not as it was written")
    return record


def is_like_a_record(line: bytes) -> bool:
    """
    Whether it may once have been a record, changed or not: it has the chain's own fields.

    >>> is_like_a_record(b'{"number": 1, "previous": "", "hash": "x"}'), is_like_a_record(b'{"kind": "List"}')
    (True, False)
    """
    try:
        found = msgspec.json.decode(line)
    except (ValueError, RecursionError):
        return all(f'"{name}":'.encode() in line for name in _CHAIN)
    return isinstance(found, dict) and found.keys() >= _CHAIN


_CHAIN = frozenset(("number", "previous", "hash"))


def verify_lines(lines: Iterable[bytes], last: Head | None = None) -> list[AuditProblem]:
    """As `verify`, over exported lines: what cannot be read is a change too, named by its line."""
    records, found = [], []
    for place, line in enumerate(lines, 1):
        try:
            records.append(parse_line(line))
        except AuditError as error:
            found.append(_problem(0, AuditProblemKind.CHANGED, f"line {place} was changed: {error}"))
    return [*found, *verify(records, last)]


def _broken_links(sound: Mapping[int, AuditRecord], after: Head | None) -> set[AuditProblem]:
    """Records that are sound in themselves and are not those that were followed: somebody wrote them anew."""
    found = set()
    first, before_first = (after.number + 1, after.hash) if after is not None else (1, "")
    for number, record in sound.items():
        if number == first:
            before = before_first
        elif number - 1 in sound:
            before = sound[number - 1].hash
        else:
            continue  # missing or changed: named as that
        if record.previous != before:
            which = number if number == first else number - 1
            text = f"record {which} was changed: record {number} was written after another one"
            found.add(_problem(which, AuditProblemKind.CHANGED, text))
    return found


def _against_head(sound: Mapping[int, AuditRecord], present: set[int], highest: int, last: Head) -> set[AuditProblem]:
    if last.number in sound:
        if sound[last.number].hash == last.hash:
            return set()
        text = f"record {last.number} was changed: it is not the one that was known as the last"
        return {_problem(last.number, AuditProblemKind.CHANGED, text)}
    # What is changed or missing within is named as that.
    return {
        _problem(number, AuditProblemKind.CUT, f"record {number} is missing at the end")
        for number in range(highest + 1, last.number + 1)
        if number not in present
    }


def _problem(number: int, kind: AuditProblemKind, text: str) -> AuditProblem:
    return AuditProblem(number, kind, text)


def _canonical(value: object) -> bytes:
    return msgspec.json.encode(value, order="deterministic")


def _plain(data: Mapping[str, Any]) -> dict[str, Any]:
    """As it reads back: equal contents have equal hashes, before and after they were stored."""
    builtins = msgspec.to_builtins(dict(data))
    plain: dict[str, Any] = msgspec.json.decode(_canonical(_clean(builtins)))
    return plain


def _clean(value: Any) -> Any:
    if isinstance(value, str):
        return _writable(value)
    if isinstance(value, dict):
        return {_writable(str(key)): _clean(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_clean(inner) for inner in value]
    return value


def _writable(text: str) -> str:
    """Text from outside may hold half of a surrogate pair, which JSON cannot."""
    return text.encode("utf-8", "replace").decode("utf-8")
