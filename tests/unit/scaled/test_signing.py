"""Signed decisions: who may write to the topic decides nothing, and an edge decides about its own cluster alone."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from sevenhop.cli.main import main
from sevenhop.core.events import BreakerReset, Decided, Silenced, SwitchSet, Tick, Verb
from sevenhop.core.remediation.person import Person
from sevenhop.runtime.codec import Answered, Carried, Record, RecordError, encode, read
from sevenhop.runtime.scaled.signing import check_signature, edge_key, signing_as_edge, signing_as_worker

NOON = datetime(2026, 11, 30, 12, tzinfo=UTC)
KEY = "a key of the workers"
ANN = Person(id="kubernetes:ann", verified_at=NOON)
EVERY: dict[str, Carried] = {
    "decision": Decided(at=NOON, request_id="r", person=ANN, verb=Verb.APPROVE, plan_id="7f3a0001", via="http"),
    "switch": SwitchSet(at=NOON, request_id="r", person=ANN, is_on=False),
    "breaker": BreakerReset(at=NOON, request_id="r", person=ANN),
    "silence": Silenced(at=NOON, silence_id="s", matchers={}, author="ann", comment="", expires_at=NOON),
    "answer": Answered(at=NOON, request_id="r", order="s", outcome="good", body=b"{}"),
}


def check(record: Record, key: str = KEY) -> None:
    """As a worker does with what it reads."""
    found = read(record.value, record.headers)
    check_signature(key, found.cluster, found.event, record.value, record.headers)


@pytest.mark.parametrize("event", EVERY.values(), ids=EVERY)
def test_what_a_door_signed_is_taken(event: Carried) -> None:
    """From a worker's door about any cluster, from an edge's about its own."""
    check(signing_as_worker(KEY)("prod", encode("prod", event)))
    check(signing_as_edge(edge_key(KEY, "prod"))("prod", encode("prod", event)))


FORGED = {
    "not-signed": lambda event: encode("prod", event),
    "by-another-key": lambda event: signing_as_worker("another")("prod", encode("prod", event)),
    "by-the-edge-of-another-cluster": lambda event: signing_as_edge(edge_key(KEY, "lab"))(
        "prod", encode("prod", event)
    ),
    "of-another-cluster": lambda event: replace(
        signing_as_worker(KEY)("lab", encode("lab", event)), value=encode("prod", event).value
    ),
    "an-empty-signature": lambda event: replace(encode("prod", event), headers=[("s", b"")]),
    "a-signature-of-nothing": lambda event: replace(encode("prod", event), headers=[("s", None)]),
    "no-text": lambda event: replace(encode("prod", event), headers=[("s", b"\xff\xfe")]),
    "by-the-edge-key-as-workers": lambda event: signing_as_worker(edge_key(KEY, "prod"))("prod", encode("prod", event)),
}


@pytest.mark.parametrize("event", EVERY.values(), ids=EVERY)
@pytest.mark.parametrize("forge", FORGED.values(), ids=FORGED)
def test_a_forged_decision_is_refused(forge: object, event: Carried) -> None:
    """Its record is a dead letter that says so."""
    with pytest.raises(RecordError, match=r"^unsigned: "):
        check(forge(event))  # type: ignore[operator]


@given(st.data())
def test_one_changed_byte_is_noticed(data: st.DataObject) -> None:
    """Another plan, another person, another verb: the signature is over all of it."""
    record = signing_as_worker(KEY)("prod", encode("prod", EVERY["decision"]))
    assert record.value is not None
    at = data.draw(st.integers(0, len(record.value) - 1))
    byte = (record.value[at] + data.draw(st.integers(1, 255))) % 256
    changed = record.value[:at] + bytes([byte]) + record.value[at + 1 :]
    with pytest.raises(RecordError):
        check_signature(KEY, "prod", EVERY["decision"], changed, record.headers)


def test_what_an_edge_sees_needs_no_signature() -> None:
    """Only decisions are signed; and without a key nothing is."""
    check(encode("prod", Tick(at=NOON)))
    for event in EVERY.values():
        check(encode("prod", event), key="")
        assert signing_as_worker("")("prod", encode("prod", event)).headers == []
        assert signing_as_edge("")("prod", encode("prod", event)).headers == []


def test_the_command_for_an_edge(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """It makes the key of the settings into that of one cluster, and says what is missing without one."""
    monkeypatch.setenv("SEVENHOP__RUNTIME__DECISION_KEY", KEY)
    assert main(["edge-key", "prod"]) == 0
    assert capsys.readouterr().out.strip() == edge_key(KEY, "prod")

    monkeypatch.delenv("SEVENHOP__RUNTIME__DECISION_KEY")
    assert main(["edge-key", "prod"]) == 2
    assert "runtime.decision_key" in capsys.readouterr().err
