"""From plain data to objects, or to a problem at the line where they stand; lists in lists, watch events, answers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from sevenhop.core.objects.base import Object
from sevenhop.core.objects.decode import UndecodableError, convert
from sevenhop.core.objects.kinds import Kind, kind_of
from sevenhop.sources.files_loaded import Loaded, Problem
from sevenhop.sources.files_text import INSTEAD

_MOST_PROBLEMS = 100
"""Of one file; a log that was taken for one has a problem in each line."""

_MOST_LISTS = 40
"""In each other."""

_ANSWERS = {
    "Table.meta.k8s.io": "a table of the API server, which leaves out nearly everything",
    "PartialObjectMetadata.meta.k8s.io": "metadata alone, without spec and status",
    "PartialObjectMetadataList.meta.k8s.io": "metadata alone, without spec and status",
}

Type = tuple[str, str]
"""(apiVersion, kind)"""

NO_TYPE: Type = ("", "")


class Reader:
    """
    One file: its name for problems, and what was said of it already.

    Attributes:
        found: Whether anything in it was an object, of a kind that is read or not.
        lines: Lines of the plain data that `document` gets, by its `id`, where they are known.
        last_kind: Name of the kind of the last object; what is cut off or damaged next to it was probably one more.
    """

    def __init__(self, loaded: Loaded, name: str, *, says_no_object: bool = True) -> None:
        self.loaded = loaded
        self.found = False
        self.lines: dict[int, int] = {}
        self.last_kind = ""
        self._name = name
        self._said_no_object = not says_no_object
        self._lost_one = False  # just before what comes next
        self._problems = 0

    def problem(self, line: int, message: str) -> None:
        self._problems += 1
        if self._problems <= _MOST_PROBLEMS:
            self.loaded.problems.append(Problem(f"{self._name}:{line}", message))

    def end(self) -> None:
        """No more comes of this file."""
        if self._problems > _MOST_PROBLEMS:
            more = self._problems - _MOST_PROBLEMS
            self.loaded.problems.append(Problem(self._name, f"and {more} more problems like these"))

    def lost(self, kind: str = "", *, is_cut: bool = False) -> None:
        """
        Something that stood in the file is not read: it is not known any more what there is of its kind.

        Args:
            kind: Its kind's name, if that is known.
            is_cut: The file ends there, so that whole kinds may be missing.
        """
        if kind or self.last_kind:
            self.loaded.partial.add(kind or self.last_kind)
        self._lost_one |= not kind
        self.loaded.has_gap |= not kind
        self.loaded.is_cut |= is_cut

    def _is_of(self, kind: str) -> None:
        """The next one is of this kind; one that was lost just before it may have been, too."""
        self.last_kind = kind
        if self._lost_one:
            self.loaded.partial.add(kind)
            self._lost_one = False

    # Plain data -------------------------------------------------------------------------------------------------------

    def document(self, line: int, data: Any, default: Type = NO_TYPE, depth: int = 0) -> None:
        """An object, or a list of them; `default` is the type of elements that do not say theirs."""
        line = self.lines.get(id(data), line)
        if isinstance(data, list):
            if self.is_shallow(line, depth):
                for item in data:
                    self.document(line, item, depth=depth + 1)
            return
        if not isinstance(data, dict):
            self.no_object(line, depth, "null" if data is None else "no object")
            return
        api_version, kind = type_of(data.get("apiVersion"), data.get("kind"), default)
        items = data.get("items")
        if "items" not in data and is_list_kind(api_version, kind):
            self.problem(line, f"{kind} without items")
            self.lost()
            items = next((value for value in data.values() if holds_objects(value)), ())
            for item in items if self.is_shallow(line, depth) else ():
                self.document(line, item, self.begin_list(api_version, kind), depth + 1)
            return
        is_list = kind.endswith("List") or (is_no_kind(api_version, kind) and holds_objects(items))
        if "items" in data and is_list:
            if items is not None and not isinstance(items, list):
                self.problem(line, f"{kind} without a list of items")
                return
            element = self.begin_list(api_version, kind)
            for item in (items or ()) if self.is_shallow(line, depth) else ():
                self.document(line, item, element, depth + 1)
            return
        if not kind and is_watched(data.get("type")) and isinstance(data.get("object"), dict):
            self.document(line, data["object"], depth=depth)
            return
        meta = data.get("metadata")
        said = meta if isinstance(meta, dict) else {}
        row = self.row(api_version, kind, lambda: line, lambda: str(data.get("message", "")), depth)
        if row is None:
            return
        try:
            self.add(row, convert(row, data), lambda: line, str(said.get("generateName") or ""))
        except UndecodableError as error:
            self.undecodable(line, row, error, said.get("name", ""))

    # Both, from plain data and from JSON ------------------------------------------------------------------------------

    def is_shallow(self, line: int, depth: int) -> bool:
        if depth < _MOST_LISTS:
            return True
        self.problem(line, "lists nested too deeply")
        return False

    def begin_list(self, api_version: str, kind: str) -> Type:
        """The type that its elements have unless they say another; an empty list of a kind says that there are none."""
        if not kind.endswith("List") or kind == "List":
            return NO_TYPE
        element = (api_version, kind.removesuffix("List"))
        row = kind_of(*element)
        if row is not None:
            self.loaded.listed.add(row.name)
            self._is_of(row.name)
        return element

    def row(
        self, api_version: str, kind: str, line: Callable[[], int], message: Callable[[], str], depth: int
    ) -> Kind | None:
        """The kind, if it is one that is read; `line` and `message` are asked only if there is a problem."""
        if not api_version or not kind:
            missing = " and ".join(key for key, value in (("apiVersion", api_version), ("kind", kind)) if not value)
            self.no_object(line(), depth, f"without {missing}")
            return None
        self.found = True
        row = kind_of(api_version, kind)
        if row is not None:
            self._is_of(row.name)
            return row
        group = api_version.rpartition("/")[0]
        name = f"{kind}.{group}" if group else kind
        if name == "Status":
            self.problem(line(), f"no objects, but an answer of the API server: {message()[:300] or 'a status'}")
            self.loaded.is_cut = True  # what was asked for is not there
        elif name in _ANSWERS:
            self.problem(line(), f"{_ANSWERS[name]}; {INSTEAD}")
        else:
            self.loaded.skipped[name] += 1
        return None

    def add(self, row: Kind, obj: Object, line: Callable[[], int], prefix: str) -> None:
        """`prefix` is what the API server would begin its name with, where the object has none yet."""
        if not obj.metadata.name and not prefix:
            self.problem(line(), f"{row.name} without metadata.name")
            self.lost(row.name)
            return
        if not obj.metadata.name:
            obj.metadata.name = self.loaded.free_name(row, obj.metadata.namespace, f"{prefix}…")
        self.loaded.add(row, obj)

    def undecodable(self, line: int, row: Kind, error: UndecodableError, name: Any) -> None:
        self.problem(line, f"{error} ({name})" if name else str(error))
        self.lost(row.name)

    def no_object(self, line: int, depth: int, what: str) -> None:
        """Of each item of a list, and each that was an object; else once per file: a log has many of them."""
        if depth or what in ("without apiVersion", "without kind"):
            which = "an item" if depth else "an object"
            self.problem(line, f"{which} {what}" if what.startswith("without") else f"{which} that is {what}")
            self.lost()
            return
        if self.found and what.startswith("without"):
            self.lost()  # between objects it is probably what damage left of one
        if not self._said_no_object:
            self._said_no_object = True
            self.problem(line, "no Kubernetes object: apiVersion and kind are missing (a Helm values file?)")


def type_of(api_version: Any, kind: Any, default: Type) -> Type:
    said = (api_version if isinstance(api_version, str) else "", kind if isinstance(kind, str) else "")
    return said if said[1] or not default[1] else default


def is_list_kind(api_version: str, kind: str) -> bool:
    """Whether the name is that of a list, and not of some object that happens to be called so."""
    return kind == "List" or (kind.endswith("List") and kind_of(api_version, kind.removesuffix("List")) is not None)


def is_no_kind(api_version: str, kind: str) -> bool:
    return not kind or kind_of(api_version, kind) is None


def holds_objects(items: Any) -> bool:
    """
    Whether this is a list of objects, although its kind does not say so: ``jq '{items: .items[:9]}'`` drops it, and a
    byte of it may be damaged.
    """
    first = next((item for item in items if item is not None), None) if isinstance(items, list) else None
    return isinstance(first, dict) and isinstance(first.get("kind"), str) and "metadata" in first


def is_watched(said: Any) -> bool:
    """What ``kubectl get --watch --output-watch-events`` wraps objects in; what is gone is not read."""
    return said in ("ADDED", "MODIFIED")
