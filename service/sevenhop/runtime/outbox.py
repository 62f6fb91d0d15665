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
from collections.abc import Awaitable, Callable, Mapping, Sequence
from datetime import UTC, datetime
from inspect import isawaitable
from time import monotonic
from typing import TypeVar

import msgspec

from sevenhop.actions.errors import RetryableActError, UncertainActError
from sevenhop.channels.channel import (
    Channel,
    PermanentDeliveryError,
    RetryableDeliveryError,
    UncertainDeliveryError,
)
from sevenhop.core.effects import CLUSTER, Act, Effect, Notify, Row
from sevenhop.core.events import Event, Outcome, SourceChanged, StepDone, StepResult, SyncState
from sevenhop.core.facts.source import OUTBOX
from sevenhop.core.words import counted, inflected
from sevenhop.runtime.acting import Acting
from sevenhop.runtime.clock import Clock
from sevenhop.stores.store import Parcel, Store, StoreBusyError, UnreadableStepError
from sevenhop.telemetry.logs import about
from sevenhop.telemetry.table import DeliveryOutcome

log = logging.getLogger("sevenhop.outbox")

Written = TypeVar("Written")

SHOWN = "shown"
"""Table of the store: where a receiver shows an incident."""

FIRST_RETRY_S = 1.0
LONGEST_RETRY_S = 60.0
STORE_RETRY_S = 2.0
CLOSE_WITHIN_S = 1.0


def _place_of(notify: Notify) -> str:
    return f"{notify.receiver}/{notify.incident}"


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
        self, store: Store, channels: Mapping[str, Channel], clock: Clock, acting: Acting | None = None
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
        self._shown: dict[str, str] | None = None  # receiver and incident → where it is shown; None until read
        self.waiting_since: dict[str, datetime] = {}  # receiver → since when it takes nothing of what waits
        self.watches: list[Callable[[str, Effect, DeliveryOutcome, float], None]] = []  # with the seconds it took

    def start_with(self, emit: Callable[[list[Event]], Awaitable[None]]) -> None:
        """Where outcomes go."""
        self._emit = emit

    @property
    def receivers(self) -> tuple[str, ...]:
        """All that may be delivered to, with `CLUSTER` where steps are carried out."""
        return self._receivers

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
                "receiver %s is no longer configured, and %s for it; add it again, or nothing of that is told",
                name, f"{counted(count, 'message')} {inflected(count, 'waits', 'wait')}",
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
                self.waiting_since.pop(receiver, None)
                await wanted.wait()
                continue
            self._waits(receiver, parcel)
            wait_s = parcel.due - self._clock().timestamp()
            if wait_s > 0:
                # A newer revision may supersede it meanwhile, so look again when nudged.
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(self._clock.real_s(wait_s)):
                        await wanted.wait()
                continue
            await self._deliver(receiver, parcel)

    def _waits(self, receiver: str, parcel: Parcel) -> None:
        """The oldest parcel's age: before its first attempt it is due since it was made."""
        now = self._clock()
        since = min(now, datetime.fromtimestamp(parcel.due, tz=UTC)) if parcel.attempts == 0 else now
        self.waiting_since.setdefault(receiver, since)

    def _watch(self, receiver: str, parcel: Parcel, outcome: DeliveryOutcome, began: float) -> None:
        if outcome in (DeliveryOutcome.DELIVERED, DeliveryOutcome.REFUSED):
            self.waiting_since.pop(receiver, None)
        for watch in self.watches:
            watch(receiver, parcel.effect, outcome, monotonic() - began)

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
        began = monotonic()
        try:
            done = await self._acting.carry_out(act, uncertain=parcel.was_sending, attempts=parcel.attempts)
        except RetryableActError as error:
            self._watch(CLUSTER, parcel, DeliveryOutcome.RETRIED, began)
            await self._later(CLUSTER, parcel, error, error.retry_after, certain=not parcel.was_sending)
        except UncertainActError as error:
            self._watch(CLUSTER, parcel, DeliveryOutcome.UNCERTAIN, began)
            await self._later(CLUSTER, parcel, error, None, certain=False)
        except Exception as error:  # noqa: BLE001  a fault of ours: it may have been in the middle, so look again
            log.error(
                "step %s: fault in the executor: %s: %s", act.id, type(error).__name__, error,
                extra=about(step=act.id, plan=act.plan.id, incident=act.incident),
            )  # fmt: skip
            self._watch(CLUSTER, parcel, DeliveryOutcome.FAULT, began)
            await self._later(CLUSTER, parcel, error, None, certain=False)
        else:
            self.failures.pop(CLUSTER, None)
            is_refused = done.result is StepResult.REFUSED
            self._watch(CLUSTER, parcel, DeliveryOutcome.REFUSED if is_refused else DeliveryOutcome.DELIVERED, began)
            await self._finish_step(parcel.seq, done)
        await self._tell_state()

    async def _deliver(self, receiver: str, parcel: Parcel) -> None:
        notify = parcel.effect
        if isinstance(notify, Act):
            await self._act(parcel, notify)
            return
        channel = self.channels[receiver]
        notify = self._up_to_date(notify)
        if not await self._stored(lambda: self._store.begin_sending(parcel.seq)):
            return  # superseded while the store was busy; posting it too would tell the same twice
        began = monotonic()
        try:
            delivery = await channel.deliver(notify, uncertain=parcel.was_sending)
        except RetryableDeliveryError as error:
            self._watch(receiver, parcel, DeliveryOutcome.RETRIED, began)
            await self._later(receiver, parcel, error, error.retry_after, certain=not parcel.was_sending)
        except UncertainDeliveryError as error:
            self._watch(receiver, parcel, DeliveryOutcome.UNCERTAIN, began)
            await self._later(receiver, parcel, error, None, certain=False)
        except PermanentDeliveryError as error:
            self.failures[receiver] = str(error)
            log.error(
                "receiver %s refuses incident %s: %s", receiver, notify.incident, error,
                extra=about(receiver=receiver, incident=notify.incident),
            )  # fmt: skip
            self._watch(receiver, parcel, DeliveryOutcome.REFUSED, began)
            await self._done(parcel, delivered=False, reference="", detail=str(error))
        except Exception as error:  # noqa: BLE001  a fault of ours in one channel must not silence the others
            log.error(
                "receiver %s: fault in its channel: %s: %s", receiver, type(error).__name__, error,
                extra=about(receiver=receiver, incident=notify.incident),
            )  # fmt: skip
            self._watch(receiver, parcel, DeliveryOutcome.FAULT, began)
            await self._later(receiver, parcel, error, None, certain=False)
        else:
            if self.failures.pop(receiver, None):
                log.warning("receiver %s delivers again", receiver, extra=about(receiver=receiver))
            self._watch(receiver, parcel, DeliveryOutcome.DELIVERED, began)
            rows = self._note_place(notify, delivery.reference)
            await self._done(parcel, delivered=True, reference=delivery.reference, detail="", rows=rows)
        await self._tell_state()

    async def _later(
        self, receiver: str, parcel: Parcel, error: Exception, retry_after: float | None, *, certain: bool
    ) -> None:
        delay = retry_delay_s(parcel.attempts + 1, retry_after)
        if receiver not in self.failures:
            log.warning(
                "receiver %s: %s; trying again in %.0f s, nothing is lost", receiver, error, delay,
                extra=about(receiver=receiver),
            )  # fmt: skip
        self.failures[receiver] = str(error)
        due = self._clock().timestamp() + delay
        await self._stored(lambda: self._store.postpone(parcel.seq, due, certain=certain))

    def _up_to_date(self, notify: Notify) -> Notify:
        """
        With where the incident is shown now.

        What was asked for while an earlier message was under way names the place that was known then: after a post
        anew that is the older message, and an edit of it would leave the newer one as it is.
        """
        place = self._places().get(_place_of(notify), "")
        return msgspec.structs.replace(notify, reference=place) if place else notify

    def _note_place(self, notify: Notify, reference: str) -> list[Row]:
        """Remember where it is shown, over a restart too; forgotten with the incident's end."""
        place = _place_of(notify)
        known = self._places().get(place)
        if notify.message.status == "resolved":
            if known is None:
                return []
            del self._places()[place]
            return [Row(SHOWN, place, None)]
        if not reference or reference == known:
            return []
        self._places()[place] = reference
        return [Row(SHOWN, place, reference.encode())]

    def _places(self) -> dict[str, str]:
        if self._shown is None:
            rows = (row for row in self._store.rows() if row.table == SHOWN and row.value is not None)
            self._shown = {row.key: row.value.decode("utf-8", "replace") for row in rows if row.value is not None}
        return self._shown

    async def _done(
        self, parcel: Parcel, *, delivered: bool, reference: str, detail: str, rows: Sequence[Row] = ()
    ) -> None:
        now = self._clock()
        outcome = Outcome(at=now, effect_id=parcel.effect.id, delivered=delivered, reference=reference, detail=detail)
        # Finished first: a crash after it loses only the reference, which the channel can be asked for.
        finished_at = now.astimezone(UTC).timestamp()
        await self._stored(lambda: self._store.finish(parcel.seq, parcel.effect.id, rows, now=finished_at))
        if self._emit is not None:
            await self._emit([outcome])

    async def _stored(self, write: Callable[[], Written | Awaitable[Written]]) -> Written:
        """Write, however long that takes: going on without would forget what was sent."""
        while True:
            try:
                written = write()
                return (await written) if isawaitable(written) else written
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
