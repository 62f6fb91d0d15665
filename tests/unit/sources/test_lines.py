"""Watch streams cut anywhere, lines of any size, and objects in any spelling."""

from __future__ import annotations

import contextlib
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sevenhop.sources.kubernetes.lines import LineSplitter, MalformedLineError, guess_line, parse_line


@given(
    st.lists(st.binary(max_size=30).map(lambda b: b.replace(b"\n", b"?"))), st.lists(st.integers(1, 40), max_size=40)
)
def test_lines_do_not_depend_on_the_cuts(lines: list[bytes], sizes: list[int]) -> None:
    """However a stream is cut into chunks, its lines are the same, and blank ones are left out."""
    stream = b"".join(line + b"\n" for line in lines)
    splitter = LineSplitter()
    read: list[bytes] = []
    for size in [*sizes, len(stream) + 1]:
        read += splitter.feed(stream[:size])
        stream = stream[size:]

    assert read == [line for line in lines if line.strip()]
    assert not splitter.has_rest


def test_a_rest_is_noticed() -> None:
    """A stream that stands in the middle of a line says so."""
    splitter = LineSplitter()

    assert splitter.feed(b"whole\nhalf") == [b"whole"]
    assert splitter.has_rest


@pytest.mark.parametrize(
    "line",
    [
        pytest.param(b'{"type":"ADDED","object":{"a":1}}', id="as the server writes it"),
        pytest.param(b'{"object": {"a": 1}, "type": "ADDED"}', id="another order, with blanks"),
        pytest.param(b'{"type":"ADDED","object":{"a":1},"more":{}}', id="another field after"),
    ],
)
def test_any_spelling_is_understood(line: bytes) -> None:
    """The general way reads every spelling; the fast guess is either the same or no JSON."""
    change, raw = parse_line(line)
    guess = guess_line(line)

    assert (change, json.loads(bytes(raw))) == ("ADDED", {"a": 1})
    if guess is not None:
        with contextlib.suppress(json.JSONDecodeError):
            assert json.loads(bytes(guess[1])) == {"a": 1}


@pytest.mark.parametrize(
    "line",
    [
        b"{",
        b"null",
        b'{"type":1,"object":{}}',
        b'{"type":"ADDED"}',
        b"[" * 99_999,
        b'{"type":"ADDED","object":{"secret":',
    ],
    ids=["cut", "null", "type", "no object", "deep", "cut in the object"],
)
def test_malformed_lines(line: bytes) -> None:
    """What is no watch event is refused without quoting it."""
    with pytest.raises(MalformedLineError) as caught:
        parse_line(line)

    assert "secret" not in str(caught.value)
