"""What a source saw, written down and read again: for replay, back-tests and questions afterwards."""

from __future__ import annotations

import re
import zlib
from collections.abc import Iterator
from datetime import datetime, timedelta
from pathlib import Path
from types import TracebackType
from typing import Any, BinaryIO, Self

import msgspec

from sevenhop.core import events as core
from sevenhop.core.events import Applied, Event
from sevenhop.core.objects.decode import UndecodableError, decode
from sevenhop.core.objects.kinds import KINDS
from sevenhop.version import __version__

_FORMAT = 1
_GZIP = 31  # zlib's number for a gzip header with the largest window
_CHUNK_BYTES = 256 * 1024

_SENSITIVE = (
    # Not the tokens that models count: --max-num-batched-tokens, TOKENIZER_PATH.
    r"(?:(?<!max[-_])token(?!s|iz|[-_]?(?:budget|limit|count|len))"
    r"|secret|passw|api[-_]?key|access[-_]?key|credential|private[-_]?key)"
)
_SECRET_NAME = re.compile(_SENSITIVE, re.IGNORECASE)
_SECRET_FLAG = re.compile(rf"^(--?[^=]*{_SENSITIVE}[^=]*)=.+$", re.IGNORECASE)
_REDACTED = "(redacted)"
_DROPPED_ANNOTATION = "kubectl.kubernetes.io/last-applied-configuration"

_EVENTS: dict[str, type[Event]] = {
    name: found
    for name, found in vars(core).items()
    if isinstance(found, type) and issubclass(found, Event) and found is not Event
}
"""
Every kind of event, by construction: decisions of people and what channels answered too, or a replay would end
elsewhere than the process did.
"""


class RecordingError(Exception):
    """A recording that cannot be written or read; one line with file and line."""


class Header(msgspec.Struct, frozen=True, kw_only=True):
    """The first line of a recording."""

    sevenhop_recording: int
    sevenhop_version: str = ""
    cluster: str = ""
    started_at: datetime | None = None


class _AppliedLine(msgspec.Struct, kw_only=True, gc=False):
    event: str
    at: datetime
    epoch: int
    seq: int
    kind: str
    object: msgspec.Raw


class _AnyLine(msgspec.Struct, gc=False):
    event: str = ""


_encoder = msgspec.json.Encoder()
_any_decoder = msgspec.json.Decoder(_AnyLine)
_applied_decoder = msgspec.json.Decoder(_AppliedLine)
_event_decoders = {name: msgspec.json.Decoder(event) for name, event in _EVENTS.items() if event is not Applied}


class Recorder:
    """
    Writes events as lines of compressed JSON, each object as the API server wrote it.

    What is flushed survives the process; a file whose end is missing is read up to there.  `managedFields` and
    kubectl's copy of the last applied manifest are left out, and so are values whose name speaks of a secret
    (environment variables, flags of the form ``--api-key=…``): a recording is made to be handed on.

    Args:
        path: Must not exist yet.
        flush_every: The most that a crash may lose, in time of the events; call `flush` when nothing more comes.

    Raises:
        RecordingError: The file exists or cannot be written; also later, on a full disk.
    """

    def __init__(
        self, path: Path | str, *, cluster: str, started_at: datetime, flush_every: timedelta = timedelta(seconds=1)
    ) -> None:
        self._path = Path(path)
        self._flush_every = flush_every
        self._flushed_at = started_at
        self._compressor = zlib.compressobj(6, zlib.DEFLATED, _GZIP)
        self._pending: list[bytes] = []
        self.events = 0
        self.written_bytes = 0
        try:
            self._file: BinaryIO = self._path.open("xb")
        except FileExistsError:
            raise RecordingError(f"{self._path} exists already; choose another name") from None
        except OSError as error:
            raise RecordingError(f"{self._path} cannot be written: {error.strerror}") from None
        self._put(
            _encoder.encode(
                Header(sevenhop_recording=_FORMAT, sevenhop_version=__version__, cluster=cluster, started_at=started_at)
            )
        )
        self.flush()

    def __call__(self, event: Event, raw: bytes | msgspec.Raw | None = None) -> None:
        """
        Write one event, an `Applied` with the object as it came; without `raw`, with the fields that we read.
        """
        head = {"event": type(event).__name__, **msgspec.structs.asdict(event)}
        if isinstance(event, Applied):
            del head["obj"]
            head["object"] = _tidy(msgspec.json.decode(raw)) if raw is not None else event.obj
        self._put(_encoder.encode(head))
        self.events += 1
        if event.at - self._flushed_at >= self._flush_every or event.at < self._flushed_at:
            self._flushed_at = event.at
            self.flush()

    def flush(self) -> None:
        """Hand everything to the operating system, readable up to here."""
        self._pending.append(self._compressor.flush(zlib.Z_SYNC_FLUSH))
        self._write()

    def close(self) -> None:
        if not self._file.closed:
            self._pending.append(self._compressor.flush(zlib.Z_FINISH))
            try:
                self._write()
            finally:
                self._file.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        self.close()

    def _put(self, line: bytes) -> None:
        self._pending.append(self._compressor.compress(line + b"\n"))

    def _write(self) -> None:
        data = b"".join(self._pending)
        self._pending = []
        try:
            self._file.write(data)
            self._file.flush()
        except OSError as error:
            raise RecordingError(f"{self._path} cannot be written: {error.strerror}") from None
        self.written_bytes += len(data)


def _tidy(data: Any) -> Any:
    """An object without what is large and unread, and without what looks like a secret."""
    meta = data.get("metadata") if isinstance(data, dict) else None
    if isinstance(meta, dict):
        meta.pop("managedFields", None)
        if isinstance(meta.get("annotations"), dict):
            meta["annotations"].pop(_DROPPED_ANNOTATION, None)
    _redact(data)
    return data


def _redact(data: Any) -> None:
    """Replace, in place and at any depth, values whose name speaks of a secret."""
    if isinstance(data, dict):
        name = data.get("name")
        if isinstance(data.get("value"), str) and isinstance(name, str) and _SECRET_NAME.search(name):
            data["value"] = _REDACTED
        for key, value in data.items():
            if key in ("args", "command") and isinstance(value, list):
                data[key] = _redact_flags(value)
            else:
                _redact(value)
    elif isinstance(data, list):
        for value in data:
            _redact(value)


def _redact_flags(words: list[Any]) -> list[Any]:
    """Both ``--api-key=x`` and ``--api-key x``."""
    result: list[Any] = []
    for word in words:
        before = result[-1] if result else ""
        is_value = (
            isinstance(before, str) and before.startswith("-") and "=" not in before and _SECRET_NAME.search(before)
        )
        if isinstance(word, str) and is_value and not word.startswith("-"):
            result.append(_REDACTED)
        elif isinstance(word, str):
            result.append(_SECRET_FLAG.sub(rf"\1={_REDACTED}", word))
        else:
            result.append(word)
    return result


class Recording:
    """
    A recording to read: `header` at once, the events by iterating, once.

    Attributes:
        is_truncated: After iterating: the end is missing, as after a crash; all that was flushed was read.

    Raises:
        RecordingError: Not a recording, of a newer format, or damaged; also while iterating.
    """

    def __init__(self, path: Path | str) -> None:
        self._path = Path(path)
        self.is_truncated = False
        self._line = 0
        self._lines = self._read_lines()
        first = next(self._lines, (1, b""))[1]
        try:
            self.header = msgspec.json.decode(first, type=Header)
        except msgspec.DecodeError:
            raise RecordingError(f"{self._path}:1: not a recording of sevenhop") from None
        if self.header.sevenhop_recording > _FORMAT:
            raise RecordingError(
                f"{self._path}:1: format {self.header.sevenhop_recording}, we read up to {_FORMAT}: "
                f"written by sevenhop {self.header.sevenhop_version}, use that version or a newer one"
            )

    def __iter__(self) -> Iterator[Event]:
        for number, line in self._lines:
            try:
                yield _parse(line)
            except (msgspec.DecodeError, UndecodableError, KeyError) as error:
                what = f"unknown {error}" if isinstance(error, KeyError) else str(error)
                raise RecordingError(f"{self._path}:{number}: {what}") from None

    def _read_lines(self) -> Iterator[tuple[int, bytes]]:
        """(line number, line); the last one only if it is whole."""
        rest = b""
        for piece in self._read_pieces():
            *lines, rest = (rest + piece).split(b"\n")
            for line in lines:
                self._line += 1
                yield self._line, line
        if rest:
            self.is_truncated = True

    def _read_pieces(self) -> Iterator[bytes]:
        decompressor = zlib.decompressobj(_GZIP)
        try:
            with self._path.open("rb") as file:
                while data := file.read(_CHUNK_BYTES):
                    try:
                        yield decompressor.decompress(data)
                    except zlib.error:
                        raise RecordingError(
                            f"{self._path}:{self._line + 1}: damaged from here on, or not compressed by sevenhop"
                        ) from None
        except OSError as error:
            raise RecordingError(f"{self._path} cannot be read: {error.strerror}") from None
        if not decompressor.eof:
            self.is_truncated = True


def _parse(line: bytes) -> Event:
    name = _any_decoder.decode(line).event
    if name == "Applied":
        found = _applied_decoder.decode(line)
        obj = decode(KINDS[found.kind], found.object)
        return Applied(at=found.at, epoch=found.epoch, seq=found.seq, kind=found.kind, obj=obj)
    return _event_decoders[name].decode(line)
