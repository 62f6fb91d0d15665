"""Where a JSON value ends, and where the next element of a list begins after one that is broken."""

from __future__ import annotations

import json
import re
from typing import Any

# Numbers stay text: only ends are looked for, and Python refuses to convert some numbers.
_STRICT: Any = json.JSONDecoder(parse_int=str, parse_float=str)
_LAX: Any = json.JSONDecoder(parse_int=str, parse_float=str, strict=False)

_BLANKS = re.compile(r"[ \t\r\n]*")
_PLACE = re.compile(r',\s*(?=\{\s*"(?:apiVersion|kind|metadata|type|object)"\s*:)|(?=\])')
_OBJECT = re.compile(r'\{\s*"(?:apiVersion|kind|metadata|type|object)"\s*:')
_END_OF_ITEMS = re.compile(r'\s*(?:,\s*"(?:kind|metadata|apiVersion)"\s*:|\}|$)')
_TAIL = re.compile(r'\s*(?:,\s*"(?:kind|metadata|apiVersion)"\s*:\s*(?:"[^"]*"|\{[^{}]*\})\s*)*\}\s*(?:\Z|\n)')
_END_OF_ARRAY = re.compile(r"\s*(?:\Z|\n[\[{]|\n---)")

_CUT_WORD = re.compile(r"(?:tr?u?|fa?l?s?|nu?l?|-|\.|[eE][-+]?)?\s*\Z")
_CUT_ESCAPE = re.compile(r'[^"\s]{0,6}\s*\Z')


_JUST_BEFORE = 8
"""Characters: where a closing bracket is missing, it breaks just behind the next comma."""

_NEIGHBOURS = 8
"""More than any list inside of an object holds of what looks like objects."""


class BrokenError(Exception):
    """
    A JSON value that does not parse.

    Attributes:
        at: Where.
        is_cut: Whether that is the end of the text.
    """

    def __init__(self, problem: str, at: int, *, is_cut: bool = False, is_deep: bool = False) -> None:
        super().__init__(problem)
        self.problem = problem
        self.at = at
        self.is_cut = is_cut
        self.is_deep = is_deep


def blank_to(text: str, at: int) -> int:
    """The first place from `at` on that is not blank."""
    found = _BLANKS.match(text, at)
    return found.end() if found is not None else at


def value_end(text: str, at: int, *, strict: bool = True) -> int:
    """
    Where the value that begins at `at` ends.

    Args:
        strict: Whether a control character in a string breaks it.

    Raises:
        BrokenError: It does not parse.
    """
    try:
        end: int = (_STRICT if strict else _LAX).raw_decode(text, at)[1]
    except json.JSONDecodeError as error:
        raise BrokenError(error.msg, error.pos, is_cut=_is_cut(text, error)) from None
    except RecursionError:
        raise BrokenError("nested too deeply", at, is_deep=True) from None
    return end


def _is_cut(text: str, error: json.JSONDecodeError) -> bool:
    """Whether it broke because nothing follows; what is cut in a word is complained of where the word begins."""
    if error.msg.startswith("Invalid \\"):
        return _CUT_ESCAPE.match(text, error.pos) is not None
    return error.msg.startswith("Unterminated") or _CUT_WORD.match(text, error.pos) is not None


def begins_object(text: str, at: int) -> bool:
    """Whether what begins at `at` looks like an object of Kubernetes, by its first key."""
    return _OBJECT.match(text, at) is not None


def ends_list(text: str, at: int, *, in_object: bool) -> bool:
    """Whether the ``]`` at `at` is followed by what may follow the list, and not by its next element."""
    return (_END_OF_ITEMS if in_object else _END_OF_ARRAY).match(text, at + 1) is not None


def _ends_all(text: str, at: int, *, in_object: bool) -> bool:
    """The same of a ``]`` behind something broken, where any inner list might end: all that follows must fit."""
    if in_object:
        return _TAIL.match(text, at + 1) is not None
    return ends_list(text, at, in_object=False)


def next_element(text: str, begin: int, broke: int, indent: str | None, *, in_object: bool) -> int | None:
    """
    Where to go on in a list after a broken element: at the next element, or the list's end; None if neither is found.

    By its place alone: on a line of its own with the indentation of its neighbours, or else behind a comma, with
    neighbours up to the end of the list.  What stands deeper may look like an object (a claim's template) and is none.

    Args:
        begin: Of the broken element.
        broke: Where it broke.
        indent: Before each element, if each begins a line.
    """
    if indent is not None:
        return _next_by_lines(text, begin, indent, in_object=in_object)
    for place in _PLACE.finditer(text, max(begin + 1, broke - _JUST_BEFORE)):
        at = place.end()
        if text[at] == "{" and _is_element(text, at, in_object=in_object):
            return at
        if text[at] == "]" and _ends_all(text, at, in_object=in_object):
            return at
    return None


def _next_by_lines(text: str, begin: int, indent: str, *, in_object: bool) -> int | None:
    # The same line first: it may be that something stands before the element's brace.
    end = text.find("\n", begin)
    own = text[begin : end if end >= 0 else len(text)]
    if not own.startswith("{") and own.rstrip().endswith("{"):
        return begin + own.rindex("{")
    shorter = f"[ \\t]{{0,{max(0, len(indent) - 1)}}}"
    # A brace alone on its line, if the neighbours' are: elsewhere one may be the damage.
    alone = r"[ \t\r]*$" if text.endswith(indent + "{", 0, begin + 1) and text[begin + 1 : begin + 2] in "\r\n" else ""
    pattern = re.compile(rf"^(?:{re.escape(indent)}(?=\{{{alone})|{shorter}(?=\]))", re.MULTILINE)
    for found in pattern.finditer(text, begin + 1):
        if text[found.end()] == "{" or _ends_all(text, found.end(), in_object=in_object):
            return found.end()
    return None


def _is_element(text: str, at: int, *, in_object: bool) -> bool:
    """
    Whether the objects from `at` on stand in the list itself: a list inside of an element has its end in between.

    A few neighbours are enough, and the first has to be whole.
    """
    for number in range(_NEIGHBOURS):
        try:
            value, end = _STRICT.raw_decode(text, at)
        except (ValueError, RecursionError):
            return number > 0
        if not isinstance(value, dict) or not isinstance(value.get("metadata", value.get("object")), dict):
            return False
        at = blank_to(text, end)
        if at >= len(text):
            return True
        if text[at] == "]":
            return _ends_all(text, at, in_object=in_object)
        if text[at] != ",":
            return number > 0
        at = blank_to(text, at + 1)
    return True
