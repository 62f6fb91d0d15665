"""Decisions on their way to the owner of a cluster: what is refused there, and what a door does that hears nothing."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sevenhop.actions.transport import LostAnswerError
from sevenhop.channels.door import RefusedError
from sevenhop.core.effects import Reply
from sevenhop.core.events import BreakerReset, Decided, Event, Silenced, SwitchSet, Tick, Verb
from sevenhop.core.remediation.person import Person
from sevenhop.runtime.codec import Record, encode, read
from sevenhop.runtime.scaled import decisions
from sevenhop.runtime.scaled.decisions import (
    LIVES,
    Decisions,
    NoAnswerError,
    refusal_of,
    reply_key,
    request_of,
    stored_of,
    until_answered,
    why_refused,
)
from sevenhop.runtime.scaled.mailbox import leave
from sevenhop.runtime.scaled.topics import topics_of
from sevenhop.settings_scaled import KafkaSettings
from tests.unit.scaled.test_questions import Lists

NOON = datetime(2026, 11, 30, 12, tzinfo=UTC)
ANN = Person(id="slack:U-ann", name="ann", groups=("slack-group:S1",), verified_at=NOON)


def decided(verb: Verb = Verb.APPROVE, at: datetime = NOON) -> Decided:
    return Decided(at=at, request_id="r1", person=ANN, verb=verb, plan_id="7f3a0001", plan_hash="h", via="slack")


def switched(*, on: bool, at: datetime = NOON) -> SwitchSet:
    return SwitchSet(at=at, request_id="r2", person=ANN, is_on=on)


def silenced(at: datetime = NOON) -> Silenced:
    return Silenced(at=at, silence_id="s1", matchers={}, author="ann", comment="", expires_at=NOON + timedelta(hours=1))


EVERY = [
    *(pytest.param(decided(verb), id=verb) for verb in Verb),
    pytest.param(switched(on=True), id="stop"),
    pytest.param(switched(on=False), id="resume"),
    pytest.param(BreakerReset(at=NOON, request_id="r3", person=ANN), id="breaker"),
    pytest.param(silenced(), id="silence"),
]


@pytest.mark.parametrize("event", EVERY)
def test_it_arrives_as_the_door_verified_it(event: Event) -> None:
    """The record holds who it is, by what groups, and when that was looked up; it passes, and is not kept by key."""
    record = encode("prod", event)
    assert read(record.value, record.headers).event == event
    assert (record.key, record.is_kept) == (None, False)


@pytest.mark.parametrize("event", EVERY)
def test_a_decision_makes_no_cluster(event: Event) -> None:
    """Of a cluster that the owner does not know nothing is taken in; of one that it knows, all of it in time."""
    assert "unknown cluster: nothing is known" in why_refused(event, NOON, is_known=False)
    assert why_refused(event, NOON + LIVES, is_known=True) == ""


def test_what_is_no_decision_begins_a_cluster() -> None:
    """The first word of an edge is taken in."""
    assert why_refused(Tick(at=NOON), NOON + timedelta(days=1), is_known=False) == ""


LATE = [
    *((decided(verb), verb in (Verb.APPROVE, Verb.EXTEND)) for verb in Verb),
    (switched(on=True), False),
    (switched(on=False), True),
    (BreakerReset(at=NOON, request_id="r3", person=ANN), True),
    (silenced(), True),
]


@pytest.mark.parametrize(("event", "is_refused"), LATE, ids=[case.id for case in EVERY])
def test_late_ones_let_nothing_happen(event: Event, is_refused: bool) -> None:
    """Who approved was told that nobody answers, and has gone on; holding back and giving back are never too late."""
    why = why_refused(event, NOON + LIVES + timedelta(seconds=1), is_known=True)
    assert bool(why) is is_refused
    if is_refused:
        assert "came after 121 s" in why


@given(late_s=st.floats(0, 120), event=st.sampled_from([event for event, _ in LATE]))
def test_in_time_nothing_is_late(late_s: float, event: Event) -> None:
    """A worker that takes over does so well within the time that a decision lives."""
    assert why_refused(event, NOON + timedelta(seconds=late_s), is_known=True) == ""


@pytest.mark.parametrize(("event", "is_refused"), LATE, ids=[case.id for case in EVERY])
def test_early_ones_let_nothing_happen(event: Event, is_refused: bool) -> None:
    """By a door whose clock is ahead: it would be followed, and could be sent again by others, for so much longer."""
    why = why_refused(event, NOON - LIVES - timedelta(seconds=1), is_known=True)
    assert bool(why) is is_refused
    if is_refused:
        assert "121 s ahead of ours" in why


def test_the_end_of_a_silence_is_never_late() -> None:
    """Whoever wants to hear again does, however late that is read."""
    ended = msgspec.structs.replace(silenced(), expires_at=NOON)
    assert why_refused(ended, NOON + timedelta(hours=2), is_known=True) == ""


def test_a_refusal_answers_who_asked() -> None:
    """It carries the request's name, so that the door finds it; of what asks for nothing there is none."""
    [reply] = refusal_of(decided(), "too late").replies
    assert (reply.request_id, reply.accepted, reply.text) == ("r1", False, "too late")
    [reply] = refusal_of(silenced(), "unknown").replies
    assert (reply.request_id, reply.accepted, reply.text) == (request_of(silenced()), False, "unknown")
    assert refusal_of(Tick(at=NOON), "unknown").replies == ()


def test_one_request_in_two_clusters_has_two_answers() -> None:
    """Whoever stops everything is answered by each cluster."""
    assert reply_key("a", "r1") == reply_key("a", "r1")
    assert len({reply_key("a", "r1"), reply_key("b", "r1"), reply_key("a", "r2"), reply_key("ar", "1")}) == 4


class Wire:
    """Counts what is sent; answers as it is told."""

    def __init__(self, answers: list[str | Exception], sends: list[Exception] | None = None) -> None:
        self.answers, self.sends = answers, sends or []
        self.sent = 0

    async def send(self) -> int:
        self.sent += 1
        if self.sends:
            raise self.sends.pop(0)
        return self.sent

    async def answer(self, _seconds: float, offset: int) -> str:
        found = self.answers.pop(0)
        if isinstance(found, Exception):
            raise found
        return f"{found} to {offset}"

    @property
    def ends(self) -> tuple[Callable[[], Awaitable[int]], Callable[[float, int], Awaitable[str]]]:
        return self.send, self.answer


async def test_an_answer_that_was_lost_is_asked_for_again() -> None:
    """The owner died between storing and answering: the same request is sent once more."""
    wire = Wire([TimeoutError(), "approved"])
    assert await until_answered(*wire.ends) == "approved to 2"


async def test_what_kafka_may_not_have_stored_is_sent_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """The engine counts it once, should both have arrived."""
    monkeypatch.setattr(decisions, "LOST_AGAIN_S", 0.0)
    wire = Wire(["approved"], [LostAnswerError("gone"), LostAnswerError("gone")])
    assert await until_answered(*wire.ends) == "approved to 3"


async def test_whoever_hears_nothing_is_told_so(monkeypatch: pytest.MonkeyPatch) -> None:
    """Within the patience of a door: neither a yes nor a no."""
    monkeypatch.setattr(decisions, "PATIENCE_S", 0.3)
    monkeypatch.setattr(decisions, "SEND_AGAIN_S", 0.1)

    async def never(seconds: float, _offset: int) -> str:
        await asyncio.sleep(seconds)
        raise TimeoutError

    wire = Wire([])
    with pytest.raises(NoAnswerError, match="no worker has answered yet"):
        await until_answered(wire.send, never)
    assert 1 <= wire.sent <= 4  # fewer on a machine that stalls, and never as fast as it can


class Partition:
    """As much of Kafka and of a cluster's owner as a door needs: each record is answered as it is told."""

    def __init__(self, answers: list[Callable[[Any], Reply] | None]) -> None:
        self.redis, self.answers, self.sent = Lists(), answers, 0
        topics = topics_of(KafkaSettings(servers=["unused:9092"]))
        self.decisions = Decisions(self.put, topics, self.redis)  # type: ignore[arg-type]

    async def put(self, _topic: str, cluster: str, record: Record) -> int:
        event = read(record.value).event
        answer = self.answers[self.sent]
        self.sent += 1
        if answer is not None:
            reply = answer(event)
            await leave(self.redis, reply_key(cluster, reply.request_id), msgspec.json.encode(reply))  # type: ignore[arg-type]
        return self.sent


def stored(event: Silenced) -> Reply:
    return stored_of(event).replies[0]


async def test_a_silence_that_was_not_taken_is_not_called_one() -> None:
    """Clocks differ, or the cluster is not known: that its record was passed over does not make it hold."""
    owner = Partition([lambda event: refusal_of(event, "late: nothing was done").replies[0]])
    with pytest.raises(RefusedError, match="late: nothing was done"):
        await owner.decisions.silence("prod", silenced())


async def test_a_silence_that_nobody_took_is_sent_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """After an empty Redis the owner goes on behind what was there; a dead letter is answered by nobody."""
    monkeypatch.setattr(decisions, "SEND_AGAIN_S", 0.05)
    owner = Partition([None, stored])
    await owner.decisions.silence("prod", silenced())
    assert owner.sent == 2


async def test_the_end_of_a_silence_is_not_answered_by_its_beginning(monkeypatch: pytest.MonkeyPatch) -> None:
    """They share an id, and the first answer still lies there."""
    monkeypatch.setattr(decisions, "PATIENCE_S", 0.1)
    owner, end = Partition([stored, None, None]), silenced(at=NOON + timedelta(seconds=5))
    await owner.decisions.silence("prod", silenced())
    with pytest.raises(NoAnswerError):
        await owner.decisions.silence("prod", end)
    assert request_of(silenced()) != request_of(end)


async def test_what_was_refused_before_is_not_the_answer() -> None:
    """The same request by name, once who asks may do so: it is followed, and its refusal still lies there."""
    owner = Partition(
        [
            lambda event: refusal_of(event, "ann may not approve").replies[0],
            lambda event: Reply(request_id=event.request_id, accepted=True, text="plan 7f3a0001 is approved"),
        ]
    )
    assert not (await owner.decisions.ask("prod", decided())).accepted
    assert (await owner.decisions.ask("prod", decided())).accepted
