"""
Delivers what the core asked for: in order per receiver, never lost, and not twice where the channel can be asked.

    pending ──► sending ──► (arrived | refused for good) gone from the outbox, an Outcome goes to the core
       ▲           │
       ├── surely did not arrive: later again
       └── uncertain (a crash, a time-out): stays `sending`, and the channel is asked before it is sent again

Steps in the cluster go the same way, to `acting` instead of a channel; their answers are kept until the engine has
stored what it made of them.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Awaitable, Callable, Mapping
from datetime import UTC
from typing import TypeVar

from sevenhop.actions.errors import RetryableActError, UncertainActError
from sevenhop.channels.channel import (
    Channel,
    PermanentDeliveryError,
    RetryableDeliveryError,
    UncertainDeliveryError,
)
from sevenhop.core.effects import CLUSTER, Act
from sevenhop.core.events import Event, Outcome, SourceChanged, StepDone, StepResult, SyncState
from sevenhop.core.facts.source import OUTBOX
from sevenhop.runtime.acting import Acting
from sevenhop.runtime.clock import Clock
from sevenhop.stores.sqlite import Parcel, SqliteStore, StoreBusyError, UnreadableStepError

log = logging.getLogger("sevenhop.outbox")

Written = TypeVar("Written")

FIRST_RETRY_S = 1.0
LONGEST_RETRY_S = 60.0
STORE_RETRY_S = 2.0
CLOSE_WITHIN_S = 1.0


def retry_delay_s(attempts: int, retry_after: float | None) -> float:
    """
    Seconds until the next attempt: what the receiver asks for, else doubling from one second to a minute.

    >>> [retry_delay_s(n, None) for n in (1, 2, 3, 9)]
    [1.0, 2.0, 4.0, 60.0]
    """
    doubled = min(FIRST_RETRY_S * 2 ** min(attempts - 1, 16), LONGEST_RETRY_S)
    return doubled if retry_after is None else max(retry_after, 0.0)


class Outbox:
    """One task per receiver that has something to deliver."""

    def __init__(
        self, store: SqliteStore, channels: Mapping[str, Channel], clock: Clock, acting: Acting | None = None
    ) -> None:
        """
        Args:
            acting: Carries out steps in the cluster; None where nothing may be done there.

        Raises:
            ValueError: A channel has the name that steps in the cluster are sent to.
        """
        if CLUSTER in channels:
            raise ValueError(f"a receiver cannot be called {CLUSTER!r}: that name is taken; choose another one")
        self._store = store
        self.channels = channels
        self._clock = clock
        self._acting = acting
        self._receivers = (*channels, CLUSTER) if acting is not None else tuple(channels)
        self._wanted = {name: asyncio.Event() for name in self._receivers}
        self._emit: Callable[[list[Event]], Awaitable[None]] | None = None
        self.failures: dict[str, str] = {}  # receiver → last failure, until it delivers again
        self._told: tuple[str, ...] | None = None  # the receivers that fail, as the core was last told

    def start_with(self, emit: Callable[[list[Event]], Awaitable[None]]) -> None:
        """Where outcomes go."""
        self._emit = emit

    def nudge(self) -> None:
        """Something new lies in the outbox."""
        for event in self._wanted.values():
            event.set()

    def unclaimed(self) -> dict[str, int]:
        """Receivers that are no longer configured, with the number of messages that wait for them."""
        return {name: count for name, count in self._store.waiting_for().items() if name not in self._receivers}

    async def run(self) -> None:
        """Deliver until cancelled."""
        for name, count in self.unclaimed().items():
            log.error(
                "receiver %s is no longer configured, and %d messages wait for it; add it again or they stay",
                name, count,
            )  # fmt: skip
        await self._tell_state()
        if self._emit is not None and (answers := self._store.answers()):
            await self._emit([*answers])  # an earlier process ended before its engine had taken these in
        async with asyncio.TaskGroup() as tasks:
            for name in self._receivers:
                tasks.create_task(self._serve(name), name=f"outbox {name}")

    async def close(self) -> None:
        """Give the channels' connections back; what hangs is left."""
        for channel in self.channels.values():
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(CLOSE_WITHIN_S):
                    await channel.close()

    async def _serve(self, receiver: str) -> None:
        wanted = self._wanted[receiver]
        while True:
            wanted.clear()
            try:
                parcel = await self._first(receiver)
            except UnreadableStepError as error:
                await self._give_up_step(error)
                continue
            await self._tell_unreadable()
            if parcel is None:
                await wanted.wait()
                continue
            wait_s = parcel.due - self._clock().timestamp()
            if wait_s > 0:
                # A newer revision may supersede it meanwhile, so look again when nudged.
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(self._clock.real_s(wait_s)):
                        await wanted.wait()
                continue
            await self._deliver(receiver, parcel)

    async def _first(self, receiver: str) -> Parcel | None:
        while True:
            try:
                return self._store.first(receiver)
            except StoreBusyError as error:
                await self._wait_for_store(error)

    async def _tell_unreadable(self) -> None:
        """As refused: what is still true is then written again, so a damaged message is late and not lost."""
        while self._store.unreadable:
            receiver, effect_id, why = self._store.unreadable.pop(0)
            log.error("message %s for %s cannot be read, and is written again later: %s", effect_id, receiver, why)
            if self._emit is not None:
                detail = f"cannot be read: {why}"
                await self._emit([Outcome(at=self._clock(), effect_id=effect_id, delivered=False, detail=detail)])

    async def _give_up_step(self, error: UnreadableStepError) -> None:
        log.error("step %s cannot be read, so a person must look whether it was done: %s", error.effect_id, error)
        detail = f"the step cannot be read any more ({error}); look at the donor"
        done = StepDone(at=self._clock(), effect_id=error.effect_id, result=StepResult.UNKNOWN, detail=detail)
        await self._finish_step(error.seq, done)

    async def _finish_step(self, seq: int, done: StepDone) -> None:
        now = self._clock().astimezone(UTC).timestamp()
        await self._stored(lambda: self._store.finish_step(seq, done, now=now))
        if self._emit is not None:
            await self._emit([done])

    async def _act(self, parcel: Parcel, act: Act) -> None:
        assert self._acting is not None
        if not await self._stored(lambda: self._store.begin_sending(parcel.seq)):
            return
        try:
            done = await self._acting.carry_out(act, uncertain=parcel.was_sending, attempts=parcel.attempts)
        except RetryableActError as error:
            await self._later(CLUSTER, parcel, error, error.retry_after, certain=not parcel.was_sending)
        except UncertainActError as error:
            await self._later(CLUSTER, parcel, error, None, certain=False)
        except Exception as error:  # noqa: BLE001  a fault of ours: it may have been in the middle, so look again
            log.error("step %s: fault in the executor: %s: %s", act.id, type(error).__name__, error)
            await self._later(CLUSTER, parcel, error, None, certain=False)
        else:
            self.failures.pop(CLUSTER, None)
            await self._finish_step(parcel.seq, done)
        await self._tell_state()

    async def _deliver(self, receiver: str, parcel: Parcel) -> None:
        notify = parcel.effect
        if isinstance(notify, Act):
            await self._act(parcel, notify)
            return
        channel = self.channels[receiver]
        if not await self._stored(lambda: self._store.begin_sending(parcel.seq)):
            return  # superseded while the store was busy; posting it too would tell the same twice
        try:
            delivery = await channel.deliver(notify, uncertain=parcel.was_sending)
        except RetryableDeliveryError as error:
            await self._later(receiver, parcel, error, error.retry_after, certain=not parcel.was_sending)
        except UncertainDeliveryError as error:
            await self._later(receiver, parcel, error, None, certain=False)
        except PermanentDeliveryError as error:
            self.failures[receiver] = str(error)
            log.error("receiver %s refuses incident %s: %s", receiver, notify.incident, error)
            await self._done(parcel, delivered=False, reference="", detail=str(error))
        except Exception as error:  # noqa: BLE001  a fault of ours in one channel must not silence the others
            log.error("receiver %s: fault in its channel: %s: %s", receiver, type(error).__name__, error)
            await self._later(receiver, parcel, error, None, certain=False)
        else:
            if self.failures.pop(receiver, None):
                log.warning("receiver %s delivers again", receiver)
            await self._done(parcel, delivered=True, reference=delivery.reference, detail="")
        await self._tell_state()

    async def _later(
        self, receiver: str, parcel: Parcel, error: Exception, retry_after: float | None, *, certain: bool
    ) -> None:
        delay = retry_delay_s(parcel.attempts + 1, retry_after)
        if receiver not in self.failures:
            log.warning("receiver %s: %s; trying again in %.0f s, nothing is lost", receiver, error, delay)
        self.failures[receiver] = str(error)
        due = self._clock().timestamp() + delay
        await self._stored(lambda: self._store.postpone(parcel.seq, due, certain=certain))

    async def _done(self, parcel: Parcel, *, delivered: bool, reference: str, detail: str) -> None:
        now = self._clock()
        outcome = Outcome(at=now, effect_id=parcel.effect.id, delivered=delivered, reference=reference, detail=detail)
        # Finished first: a crash after it loses only the reference, which the channel can be asked for.
        finished_at = now.astimezone(UTC).timestamp()
        await self._stored(lambda: self._store.finish(parcel.seq, parcel.effect.id, now=finished_at))
        if self._emit is not None:
            await self._emit([outcome])

    async def _stored(self, write: Callable[[], Written]) -> Written:
        """Write, however long that takes: going on without would forget what was sent."""
        while True:
            try:
                return write()
            except StoreBusyError as error:
                await self._wait_for_store(error)

    async def _wait_for_store(self, error: StoreBusyError) -> None:
        # The engine's loop says it at a level that people see; it meets the same trouble.
        log.debug("outbox waits for the store: %s", error)
        await asyncio.sleep(STORE_RETRY_S)

    async def _tell_state(self) -> None:
        """Which receivers fail is a fact about ourselves: a rule on it tells the receivers that still answer."""
        failing = tuple(sorted(self.failures))
        if self._emit is None or failing == self._told:
            return
        self._told = failing
        detail = "; ".join(f"{name}: {self.failures[name]}" for name in failing)
        state = SyncState.STALE if failing else SyncState.SYNCED
        await self._emit([SourceChanged(at=self._clock(), kind=OUTBOX, state=state, detail=detail)])
