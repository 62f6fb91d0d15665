"""The runtime with its real store, a channel that does as it is told, and time that passes quickly."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path

from msgspec.structs import replace

from sevenhop.channels.channel import Channel, Delivery
from sevenhop.core.alerts.rule import Evaluation, Rule, SeverityPolicy, Verdict
from sevenhop.core.effects import Notify
from sevenhop.core.engine import Engine
from sevenhop.core.events import Event, Recalled, SourceChanged
from sevenhop.core.facts.schema import Facts, Unknown
from sevenhop.core.incidents.settings import DeskSettings
from sevenhop.core.inventory.policy import Policy
from sevenhop.core.objects.base import Object
from sevenhop.core.subject import Hop, SubjectKind
from sevenhop.runtime.clock import Clock
from sevenhop.runtime.embedded import Embedded, Source
from sevenhop.runtime.outbox import Outbox
from sevenhop.stores.sqlite import SqliteStore
from tests.builders import Feed, node

NOON = datetime(2026, 11, 30, 12, tzinfo=UTC)
HANG = "hang"
Answer = Exception | str
"""What a channel does with one delivery: raise, never answer (`HANG`), or give this reference."""


def quick_clock(speed: float = 100.0) -> Clock:
    """A hundred seconds pass in one."""
    return Clock(NOON, speed)


class Script:
    """
    A channel that answers by a script, and well when that has ended.

    Attributes:
        calls: (effect id, uncertain) of every attempt.
        delivered: Effect ids that arrived.
    """

    def __init__(self, answers: Iterable[Answer] = ()) -> None:
        self._answers = list(answers)
        self.calls: list[tuple[str, bool]] = []
        self.delivered: list[str] = []
        self.messages: list[Notify] = []
        self.closed = False

    async def deliver(self, notify: Notify, *, uncertain: bool) -> Delivery:
        self.calls.append((notify.id, uncertain))
        answer = self._answers.pop(0) if self._answers else "ok"
        if isinstance(answer, Exception):
            raise answer
        if answer == HANG:
            await asyncio.Event().wait()
        self.delivered.append(notify.id)
        self.messages.append(notify)
        return Delivery(reference=str(answer))

    async def close(self) -> None:
        self.closed = True


class RecallingScript(Script):
    """One that is asked what it shows, and answers by a script too."""

    def __init__(self, recalls: Iterable[Exception | list[Recalled]]) -> None:
        super().__init__()
        self._recalls = list(recalls)
        self.asked = 0

    async def recall(self, receiver: str, now: datetime) -> list[Recalled]:
        self.asked += 1
        answer = self._recalls.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer


async def until(is_true: Callable[[], bool], seconds: float = 30.0) -> None:
    """
    Wait for a condition; the limit only ends what never comes true, and a loaded machine stays well below it.

    Raises:
        TimeoutError: It never was.
    """
    async with asyncio.timeout(seconds):
        while not is_true():  # noqa: ASYNC110  what is waited for has no event
            await asyncio.sleep(0.002)


class Heard(list[Event]):
    """What the outbox told the core."""

    async def take(self, events: list[Event]) -> None:
        self.extend(events)

    def states(self) -> list[tuple[str, str]]:
        """(state, detail) of what it said of itself."""
        return [(str(e.state), e.detail) for e in self if isinstance(e, SourceChanged)]


@asynccontextmanager
async def delivering(
    store: SqliteStore, channels: dict[str, Channel], clock: Clock | None = None
) -> AsyncIterator[tuple[Outbox, Heard]]:
    """An outbox at work."""
    outbox, heard = Outbox(store, channels, clock or quick_clock()), Heard()
    outbox.start_with(heard.take)
    task = asyncio.create_task(outbox.run())
    try:
        yield outbox, heard
    finally:
        task.cancel()
        await asyncio.wait([task])
        if not task.cancelled() and (error := task.exception()) is not None:
            raise error


def node_rule(rule_id: str = "node-gone", *, hold: float = 0) -> Rule:
    """Fires while a node is not ready."""

    def evaluate(facts: Facts) -> Evaluation:
        ready = facts["node.ready"]
        if isinstance(ready, Unknown):
            return Evaluation(Verdict.UNKNOWN, missing=(("node.ready", ready),))
        return Evaluation(Verdict.FALSE if ready else Verdict.TRUE)

    return Rule(
        id=rule_id,
        status="stable",
        hop=Hop.DISCOVERY,
        subject=SubjectKind.NODE,
        expr="!node.ready",
        reads=frozenset({"node.ready"}),
        evaluate=evaluate,
        hold=timedelta(seconds=hold),
        keep_firing=timedelta(0),
        since="",
        severity=SeverityPolicy.CRITICAL,
        cause=SubjectKind.NODE,
        annotations={"summary": "{{ node }} is not ready"},
        digest=f"{rule_id}/{hold}",
    )


def outbox_rule() -> Rule:
    """As rules/self/outbox-stuck, without its `for`."""

    def evaluate(facts: Facts) -> Evaluation:
        return Evaluation(Verdict.TRUE if facts["source.outbox_stuck"] else Verdict.FALSE)

    return Rule(
        id="outbox-stuck",
        status="stable",
        hop=None,
        subject=SubjectKind.SOURCE,
        expr="source.outbox_stuck",
        reads=frozenset({"source.outbox_stuck"}),
        evaluate=evaluate,
        hold=timedelta(0),
        keep_firing=timedelta(0),
        since="",
        severity=SeverityPolicy.CRITICAL,
        cause=SubjectKind.SOURCE,
        annotations={"summary": "Messages cannot be delivered"},
        digest="outbox-stuck",
    )


class Told:
    """A source that tells what the test says."""

    def __init__(self) -> None:
        self.feed = Feed()
        self._queue: asyncio.Queue[list[Event]] = asyncio.Queue()

    async def run(self, emit: Callable[[list[Event]], object]) -> None:
        while True:
            await emit(await self._queue.get())  # type: ignore[misc]

    @property
    def waiting(self) -> int:
        """Batches that nobody has taken."""
        return self._queue.qsize()

    def tell(self, events: Sequence[Event]) -> None:
        self._queue.put_nowait(list(events))

    def synced(self, *objects: Object) -> None:
        """The first list: these exist, and every kind is known."""
        self.tell([*self.feed.applied(*objects), *self.feed.synced()])

    def node(self, name: str, *, ready: bool) -> None:
        self.tell(self.feed.applied(node(name, ready=ready)))


class Plant:
    """An embedded runtime on a folder, such as a process would build it."""

    def __init__(
        self,
        folder: Path,
        channels: dict[str, Channel],
        rules: Iterable[Rule],
        clock: Clock,
        settings: DeskSettings | None = None,
    ) -> None:
        self.store = SqliteStore(folder)
        settings = settings or DeskSettings()
        settings = replace(settings, receivers=tuple(channels), group_wait=timedelta(0))
        self.engine = Engine("test", (), rules, Policy(), settings)
        step = self.engine.load(self.store.rows(), clock())
        self.store.commit(step.saves, step.effects, now=clock().timestamp())
        self.embedded = Embedded(self.engine, self.store, Outbox(self.store, channels, clock), clock)
        self.told = Told()
        self.running: asyncio.Task[None] | None = None

    @property
    def has_ended(self) -> bool:
        """By itself, because a part of it failed."""
        return self.running is not None and self.running.done()


@asynccontextmanager
async def running(
    folder: Path,
    channels: dict[str, Channel],
    rules: Iterable[Rule] = (),
    *,
    clock: Clock | None = None,
    more: Sequence[Source] = (),
) -> AsyncIterator[Plant]:
    """An embedded runtime at work; leaving it is a graceful stop, and raises what it failed with."""
    plant = Plant(folder, channels, rules or (node_rule(),), clock or quick_clock())
    plant.running = task = asyncio.create_task(plant.embedded.run([plant.told, *more]))
    try:
        yield plant
    finally:
        task.cancel()
        await asyncio.wait([task])
        await plant.embedded.close()
        plant.store.close()
    if not task.cancelled() and (error := task.exception()) is not None:
        raise error
