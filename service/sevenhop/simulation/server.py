"""The Kubernetes API over loopback HTTP, served from a `Store`."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import msgspec
from aiohttp import web

from sevenhop.simulation.answers import status
from sevenhop.simulation.discovery import discovery
from sevenhop.simulation.faults import Call, CutError, Faults
from sevenhop.simulation.lists import Lists
from sevenhop.simulation.patches import PatchError
from sevenhop.simulation.single_objects import serve_object
from sevenhop.simulation.store import Store, StoreError
from sevenhop.simulation.target import Target
from sevenhop.simulation.watches import Watches


class ApiServerSimulation:
    """
    Lists, watches and changes the objects of `store` as a Kubernetes API server does.

    Left out: conversion between versions (an object is the same in each), field ownership, admission, and most
    validation.

    Attributes:
        faults: What misbehaves.
        tokens: Bearer tokens that are accepted; None accepts everything.
        aggregated: Whether discovery is aggregated (since 1.26).
    """

    def __init__(
        self,
        store: Store,
        *,
        bookmark_s: float = 10.0,
        tokens: set[str] | None = None,
        aggregated: bool = True,
        version: str = "v1.36.3",
    ) -> None:
        self.store = store
        self.faults = Faults()
        self.tokens = tokens
        self.aggregated = aggregated
        self.url = ""
        self.requests: list[tuple[str, str]] = []
        """(method, path with query) of what was asked, newest last, the last thousand."""
        self._version = version
        self._lists = Lists(store)
        self._watches = Watches(store, bookmark_s)

    @asynccontextmanager
    async def serve(self, port: int = 0) -> AsyncIterator[str]:
        """
        Listen on loopback; gives the base URL.
        """
        app = web.Application(client_max_size=16 * 1024 * 1024)
        app.router.add_route("*", "/{path:.*}", self._handle)
        runner = web.AppRunner(app, handler_cancellation=True, shutdown_timeout=0.1, access_log=None)
        await runner.setup()
        try:
            site = web.TCPSite(runner, "127.0.0.1", port)
            await site.start()
            self.url = f"http://127.0.0.1:{runner.addresses[0][1]}"
            yield self.url
        finally:
            await runner.cleanup()

    def drop_connections(self) -> None:
        """End all watches now, as a rolling restart of the API server does."""
        self._watches.end()

    async def _handle(self, request: web.Request) -> web.StreamResponse:
        self.requests.append((request.method, request.path_qs))
        del self.requests[:-1000]
        try:
            return await self._answer(request)
        except StoreError as error:
            return status(error.status, error.reason, str(error), causes=error.causes)
        except CutError:
            if request.transport is not None:
                request.transport.abort()
            raise
        except PatchError as error:
            return status(422, "Invalid", str(error))
        except msgspec.DecodeError as error:
            return status(400, "BadRequest", f"the body is not JSON: {error}")

    async def _answer(self, request: web.Request) -> web.StreamResponse:
        target = Target.parse(request, self.store)
        call = Call(
            target.verb,
            target.kind.plural if target.kind else "",
            request.headers.get("Authorization", "").removeprefix("Bearer "),
            is_continued="continue" in request.query,
        )
        refusal = await self.faults.before(call)
        if refusal is not None:
            headers = {"Retry-After": refusal.retry_after} if refusal.retry_after else {}
            return status(refusal.status, refusal.reason, refusal.message, headers)
        if self.tokens is not None and call.token not in self.tokens:
            return status(401, "Unauthorized", "Unauthorized")
        if target.kind is None:
            return discovery(request, self.store.kinds(), self._version, aggregated=self.aggregated)
        if target.verb == "watch":
            return await self._watches.answer(request, target, self.faults.stream(call))
        if target.verb == "list":
            return self._lists.answer(request, target)
        done = await serve_object(self.store, request, target)
        await self.faults.after(call)
        return done
