"""
A local server that behaves like PagerDuty's Events API v2.

In a test: ``async with PagerDutyServer() as pagerduty: … pagerduty.base_url … pagerduty.incidents``.  On its own, for
tests that start processes: ``python -m tests.fakes.pagerduty_server --port 0`` prints its base URL as its first line,
and shows ``GET /_fake/incidents`` and ``GET /_fake/events`` and takes ``POST /_fake/down {"seconds": n}``.  `--key`,
more than once, names the integration keys of its services.

What it knows of the real one: 400 with the reasons, 429 over 120 events a minute and key, the `dedup_key` semantics
(the same key is the same open incident; acknowledge and resolve of none are dropped; after a resolve a trigger opens
another one), a person is notified once, when an incident opens.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import time
from collections import defaultdict, deque
from dataclasses import asdict, dataclass, field
from types import TracebackType
from typing import Any, Self

from aiohttp import web

KEY = "0123456789abcdef0123456789abcdef"
PER_MINUTE = 120


@dataclass
class PagedIncident:
    """An incident as people see it in PagerDuty."""

    routing_key: str
    dedup_key: str
    status: str
    summary: str
    severity: str
    details: dict[str, Any]
    notified: int = 1
    log: list[str] = field(default_factory=list)


class PagerDutyServer:
    def __init__(self, keys: tuple[str, ...] = (KEY,), per_minute: int = PER_MINUTE) -> None:
        self.keys = keys
        self.per_minute = per_minute
        self.incidents: list[PagedIncident] = []
        self.events: list[dict[str, Any]] = []
        self.refusals: list[list[str]] = []
        self.down_until = 0.0
        self.base_url = ""
        self._recent: dict[str, deque[float]] = defaultdict(deque)

    async def __aenter__(self) -> Self:
        await self.start(0)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._runner.cleanup()

    async def start(self, port: int) -> None:
        app = web.Application(client_max_size=2_000_000)
        app.add_routes(
            [
                web.post("/v2/enqueue", self._enqueue),
                web.get("/_fake/incidents", self._show),
                web.get("/_fake/events", self._show_events),
                web.post("/_fake/down", self._down),
            ]
        )
        self._runner = web.AppRunner(app, shutdown_timeout=0.1)
        await self._runner.setup()
        await web.TCPSite(self._runner, "127.0.0.1", port).start()
        self.base_url = f"http://127.0.0.1:{self._runner.addresses[0][1]}"

    def open(self) -> list[PagedIncident]:
        return [each for each in self.incidents if each.status != "resolved"]

    async def _enqueue(self, request: web.Request) -> web.Response:
        if time.monotonic() < self.down_until:
            return web.Response(status=502, text="bad gateway")
        body = await request.read()
        event = _parsed(body)
        problems = _problems(event, len(body), self.keys)
        if problems:
            self.refusals.append(problems)
            return web.json_response(
                {"status": "invalid event", "message": "Event object is invalid", "errors": problems}, status=400
            )
        recent = self._recent[event["routing_key"]]
        now = time.monotonic()
        while recent and recent[0] < now - 60:
            recent.popleft()
        if len(recent) >= self.per_minute:
            return web.json_response({"status": "throttle exceeded"}, status=429)
        recent.append(now)
        self.events.append(event)
        self._apply(event)
        return web.json_response(
            {"status": "success", "message": "Event processed", "dedup_key": event["dedup_key"]}, status=202
        )

    def _apply(self, event: dict[str, Any]) -> None:
        place = (event["routing_key"], event["dedup_key"])
        known = next((each for each in self.open() if (each.routing_key, each.dedup_key) == place), None)
        action = event["event_action"]
        if action == "trigger":
            payload = event["payload"]
            if known is None:
                known = PagedIncident(*place, "triggered", "", "", {})
                self.incidents.append(known)
            known.summary, known.severity = payload["summary"], payload["severity"]
            known.details = payload.get("custom_details", {})
        elif known is None:
            return
        elif action == "acknowledge":
            known.status = "acknowledged"
        else:
            known.status = "resolved"
        known.log.append(action)

    async def _show(self, _request: web.Request) -> web.Response:
        return web.json_response([asdict(each) for each in self.incidents])

    async def _show_events(self, _request: web.Request) -> web.Response:
        return web.json_response(self.events)

    async def _down(self, request: web.Request) -> web.Response:
        self.down_until = time.monotonic() + float((await request.json())["seconds"])
        return web.json_response({})


def _parsed(body: bytes) -> dict[str, Any]:
    try:
        event = json.loads(body)
    except ValueError:
        return {}
    return event if isinstance(event, dict) else {}


def _problems(event: dict[str, Any], size: int, keys: tuple[str, ...]) -> list[str]:
    problems = []
    if size > 512 * 1024:
        problems.append("event is larger than 512 KB")
    if event.get("routing_key") not in keys:
        problems.append(f"'routing_key' is invalid: {event.get('routing_key')}")
    action = event.get("event_action")
    if action not in ("trigger", "acknowledge", "resolve"):
        problems.append("'event_action' is missing or invalid")
    dedup_key = event.get("dedup_key")
    if not isinstance(dedup_key, str) or not 0 < len(dedup_key) <= 255:
        problems.append("Length of 'dedup_key' is incorrect (should be between 1 and 255)")
    if action == "trigger":
        payload = event.get("payload") or {}
        summary = payload.get("summary")
        if not isinstance(summary, str) or not 0 < len(summary) <= 1024:
            problems.append("Length of 'payload.summary' is incorrect (should be between 1 and 1024)")
        if not payload.get("source"):
            problems.append("'payload.source' is missing or blank")
        if payload.get("severity") not in ("critical", "error", "warning", "info"):
            problems.append("'payload.severity' is invalid (must be one of the following: critical, …)")
        if not isinstance(payload.get("custom_details", {}), dict):
            problems.append("'payload.custom_details' must be an object")
    return problems


async def _main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--key", action="append")
    given = parser.parse_args()
    server = PagerDutyServer(tuple(given.key or (KEY,)))
    await server.start(given.port)
    print(server.base_url, flush=True)
    await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(_main())
