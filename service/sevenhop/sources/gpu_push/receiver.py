"""The HTTP side: a request becomes events, or is refused and counted."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping
from datetime import datetime, timedelta
from typing import Any

import msgspec
from aiohttp import web

from sevenhop.core.events import Event, GpusSampled
from sevenhop.core.gpu_wire import Batch, WireError, decode, events_of
from sevenhop.sources.gpu_push.senders import Refusal, RefusedError, ReviewUser, Senders
from sevenhop.sources.gpu_push.settings import GpuPushSettings

log = logging.getLogger("sevenhop.gpu_push")

PATH = "/v1/gpu-samples"

EMIT_S = 10.0
"""Longer than that behind, and the agents had better keep what they have."""

MAX_SAID = 1000

CLOCKS_AGREE = timedelta(seconds=2)
CLOCKS_DIFFER = timedelta(seconds=15)
"""More than a request may take on its way: it is the clock, and somebody should set it."""

STATUS: Mapping[Refusal, int] = {
    Refusal.NO_TOKEN: 401,
    Refusal.UNKNOWN_TOKEN: 401,
    Refusal.OTHER_ACCOUNT: 403,
    Refusal.NOT_BOUND: 403,
    Refusal.OTHER_NODE: 403,
    Refusal.UNREADABLE: 400,
    Refusal.UNANSWERED: 503,
    Refusal.BEHIND: 503,
}


class GpuPush:
    """
    Args:
        emit: Takes events; waits while the engine is behind.
        observe: Is shown every event that was taken, such as a recorder.

    Attributes:
        taken: Events taken since the start.
        refused: Requests refused, by reason.
    """

    def __init__(
        self,
        settings: GpuPushSettings,
        review: ReviewUser,
        emit: Callable[[list[Event]], Awaitable[None]],
        clock: Callable[[], datetime],
        *,
        observe: Callable[[Event, None], None] | None = None,
        emit_s: float = EMIT_S,
    ) -> None:
        self._senders = Senders(review, settings.accounts, clock)
        self._emit = emit
        self._clock = clock
        self._observe = observe
        self._emit_s = emit_s
        self._said: dict[tuple[str, Refusal], None] = {}
        self._epochs: dict[str, tuple[int, int]] = {}  # node to the agent's epoch and ours, of nodes that are verified
        self._clocks: dict[str, timedelta] = {}  # of nodes that are verified: ahead of ours, where they differ
        self.taken = 0
        self.refused: dict[Refusal, int] = dict.fromkeys(Refusal, 0)

    def routes(self) -> dict[str, Callable[[web.Request], Awaitable[web.Response]]]:
        """Path to handler, for `WebServer.posts`."""
        return {PATH: self.take}

    def report(self) -> dict[str, Any]:
        """For `doctor`: what was taken, and what was refused and why."""
        refused = {reason.value: count for reason, count in self.refused.items() if count}
        said = ", ".join(f"{reason} {count}" for reason, count in refused.items())
        problems = [f"GPU samples refused since the start: {said}; the log says whose"] if said else []
        if self._clocks:
            node = max(self._clocks, key=lambda node: abs(self._clocks[node]))
            others = f", and {len(self._clocks) - 1} more differ" if len(self._clocks) > 1 else ""
            problems.append(f"the clock of {node} is {_off(self._clocks[node])}{others}: set it (NTP)")
        return {"taken": self.taken, "refused": refused, "clocks_off": len(self._clocks), "problems": problems}

    async def take(self, request: web.Request) -> web.Response:
        """One request."""
        try:
            taken = await self._take(request)
        except RefusedError as error:
            self.refused[error.reason] += 1
            self._say(request.remote or "", error)
            return _answer(STATUS[error.reason], {"error": str(error), "reason": error.reason.value})
        return _answer(200, {"taken": taken})

    async def _take(self, request: web.Request) -> int:
        scheme, _, token = request.headers.get("Authorization", "").partition(" ")
        if scheme.lower() != "bearer" or not token.strip():
            raise RefusedError(Refusal.NO_TOKEN, "send the pod's service-account token: Authorization: Bearer …")
        node = await self._senders.node_of(token.strip())  # before the body: nobody else's is read
        try:
            batch = decode(await request.read(), request.content_type)
        except WireError as error:
            raise RefusedError(Refusal.UNREADABLE, str(error)) from None
        if batch.node != node:
            # The name that is claimed is other people's text: not repeated.
            raise RefusedError(Refusal.OTHER_NODE, f"this token may speak for {node} alone")
        events = self._received(batch, self._clock())
        try:
            async with asyncio.timeout(self._emit_s):
                await self._emit(events)
        except TimeoutError:
            raise RefusedError(Refusal.BEHIND, "the service is behind; send it again later") from None
        if self._observe is not None:
            for event in events:
                self._observe(event, None)
        self.taken += len(events)
        return len(events)

    def _received(self, batch: Batch, now: datetime) -> list[Event]:
        """
        The events, each sample with its time by our clock, from which the core learns how far the agent's is off.

        A sample may have waited on its node for an hour, which is no skew: what counts is what the agent's clock
        showed when it sent the batch.
        """
        events: list[Event] = []
        for event in events_of(batch):
            epoch = self._epoch(batch.node, event.epoch)
            skew = now - (event.at if batch.sent_at is None else batch.sent_at)
            if isinstance(event, GpusSampled):
                events.append(msgspec.structs.replace(event, epoch=epoch, received_at=event.at + skew))
            elif skew > CLOCKS_DIFFER:
                # The core sets right what lies in the future; a clock that is behind it cannot tell from lateness.
                events.append(msgspec.structs.replace(event, epoch=epoch, at=event.at + skew))
            else:
                events.append(msgspec.structs.replace(event, epoch=epoch))
        if batch.sent_at is not None:
            self._compare(batch.node, batch.sent_at - now)
        return events

    def _compare(self, node: str, ahead: timedelta) -> None:
        """Say once that a node's clock is off, and once that it is right again."""
        if abs(ahead) > CLOCKS_DIFFER:
            if node not in self._clocks:
                said = "the clock of %s is %s; what it tells is taken by our time: set it (NTP)"
                log.warning(said, node, _off(ahead))
            self._clocks[node] = ahead
        elif abs(ahead) <= CLOCKS_AGREE and self._clocks.pop(node, None) is not None:
            log.info("the clock of %s agrees with ours again", node)

    def _epoch(self, node: str, agents: int) -> int:
        """
        The agent's epoch, or a later one: its start by its own clock, and a node's clock may have been set back
        between two starts.  All that the new agent says would be older than what the one before said.
        """
        before, ours = self._epochs.get(node, (agents, agents))
        if agents != before:
            ours = max(agents, ours + 1)
        self._epochs[node] = (agents, ours)
        return ours

    def _say(self, remote: str, error: RefusedError) -> None:
        """Once per sender and reason: a node that is refused comes back every minute."""
        key = (remote, error.reason)
        if key in self._said:
            return
        if len(self._said) >= MAX_SAID:
            self._said.clear()
        self._said[key] = None
        log.warning("GPU samples from %s refused (%s): %s", remote, error.reason.value, error)


def _off(ahead: timedelta) -> str:
    return f"{abs(ahead.total_seconds()):.0f} s {'ahead of' if ahead > timedelta(0) else 'behind'} ours"


def _answer(status: int, body: Any) -> web.Response:
    answer = web.Response(status=status, body=msgspec.json.encode(body), content_type="application/json")
    if status == STATUS[Refusal.BEHIND]:
        answer.force_close()  # a Service chooses by connection: the next one may find the replica that works
    return answer
