"""From bytes to the text of a file: encodings, and what is text but holds no objects."""

from __future__ import annotations

import codecs
import re

import msgspec

INSTEAD = "give what `kubectl get pods,nodes,events,… -A -o json` writes"

_MARKS = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF32_LE, "utf-32"),  # before UTF-16, whose mark it begins with
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
_LOOKED_AT = 4096
"""Bytes from which it is told what a file is."""

_CONTROLS = bytes(range(9)) + bytes(range(14, 27)) + bytes(range(28, 32))
_REPLACED = "\N{REPLACEMENT CHARACTER}"

_COLOURS = re.compile(rb"\x1b\[[0-9;]*[mK]")
"""What ``jq -C`` and ``kubecolor`` write between the words; neither JSON nor YAML may hold it."""

_LOGS_BEGIN, _LOGS_END = b"\n==== START logs for container ", b"\n==== END logs for container "
"""``kubectl cluster-info dump`` writes them between its lists."""

_SAID = re.compile(
    rb"(?:Error from server|[Ee]rror: |Unable to connect to the server|The connection to the server|"
    rb"No resources found|You must be logged in|Unauthorized)"
)
_HARMLESS = re.compile(rb"(?:Warning: |[EWIF]\d{4} \d\d:\d\d:\d\d)")  # of klog, which client-go logs with
_TABLE = re.compile(
    r"(?:NAME|[A-Z][A-Z0-9()/%-]*(?: [A-Z0-9()/%-]+)*(?: {2,}[A-Z][A-Z0-9()/%-]*(?: [A-Z0-9()/%-]+)*)+)\s*$"
)
_DESCRIBED = re.compile(r"Name: {2,}\S.*\n(?:.*\n)*?(?:Namespace|Labels|Annotations|Roles): {2,}")
_NAMES = re.compile(r"(?:[a-z0-9.-]+/[a-z0-9.-]+\s*\n?)+\Z")


class Decoded(msgspec.Struct):
    """
    A file's text.

    Attributes:
        data: In UTF-8, whatever it was in.
        bad_lines: Lines, from 1, with bytes that are no text; they are read as ``�``.
        is_cut: Whether it ends in the middle of a character.
    """

    data: bytes
    bad_lines: list[int] = []
    is_cut: bool = False


def decoded(data: bytes) -> Decoded | None:
    """
    The text in `data`; None if it is none.

    ``kubectl … > pods.yaml`` in Windows PowerShell writes UTF-16, with a mark or, appended, without.
    """
    if b"\x1b[" in data:
        data = _COLOURS.sub(b"", data)
    mark, encoding = next(((m, e) for m, e in _MARKS if data.startswith(m)), (b"", _without_mark(data)))
    if encoding == "utf-8":
        data = data.removeprefix(mark)
        if data.isascii():
            return None if _is_binary(data) else Decoded(data)
    return _decoded(data, encoding)


def _without_mark(data: bytes) -> str:
    """Of text in Latin letters every other byte is zero in UTF-16."""
    start = data[:_LOOKED_AT]
    even, odd = start[::2].count(0), start[1::2].count(0)
    most = len(start) // 2
    if most >= 2 and odd > most // 2 and even <= most // 8:
        return "utf-16-le"
    if most >= 2 and even > most // 2 and odd <= most // 8:
        return "utf-16-be"
    return "utf-8"


def _decoded(data: bytes, encoding: str) -> Decoded | None:
    decoder = codecs.getincrementaldecoder(encoding)()
    try:
        text, is_cut = decoder.decode(data), bool(decoder.getstate()[0])
        bad_lines: list[int] = []
    except UnicodeDecodeError:
        decoder = codecs.getincrementaldecoder(encoding)("replace")
        text, is_cut = decoder.decode(data), bool(decoder.getstate()[0])
        # A file may hold the character itself; then it is one of the lines, which is true as well.
        bad_lines = [number for number, line in enumerate(text.split("\n"), 1) if _REPLACED in line]
    found = text.encode("utf-8", "replace")
    if _is_binary(found) or (not found and data and encoding != "utf-8"):
        return None
    return Decoded(found, bad_lines, is_cut)


def _is_binary(data: bytes) -> bool:
    """A damaged byte may well be zero; a file of another kind has many control characters."""
    start = data[:_LOOKED_AT]
    controls = len(start) - len(start.translate(None, _CONTROLS))
    wrong = start.count(_REPLACED.encode())
    return 4 * controls > len(start) or (wrong > 8 and 5 * wrong > len(start))


def without_messages(data: bytes) -> tuple[bytes, list[tuple[int, str]]]:
    """
    The text without what ``kubectl`` wrote to the terminal (``2>&1``) before and after its output, as blank lines.

    The logs in a ``cluster-info dump`` become blank lines, too.

    Returns:
        Also (line from 1, the message) of each that says that something is missing.
    """
    data = _without_logs(data)
    said: list[tuple[int, str]] = []
    begin = at = 0
    while (line := _line_at(data, at)) is not None:
        begin, at = at, at + len(line)
        if line.strip() and not _note(data, begin, line, said):
            at = begin
            break
    end = after = len(data)
    while after > at:
        begin = data.rfind(b"\n", at, after - 1) + 1 or at
        line = data[begin:after]
        if line.strip() and not _note(data, begin, line, said):
            break
        after = begin
    if at == 0 and after == end:
        return data, said
    return b"\n" * data.count(b"\n", 0, at) + data[at:after] + b"\n" * data.count(b"\n", after), sorted(said)


def _without_logs(data: bytes) -> bytes:
    parts: list[bytes] = []
    at = 0
    while (begin := data.find(_LOGS_BEGIN, at)) >= 0 and (end := data.find(_LOGS_END, begin)) >= 0:
        after = data.find(b"\n", end + 1)
        after = len(data) if after < 0 else after
        parts += [data[at:begin], b"\n" * data.count(b"\n", begin, after)]
        at = after
    return b"".join((*parts, data[at:])) if parts else data


def _line_at(data: bytes, at: int) -> bytes | None:
    if at >= len(data):
        return None
    end = data.find(b"\n", at)
    return data[at : end + 1 if end >= 0 else len(data)]


def _note(data: bytes, at: int, line: bytes, said: list[tuple[int, str]]) -> bool:
    """Whether `line` is a message; those that matter are noted."""
    if _HARMLESS.match(line):
        return True
    if not _SAID.match(line):
        return False
    said.append((data.count(b"\n", 0, at) + 1, line.decode("utf-8", "replace").strip()[:300]))
    return True


def what_it_is(text: str) -> str:
    """
    What a text without objects is, in words; empty if nothing is known of it.

    >>> what_it_is("NAME   READY   STATUS\\nllm-0  0/1     Pending\\n")
    "kubectl's table, which leaves out nearly everything"
    """
    text = text.lstrip()
    if text[:1] == "<":
        return "HTML or XML, as a proxy or a login page sends it"
    first, _, _ = text.partition("\n")
    if _TABLE.match(first):
        return "kubectl's table, which leaves out nearly everything"
    if _DESCRIBED.match(text[:_LOOKED_AT]):
        return "what kubectl describe writes for people"
    if text and _NAMES.match(text[:_LOOKED_AT].rpartition("\n")[0] + "\n" if len(text) > _LOOKED_AT else text):
        return "names alone (kubectl get -o name)"
    return ""
