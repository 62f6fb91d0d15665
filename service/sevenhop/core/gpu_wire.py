"""
How GPU samples travel from a node to the service: a batch as MessagePack, or as JSON for people and scripts.

Unknown keys are left alone, so that a newer agent may say more to an older service; what an older service would
misread gets a new version.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from datetime import datetime
from typing import Any

import msgspec

from sevenhop.core.events import GpusSampled, XidSeen

VERSION = 1

MSGPACK = "application/msgpack"
JSON = "application/json"

MAX_READINGS = 1024
"""Of one sample: 16 GPUs of 7 MIG instances are 128."""


class WireError(Exception):
    """A body that cannot be used; one line that says why, without what it holds."""


class Batch(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """
    Attributes:
        node: Whose GPUs all of it is about.
        agent: Version of the agent.
        sent_at: By the agent's clock, when it sends; against our clock at that moment it tells the skew, however
            long the samples waited.
        dropped: Samples and XIDs that the agent had to let go since its start.
    """

    version: int
    node: str
    agent: str = ""
    sent_at: datetime | None = None
    dropped: int = 0
    samples: tuple[GpusSampled, ...] = ()
    xids: tuple[XidSeen, ...] = ()


class _Head(msgspec.Struct, frozen=True):
    version: int = 0


_to_msgpack = msgspec.msgpack.Encoder()
_to_json = msgspec.json.Encoder()
_Decode = Callable[[bytes], Any]
_heads: dict[str, _Decode] = {
    MSGPACK: msgspec.msgpack.Decoder(_Head).decode,
    JSON: msgspec.json.Decoder(_Head).decode,
}
_batches: dict[str, _Decode] = {
    MSGPACK: msgspec.msgpack.Decoder(Batch).decode,
    JSON: msgspec.json.Decoder(Batch).decode,
}


def encode(batch: Batch, content_type: str = MSGPACK) -> bytes:
    """The body of one request."""
    return _to_json.encode(batch) if content_type == JSON else _to_msgpack.encode(batch)


def decode(body: bytes, content_type: str) -> Batch:
    """
    Read a body, and hold it to what the events promise: one node, times with a zone, finite numbers.

    Raises:
        WireError: Not a batch, of another version, or one that promises what it does not hold.
    """
    if content_type not in _batches:
        raise WireError(f"content type must be {MSGPACK} or {JSON}")
    try:
        version = _heads[content_type](body).version
        if version != VERSION:
            raise WireError(
                f"version {version} of the batch, this service reads {VERSION}: update the older one of both"
            )
        batch: Batch = _batches[content_type](body)
    except msgspec.ValidationError as error:
        raise WireError(f"not a batch of GPU samples: {error}") from None
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        raise WireError(f"the body is not {content_type}") from None
    _check(batch)
    return batch


def events_of(batch: Batch) -> list[GpusSampled | XidSeen]:
    """What the batch holds, in the order in which it was seen."""
    events: list[GpusSampled | XidSeen] = [*batch.samples, *batch.xids]
    return sorted(events, key=lambda event: (event.epoch, event.seq))


def _check(batch: Batch) -> None:
    if not batch.node:
        raise WireError("the batch names no node")
    for event in events_of(batch):
        if event.node != batch.node:
            raise WireError("an event names another node than its batch")
        if event.at.tzinfo is None:
            raise WireError("a time has no zone")
    if batch.sent_at is not None and batch.sent_at.tzinfo is None:
        raise WireError("a time has no zone")
    for sample in batch.samples:
        if not _is_amount(sample.up_s):
            raise WireError("the time since the boot is not a number, or negative")
        if len(sample.readings) > MAX_READINGS:
            raise WireError(f"more than {MAX_READINGS} GPUs in one sample")
        seen = [reading.uuid for reading in sample.readings]
        if "" in seen or len(set(seen)) != len(seen):
            raise WireError("a GPU without a UUID, or one that is there twice")
        for reading in sample.readings:
            values = (reading.utilization, reading.sm_active, reading.sm_occupancy, reading.power_w)
            if not all(_is_amount(value) for value in values):
                raise WireError("a reading is not a number, or negative")
        for usage in sample.usage:
            if not (_is_amount(usage.cpu_cores) and _is_amount(usage.cpu_throttled)):
                raise WireError("a container's use is not a number, or negative")


def _is_amount(value: float | None) -> bool:
    return value is None or (math.isfinite(value) and value >= 0)
