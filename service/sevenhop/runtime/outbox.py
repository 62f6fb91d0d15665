"""
Delivers what the core asked for: in order per receiver, never lost, and not twice where the channel can be asked.

    pending ──► sending ──► (arrived | refused for good) gone from the outbox, an Outcome goes to the core
       ▲           │
       ├── surely did not arrive: later again
       └── uncertain (a crash, a time-out): stays `sending`, and the channel is asked before it is sent again
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Awaitable, Callable, Mapping
from datetime import UTC

from sevenhop.channels.channel import (
    Channel,
    PermanentDeliveryError,
    RetryableDeliveryError,
    UncertainDeliveryError,
)
from sevenhop.core.events import Event, Outcome, SourceChanged, SyncState
from sevenhop.core.facts.source import OUTBOX
from sevenhop.runtime.clock import Clock
from sevenhop.stores.sqlite import Parcel, SqliteStore, StoreBusyError

log = logging.getLogger("sevenhop.outbox")

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

    def __init__(self, store: SqliteStore, channels: Mapping[str, Channel], clock: Clock) -> None:
        self._store = store
        self.channels = channels
        self._clock = clock
        self._wanted = {name: asyncio.Event() for name in channels}
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
        return {name: count for name, count in self._store.waiting_for().items() if name not in self.channels}

    async def run(self) -> None:
        """Deliver until cancelled."""
        for name, count in self.unclaimed().items():
            log.error(
                "receiver %s is no longer configured, and %d messages wait for it; add it again or they stay",
                name, count,
            )  # fmt: skip
        await self._tell_state()
        async with asyncio.TaskGroup() as tasks:
            for name in self.channels:
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
            parcel = await self._first(receiver)
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
            finally:
                while self._store.problems:
                    log.error("left out, it cannot be read: %s", self._store.problems.pop(0))

    async def _deliver(self, receiver: str, parcel: Parcel) -> None:
        channel = self.channels[receiver]
        notify = parcel.effect
        await self._stored(lambda: self._store.begin_sending(parcel.seq))
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

    async def _stored(self, write: Callable[[], None]) -> None:
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
