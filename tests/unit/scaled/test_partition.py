"""A partition's steps: what waits for what, what is refused before any engine sees it, and who is answered."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from sevenhop.core.alerts.book import Reloaded
from sevenhop.core.alerts.rule import Rule
from sevenhop.core.effects import Reply
from sevenhop.core.engine import Engine, Step
from sevenhop.core.events import Event, Silenced, SwitchSet, Tick
from sevenhop.core.incidents.settings import DeskSettings
from sevenhop.core.inventory.policy import Policy
from sevenhop.core.remediation.person import Person
from sevenhop.core.remediation.playbook import Goal, Playbook
from sevenhop.core.remediation.settings import RemediationSettings
from sevenhop.runtime.clock import Clock
from sevenhop.runtime.codec import Read, RecordError, encode, read
from sevenhop.runtime.scaled.cell import Parts
from sevenhop.runtime.scaled.decisions import request_of
from sevenhop.runtime.scaled.partition import WAITING, Incoming, Partition
from sevenhop.runtime.scaled.topics import topics_of
from sevenhop.settings_scaled import KafkaSettings
from sevenhop.stores.redis_fence import Changes

TOPICS = topics_of(KafkaSettings(servers=["unused:9092"]))
OBJECTS, SIGNALS = TOPICS.inputs
ANN = Person(id="slack:U-ann", name="ann")
PLAYBOOK = Playbook(id="free", steps=("scale",), goal=Goal.BENEFICIARY_READY, approvers=(ANN.id,))


class Memory:
    """A fence in memory."""

    def __init__(self, offsets: Mapping[str, int]) -> None:
        self.offsets = dict(offsets)
        self.fields: dict[bytes, bytes] = {}
        self.stalled = ""
        self.meanwhile: Callable[[], Awaitable[None]] | None = None  # what arrives while the next write is under way

    async def write(self, changes: Changes) -> None:
        arrives, self.meanwhile = self.meanwhile, None
        if arrives is not None:
            await arrives()
        for field, value in changes.fields.items():
            if value is None:
                self.fields.pop(field, None)
            else:
                self.fields[field] = value
        self.offsets.update(changes.offsets)

    async def audit_lines(self, _cluster: str) -> list[bytes]:
        return []


class Stream:
    """Kafka beside the stream: `ends` of the topics, and what was buried."""

    def __init__(self, ends: Mapping[str, int]) -> None:
        self._ends = ends
        self.buried: list[str] = []
        self.strange: dict[int, tuple[str, Event]] = {}  # offset to what stands there instead of a tick
        self.refuses: set[str] = set()  # clusters

    async def ends(self, topic: str) -> tuple[int, int]:
        return 0, self._ends[topic]

    async def records(self, _topic: str, start: int, end: int) -> AsyncIterator[list[Any]]:
        for offset in range(start, end):
            record = encode(*self.strange.get(offset, ("prod", Tick(at=datetime.now(tz=UTC)))))
            yield [type("Record", (), {"offset": offset, "value": record.value, "headers": []})]

    def read(self, record: Any) -> Read:
        found = read(record.value, record.headers)
        if found.cluster in self.refuses:
            raise RecordError("wrong partition: belongs elsewhere")
        return found

    async def bury(self, _topic: str, _record: Any, reason: str) -> None:
        self.buried.append(reason)


class Works:
    """A partition at work."""

    def __init__(self, partition: Partition, fence: Memory, stream: Stream) -> None:
        self.partition, self.fence, self.stream = partition, fence, stream
        self.replies: list[Reply] = []
        partition.observers.append(lambda _cluster, step: self.replies.extend(step.replies))

    async def put(self, topic: str, offset: int, event: Event, cluster: str = "prod") -> None:
        await self.partition.put(Incoming(topic, offset, cluster, event))

    async def stands_at(self, topic: str, offset: int) -> None:
        async with asyncio.timeout(30):
            while self.fence.offsets[topic] < offset:  # noqa: ASYNC110  what is waited for has no event
                await asyncio.sleep(0.001)


@asynccontextmanager
async def works(
    *, stored: int | None, end: int, strange: Mapping[int, tuple[str, Event]] | None = None, refuses: str = ""
) -> AsyncIterator[Works]:
    """Rebuilt from a stored place in the objects (or from nothing), with records behind it that are yet to come."""
    desk = DeskSettings(receivers=("slack",))
    remediation = RemediationSettings(playbooks={PLAYBOOK.id: PLAYBOOK})
    parts = Parts(
        build_engine=lambda cluster: Engine(cluster, (), (), Policy(), desk, remediation),
        channels={},
        clock=Clock(),
        silence=timedelta(minutes=1),
    )
    offsets = {OBJECTS: stored, SIGNALS: 0} if stored is not None else {}
    fence, stream = Memory(offsets), Stream({OBJECTS: end, SIGNALS: 100})
    stream.strange |= strange or {}
    stream.refuses.add(refuses)
    partition = Partition(0, fence, TOPICS, parts, stream)  # type: ignore[arg-type]
    made = Works(partition, fence, stream)
    await partition.rebuild()
    running = asyncio.create_task(partition.run())
    try:
        yield made
    finally:
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)


def stop(request: str = "r1", *, late: timedelta = timedelta(0), on: bool = True) -> SwitchSet:
    return SwitchSet(at=datetime.now(tz=UTC) - late, request_id=request, person=ANN, is_on=on)


def tick() -> Tick:
    return Tick(at=datetime.now(tz=UTC))


async def test_decisions_wait_until_what_is_true_is_read() -> None:
    """Right after a takeover half of the cluster is unknown: decided on that, an approval would be refused."""
    async with works(stored=3, end=5) as at:
        await at.put(SIGNALS, 0, stop())
        await at.put(OBJECTS, 3, tick())
        await at.stands_at(OBJECTS, 4)
        assert (at.replies, at.fence.offsets[SIGNALS], at.partition.is_idle) == ([], 0, False)

        await at.put(OBJECTS, 4, tick())
        await at.stands_at(OBJECTS, 5)
        await asyncio.sleep(0.1)
        assert at.replies == []  # verdicts are made anew at most every 100 ms
        await at.stands_at(SIGNALS, 1)
        assert [(reply.request_id, reply.accepted) for reply in at.replies] == [("r1", True)]


async def test_what_waited_is_taken_in_order_before_what_comes() -> None:
    """On, off, on: the last one holds."""
    async with works(stored=3, end=4) as at:
        for offset, is_on in enumerate((True, False)):
            await at.put(SIGNALS, offset, stop(f"r{offset}", on=is_on))
        at.fence.meanwhile = lambda: at.put(SIGNALS, 2, stop("r2"))
        await at.put(OBJECTS, 3, tick())
        await at.stands_at(SIGNALS, 3)
        assert [reply.request_id for reply in at.replies] == ["r0", "r1", "r2"]
        assert at.partition.cells["prod"].engine.remediation.switch.is_on


async def test_records_that_are_handled_one_by_one_still_are_after_waiting() -> None:
    """A poison record among them is found, and does not take the others with it."""
    async with works(stored=3, end=4) as at:
        seen: list[int] = []
        at.partition.observers.append(lambda _cluster, step: seen.append(len(step.replies)))
        at.partition.careful_until[SIGNALS] = 3
        for offset in range(3):
            await at.put(SIGNALS, offset, stop(f"r{offset}"))
        await at.put(OBJECTS, 3, tick())
        await at.stands_at(SIGNALS, 3)
        assert len(at.replies) == 3
        assert max(seen) == 1


@pytest.mark.parametrize(
    ("cluster", "event", "why"),
    [
        ("nowhere", stop(), "unknown cluster: "),
        ("prod", stop(late=timedelta(minutes=3), on=False), "late: "),
    ],
    ids=["of-no-cluster", "late"],
)
async def test_a_refused_decision(cluster: str, event: SwitchSet, why: str) -> None:
    """It is a dead letter, its door is answered, no cluster begins by it, and the stream goes on."""
    async with works(stored=3, end=3) as at:
        await at.put(SIGNALS, 0, event, cluster)
        await at.stands_at(SIGNALS, 1)
        assert [reason[: len(why)] for reason in at.stream.buried] == [why]
        [reply] = at.replies
        assert (reply.request_id, reply.accepted) == ("r1", False)
        assert sorted(at.partition.cells) == ["prod"]
        assert at.partition.cells["prod"].engine.remediation.switch.at is None


def silence(*, late: timedelta = timedelta(0)) -> Silenced:
    at = datetime.now(tz=UTC) - late
    ends = datetime.now(tz=UTC) + timedelta(hours=1)
    return Silenced(at=at, silence_id="s1", matchers={"x": "y"}, author="ann", comment="", expires_at=ends)


@pytest.mark.parametrize(("late_s", "accepted"), [(0, True), (180, False)])
async def test_a_silence_is_answered_once_it_is_stored(late_s: int, accepted: bool) -> None:
    """Whoever asked hears whether it holds, not only that its record was read."""
    async with works(stored=3, end=3) as at:
        event = silence(late=timedelta(seconds=late_s))
        await at.put(SIGNALS, 0, event)
        await at.stands_at(SIGNALS, 1)
        await asyncio.sleep(0.01)
        assert [(reply.request_id, reply.accepted) for reply in at.replies] == [(request_of(event), accepted)]
        found = at.partition.cells["prod"].engine.desk.silences(datetime.now(tz=UTC))
        assert [each.id for each in found] == (["s1"] if accepted else [])


async def test_what_was_refused_in_the_stream_is_refused_in_a_rebuild() -> None:
    """A record of another partition's cluster, or a decision among the objects, begins no cluster either way."""
    strange = {0: ("elsewhere", tick()), 1: ("decided", stop())}
    async with works(stored=3, end=3, strange=strange, refuses="elsewhere") as at:
        assert sorted(at.partition.cells) == ["prod"]


async def test_a_stream_that_waits_before_a_full_partition_goes_on_without_it() -> None:
    """Else a rebalance while there is a backlog stands still for all partitions of the worker."""
    async with works(stored=3, end=3) as at:
        held = asyncio.Event()
        at.fence.meanwhile = held.wait  # type: ignore[assignment]
        await at.put(OBJECTS, 3, tick())
        await asyncio.sleep(0.1)  # it is being stored, and that takes

        async def bring() -> None:
            for offset in range(WAITING + 1):
                await at.put(OBJECTS, 4 + offset, tick())

        bringing = asyncio.create_task(bring())
        while at.partition.waiting < WAITING:  # noqa: ASYNC110  what is waited for has no event
            await asyncio.sleep(0)
        await asyncio.sleep(0.01)
        assert not bringing.done()
        at.partition.release()
        async with asyncio.timeout(30):
            await bringing
        assert at.partition.waiting == 0


async def test_whoever_changes_the_rules_does_not_wait_for_a_partition_that_is_lost() -> None:
    """Rules would never be read again; the worker that has it next has them from its beginning."""
    async with works(stored=3, end=3) as at:
        held = asyncio.Event()
        at.fence.meanwhile = held.wait  # type: ignore[assignment]
        await at.put(OBJECTS, 3, tick())
        await asyncio.sleep(0.1)
        reloading = asyncio.create_task(at.partition.reload(()))
        await asyncio.sleep(0.01)
        assert not reloading.done()
        at.partition.release()
        async with asyncio.timeout(30):
            await reloading
            await at.partition.reload(())


async def test_rules_that_change_during_a_rebuild_hold_after_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its engines were built with the earlier ones."""
    reloaded: list[object] = []
    before = Engine.reload

    def reload(engine: Engine, rules: Iterable[Rule], now: datetime) -> tuple[Step, Reloaded]:
        reloaded.append(rules)
        return before(engine, rules, now)

    monkeypatch.setattr(Engine, "reload", reload)
    rebuild = Partition.rebuild

    async def slow(partition: Partition) -> None:
        await rebuild(partition)
        partition.is_ready = False
        await partition.reload(())
        partition.is_ready = True

    monkeypatch.setattr(Partition, "rebuild", slow)
    async with works(stored=3, end=3):
        async with asyncio.timeout(30):
            while not reloaded:  # noqa: ASYNC110  what is waited for has no event
                await asyncio.sleep(0.001)
    assert reloaded == [()]


async def test_a_busy_stream_does_not_hold_up_decisions_that_are_taken_one_by_one() -> None:
    """There is always something else: they would wait for ever, and more and more of them."""
    async with works(stored=3, end=4) as at:
        at.partition.careful_until[SIGNALS] = 3
        for offset in range(3):
            await at.put(SIGNALS, offset, stop(f"r{offset}"))
        next_offset = 3

        async def busy() -> None:
            nonlocal next_offset
            at.fence.meanwhile = busy  # while one step is stored, the next record comes
            await at.put(OBJECTS, next_offset, tick())
            next_offset += 1

        await busy()
        async with asyncio.timeout(30):
            while len(at.replies) < 3:  # noqa: ASYNC110  what is waited for has no event
                await asyncio.sleep(0.001)
        at.fence.meanwhile = None
