"""
A reader for the protobuf wire format, as small as CEL's expression trees need.

cel-expr-python hands a parsed or checked expression out only as a serialised `google.protobuf.Any`
(https://protobuf.dev/programming-guides/encoding); the protobuf package would be a dependency for this alone.
"""

from __future__ import annotations

from collections.abc import Iterator

Field = int | bytes
"""A varint or fixed number as an unsigned int; everything with a length as bytes."""


class WireError(ValueError):
    """The bytes are no protobuf message."""


def fields(message: bytes) -> Iterator[tuple[int, Field]]:
    """
    The fields of one message in order: (number, value).

    Raises:
        WireError: Cut off, or a wire type that no message of today uses.

    >>> list(fields(bytes([0x08, 0x96, 0x01, 0x12, 0x02, 0x68, 0x69])))
    [(1, 150), (2, b'hi')]
    """
    at = 0
    while at < len(message):
        tag, at = _varint(message, at)
        number, kind = tag >> 3, tag & 7
        value: Field
        if kind == 0:
            value, at = _varint(message, at)
        elif kind == 2:
            length, at = _varint(message, at)
            value, at = _slice(message, at, length)
        elif kind in (1, 5):
            raw, at = _slice(message, at, 8 if kind == 1 else 4)
            value = int.from_bytes(raw, "little")
        else:
            raise WireError(f"wire type {kind} at byte {at}")
        yield number, value


def message(value: Field) -> bytes:
    """
    The value as a nested message.

    Raises:
        WireError: It is a number.
    """
    if isinstance(value, int):
        raise WireError(f"expected a message, got the number {value}")
    return value


def text(value: Field) -> str:
    """The value as a string."""
    return message(value).decode("utf-8", "replace")


def number(value: Field) -> int:
    """
    The value as an int64.

    Raises:
        WireError: It is a message.
    """
    if not isinstance(value, int):
        raise WireError(f"expected a number, got {len(value)} bytes")
    return value - (1 << 64) if value >= 1 << 63 else value


def _varint(message: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        if at >= len(message) or shift > 63:
            raise WireError(f"varint ends nowhere at byte {at}")
        byte = message[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, at
        shift += 7


def _slice(message: bytes, at: int, length: int) -> tuple[bytes, int]:
    if at + length > len(message):
        raise WireError(f"{length} bytes announced at byte {at}, {len(message) - at} left")
    return message[at : at + length], at + length
