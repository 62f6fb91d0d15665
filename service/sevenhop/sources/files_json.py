"""JSON, one value or several: items go from their bytes to objects, without plain data between."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

import msgspec

from sevenhop.core.objects.decode import UndecodableError, decode
from sevenhop.sources.files_reader import (
    NO_TYPE,
    Reader,
    Type,
    holds_objects,
    is_list_kind,
    is_no_kind,
    is_watched,
    type_of,
)

if TYPE_CHECKING:
    from sevenhop.sources.files_json_broken import Fault


class _Head(msgspec.Struct, rename="camel"):
    """What says how to read a value; everything else waits."""

    api_version: Any = ""
    kind: Any = ""
    items: msgspec.Raw = msgspec.Raw()
    type: Any = ""
    object: msgspec.Raw = msgspec.Raw()


class _Said(msgspec.Struct, rename="camel"):
    name: str = ""
    generate_name: str = ""


class _Named(msgspec.Struct):
    metadata: _Said = msgspec.field(default_factory=_Said)
    message: Any = ""


_head_decoder = msgspec.json.Decoder(_Head)
_items_decoder = msgspec.json.Decoder(list[msgspec.Raw] | None)

_Raw = bytes | msgspec.Raw


def read_json(reader: Reader, data: bytes) -> None:
    """One value, one per line, or several, in UTF-8; what is whole is read, and the rest is a problem."""
    if is_sound(data):
        _Values(reader, data).value(data)
        return
    lines = data.split(b"\n")
    if not _is_json_lines(lines):
        _read_broken(reader, data, 0)
        return
    last = max(number for number, line in enumerate(lines) if line.strip())
    for number, line in enumerate(lines):
        if not line.strip():
            continue
        if is_sound(line):
            _Values(reader, line, number + 1).value(line)
        else:
            _read_line(reader, line, number, is_last=number == last)


def is_sound(data: bytes) -> bool:
    """Whether `data` is one sound value."""
    try:
        msgspec.json.decode(data, type=msgspec.Raw)
    except (msgspec.DecodeError, RecursionError):
        return False
    return True


def _is_json_lines(lines: list[bytes]) -> bool:
    """Whether most lines are objects on their own, so that a broken one is just one line."""
    filled = [line for line in lines if line.strip()]
    if len(filled) < 2 or not any(line.lstrip().startswith(b"{") for line in filled[:2]):
        return False
    if filled[0].rstrip().endswith((b"[", b"{", b",")):
        return False  # a list with an item on each line
    return 2 * sum(line.lstrip().startswith(b"{") and is_sound(line) for line in filled) >= len(filled)


def _read_line(reader: Reader, line: bytes, number: int, *, is_last: bool) -> None:
    """A line that is broken: a list is read in part, as everywhere, and the last line may be cut."""
    from sevenhop.sources.files_json_broken import Fault, read_broken  # late: what is whole does not need it

    found = list(read_broken(line.decode("utf-8", "replace")))
    if any(not isinstance(each, Fault) for each in found):
        _read_broken(reader, line, number)
        return
    try:
        msgspec.json.decode(line, type=msgspec.Raw)
    except (msgspec.DecodeError, RecursionError) as error:
        is_cut = is_last and any(isinstance(each, Fault) and each.is_cut for each in found)
        if is_cut:
            count = len(reader.loaded.items)
            reader.problem(number + 1, f"broken JSON: cut off after column {len(line.rstrip())}; {count} objects read")
        else:
            reader.problem(number + 1, f"broken JSON: {error}")
        reader.lost(is_cut=is_cut)


def _read_broken(reader: Reader, data: bytes, above: int) -> None:
    """`above` lines stand before `data`."""
    from sevenhop.sources.files_json_broken import Fault, Value, read_broken  # late: what is whole does not need it

    for found in read_broken(data.decode("utf-8", "replace")):
        if isinstance(found, Value):
            _read_text(reader, found.text, found.line + above)
            continue
        if isinstance(found, Fault):
            _tell(reader, found, above)
            continue
        element = reader.begin_list(found.api_version, found.kind)
        for number, item in enumerate(found.items):
            for fault in found.faults:
                if fault.after == number:
                    _tell(reader, fault, above)  # in its place: it is probably one of those around it that is lost
            _read_text(reader, item.text, item.line + above, element, depth=1)
        for fault in found.faults:
            if fault.after >= len(found.items):
                _tell(reader, fault, above)


def _tell(reader: Reader, fault: Fault, above: int) -> None:
    reader.problem(fault.line + above, fault.problem)
    reader.lost(is_cut=fault.is_cut)


def _read_text(reader: Reader, text: str, line: int, default: Type = NO_TYPE, depth: int = 0) -> None:
    """A value that ends where it should; a character in it may still be one that JSON does not allow."""
    raw = text.encode("utf-8", "replace")
    if not is_sound(raw):
        try:
            plain = json.loads(text, strict=False, parse_constant=str)
            raw = json.dumps(plain, ensure_ascii=False).encode("utf-8", "replace")
        except (ValueError, RecursionError) as error:
            reader.problem(line, f"broken JSON: {error}")
            reader.lost()
            return
    _Values(reader, raw, line).value(raw, default, depth)


class _Values:
    """The values in one sound text; `line` is where all of it stands, or 0 if its own lines count."""

    def __init__(self, reader: Reader, data: bytes, line: int = 0) -> None:
        self._reader = reader
        self._data = data
        self._line = line
        self._offset = 0

    def value(self, raw: _Raw, default: Type = NO_TYPE, depth: int = 0, where: Callable[[], int] | None = None) -> None:
        """
        An object, or a list of them.

        Args:
            default: The type of elements that do not say theirs.
            where: Its line, for what is too short to be looked for.
        """
        line = where or (lambda: self._line_of(raw))
        try:
            head = _head_decoder.decode(raw)
        except (msgspec.DecodeError, RecursionError):
            self._array(raw, depth, line)
            return
        reader = self._reader
        api_version, kind = type_of(head.api_version, head.kind, default)
        has_items = len(memoryview(head.items)) > 0
        if has_items and (
            kind.endswith("List") or (is_no_kind(api_version, kind) and holds_objects(_plain(head.items)))
        ):
            try:
                items = _items_decoder.decode(head.items)
            except msgspec.DecodeError:
                reader.problem(self._line_of(raw), f"{kind} without a list of items")
                return
            element = reader.begin_list(api_version, kind)
            self._items(head.items, items, element, depth)
            return
        if not has_items and is_list_kind(api_version, kind):
            reader.document(self._line_of(raw), _plain(raw), default, depth)
            return
        if not kind and is_watched(head.type) and len(memoryview(head.object)):
            self.value(head.object, depth=depth)
            return
        row = reader.row(api_version, kind, lambda: self._line_of(raw), lambda: str(_named_in(raw).message), depth)
        if row is None:
            return
        try:
            obj = decode(row, raw)
            prefix = "" if obj.metadata.name else _named_in(raw).metadata.generate_name
            reader.add(row, obj, lambda: self._line_of(raw), prefix)
        except UndecodableError as error:
            reader.undecodable(self._line_of(raw), row, error, _named_in(raw).metadata.name)

    def _array(self, raw: _Raw, depth: int, line: Callable[[], int]) -> None:
        """Neither an object nor an array is none; the first byte tells, for `raw` is sound."""
        try:
            items = _items_decoder.decode(raw)
        except (msgspec.DecodeError, RecursionError):
            items = None
        if items is not None:
            self._items(raw, items, NO_TYPE, depth)
        elif depth or bytes(raw).strip() != b"null":
            self._reader.no_object(line(), depth, "null" if bytes(raw).strip() == b"null" else "no object")

    def _items(self, raw: _Raw, items: list[msgspec.Raw] | None, element: Type, depth: int) -> None:
        if items is None or not self._reader.is_shallow(self._line or 1, depth):
            return
        lines: list[int] = []

        def line_of(number: int) -> int:
            if self._line:
                return self._line
            if not lines:
                from sevenhop.sources.files_json_broken import element_lines  # late: only for problems

                first = self._line_of(raw)
                lines.extend(first + line for line in element_lines(bytes(raw).decode("utf-8", "replace")))
            return lines[number]

        for number, item in enumerate(items):
            self.value(item, element, depth + 1, partial(line_of, number))

    def _line_of(self, raw: _Raw) -> int:
        """Where a value begins; searched only for what has a problem, onward from the last one found."""
        if self._line:
            return self._line
        text = bytes(raw)
        at = self._data.find(text, self._offset)
        if at < 0:
            at = max(0, self._data.find(text))
        self._offset = at
        start = at + len(text) - len(text.lstrip())
        return self._data.count(b"\n", 0, start) + 1


def _named_in(raw: _Raw) -> _Named:
    try:
        return msgspec.json.decode(raw, type=_Named)
    except (msgspec.DecodeError, RecursionError):
        return _Named()


def _plain(raw: _Raw) -> Any:
    try:
        return msgspec.json.decode(raw)
    except (msgspec.DecodeError, RecursionError):
        return None
