"""Recordings: what goes in comes out, a crash costs little, and no secret travels along."""

from __future__ import annotations

import gzip
import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, get_args, get_type_hints

import msgspec
import msgspec.inspect
import pytest

from sevenhop.core.events import Applied, Deleted, Event, SourceChanged, SyncState, Tick, Unreadable
from sevenhop.core.objects.decode import convert
from sevenhop.core.objects.kinds import KINDS
from sevenhop.sources.recording import Recorder, Recording, RecordingError
from tests.shared import missing

NOON = datetime(2026, 11, 30, 12, tzinfo=UTC)


def pod(name: str, **spec: Any) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "namespace": "x"}, "spec": spec}


def applied(data: dict[str, Any], seq: int = 1, after_s: float = 0) -> Applied:
    obj = convert(KINDS["Pod"], data)
    return Applied(at=NOON + timedelta(seconds=after_s), epoch=1, seq=seq, kind="Pod", obj=obj)


def write(path: Path, *events: tuple[Event, dict[str, Any] | None]) -> None:
    with Recorder(path, cluster="test", started_at=NOON) as record:
        for event, raw in events:
            record(event, None if raw is None else json.dumps(raw).encode())


def every_kind(base: type[Event] = Event) -> list[type[Event]]:
    return [each for kind in base.__subclasses__() for each in (kind, *every_kind(kind))]


def example(of: Any) -> Any:
    """A value of a type that differs from its default, so that a field that is lost is missed."""
    info = msgspec.inspect.type_info(of)
    match info:
        case msgspec.inspect.StructType():
            hints = get_type_hints(of)
            return of(**{field.name: example(hints[field.name]) for field in info.fields})
        case msgspec.inspect.StrType():
            return "word"
        case msgspec.inspect.BoolType():
            return True
        case msgspec.inspect.IntType():
            return 7
        case msgspec.inspect.DateTimeType():
            return NOON
        case msgspec.inspect.EnumType():
            return next(reversed(list(info.cls)))
        case msgspec.inspect.FloatType():
            return 7.5
        case msgspec.inspect.VarTupleType():
            return (example(get_args(of)[0]),)
        case msgspec.inspect.DictType():
            return {"key": example(get_args(of)[1])}
        case msgspec.inspect.UnionType():
            return example(next(each for each in get_args(of) if each is not type(None)))
    raise AssertionError(f"no example of {of}")


def test_what_goes_in_comes_out(tmp_path: Path) -> None:
    """Every kind of event is read as it was written, in order, and the header says whose they are."""
    path = tmp_path / "a.gz"
    raw = pod("a", nodeName="n", containers=[{"name": "c", "image": "i"}])
    events: list[Event] = [
        applied(raw),
        Deleted(at=NOON, epoch=1, seq=2, kind="Pod", namespace="x", name="a", uid="u"),
        Unreadable(at=NOON, epoch=1, seq=3, kind="Pod", namespace="x", name="b", error="why"),
        SourceChanged(at=NOON, epoch=1, seq=4, kind="Pod", state=SyncState.FORBIDDEN, detail="grant it"),
        Tick(at=NOON + timedelta(milliseconds=1)),
    ]
    write(path, *[(event, raw if isinstance(event, Applied) else None) for event in events])

    recording = Recording(path)

    assert list(recording) == events
    assert (recording.header.cluster, recording.header.started_at) == ("test", NOON)
    assert not recording.is_truncated


@pytest.mark.parametrize("kind", sorted(set(every_kind()) - {Applied}, key=str), ids=lambda kind: kind.__name__)
def test_every_kind_of_event_is_recorded(tmp_path: Path, kind: type[Event]) -> None:
    """What the engine hears and a recording lacks would make its replay end elsewhere; no kind may be forgotten."""
    event = example(kind)
    write(tmp_path / "a.gz", (event, None))

    assert list(Recording(tmp_path / "a.gz")) == [event]


def test_fields_that_we_do_not_read_yet_are_kept(tmp_path: Path) -> None:
    """The object is written as the server wrote it, so that a later version can read more of it."""
    write(tmp_path / "a.gz", (applied(pod("a")), pod("a", brandNew={"x": 1})))

    lines = gzip.decompress((tmp_path / "a.gz").read_bytes()).splitlines()

    assert json.loads(lines[1])["object"]["spec"]["brandNew"] == {"x": 1}


def test_without_the_raw_object(tmp_path: Path) -> None:
    """An event without its raw object is written with the fields that we read."""
    event = applied(pod("a", nodeName="n"))
    write(tmp_path / "a.gz", (event, None))

    assert list(Recording(tmp_path / "a.gz")) == [event]


def test_no_secret_travels_along(tmp_path: Path) -> None:
    """Values that speak of secrets are blanked wherever they stand, and words that only sound alike are not."""
    container = {
        "name": "c",
        "env": [{"name": "HF_TOKEN", "value": "hf_1"}, {"name": "TOKENIZER_PATH", "value": "kept-1"}],
        "args": [
            "--api-key=sk-2",
            "--api-key",
            "sk-3",
            "--max-num-batched-tokens=kept-2",
            "--token",
            "--model",
            "kept-3",
        ],
    }
    raw = {"template": pod("a", containers=[container]), **pod("a", containers=[container])}
    raw["metadata"] = {
        **raw["metadata"],
        "managedFields": [{"manager": "gone"}],
        "annotations": {"kubectl.kubernetes.io/last-applied-configuration": "hf_1", "note": "kept-4"},
    }
    write(tmp_path / "a.gz", (applied(raw), raw))

    text = gzip.decompress((tmp_path / "a.gz").read_bytes()).decode()

    assert not [secret for secret in ("hf_1", "sk-2", "sk-3", "gone") if secret in text]
    assert all(word in text for word in ("kept-1", "kept-2", "kept-3", "kept-4"))


def test_a_crash_costs_little(tmp_path: Path) -> None:
    """Without a close, everything up to the last flush is read, and the end is known to be missing."""
    path = tmp_path / "a.gz"
    record = Recorder(path, cluster="", started_at=NOON, flush_every=timedelta(seconds=1))
    for n in range(10):
        record(applied(pod(f"p{n}"), n, after_s=n / 4))
    # The process dies here: what it had not handed over is lost.
    read = Recording(path)
    names = [event.obj.metadata.name for event in read if isinstance(event, Applied)]

    assert names == [f"p{n}" for n in range(9)]
    assert read.is_truncated
    record.close()


@pytest.mark.parametrize("cut", range(1, 60, 7))
def test_a_truncated_tail(tmp_path: Path, cut: int) -> None:
    """A file cut anywhere near its end is read up to the last whole line."""
    path = tmp_path / "a.gz"
    events = [applied(pod(f"p{n}"), n, after_s=n * 2) for n in range(5)]
    write(path, *[(event, None) for event in events])
    path.write_bytes(path.read_bytes()[:-cut])

    recording = Recording(path)
    read = list(recording)

    assert read == events[: len(read)]
    assert recording.is_truncated


def test_a_damaged_file(tmp_path: Path) -> None:
    """Damage in the middle is an error with its line, after everything before it was read."""
    path = tmp_path / "a.gz"
    write(path, *[(applied(pod(f"p{n}" * 50), n, after_s=n * 2), None) for n in range(50)])
    data = bytearray(path.read_bytes())
    half = len(data) // 2
    data[half : half + 40] = b"\xff" * 40
    path.write_bytes(bytes(data))

    with pytest.raises(RecordingError, match=r"a\.gz:\d+: "):
        list(Recording(path))


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        pytest.param([b"hello"], r":1: not a recording", id="no header"),
        pytest.param(
            [b'{"sevenhop_recording":99,"sevenhop_version":"9.0"}'], r":1: format 99.*9\.0", id="newer format"
        ),
        pytest.param([b'{"sevenhop_recording":1}', b'{"event":"Dance"}'], r":2: unknown 'Dance'", id="unknown event"),
        pytest.param(
            [
                b'{"sevenhop_recording":1}',
                b'{"event":"Applied","at":"2026-01-01T00:00:00Z","epoch":1,"seq":1,"kind":"Nope","object":{}}',
            ],
            r":2: unknown 'Nope'",
            id="unknown kind",
        ),
        pytest.param(
            [b'{"sevenhop_recording":1}', b'{"event":"Deleted"}'], r":2: .*required field", id="missing field"
        ),
        pytest.param([b'{"sevenhop_recording":1}', b"{"], r":2: ", id="broken line"),
    ],
)
def test_bad_lines(tmp_path: Path, lines: list[bytes], message: str) -> None:
    """What is no recording, or no event, is one clear error with file and line."""
    path = tmp_path / "a.gz"
    path.write_bytes(gzip.compress(b"".join(line + b"\n" for line in lines)))

    with pytest.raises(RecordingError, match=message):
        list(Recording(path))


def test_not_compressed(tmp_path: Path) -> None:
    """A file of another kind is refused at its first line."""
    (tmp_path / "a").write_text("apiVersion: v1\n")

    with pytest.raises(RecordingError, match=r":1: damaged from here on, or not compressed"):
        Recording(tmp_path / "a")


def test_an_existing_file_is_not_overwritten(tmp_path: Path) -> None:
    """A recording is never lost to another one, and a missing one is said so."""
    write(tmp_path / "a.gz")

    with pytest.raises(RecordingError, match="exists already"):
        Recorder(tmp_path / "a.gz", cluster="", started_at=NOON)
    with pytest.raises(RecordingError, match="cannot be read: No such file"):
        Recording(tmp_path / "b.gz")
    with pytest.raises(RecordingError, match="cannot be written: No such file"):
        Recorder(tmp_path / "none" / "b.gz", cluster="", started_at=NOON)


def test_a_full_disk() -> None:
    """A disk that is full ends the recording with one line."""
    full = Path("/dev/full")  # exists, so the recorder itself would refuse it: go through an open file
    if not full.exists():
        missing("no /dev/full on this system")
    record = Recorder.__new__(Recorder)
    record._path, record._pending, record.written_bytes = full, [b"x" * 10], 0
    with full.open("wb", buffering=0) as file:
        record._file = file
        with pytest.raises(RecordingError, match="No space left"):
            record._write()
