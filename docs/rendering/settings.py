"""docs/reference/settings.md, rendered from the models of `sevenhop.settings` and of the channels."""

from __future__ import annotations

import types
from collections.abc import Iterator
from datetime import datetime, time, timedelta
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple, Union, get_args, get_origin

from pydantic import BaseModel, SecretStr
from pydantic.fields import FieldInfo
from pydantic_core import PydanticUndefined

from docs.rendering.markdown import code, page, table
from sevenhop.channels import CHANNELS
from sevenhop.rulebook.schema import format_duration
from sevenhop.settings import ENV_PREFIX, Settings

_INTRO = f"""# Settings

Rendered from `service/sevenhop/settings.py` and the settings of each channel by `make docs`; change the code, not this
page.

Order, the later wins: defaults, the file of `--config`, the environment, the command line. In the environment a key is
`{ENV_PREFIX}` and its path in capitals with two underscores between the parts:
`{ENV_PREFIX}INCIDENTS__GROUP_WAIT=10s`, `{ENV_PREFIX}RECEIVERS__TEAM__TOKEN=xoxb-…`. Lists and mappings are
written as YAML: `{ENV_PREFIX}POLICY__TIERS='{{"prod-*": critical}}'`. Names of receivers are in small letters there.

A duration always has a unit: `90s`, `5m`, `1h30m`, `200ms`. An unknown key is an error; all errors are said at once,
with the key that they are about. An empty file, or none, is valid: the console is told.
"""


class Field(NamedTuple):
    """One key that a person can set; `default` is None where there is none."""

    path: str
    type: str
    default: str | None
    description: str


def render() -> str:
    """The page as Markdown."""
    parts = [_INTRO, "## The process", _table(_plain_fields(Settings, ""))]
    for name, field in Settings.model_fields.items():
        model = _model_of(field.annotation)
        if model is None:
            continue
        parts += [f"## {name}", _first_line(model), _table(_plain_fields(model, f"{name}."))]
        for path, inner in _nested(model, f"{name}."):
            parts += [f"{code(path + '…')}: {_lower_first(_first_line(inner))}", _table(_plain_fields(inner, path))]
        if name == "route":
            parts.append("Each entry of `routes` has the same keys.")
    parts.append("## receivers")
    parts.append("A name of yours to the settings of one channel; `type` names the channel. Without any: the console.")
    for spec in CHANNELS.values():
        parts += [f"### {spec.name}", spec.summary, _table(_plain_fields(spec.settings, "receivers.<name>."))]
    return page(*parts)


def _nested(model: type[BaseModel], prefix: str) -> Iterator[tuple[str, type[BaseModel]]]:
    """Sections within a section: one, a list of them, or a mapping to them; not what repeats the section itself."""
    for name, field in model.model_fields.items():
        one, args = _model_of(field.annotation), get_args(field.annotation)
        if one is not None:
            yield f"{prefix}{name}.", one
        elif args and (inner := _model_of(args[-1])) is not None and inner is not model:
            yield f"{prefix}{name}" + ("[]." if get_origin(field.annotation) is list else ".<name>."), inner


def _lower_first(text: str) -> str:
    return text[:1].lower() + text[1:]


def _plain_fields(model: type[BaseModel], prefix: str) -> Iterator[Field]:
    """The fields that hold a value; sections have tables of their own."""
    for name, field in model.model_fields.items():
        if _model_of(field.annotation) is None and name != "receivers":
            yield Field(prefix + (field.alias or name), _type(field), _default(field), field.description or "")


def _table(fields: Iterator[Field]) -> str:
    rows = [[code(f.path), f.type, "required" if f.default is None else f.default, f.description] for f in fields]
    return table(["key", "type", "default", "meaning"], rows)


def _model_of(annotation: Any) -> type[BaseModel] | None:
    return annotation if isinstance(annotation, type) and issubclass(annotation, BaseModel) else None


def _first_line(model: type[BaseModel]) -> str:
    return (model.__doc__ or "").strip().split("\n\n")[0]


def _type(field: FieldInfo) -> str:
    return _type_name(field.annotation)


_NAMES: dict[Any, str] = {
    str: "text",
    int: "whole number",
    bool: "true or false",
    timedelta: "duration",
    datetime: "moment",
    time: "time of day",
    Path: "path",
    SecretStr: "secret",
}


def _type_name(annotation: Any) -> str:
    """
    A type in a person's words.

    Raises:
        TypeError: No words for it; add them to `_NAMES`.
    """
    if annotation in _NAMES:
        return _NAMES[annotation]
    origin, args = get_origin(annotation), get_args(annotation)
    if origin is Annotated:
        return _type_name(args[0])
    if origin is Literal:
        return ", ".join(code(value) for value in args)
    if origin in (Union, types.UnionType):
        return " or ".join(_type_name(arg) for arg in args if arg is not type(None))
    if origin is list:
        return "list of sections" if _model_of(args[0]) is not None else f"list of {_type_name(args[0])}s"
    if origin is dict:
        return "mapping to sections" if _model_of(args[1]) is not None else f"mapping to {_type_name(args[1])}"
    raise TypeError(f"no words for the type {annotation!r}")


def _default(field: FieldInfo) -> str | None:
    if field.is_required():
        return None
    value = field.get_default(call_default_factory=True)
    if value is PydanticUndefined:
        return None
    if isinstance(value, timedelta):
        return code(format_duration(value))
    if isinstance(value, time):
        return code(f"{value:%H:%M}")
    if isinstance(value, bool):
        return code(str(value).lower())
    return code(value) if isinstance(value, str | Path | int) and value != "" else "–"
