"""The list and watch of one kind, for ever: whatever the server does, what is told converges to what is true."""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Awaitable, Callable
from datetime import datetime, timedelta

import aiohttp

from sevenhop.core.events import Event, SourceChanged, SyncState
from sevenhop.core.objects.kinds import Kind
from sevenhop.sources.kubernetes.api import ApiError, ApiServer, MalformedAnswerError, describe, error_from_status
from sevenhop.sources.kubernetes.backoff import Backoff
from sevenhop.sources.kubernetes.limits import Limits
from sevenhop.sources.kubernetes.lines import LineSplitter
from sevenhop.sources.kubernetes.observe import ErrorLineError, Observations, Record
from sevenhop.sources.kubernetes.pages import list_pages
from sevenhop.sources.kubernetes.status import KindStatus

Emit = Callable[[list[Event]], Awaitable[None]]
"""Takes what arrived together, in order; may make us wait."""
Sleep = Callable[[float], Awaitable[None]]
Clock = Callable[[], datetime]

FAILURES = (ApiError, MalformedAnswerError, aiohttp.ClientError, TimeoutError, OSError)
"""What a request may end with that another try may mend."""

_TRIES_AT_ONE_VERSION = 3
"""Watches that may fail without a line before their resourceVersion is given up: kr8s repeats one for ever."""


class EmitError(Exception):
    """Events could not be handed over; the cause is what the taker raised.  What was told is then not what is known."""


class _SilentError(Exception):
    """Neither line nor bookmark within the silence limit."""


class _DoubtError(Exception):
    """The stream lost or swapped lines."""


class KindWatch:
    """
    Lists and watches one kind in one version.

    A list is a new epoch and ends with `SourceChanged` to `SYNCED`, also when it was synced before: from there on
    what the epoch did not mention is as it was told earlier.
    """

    def __init__(
        self,
        api: ApiServer,
        kind: Kind,
        emit: Emit,
        *,
        clock: Clock,
        sleep: Sleep = asyncio.sleep,
        monotonic: Callable[[], float] = time.monotonic,
        limits: Limits | None = None,
        rng: random.Random | None = None,
        record: Record | None = None,
        on_missing: Callable[[], None] | None = None,
    ) -> None:
        self.kind = kind
        self._api = api
        self._emit = emit
        self._clock = clock
        self._sleep = sleep
        # Silence and age are measured here: `clock` may be set, and in a demo it leaps.
        self._monotonic = monotonic
        self._limits = limits or Limits()
        self._rng = rng or random.Random()  # noqa: S311  jitter, no secret
        self._backoff = Backoff(self._limits.backoff_base_s, self._limits.backoff_cap_s, self._rng)
        self._record = record
        self._on_missing = on_missing
        self._seen = Observations(kind, record)
        self._version = ""
        self._has_list = False
        self._watch_failures = 0
        self._state: SyncState | None = None
        self._detail = ""
        self._failure = ""
        self._last_line_at: datetime | None = None
        self._last_success_at: datetime | None = None
        self._succeeded_at_s: float | None = None
        self._lists = self._watches = self._errors = self._silences = 0
        self._next_try_at: datetime | None = None
        self._progress: tuple[int, int] | None = None

    @property
    def version(self) -> str:
        """The API version of the running watch; empty if it does not run."""
        return self._version

    def status(self) -> KindStatus:
        return KindStatus(
            kind=self.kind.name,
            version=self._version,
            state=self._state or SyncState.NOT_SYNCED,
            detail=self._failure or self._detail,
            objects=len(self._seen.told),
            resource_version=self._seen.resource_version,
            last_line_at=self._last_line_at,
            last_success_at=self._last_success_at,
            lists=self._lists,
            watches=self._watches,
            silences=self._silences,
            errors=self._errors,
            unreadable=self._seen.unreadable,
            repeated=self._seen.repeated,
            next_try_at=self._next_try_at,
            list_progress=self._progress,
        )

    async def run(self, version: str) -> None:
        """List, then watch, until cancelled; fails only with what `emit` raises or with a mistake of ours."""
        self._seen.told.doubt_all()
        self._version = version
        self._has_list = False
        while True:
            try:
                await self._advance()
            except FAILURES as error:
                await self._after_failure(error)
            except _SilentError:
                # Reconnecting would do if the network was to blame; if the server's watch is stuck, only a list tells.
                # Not an error: an API server sends no bookmarks of a kind that had no event since it started.
                self._has_list = False
                self._silences += 1
                self._failure = f"no line or bookmark for {self._limits.silence_s:g} s; listing again"
            except _DoubtError:
                self._has_list = False
                self._errors += 1
                await self._pause(f"{self._seen.last_problem}; listing again")

    async def list_only(self, version: str) -> None:
        """
        One list, no watch, for a look at a cluster.

        Raises:
            ApiError, aiohttp.ClientError, TimeoutError, OSError, MalformedAnswerError: As `list_pages`.
        """
        self._version = version
        await self._list()

    async def give_up(self, error: Exception) -> None:
        """Tell why a list that is not tried again failed."""
        self._errors += 1
        if isinstance(error, ApiError) and error.status == 403:
            await self._change(SyncState.FORBIDDEN, _permission(self.kind, "list", error))
            return
        await self._change(SyncState.NOT_SYNCED, self._reason(error))

    async def withdraw(self, state: SyncState, detail: str = "") -> None:
        """The kind is not watched (any more): if absent, its objects are gone; else they stay as they were told."""
        self._version = ""
        self._has_list = False
        self._failure = ""
        self._next_try_at = None
        events = self._seen.withdraw_all(self._clock()) if state is SyncState.ABSENT else []
        await self._change(state, detail, events)

    async def check_age(self) -> None:
        """Tell that the kind is stale, if nothing succeeded for too long."""
        if self._state is not SyncState.SYNCED or self._succeeded_at_s is None:
            return
        age_s = self._monotonic() - self._succeeded_at_s
        if age_s > self._limits.silence_s * self._limits.stale_after_silences:
            why = self._failure or "nothing heard"
            await self._change(SyncState.STALE, why)

    # One step of the loop -------------------------------------------------------------------------------------------

    async def _advance(self) -> None:
        if not self._has_list:
            await self._list()
        await self._watch()

    async def _list(self) -> None:
        seen, limits = self._seen, self._limits
        seen.start_list()
        resource_version = ""
        done = 0
        try:
            async for page in list_pages(self._api, self.kind, self._version, limits):
                if page.starts_over:
                    seen.start_list_over()
                    done = 0
                resource_version = page.resource_version
                events: list[Event] = []
                objects = size = 0
                at = self._clock()
                for raw in page.items:
                    seen.listed(raw, at, events)
                    objects += 1
                    size += len(memoryview(raw))
                    if objects >= limits.slice_objects or size >= limits.slice_bytes:
                        done += objects
                        self._progress = (done, done + page.remaining + len(page.items) - objects)
                        await self._tell(events)
                        events = []
                        objects = size = 0
                        await asyncio.sleep(0)  # others get their turn
                done += objects
                self._progress = (done, done + page.remaining)
                await self._tell(events)
        finally:
            self._progress = None
        at = self._clock()
        gone = seen.finish_list(resource_version, at)
        self._has_list = True
        self._watch_failures = 0
        self._lists += 1
        self._succeed(at)
        self._failure = ""
        await self._change(SyncState.SYNCED, "", gone, is_news=True)

    async def _watch(self) -> None:
        low_s, high_s = self._limits.watch_s
        params = {
            "watch": "1",
            "allowWatchBookmarks": "true",
            "resourceVersion": self._seen.resource_version,
            "timeoutSeconds": str(round(self._rng.uniform(low_s, high_s)) or 1),
        }
        splitter = LineSplitter()
        heard_at_s = self._monotonic()
        has_line = False
        path = self.kind.path(self._version)
        try:
            async with self._api.open(path, params, silence_s=self._limits.silence_s) as response:
                self._watches += 1
                async for chunk in response.content.iter_any():
                    at = self._clock()
                    lines = splitter.feed(chunk)
                    if lines:
                        heard_at_s = self._monotonic()
                        has_line = True
                        await self._take(lines, at)
                    elif self._monotonic() - heard_at_s > self._limits.silence_s:
                        raise _SilentError  # bytes, but never a line: a stream that drips
        except aiohttp.SocketTimeoutError:
            raise _SilentError from None
        if splitter.has_rest:
            raise aiohttp.ClientPayloadError("cut in the middle of a line")
        if has_line:
            self._backoff.reset()
        else:
            await self._pause("the API server ended a watch that had said nothing")

    async def _take(self, lines: list[bytes], at: datetime) -> None:
        """Read lines that arrived together, and tell them together."""
        events: list[Event] = []
        seen = self._seen
        error: ApiError | None = None
        for line in lines:
            try:
                seen.line(line, at, events)
            except ErrorLineError as ended:
                error = error_from_status(ended.status)
                break
        await self._tell(events)
        if error is not None:
            raise error
        if seen.is_doubtful:
            raise _DoubtError
        self._watch_failures = 0
        self._last_line_at = at
        self._succeed(at)
        if self._failure or self._state is not SyncState.SYNCED:
            self._failure = ""
            self._backoff.reset()
            await self._change(SyncState.SYNCED, "")

    def _succeed(self, at: datetime) -> None:
        self._last_success_at = at
        self._succeeded_at_s = self._monotonic()

    # Failures ---------------------------------------------------------------------------------------------------------

    async def _after_failure(self, error: Exception) -> None:
        is_watch = self._has_list
        self._errors += 1
        at_least_s = 0.0
        if isinstance(error, ApiError):
            at_least_s = error.retry_after_s or 0.0
            if error.is_gone:
                self._has_list = False
                if self._backoff.failures == 0:
                    self._backoff.failures = 1
                    return  # the usual end of a watch that was away for long: at once, once
            if error.status == 403:
                verb = "watch" if is_watch else "list"
                await self._change(SyncState.FORBIDDEN, _permission(self.kind, verb, error))
                await self._wait(self._limits.forbidden_retry_s * self._rng.uniform(0.9, 1.1))
                return
            if error.status == 404:
                self._has_list = False
                if self._on_missing is not None:
                    self._on_missing()
        if is_watch:
            self._watch_failures += 1
            if self._watch_failures >= _TRIES_AT_ONE_VERSION:
                self._has_list = False
        await self._pause(self._reason(error), at_least_s)

    def _reason(self, error: Exception) -> str:
        reason = describe(error, self._api.base_url)
        if isinstance(error, ApiError) and error.status == 401 and self._api.renewal_error:
            reason = f"{reason} ({self._api.renewal_error})"
        return reason

    async def _pause(self, reason: str, at_least_s: float = 0.0) -> None:
        self._failure = reason
        if self._state in (None, SyncState.NOT_SYNCED):
            await self._change(SyncState.NOT_SYNCED, reason)
        await self._wait(self._backoff.next_s(at_least_s))

    async def _wait(self, seconds: float) -> None:
        self._next_try_at = self._clock() + timedelta(seconds=seconds)
        try:
            await self._sleep(seconds)
        finally:
            self._next_try_at = None

    # Telling ----------------------------------------------------------------------------------------------------------

    async def _tell(self, events: list[Event]) -> None:
        if events:
            try:
                await self._emit(events)
            except Exception as error:
                raise EmitError(f"{self.kind.name}: {error}") from error

    async def _change(
        self, state: SyncState, detail: str, before: list[Event] | None = None, *, is_news: bool = False
    ) -> None:
        events = list(before or ())
        if is_news or state is not self._state or detail != self._detail:
            self._state, self._detail = state, detail
            self._seen.seq += 1
            changed = SourceChanged(
                at=self._clock(),
                epoch=self._seen.epoch,
                seq=self._seen.seq,
                kind=self.kind.name,
                state=state,
                detail=detail,
            )
            events.append(changed)
            if self._record is not None:
                self._record(changed, None)
        await self._tell(events)


def _permission(kind: Kind, verb: str, error: ApiError) -> str:
    """What is missing, in the words of a ClusterRole."""
    group = kind.group or '""'
    said = f" ({error})" if str(error) != f"HTTP {error.status}" else ""
    return f"may not {verb} {kind.plural}: grant verbs get, list, watch on {kind.plural} in apiGroup {group}{said}"
