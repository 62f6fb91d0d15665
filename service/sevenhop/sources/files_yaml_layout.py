"""Where the pieces of a YAML document stand that does not parse as a whole, told by the columns of its lines."""

from __future__ import annotations

import re

import msgspec

_FIRST_KEY = re.compile(r"^([A-Za-z][\w.-]*):(?=\s|$)", re.MULTILINE)
_ITEMS = re.compile(r"^items:[ \t]*(?:#.*)?\r?\n?$", re.MULTILINE)
_DAMAGED_SEPARATOR = re.compile(r"^(?=.{0,2}-)[^\s:]{2,3}[ \t]*\r?\n\Z", re.MULTILINE)
_AFTER_ITEMS = re.compile(r"^(?:apiVersion|kind|metadata):(?=\s|$)")
_ELEMENT = re.compile(r"^( *)-(?=\s|$)")


class Piece(msgspec.Struct, frozen=True):
    """Some lines, and how many stand before them."""

    above: int
    text: str


class ListLayout(msgspec.Struct):
    """
    A list of objects as ``kubectl`` and people write it, an element's lines deeper than its dash.

    Attributes:
        frame: What stands around the items.
        has_items: Whether they stand under the key ``items``, and not alone.
        has_end: Whether a key follows them, so that all of them are here.
    """

    frame: str
    items: list[Piece]
    has_items: bool
    has_end: bool


def repeated(part: str) -> list[Piece]:
    """
    The documents that follow each other without a separator, as ``kubectl … >> file`` leaves them: each begins with the
    same key.
    """
    first = _FIRST_KEY.search(part)
    if first is None:
        return []
    starts = [m.start() for m in re.finditer(rf"^{re.escape(first.group())}(?=\s|$)", part, re.MULTILINE)]
    if len(starts) < 2:
        return []
    starts[0] = 0
    return [
        Piece(part.count("\n", 0, start), _DAMAGED_SEPARATOR.sub("", part[start:end]))
        for start, end in zip(starts, [*starts[1:], len(part)], strict=True)
    ]


def list_layout(part: str) -> ListLayout | None:
    """The list that the document is; None if it is none in blocks."""
    lines = part.splitlines(keepends=True)
    key = next((number for number, line in enumerate(lines) if _ITEMS.match(line)), None)
    begin = 0 if key is None else key + 1
    first = next((n for n in range(begin, len(lines)) if lines[n].strip() and not _is_aside(lines[n])), None)
    dash = _ELEMENT.match(lines[first]) if first is not None else None
    if first is None or dash is None:
        return None
    begins = _beginning_like(lines[first], dash.group(1))
    starts = [first, *(number for number in range(first + 1, len(lines)) if begins.match(lines[number]))]
    end = len(lines)
    if key is not None:
        end = next((n for n in range(starts[-1] + 1, end) if _AFTER_ITEMS.match(lines[n])), end)
    items = [Piece(start, "".join(lines[start:stop])) for start, stop in zip(starts, [*starts[1:], end], strict=True)]
    return ListLayout("".join(lines[:begin][:-1] + lines[end:]), items, key is not None, end < len(lines))


def _beginning_like(line: str, indent: str) -> re.Pattern[str]:
    """
    Lines at which an element begins: a dash in its column, or what a damaged byte left of it before the first key.
    """
    key = re.match(r" *- ([A-Za-z]+:)", line)
    damaged = rf"|{indent}(?! {{2}}).{{1,2}}{key.group(1)}(?=\s|$)" if key is not None else ""
    return re.compile(rf"{indent}-(?=\s|$){damaged}")


def inside(item: Piece) -> str:
    """What an element holds, without its dash: a document of its own, on the same lines."""
    dash = _ELEMENT.match(item.text)
    if dash is None:
        return item.text
    width = len(dash.group(1)) + 2
    text = item.text.replace("-", " ", 1)
    return "".join(
        line[width:] if not line[:width].strip() and line.strip() else line for line in text.splitlines(keepends=True)
    )


def _is_aside(line: str) -> bool:
    return line.startswith(("---", "%")) or line.lstrip().startswith("#")
