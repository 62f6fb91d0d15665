"""
The shared store: one cluster's state in Redis, behind a fence.

All of it is small (alerts, incidents, what waits to be told) and has one writer, so it is kept in memory too: reading
asks nobody, and Redis sees each step as one write.

Fields of the fence's `data`: cluster, table and key, separated by 0x1f.  Tables of ours begin with ``@``:
    @outbox   number → one parcel        @sent, @acted   effect id → when
    @answers  effect id → StepDone       @audit          head → number and hash of the last record
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime

import msgspec

from sevenhop.core.effects import CLUSTER, Act, Effect, Notify, Row
from sevenhop.core.events import StepDone, StepResult
from sevenhop.core.remediation.audit import AuditRecord, Head, line_of
from sevenhop.stores.redis_fence import Changes, Fence
from sevenhop.stores.store import Parcel, UnreadableStepError

_MARK = "\x1f"
_OUTBOX, _SENT, _ACTED, _ANSWERS, _AUDIT = "@outbox", "@sent", "@acted", "@answers", "@audit"

_SENT_KEPT = 10_000
"""As in the embedded store."""


class _Waiting(msgspec.Struct):
    """A parcel as it is kept."""

    id: str
    receiver: str
    incident: str
    revision: int
    state: str  # pending, sending
    attempts: int
    due: float
    effect: msgspec.Raw


class _Effect(msgspec.Struct):
    """As much of an effect as is read without being sure that the rest can be."""

    anew: bool = False


_waiting = msgspec.json.Decoder(_Waiting)
_effects = msgspec.json.Decoder(Notify | Act)
_answers = msgspec.json.Decoder(StepDone)
_is_anew = msgspec.json.Decoder(_Effect)


def field_of(cluster: str, table: str, key: str) -> bytes:
    """The field of `data` that holds a row."""
    return _MARK.join((cluster, table, key)).encode()


def clusters_in(fields: Iterable[bytes]) -> set[str]:
    """The clusters of which a place keeps something."""
    return {field.partition(_MARK.encode())[0].decode() for field in fields}


class RedisStore:
    """
    See `Store`.

    The fence must be claimed before; after a claim that found something new, make a new one.
    """

    def __init__(self, fence: Fence, cluster: str) -> None:
        self._fence = fence
        self._cluster = cluster
        self.unreadable: list[tuple[str, str, str]] = []
        self._rows: dict[tuple[str, str], bytes] = {}
        self._outbox: dict[int, _Waiting] = {}
        self._times: dict[str, dict[str, float]] = {_SENT: {}, _ACTED: {}}
        self._answers: dict[str, bytes] = {}
        self._head: Head | None = None
        self._trail: list[bytes] = []
        self.set_aside = None  # nothing damaged is ever moved away
        self._seq = 0
        self._read(fence.fields)

    # What it answers

    def rows(self) -> Iterable[Row]:
        return [Row(table, key, self._rows[table, key]) for table, key in sorted(self._rows)]

    def receivers(self) -> list[str]:
        return sorted({waiting.receiver for waiting in self._outbox.values()})

    def waiting_for(self) -> dict[str, int]:
        return {name: sum(waiting.receiver == name for waiting in self._outbox.values()) for name in self.receivers()}

    def waiting(self) -> tuple[int, float | None]:
        return len(self._outbox), min((waiting.due for waiting in self._outbox.values()), default=None)

    def answers(self) -> list[StepDone]:
        found = []
        for effect_id, event in self._answers.items():
            try:
                found.append(_answers.decode(event))
            except msgspec.MsgspecError as error:
                when = datetime.fromtimestamp(self._times[_ACTED].get(effect_id, 0), UTC)
                detail = f"what came of it cannot be read any more ({error}); look at the donor"
                found.append(StepDone(at=when, effect_id=effect_id, result=StepResult.UNKNOWN, detail=detail))
        return sorted(found, key=lambda done: done.at)

    def last_record(self) -> AuditRecord | Head | None:
        return self._head

    def audit_head(self) -> Head | None:
        return self._head

    def audit_lines(self) -> Iterator[bytes]:
        """The audit trail as it is kept, as far as it was loaded (`load_trail`) or written since."""
        return iter(self._trail)

    async def load_trail(self) -> None:
        """Read the trail of earlier processes, once, before the first step."""
        self._trail = [*await self._fence.audit_lines(self._cluster), *self._trail]

    def why_not_writable(self) -> str:
        """Why nothing is stored now; empty while it is."""
        return self._fence.stalled

    def close(self) -> None:
        """Nothing to do: the client is its maker's."""

    def first(self, receiver: str) -> Parcel | None:
        for seq in self._in_order(receiver):
            waiting = self._outbox[seq]
            try:
                effect = _effects.decode(waiting.effect)
            except msgspec.MsgspecError as error:
                if receiver == CLUSTER:
                    raise UnreadableStepError(seq, waiting.id, str(error)) from None
                # It would hold up all behind it for ever.  Out of Redis it goes with the next write.
                self.unreadable.append((receiver, waiting.id, str(error)))
                self._damaged.append(seq)
                del self._outbox[seq]
                continue
            return Parcel(seq, effect, waiting.attempts, waiting.due, waiting.state == "sending")
        return None

    def _in_order(self, receiver: str) -> list[int]:
        """Oldest first; of steps in the cluster only the oldest of each plan, the one that is due first in front."""
        seqs = [seq for seq in sorted(self._outbox) if self._outbox[seq].receiver == receiver]
        if receiver != CLUSTER:
            return seqs
        heads: dict[str, int] = {}
        for seq in seqs:
            heads.setdefault(self._outbox[seq].id.partition("/")[0], seq)
        return sorted(heads.values(), key=lambda seq: (self._outbox[seq].due, seq))

    # What changes it

    def commit(
        self,
        rows: Iterable[Row],
        effects: Sequence[Effect] = (),
        records: Iterable[AuditRecord] = (),
        *,
        heard: Iterable[str] = (),
        now: float,
    ) -> Awaitable[None]:
        changes = Changes()
        self.stage(changes, rows, effects, records, heard=heard, now=now)
        # A task, so that it is stored even if nobody waits: later writes come after it.
        return asyncio.ensure_future(self._fence.write(changes))

    def stage(
        self,
        changes: Changes,
        rows: Iterable[Row],
        effects: Sequence[Effect] = (),
        records: Iterable[AuditRecord] = (),
        *,
        heard: Iterable[str] = (),
        now: float,
    ) -> None:
        """`commit` as part of a larger write, which must be handed to the fence before anything else is awaited."""
        for row in rows:
            self._save(changes, row)
        for effect in effects:
            self._enqueue(changes, effect, now)
        for record in records:
            if self._head is not None and record.number <= self._head.number:
                raise ValueError(f"the audit trail has a record {record.number}: it is only appended to")
            line = line_of(record)
            self._trail.append(line)
            changes.audit.append((self._cluster, line))
            self._head = Head(record.number, record.hash)
            self._put(changes, _AUDIT, "head", msgspec.json.encode(self._head))
        for effect_id in heard:
            if self._answers.pop(effect_id, None) is not None:
                self._put(changes, _ANSWERS, effect_id, None)

    async def begin_sending(self, seq: int) -> bool:
        waiting = self._outbox.get(seq)
        if waiting is None:
            return False
        changes = Changes()
        self._keep(changes, seq, msgspec.structs.replace(waiting, state="sending", attempts=waiting.attempts + 1))
        await self._fence.write(changes)
        return True

    async def postpone(self, seq: int, due: float, *, certain: bool) -> None:
        waiting = self._outbox.get(seq)
        if waiting is not None:
            changes = Changes()
            state = "pending" if certain else "sending"
            self._keep(changes, seq, msgspec.structs.replace(waiting, state=state, due=due))
            await self._fence.write(changes)

    async def finish(self, seq: int, effect_id: str, rows: Iterable[Row] = (), *, now: float) -> None:
        changes = Changes()
        self._drop(changes, seq)
        self._note(changes, _SENT, effect_id, now)
        for row in rows:
            self._save(changes, row)
        await self._fence.write(changes)

    async def finish_step(self, seq: int, done: StepDone, *, now: float) -> None:
        changes = Changes()
        self._drop(changes, seq)
        self._note(changes, _ACTED, done.effect_id, now)
        self._answers[done.effect_id] = event = msgspec.json.encode(done)
        self._put(changes, _ANSWERS, done.effect_id, event)
        await self._fence.write(changes)

    # How it is kept

    def _read(self, fields: Mapping[bytes, bytes]) -> None:
        self._damaged: list[int] = []
        for field, value in fields.items():
            cluster, table, key = field.decode().split(_MARK, 2)
            if cluster != self._cluster:
                continue
            if table == _OUTBOX:
                self._seq = max(self._seq, int(key))
                self._read_parcel(int(key), value)
            elif table in self._times:
                self._times[table][key] = float(value)
            elif table == _ANSWERS:
                self._answers[key] = value
            elif table == _AUDIT:
                self._head = msgspec.json.decode(value, type=Head)
            else:
                self._rows[table, key] = value
        for table, times in self._times.items():
            self._times[table] = dict(sorted(times.items(), key=lambda item: item[1]))

    def _read_parcel(self, seq: int, value: bytes) -> None:
        try:
            self._outbox[seq] = _waiting.decode(value)
        except msgspec.MsgspecError as error:
            self.unreadable.append(("", f"parcel {seq}", str(error)))
            self._damaged.append(seq)

    def _save(self, changes: Changes, row: Row) -> None:
        if row.value is None:
            self._rows.pop((row.table, row.key), None)
        else:
            self._rows[row.table, row.key] = row.value
        self._put(changes, row.table, row.key, row.value)

    def _enqueue(self, changes: Changes, effect: Effect, now: float) -> None:
        if not isinstance(effect, Notify | Act):
            raise TypeError(f"the outbox cannot carry a {type(effect).__name__}")
        done = self._times[_ACTED if isinstance(effect, Act) else _SENT]
        if effect.id in done:
            return
        if isinstance(effect, Notify):
            for seq, waiting in list(self._outbox.items()):
                is_older = waiting.state == "pending" and waiting.revision < effect.revision
                if is_older and (waiting.receiver, waiting.incident) == (effect.receiver, effect.incident):
                    if _is_anew.decode(waiting.effect).anew and not effect.anew:
                        effect = msgspec.structs.replace(effect, anew=True)
                    self._drop(changes, seq)
        if any(waiting.id == effect.id for waiting in self._outbox.values()):
            return
        self._seq += 1
        blob = msgspec.Raw(msgspec.json.encode(effect))
        waiting = _Waiting(effect.id, effect.receiver, effect.incident, effect.revision, "pending", 0, now, blob)
        self._keep(changes, self._seq, waiting)

    def _note(self, changes: Changes, table: str, effect_id: str, now: float) -> None:
        times = self._times[table]  # oldest first
        times.pop(effect_id, None)
        times[effect_id] = now
        self._put(changes, table, effect_id, repr(now).encode())
        while len(times) > _SENT_KEPT:
            oldest = next(iter(times))
            del times[oldest]
            self._put(changes, table, oldest, None)

    def _keep(self, changes: Changes, seq: int, waiting: _Waiting) -> None:
        self._outbox[seq] = waiting
        self._put(changes, _OUTBOX, f"{seq:012}", msgspec.json.encode(waiting))

    def _drop(self, changes: Changes, seq: int) -> None:
        if self._outbox.pop(seq, None) is not None:
            self._put(changes, _OUTBOX, f"{seq:012}", None)

    def _put(self, changes: Changes, table: str, key: str, value: bytes | None) -> None:
        while self._damaged:
            seq = self._damaged.pop()
            changes.fields[self._field(_OUTBOX, f"{seq:012}")] = None
        changes.fields[self._field(table, key)] = value

    def _field(self, table: str, key: str) -> bytes:
        return f"{self._cluster}{_MARK}{table}{_MARK}{key}".encode()
