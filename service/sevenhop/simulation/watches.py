"""Watches: what changes, as it changes."""

from __future__ import annotations

import asyncio
import contextlib

import msgspec
from aiohttp import web

from sevenhop.simulation.answers import status_data
from sevenhop.simulation.faults import CutError, Fault
from sevenhop.simulation.selectors import Selection
from sevenhop.simulation.store import Store, StoreError
from sevenhop.simulation.target import Target
from sevenhop.simulation.views import bookmark, line, lines_of


class Watches:
    """
    The open ones.

    Args:
        bookmark_s: Seconds without a change after which a watch that asked for it gets a bookmark.
    """

    def __init__(self, store: Store, bookmark_s: float) -> None:
        self._store = store
        self._bookmark_s = bookmark_s
        self._wake: dict[str, set[asyncio.Event]] = {}
        store.listeners.append(self._on_change)

    def end(self) -> None:
        """End all of them now, as a rolling restart of the API server does."""
        for kind in list(self._wake):
            for event in self._wake.pop(kind):
                event.set()

    def _on_change(self, kind: str) -> None:
        for event in self._wake.get(kind, ()):
            event.set()

    async def answer(self, request: web.Request, target: Target, fault: Fault | None) -> web.StreamResponse:
        kind = target.the_kind
        selection = Selection.parse(request.query)
        asked = request.query.get("resourceVersion", "")
        with_bookmarks = request.query.get("allowWatchBookmarks", "").lower() in ("1", "true")
        response = web.StreamResponse(headers={"Content-Type": "application/json"})
        response.enable_chunked_encoding()
        await response.prepare(request)
        loop = asyncio.get_running_loop()
        ends_at = loop.time() + float(request.query.get("timeoutSeconds") or 1800)
        wake = asyncio.Event()
        self._wake.setdefault(kind.name, set()).add(wake)
        write = (fault or Fault()).write
        try:
            lines: list[bytes] = []
            if asked in ("", "0"):
                revision = self._store.revision
                known = self._store.all(kind.name, target.namespace)
                lines += [line("ADDED", data, target) for data in known if selection.selects(data)]
            else:
                revision = int(asked)
            while wake in self._wake.get(kind.name, ()):
                wake.clear()
                changes = self._store.changes_since(kind.name, revision)
                revision = changes[-1].revision if changes else revision
                lines += lines_of(changes, selection, target)
                if lines:
                    await write(response.write, lines)
                    lines = []
                remaining_s = ends_at - loop.time()
                if remaining_s <= 0:
                    break
                try:
                    async with asyncio.timeout(min(remaining_s, self._bookmark_s)):
                        await wake.wait()
                except TimeoutError:
                    if with_bookmarks and not wake.is_set():
                        # Nothing of this kind happened since, so the newest revision of all is as good.
                        revision = self._store.revision
                        lines = [bookmark(revision, target)]
        except StoreError as error:
            body = msgspec.json.encode(status_data(error.status, error.reason, str(error)))
            await response.write(b'{"type":"ERROR","object":' + body + b"}\n")
        except CutError:
            if request.transport is not None:
                request.transport.abort()
            return response
        except EOFError:
            pass  # a fault that ends the answer as if it was whole
        finally:
            self._wake.get(kind.name, set()).discard(wake)
        with contextlib.suppress(ConnectionError):
            await response.write_eof()
        return response
