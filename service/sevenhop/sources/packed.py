"""
What is packed: gzip and tar, as support bundles are handed on.

Nothing is written anywhere, so a member's name is a name and no path; and no more is unpacked than fits in memory,
whatever the headers promise.
"""

from __future__ import annotations

import io
import zlib
from collections.abc import Callable, Iterator
from pathlib import PurePosixPath

import msgspec

MOST_BYTES = 512 * 1024 * 1024
"""Of one named file, unpacked, all its members together; a bundle of the largest clusters is smaller by half."""

_GZIP_MAGIC = b"\x1f\x8b"
_TAR_MAGIC, _TAR_MAGIC_AT = b"ustar", 257
_OTHERS = {
    b"PK\x03\x04": "zip",
    b"BZh": "bzip2",
    b"\xfd7zXZ\x00": "xz",
    b"\x28\xb5\x2f\xfd": "zstd",
}
_WINDOW = 31  # zlib's number for a gzip header with the largest window


class Part(msgspec.Struct, frozen=True):
    """
    One text to read, or what is wrong with it.

    Attributes:
        name: Of the file, or ``bundle.tgz!member``.
    """

    name: str
    data: bytes = b""
    problem: str = ""


def unpacked(name: str, data: bytes, is_read: Callable[[str], bool], most: int = MOST_BYTES) -> Iterator[Part]:
    """
    The texts in a file: the file itself, unless it is packed.

    Args:
        name: For problems; what is packed is told from the content, for standard input has no name.
        is_read: Whether a member of this name is read.
        most: Bytes that are unpacked at most; what comes after them is a problem.
    """
    if data.startswith(_GZIP_MAGIC):
        data, problem = _gunzip(data, most)
        if problem:
            yield Part(name, problem=problem)
        if not _is_tar(data):
            yield from [Part(name, data)] if data else []
            return
    if _is_tar(data):
        yield from _members(name, data, is_read, most)
        return
    other = next((word for magic, word in _OTHERS.items() if data.startswith(magic)), "")
    yield Part(name, problem=f"compressed with {other}: unpack it first") if other else Part(name, data)


def _is_tar(data: bytes) -> bool:
    return data[_TAR_MAGIC_AT : _TAR_MAGIC_AT + len(_TAR_MAGIC)] == _TAR_MAGIC


def _gunzip(data: bytes, most: int) -> tuple[bytes, str]:
    """(what could be unpacked, the problem); several streams in a row are one text, as `gzip` has it."""
    found: list[bytes] = []
    size = 0
    while data.startswith(_GZIP_MAGIC):
        stream = zlib.decompressobj(_WINDOW)
        try:
            piece = stream.decompress(data, most - size + 1)
        except zlib.error:
            return b"".join(found), "damaged: gzip does not unpack it"
        size += len(piece)
        if size > most:
            return b"".join(found), f"more than {_amount(most)} unpacked: read it in parts"
        found.append(piece)
        if not stream.eof:
            return b"".join(found), "ends too early: only a part of it is here"
        data = stream.unused_data
    return b"".join(found), ""


def _members(name: str, data: bytes, is_read: Callable[[str], bool], most: int) -> Iterator[Part]:
    import tarfile  # late: most files are not packed

    found, left = False, most
    try:
        with tarfile.open(fileobj=io.BytesIO(data), mode="r:") as archive:
            for member in archive:
                if not member.isfile() or not is_read(PurePosixPath(member.name).name):
                    continue
                found = True
                where = f"{name}!{member.name}"
                if member.size > left or member.issparse():
                    yield Part(where, problem=f"more than {_amount(most)} in one archive: read it in parts")
                    continue
                content = archive.extractfile(member)
                text, problem = content.read() if content is not None else b"", ""
                if text.startswith(_GZIP_MAGIC):
                    text, problem = _gunzip(text, left)
                left -= len(text)
                yield Part(where, problem=problem) if problem else Part(where, text)
    except (tarfile.TarError, EOFError, OSError) as error:
        yield Part(name, problem=f"damaged: the archive cannot be read to its end ({error})")
        return
    if not found:
        yield Part(name, problem="the archive holds no .json, .jsonl, .yaml or .yml file")


def _amount(size: int) -> str:
    return f"{size // 2**20} MiB" if size >= 2**20 else f"{size} bytes"
