"""Requests of a worker, carried out by an edge: every way in which one ends means the same on both sides."""

from __future__ import annotations

import asyncio
import random
import zlib
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta

import msgspec
import pytest

from sevenhop.actions.transport import AnsweredError, LostAnswerError, NotSentError
from sevenhop.runtime.codec import MOST_BYTES, Answered, encode, read
from sevenhop.runtime.scaled import remote
from sevenhop.runtime.scaled.hands import Hands
from sevenhop.runtime.scaled.orders import ORDER_LIVES, Letter, Order, OrderError, read_order, write_order
from sevenhop.runtime.scaled.remote import GONE_AFTER_S, Heard, RemoteTransport, Waiting
from sevenhop.runtime.scaled.topics import topics_of
from sevenhop.settings_scaled import KafkaSettings

NOON = datetime(2026, 11, 30, 12, tzinfo=UTC)
KAFKA = KafkaSettings(servers=["unused:9092"])


class Api:
    """A transport that does as it is told."""

    def __init__(self, answer: bytes | Exception = b"{}") -> None:
        self.answer = answer
        self.asked: list[tuple[str, str, dict[str, str], bytes | None, str]] = []

    async def send(
        self, method: str, path: str, params: Mapping[str, str], *, body: bytes | None = None, content_type: str = ""
    ) -> bytes:
        self.asked.append((method, path, dict(params), body, content_type))
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer


class Wire:
    """Both topics as they would carry it: what is sent is bytes."""

    def __init__(self, api: Api, now: datetime = NOON) -> None:
        self.waiting = Waiting()
        self.hands = Hands("prod", KAFKA, topics_of(KAFKA), api, lambda: now)
        self.transport = RemoteTransport("prod", self.send, self.waiting, lambda: NOON)

    async def send(self, _cluster: str, letter: Letter) -> None:
        found = self.hands.take(letter)
        if isinstance(found, Order):
            found = await self.hands.answer(found, letter.seal)
        if found is not None:
            event = read(encode("prod", found).value).event
            assert isinstance(event, Answered)
            self.waiting.answered(event)


async def test_a_request_arrives_as_it_was_asked() -> None:
    """Method, path, parameters, body and content type; and the body of the answer comes back."""
    api = Api(b'{"kind":"Deployment"}\xff')
    body = await Wire(api).transport.send(
        "PATCH", "/apis/apps/v1/x", {"dryRun": "All"}, body=b"\x00[1]", content_type="application/json-patch+json"
    )
    assert body == b'{"kind":"Deployment"}\xff'
    assert api.asked == [("PATCH", "/apis/apps/v1/x", {"dryRun": "All"}, b"\x00[1]", "application/json-patch+json")]


@pytest.mark.parametrize(
    "error",
    [AnsweredError(409, "Conflict", "changed", ("a budget",), 3.0), NotSentError("no route"), LostAnswerError("cut")],
    ids=lambda error: type(error).__name__,
)
async def test_each_failure_is_the_same_failure(error: Exception) -> None:
    """What surely did not happen stays certain, what may have happened stays in doubt."""
    with pytest.raises(type(error)) as caught:
        await Wire(Api(error)).transport.send("GET", "/api/v1/nodes", {})
    assert vars(caught.value) == vars(error)


async def test_an_old_order_is_not_carried_out() -> None:
    """Nobody waits for it any more, and it may have been given anew."""
    api = Api()
    wire = Wire(api, now=NOON + ORDER_LIVES + timedelta(seconds=1))
    with pytest.raises(NotSentError, match="too late"):
        await wire.transport.send("PATCH", "/apis/apps/v1/x", {})
    assert not api.asked


@pytest.mark.parametrize(
    ("method", "path"),
    [("DELETE", "/api/v1/nodes/a"), ("GET", "/metrics"), ("GET", "/api/v1/../../metrics"), ("GET", "http://x/api/v1")],
)
async def test_only_requests_to_the_api_are_sent(method: str, path: str) -> None:
    """An edge sends no other, whoever writes into the topic."""
    api = Api()
    with pytest.raises(NotSentError):
        await Wire(api).transport.send(method, path, {})
    assert not api.asked


async def test_an_edge_that_does_not_answer_leaves_it_in_doubt(monkeypatch: pytest.MonkeyPatch) -> None:
    """It may have been carried out."""
    monkeypatch.setattr(remote, "ANSWER_WITHIN_S", 0.05)

    async def lose(_cluster: str, _letter: Letter) -> None:
        await asyncio.sleep(0)

    transport = RemoteTransport("prod", lose, Waiting(), lambda: NOON)
    with pytest.raises(LostAnswerError, match="did not answer"):
        await transport.send("GET", "/api/v1/nodes", {})


class Ear:
    """How an edge is heard, while a request waits for its answer."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, **times: float) -> None:
        monkeypatch.setattr(remote, "LOOK_S", 0.01)
        for name, seconds in times.items():
            monkeypatch.setattr(remote, name, seconds)
        self.heard = Heard(silent_s=0.0, term=7)
        self.waiting = Waiting()
        self.sent: list[Order] = []
        self.transport = RemoteTransport("prod", self.send, self.waiting, lambda: NOON, lambda: self.heard)

    async def send(self, _cluster: str, letter: Letter) -> None:
        self.sent.append(read_order(letter))

    async def ask(self) -> bytes:
        return await self.transport.send("PATCH", "/apis/apps/v1/x", {}, body=b"[]")

    async def waits(self) -> asyncio.Task[bytes]:
        """A request that was sent, and is not answered."""
        asked = asyncio.create_task(self.ask())
        await asyncio.sleep(0.05)
        assert self.sent
        assert not asked.done()
        return asked

    def answer(self) -> None:
        self.waiting.answered(Answered(at=NOON, request_id=self.sent[-1].request_id, outcome="good", body=b"{}"))


async def test_an_edge_that_has_died_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """Once its Lease is out nobody answers: what became of it stays in doubt, and it was sent once."""
    ear = Ear(monkeypatch)
    asked = await ear.waits()
    ear.heard = Heard(silent_s=GONE_AFTER_S + 0.5, term=7)
    with pytest.raises(LostAnswerError, match=r"the edge of prod has said nothing for 8 s: .*; look at its pods; "):
        async with asyncio.timeout(30):
            await asked
    assert len(ear.sent) == 1


async def test_nothing_is_sent_to_an_edge_that_has_died(monkeypatch: pytest.MonkeyPatch) -> None:
    """Then it is certain that nothing was done."""
    ear = Ear(monkeypatch)
    ear.heard = Heard(silent_s=60.0, term=7)
    with pytest.raises(NotSentError, match=r"has said nothing for 60 s: .*look at its pods; nothing was sent"):
        await ear.ask()
    assert ear.sent == []


async def test_an_edge_that_comes_back_in_time_answers(monkeypatch: pytest.MonkeyPatch) -> None:
    """As long as its Lease may be its own, silence is no end; afterwards it is heard again."""
    ear = Ear(monkeypatch)
    asked = await ear.waits()
    ear.heard = Heard(silent_s=GONE_AFTER_S, term=7)
    await asyncio.sleep(0.05)
    assert not asked.done()
    ear.heard = Heard(silent_s=0.0, term=7)
    await asyncio.sleep(0.05)
    ear.answer()
    assert await asked == b"{}"
    assert len(ear.sent) == 1


async def test_an_answer_that_is_there_counts_however_silent_it_became_since(monkeypatch: pytest.MonkeyPatch) -> None:
    """What was done is not called lost."""
    ear = Ear(monkeypatch)
    asked = await ear.waits()
    ear.answer()
    ear.heard = Heard(silent_s=60.0, term=7)
    assert await asked == b"{}"


async def test_another_edge_has_taken_over(monkeypatch: pytest.MonkeyPatch) -> None:
    """It never heard what was ordered before it listened: that is said after a moment, not after all the time."""
    ear = Ear(monkeypatch, OTHERS_ORDERS_S=0.1)
    asked = await ear.waits()
    ear.heard = Heard(silent_s=0.0, term=8)
    with pytest.raises(LostAnswerError, match="another edge of prod took over"):
        async with asyncio.timeout(30):
            await asked


async def test_another_edge_that_heard_the_order_answers(monkeypatch: pytest.MonkeyPatch) -> None:
    """It may have listened before it spoke."""
    ear = Ear(monkeypatch, OTHERS_ORDERS_S=1.0)
    asked = await ear.waits()
    ear.heard = Heard(silent_s=0.0, term=8)
    await asyncio.sleep(0.05)
    ear.answer()
    assert await asked == b"{}"


async def test_the_first_word_of_an_edge_is_no_change_of_hands(monkeypatch: pytest.MonkeyPatch) -> None:
    """A worker that has just begun has heard of no term yet."""
    ear = Ear(monkeypatch, OTHERS_ORDERS_S=0.05)
    ear.heard = Heard(silent_s=0.0, term=0)
    asked = await ear.waits()
    ear.heard = Heard(silent_s=0.0, term=8)
    await asyncio.sleep(0.15)
    assert not asked.done()
    ear.answer()
    assert await asked == b"{}"


@pytest.mark.parametrize("method", ["PATCH", "GET"])
async def test_nothing_is_asked_while_an_order_may_still_be_carried_out(
    method: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """
    An edge that had only stalled comes back with the order: a look just before would say that nothing was done, and a
    step that people were told never happened would happen then.
    """
    monkeypatch.setattr(remote, "ORDER_LIVES", timedelta(seconds=0.3))
    ear = Ear(monkeypatch)
    asked = asyncio.create_task(ear.transport.send(method, "/api/v1/pods", {}))
    await asyncio.sleep(0.02)
    ear.heard = Heard(silent_s=GONE_AFTER_S + 0.5, term=7)
    with pytest.raises(LostAnswerError):
        await asked
    ear.heard = Heard(silent_s=0.0, term=7)
    if method == "PATCH":
        with pytest.raises(NotSentError, match="what was ordered before may still be carried out for 0 s"):
            await ear.ask()
        assert len(ear.sent) == 1
        await asyncio.sleep(0.3)
    again = asyncio.create_task(ear.ask())
    await asyncio.sleep(0.02)
    ear.answer()
    assert await again == b"{}"


async def test_what_an_edge_itself_calls_lost_is_looked_at_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """It has the order no more: the API server did not answer it."""
    ear = Ear(monkeypatch)
    asked = await ear.waits()
    ear.waiting.answered(Answered(at=NOON, request_id=ear.sent[-1].request_id, outcome="lost", message="cut"))
    with pytest.raises(LostAnswerError, match="cut"):
        await asked
    await ear.waits()
    assert len(ear.sent) == 2


@pytest.mark.parametrize(
    "value",
    [b"?", b"", b'{"cluster":"other","request_id":"1","until":"2026-11-30T12:00:00Z","method":"GET","path":"/api/"}',
     b'{"v":9,"cluster":"prod","request_id":"1","until":"2026-11-30T12:00:00Z","method":"GET","path":"/api/"}'],
)  # fmt: skip
def test_orders_of_others_and_of_the_future_are_left_alone(value: bytes) -> None:
    """An edge acts in its own cluster, on what it understands."""
    assert Wire(Api()).hands.take(Letter(value)) is None


async def test_an_order_that_fails_ends_nothing() -> None:
    """What became of it is not known, and is looked up; the edge goes on watching its cluster."""
    with pytest.raises(LostAnswerError, match="the edge failed: ZeroDivisionError"):
        await Wire(Api(ZeroDivisionError("a fault of ours"))).transport.send("GET", "/api/v1/pods", {})


def test_an_order_without_a_zone_in_its_time_is_left_out() -> None:
    """Whether it came too late could not be said."""
    order = Order(cluster="prod", request_id="r", until=NOON.replace(tzinfo=None), method="GET", path="/api/v1/pods")
    with pytest.raises(OrderError, match=r"^unreadable: "):
        read_order(write_order(order))


async def test_a_list_of_megabytes_arrives() -> None:
    """All ReplicaSets of a namespace: as it is, no record could carry it, and the edge would try for ever."""
    body = msgspec.json.encode({"items": [{"metadata": {"name": f"rs-{n}"}, "spec": "x" * 4000} for n in range(1000)]})
    wire = Wire(Api(body))
    answer = await wire.hands.answer(order(), "")
    assert len(encode("prod", answer).value or b"") < MOST_BYTES
    assert await wire.transport.send("GET", "/apis/apps/v1/namespaces/x/replicasets", {}) == body


async def test_an_answer_that_no_record_can_carry() -> None:
    """It is called lost, with why, and what is behind it goes on."""
    with pytest.raises(LostAnswerError, match="1,500,000 bytes, more than Kafka takes"):
        await Wire(Api(random.Random(7).randbytes(1_500_000))).transport.send("GET", "/api/v1/pods", {})


@pytest.mark.parametrize(
    "body",
    [b"nonsense", zlib.compress(b"x" * 100)[:-8], zlib.compress(b"\0" * (remote.MOST_UNPACKED + 1))],
    ids=["no zlib", "cut off", "a bomb"],
)
def test_an_answer_that_cannot_be_unpacked(body: bytes) -> None:
    """Whoever wrote it: it is no answer, and takes no room without bound."""
    with pytest.raises(LostAnswerError):
        remote._result(Answered(at=NOON, request_id="r", outcome="good", body=body, is_packed=True))


def order() -> Order:
    return Order(cluster="prod", request_id="r", until=NOON, method="GET", path="/api/v1/pods")
