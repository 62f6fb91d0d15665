"""YAML with a line for every value, duplicate keys refused, and no size to be afraid of."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import yaml

from sevenhop.rulebook.problem import Problem

_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_MOST_VALUES = 20_000  # aliases of aliases grow without bound; no file of people has that many values
_MOST_BYTES = 1_000_000
_MERGE = "tag:yaml.org,2002:merge"
_TAGS = frozenset(["str", "int", "float", "bool", "null", "timestamp", "map", "seq"])

Path = tuple[str | int, ...]
"""Keys and indexes from the top of the document."""


@dataclass(slots=True)
class Document:
    """
    Attributes:
        data: Plain Python data; None if there is none to go on with.
        lines: Line of every value, of keys for mappings' entries.
        text_lines: Line at which a text's first line stands; for a block that is below its key.
    """

    path: str
    data: Any = None
    lines: dict[Path, int] = field(default_factory=dict)
    text_lines: dict[Path, int] = field(default_factory=dict)
    problems: list[Problem] = field(default_factory=list)

    def line(self, path: Path) -> int:
        """The line of a value, else of the nearest thing around it."""
        while path and path not in self.lines:
            path = path[:-1]
        return self.lines.get(path, 1)


def read_document(path: str, text: str) -> Document:
    """
    Read one YAML document.

    Never raises for what people wrote: `problems` says it, `data` is what could be read.
    """
    document = Document(path)
    if len(text) > _MOST_BYTES:
        document.problems.append(Problem(path, 0, "yaml-too-big", f"{len(text)} characters; at most {_MOST_BYTES}"))
        return document
    loader = _LOADER(text)
    try:
        node = loader.get_single_node()
        if node is None:
            document.problems.append(Problem(path, 1, "yaml-empty", "expected a mapping, the file is empty"))
        else:
            document.data = _Reader(document, loader).value(node, (), ())
    except yaml.MarkedYAMLError as problem:
        mark = problem.problem_mark or problem.context_mark
        # The end of the text counts as a line of its own there, which no editor shows.
        line = min(mark.line + 1, max(1, len(text.splitlines()))) if mark else 1
        document.problems.append(Problem(path, line, "yaml-syntax", problem.problem or "cannot be read"))
    except (yaml.YAMLError, ValueError, RecursionError) as problem:
        said = (str(problem).splitlines() or [type(problem).__name__])[0]
        document.problems.append(Problem(path, 1, "yaml-syntax", said))
    finally:
        loader.dispose()
    return document


class _Reader:
    def __init__(self, document: Document, loader: Any) -> None:
        self.document, self.loader = document, loader
        self.values = 0

    def value(self, node: yaml.Node, path: Path, around: tuple[int, ...]) -> Any:
        self.values += 1
        if self.values > _MOST_VALUES:
            raise ValueError(f"more than {_MOST_VALUES} values; do aliases repeat each other?")
        if id(node) in around:
            raise ValueError("an anchor contains itself")
        self.document.lines.setdefault(path, node.start_mark.line + 1)
        if node.tag.removeprefix("tag:yaml.org,2002:") not in _TAGS:
            self._problem(node.start_mark.line + 1, "yaml-tag", f"expected plain values, got {node.tag}")
            return None
        if isinstance(node, yaml.MappingNode):
            return self._mapping(node, path, (*around, id(node)))
        if isinstance(node, yaml.SequenceNode):
            below = (*around, id(node))
            return [self.value(child, (*path, i), below) for i, child in enumerate(node.value)]
        return self._scalar(node, path)

    def _mapping(self, node: yaml.MappingNode, path: Path, around: tuple[int, ...]) -> dict[str, Any]:
        merged = self._merged(node, path, around)
        data: dict[str, Any] = {}
        for key_node, value_node in node.value:
            if key_node.tag == _MERGE:
                continue
            line = key_node.start_mark.line + 1
            key = key_node.value if isinstance(key_node, yaml.ScalarNode) else "?"
            here = (*path, key)
            if key in data:
                self._problem(line, "yaml-duplicate-key", f"{key!r} appears twice")
                continue
            self.document.lines[here] = line
            data[key] = self.value(value_node, here, around)
        return {**merged, **data}

    def _merged(self, node: yaml.MappingNode, path: Path, around: tuple[int, ...]) -> dict[str, Any]:
        """What ``<<: *anchor`` brings; of several the first counts, and what stands in the mapping itself more."""
        data: dict[str, Any] = {}
        for key_node, value_node in node.value:
            if key_node.tag != _MERGE:
                continue
            nodes = value_node.value if isinstance(value_node, yaml.SequenceNode) else [value_node]
            for each in reversed(nodes):
                if isinstance(each, yaml.MappingNode):
                    data |= self.value(each, path, around)
                else:
                    self._problem(key_node.start_mark.line + 1, "yaml-merge", "<< takes mappings")
        return data

    def _scalar(self, node: yaml.Node, path: Path) -> Any:
        block = getattr(node, "style", None) in ("|", ">")
        self.document.text_lines[path] = node.start_mark.line + (2 if block else 1)
        return self.loader.construct_object(node)

    def _problem(self, line: int, code: str, message: str) -> None:
        self.document.problems.append(Problem(self.document.path, line, code, message))
