"""A place that takes messages as Slack's Web API does, as far as a bot needs it, and remembers all of them."""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any, NamedTuple

from aiohttp import web

from sevenhop.channels.slack.metadata import INCIDENT

CHANNEL = "C0DEMO"

Json = dict[str, Any]


class Body(NamedTuple):
    """What a message said at one time: of which incident and episode, and by which effect."""

    key: str
    episode: int
    status: str
    effect: str
    at: str


class LocalSlack:
    """
    Attributes:
        bodies: Message to what it said, post and edits, oldest first; without replies in threads.
        on_call: Told of each call that changes something: ``before`` and ``after`` it was taken.
    """

    def __init__(self) -> None:
        self.bodies: dict[str, list[Body]] = {}
        self.on_call: Callable[[str], None] = lambda _: None
        self._messages: list[Json] = []

    @asynccontextmanager
    async def serve(self) -> AsyncIterator[str]:
        """Listen on loopback; gives the base URL."""
        app = web.Application()
        app.router.add_route("*", "/api/{method}", self._handle)
        runner = web.AppRunner(app, handler_cancellation=True, shutdown_timeout=0.1, access_log=None)
        await runner.setup()
        try:
            await web.TCPSite(runner, "127.0.0.1", 0).start()
            yield f"http://127.0.0.1:{runner.addresses[0][1]}/api/"
        finally:
            await runner.cleanup()

    @property
    def posted_twice(self) -> int:
        """Posts of one and the same transition, beyond the first."""
        firsts = Counter((bodies[0].effect, bodies[0].at) for bodies in self.bodies.values())
        return sum(count - 1 for count in firsts.values())

    def open_ones(self) -> list[tuple[str, str]]:
        """(incident and episode, what the newest message about it says) of those that are not over."""
        last = {f"{bodies[-1].key}-{bodies[-1].episode}": bodies[-1].status for bodies in self.bodies.values()}
        return [(key, status) for key, status in last.items() if status != "resolved"]

    async def _handle(self, request: web.Request) -> web.Response:
        method = request.match_info["method"]
        if request.method == "GET":
            return web.json_response({"ok": True, **self._read(method, dict(request.query))})
        body: Json = json.loads(await request.read() or b"{}")
        self.on_call("before")
        await asyncio.sleep(0)  # whoever is killed now has not been heard
        answer = self._take(method, body)
        self.on_call("after")
        await asyncio.sleep(0)
        return web.json_response(answer)

    def _take(self, method: str, body: Json) -> Json:
        if method == "chat.postMessage":
            ts = f"{1_700_000_000 + len(self._messages)}.000100"
            self._messages.append({**body, "type": "message", "bot_id": "B0DEMO", "ts": ts})
        elif method == "chat.update":
            ts = body["ts"]
            message = next((each for each in self._messages if each["ts"] == ts), None)
            if message is None:
                return {"ok": False, "error": "message_not_found"}
            message.update(body)
        else:
            return {"ok": False, "error": "unknown_method"}
        self._remember(ts, body)
        return {"ok": True, "channel": CHANNEL, "ts": ts}

    def _remember(self, ts: str, body: Json) -> None:
        metadata = body.get("metadata") or {}
        if metadata.get("event_type") == INCIDENT:
            said = metadata["event_payload"]
            self.bodies.setdefault(ts, []).append(
                Body(said["key"], said["episode"], said["status"], said["effect"], said["at"])
            )

    def _read(self, method: str, query: dict[str, str]) -> Json:
        if method == "conversations.history":
            return {"messages": [m for m in reversed(self._messages) if not m.get("thread_ts")]}
        if method == "conversations.replies":
            return {"messages": [m for m in self._messages if query["ts"] in (m["ts"], m.get("thread_ts"))]}
        return {"permalink": f"https://slack.invalid/{query.get('message_ts', '')}"}
