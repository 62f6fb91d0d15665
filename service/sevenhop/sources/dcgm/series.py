"""Metrics as text or as Prometheus' JSON, read into plain series."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from typing import Any

import msgspec

_LINE = re.compile(r"([a-zA-Z_:][a-zA-Z0-9_:]*)(?:\{(.*)\})?\s+(\S+)(?:\s+-?\d+)?\s*")
_LABEL = re.compile(r'\s*([a-zA-Z_][a-zA-Z0-9_]*)\s*=\s*"((?:[^"\\]|\\.)*)"\s*(?:,|$)')
_ESCAPES = {"\\\\": "\\", '\\"': '"', "\\n": "\n"}
_ESCAPE = re.compile(r'\\[\\"n]')


class SeriesError(ValueError):
    """The answer is not what it should be; one line."""


class Series(msgspec.Struct, frozen=True, gc=False):
    """One value with its labels."""

    name: str
    labels: dict[str, str]
    value: float


def parse_page(text: str, prefix: str) -> Iterator[Series]:
    """
    The series of a metrics page whose names begin with `prefix`; other lines, and those without a number, are skipped.

    Format: https://prometheus.io/docs/instrumenting/exposition_formats.

    Raises:
        SeriesError: A line that begins like one of them cannot be read: the page is cut off or not one.
    """
    for line in text.splitlines():
        if not line.startswith(prefix):
            continue
        match = _LINE.fullmatch(line)
        if match is None:
            raise SeriesError(f"not a metric: {line[:60]!r}")
        value = _finite(match[3])
        if value is not None:
            yield Series(match[1], _labels(match[2] or ""), value)


def parse_answer(body: bytes, prefix: str) -> Iterator[Series]:
    """
    The series of an answer to ``/api/v1/query``.

    Raises:
        SeriesError: Prometheus refused, or it is not an answer of it.
    """
    try:
        answer: Any = msgspec.json.decode(body)
        if answer["status"] != "success":
            raise SeriesError(f"Prometheus refuses: {str(answer.get('error', 'no reason given'))[:100]}")
        for row in answer["data"]["result"]:
            labels = {str(key): str(value) for key, value in row["metric"].items()}
            name = labels.pop("__name__", "")
            value = _finite(str(row["value"][1]))
            if name.startswith(prefix) and value is not None:
                yield Series(name, labels, value)
    except (msgspec.MsgspecError, KeyError, TypeError, AttributeError, IndexError, UnicodeDecodeError):
        raise SeriesError("not an answer of Prometheus") from None


def _labels(text: str) -> dict[str, str]:
    found = {}
    at = 0
    while at < len(text):
        match = _LABEL.match(text, at)
        if match is None:
            raise SeriesError(f"labels cannot be read: {text[:60]!r}")
        found[match[1]] = _ESCAPE.sub(lambda each: _ESCAPES[each[0]], match[2])
        at = match.end()
    return found


def _finite(text: str) -> float | None:
    try:
        value = float(text)
    except ValueError:
        return None
    return value if math.isfinite(value) else None
