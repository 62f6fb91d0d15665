"""A stop outlives the state in which it was stored: the topic of objects keeps who said it last, for each cluster."""

from __future__ import annotations

import asyncio
import logging
from datetime import datetime, timedelta

import pytest
from msgspec.structs import replace

from sevenhop.actions.transport import LostAnswerError
from sevenhop.core.effects import Reply
from sevenhop.core.events import Event, SwitchSet
from sevenhop.core.remediation.guards_question import Switch
from sevenhop.runtime.codec import Record, read
from sevenhop.runtime.scaled import kept_switch
from sevenhop.runtime.scaled.kept_switch import KeptSwitches, last_turn, untold_turn
from sevenhop.runtime.scaled.signing import check_signature, signing_as_worker
from tests.unit.scaled.test_partition import ANN, OBJECTS, SIGNALS, TOPICS, Works, stop, tick, works

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


async def put(at: Works, *events: Event, first: int, cluster: str = "prod") -> None:
    for number, event in enumerate(events, first):
        await at.put(SIGNALS, number, event, cluster)
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
        pytest.param(None, False, id="it was resumed since"),
        pytest.param(6, True, id="there is a state, and it counts"),
    ],
)
async def test_what_does_not_hold_any_more_is_not_taken_over(stored: int | None, last: bool) -> None:
    """Nobody is stopped by what was said long ago."""
    strange = {1: ("prod", stop("r1")), 3: ("prod", stop("r2", on=last))}
    async with works(stored=stored, end=6, strange=strange) as at:
        assert not is_stopped(at)
        assert not any(b"switch" in field for field in at.fence.fields)


async def test_a_stop_makes_no_cluster() -> None:
    """Of one that is watched no more nothing is begun."""
    async with works(stored=None, end=6, strange={1: ("gone", stop("r1"))}) as at:
        assert set(at.partition.cells) == {"prod"}


@pytest.mark.parametrize("stored", [None, 6], ids=["all state was lost", "that was a while ago, and others went on"])
async def test_a_stop_holds_for_a_cluster_whose_edge_comes_later(stored: int | None) -> None:
    """Nothing of it was there when the state began anew; it is stopped from its first step, stored, and said once."""
    topic, strange = Topic(), {1: ("late", stop("r1")), 2: ("other", stop("r2")), 4: ("other", stop("r3", on=False))}
    async with works(stored=stored, end=6, strange=strange) as at:
        watch(at, topic)
        for number, cluster in enumerate(("late", "other"), 6):
            await at.put(OBJECTS, number, tick(), cluster)
        await at.stands_at(OBJECTS, 8)
        cells = at.partition.cells
        assert {name: cell.engine.remediation.switch.is_on for name, cell in cells.items()} == {
            "prod": False, "late": True, "other": False,
        }  # fmt: skip
        assert cells["late"].engine.remediation.switch.comment == "said before all state was lost"
        assert [field for field in at.fence.fields if b"switch" in field and b"late" in field]

        fields, offsets = dict(at.fence.fields), dict(at.fence.offsets)
        await put(at, stop("r4", on=False), first=100, cluster="late")  # whoever resumes it has resumed it
        assert not cells["late"].engine.remediation.switch.is_on
        await at.put(OBJECTS, 8, tick(), "late")
        await at.stands_at(OBJECTS, 9)
        assert not cells["late"].engine.remediation.switch.is_on
    async with works(stored=stored, end=8, strange={**strange, 6: ("late", tick())}) as at:
        at.fence.fields, at.fence.offsets = fields, offsets
        await at.partition.rebuild()
        assert at.partition.cells["late"].engine.remediation.switch.is_on


def followed(*events: SwitchSet) -> list[Reply]:
    return [Reply(request_id=event.request_id, accepted=True, text="") for event in events]


@pytest.mark.parametrize("again_first", [True, False])
@pytest.mark.parametrize("is_on", [True, False])
def test_one_that_comes_again_beside_a_new_turn_hides_it_not(is_on: bool, again_first: bool) -> None:
    """In the same step: a door sends an old request again just when somebody else says otherwise."""
    old, new = stop("old", on=not is_on, late=timedelta(minutes=1)), stop("new", on=is_on)
    events = [old, new] if again_first else [new, old]
    assert last_turn(events, followed(*events), is_on=is_on) is new


def test_of_two_that_say_the_same_the_later_word_counts() -> None:
    """An older one that comes again behind it would be kept as who said it last, with its time."""
    old, new = stop("old", late=timedelta(minutes=1)), stop("new")
    assert last_turn([new, old], followed(new, old), is_on=True) is new


async def test_a_stop_beside_an_older_resume_that_comes_again_is_kept() -> None:
    """Through the partition: both in one step."""
    topic = Topic()
    async with works(stored=3, end=4) as at:
        watch(at, topic)
        await at.put(SIGNALS, 0, stop("r1"))
        await at.put(SIGNALS, 1, stop("r2", on=False))
        await at.put(SIGNALS, 2, stop("r3"))
        await at.put(SIGNALS, 3, stop("r2", on=False))
        await at.put(OBJECTS, 3, tick())  # the end that decisions wait for
        await at.stands_at(SIGNALS, 4)
        assert is_stopped(at)
        await topic.has(1)
        await asyncio.sleep(0.05)
    assert topic.said()[-1] == ("r3", True)


@pytest.mark.parametrize(
    ("minutes", "is_on"),
    [
        pytest.param(5, True, id="an old resume that was copied behind the stop"),
        pytest.param(1, False, id="as far as clocks may differ the place counts"),
    ],
)
async def test_an_older_word_behind_a_newer_one(minutes: int, is_on: bool) -> None:
    """Whoever may write there can copy what was signed once, and a worker that lost its place may be late."""
    strange = {1: ("prod", stop("r2")), 3: ("prod", stop("r1", on=False, late=timedelta(minutes=minutes)))}
    async with works(stored=None, end=6, strange=strange) as at:
        assert is_stopped(at) is is_on


async def test_a_stop_of_somebody_who_may_not_any_more_is_taken_over() -> None:
    """It was followed when it was said; that its person left the approvers since starts nothing again."""
    eve = replace(stop("r1"), person=replace(ANN, id="slack:U-eve", name="eve"))
    async with works(stored=None, end=6, strange={2: ("prod", eve)}) as at:
        assert is_stopped(at)
        assert at.partition.cells["prod"].engine.remediation.switch.by == "eve"


async def test_a_worker_that_has_lost_the_partition_says_nothing_any_more() -> None:
    """Its word could come behind a later one of who has it now."""
    topic = Topic(refusals=1)
    async with works(stored=5, end=5) as at:
        watch(at, topic)
        await put(at, stop("r1"), first=0)
        at.partition.is_ready = False  # as `release` does
        await asyncio.sleep(0.05)
    assert topic.said() == []


async def test_what_the_worker_before_did_not_get_to_keep_is_kept_by_a_rebuild() -> None:
    """It died in between, might not write, or was of a version that kept nothing."""
    topic = Topic()
    async with works(stored=5, end=5) as at:
        await put(at, stop("r1"), first=0)
        fields, offsets = dict(at.fence.fields), dict(at.fence.offsets)
    async with works(stored=5, end=5) as at:
        at.fence.fields, at.fence.offsets = fields, offsets
        watch(at, topic)
        await at.partition.rebuild()
        assert is_stopped(at)
        await topic.has(1)
    assert topic.said() == [("r1", True)]
    [(_, _, record)] = topic.kept
    event = read(record.value).event
    assert isinstance(event, SwitchSet)
    assert event.person.name == "ann"


NOON = datetime.fromisoformat("2026-11-30T12:00:00Z")


@pytest.mark.parametrize(
    ("switch", "told", "is_on"),
    [
        pytest.param(Switch(), None, None, id="never turned"),
        pytest.param(Switch(is_on=True, at=NOON), None, True, id="a stop that is not there"),
        pytest.param(Switch(at=NOON), None, None, id="resumed, and nothing is there"),
        pytest.param(Switch(at=NOON), replace(stop(), at=NOON - timedelta(hours=1)), False, id="resumed since"),
        pytest.param(Switch(at=NOON), replace(stop(), at=NOON + timedelta(hours=1)), None, id="Redis went back"),
        pytest.param(Switch(), stop(), None, id="Redis went back to before any turn"),
    ],
)
def test_what_a_rebuild_keeps(switch: Switch, told: SwitchSet | None, is_on: bool | None) -> None:
    """Only a later word than the one that is kept; a stop that Redis forgot is not taken out of the topic as well."""
    found = untold_turn(switch, told)
    assert (found.is_on if found is not None else None) is is_on


async def test_a_right_that_is_missing_is_said_seldom(caplog: pytest.LogCaptureFixture) -> None:
    """Each attempt fails alike: the log says it once in a while, the report for as long as it is so."""
    topic, seconds = Topic(refusals=5), [0.0]
    switches = KeptSwitches(topic.put, TOPICS, signing_as_worker(KEY), now=lambda: seconds[0])
    async with works(stored=5, end=5) as at:
        at.partition.watches.append(switches.watching(at.partition))
        with caplog.at_level(logging.WARNING, "sevenhop.decisions"):
            await put(at, stop("r1"), first=0)
            await asyncio.sleep(0.03)
            assert switches.report() == {"switches_not_kept": {"prod": "gone"}}
            seconds[0] = kept_switch.SAID_EVERY_S
            await topic.has(1)
            await asyncio.sleep(0)
    said = [record.getMessage() for record in caplog.records]
    assert [line.partition(": ")[0] for line in said] == [
        "the kill switch of prod is kept in Redis alone for now",
        "the kill switch of prod is kept in Redis alone for now",
        "the kill switch of prod is kept in Kafka too again",
    ]
    assert OBJECTS in said[0]
    assert switches.report() == {"switches_not_kept": {}}


async def test_whatever_goes_wrong_a_stop_is_tried_again() -> None:
    """A fault of ours in between ends no task unseen."""
    kept_there, faults = Topic(), [ZeroDivisionError("a fault of ours")]

    async def put_or_fail(topic: str, cluster: str, record: Record) -> int:
        if faults:
            raise faults.pop()
        return await kept_there.put(topic, cluster, record)

    switches = KeptSwitches(put_or_fail, TOPICS, signing_as_worker(KEY))
    async with works(stored=5, end=5) as at:
        at.partition.watches.append(switches.watching(at.partition))
        await put(at, stop("r1"), first=0)
        await kept_there.has(1)
    assert kept_there.said() == [("r1", True)]
