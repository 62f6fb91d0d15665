"""Watch streams: bytes to lines, lines to the kind of change and the object in it."""

from __future__ import annotations

import msgspec

_FAST = tuple(
    (f'{{"type":"{change}","object":'.encode(), change) for change in ("MODIFIED", "ADDED", "DELETED", "BOOKMARK")
)
"""How the API server's encoder writes the start of a line; anything else takes the general way."""


class MalformedLineError(Exception):
    """A line that is not a watch event; the message says where JSON broke, never what stood there."""


class WatchLine(msgspec.Struct, gc=False):
    """One line of a watch as Kubernetes defines it (meta/v1 WatchEvent)."""

    type: str
    object: msgspec.Raw


_line_decoder = msgspec.json.Decoder(WatchLine)


class LineSplitter:
    """
    Splits a stream into lines of any size.

    aiohttp's own line reader refuses lines over its limit; a Kubernetes object may have 2 MB and more.
    """

    def __init__(self) -> None:
        self._parts: list[bytes] = []

    def feed(self, chunk: bytes) -> list[bytes]:
        """
        The lines that `chunk` completes, without their ends; blank ones are left out.
        """
        if b"\n" not in chunk:
            # Joined only once the line is whole: else a 2 MB line would be copied some thirty times.
            if chunk:
                self._parts.append(chunk)
            return []
        lines = chunk.split(b"\n")
        if self._parts:
            self._parts.append(lines[0])
            lines[0] = b"".join(self._parts)
            self._parts = []
        rest = lines.pop()
        if rest:
            self._parts.append(rest)
        return [line for line in lines if line and not line.isspace()]

    @property
    def has_rest(self) -> bool:
        """Whether the stream stands in the middle of a line."""
        return bool(self._parts)


def guess_line(line: bytes) -> tuple[str, msgspec.Raw] | None:
    """
    Type and object of a line by its usual first bytes, in a fraction of a microsecond; None for another spelling.

    The object is what stands between those bytes and the last brace.  Should something follow it, it is no JSON
    on its own: a caller whose decoder refuses it asks `parse_line`.
    """
    if line[-1] != 0x7D:
        return None
    for start, change in _FAST:
        if line.startswith(start):
            return change, msgspec.Raw(memoryview(line)[len(start) : -1])
    return None


def parse_line(line: bytes) -> tuple[str, msgspec.Raw]:
    """
    Type (``ADDED``, ``MODIFIED``, ``DELETED``, ``BOOKMARK``, ``ERROR``) and object of a line.

    Raises:
        MalformedLineError: Not JSON, or not a watch event.
    """
    try:
        parsed = _line_decoder.decode(line)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise MalformedLineError(f"malformed watch line of {len(line)} bytes: {error}") from None
    return parsed.type, parsed.object
