"""YAML with several documents, each read on its own: a broken one does not take the others along."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import msgspec
import yaml

from sevenhop.sources.files_yaml_layout import ListLayout, Piece, inside, list_layout, repeated
from sevenhop.sources.yaml_build import build

_SEPARATOR = re.compile(r"^---(?=\s|$)", re.MULTILINE)

_TEMPLATE = "a Helm template, not YAML: render it first (helm template CHART | sevenhop diagnose -f -)"

_TEMPLATE_LINE = re.compile(r"^ *(?:- +)?(?:[\w./-]+: +)?\{\{", re.MULTILINE)
"""Where a value or a line begins so; inside of a text, braces may be a chat template's."""

_MOST_LISTS = 20
"""In each other."""


class Document(msgspec.Struct):
    """
    One document, or what is wrong with it.

    Attributes:
        line: Of its first content or of the problem, from 1.
        lines: The line of each mapping in it, by the mapping's `id`.
        is_cut: Whether the problem is that the text ends too early.
    """

    line: int
    data: Any = None
    problem: str = ""
    lines: dict[int, int] = {}
    is_cut: bool = False


def read(text: str) -> Iterator[Document]:
    """
    All documents that are not empty.  A template is one problem, not one per document.

    Of a list that is broken or cut off the elements are read that are whole.
    """
    parts = list(_parts(text))
    said = False
    for number, (start, part) in enumerate(parts, 1):
        for document in _documents(start, part, is_last=number == len(parts)):
            if document.problem is not _TEMPLATE or not said:
                yield document
            said |= document.problem is _TEMPLATE


def _parts(text: str) -> Iterator[tuple[int, str]]:
    """(line, text) between the separators; ``---`` at the start of a line never stands inside a value."""
    starts = [0, *(match.start() for match in _SEPARATOR.finditer(text))]
    line = 1
    for start, end in zip(starts, [*starts[1:], len(text)], strict=True):
        part = text[start:end]
        if part.strip() not in ("", "---"):
            yield line, part
        line += part.count("\n")


def _documents(start: int, part: str, *, is_last: bool, depth: int = 0) -> list[Document]:
    found, problem = _built(start, part)
    if problem is None:
        return _up_to_the_cut(found, part) if is_last and found else found
    pieces = repeated(part)
    layout = list_layout(part) if not pieces and depth < _MOST_LISTS else None
    rest: list[Document] = []
    for number, piece in enumerate(pieces, 1):
        rest += _documents(start + piece.above, piece.text, is_last=is_last and number == len(pieces), depth=depth)
    if layout is not None:
        rest = _elements(start, part, layout, is_last=is_last, depth=depth)
    if any(document.data is not None for document in rest):
        return rest
    if _TEMPLATE_LINE.search(part):
        return [*found, Document(problem.line, problem=_TEMPLATE)]
    problem.is_cut = problem.is_cut and is_last
    return [*found, problem]


def _built(start: int, part: str) -> tuple[list[Document], Document | None]:
    """The documents in `part`, and what ended them."""
    found: list[Document] = []
    try:
        for data, lines in build(part):
            if data is not None:
                lines = {key: start + line for key, line in lines.items()}
                found.append(Document(lines.get(id(data), start + _first_content(part)), data, "", lines))
    except yaml.YAMLError as error:
        line, problem, is_cut = _explain(error, part)
        return found, Document(start + line, problem=problem, is_cut=is_cut)
    except RecursionError:
        return found, Document(start, problem="nested too deeply")
    return found, None


def _up_to_the_cut(found: list[Document], part: str) -> list[Document]:
    """
    `kubectl` writes a list's kind after its items: without it the text was cut between two lines, which is YAML still.
    The last item may miss some lines then, and is left out.
    """
    document = found[-1]
    data = document.data
    if not isinstance(data, dict) or "kind" in data or "apiVersion" not in data or next(reversed(data)) != "items":
        return found
    items = data["items"]
    if items is not None and not (isinstance(items, list) and any(isinstance(item, dict) for item in items)):
        return found
    number = len(items or ())
    whole = {**data, "kind": "List", "items": (items or [])[:-1]}
    lines = {**document.lines, id(whole): document.line}
    first = document.line - _first_content(part)
    return [*found[:-1], Document(document.line, whole, "", lines), _cut(first, part, number)]


def _elements(start: int, part: str, layout: ListLayout, *, is_last: bool, depth: int) -> list[Document]:
    """
    The list with the elements that can be read, and a problem for each other one, between those around it: what is lost
    is probably of their kind.
    """
    frames, _ = _built(start, layout.frame)
    frame = frames[0].data if frames and isinstance(frames[0].data, dict) else {}
    may_be_cut = is_last and not layout.has_end
    data: dict[str, Any] = {"apiVersion": "v1", "kind": "List", **frame}
    lines: dict[int, int] = {}
    told: list[Document] = []
    for number, piece in enumerate(layout.items, 1):
        items: list[Any] = []
        problems: list[Document] = []
        found, problem = _built(start + piece.above, piece.text)
        ends = number == len(layout.items) and may_be_cut
        if ends and (problem is not None or (layout.has_items and "kind" not in frame)):
            problems.append(_cut(start, part, number))
        elif problem is not None:
            nested = _nested(start, piece, depth)
            found = [document for document in nested if not document.problem]
            at = f", in item {number}, which is left out"
            problem.problem += at
            problems += [document for document in nested if document.problem] if found else [problem]
            items += [document.data for document in found]
        else:
            items += [item for document in found if isinstance(document.data, list) for item in document.data]
            problems += [
                Document(document.line, problem=f"broken YAML: item {number} begins without a dash; it is left out")
                for document in found
                if not isinstance(document.data, list)
            ]
        for document in found:
            lines |= document.lines
        if items and told and not told[-1].problem:
            told[-1].data["items"] += items
        elif items:
            told.append(Document(start, {**data, "items": items}, "", lines))
        told += problems
    return told


def _nested(start: int, piece: Piece, depth: int) -> list[Document]:
    """The element as a list of its own, if it is one."""
    text = inside(piece)
    if not re.search(r"^items:", text, re.MULTILINE):
        return []
    return _documents(start + piece.above, text, is_last=False, depth=depth + 1)


def _cut(start: int, part: str, number: int) -> Document:
    """`number` of the item in which the text ends; nobody knows whether it is whole."""
    before = f"{number - 1} {'item' if number == 2 else 'items'} before it read" if number else "no item read"
    where = f"in item {number}" if number else "before the first item"
    line = start + part.rstrip().count("\n")
    return Document(line, problem=f"broken YAML: cut off {where}; {before}", is_cut=True)


def _first_content(part: str) -> int:
    """Lines before the first that is neither blank, a comment nor the separator."""
    for number, line in enumerate(part.split("\n")):
        content = line.removeprefix("---").strip()
        if content and not content.startswith(("#", "%")):
            return number
    return 0


def _explain(error: yaml.YAMLError, part: str) -> tuple[int, str, bool]:
    """(line from 0, what is wrong, whether the text ends there)"""
    mark = getattr(error, "problem_mark", None) or getattr(error, "context_mark", None)
    line = int(mark.line) if mark is not None else 0
    if isinstance(error, yaml.reader.ReaderError):
        at = error.position if isinstance(error.position, int) else 0
        return part[:at].count("\n"), "broken YAML: control characters", False
    problem = getattr(error, "problem", None) or type(error).__name__
    column = f" at column {mark.column + 1}" if mark is not None else ""
    is_cut = mark is not None and line >= part.rstrip().count("\n") and _ends_at(part, line, mark.column)
    return line, f"broken YAML: {problem}{column}", is_cut


def _ends_at(part: str, line: int, column: int) -> bool:
    lines = part.split("\n")
    return line >= len(lines) or not "".join([lines[line][column:], *lines[line + 1 :]]).strip()
