"""A stop outlives the state in which it was stored: the topic of objects keeps who said it last, for each cluster."""

from __future__ import annotations

import asyncio

import pytest
from msgspec.structs import replace

from sevenhop.actions.transport import LostAnswerError
from sevenhop.core.events import Event, SwitchSet
from sevenhop.runtime.codec import Record, read
from sevenhop.runtime.scaled import kept_switch
from sevenhop.runtime.scaled.kept_switch import KeptSwitches
from sevenhop.runtime.scaled.signing import check_signature, signing_as_worker
from tests.unit.scaled.test_partition import ANN, OBJECTS, SIGNALS, TOPICS, Works, stop, works

KEY = "a key of the workers"
"""With which decisions are signed."""


class Topic:
    """As much of Kafka as is written to; refuses as often as it is told."""

    def __init__(self, refusals: int = 0) -> None:
        self.kept: list[tuple[str, str, Record]] = []
        self._refusals = refusals

    async def put(self, topic: str, cluster: str, record: Record) -> int:
        await asyncio.sleep(0)
        if self._refusals:
            self._refusals -= 1
            raise LostAnswerError("gone")
        self.kept.append((topic, cluster, record))
        return len(self.kept)

    def said(self) -> list[tuple[str, bool]]:
        events = [read(record.value, record.headers).event for _, _, record in self.kept]
        return [(event.request_id, event.is_on) for event in events if isinstance(event, SwitchSet)]

    async def has(self, count: int) -> None:
        async with asyncio.timeout(5):
            while len(self.kept) < count:  # noqa: ASYNC110  what is waited for has no event
                await asyncio.sleep(0.001)


@pytest.fixture(autouse=True)
def short_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kept_switch, "AGAIN_AFTER_S", 0.01)


def watch(at: Works, topic: Topic) -> None:
    switches = KeptSwitches(topic.put, TOPICS, signing_as_worker(KEY))
    at.partition.watches.append(switches.watching(at.partition))


async def put(at: Works, *events: Event, first: int) -> None:
    for number, event in enumerate(events, first):
        await at.put(SIGNALS, number, event)
    await at.stands_at(SIGNALS, first + len(events))


def is_stopped(at: Works) -> bool:
    return at.partition.cells["prod"].engine.remediation.switch.is_on


async def test_each_turn_is_kept_once_it_is_stored() -> None:
    """Under one key for the cluster, signed as a decision has to be; what was refused is not."""
    topic = Topic()
    async with works(stored=5, end=5) as at:
        watch(at, topic)
        await put(at, stop("r1"), first=0)
        await topic.has(1)
        await put(at, replace(stop("r2"), person=replace(ANN, id="slack:U-eve")), first=1)
        await put(at, stop("r3", on=False), first=2)
        await topic.has(2)
        await put(at, stop("r1"), first=3)  # sent again: followed before, and since then it was resumed
        await put(at, stop("r4"), first=4)
        await topic.has(3)
    assert topic.said() == [("r1", True), ("r3", False), ("r4", True)]
    assert {(of, cluster, record.key) for of, cluster, record in topic.kept} == {(OBJECTS, "prod", b"prod|switch||")}
    for _, cluster, record in topic.kept:
        check_signature(KEY, cluster, read(record.value).event, record.value, record.headers)


async def test_kafka_refuses_for_a_while() -> None:
    """The last word arrives in the end, and none comes after it."""
    topic = Topic(refusals=3)
    async with works(stored=5, end=5) as at:
        watch(at, topic)
        await put(at, stop("r1"), first=0)
        await put(at, stop("r2", on=False), first=1)
        await topic.has(1)
        await asyncio.sleep(0.05)
    assert topic.said()[-1] == ("r2", False)


async def test_a_state_that_begins_anew_takes_the_stop_over() -> None:
    """With who said it, when nobody remembers; the same request again is the one that was followed."""
    async with works(stored=None, end=6, strange={2: ("prod", stop("old")), 4: ("prod", stop("r1"))}) as at:
        assert is_stopped(at)
        switch = at.partition.cells["prod"].engine.remediation.switch
        assert (switch.by, switch.comment) == ("ann", "said before all state was lost")
        assert any(b"switch" in field for field in at.fence.fields)
        await put(at, stop("r1"), first=100)
        assert [(reply.request_id, reply.text[:24]) for reply in at.replies] == [("r1", "this was followed before")]


@pytest.mark.parametrize(
    ("stored", "last"),
    [
        pytest.param(None, stop("r2", on=False), id="it was resumed since"),
        pytest.param(6, stop("r2"), id="there is a state, and it counts"),
    ],
)
async def test_what_does_not_hold_any_more_is_not_taken_over(stored: int | None, last: SwitchSet) -> None:
    """Nobody is stopped by what was said long ago."""
    async with works(stored=stored, end=6, strange={1: ("prod", stop("r1")), 3: ("prod", last)}) as at:
        assert not is_stopped(at)
        assert not any(b"switch" in field for field in at.fence.fields)


async def test_a_stop_makes_no_cluster() -> None:
    """Of one that is watched no more nothing is begun."""
    async with works(stored=None, end=6, strange={1: ("gone", stop("r1"))}) as at:
        assert set(at.partition.cells) == {"prod"}
