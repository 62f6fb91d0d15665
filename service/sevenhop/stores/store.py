"""
What a store promises, whichever it is; `tests/conformance/test_stores.py` holds each to it.

Reading answers at once.  Writing may have to wait for a server: then what a method returns is to be awaited.
"""

from __future__ import annotations

from collections.abc import Awaitable, Iterable, Sequence
from typing import Protocol

import msgspec

from sevenhop.core.effects import Act, Effect, Notify, Row
from sevenhop.core.events import StepDone
from sevenhop.core.remediation.audit import AuditRecord, Head


class StoreError(Exception):
    """The state cannot be used; the message names the place and what to do."""


class StoreBusyError(StoreError):
    """Nothing was stored, and the same call may succeed later: the disk is full, or the file is locked."""


class Parcel(msgspec.Struct, frozen=True, gc=False):
    """
    One effect in the outbox.

    `was_sending` means that an earlier process died, or a call timed out, while it was being sent: whether it arrived
    is not known.
    """

    seq: int
    effect: Notify | Act
    attempts: int
    due: float
    was_sending: bool


class UnreadableStepError(StoreError):
    """
    A step in the cluster that cannot be read (damaged, or of another version): nobody knows whether it was begun.

    Attributes:
        seq, effect_id: As in the outbox.
    """

    def __init__(self, seq: int, effect_id: str, why: str) -> None:
        super().__init__(why)
        self.seq = seq
        self.effect_id = effect_id


class Store(Protocol):
    """
    State rows, outbox, answers and audit trail of one cluster's engine.

    Attributes:
        unreadable: (receiver, effect id, why) of messages that the outbox lost.
    """

    unreadable: list[tuple[str, str, str]]

    def rows(self) -> Iterable[Row]:
        """Everything that was stored, in order of table and key."""
        ...

    def commit(
        self,
        rows: Iterable[Row],
        effects: Sequence[Effect] = (),
        records: Iterable[AuditRecord] = (),
        *,
        heard: Iterable[str] = (),
        now: float,
    ) -> Awaitable[None] | None:
        """
        Store one step: all of it or nothing.

        An effect whose id was already asked for is not asked for again.  A newer revision for the same receiver and
        incident takes the place of an unsent older one, and posts anew if that one would have.  Steps in the cluster
        take nobody's place.

        Args:
            records: Of the audit trail; they follow the last one that is stored.
            heard: Ids of steps whose answers (`answers`) this step has taken in.

        Raises:
            StoreBusyError: Nothing was stored; keep the step and try again.
            StoreError: The state cannot be used any more.
        """
        ...

    def receivers(self) -> list[str]:
        """Receivers that something waits for."""
        ...

    def first(self, receiver: str) -> Parcel | None:
        """
        The oldest parcel of a receiver: one at a time, so that trigger and resolve keep their order.

        Steps in the cluster keep the order of their own plan; of several plans the step that is due first comes: one
        that has to be tried again and again must not keep another donor from getting back what is theirs.

        Raises:
            UnreadableStepError: A step in the cluster; it stays until `finish_step`.
        """
        ...

    def begin_sending(self, seq: int) -> Awaitable[bool] | bool:
        """From here on it may have arrived; False if a newer revision took its place.  Errors as `commit`."""
        ...

    def postpone(self, seq: int, due: float, *, certain: bool) -> Awaitable[None] | None:
        """Try again at `due`; `certain` says that it surely did not arrive.  Errors as `commit`."""
        ...

    def finish(self, seq: int, effect_id: str, rows: Iterable[Row] = (), *, now: float) -> Awaitable[None] | None:
        """It arrived, or was refused for good: out of the outbox, and never again.  Errors as `commit`."""
        ...

    def finish_step(self, seq: int, done: StepDone, *, now: float) -> Awaitable[None] | None:
        """It is known what came of a step: out of the outbox, never done again, and kept for the engine."""
        ...

    def answers(self) -> list[StepDone]:
        """What came of steps and was not taken in by the engine, oldest first."""
        ...

    def last_record(self) -> AuditRecord | Head | None:
        """What the next record of the audit trail is appended to."""
        ...

    def audit_head(self) -> Head | None:
        """Number and hash of the record that was written last, kept apart from the trail."""
        ...

    def waiting_for(self) -> dict[str, int]:
        """Receiver to the number of parcels that wait for it."""
        ...

    def waiting(self) -> tuple[int, float | None]:
        """(parcels in the outbox, due time of the oldest)."""
        ...
