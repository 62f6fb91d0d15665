"""The audit trail: whole as it was written, and every change of it is found and named."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from sevenhop.core.remediation.audit import (
    AuditError,
    AuditProblem,
    AuditProblemKind,
    AuditRecord,
    Head,
    What,
    append,
    digest,
    export_lines,
    is_like_a_record,
    line_of,
    parse_line,
    verify,
    verify_lines,
)
from tests.guard_questions import NOW

KIND = AuditProblemKind


def trail(length: int = 6, **more: Any) -> list[AuditRecord]:
    """Records with contents that differ."""
    records: list[AuditRecord] = []
    for i in range(length):
        given: dict[str, Any] = {
            "at": NOW + timedelta(seconds=i),
            "what": What.STATE,
            "who": "slack:U1",
            "text": f"record {i}",
            "plan_id": "7f3a",
            "data": {"from": 4, "to": i, "nodes": ["gpu-07"]},
        }
        records.append(append(records[-1] if records else None, **(given | more)))
    return records


def head(records: list[AuditRecord]) -> Head:
    return Head(records[-1].number, records[-1].hash)


def said(problems: list[AuditProblem]) -> list[tuple[int, str]]:
    return [(p.number, str(p.kind)) for p in problems]


def test_a_trail_is_whole() -> None:
    """
    Numbers count from one, each record carries the hash before it, and nothing is found.
    """
    records = trail()

    assert [r.number for r in records] == [1, 2, 3, 4, 5, 6]
    assert [r.previous for r in records] == ["", *(r.hash for r in records[:-1])]
    assert len({r.hash for r in records}) == 6
    assert verify(records) == verify(records, head(records)) == []
    assert verify([]) == []


def test_fields_arrive() -> None:
    """
    What was given is in the record; plan and details may be left out.
    """
    one = append(None, at=NOW, what=What.SWITCH, who="slack:U1", text="on")
    two = append(one, at=NOW, what="step", who="sevenhop", text="t", plan_id="p", data={"a": 1})

    assert (one.number, one.what, one.who, one.text, one.plan_id, one.data) == (1, "switch", "slack:U1", "on", "", {})
    assert (two.number, two.plan_id, two.data, two.previous) == (2, "p", {"a": 1}, one.hash)
    assert append(Head(2, two.hash), at=NOW, what="x", who="y", text="z") == append(
        two, at=NOW, what="x", who="y", text="z"
    )


def test_times_are_utc() -> None:
    """
    The same moment in another zone is the same record; one without a zone is refused.
    """
    there = NOW.astimezone(timezone(timedelta(hours=5)))

    assert append(None, at=there, what="x", who="y", text="z") == append(None, at=NOW, what="x", who="y", text="z")
    assert append(None, at=there, what="x", who="y", text="z").at.tzinfo == UTC
    with pytest.raises(ValueError, match="time zone"):
        append(None, at=datetime(2026, 1, 1), what="x", who="y", text="z")


@pytest.mark.parametrize("index", [0, 2, 5], ids=["first", "middle", "last"])
@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("at", NOW + timedelta(microseconds=1)),
        ("what", "statf"),
        ("plan_id", "7f3b"),
        ("who", "slack:U2"),
        ("text", "Record"),
        ("data", {"from": 4, "to": 99, "nodes": ["gpu-07"]}),
        ("previous", "0" * 64),
        ("hash", "0" * 64),
    ],
    ids=lambda v: v if isinstance(v, str) and v.isalpha() else "",
)
def test_a_changed_field_is_found_and_named(index: int, field: str, value: Any) -> None:
    """
    Whatever is changed in whichever record, that record is named as changed, and no other.
    """
    records = trail()
    records[index] = replace(records[index], **{field: value})

    assert said(verify(records, head(trail()))) == [(index + 1, "changed")]
    assert said(verify(records)) == [(index + 1, "changed")]


@pytest.mark.parametrize("index", [0, 2, 4, 5], ids=["first", "middle", "last but one", "last"])
def test_a_record_written_anew_is_found(index: int) -> None:
    """
    Who changes a record and its hash too is found by the next one, or by the known end.
    """
    records = trail()
    changed = replace(records[index], text="nothing happened", hash="")
    records[index] = replace(changed, hash=digest(changed))

    assert said(verify(records, head(trail()))) == [(index + 1, "changed")]


def test_all_written_anew_is_found_by_the_known_end() -> None:
    """
    A whole forged trail is sound in itself; the end that is kept apart does not agree.
    """
    forged = trail(text="nothing happened")

    assert verify(forged) == []
    assert said(verify(forged, head(trail()))) == [(6, "changed")]


@given(st.sets(st.integers(1, 8), min_size=1, max_size=8))
def test_missing_records_are_named(gone: set[int]) -> None:
    """
    Every record that is taken out is named: within as missing, at the end as cut.
    """
    whole = trail(8)
    left = [r for r in whole if r.number not in gone]
    last_left = max((r.number for r in left), default=0)

    found = verify(left, head(whole))

    assert said(found) == [(n, "missing" if n < last_left else "cut") for n in sorted(gone)]
    assert said(verify(left)) == [(n, "missing") for n in sorted(gone) if n < last_left]
    assert all(str(p) == p.text and str(p.number) in p.text for p in found)


@given(st.permutations(range(6)))
def test_moved_records_are_named(order: list[int]) -> None:
    """
    Any other order is found, and only records that stand after a later one are named.
    """
    whole = trail()
    found = verify([whole[i] for i in order], head(whole))
    late = [i + 1 for place, i in enumerate(order) if any(j > i for j in order[:place])]

    assert said(found) == [(n, "moved") for n in sorted(late)]


def test_a_record_that_is_there_twice_is_named() -> None:
    """
    A repeated record is no gap and no change.
    """
    records = trail()

    assert said(verify([*records, records[2]], head(records))) == [(3, "twice")]
    assert said(verify([*records[:3], *records[2:]], head(records))) == [(3, "twice")]


def test_a_part_of_a_trail_can_be_checked() -> None:
    """
    With the record before it a part is whole; after another one it is not.
    """
    records = trail()
    before = Head(records[2].number, records[2].hash)

    assert verify(records[3:], head(records), before) == []
    assert said(verify(records[4:], head(records), before)) == [(4, "missing")]
    assert said(verify(records[3:], head(records), Head(3, "0" * 64))) == [(4, "changed")]
    assert said(verify(records[2:], head(records), before)) == [(3, "moved")]
    anew = replace(records[3], text="x", hash="")
    anew = replace(anew, hash=digest(anew))
    assert said(verify([anew, *records[4:]], head(records), before)) == [(4, "changed")]
    assert said(verify(records[3:])) == [(1, "missing"), (2, "missing"), (3, "missing")]


def test_a_trail_may_have_grown_since_its_end_was_noted() -> None:
    """
    A known record that is no longer the last still counts.
    """
    records = trail()
    noted = Head(3, records[2].hash)
    changed = replace(records[2], text="x")

    assert verify(records, noted) == []
    assert said(verify(records, Head(3, "0" * 64))) == [(3, "changed")]
    assert said(verify([*records[:2], changed, *records[3:]], noted)) == [(3, "changed")]
    assert said(verify([*records[:2], *records[3:]], noted)) == [(3, "missing")]


@settings(max_examples=400)
@given(st.data())
def test_one_changed_byte_is_found(data: st.DataObject) -> None:
    """
    Any byte of an exported trail, line ends apart, changed into any other, is found.
    """
    lines = list(export_lines(trail(4)))
    which = data.draw(st.integers(0, 3))
    place = data.draw(st.integers(0, len(lines[which]) - 2))
    byte = data.draw(st.integers(0, 255).filter(lambda b: b != lines[which][place]))
    lines[which] = lines[which][:place] + bytes([byte]) + lines[which][place + 1 :]

    found = verify_lines(lines, head(trail(4)))

    assert found
    assert any(p.kind is KIND.CHANGED for p in found)
    assert any(re.search(rf"\b{which + 1}\b", p.text) for p in found)


def test_export_reads_back() -> None:
    """
    A line holds one record, and is the only way to write it.
    """
    records = trail()
    lines = list(export_lines(records))

    assert [parse_line(line) for line in lines] == records
    assert all(line.endswith(b"\n") and line.count(b"\n") == 1 for line in lines)
    assert verify_lines(lines, head(records)) == []
    for other in (b"", b"{}", b"null", b"\xff", line_of(records[0]) + b" ", lines[0].replace(b":", b": ", 1)):
        with pytest.raises(AuditError):
            parse_line(other)


texts = st.text(st.characters(exclude_categories=()), max_size=8)
plain = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.floats() | texts,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3) | st.tuples(inner, inner),
    max_leaves=6,
)


@given(texts, texts, st.dictionaries(texts, plain, max_size=4))
def test_whatever_is_written_reads_back_the_same(who: str, text: str, data: dict[str, Any]) -> None:
    """
    Text from a cluster, numbers and lists of any kind survive the store, and keep the hash.
    """
    record = append(None, at=NOW, what="x", who=who, text=text, plan_id=text, data=data)
    back = msgspec.json.decode(line_of(record), type=AuditRecord)

    assert back == record
    assert verify([back], head([record])) == []


def test_the_order_of_keys_does_not_matter() -> None:
    """
    Equal details make equal records.
    """
    one = append(None, at=NOW, what="x", who="y", text="z", data={"a": 1, "b": {"c": 2, "d": (3,)}})
    two = append(None, at=NOW, what="x", who="y", text="z", data={"b": {"d": [3], "c": 2}, "a": 1})

    assert one == two


def test_a_first_record_that_follows_another_is_found() -> None:
    """
    The head of a longer trail was cut off and the rest numbered anew.
    """
    first = replace(trail(1)[0], previous="0" * 64, hash="")
    first = replace(first, hash=digest(first))

    assert said(verify([first])) == [(1, "changed")]


def test_a_line_that_cannot_be_read_is_named_by_its_place() -> None:
    """
    Lines count from one; which record it was cannot be told.
    """
    lines = list(export_lines(trail(3)))
    found = verify_lines([lines[0], b"not a record\n", lines[2]])

    assert found[0].number == 0
    assert found[0].text.startswith("line 2 was changed: ")
    assert said(found[1:]) == [(2, "missing")]


def test_details_arrive_as_they_are() -> None:
    """
    Plain values are kept at any depth; tuples become lists, half a surrogate pair a question mark.
    """
    data = {"a": ["x", {"b": None, "c": [1, True]}], "t": (1, "y"), "bad\ud800": ["\udfff"]}

    assert append(None, at=NOW, what="x", who="y", text="z", data=data).data == {
        "a": ["x", {"b": None, "c": [1, True]}],
        "t": [1, "y"],
        "bad?": ["?"],
    }


def test_a_line_without_a_bottom_is_named() -> None:
    """
    Whoever can write the file can write anything: it is one more changed line, not the end of the check.
    """
    sound = line_of(append(None, at=NOW, what="state", who="ann", text="one"))
    found = verify_lines([sound, b'{"number":2,"data":{"a":' + b"[" * 100_000])

    assert [(each.kind, "line 2" in each.text) for each in found] == [(AuditProblemKind.CHANGED, True)]


def test_text_that_is_not_unicode_is_no_record() -> None:
    """
    A byte within a text that no encoding of Unicode has is told like every other change.
    """
    line = line_of(trail(1)[0]).replace(b"record 0", b"record \xff")

    with pytest.raises(AuditError):
        parse_line(line)


WHOLE = '{"number": 1, "previous": "", "hash": "x"}'


@pytest.mark.parametrize(
    ("line", "is_like"),
    [
        pytest.param(WHOLE, True, id="all three"),
        pytest.param(WHOLE[:-1] + ', "what": "?"}', True, id="and more"),
        *(
            pytest.param(WHOLE.replace(name, "other"), False, id=f"no {name}")
            for name in ("number", "previous", "hash")
        ),
        pytest.param("[]", False, id="no object"),
        pytest.param(WHOLE[:-1].replace(": ", ":"), True, id="cut short"),
        *(
            pytest.param(WHOLE[:-1].replace(": ", ":").replace(name, "other"), False, id=f"cut short, no {name}")
            for name in ("number", "previous", "hash")
        ),
        pytest.param('{"number":1,"previous":"","hash":' + "[" * 5000, True, id="without a bottom"),
    ],
)
def test_what_may_have_been_a_record(line: str, is_like: bool) -> None:
    """It has the chain's own three fields, whatever else happened to it; another file is told from a changed one."""
    assert is_like_a_record(line.encode()) is is_like
