"""Where a setting stands: a line of the file, or a variable; and what to write instead of one that is wrong."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeGuard, get_args, get_origin

from pydantic import BaseModel

if TYPE_CHECKING:
    from sevenhop.rulebook.yaml_nodes import Document

_EXPECTED = {
    "model_type": "expected keys below it",
    "dict_type": "expected keys below it",
    "list_type": "expected a list, such as [a, b]",
    "string_type": "expected text; a number needs quotes",
    "path_type": "expected a path",
    "int_type": "expected a whole number",
    "int_parsing": "expected a whole number",
    "int_from_float": "expected a whole number",
    "float_type": "expected a number",
    "float_parsing": "expected a number",
    "bool_type": "expected true or false",
    "bool_parsing": "expected true or false",
}
"""Type of one of pydantic's errors to what a person is to write; all others say it well enough by themselves."""

Place = tuple[str | int, ...]
"""Keys and indexes from the top of the settings."""


class Places:
    """
    Args:
        path: The file, if there is one.
        document: What is in it.
        variables: Place to the variable of the environment that sets it; variables win over the file.
    """

    def __init__(self, path: Path | None, document: Document | None, variables: Mapping[Place, str]) -> None:
        self._path = path
        self._document = document
        self._variables = variables

    def line(self, place: Place) -> int:
        """In the file; 0 for what does not stand there."""
        return self._document.line(place) if self._document is not None else 0

    def of(self, place: Place) -> str:
        """``sevenhop.yaml:12``, or ``environment SEVENHOP__CLUSTER``."""
        near = [name for at, name in self._variables.items() if place[: len(at)] == at]
        below = [name for at, name in self._variables.items() if at[: len(place)] == place]
        is_in_file = self._document is not None and place in self._document.lines
        if near or (below and not is_in_file):
            return f"environment {min(near or below)}"
        if self._document is not None:
            return f"{self._path}:{self._document.line(place)}"
        return str(self._path or "settings")


def problems_of(errors: Sequence[Any], places: Places, model: type[BaseModel]) -> list[str]:
    """
    Pydantic's errors as lines, in the order of the file: where, and what to write instead.

    Nothing of what was written is shown but keys: a value may be a token.
    """
    found = sorted(((_as_written(error["loc"]), error) for error in errors), key=lambda each: places.line(each[0]))
    named = ((places.of(place), ".".join(map(str, place)), _advice(error, model)) for place, error in found)
    return [": ".join(part for part in parts if part) for parts in named]


def _advice(error: Any, model: type[BaseModel]) -> str:
    kind = error["type"]
    if kind == "extra_forbidden":
        return f"unknown key{_known_keys(error['loc'], model)}"
    if kind == "missing":
        return "is required"
    if kind == "union_tag_invalid":
        known = re.findall(r"'([^']*)'", error["ctx"]["expected_tags"])
        return f"there is no type {error['ctx']['tag']}{nearest(str(error['ctx']['tag']), known)}"
    if kind == "union_tag_not_found":
        return f"{error['ctx']['discriminator'].strip(chr(39))} is required"
    if kind == "literal_error":
        return f"expected one of {error['ctx']['expected'].replace(chr(39), '')}"
    return _EXPECTED.get(kind) or str(error["msg"].removeprefix("Value error, ").replace("Input should be", "must be"))


def nearest(word: str, known: Sequence[str]) -> str:
    """``; did you mean …?``, else ``; there are …``."""
    near = get_close_matches(word, known, n=1)
    return f"; did you mean {near[0]}?" if near else f"; there are {', '.join(known)}"


def _as_written(loc: Place) -> Place:
    """Pydantic puts the type of a receiver into the place; people do not."""
    is_below_receiver = loc[:1] == ("receivers",) and len(loc) > 3
    return (*loc[:2], *loc[3:]) if is_below_receiver else loc


def _known_keys(loc: Place, model: type[BaseModel]) -> str:
    """The nearest of the keys that may stand there; empty where nothing says which may."""
    section: Any = model
    for part in loc[:-1]:
        field = section.model_fields.get(str(part)) if _is_section(section) else None
        # Below a mapping of sections come a name, which anybody may choose, and where they differ a type.
        section = field.annotation if field is not None else _one_of(section, part)
    if not _is_section(section):
        return ""
    return nearest(str(loc[-1]), [field.alias or name for name, field in section.model_fields.items()])


def _is_section(annotation: Any) -> TypeGuard[type[BaseModel]]:
    return isinstance(annotation, type) and issubclass(annotation, BaseModel)


def _one_of(annotation: Any, part: str | int) -> Any:
    """What a name, or the ``type`` of a section, chooses out of a mapping's values."""
    if get_origin(annotation) is dict:
        return get_args(annotation)[1]
    if get_origin(annotation) is Annotated:
        annotation = get_args(annotation)[0]
    for section in get_args(annotation):
        kind = getattr(section, "model_fields", {}).get("type")
        if kind is not None and part in get_args(kind.annotation):
            return section
    return None
