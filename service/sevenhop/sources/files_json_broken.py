"""
JSON that does not parse as a whole: a file that was cut, a damaged byte, values in a row with something between them.

Everything that is complete is found, by where it stands; what it says is read elsewhere.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator

import msgspec

from sevenhop.sources.files_json_resync import BrokenError, begins_object, blank_to, ends_list, next_element, value_end

_NEXT_VALUE = re.compile(r"^[{\[]", re.MULTILINE)
_ITEMS = re.compile(r'"items"\s*:\s*(?=\[\s*\{\s*"(?:apiVersion|kind|metadata)")')
_ANY_LIST = re.compile(r'(?=\[\s*\{\s*"(?:apiVersion|kind|metadata)")')
_LONGEST_HEAD = 120
"""Characters before the items of a list; in what is no list, other things stand there."""

_MARK = re.compile(r"---[ \t]*(?=\r?\n|$)")  # YAML's, between documents that are JSON


class Value(msgspec.Struct, frozen=True):
    """A whole JSON value and the line at which it begins, from 1."""

    line: int
    text: str


class Fault(msgspec.Struct, frozen=True):
    """
    What is wrong.

    Attributes:
        line: From 1.
        is_cut: Whether the text ends too early, so that nobody knows what else stood there.
        after: Items of the list that were read before it.
    """

    line: int
    problem: str
    is_cut: bool = False
    after: int = 0


class BrokenList(msgspec.Struct):
    """A list of objects of which something is broken, or an array of them (without a kind)."""

    api_version: str = ""
    kind: str = ""
    items: list[Value] = []
    faults: list[Fault] = []


def read_broken(text: str) -> Iterator[Value | BrokenList | Fault]:
    """
    Every complete value of `text`, and what is wrong with the rest.

    Of an object that is broken its ``items`` are read, of an array its elements; nothing that stands deeper is taken
    for an object: a template inside a broken owner is no object of the cluster.
    """
    walk, at, said = _Walk(text), blank_to(text, 0), False
    while at < len(text):
        if (mark := _MARK.match(text, at)) is not None:
            end = mark.end()
        elif text[at] in "{[":
            try:
                end = value_end(text, at)
            except BrokenError as error:
                found, end = walk.broken(at, error)
                yield found
            else:
                yield Value(walk.line(at), text[at:end])
        else:
            if not said:
                yield Fault(walk.line(at), f"broken JSON: nothing that is read begins at column {walk.column(at)}")
            said = True
            end = _next_value(text, at)
        at = blank_to(text, end)


def element_lines(text: str) -> list[int]:
    """The line, from 0, at which each element of a sound JSON array begins."""
    values, _ = _Walk(text).elements(blank_to(text, 0), BrokenList(), in_object=False)
    return [value.line - 1 for value in values]


def _next_value(text: str, at: int) -> int:
    found = _NEXT_VALUE.search(text, at + 1)
    return found.start() if found is not None else len(text)


class _Walk:
    """One text, and how many of its lines were counted: onward, so that it is counted once."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._counted = (0, 1)

    def line(self, at: int) -> int:
        before, line = self._counted
        if at < before:
            before, line = 0, 1
        self._counted = (at, line + self._text.count("\n", before, at))
        return self._counted[1]

    def column(self, at: int) -> int:
        return at - self._text.rfind("\n", 0, at)

    def broken(self, at: int, error: BrokenError) -> tuple[BrokenList | Fault, int]:
        """What can be read of a value that is broken, and where the next one may begin."""
        if error.is_deep:
            return Fault(self.line(at), error.problem), _next_value(self._text, at)
        found, is_object = BrokenList(), self._text[at] == "{"
        begin = self._items_of(at, found) if is_object else at
        if begin is None or (not is_object and not self._holds_objects(at)):
            resumed = _next_value(self._text, max(at, error.at - 1))
            error.is_cut = error.is_cut and resumed == len(self._text)
            return self._fault(error), resumed
        found.items, ended = self.elements(begin, found, in_object=is_object)
        if ended is not None and is_object:
            ended = self._tail(ended, found)
        return found, len(self._text) if ended is None else ended

    def elements(self, at: int, found: BrokenList, *, in_object: bool) -> tuple[list[Value], int | None]:
        """The whole elements of the array that begins at `at`, and where it ends; None where it does not."""
        text, values, number = self._text, list[Value](), 0
        first = blank_to(text, at + 1)
        indent = text[text.rfind("\n", 0, first) + 1 : first] if "\n" in text[at:first] else None
        at = first
        while at < len(text):
            if text[at] == "]" and ends_list(text, at, in_object=in_object):
                return values, at + 1
            if text[at] == ",":
                at = blank_to(text, at + 1)
                continue
            number += 1
            next_at, broke = self._element(at, values)
            if broke is None:
                at = next_at
                continue
            if next_at > at:
                found.faults.append(self._fault(broke, f", after item {number}", len(values)))
                at = next_at
                continue
            resumed = None if broke.is_cut else next_element(text, at, broke.at, indent, in_object=in_object)
            if resumed is None:
                left = "" if broke.is_cut else ", none after it"
                found.faults.append(self._fault(broke, f" in item {number}; {_before(values)}{left}", len(values)))
                return values, None
            found.faults.append(self._fault(broke, f", in item {number}, which is left out", len(values)))
            at = resumed
        found.faults.append(self._cut(values))
        return values, None

    def _element(self, at: int, values: list[Value]) -> tuple[int, BrokenError | None]:
        """
        Add the element that begins here, and give the place behind it; or say what is broken.

        An element after which neither a comma nor the end stands was closed too early by the damage, unless the next
        one begins there.
        """
        text, error = self._text, None
        try:
            end = self._end_of_element(at)
        except BrokenError as broke:
            return at, broke
        after = blank_to(text, end)
        if after < len(text) and text[after] not in ",]":
            error = BrokenError("Expecting ',' delimiter", after)
            after = after if text[after] == "{" else blank_to(text, after + 1)
            if not begins_object(text, after):
                return at, error
        values.append(Value(self.line(at), text[at:end]))
        return after, error

    def _end_of_element(self, at: int) -> int:
        try:
            return value_end(self._text, at)
        except BrokenError as error:
            if not error.problem.startswith("Invalid control character") or self._text[error.at] in "\r\n":
                raise
        return value_end(self._text, at, strict=False)

    def _holds_objects(self, at: int) -> bool:
        first = blank_to(self._text, at + 1)
        return self._text[first : first + 1] in ("{", "")

    def _items_of(self, at: int, found: BrokenList) -> int | None:
        """Where the array ``items`` begins, after what stands before it; None if there is none."""
        begin = self._members(at + 1, found, stops_at_items=True)
        if begin is not None or (found.kind and not found.kind.endswith("List")):
            return begin
        # Something before the items is broken, or nothing before them says what this is.
        match = _ITEMS.search(self._text, at) or _ANY_LIST.search(self._text, at)
        if match is None or (match.re is _ANY_LIST and not found.kind and match.end() - at > _LONGEST_HEAD):
            return None
        found.faults.append(Fault(self.line(at), "broken JSON: what stands before the items is damaged"))
        return match.end()

    def _tail(self, at: int, found: BrokenList) -> int | None:
        """After the items, where ``kubectl`` writes the kind; None if the text ends too early."""
        text = self._text
        at = blank_to(text, at)
        if text[at : at + 1] == ",":
            end = self._members(at + 1, found, stops_at_items=False)
            at = len(text) if end is None else end
        if text[at : at + 1] == "}":
            return at + 1
        found.faults.append(self._cut(found.items))
        return None

    def _members(self, at: int, found: BrokenList, *, stops_at_items: bool) -> int | None:
        """Read ``"key": value`` up to the items, or to the closing brace; None if it breaks before."""
        text = self._text
        while True:
            at = blank_to(text, at)
            if text[at : at + 1] == "}":
                return None if stops_at_items else at
            try:
                colon = blank_to(text, value_end(text, at))
                key = text[at:colon].rstrip()
                if text[colon : colon + 1] != ":":
                    return None
                at = blank_to(text, colon + 1)
                if stops_at_items and key == '"items"' and text[at : at + 1] == "[":
                    return at
                end = value_end(text, at)
            except BrokenError:
                return None
            if key == '"kind"':
                found.kind = _word(text[at:end])
            elif key == '"apiVersion"':
                found.api_version = _word(text[at:end])
            at = blank_to(text, end)
            if text[at : at + 1] == ",":
                at += 1

    def _cut(self, values: list[Value]) -> Fault:
        error = BrokenError("", len(self._text), is_cut=True)
        return self._fault(error, f" before the end of the list; {_before(values)}", len(values))

    def _fault(self, error: BrokenError, more: str = "", after: int = 0) -> Fault:
        """At the place where it broke, or where the text ends."""
        if error.is_cut:
            end = len(self._text.rstrip())
            where = f"after column {self.column(end) - 1}"
            return Fault(self.line(end), f"broken JSON: cut off {where}{more}", is_cut=True, after=after)
        problem = f"broken JSON: {error.problem} at column {self.column(error.at)}{more}"
        return Fault(self.line(error.at), problem, after=after)


def _word(text: str) -> str:
    value = json.loads(text) if text.startswith('"') else ""
    return value.encode("utf-8", "replace").decode() if isinstance(value, str) else ""


def _before(values: list[Value]) -> str:
    return f"{len(values)} {'item' if len(values) == 1 else 'items'} before it read"
