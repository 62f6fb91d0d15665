"""Which files paths name, and their bytes: folders, links in a circle, pipes, what may not be read."""

from __future__ import annotations

import os
import re
import select
import stat
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import BinaryIO

from sevenhop.sources.files_loaded import Problem
from sevenhop.sources.packed import MOST_BYTES

_SUFFIXES = frozenset({".json", ".jsonl", ".ndjson", ".yaml", ".yml"})
"""What is read of a folder; a file that is named is read whatever it is called."""

_ASKED = re.compile(r"(?:kubectl|oc)_.*_-o[_=]?(?:json|yaml)(?:_|$)")
"""sosreport names a file after the command whose output it holds: ``kubectl_get_-o_json_--namespace_chat_pods``."""

_ARCHIVES = (".tar", ".tar.gz", ".tgz")
"""What is read of a folder that holds nothing else: a bundle in the folder it was saved to."""

_LONGEST_WAIT_S = 10
"""For somebody to write into a named pipe."""


def is_read(name: str) -> bool:
    """Whether a file of this name is read of a folder or an archive."""
    return (suffix(name) in _SUFFIXES or _ASKED.match(name) is not None) and not name.startswith(".")


def _is_archive(name: str) -> bool:
    return name.lower().endswith(_ARCHIVES) and not name.startswith(".")


def suffix(name: str) -> str:
    """
    >>> suffix("pods.YAML"), suffix("bundle.tgz!out/pods.json.gz")
    ('.yaml', '.json')
    """
    return Path(name.lower().removesuffix(".gz")).suffix


def shown(path: str | Path) -> str:
    """A path as text that can be printed; names of files are bytes."""
    return os.fsencode(path).decode("utf-8", "replace")


def files_under(path: Path, problem: Callable[[Problem], None]) -> Iterator[Path]:
    """
    The file itself, or what is read of the folder, however deep and in the order of its names.

    Links to folders are followed, as the volumes of ConfigMaps have them, each folder once.
    """
    try:
        mode = path.stat().st_mode
    except (FileNotFoundError, NotADirectoryError, ValueError):
        problem(Problem(shown(path), "no such file or folder"))
        return
    except OSError as error:
        problem(_unreadable(path, error))
        return
    if not stat.S_ISDIR(mode):
        yield path
        return
    found = False
    for file in _files_in(path, is_read, problem):
        found = True
        yield file
    if found:
        return
    # What the folder's own problems are has been said.
    for file in _files_in(path, _is_archive, lambda _: None):
        found = True
        yield file
    if not found:
        problem(Problem(shown(path), "holds no .json, .jsonl, .yaml or .yml file"))


def _files_in(top: Path, is_wanted: Callable[[str], bool], problem: Callable[[Problem], None]) -> Iterator[Path]:
    seen: set[tuple[int, int]] = set()
    for folder, folders, names in os.walk(top, onerror=lambda e: problem(_unreadable(e.filename, e)), followlinks=True):
        try:
            status = Path(folder).stat()
        except OSError as error:
            problem(_unreadable(folder, error))
            folders.clear()
            continue
        if (status.st_dev, status.st_ino) in seen:
            folders.clear()
            continue
        seen.add((status.st_dev, status.st_ino))
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        for name in sorted(filter(is_wanted, names)):
            file = Path(folder, name)
            try:
                mode = file.stat().st_mode
            except OSError as error:
                problem(_unreadable(file, error))
                continue
            if stat.S_ISREG(mode):
                yield file
            else:
                problem(Problem(shown(file), "no regular file; name it to have it read"))


def content(path: Path) -> bytes | Problem:
    """
    The bytes of a file, at most `MOST_BYTES` and one more; what is wrong otherwise.
    """
    try:
        if stat.S_ISFIFO(path.stat().st_mode) and not os.fspath(path).startswith(("/dev/", "/proc/")):
            return _from_pipe(path)
        with path.open("rb") as file:
            return file.read(MOST_BYTES + 1)
    except OSError as error:
        return _unreadable(path, error)


def _from_pipe(path: Path) -> bytes | Problem:
    """A pipe that nobody ever opens to write would be waited for without end; a shell's ``<(…)`` is always written."""
    number = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    with os.fdopen(number, "rb") as file:
        poll = select.poll()
        poll.register(number, select.POLLIN)
        if not poll.poll(_LONGEST_WAIT_S * 1000):
            return Problem(shown(path), f"a pipe into which nobody wrote for {_LONGEST_WAIT_S} s")
        os.set_blocking(number, True)
        return file.read(MOST_BYTES + 1)


def standard_input(stdin: BinaryIO | None) -> bytes | Problem:
    """What is piped in."""
    source = stdin or getattr(sys.stdin, "buffer", None)  # None where the shell closed it
    if source is None:
        return Problem("stdin", "is closed")
    try:
        data: bytes = source.read(MOST_BYTES + 1)
    except OSError as error:
        return _unreadable("stdin", error)
    return data


def _unreadable(path: str | Path, error: OSError) -> Problem:
    return Problem(shown(path), f"cannot be read: {error.strerror}")
