"""Events as records: the same comes back, and what cannot be used says why."""

from __future__ import annotations

import contextlib
import json
from datetime import UTC, datetime

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sevenhop.core import events as core
from sevenhop.core.events import Applied, Deleted, Event, SourceChanged, SyncState, Tick, Unreadable, XidSeen
from sevenhop.core.gpu_sample import GpuReading, Holder
from sevenhop.runtime.codec import RecordError, encode, read
from tests import builders as b

NOON = datetime(2026, 11, 30, 12, tzinfo=UTC)
OBJECTS = [
    b.node("gpu-01", gpus=8),
    b.pod("decode-0", gpus=2),
    b.deployment("engine", "models", gpus=1),
    b.service("api", selector={"app": "engine"}),
]
EVENTS: list[Event] = [
    *b.Feed().applied(*OBJECTS),
    *b.Feed().deleted(OBJECTS[1]),
    Unreadable(at=NOON, epoch=3, seq=9, kind="Pod", namespace="a", name="b", error="spec: not an object"),
    SourceChanged(at=NOON, epoch=3, seq=10, kind="Pod", state=SyncState.FORBIDDEN, detail="grant list"),
    Tick(at=NOON),
    XidSeen(at=NOON, node="gpu-01", xid=79, pci="0000:3b:00.0"),
    core.GpusSampled(
        at=NOON, epoch=7, seq=2, node="gpu-01", is_whole=True,
        readings=(GpuReading(index=0, uuid="GPU-1", sm_active=0.5, holders=(Holder("a", "b"),)),),
    ),
    core.Outcome(at=NOON, effect_id="i/slack/1", delivered=True, reference="1.2"),
    core.Silenced(at=NOON, silence_id="s", matchers={"a": "b"}, author="x", comment="y", expires_at=NOON),
]  # fmt: skip


@pytest.mark.parametrize("event", EVENTS, ids=lambda event: f"{type(event).__name__} {getattr(event, 'kind', '')}")
def test_what_was_sent_is_read(event: Event) -> None:
    """Cluster, order, and everything that the core knows of the object."""
    record = encode("prod/eu|1", event)

    found = read(record.value, record.headers)

    assert found.cluster == "prod/eu|1"
    assert found.event == event
    assert type(found.event) is type(event)


def test_every_kind_of_event_can_travel() -> None:
    """A kind that the core gains is one that a worker can read."""
    kinds = {n for n, c in vars(core).items() if isinstance(c, type) and issubclass(c, Event) and c is not Event}
    from sevenhop.runtime.codec import _decoders

    assert kinds <= set(_decoders) | {"Applied"}


def test_one_object_has_one_key() -> None:
    """Compaction keeps the last word on an object, whichever word that is; another object or cluster is another key."""
    feed = b.Feed()
    pod = b.pod("decode-0")
    (there,), (gone,) = feed.applied(pod), feed.deleted(pod)
    lost = Unreadable(at=NOON, kind="Pod", namespace=pod.metadata.namespace, name="decode-0", error="?")
    keys = {encode("c", event).key for event in (there, gone, lost)}

    assert len(keys) == 1
    assert encode("c", feed.applied(b.pod("decode-1"))[0]).key not in keys
    assert encode("d", there).key not in keys


def test_a_deletion_is_a_tombstone() -> None:
    """So that the topic forgets the object in the end; who reads it meanwhile still learns of what it is."""
    (gone,) = b.Feed().deleted(b.pod("decode-0"))
    record = encode("c", gone)

    assert record.value is None
    assert isinstance(read(None, record.headers).event, Deleted)


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        pytest.param(b"\xff\x00", "not a record", id="bytes"),
        pytest.param(b"{}", "not a record", id="empty"),
        pytest.param(None, "does not say of what", id="a foreign tombstone"),
        pytest.param(b'{"v":2,"cluster":"c","event":"Tick","data":{}}', "upgrade the workers", id="future version"),
        pytest.param(b'{"v":0,"cluster":"c","event":"Tick","data":{}}', "without version", id="no version"),
        pytest.param(b'{"v":1,"cluster":"","event":"Tick","data":{}}', "without version or cluster", id="no cluster"),
        pytest.param(b'{"v":1,"cluster":"c","event":"Boom","data":{}}', "unknown kind 'Boom'", id="unknown event"),
        pytest.param(b'{"v":1,"cluster":"c","event":"Tick","data":{"at":"noon"}}', "Tick", id="bad time"),
        pytest.param(
            b'{"v":1,"cluster":"c","event":"Applied","data":{"at":"2026-11-30T12:00:00Z","kind":"Cow","obj":{}}}',
            "unknown kind 'Cow'",
            id="unknown object",
        ),
        pytest.param(
            b'{"v":1,"cluster":"c","event":"Applied","data":{"at":"2026-11-30T12:00:00Z","kind":"Pod","obj":[1]}}',
            "Applied",
            id="no object",
        ),
        pytest.param(
            b'{"v":1,"cluster":"a\\u001f@outbox","event":"Tick","data":{"at":"2026-11-30T12:00:00Z"}}',
            "unknown cluster: no name has control characters",
            id="a name that divides what is stored",
        ),
        pytest.param(
            b'{"v":1,"cluster":"c","event":"Tick","data":{"at":"2026-11-30T12:00:00"}}',
            "at is a time without its zone",
            id="time without zone",
        ),
        pytest.param(
            b'{"v":1,"cluster":"c","event":"Silenced","data":{"at":"2026-11-30T12:00:00Z","silence_id":"s",'
            b'"matchers":{},"author":"","comment":"","expires_at":"2026-11-30T13:00:00"}}',
            "expires_at is a time without its zone",
            id="end without zone",
        ),
        pytest.param(
            b'{"v":1,"cluster":"c","event":"Applied","data":{"at":"2026-11-30T12:00:00","kind":"Namespace",'
            b'"obj":{"metadata":{"name":"n","uid":"u"}}}}',
            "at is a time without its zone",
            id="object without zone",
        ),
    ],
)
def test_what_cannot_be_used_says_why(value: bytes | None, reason: str) -> None:
    """One line, without what the record holds."""
    with pytest.raises(RecordError, match=reason) as caught:
        read(value)
    assert "\n" not in str(caught.value)


@given(st.binary(max_size=200))
def test_no_bytes_get_any_other_error(value: bytes) -> None:
    """Whatever stands in a topic, reading it ends in an event or in a `RecordError`."""
    with contextlib.suppress(RecordError):
        read(value, [("e", value)])


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(max_size=5),
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
        max_leaves=10,
    ),
    st.sampled_from(["Applied", "Deleted", "Tick", "SourceChanged", "GpusSampled", "Decided"]),
)
def test_no_data_gets_any_other_error(data: object, event: str) -> None:
    """The same for well-formed records with anything in them."""
    with contextlib.suppress(RecordError):
        read(json.dumps({"v": 1, "cluster": "c", "event": event, "data": data}).encode())


def test_a_custom_resource_keeps_its_numbers() -> None:
    """Large integers and fractions in a spec come back as they were."""
    from sevenhop.core.objects.base import Custom, Meta

    custom = Custom(metadata=Meta(name="x", namespace="y"), kind="RayService", spec={"big": 2**62, "f": 1.5, "n": None})
    event = Applied(at=NOON, kind="RayService.ray.io", obj=custom)
    found = read(encode("c", event).value).event
    assert isinstance(found, Applied)
    assert msgspec.to_builtins(found.obj) == msgspec.to_builtins(custom)
