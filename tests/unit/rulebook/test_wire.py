"""The protobuf reader."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sevenhop.rulebook import wire


def varint(value: int) -> bytes:
    out = bytearray()
    while True:
        low, value = value & 0x7F, value >> 7
        out.append(low | (0x80 if value else 0))
        if not value:
            return bytes(out)


@settings(deadline=None)
@given(st.lists(st.tuples(st.integers(1, 500), st.one_of(st.integers(0, 2**64 - 1), st.binary(max_size=300)))))
def test_reads_what_was_written(written: list[tuple[int, int | bytes]]) -> None:
    """
    Any sequence of numbers and byte fields comes back as it was, in order.
    """
    message = b""
    for number, value in written:
        if isinstance(value, int):
            message += varint(number << 3) + varint(value)
        else:
            message += varint(number << 3 | 2) + varint(len(value)) + value

    assert list(wire.fields(message)) == written


def test_numbers_are_signed() -> None:
    """
    An int64 is two's complement on the wire.
    """
    assert wire.number(2**64 - 1) == -1


def test_fixed_width_fields_are_passed_over() -> None:
    """
    Doubles and fixed numbers do not derail what follows.
    """
    message = bytes([0x09]) + bytes(8) + bytes([0x15]) + bytes(4) + bytes([0x18, 7])

    assert list(wire.fields(message)) == [(1, 0), (2, 0), (3, 7)]


@pytest.mark.parametrize(
    "message",
    [
        pytest.param(bytes([0x80]), id="tag without end"),
        pytest.param(bytes([0x0A, 5, 1]), id="fewer bytes than announced"),
        pytest.param(bytes([0x09, 1]), id="half a double"),
        pytest.param(bytes([0x0B]), id="a group, which nobody writes"),
        pytest.param(bytes([0x08, *[0xFF] * 11]), id="a number without end"),
    ],
)
def test_what_is_no_message_is_refused(message: bytes) -> None:
    """
    Broken bytes are an error that says so, never a silent half.
    """
    with pytest.raises(wire.WireError):
        list(wire.fields(message))


def test_a_number_is_no_message() -> None:
    """
    A field of another kind than expected is refused.
    """
    with pytest.raises(wire.WireError):
        wire.message(5)
    with pytest.raises(wire.WireError):
        wire.number(b"x")
