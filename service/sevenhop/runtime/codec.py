"""
Events as Kafka records: one object or one observation each, JSON, so that a person can read a topic.

    key    cluster|kind|namespace|name   of what is kept (objects, states of sources): compaction works by key
           empty                         of what passes (decisions, samples, XIDs, ticks of one kind have a key)
    value  {"v":1,"cluster":…,"event":…,"data":{…}}; None for an object that is gone, `data` is then in the header `e`

A deletion is a tombstone, so that a compacted topic grows with the cluster and not with its history.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import Any

import msgspec

from sevenhop.core import events as core
from sevenhop.core.events import Applied, Deleted, Event, SourceChanged, Tick, Unreadable
from sevenhop.core.objects.decode import UndecodableError, decode
from sevenhop.core.objects.kinds import KINDS

MOST_BYTES = 1_000_000
"""Of one record's value: Kafka takes a megabyte, with all that is around it."""

VERSION = 1
"""Grows when an older reader would misread a record; what is only added keeps it."""

HEADER = "e"

_EVENTS: dict[str, type[Event]] = {
    name: found
    for name, found in vars(core).items()
    if isinstance(found, type) and issubclass(found, Event) and found is not Event
}
_KEPT = (Applied, Deleted, Unreadable, SourceChanged)


class Answered(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """
    What came of one request to a cluster's API server that a worker asked the edge for; the engine never sees it.

    Attributes:
        order: Seal of the order that it answers; empty of an edge that names none.
        outcome: ``good``, ``answered`` (not well: status and following), ``not_sent``, ``lost``.
        is_packed: The body is compressed (zlib).
    """

    at: datetime
    request_id: str
    order: str = ""
    outcome: str
    body: bytes = b""
    status: int = 0
    reason: str = ""
    message: str = ""
    causes: tuple[str, ...] = ()
    retry_after_s: float | None = None
    is_packed: bool = False


Carried = Event | Answered
"""What a record holds."""


class RecordError(ValueError):
    """A record that cannot be used; one line that says why, without what it holds."""


class Record(msgspec.Struct, frozen=True):
    """As it is sent; `is_kept` says to which topic."""

    key: bytes | None
    value: bytes | None
    headers: list[tuple[str, bytes]]
    is_kept: bool


class Read(msgspec.Struct, frozen=True):
    """One event of one cluster."""

    cluster: str
    event: Carried


class _Wire(msgspec.Struct):
    v: int
    cluster: str
    event: str
    data: msgspec.Raw


class _AppliedData(msgspec.Struct, kw_only=True):
    at: datetime
    epoch: int = 0
    seq: int = 0
    kind: str
    obj: msgspec.Raw


_encoder = msgspec.json.Encoder()
_wires = msgspec.json.Decoder(_Wire)
_applied = msgspec.json.Decoder(_AppliedData)
_decoders: dict[str, msgspec.json.Decoder[Any]] = {
    name: msgspec.json.Decoder(event) for name, event in _EVENTS.items() if event is not Applied
}
_decoders[Answered.__name__] = msgspec.json.Decoder(Answered)
_CARRIED: tuple[type[msgspec.Struct], ...] = (*_EVENTS.values(), Answered)
_TIMES = {
    kind: tuple(field.name for field in msgspec.structs.fields(kind) if field.type in (datetime, datetime | None))
    for kind in _CARRIED
}


def encode(cluster: str, event: Carried) -> Record:
    """The record of one event."""
    name = type(event).__name__
    value = _encoder.encode({"v": VERSION, "cluster": cluster, "event": name, "data": event})
    if isinstance(event, Deleted):
        return Record(_key(cluster, event.kind, event.namespace, event.name), None, [(HEADER, value)], True)
    return Record(_key_of(cluster, event), value, [], isinstance(event, _KEPT))


def read(value: bytes | None, headers: Iterable[tuple[str, bytes]] = ()) -> Read:
    """
    The event of one record.

    Raises:
        RecordError: It does not decode, is of a newer version, or of a kind that we do not know.
    """
    if value is None:
        value = next((content for name, content in headers if name == HEADER), None)
        if value is None:
            raise RecordError("a deletion that does not say of what")
    try:
        wire = _wires.decode(value)
    except (msgspec.MsgspecError, RecursionError, UnicodeDecodeError) as error:
        raise RecordError(f"not a record of sevenhop: {error}") from None
    if wire.v > VERSION:
        raise RecordError(f"format {wire.v}, this sevenhop reads up to {VERSION}: upgrade the workers before the edges")
    if wire.v < 1 or not wire.cluster:
        raise RecordError("a record without version or cluster")
    if not wire.cluster.isprintable():  # the store separates what it keeps by such characters
        raise RecordError("unknown cluster: no name has control characters")
    return Read(wire.cluster, _event(wire))


def _event(wire: _Wire) -> Carried:
    try:
        if wire.event == Applied.__name__:
            found = _applied.decode(wire.data)
            kind = KINDS.get(found.kind)
            if kind is None:
                raise RecordError(f"an object of the unknown kind {found.kind[:80]!r}")
            obj = decode(kind, found.obj)
            return _with_zones(Applied(at=found.at, epoch=found.epoch, seq=found.seq, kind=found.kind, obj=obj))
        decoder = _decoders.get(wire.event)
        if decoder is None:
            raise RecordError(f"an event of the unknown kind {wire.event[:80]!r}")
        return _with_zones(decoder.decode(wire.data))
    except (msgspec.MsgspecError, UndecodableError, RecursionError) as error:
        raise RecordError(f"{wire.event[:80]}: {error}") from None


def _with_zones(event: Carried) -> Carried:
    """A time without its zone cannot be compared with any other, and whoever tried would end."""
    for name in _TIMES[type(event)]:
        moment = getattr(event, name)
        if moment is not None and moment.tzinfo is None:
            raise RecordError(f"{type(event).__name__}: {name} is a time without its zone")
    return event


def _key_of(cluster: str, event: Carried) -> bytes | None:
    if isinstance(event, Applied):
        return _key(cluster, event.kind, *event.obj.metadata.key)
    if isinstance(event, Unreadable):
        return _key(cluster, event.kind, event.namespace, event.name)
    if isinstance(event, SourceChanged):
        return _key(cluster, "source", event.kind, "")
    if isinstance(event, Tick):
        return _key(cluster, "tick", "", "")
    return None


def _key(cluster: str, kind: str, namespace: str, name: str) -> bytes:
    return f"{cluster}|{kind}|{namespace}|{name}".encode()
