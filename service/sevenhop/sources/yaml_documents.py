"""YAML with several documents, each read on its own: a broken one does not take the others along."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import msgspec
import yaml

from sevenhop.sources.yaml_build import build

_SEPARATOR = re.compile(r"^---(?=\s|$)", re.MULTILINE)

_TEMPLATE = "a Helm template, not YAML: render it first (helm template CHART | sevenhop diagnose -f -)"


class Document(msgspec.Struct):
    """
    One document, or what is wrong with it.

    Attributes:
        line: Of its first content or of the problem, from 1.
        lines: The line of each mapping in it, by the mapping's `id`.
    """

    line: int
    data: Any = None
    problem: str = ""
    lines: dict[int, int] = {}


def read(text: str) -> Iterator[Document]:
    """
    All documents that are not empty.  A template is one problem, not one per document.
    """
    for start, part in _parts(text):
        try:
            for data, lines in build(part):
                if data is None:
                    continue
                lines = {key: start + line for key, line in lines.items()}
                yield Document(lines.get(id(data), start + _first_content(part)), data, "", lines)
        except yaml.YAMLError as error:
            line, problem = _explain(error, part)
            yield Document(start + line, problem=problem)
            if problem is _TEMPLATE:
                return
        except RecursionError:
            yield Document(start, problem="nested too deeply")


def _parts(text: str) -> Iterator[tuple[int, str]]:
    """(line, text) between the separators; ``---`` at the start of a line never stands inside a value."""
    starts = [0, *(match.start() for match in _SEPARATOR.finditer(text))]
    line = 1
    for start, end in zip(starts, [*starts[1:], len(text)], strict=True):
        part = text[start:end]
        if part.strip() not in ("", "---"):
            yield line, part
        line += part.count("\n")


def _first_content(part: str) -> int:
    """Lines before the first that is neither blank, a comment nor the separator."""
    for number, line in enumerate(part.split("\n")):
        content = line.removeprefix("---").strip()
        if content and not content.startswith(("#", "%")):
            return number
    return 0


def _explain(error: yaml.YAMLError, part: str) -> tuple[int, str]:
    """(line from 0, what is wrong)"""
    mark = getattr(error, "problem_mark", None) or getattr(error, "context_mark", None)
    line = int(mark.line) if mark is not None else 0
    if "{{" in part:
        return line, _TEMPLATE
    if isinstance(error, yaml.reader.ReaderError):
        at = error.position if isinstance(error.position, int) else 0
        return part[:at].count("\n"), "broken YAML: control characters"
    problem = getattr(error, "problem", None) or type(error).__name__
    column = f" at column {mark.column + 1}" if mark is not None else ""
    return line, f"broken YAML: {problem}{column}"
