"""Looks at dcgm-exporter, or at Prometheus, every so often, and emits what they say."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from datetime import datetime
from typing import Any

import aiohttp

from sevenhop.core.events import Event
from sevenhop.sources.dcgm.mapping import PREFIX, NodeGpus, new_xids, read_nodes, to_sample, to_xid
from sevenhop.sources.dcgm.series import Series, SeriesError, parse_answer, parse_page
from sevenhop.sources.dcgm.settings import DcgmSettings

log = logging.getLogger("sevenhop.dcgm")

MAX_AT_ONCE = 32
CALL_S = 10.0
MAX_BYTES = 64 * 1024 * 1024
"""Of one answer: 16,000 GPUs with 20 series are 50 MB in Prometheus' JSON."""


class Dcgm:
    """
    A source.  What cannot be reached emits nothing: its GPUs become unknown, never lost.

    Attributes:
        problems: Address to why it cannot be read now.
        nameless: Series without a node or a GPU in the last look.
    """

    def __init__(
        self,
        settings: DcgmSettings,
        clock: Callable[[], datetime],
        *,
        observe: Callable[[Event, None], None] | None = None,
    ) -> None:
        self._settings = settings
        self._clock = clock
        self._observe = observe
        self._epoch = int(clock().timestamp() * 1000)
        self._seq = 0
        self._before: dict[str, NodeGpus] = {}
        self._slots = asyncio.Semaphore(MAX_AT_ONCE)
        self.problems: dict[str, str] = {}
        self.nameless = 0

    def report(self) -> dict[str, Any]:
        """For `doctor`: what cannot be read now."""
        problems = [f"DCGM: {url}: {why}; its GPUs are unknown" for url, why in self.problems.items()]
        if self.nameless:
            problems.append(f"DCGM: {self.nameless} series name no node or no GPU; set dcgm.node_label?")
        return {"nameless": self.nameless, "problems": problems}

    async def run(self, emit: Callable[[list[Event]], Awaitable[None]]) -> None:
        """Until cancelled."""
        async with aiohttp.ClientSession(
            timeout=aiohttp.ClientTimeout(total=CALL_S), raise_for_status=True, auto_decompress=True
        ) as session:
            while True:
                await self.look(session, emit)
                await asyncio.sleep(self._settings.every.total_seconds())

    async def look(self, session: aiohttp.ClientSession, emit: Callable[[list[Event]], Awaitable[None]]) -> None:
        """Once, at all of them."""
        self.nameless = 0
        calls = [self._page(session, url, emit) for url in self._settings.pages]
        if self._settings.prometheus:
            calls.append(self._query(session, self._settings.prometheus, emit))
        await asyncio.gather(*calls)

    async def _page(
        self, session: aiohttp.ClientSession, url: str, emit: Callable[[list[Event]], Awaitable[None]]
    ) -> None:
        def parse(body: bytes) -> list[Series]:
            return list(parse_page(body.decode("utf-8", "replace"), PREFIX))

        await self._read(session, url, {}, parse, emit)

    async def _query(
        self, session: aiohttp.ClientSession, url: str, emit: Callable[[list[Event]], Awaitable[None]]
    ) -> None:
        more = f",{self._settings.matchers}" if self._settings.matchers else ""
        query = f'{{__name__=~"{PREFIX}(FI_DEV|FI_PROF|EXP)_.*"{more}}}'

        def parse(body: bytes) -> list[Series]:
            return list(parse_answer(body, PREFIX))

        await self._read(session, f"{url.rstrip('/')}/api/v1/query", {"query": query}, parse, emit)

    async def _read(
        self,
        session: aiohttp.ClientSession,
        url: str,
        params: dict[str, str],
        parse: Callable[[bytes], list[Series]],
        emit: Callable[[list[Event]], Awaitable[None]],
    ) -> None:
        async with self._slots:
            try:
                async with session.get(url, params=params, allow_redirects=False) as answer:
                    body = await _limited(answer)
                series = await asyncio.to_thread(parse, body)
                if not series:
                    raise SeriesError("no series of DCGM there")
            except (aiohttp.ClientError, TimeoutError, OSError, SeriesError) as error:
                self._failed(url, error)
                return
        if self.problems.pop(url, None) is not None:
            log.info("DCGM: %s can be read again", url)
        at = self._clock()
        nodes, nameless = read_nodes(series, self._settings.node_label)
        self.nameless += nameless
        events: list[Event] = []
        for gpus in nodes:
            for found in new_xids(self._before.get(gpus.node), gpus):
                events.append(to_xid(gpus.node, found, at, self._epoch, self._next()))
            events.append(to_sample(gpus, at, self._epoch, self._next()))
            self._before[gpus.node] = gpus
        if self._observe is not None:
            for event in events:
                self._observe(event, None)
        await emit(events)

    def _failed(self, url: str, error: Exception) -> None:
        if isinstance(error, SeriesError):
            why = str(error)
        elif isinstance(error, aiohttp.ClientResponseError):
            why = f"answers {error.status}"
        else:
            why = getattr(error, "strerror", None) or type(error).__name__
        if self.problems.get(url) != why:
            log.warning("DCGM: %s: %s; its GPUs become unknown", url, why)
        self.problems[url] = why

    def _next(self) -> int:
        self._seq += 1
        return self._seq


async def _limited(answer: aiohttp.ClientResponse) -> bytes:
    body = bytearray()
    async for piece in answer.content.iter_chunked(1 << 16):
        body += piece
        if len(body) > MAX_BYTES:
            raise SeriesError(f"more than {MAX_BYTES} bytes")
    return bytes(body)
