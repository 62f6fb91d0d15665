"""From bytes or plain data to slim structs; strict and fast first, forgiving second."""

from __future__ import annotations

from typing import Any

import msgspec

from sevenhop.core.objects.base import Object
from sevenhop.core.objects.kinds import KINDS, Kind


class UndecodableError(Exception):
    """An object that our structs cannot hold; the message names the field, never its value."""


_decoders = {struct: msgspec.json.Decoder(struct) for struct in {k.struct for k in KINDS.values()}}


def decode(kind: Kind, raw: bytes | msgspec.Raw) -> Object:
    """
    Decode one object from JSON.

    Raises:
        UndecodableError: Not JSON, or a field has a type that no reading of it accepts.
    """
    try:
        return _decoders[kind.struct].decode(raw)
    except msgspec.ValidationError:
        pass  # rare: null lists, numbers where strings are usual; costs five times more
    except (msgspec.DecodeError, RecursionError) as error:
        raise UndecodableError(f"{kind.name}: {error}") from None
    try:
        plain = msgspec.json.decode(raw)
    except (msgspec.DecodeError, RecursionError) as error:
        raise UndecodableError(f"{kind.name}: {error}") from None
    return convert(kind, plain)


def convert(kind: Kind, data: Any) -> Object:
    """
    The same from plain data (YAML, JSON already read): nulls mean absent, numbers may stand for strings.

    Raises:
        UndecodableError: As `decode`.
    """
    try:
        return msgspec.convert(_without_nulls(data), kind.struct, strict=False)
    except (msgspec.ValidationError, RecursionError) as error:
        raise UndecodableError(f"{kind.name}: {error}") from None


def _without_nulls(data: Any) -> Any:
    if isinstance(data, dict):
        return {str(k): _without_nulls(v) for k, v in data.items() if v is not None}
    if isinstance(data, list):
        return [_without_nulls(v) for v in data if v is not None]
    return data
