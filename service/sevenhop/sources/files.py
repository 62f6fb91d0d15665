"""Manifests and support bundles: from files, folders and standard input to objects."""

from __future__ import annotations

import json
import os
import sys
from collections import Counter
from collections.abc import Iterable, Iterator
from datetime import datetime
from pathlib import Path
from typing import Any, BinaryIO

import msgspec

from sevenhop.core.events import Applied, Event, SourceChanged, SyncState
from sevenhop.core.inventory.objects import Objects
from sevenhop.core.objects.base import Object, condition
from sevenhop.core.objects.decode import UndecodableError, convert, decode
from sevenhop.core.objects.kinds import KINDS, Kind, kind_of
from sevenhop.core.objects.pod import Pod
from sevenhop.sources.packed import unpacked

_SUFFIXES = frozenset({".json", ".jsonl", ".ndjson", ".yaml", ".yml"})
"""What is read of a folder; a file that is named is read whatever it is called."""

STDIN = "stdin"

_DETAILS = {SyncState.NO_SOURCE: "the files hold none"}

_KINDS_OF_A_DUMP = 4
"""With fewer kinds, what is absent was probably not asked for."""


class Problem(msgspec.Struct, frozen=True):
    """
    Something that could not be read; the rest was.

    Attributes:
        where: ``file:line``, or the file alone.
    """

    where: str
    message: str


class Loaded:
    """
    What files hold.

    Attributes:
        items: (kind's name, object) in the order of reading, one for each object: of several with one name the
            newest resourceVersion stands, or the last.
        problems: What could not be read, in the order of reading.
        skipped: Objects of kinds that we do not read, by ``Kind.group``.
        listed: Kinds of which the files say something, were it an empty list.
        files: How many were read.
    """

    def __init__(self) -> None:
        self.problems: list[Problem] = []
        self.skipped: Counter[str] = Counter()
        self.listed: set[str] = set()
        self.files = 0
        self._items: dict[tuple[str, str, str], Object] = {}

    @property
    def items(self) -> list[tuple[str, Object]]:
        return [(key[0], obj) for key, obj in self._items.items()]

    def add(self, kind: Kind, obj: Object) -> None:
        meta = obj.metadata
        if kind.namespaced:
            # As kubectl would apply it.
            meta.namespace = meta.namespace or "default"
        else:
            meta.namespace = ""
        self.listed.add(kind.name)
        key = (kind.name, meta.namespace, meta.name)
        before = self._items.get(key)
        if before is None or not _is_newer(before, obj):
            self._items[key] = obj

    def free_name(self, kind: Kind, namespace: str, name: str) -> str:
        """The name, or one like it: manifests that leave their names to the API server are different objects."""
        place = (namespace or "default") if kind.namespaced else ""
        number, free = 1, name
        while (kind.name, place, free) in self._items:
            number += 1
            free = f"{name}{number}"
        return free

    def events(self, at: datetime) -> Iterator[Event]:
        """
        The same as a source would tell it: the objects, then each kind as `SYNCED`, or `NO_SOURCE` if the files say
        nothing of it.
        """
        for seq, (kind, obj) in enumerate(self.items, 1):
            yield Applied(at=at, epoch=1, seq=seq, kind=kind, obj=obj)
        for name, state in self._states().items():
            yield SourceChanged(
                at=at, epoch=1, seq=len(self._items) + 1, kind=name, state=state, detail=_DETAILS.get(state, "")
            )

    def objects(self) -> Objects:
        """All objects in the order of their names, so that theirs in the files is irrelevant; each kind's state."""
        objects = Objects()
        for (kind, _, _), obj in sorted(self._items.items()):
            objects.put(kind, obj)
        for name, state in self._states().items():
            objects.states[name] = state
            if state in _DETAILS:
                objects.details[name] = _DETAILS[state]
        return objects

    def _states(self) -> dict[str, SyncState]:
        """
        How much the files say of each kind.

        ``kubectl get`` writes nothing at all for a kind without objects.  In the dump of a whole cluster that is taken
        as "there are none"; in a handful of manifests it says nothing.
        """
        is_dump = {"Node", "Pod"} <= self.listed and len(self.listed) >= _KINDS_OF_A_DUMP
        omitted = omitted_kinds(obj for _, obj in self.items if isinstance(obj, Pod)) if is_dump else frozenset(KINDS)
        return {
            name: SyncState.SYNCED if name in self.listed or name not in omitted else SyncState.NO_SOURCE
            for name in KINDS
        }


def omitted_kinds(pods: Iterable[Pod]) -> frozenset[str]:
    """
    Kinds that exist in the cluster although the files hold none: pods that have a node use them.

    A pod whose verdict says nothing of the missing object is a sign too: the scheduler looks for claims first.
    """
    found: set[str] = set()
    for pod in pods:
        scheduled = condition(pod.status.conditions, "PodScheduled")
        text = scheduled.message if scheduled else ""
        exists = bool(pod.spec.node_name)
        if any(v.persistent_volume_claim or v.ephemeral for v in pod.spec.volumes) and (
            exists or (text and "volume" not in text.lower())
        ):
            found |= {"PersistentVolumeClaim", "PersistentVolume"}
        if pod.spec.resource_claims and (exists or text):
            found |= {"ResourceClaim.resource.k8s.io", "ResourceClaimTemplate.resource.k8s.io"}
        if pod.spec.runtime_class_name and (exists or text):
            found.add("RuntimeClass.node.k8s.io")
    return frozenset(found)


def _is_newer(before: Object, after: Object) -> bool:
    """Whether `before` is the newer one; only of two numbers can that be said."""
    old, new = before.metadata.resource_version, after.metadata.resource_version
    return old.isdecimal() and new.isdecimal() and int(old) > int(new)


def load_files(paths: Iterable[str | Path], stdin: BinaryIO | None = None) -> Loaded:
    """
    Read files, folders (all that is JSON or YAML in them, however deep) and ``-``.

    YAML may hold several documents, JSON several values or one per line; single objects and lists of any kind.  What is
    packed with gzip or tar is read in memory; its members are called ``bundle.tgz!member``.
    Never raises for what it reads: each problem is in the result, and everything else is read.
    """
    loaded = Loaded()
    for path in paths:
        if str(path) == "-":
            _read_file(loaded, STDIN, (stdin or sys.stdin.buffer).read())
            continue
        for file in _files_under(loaded, Path(path)):
            try:
                data = file.read_bytes()
            except OSError as error:
                loaded.problems.append(Problem(str(file), f"cannot be read: {error.strerror}"))
                continue
            _read_file(loaded, str(file), data)
    return loaded


def _read_file(loaded: Loaded, name: str, data: bytes) -> None:
    for part in unpacked(name, data, _is_read):
        if part.problem:
            loaded.files += 1
            loaded.problems.append(Problem(part.name, part.problem))
        else:
            _read_text(loaded, part.name, part.data, is_yaml=_suffix(part.name) in (".yaml", ".yml"))


def _is_read(name: str) -> bool:
    """Whether a file of this name is read of a folder or an archive."""
    return _suffix(name) in _SUFFIXES and not name.startswith(".")


def _suffix(name: str) -> str:
    """
    >>> _suffix("pods.YAML"), _suffix("bundle.tgz!out/pods.json.gz")
    ('.yaml', '.json')
    """
    return Path(name.lower().removesuffix(".gz")).suffix


def _files_under(loaded: Loaded, path: Path) -> Iterator[Path]:
    if not path.is_dir():
        if path.exists():
            yield path
        else:
            loaded.problems.append(Problem(str(path), "no such file or folder"))
        return

    def unreadable(error: OSError) -> None:
        loaded.problems.append(Problem(str(error.filename), f"cannot be read: {error.strerror}"))

    found = False
    for folder, folders, names in os.walk(path, onerror=unreadable):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        for name in sorted(names):
            if _is_read(name):
                found = True
                yield Path(folder) / name
    if not found:
        loaded.problems.append(Problem(str(path), "holds no .json, .jsonl, .yaml or .yml file"))


def _read_text(loaded: Loaded, name: str, data: bytes, *, is_yaml: bool) -> None:
    loaded.files += 1
    reader = _Reader(loaded, name)
    data = _as_utf8(data)
    start = data[:4096].lstrip()[:2]
    if not start and not data.strip():
        return
    if b"\0" in data[:4096]:
        reader.problem(1, "not text: a compressed or binary file? Unpack it first")
        return
    is_json = start[:1] in (b"{", b"[") and start != b"{{"
    if is_json and reader.read_json(data, may_be_yaml=is_yaml):
        return
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        reader.problem(data[: error.start].count(b"\n") + 1, "not UTF-8")
        return
    from sevenhop.sources import yaml_documents  # late: a bundle of JSON does not need it

    for document in yaml_documents.read(text):
        if document.problem:
            reader.problem(document.line, document.problem)
        else:
            reader.lines = document.lines
            reader.document(document.line, document.data)


def _as_utf8(data: bytes) -> bytes:
    """Without a byte order mark; ``kubectl … > pods.yaml`` in Windows PowerShell writes UTF-16."""
    if data.startswith((b"\xff\xfe", b"\xfe\xff")):
        try:
            return data.decode("utf-16").encode()
        except UnicodeError:
            return data
    return data.removeprefix(b"\xef\xbb\xbf")


class _Head(msgspec.Struct, rename="camel"):
    """What says how to read a value; everything else waits."""

    api_version: Any = ""
    kind: Any = ""
    items: msgspec.Raw = msgspec.Raw()
    type: Any = ""
    object: msgspec.Raw = msgspec.Raw()


_head_decoder = msgspec.json.Decoder(_Head)
_items_decoder = msgspec.json.Decoder(list[msgspec.Raw] | None)


class _Reader:
    """One file: its name for problems, and what was said of it already."""

    def __init__(self, loaded: Loaded, name: str) -> None:
        self._loaded = loaded
        self._name = name
        self._data = b""
        self._offset = 0
        self._said_no_object = False
        self.lines: dict[int, int] = {}
        """Lines of the plain data that `document` gets, by its `id`, where they are known."""

    def problem(self, line: int, message: str) -> None:
        self._loaded.problems.append(Problem(f"{self._name}:{line}", message))

    # JSON -------------------------------------------------------------------------------------------------------------

    def read_json(self, data: bytes, *, may_be_yaml: bool) -> bool:
        """One value, one per line, or several; False if it should be read as YAML instead."""
        self._data = data
        try:
            msgspec.json.decode(data, type=msgspec.Raw)
        except (msgspec.DecodeError, RecursionError):
            return self._read_json_values(data, may_be_yaml=may_be_yaml)
        self._json_value(data)
        return True

    def _read_json_values(self, data: bytes, *, may_be_yaml: bool) -> bool:
        lines = data.split(b"\n")
        if _is_json_lines(lines):
            for number, line in enumerate(lines, 1):
                if line.strip():
                    self._json_line(number, line)
            return True
        text = data.decode("utf-8", "replace")
        decoder = json.JSONDecoder()
        at = 0
        while True:
            at += len(text[at:]) - len(text[at:].lstrip())
            if at >= len(text):
                return True
            try:
                value, end = decoder.raw_decode(text, at)
            except json.JSONDecodeError as error:
                if at == 0 and may_be_yaml:
                    return False
                self.problem(error.lineno, f"broken JSON: {error.msg} at column {error.colno}")
                return True
            except RecursionError:
                self.problem(text.count("\n", 0, at) + 1, "nested too deeply")
                return True
            self.document(text.count("\n", 0, at) + 1, value)
            at = end

    def _json_line(self, number: int, line: bytes) -> None:
        try:
            msgspec.json.decode(line, type=msgspec.Raw)
        except (msgspec.DecodeError, RecursionError) as error:
            self.problem(number, f"broken JSON: {error}")
            return
        self._json_value(line, number)

    def _json_value(self, raw: bytes | msgspec.Raw, line: int = 0, default: tuple[str, str] = ("", "")) -> None:
        """An object, or a list of them, from JSON; `default` is the type of elements that do not say theirs."""
        try:
            head = _head_decoder.decode(raw)
        except (msgspec.DecodeError, RecursionError):
            self._json_array(raw, line)
            return
        api_version, kind = _type_of(head.api_version, head.kind, default)
        if kind.endswith("List") and len(memoryview(head.items)):
            try:
                items = _items_decoder.decode(head.items)
            except msgspec.DecodeError:
                self.problem(line or self._line_of(raw), f"{kind} without a list of items")
                return
            element = self._begin_list(api_version, kind)
            for item in items or ():
                self._json_value(item, line, element)
            return
        if not kind and _is_watched(head.type) and len(memoryview(head.object)):
            self._json_value(head.object, line)
            return
        row = self._row(api_version, kind, lambda: line or self._line_of(raw))
        if row is None:
            return
        try:
            obj = decode(row, raw)
            prefix = "" if obj.metadata.name else _named_in(raw).generate_name
            self._add(row, obj, lambda: line or self._line_of(raw), prefix)
        except UndecodableError as error:
            name = _named_in(raw).name
            self.problem(line or self._line_of(raw), f"{error} ({name})" if name else str(error))

    def _json_array(self, raw: bytes | msgspec.Raw, line: int) -> None:
        try:
            items = _items_decoder.decode(raw)
        except (msgspec.DecodeError, RecursionError):
            self._no_object(line or self._line_of(raw))
            return
        for item in items or ():
            self._json_value(item, line)

    def _line_of(self, raw: bytes | msgspec.Raw) -> int:
        """Where a value begins; searched only for what has a problem, onward from the last one found."""
        text = bytes(raw)
        at = self._data.find(text, self._offset)
        if at < 0:
            at = max(0, self._data.find(text))
        self._offset = at
        start = at + len(text) - len(text.lstrip())
        return self._data.count(b"\n", 0, start) + 1

    # Plain data -------------------------------------------------------------------------------------------------------

    def document(self, line: int, data: Any, default: tuple[str, str] = ("", "")) -> None:
        """An object, or a list of them, from plain data."""
        line = self.lines.get(id(data), line)
        if isinstance(data, list):
            for item in data:
                self.document(line, item)
            return
        if not isinstance(data, dict):
            self._no_object(line)
            return
        api_version, kind = _type_of(data.get("apiVersion"), data.get("kind"), default)
        if "items" in data and kind.endswith("List"):
            items = data["items"]
            if items is not None and not isinstance(items, list):
                self.problem(line, f"{kind} without a list of items")
                return
            element = self._begin_list(api_version, kind)
            for item in items or ():
                self.document(line, item, element)
            return
        if not kind and _is_watched(data.get("type")) and isinstance(data.get("object"), dict):
            self.document(line, data["object"])
            return
        row = self._row(api_version, kind, lambda: line)
        if row is None:
            return
        meta = data.get("metadata")
        said = meta if isinstance(meta, dict) else {}
        try:
            self._add(row, convert(row, data), lambda: line, str(said.get("generateName") or ""))
        except UndecodableError as error:
            name = said.get("name", "")
            self.problem(line, f"{error} ({name})" if name else str(error))

    # Both -------------------------------------------------------------------------------------------------------------

    def _begin_list(self, api_version: str, kind: str) -> tuple[str, str]:
        """The type that its elements have unless they say another; an empty list of a kind says that there are none."""
        if kind == "List":
            return ("", "")
        element = (api_version, kind.removesuffix("List"))
        row = kind_of(*element)
        if row is not None:
            self._loaded.listed.add(row.name)
        return element

    def _row(self, api_version: str, kind: str, line: Any) -> Kind | None:
        if not api_version or not kind:
            self._no_object(line())
            return None
        row = kind_of(api_version, kind)
        if row is None:
            group = api_version.rpartition("/")[0]
            self._loaded.skipped[f"{kind}.{group}" if group else kind] += 1
        return row

    def _add(self, row: Kind, obj: Object, line: Any, prefix: str) -> None:
        """`prefix` is what the API server would begin its name with, where the object has none yet."""
        if not obj.metadata.name and not prefix:
            self.problem(line(), f"{row.name} without metadata.name")
            return
        if not obj.metadata.name:
            obj.metadata.name = self._loaded.free_name(row, obj.metadata.namespace, f"{prefix}…")
        self._loaded.add(row, obj)

    def _no_object(self, line: int) -> None:
        """Once per file: a values file or a log has many of them."""
        if not self._said_no_object:
            self._said_no_object = True
            self.problem(line, "no Kubernetes object: apiVersion and kind are missing (a Helm values file?)")


class _Name(msgspec.Struct, rename="camel"):
    name: str = ""
    generate_name: str = ""


class _Named(msgspec.Struct):
    metadata: _Name = msgspec.field(default_factory=_Name)


def _named_in(raw: bytes | msgspec.Raw) -> _Name:
    try:
        return msgspec.json.decode(raw, type=_Named).metadata
    except (msgspec.DecodeError, RecursionError):
        return _Name()


def _type_of(api_version: Any, kind: Any, default: tuple[str, str]) -> tuple[str, str]:
    said = (api_version if isinstance(api_version, str) else "", kind if isinstance(kind, str) else "")
    return said if said[1] else default


def _is_watched(said: Any) -> bool:
    """What ``kubectl get --watch --output-watch-events`` wraps objects in; what is gone is not read."""
    return said in ("ADDED", "MODIFIED")


def _is_json_lines(lines: list[bytes]) -> bool:
    """Whether most lines are objects on their own, so that a broken one is just one line."""
    filled = [line for line in lines if line.strip()]
    return len(filled) > 1 and 2 * sum(map(_is_json_object, filled)) >= len(filled)


def _is_json_object(line: bytes) -> bool:
    if not line.lstrip().startswith(b"{"):
        return False
    try:
        msgspec.json.decode(line, type=msgspec.Raw)
    except (msgspec.DecodeError, RecursionError):
        return False
    return True
