"""
From YAML's parser events straight to plain data, six times as fast as PyYAML's own way over nodes.

Reads what the API server would read (sigs.k8s.io/yaml, by way of JSON): times stay text, so do numbers in base 60,
and keys are strings.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import yaml
from yaml.events import (
    AliasEvent,
    DocumentStartEvent,
    Event,
    MappingEndEvent,
    MappingStartEvent,
    NodeEvent,
    ScalarEvent,
    SequenceEndEvent,
    SequenceStartEvent,
)
from yaml.nodes import ScalarNode

_Base: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)  # without libyaml: slower, the same result

_MOST_NODES = 5_000_000
"""More than any bundle holds; with aliases, a page of text could fill the memory."""

_TAG = "tag:yaml.org,2002:"
_BUILT = frozenset({_TAG + name for name in ("null", "bool", "int", "float")})
_CONTAINERS = frozenset({None, "!", _TAG + "map", _TAG + "seq"})


class _Loader(_Base):  # type: ignore[misc]
    """Resolves plain scalars as the API server does."""


_Loader.yaml_implicit_resolvers = {
    first: [(tag, pattern) for tag, pattern in rows if tag in (_TAG + "null", _TAG + "bool")]
    for first, rows in _Base.yaml_implicit_resolvers.items()
}
_Loader.add_implicit_resolver(
    _TAG + "int",
    re.compile(r"^(?:[-+]?0b[01_]+|[-+]?0[0-7_]+|[-+]?(?:0|[1-9][0-9_]*)|[-+]?0x[0-9a-fA-F_]+)$"),
    list("-+0123456789"),
)
_Loader.add_implicit_resolver(
    _TAG + "float",
    re.compile(
        r"^(?:[-+]?[0-9][0-9_]*\.[0-9_]*(?:[eE][-+]?[0-9]+)?|\.[0-9][0-9_]*(?:[eE][-+]?[0-9]+)?"
        r"|[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN))$"
    ),
    list("-+0123456789."),
)


class BuildError(yaml.YAMLError):
    """YAML that is well formed and still no plain data; `problem_mark` says where."""

    def __init__(self, problem: str, event: Event) -> None:
        super().__init__(problem)
        self.problem = problem
        self.problem_mark = event.start_mark


def build(text: str) -> Iterator[tuple[Any, dict[int, int]]]:
    """
    Each document of `text`, with the line (from 0) at which each mapping in it begins, by the mapping's `id`.

    Raises:
        yaml.YAMLError: Broken YAML, a key twice in one mapping (as kubectl refuses it), an unknown tag, or aliases that
            do not end or make it too large.
        RecursionError: Nested too deeply.
    """
    builder = _Builder(_Loader(text))
    while (document := builder.next_document()) is not None:
        yield document


class _Builder:
    def __init__(self, loader: Any) -> None:
        self._loader = loader
        self._get: Any = loader.get_event
        self._plain: dict[str, Any] = {}  # the same few thousand words fill a bundle
        self._anchors: dict[str, tuple[Any, int]] = {}
        self._open: set[str] = set()
        self._nodes = 0
        self._lines: dict[int, int] = {}
        self._get()

    def next_document(self) -> tuple[Any, dict[int, int]] | None:
        """None at the end."""
        if not isinstance(self._get(), DocumentStartEvent):
            return None
        self._anchors.clear()
        self._lines = {}
        data = self._node(self._get())
        self._get()
        return data, self._lines

    def _node(self, event: NodeEvent) -> Any:
        self._nodes += 1
        if isinstance(event, AliasEvent):
            return self._alias(event)
        anchor = event.anchor
        if anchor is None:
            return self._value(event)
        self._open.add(anchor)
        before = self._nodes
        data = self._value(event)
        self._open.discard(anchor)
        self._anchors[anchor] = (data, self._nodes - before)
        return data

    def _alias(self, event: AliasEvent) -> Any:
        if event.anchor in self._open:
            raise BuildError("an alias inside itself", event)
        if event.anchor not in self._anchors:
            raise BuildError(f"undefined alias {event.anchor!r}", event)
        data, nodes = self._anchors[event.anchor]
        self._nodes += nodes
        if self._nodes > _MOST_NODES:
            raise BuildError("aliases make it too large", event)
        return data

    def _value(self, event: Any) -> Any:
        if type(event) is ScalarEvent:
            return self._scalar(event)
        if event.tag not in _CONTAINERS:
            raise BuildError(f"unknown tag {event.tag}", event)
        if type(event) is MappingStartEvent:
            return self._mapping(event)
        if type(event) is SequenceStartEvent:
            items = []
            while type(event := self._get()) is not SequenceEndEvent:
                items.append(self._node(event))
            return items
        raise BuildError("expected a value", event)

    def _mapping(self, start: Any) -> dict[str, Any]:
        data: dict[str, Any] = {}
        merged: list[Any] = []
        while type(event := self._get()) is not MappingEndEvent:
            key = self._node(event)
            value = self._node(self._get())
            if key == "<<" and type(event) is ScalarEvent and event.implicit[0]:
                merged += value if isinstance(value, list) else [value]
            else:
                if not isinstance(key, str):
                    key = self._key(key, event)
                if key in data:
                    raise BuildError(f"the key {key} appears twice", event)
                data[key] = value
        for more in merged:
            if not isinstance(more, dict):
                raise BuildError("expected mappings to merge", start)
            for key, value in more.items():
                data.setdefault(key, value)
        self._lines[id(data)] = start.start_mark.line
        return data

    @staticmethod
    def _key(key: Any, event: Event) -> str:
        """As JSON writes it."""
        if isinstance(key, dict | list):
            raise BuildError("a key that is no text", event)
        return "null" if key is None else str(key).lower() if isinstance(key, bool) else str(key)

    def _scalar(self, event: ScalarEvent) -> Any:
        text = event.value
        if event.tag is not None:
            return self._tagged(event)
        if not event.implicit[0]:
            return text
        try:
            return self._plain[text]
        except KeyError:
            tag = self._loader.resolve(ScalarNode, text, (True, False))
            value = self._construct(tag, event) if tag in _BUILT else text
            self._plain[text] = value
            return value

    def _tagged(self, event: ScalarEvent) -> Any:
        if event.tag in (_TAG + "str", _TAG + "binary", _TAG + "timestamp", "!"):
            return event.value
        if event.tag in _BUILT:
            return self._construct(event.tag, event)
        raise BuildError(f"unknown tag {event.tag}", event)

    def _construct(self, tag: str, event: Any) -> Any:
        try:
            return self._loader.construct_object(ScalarNode(tag, event.value, event.start_mark, event.end_mark))
        except (ValueError, KeyError):
            raise BuildError(f"not a value of type {tag.removeprefix(_TAG)}", event) from None
