"""Orders to the edges, with a key: only what a worker signed is carried out, once, and only the edge answers it."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from sevenhop.actions.transport import LostAnswerError, NotSentError
from sevenhop.core.events import SwitchSet
from sevenhop.core.remediation.person import Person
from sevenhop.runtime.codec import Answered, Record, encode, read
from sevenhop.runtime.scaled import remote
from sevenhop.runtime.scaled.edge import Edge
from sevenhop.runtime.scaled.hands import LOOK_BACK, Hands
from sevenhop.runtime.scaled.orders import ORDER_LIVES, Letter, Order, OrderError, check_order, write_order
from sevenhop.runtime.scaled.remote import RemoteTransport, Waiting
from sevenhop.runtime.scaled.signing import (
    UnsignedError,
    check_signature,
    edge_key,
    key_at_edge,
    signing_as_edge,
    signing_orders,
    why_unsigned,
)
from sevenhop.runtime.scaled.topics import topics_of
from sevenhop.settings_scaled import KafkaSettings, RuntimeSettings
from sevenhop.telemetry.table import OrderRefusal

NOON = datetime(2026, 11, 30, 12, tzinfo=UTC)
KAFKA = KafkaSettings(servers=["unused:9092"])
KEY = "a key of the workers"
EDGE = edge_key(KEY, "prod")
ORDER = Order(
    cluster="prod",
    request_id="w-1",
    until=NOON + ORDER_LIVES,
    method="PATCH",
    path="/apis/apps/v1/namespaces/ml/deployments/summarizer",
    params={"fieldManager": "sevenhop"},
    body=b'[{"op":"replace","path":"/spec/replicas","value":3}]',
    content_type="application/json-patch+json",
)


def signed(order: Order = ORDER, key: str = KEY) -> Letter:
    return write_order(order, signing_orders(key))


class Clock:
    def __init__(self) -> None:
        self.now = NOON

    def __call__(self) -> datetime:
        return self.now


class Api:
    """An API server that remembers what it was asked, and answers once it may."""

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.may_answer = asyncio.Event()
        self.may_answer.set()

    async def send(
        self, method: str, path: str, params: Mapping[str, str], *, body: bytes | None = None, content_type: str = ""
    ) -> bytes:
        self.asked.append(path)
        await self.may_answer.wait()
        return b"{}"


def hands(clock: Clock, api: Api, key: str = EDGE) -> tuple[Hands, list[OrderRefusal]]:
    refused: list[OrderRefusal] = []
    return Hands("prod", KAFKA, topics_of(KAFKA), api, clock, key, refused.append), refused


def test_what_a_worker_signed_is_carried_out() -> None:
    """By the edge with the key that is made of the workers'."""
    found, refused = hands(Clock(), Api())
    assert found.take(signed()) == ORDER
    assert refused == []


OTHERS: dict[str, st.SearchStrategy[Any]] = {
    "request_id": st.text(max_size=20),
    "until": st.datetimes(timezones=st.just(UTC)),
    "method": st.sampled_from(["GET", "POST", "PUT", "DELETE", ""]),
    "path": st.text(max_size=80),
    "params": st.dictionaries(st.text(max_size=10), st.text(max_size=10), max_size=3),
    "body": st.none() | st.binary(max_size=80),
    "content_type": st.text(max_size=20),
}


def test_every_field_of_an_order_may_be_changed_by_the_next_test() -> None:
    """A field that is added needs a line there; of another cluster and format an order is not ours to carry out."""
    assert set(OTHERS) | {"v", "cluster"} == {field.name for field in msgspec.structs.fields(Order)}


@given(st.data())
def test_an_order_with_one_changed_field_is_refused(data: st.DataObject) -> None:
    """Another object, another number, another time: the signature is over all of it."""
    name = data.draw(st.sampled_from(sorted(OTHERS)))
    value = data.draw(OTHERS[name].filter(lambda each: each != getattr(ORDER, name)))
    changed = replace(signed(), value=msgspec.json.encode(replace(ORDER, **{name: value})))
    found, refused = hands(Clock(), Api())
    assert not isinstance(found.take(changed), Order)
    assert refused == [OrderRefusal.FORGED]


@given(st.data())
def test_one_changed_byte_is_noticed(data: st.DataObject) -> None:
    """Of the order, or of its signature."""
    letter = signed()
    name = data.draw(st.sampled_from(["value", "signature"]))
    old: bytes = getattr(letter, name)
    at = data.draw(st.integers(0, len(old) - 1))
    new = old[:at] + bytes([(old[at] + data.draw(st.integers(1, 255))) % 256]) + old[at + 1 :]
    with pytest.raises(OrderError):
        check_order(EDGE, replace(letter, **{name: new}))


def signature_of(record: Record) -> bytes:
    """As an edge signs what it decides and answers."""
    return dict(signing_as_edge(EDGE)("prod", record).headers)["s"]


DECISION = encode("prod", SwitchSet(at=NOON, request_id="r", person=Person(id="unix:ann"), is_on=True))


FOREIGN = {
    "of nobody": (write_order(ORDER), OrderRefusal.UNSIGNED),
    "with another key": (signed(key="another"), OrderRefusal.FORGED),
    "with the key of the edge, as if it were that of the workers": (signed(key=EDGE), OrderRefusal.FORGED),
    "of another cluster": (
        replace(signed(replace(ORDER, cluster="lab")), value=signed().value), OrderRefusal.FORGED,
    ),
    "with the signature that a decision would have": (
        Letter(signed().value, signature_of(Record(None, signed().value, [], False))),
        OrderRefusal.FORGED,
    ),
    "with no text as signature": (replace(signed(), signature=b"\xff\xfe"), OrderRefusal.FORGED),
    "a decision": (Letter(DECISION.value or b"", signature_of(DECISION)), OrderRefusal.UNREADABLE),
    "of a format to come": (signed(replace(ORDER, v=9)), OrderRefusal.NEWER_FORMAT),
    "nested without end": (Letter(b"[" * 100_000), OrderRefusal.UNREADABLE),
    "late": (signed(replace(ORDER, until=NOON - timedelta(seconds=1))), OrderRefusal.LATE),
    "no request": (signed(replace(ORDER, method="DELETE")), OrderRefusal.NOT_A_REQUEST),
}  # fmt: skip


@pytest.mark.parametrize(("letter", "why"), FOREIGN.values(), ids=FOREIGN)
def test_a_foreign_order_is_refused_with_its_reason(letter: Letter, why: OrderRefusal) -> None:
    """It is counted, and answered where it can be read, so that a worker whose key is missing hears of it."""
    found, refused = hands(Clock(), Api())
    answer = found.take(letter)
    assert refused == [why]
    if why in (OrderRefusal.UNREADABLE, OrderRefusal.NEWER_FORMAT):
        assert answer is None
    else:
        assert isinstance(answer, Answered)
        assert (answer.outcome, answer.order) == ("not_sent", letter.seal)
        assert f"the edge of prod refused the order: {why}: " in answer.message


def test_an_id_of_any_length_is_not_sent_back() -> None:
    """Whoever writes forged orders does not fill the topic of signals with them."""
    found, refused = hands(Clock(), Api())
    assert found.take(write_order(replace(ORDER, request_id="x" * 500_000))) is None
    assert refused == [OrderRefusal.UNSIGNED]


@pytest.mark.parametrize("key", [EDGE, ""], ids=["with a key", "without"])
@pytest.mark.parametrize("after_s", [0, 19, 21, 100])
def test_an_order_that_comes_again_is_not_carried_out_again(after_s: int, key: str) -> None:
    """Nor is it answered: what came of the first one is the answer, and the worker may still wait for it."""
    clock = Clock()
    found, refused = hands(clock, Api(), key)
    assert found.take(signed()) == ORDER
    clock.now += timedelta(seconds=after_s)
    found.take(signed(replace(ORDER, request_id="w-2", until=clock.now)))
    assert found.take(signed()) is None
    assert refused == [OrderRefusal.REPLAYED]


def test_ids_are_forgotten_once_nobody_could_wait_for_them() -> None:
    """The memory does not grow with what was ordered ever."""
    clock = Clock()
    found, refused = hands(clock, Api())
    for number in range(1000):
        clock.now += timedelta(seconds=1)
        found.take(signed(replace(ORDER, request_id=f"w-{number}", until=clock.now + ORDER_LIVES)))
    assert len(found._seen) < (LOOK_BACK + ORDER_LIVES + timedelta(minutes=1)).total_seconds()
    found.take(signed(replace(ORDER, request_id="w-0", until=NOON + ORDER_LIVES)))
    assert refused == [OrderRefusal.LATE]


def test_an_edge_that_begins_knows_what_was_ordered_before() -> None:
    """Else whoever copies an order right after another edge took over had it done twice."""
    found, refused = hands(Clock(), Api())
    assert found.take(replace(signed(), is_old=True)) is None
    assert found.take(replace(write_order(replace(ORDER, request_id="w-2")), is_old=True)) is None  # forged: no memory
    assert refused == []
    assert found.take(signed()) is None
    assert refused == [OrderRefusal.REPLAYED]
    assert found.take(signed(replace(ORDER, request_id="w-2"))) == replace(ORDER, request_id="w-2")


@pytest.mark.parametrize("until", [datetime.max, datetime.min], ids=["the last of all times", "the first"])
@pytest.mark.parametrize("is_old", [False, True], ids=["new", "there before"])
def test_a_time_at_the_end_of_all_times_ends_no_edge(until: datetime, is_old: bool) -> None:
    """Without a key anybody may write one: the edge would end, begin again, read it again, and so on."""
    letter = write_order(replace(ORDER, until=until.replace(tzinfo=UTC)))
    found, _ = hands(Clock(), Api(), "")
    found.take(replace(letter, is_old=is_old))
    assert found.take(signed(replace(ORDER, request_id="w-2"))) == replace(ORDER, request_id="w-2")


class Wire:
    """A worker and an edge, each with a key, and somebody who writes between them."""

    def __init__(self, worker: str = KEY, edge: str = EDGE) -> None:
        self.api = Api()
        self.waiting = Waiting()
        self.sent: list[Letter] = []
        self.hands, self.refused = hands(Clock(), self.api, edge)
        self._worker, self._edge = worker, edge
        self._tasks: set[asyncio.Task[None]] = set()
        write = signing_orders(worker)
        self.transport = RemoteTransport(
            "prod", self.send, self.waiting, lambda: NOON, write=lambda order: write_order(order, write)
        )

    async def send(self, _cluster: str, letter: Letter) -> None:
        self.sent.append(letter)
        task = asyncio.create_task(self.bring(letter))
        self._tasks.add(task)
        await asyncio.sleep(0)

    async def bring(self, letter: Letter) -> None:
        """An order to the edge, and what it says of it back to the worker."""
        found = self.hands.take(letter)
        if isinstance(found, Order):
            found = await self.hands.answer(found, letter.seal)
        if found is not None:
            edge = Edge("prod", 1, KAFKA, topics_of(KAFKA), lambda: NOON, sign=signing_as_edge(self._edge))
            record = edge._record(found)
            assert record is not None
            self.hear(record)

    def hear(self, record: Record) -> None:
        """As `Worker` takes what comes among the signals."""
        event = read(record.value).event
        assert isinstance(event, Answered)
        try:
            check_signature(self._worker, "prod", event, record.value, record.headers)
        except UnsignedError:
            self.waiting.doubted(event.request_id)
        else:
            self.waiting.answered(event)

    async def patch(self) -> bytes:
        return await self.transport.send("PATCH", "/apis/apps/v1/x", {}, body=b"[]")


async def test_with_a_key_on_both_sides_it_is_as_without() -> None:
    """What was ordered is done, and answered."""
    assert await Wire().patch() == b"{}"


COPIES = {
    "changed": lambda letter: replace(letter, value=letter.value.replace(b"/x", b"/y")),
    "without its signature": lambda letter: replace(letter, signature=b""),
    "as it is": lambda letter: letter,
}


@pytest.mark.parametrize("copy", COPIES.values(), ids=COPIES)
async def test_a_copy_under_the_same_id_does_not_become_the_answer(copy: Any) -> None:
    """The edge refuses it at once, while it still carries out the true one: "not sent" would be a lie."""
    wire = Wire()
    wire.api.may_answer.clear()
    asking = asyncio.create_task(wire.patch())
    await asyncio.sleep(0.02)
    await wire.bring(copy(wire.sent[0]))
    await asyncio.sleep(0.02)
    assert (asking.done(), len(wire.refused)) == (False, 1)
    wire.api.may_answer.set()
    assert await asking == b"{}"
    assert wire.api.asked == ["/apis/apps/v1/x"]


async def test_an_answer_that_somebody_forged_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    """Else a change that was never made were a success, and one that was made were not there."""
    monkeypatch.setattr(remote, "ANSWER_WITHIN_S", 1.5)
    wire = Wire()
    wire.api.may_answer.clear()
    asking = asyncio.create_task(wire.patch())
    await asyncio.sleep(0.02)
    [letter] = wire.sent
    request = msgspec.json.decode(letter.value, type=Order).request_id
    for key in ("", "another", edge_key(KEY, "lab")):
        forged = Answered(at=NOON, request_id=request, order=letter.seal, outcome="not_sent", message="not done")
        wire.hear(signing_as_edge(key)("prod", encode("prod", forged)))
    await asyncio.sleep(0.02)
    assert not asking.done()
    with pytest.raises(LostAnswerError, match="an answer without the edge's signature was refused"):
        await asking


@pytest.mark.parametrize(
    ("worker", "edge", "error", "said", "is_done"),
    [
        pytest.param("", EDGE, NotSentError, "unsigned: .*the workers need runtime.decision_key", False, id="worker"),
        pytest.param(KEY, "", LostAnswerError, "an answer without the edge's signature.*sevenhop edge-key", True,
                     id="edge"),
        pytest.param(KEY, "another", LostAnswerError, "an answer without the edge's signature.*sevenhop edge-key",
                     False, id="another at the edge"),
    ],
)  # fmt: skip
async def test_a_key_that_is_missing_on_one_side(
    worker: str, edge: str, error: type[Exception], said: str, is_done: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The run says which setting; and only what surely was not done is called so."""
    monkeypatch.setattr(remote, "ANSWER_WITHIN_S", 1.0 if error is LostAnswerError else 30.0)
    wire = Wire(worker, edge)
    with pytest.raises(error, match=said):
        await wire.patch()
    assert bool(wire.api.asked) is is_done


async def test_another_order_under_our_id_is_told_if_no_answer_comes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Somebody changed it on its way: whoever reads the run learns that."""
    monkeypatch.setattr(remote, "ANSWER_WITHIN_S", 1.0)
    wire = Wire()
    wire.api.may_answer.clear()
    asking = asyncio.create_task(wire.patch())
    await asyncio.sleep(0.02)
    await wire.bring(COPIES["changed"](wire.sent[0]))
    with pytest.raises(LostAnswerError, match=r"another order under the same id, and .* refused the order: forged: "):
        await asking


@pytest.mark.parametrize(
    ("role", "key", "expected"),
    [("edge", EDGE, EDGE), ("all", KEY, EDGE), ("edge", "", ""), ("all", "", "")],
)
def test_which_key_an_edge_has(role: Any, key: str, expected: str) -> None:
    """Its own; in one process with a worker that of its cluster, made of the workers'."""
    assert key_at_edge(RuntimeSettings(role=role, decision_key=key), "prod") == expected


@pytest.mark.parametrize("made", [f"{EDGE}\n", f" {EDGE} ", EDGE], ids=["as a file ends", "blanks", "as it is"])
def test_blanks_around_a_key_do_not_count(made: str) -> None:
    """A Secret that was made from a file has its last line end, and nobody sees why the keys would differ."""
    assert RuntimeSettings.model_validate({"decision_key": made}).decision_key.get_secret_value() == EDGE


def test_what_is_said_where_nothing_is_signed() -> None:
    """Once, by worker and edge each in its words, and more where plans are carried out; nothing with a key."""
    none, key = RuntimeSettings(role="worker"), RuntimeSettings(role="worker", decision_key=KEY)
    assert why_unsigned(key) == why_unsigned(key, approves=True) == ""
    assert "orders to the edges and their answers are not signed" in why_unsigned(none)
    assert why_unsigned(none, approves=True) == why_unsigned(none) + (
        "; and plans are carried out here once they are approved"
    )
    assert "the topic of orders" in why_unsigned(RuntimeSettings(role="edge"))
