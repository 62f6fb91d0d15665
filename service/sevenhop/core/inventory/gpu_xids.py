"""
The XIDs of one GPU: which of them is the root, which only followed, and how often the same one came back.

Windows: what comes within three minutes is one trouble; what asks for a reset or more stands for three hours, unless
the GPU is seen to have been reset, and everything else for ten minutes; repeats are counted over a day.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta

import msgspec

from sevenhop.core.hops.xids import (
    BREAKS_PEERS,
    DIRECTIVE,
    XidClass,
    class_of,
    is_consequence,
    is_link,
    needs_line,
    rank_of,
)
from sevenhop.core.inventory.objects import Key

BURST = timedelta(minutes=3)
STANDS = timedelta(hours=3)
SHOWN = timedelta(minutes=10)
REPEATS = timedelta(hours=24)
SAME = timedelta(seconds=60)
"""One XID is reported by NVML, in the kernel log, and in several lines: as long after another it is the same."""
KEPT = 100
"""Of one GPU; the newest."""


class XidRecord(msgspec.Struct, frozen=True, gc=False, order=True):
    """
    Attributes:
        at: By our clock, as far as the agent's skew is known.
        pods: Who had the GPU then, sorted; empty where nobody had it, or nobody knows.
    """

    at: datetime
    xid: int
    text: str = ""
    pods: tuple[Key, ...] = ()


class Root(msgspec.Struct, frozen=True, gc=False):
    """
    What is wrong with a GPU by its XIDs.

    Attributes:
        cls: None where nothing tells what it asks for.
        followed: XIDs that it explains, in order of number.
    """

    xid: int
    at: datetime
    cls: XidClass | None
    pods: tuple[Key, ...] = ()
    followed: tuple[int, ...] = ()


def with_record(known: tuple[XidRecord, ...], new: XidRecord) -> tuple[XidRecord, ...]:
    """
    The records with one more, sorted; the same one again, from another place or in another line, is the same.

    The earliest time stands, and the longest line, so that the order of arrival does not matter.
    """
    same = [r for r in known if r.xid == new.xid and abs(r.at - new.at) <= SAME and _says_alike(r, new)]
    if not same:
        return tuple(sorted((*known, new)))[-KEPT:]
    merged = XidRecord(
        min(new.at, *(r.at for r in same)),
        new.xid,
        max((new.text, *(r.text for r in same)), key=lambda text: (len(text), text)),
        tuple(sorted({*new.pods, *(pod for r in same for pod in r.pods)})),
    )
    return tuple(sorted((*(r for r in known if r not in same), merged)))


def _says_alike(a: XidRecord, b: XidRecord) -> bool:
    """
    A second directive with other words is another one, and so is the error of a link that asks for something else.

    The same from a place that knows no line stands beside both; see `_with_lines`.
    """
    if a.xid == DIRECTIVE:
        return a.text == b.text
    if not needs_line(a.xid):
        return True
    return bool(a.text) == bool(b.text) and class_of(a.xid, a.text) is class_of(b.xid, b.text)


def _with_lines(records: Sequence[XidRecord]) -> Sequence[XidRecord]:
    """Without those that know no line, where their line is known from another place."""
    if all(r.text or not needs_line(r.xid) for r in records):
        return records
    lines = [r for r in records if r.text]
    return [
        r
        for r in records
        if r.text or not needs_line(r.xid) or not any(o.xid == r.xid and abs(o.at - r.at) <= SAME for o in lines)
    ]


def root(records: Sequence[XidRecord], now: datetime, cleared_at: datetime | None = None) -> Root | None:
    """
    The one XID that the others are explained by; None where none stands now, or only consequences.

    Args:
        records: Of one GPU, sorted.
        cleared_at: When it was last seen to have been reset: what was before is over.
    """
    records = _with_lines(records)
    after = _cleared(records, cleared_at)
    standing = [r for r in records if (after is None or r.at > after) and _stands(r, now)]
    told = [r for r in standing if not is_consequence(r.xid)]
    named = [r for r in told if r.xid != DIRECTIVE]
    directive = next((r for r in reversed(told) if r.xid == DIRECTIVE), None)
    if not named and directive is None:
        return None
    first = min(named, key=_weight, default=directive)
    assert first is not None, "one of them is there"
    cls = class_of(first.xid, first.text)
    if directive is not None:
        cls = class_of(directive.xid, directive.text) or cls
    followed = {r.xid for r in records if r.xid != first.xid and abs(r.at - first.at) <= BURST}
    pods = {pod for r in standing if abs(r.at - first.at) <= BURST for pod in r.pods}
    return Root(first.xid, first.at, cls, tuple(sorted(pods)), tuple(sorted(followed)))


def _weight(record: XidRecord) -> tuple[int, bool, datetime]:
    """Of several lines of one number what asks for most, as far as a line tells, then the first."""
    cls = class_of(record.xid, record.text)
    return rank_of(record.xid, record.text), not (cls is not None and cls.is_bad), record.at


def _cleared(records: Iterable[XidRecord], cleared_at: datetime | None) -> datetime | None:
    """A directive that says `None` takes back what was before it."""
    times = [r.at for r in records if r.xid == DIRECTIVE and class_of(r.xid, r.text) is XidClass.NONE]
    return max((at for at in (*times, cleared_at) if at is not None), default=None)


def _stands(record: XidRecord, now: datetime) -> bool:
    return now < record.at + stands_for(record)


def stands_for(record: XidRecord) -> timedelta:
    cls = class_of(record.xid, record.text)
    return STANDS if cls is None or cls.is_bad else SHOWN


def may_stand(undated: XidRecord | None, now: datetime, cleared_at: datetime | None = None) -> bool:
    """
    Whether an XID that came at an unknown time, at the latest at the record's, may be one that stands now.
    """
    if undated is None or is_consequence(undated.xid):
        return False
    return _stands(undated, now) and (cleared_at is None or cleared_at < undated.at)


def breaks_peers(records: Iterable[XidRecord]) -> list[datetime]:
    """When a GPU broke in a way that its peers' links notice, whether or not it is well again."""
    return [record.at for record in records if record.xid in BREAKS_PEERS]


def is_victim(own: Root, peers_broke: Iterable[datetime]) -> bool:
    """
    Whether a link's error comes from a GPU at the other end: one of the node's others broke within the burst.

    Which of the two lines the driver wrote first says nothing.
    """
    return is_link(own.xid) and any(abs(at - own.at) <= BURST for at in peers_broke)


def repeats(records: Sequence[XidRecord], now: datetime) -> int:
    """
    How often the commonest XID came within 24 hours, bursts counted once; 0 unless at least two pods saw it.

    One pod that fails the same way again and again is its program's trouble; two are the GPU's.
    """
    most = 0
    for xid in {r.xid for r in records if not is_consequence(r.xid) and r.xid != DIRECTIVE}:
        mine = [r for r in records if r.xid == xid and now - r.at < REPEATS]
        if len({pod for r in mine for pod in r.pods}) < 2:
            continue
        bursts, last = 0, None
        for record in mine:
            if last is None or record.at - last > BURST:
                bursts += 1
            last = record.at
        most = max(most, bursts)
    return most


def changes_at(records: Iterable[XidRecord], now: datetime) -> datetime | None:
    """When time alone next changes any of these answers."""
    ends = (r.at + length for r in records for length in (stands_for(r), REPEATS))
    return min((at for at in ends if at > now), default=None)


def recent(records: tuple[XidRecord, ...], now: datetime) -> tuple[XidRecord, ...]:
    """Without those that no answer needs any more."""
    return tuple(r for r in records if now - r.at < REPEATS)
