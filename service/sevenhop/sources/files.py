"""Manifests and support bundles: from files, folders and standard input to objects."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import BinaryIO

from sevenhop.sources.files_json import is_sound, read_json
from sevenhop.sources.files_loaded import Loaded, Problem, omitted_kinds
from sevenhop.sources.files_paths import content, files_under, is_read, shown, standard_input, suffix
from sevenhop.sources.files_reader import Reader
from sevenhop.sources.files_text import INSTEAD, decoded, what_it_is, without_messages
from sevenhop.sources.packed import MOST_BYTES, unpacked

__all__ = ["STDIN", "Loaded", "Problem", "load_files", "omitted_kinds"]

STDIN = "stdin"

_MOST_FLOW_BYTES = 256 * 1024
"""Of YAML in braces, which people write; a larger file is JSON that is broken, and YAML would only take its time."""


def load_files(paths: Iterable[str | Path], stdin: BinaryIO | None = None) -> Loaded:
    """
    Read files, folders (all that is JSON or YAML in them, however deep) and ``-``.

    YAML may hold several documents, JSON several values or one per line; single objects and lists of any kind.  What is
    packed with gzip or tar is read in memory; its members are called ``bundle.tgz!member``.
    Never raises for what it reads: each problem is in the result, and everything else is read, down to the whole items
    of a list that was cut off.
    """
    loaded = Loaded()
    for path in paths:
        if str(path) == "-":
            _take(loaded, STDIN, standard_input(stdin))
            continue
        for file in files_under(Path(path), loaded.problems.append):
            _take(loaded, shown(file), content(file))
    return loaded


def _take(loaded: Loaded, name: str, data: bytes | Problem) -> None:
    if isinstance(data, Problem):
        loaded.problems.append(data)
        return
    if len(data) > MOST_BYTES:
        loaded.problems.append(Problem(name, f"more than {MOST_BYTES // 2**20} MiB: read it in parts"))
        data = data[:MOST_BYTES]
    for part in unpacked(name, data, is_read):
        if part.data or not part.problem:
            _read_text(loaded, part.name, part.data)
        else:
            loaded.files += 1
        if part.problem:
            loaded.problems.append(Problem(part.name, part.problem))
            loaded.is_cut = True


def _read_text(loaded: Loaded, name: str, data: bytes) -> None:
    loaded.files += 1
    text = decoded(data)
    reader = Reader(loaded, name, says_no_object=text is None or not text.bad_lines)
    if text is None:
        reader.problem(1, "not text: a compressed or binary file? Unpack it first")
        return
    data, said = without_messages(text.data)
    for line, message in said:
        # What was asked for and refused is unknown, and not absent.
        loaded.is_cut = True
        reader.problem(
            line, f'no object, but what kubectl said: "{message}"' + ("" if data.strip() else f"; {INSTEAD}")
        )
    if text.bad_lines:
        first, *more = text.bad_lines
        read_as = f", and in {len(more)} lines more" if more else ""
        reader.problem(first, f"not UTF-8{read_as}")
    if data.strip():
        _read_objects(reader, name, data)
    if text.is_cut and not loaded.is_cut:
        reader.problem(data.count(b"\n") + 1, "cut off in the middle of a character")
        reader.lost(is_cut=True)
    reader.end()


def _read_objects(reader: Reader, name: str, data: bytes) -> None:
    start = data[:4096].lstrip()[:2]
    is_json = start[:1] in (b"{", b"[") and start != b"{{"
    if is_json and not _is_flow_yaml(name, data):
        read_json(reader, data)
        return
    text = data.decode("utf-8")
    what = what_it_is(text)
    if what:
        line = data[: len(data) - len(data.lstrip())].count(b"\n") + 1
        reader.problem(line, f"{what}; {INSTEAD}")
        return
    from sevenhop.sources import yaml_documents  # late: a bundle of JSON does not need it

    for document in yaml_documents.read(text):
        if document.problem:
            reader.problem(document.line, document.problem)
            reader.lost(is_cut=document.is_cut)
        else:
            reader.lines = document.lines
            reader.document(document.line, document.data)


def _is_flow_yaml(name: str, data: bytes) -> bool:
    """
    Whether what begins like JSON, and is none, is YAML, which has such braces too.
    """
    if suffix(name) in (".json", ".jsonl", ".ndjson") or is_sound(data):
        return False
    if len(data) > _MOST_FLOW_BYTES:
        return False
    from sevenhop.sources import yaml_documents  # late, and only for what is broken as JSON

    return not any(document.problem for document in yaml_documents.read(data.decode("utf-8")))
