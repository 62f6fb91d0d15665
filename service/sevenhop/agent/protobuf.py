"""
Just enough of the protobuf wire format to read the kubelet's answers: fields by number, nested at will.

https://protobuf.dev/programming-guides/encoding.  What is not asked for is skipped, so new fields do no harm.
"""

from __future__ import annotations

from collections.abc import Iterator

_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5


class ProtobufError(ValueError):
    """Not a protobuf message."""


def fields(message: bytes) -> Iterator[tuple[int, int | bytes]]:
    """
    (number, value) of each field: varints and fixed numbers as integers, everything else as bytes.

    Raises:
        ProtobufError: Cut off, or of a wire type that proto3 does not have.

    >>> list(fields(bytes([0x0A, 2]) + b"hi" + bytes([0x10, 0x96, 0x01])))
    [(1, b'hi'), (2, 150)]
    """
    at = 0
    while at < len(message):
        key, at = _varint(message, at)
        number, wire = key >> 3, key & 7
        if wire == _VARINT:
            value, at = _varint(message, at)
            yield number, value
            continue
        if wire == _BYTES:
            size, at = _varint(message, at)
        elif wire in (_FIXED64, _FIXED32):
            size = 8 if wire == _FIXED64 else 4
        else:
            raise ProtobufError(f"wire type {wire}")
        if at + size > len(message):
            raise ProtobufError("cut off")
        piece = message[at : at + size]
        at += size
        yield number, piece if wire == _BYTES else int.from_bytes(piece, "little")


def messages(message: bytes, number: int) -> Iterator[bytes]:
    """The nested messages, strings or bytes of one field."""
    for found, value in fields(message):
        if found == number and isinstance(value, bytes):
            yield value


def text(message: bytes, number: int) -> str:
    """A string field; the last one counts, empty if absent."""
    found = ""
    for value in messages(message, number):
        try:
            found = value.decode()
        except UnicodeDecodeError:
            raise ProtobufError("not UTF-8") from None
    return found


def _varint(message: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        if at >= len(message) or shift > 63:
            raise ProtobufError("cut off" if at >= len(message) else "a number of more than 64 bits")
        byte = message[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, at
        shift += 7
