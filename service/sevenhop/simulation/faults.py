"""Ways in which an API server, or what stands before it, misbehaves: added to a simulated server while it runs."""

# ruff: noqa: ARG002  one signature for all faults, and each uses what it needs

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass

Send = Callable[[bytes], Awaitable[None]]


@dataclass(frozen=True, slots=True)
class Call:
    """A request as a fault sees it; `verb` is the API's word (get, list, watch, create, …) or ``discovery``."""

    verb: str
    plural: str
    token: str = ""
    is_continued: bool = False


@dataclass(frozen=True, slots=True)
class Refusal:
    """An answer instead of the right one."""

    status: int
    reason: str = ""
    message: str = ""
    retry_after: str = ""


class CutError(Exception):
    """The connection is to be broken off here."""


@dataclass(kw_only=True)
class Fault:
    """
    Attributes:
        plural: Only calls on this resource; empty for all.
        verbs: Only calls with one of these verbs.
        times: For so many calls; None until it is removed.
        hits: Calls it has hit so far.
    """

    plural: str = ""
    verbs: Sequence[str] = ("list", "watch")
    times: int | None = 1
    hits: int = 0

    def applies(self, call: Call) -> bool:
        is_spent = self.times is not None and self.hits >= self.times
        return not is_spent and call.verb in self.verbs and self.plural in ("", call.plural)

    async def before(self, call: Call) -> Refusal | None:
        """Asked before the request is served; may take its time."""
        return None

    async def write(self, send: Send, lines: list[bytes]) -> None:
        """Sends the lines of a watch that became due together."""
        await send(b"".join(lines))

    async def after(self, call: Call) -> None:
        """Asked when the request was carried out, and not answered yet."""

    @property
    def is_stream(self) -> bool:
        return type(self).write is not Fault.write

    @property
    def is_late(self) -> bool:
        return type(self).after is not Fault.after


@dataclass(kw_only=True)
class Refuse(Fault):
    """429 (`retry_after` in seconds), 5xx, 403, or 410 as an HTTP status."""

    status: int
    reason: str = ""
    message: str = ""
    retry_after: str = ""

    async def before(self, call: Call) -> Refusal | None:
        return Refusal(self.status, self.reason, self.message, self.retry_after)


@dataclass(kw_only=True)
class ExpireContinue(Fault):
    """A continue token is no longer valid: 410 in the middle of a paged list."""

    verbs: Sequence[str] = ("list",)

    def applies(self, call: Call) -> bool:
        return call.is_continued and Fault.applies(self, call)

    async def before(self, call: Call) -> Refusal | None:
        return Refusal(410, "Expired", "The provided continue parameter is too old")


@dataclass(kw_only=True)
class Slow(Fault):
    """Answers late."""

    seconds: float

    async def before(self, call: Call) -> Refusal | None:
        await asyncio.sleep(self.seconds)
        return None


@dataclass(kw_only=True)
class Hang(Fault):
    """Takes the request and never answers."""

    async def before(self, call: Call) -> Refusal | None:
        await asyncio.Event().wait()
        return None


@dataclass(kw_only=True)
class LoseAnswer(Fault):
    """Carries the request out and breaks the connection instead of answering; `hangs` never answers."""

    verbs: Sequence[str] = ("create", "patch", "update", "delete")
    hangs: bool = False

    async def after(self, call: Call) -> None:
        if self.hangs:
            await asyncio.Event().wait()
        raise CutError


@dataclass(kw_only=True)
class Stall(Fault):
    """A watch that stays open and says nothing more, no bookmarks either."""

    verbs: Sequence[str] = ("watch",)

    async def write(self, send: Send, lines: list[bytes]) -> None:
        await asyncio.Event().wait()


@dataclass(kw_only=True)
class Drip(Fault):
    """A watch that sends single bytes and never a whole line."""

    verbs: Sequence[str] = ("watch",)
    pause_s: float = 0.05

    async def write(self, send: Send, lines: list[bytes]) -> None:
        while True:
            await send(b" ")
            await asyncio.sleep(self.pause_s)


@dataclass(kw_only=True)
class CutMidLine(Fault):
    """Sends all but the end of the last line, then breaks the connection."""

    verbs: Sequence[str] = ("watch",)

    async def write(self, send: Send, lines: list[bytes]) -> None:
        text = b"".join(lines)
        await send(text[: -max(2, len(lines[-1]) // 2)])
        raise CutError


@dataclass(kw_only=True)
class EndMidLine(Fault):
    """As `CutMidLine`, but the answer ends as if it was whole: a proxy that hides the break."""

    verbs: Sequence[str] = ("watch",)

    async def write(self, send: Send, lines: list[bytes]) -> None:
        text = b"".join(lines)
        await send(text[: -max(2, len(lines[-1]) // 2)])
        raise EOFError


@dataclass(kw_only=True)
class Duplicate(Fault):
    """Every line twice; `late` repeats whole batches, so that old lines follow newer ones."""

    verbs: Sequence[str] = ("watch",)
    late: bool = False

    async def write(self, send: Send, lines: list[bytes]) -> None:
        twice = [*lines, *lines] if self.late else [line for line in lines for _ in range(2)]
        await send(b"".join(twice))


@dataclass(kw_only=True)
class Reorder(Fault):
    """The lines of a batch in reverse."""

    verbs: Sequence[str] = ("watch",)

    async def write(self, send: Send, lines: list[bytes]) -> None:
        await send(b"".join(reversed(lines)))


@dataclass(kw_only=True)
class ErrorLine(Fault):
    """The first batch becomes an ERROR line inside a good answer; a 410 by default, without ``metadata.uid``."""

    verbs: Sequence[str] = ("watch",)
    status: bytes = (
        b'{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure",'
        b'"message":"too old resource version","reason":"Expired","code":410}'
    )

    async def write(self, send: Send, lines: list[bytes]) -> None:
        await send(b'{"type":"ERROR","object":' + self.status + b"}\n")
        raise EOFError


@dataclass(kw_only=True)
class Garble(Fault):
    """The first line of each batch is broken JSON."""

    verbs: Sequence[str] = ("watch",)

    async def write(self, send: Send, lines: list[bytes]) -> None:
        await send(b'{"type":"MODIFIED","object":{"metadata":{"name":"x\n' + b"".join(lines[1:]))


class Faults:
    """The faults of one server, in the order in which they are asked."""

    def __init__(self) -> None:
        self._faults: list[Fault] = []

    def add(self, fault: Fault) -> Fault:
        self._faults.append(fault)
        return fault

    def remove(self, fault: Fault) -> None:
        self._faults.remove(fault)

    async def before(self, call: Call) -> Refusal | None:
        for fault in list(self._faults):
            if not fault.is_stream and not fault.is_late and fault.applies(call):
                fault.hits += 1
                refusal = await fault.before(call)
                if refusal is not None:
                    return refusal
        return None

    async def after(self, call: Call) -> None:
        """
        Raises:
            CutError: The connection is to be broken off.
        """
        for fault in list(self._faults):
            if fault.is_late and fault.applies(call):
                fault.hits += 1
                await fault.after(call)

    def stream(self, call: Call) -> Fault | None:
        """The fault that writes this watch, if one does."""
        for fault in self._faults:
            if fault.is_stream and fault.applies(call):
                fault.hits += 1
                return fault
        return None
