"""How listings leave: a table for people, JSON or YAML for programs; nothing but results on stdout."""

from __future__ import annotations

import shutil
import sys
import textwrap
import unicodedata
from collections.abc import Hashable, Iterable, Iterator, Sequence
from itertools import zip_longest
from typing import Any, TypeVar

import msgspec

from sevenhop.core.words import in_order

T = TypeVar("T")

_UNSEEN = frozenset({"Cc", "Cf", "Cs", "Co", "Cn"})

FORMATS = ("table", "wide", "json", "yaml")


class UsageError(Exception):
    """The caller can mend it: one line with the place and the fix.  Exit code 2."""


def fail(message: str) -> None:
    """One line on stderr."""
    print(f"sevenhop: {visible(message)}", file=sys.stderr)


def visible(text: str) -> str:
    """
    Text without what a terminal would obey: escape sequences and control characters but the line's end, and marks
    that turn the direction of writing.  Names and messages in a bundle are other people's words.

    >>> visible("a\\x1b[31mb\\n\\u202ec")
    'a[31mb\\nc'
    """
    if text.isascii() and text.replace("\n", "").isprintable():
        return text
    return "".join(c for c in text if c == "\n" or unicodedata.category(c) not in _UNSEEN)


def to_json(data: Any) -> str:
    """Indented JSON; structs, enums, times and Decimals included."""
    return msgspec.json.format(msgspec.json.encode(data, enc_hook=str), indent=1).decode()


def to_yaml(data: Any) -> str:
    import yaml

    plain = msgspec.to_builtins(data, enc_hook=str)
    return yaml.dump(plain, Dumper=getattr(yaml, "CSafeDumper", yaml.SafeDumper), sort_keys=False, allow_unicode=True)


def folded(rows: Iterable[tuple[Hashable, str, T]]) -> Iterator[tuple[T, list[str]]]:
    """
    Rows that say the same once: (first row, names of the others like it).

    A device plugin that refuses leaves thousands of failed pods of one owner behind; they are one line for a person.

    Args:
        rows: (what must be equal, name, row), in the order to show.
    """
    found: dict[Hashable, tuple[T, list[str]]] = {}
    for same, name, row in rows:
        if same in found:
            found[same][1].append(name)
        else:
            found[same] = (row, [])
    yield from found.values()


def without_numbers(text: str) -> str:
    """What is equal for pods that fail alike: restarts and bytes differ."""
    return "".join(c for c in text if not c.isdigit())


def others(names: Sequence[str]) -> str:
    """
    Further names in a few words.

    >>> others(["a", "b", "c", "d"])
    'and 4 more like it: a, b, c, …'
    """
    shown = ", ".join(in_order(names)[:3])
    return f"and {len(names)} more like it: {shown}{', …' if len(names) > 3 else ''}"


class Column:
    """One column of a listing; `wide` shows only with ``-o wide``."""

    def __init__(self, title: str, field: str, *, wide: bool = False) -> None:
        self.title, self.field, self.wide = title, field, wide


def listing(rows: Sequence[dict[str, Any]], columns: Iterable[Column], form: str, *, nothing: str) -> str:
    """
    Render rows as asked.

    Args:
        rows: Plain dictionaries; all fields appear in JSON and YAML, the columns in tables.
        form: One of `FORMATS`.
        nothing: What a table says where there are no rows.
    """
    if form == "json":
        return to_json(rows)
    if form == "yaml":
        return to_yaml(rows)
    if not rows:
        return nothing
    shown = [c for c in columns if form == "wide" or not c.wide]
    return table([c.title for c in shown], [[_cell(row.get(c.field)) for c in shown] for row in rows])


def table(titles: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """
    Columns aligned by spaces, as kubectl does.

    On a terminal that is too narrow, words are wrapped within their columns.  Names are never broken or cut: they are
    there to be copied, and the terminal itself wraps what then still is too long.
    """
    rows = [[visible(cell).replace("\n", " ") for cell in line] for line in rows]
    widths = [max(len(line[i]) for line in (titles, *rows)) for i in range(len(titles))]
    if sys.stdout.isatty():
        widths = _fitted(widths, titles, rows, shutil.get_terminal_size((200, 25)).columns)
    lines = []
    for line in (titles, *rows):
        cells = [_wrapped(cell, width) for cell, width in zip(line, widths, strict=True)]
        for parts in zip_longest(*cells, fillvalue=""):
            lines.append("  ".join(part.ljust(width) for part, width in zip(parts, widths, strict=True)).rstrip())
    return "\n".join(lines)


def _fitted(widths: Sequence[int], titles: Sequence[str], rows: Sequence[Sequence[str]], limit: int) -> list[int]:
    """
    The widest columns made narrower, as far as titles and words go, until all fit.

    >>> _fitted([3, 11], ["A", "B"], [["a-b", "one two six"]], 10)
    [3, 5]
    >>> _fitted([3, 7], ["A", "B"], [["a-b", "one-two"]], 6)
    [3, 7]
    """
    found = list(widths)
    narrowest = [
        max([len(title), *(len(word) for row in rows for word in row[i].split())]) for i, title in enumerate(titles)
    ]
    while sum(found) + 2 * (len(found) - 1) > limit:
        wide = [i for i, width in enumerate(found) if width > narrowest[i]]
        if not wide:
            break
        found[max(wide, key=found.__getitem__)] -= 1
    return found


def _wrapped(cell: str, width: int) -> list[str]:
    if len(cell) <= width:
        return [cell]
    return textwrap.wrap(cell, width, break_long_words=False, break_on_hyphens=False)


def _cell(value: Any) -> str:
    if value is None or value == "":
        return "-"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, (list, tuple)):
        return ",".join(str(v) for v in value) or "-"
    return str(value)
