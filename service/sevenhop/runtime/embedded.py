"""
The embedded runtime: one process, one loop, one file of state.

    sources ──► inbox ──► engine.handle ──► store.commit ──► outbox ──► channels
                  ▲                                             │
                  └───────────────── outcomes ◄─────────────────┘

A batch is acknowledged only after its state and effects are stored in one transaction.  If the store refuses for now
(disk full), the loop keeps the step and tries again; it never goes on ahead of the store.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Awaitable, Callable, Iterable, Sequence
from datetime import datetime, timedelta
from time import monotonic
from typing import Protocol

from sevenhop.core.alerts.rule import Rule
from sevenhop.core.effects import Act, Notify, Reply
from sevenhop.core.engine import Engine, Step
from sevenhop.core.events import BreakerReset, Decided, Event, StepDone, SwitchSet
from sevenhop.runtime.clock import Clock
from sevenhop.runtime.outbox import Outbox
from sevenhop.runtime.recall import Recall
from sevenhop.stores.store import Store, StoreBusyError
from sevenhop.telemetry.logs import about
from sevenhop.telemetry.times import StepTimes

log = logging.getLogger("sevenhop.runtime")

Emit = Callable[[list[Event]], Awaitable[None]]

INBOX_BATCHES = 256
"""Batches that may wait; then the sources wait too, and the API server keeps what we have not read."""

SLICE_EVENTS = 200
"""Events handled before other tasks get a turn: a few milliseconds."""

STORE_RETRY_S = 2.0

RECALL_WITHIN_S = 10.0
"""After an empty start the channels are asked first what they show; one that does not answer is asked again later."""

SHORTEST_WAIT_S = 0.005
"""Even an engine that always wants to be called at once leaves the loop to others."""


class Source(Protocol):
    """Turns the outside world into events until it is cancelled."""

    async def run(self, emit: Emit) -> None: ...


class Embedded:
    """Runs sources, engine, store and channels in the current event loop."""

    def __init__(self, engine: Engine, store: Store, outbox: Outbox, clock: Clock) -> None:
        self.engine = engine
        self._store = store
        self._outbox = outbox
        self._clock = clock
        self._inbox: asyncio.Queue[list[Event] | asyncio.Future[None]] = asyncio.Queue(maxsize=INBOX_BATCHES)
        self._to_acknowledge: list[asyncio.Future[None]] = []  # once the batch in hand is stored
        self._wake: datetime | None = None
        self._stepping = asyncio.Lock()  # a step is stored before the next one is taken, whoever takes it
        self.stalled = ""  # why input is not taken, empty while it is
        self.observers: list[Callable[[Step], None]] = []
        self.watches: list[Callable[[Sequence[Event], Step, StepTimes], None]] = []
        self._busy_since: float | None = None  # monotonic, while a step is in hand
        self._asked = 0
        self._done = 0
        self._questions: dict[str, list[asyncio.Future[Reply]]] = {}  # by request

    async def emit(self, events: list[Event]) -> None:
        """Hand events to the engine; waits while it is behind."""
        if events:
            self._asked += len(events)
            try:
                await self._inbox.put(events)
            except asyncio.CancelledError:  # whoever sends gave up, and they never came in
                self._asked -= len(events)
                raise

    async def emit_stored(self, events: list[Event]) -> None:
        """The same, and returns when they are stored: for those who are told that it is done, as a silence's author."""
        stored: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        await self.emit(events)
        await self._inbox.put(stored)
        await stored

    async def ask(self, request: Decided | SwitchSet | BreakerReset) -> Reply:
        """
        Hand on what a person decided; the answer is given once it is stored.

        The same request again is answered again and decided once, so who gives up waiting may ask anew.
        """
        answer: asyncio.Future[Reply] = asyncio.get_running_loop().create_future()
        self._questions.setdefault(request.request_id, []).append(answer)
        try:
            await self.emit([request])
            return await answer
        finally:
            waiting = self._questions.get(request.request_id, [])
            if answer in waiting:  # it gave up
                waiting.remove(answer)
                if not waiting:
                    del self._questions[request.request_id]

    @property
    def is_idle(self) -> bool:
        """All events so far are handled and stored, and nothing waits to be delivered."""
        return self._asked == self._done and not self._store.receivers()

    @property
    def behind_s(self) -> float:
        """Real seconds that the step in hand has taken so far; 0 while nothing waits to be handled."""
        return 0.0 if self._busy_since is None else monotonic() - self._busy_since

    @property
    def inbox_batches(self) -> int:
        """Batches that wait for the engine, of `INBOX_BATCHES` at most."""
        return self._inbox.qsize()

    @property
    def outbox(self) -> Outbox:
        return self._outbox

    def now(self) -> datetime:
        """The runtime's time."""
        return self._clock()

    def unclaimed(self) -> dict[str, int]:
        """Receivers that are no longer configured, with the number of messages that wait for them."""
        return self._outbox.unclaimed()

    async def close(self) -> None:
        """After `run`: give the channels' connections back."""
        await self._outbox.close()

    def outbox_failures(self) -> dict[str, str]:
        """Receiver to its last failure, while it fails."""
        return dict(self._outbox.failures)

    async def reload(self, rules: Iterable[Rule]) -> None:
        """Go on with other rules, stored like any other step."""
        async with self._stepping:
            step, reloaded = self.engine.reload(rules, self._clock())
            self._wake = step.next_wake
            await self._commit(step)
        for rule_id, subjects in reloaded.demoted:
            log.warning("new rule %s would fire on %d subjects at once: told as one digest", rule_id, subjects)
        log.info(
            "rulebook reloaded: %d new, %d changed, %d removed",
            *map(len, (reloaded.added, reloaded.changed, reloaded.removed)),
        )

    async def run(self, sources: Sequence[Source]) -> None:
        """
        Run until cancelled, or until a part fails.

        Raises:
            ExceptionGroup: Of what failed.
        """
        self._outbox.start_with(self.emit)
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._outbox.run(), name="outbox")
            tasks.create_task(self._loop(), name="engine")
            if self.engine.desk.may_have_forgotten(self._clock()):
                recall = Recall(self._outbox.channels, self._clock)
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(RECALL_WITHIN_S):
                        await self.emit(await recall.once())
                tasks.create_task(recall.run(self.emit), name="recall")
            for source in sources:
                tasks.create_task(source.run(self.emit), name=type(source).__name__)

    async def _loop(self) -> None:
        while True:
            self._busy_since = None
            batch = await self._next()
            self._busy_since = monotonic()
            for start in range(0, max(len(batch), 1), SLICE_EVENTS):
                async with self._stepping:
                    events = batch[start : start + SLICE_EVENTS]
                    began, at = self._clock(), monotonic()
                    step = self.engine.handle(events, began)
                    handled = monotonic()
                    self._wake = step.next_wake
                    await self._commit(step, [event.effect_id for event in events if isinstance(event, StepDone)])
                self._busy_since = monotonic()
                _log(step)
                for observe in self.observers:
                    observe(step)
                for watch in self.watches:
                    times = StepTimes(began, self._clock(), handled - at, self._busy_since - handled)
                    watch(events, step, times)
                self._done += len(events)
                await asyncio.sleep(0)
            while self._to_acknowledge:
                waiting = self._to_acknowledge.pop()
                if not waiting.done():  # it may have given up
                    waiting.set_result(None)

    async def _next(self) -> list[Event]:
        """The next events, or none when the engine wants to be called by itself."""
        if self._wake is None:
            return self._drain(await self._inbox.get())
        timeout = max((self._wake - self._clock()) / timedelta(seconds=1), SHORTEST_WAIT_S)
        # Not wait_for: in Python 3.11 it loses a cancellation that comes together with an event, and the stop hangs.
        try:
            async with asyncio.timeout(self._clock.real_s(timeout)):
                batch = await self._inbox.get()
        except TimeoutError:
            return []
        return self._drain(batch)

    def _drain(self, first: list[Event] | asyncio.Future[None]) -> list[Event]:
        """What else has arrived meanwhile: fewer, larger steps when the engine is behind."""
        batch = self._taken(first)
        while len(batch) < SLICE_EVENTS and not self._inbox.empty():
            batch = batch + self._taken(self._inbox.get_nowait())
        return batch

    def _taken(self, item: list[Event] | asyncio.Future[None]) -> list[Event]:
        if isinstance(item, asyncio.Future):
            self._to_acknowledge.append(item)
            return []
        return item

    async def _commit(self, step: Step, heard: Sequence[str] = ()) -> None:
        """
        Store the step; then those who asked are answered.

        Args:
            heard: Steps in the cluster whose answers it has taken in: their keeping ends with this transaction.
        """
        if step.saves or step.effects or step.records or heard:
            await self._store_step(step, heard)
        for reply in step.replies:
            for answer in self._questions.pop(reply.request_id, ()):
                if not answer.done():  # it may have given up
                    answer.set_result(reply)

    async def _store_step(self, step: Step, heard: Sequence[str]) -> None:
        while True:
            try:
                now = self._clock().timestamp()
                stored = self._store.commit(step.saves, step.effects, step.records, heard=heard, now=now)
                if stored is not None:  # a server's answer is waited for
                    await stored
            except StoreBusyError as error:
                if not self.stalled:
                    log.error("state not stored, input waits: %s; free some space, it then goes on by itself", error)
                self.stalled = str(error)
                await asyncio.sleep(STORE_RETRY_S)
            else:
                if self.stalled:
                    log.warning("state is stored again; input goes on")
                self.stalled = ""
                if step.effects:
                    self._outbox.nudge()
                return


def _log(step: Step) -> None:
    """Every decision with its reason, in the words of `explain`."""
    for change in step.changes:
        alert = change.alert
        if change.was is not alert.state:
            log.info(
                "alert %s on %s: %s → %s (%s)", alert.rule_id, alert.subject, change.was, alert.state, change.reason,
                extra=about(rule=alert.rule_id, subject=alert.subject, reason=change.reason,
                            namespace=alert.labels.get("namespace"), workload=alert.labels.get("workload"),
                            component=alert.labels.get("component")),
            )  # fmt: skip
    for effect in step.effects:
        if isinstance(effect, Notify):
            log.info(
                "incident %s: %s, revision %d to %s", effect.incident, effect.reason, effect.revision, effect.receiver,
                extra=about(incident=effect.incident, reason=effect.reason, receiver=effect.receiver,
                            namespace=effect.message.labels.get("namespace"),
                            workload=effect.message.labels.get("inference_workload"),
                            component=effect.message.labels.get("inference_workload_component"),
                            plan=effect.message.plan.plan_id if effect.message.plan is not None else ""),
            )  # fmt: skip
        elif isinstance(effect, Act):
            log.info(
                "plan %s: step %d, %s", effect.plan.id, effect.number, effect.purpose,
                extra=about(plan=effect.plan.id, step=effect.id, incident=effect.incident, reason=effect.purpose),
            )  # fmt: skip
