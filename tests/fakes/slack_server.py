"""
A local server that behaves like Slack's Web API, for the real slack-sdk.

In a test: ``async with SlackServer() as slack: … slack.base_url … slack.messages``.  On its own, for tests that kill
processes: ``python -m tests.fakes.slack_server --port 0 --log FILE`` prints its base URL as its first line, appends
every request to FILE as a line of JSON, and shows and takes back what it holds over HTTP:

    GET  /_fake/messages        messages of all channels, oldest first, each with its edits
    GET  /_fake/requests        every request so far
    POST /_fake/faults          a list of faults, see `Fault`; they are played in order
    POST /_fake/delete          {"channel", "ts"}: as a person would
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import signal
import sys
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from aiohttp import web

from tests.fakes.slack_limits import mentions_in, refusal_of

TOKEN = "xoxb-fake-token"
CHANNEL = "C0123456789"


@dataclass
class Fault:
    """
    Something that goes wrong, `times` times in a row, with calls of one method.

    `kind` is one of ``429`` (HTTP, with Retry-After), ``ratelimited`` (200 and ``ok: false``), ``error`` (`error` as
    Slack's word), ``status`` (HTTP `status`, no body of Slack's), ``timeout_before`` and ``timeout_after`` (no answer;
    the message was not, or was, taken), ``drop_before`` and ``drop_after`` (the connection is cut instead), ``html``
    and ``garbage`` (200 with something else; it was taken), ``pass`` (nothing goes wrong yet, the next one is meant).
    """

    method: str
    kind: str
    times: int = 1
    retry_after: int = 1
    error: str = ""
    status: int = 500


@dataclass
class Posted:
    """A message as people see it now; `edits` are the bodies that it had before."""

    channel: str
    ts: str
    text: str
    blocks: list[dict[str, Any]]
    metadata: dict[str, Any] | None
    thread_ts: str = ""
    mentions: list[str] = field(default_factory=list)
    bot_id: str = "B0OURS"
    edits: list[dict[str, Any]] = field(default_factory=list)

    @property
    def payload(self) -> dict[str, Any]:
        """Of its metadata."""
        return dict((self.metadata or {}).get("event_payload", {}))

    @property
    def shown(self) -> str:
        """All that a person reads, one block a line."""
        lines = []
        for block in self.blocks:
            texts = [block.get("text"), *block.get("fields", []), *block.get("elements", [])]
            lines += [text["text"] for text in texts if isinstance(text, dict) and isinstance(text.get("text"), str)]
        return "\n".join(lines)

    def as_slack(self, *, with_metadata: bool) -> dict[str, Any]:
        message: dict[str, Any] = {"type": "message", "bot_id": self.bot_id, "ts": self.ts, "text": self.text}
        message["blocks"] = self.blocks
        if self.thread_ts:
            message["thread_ts"] = self.thread_ts
        if self.edits:
            message["edited"] = {"user": "U0BOT", "ts": self.ts}
        if with_metadata and self.metadata is not None:
            message["metadata"] = self.metadata
        return message


class Refused(Exception):
    """Slack answers ``ok: false`` with this word."""


class SlackServer:
    """One workspace with one app, whose bot token and channels are given."""

    def __init__(
        self,
        *,
        token: str = TOKEN,
        channels: tuple[str, ...] = (CHANNEL,),
        scopes: tuple[str, ...] = ("chat:write", "channels:history"),
        port: int = 0,
        log: Path | None = None,
        answer_after_s: float = 30.0,
    ) -> None:
        self.token = token
        self.channels = channels
        self.scopes = scopes
        self.messages: list[Posted] = []
        self.requests: list[dict[str, Any]] = []
        self.faults: list[Fault] = []
        self.base_url = ""
        self._port = port
        self._log = log
        self._answer_after_s = answer_after_s  # so long a call without an answer is held
        self._count = 0
        self._runner: web.AppRunner | None = None
        self._going = asyncio.Event()

    async def __aenter__(self) -> Self:
        app = web.Application(client_max_size=4 * 1024 * 1024)
        app.router.add_route("*", "/api/{method}", self._api)
        app.router.add_get("/_fake/messages", self._show_messages)
        app.router.add_get("/_fake/requests", self._show_requests)
        app.router.add_post("/_fake/faults", self._take_faults)
        app.router.add_post("/_fake/delete", self._take_delete)
        self._runner = web.AppRunner(app, shutdown_timeout=0.1)
        await self._runner.setup()
        site = web.TCPSite(self._runner, "127.0.0.1", self._port)
        await site.start()
        host, port = self._runner.addresses[0][:2]
        self.base_url = f"http://{host}:{port}/api/"
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._going.set()
        if self._runner is not None:
            await self._runner.cleanup()

    def fail(self, method: str, kind: str, **more: Any) -> None:
        """Plan a fault; see `Fault`."""
        self.faults.append(Fault(method, kind, **more))

    def delete(self, channel: str, ts: str) -> None:
        """As a person would."""
        self.messages = [message for message in self.messages if (message.channel, message.ts) != (channel, ts)]

    @property
    def parents(self) -> list[Posted]:
        """What stands in the channels, oldest first, without threads."""
        return [message for message in self.messages if not message.thread_ts]

    def thread_of(self, parent: Posted) -> list[Posted]:
        return [message for message in self.messages if message.thread_ts == parent.ts]

    def calls(self, method: str) -> list[dict[str, Any]]:
        """Bodies of all requests of one method."""
        return [request["body"] for request in self.requests if request["method"] == method]

    async def _api(self, request: web.Request) -> web.StreamResponse:
        method = request.match_info["method"]
        body = await _body_of(request)
        entry = {"at": time.time(), "method": method, "http": request.method, "body": body}
        fault = self._next_fault(method)
        entry["fault"] = fault.kind if fault else ""
        self.requests.append(entry)
        answer: dict[str, Any] | None = None
        if fault is not None and fault.kind == "pass":
            fault = None
        if fault is None or fault.kind in {"timeout_after", "drop_after", "html", "garbage"}:
            answer = self._answer(method, body, request.headers.get("Authorization", ""))
            entry["answer"] = {name: answer[name] for name in ("ok", "error", "channel", "ts") if name in answer}
        self._write_log(entry)
        if fault is not None:
            return await self._misbehave(fault, request, answer or {})
        assert answer is not None
        return web.json_response(answer)

    def _next_fault(self, method: str) -> Fault | None:
        for fault in self.faults:
            if fault.method in {method, "*"} and fault.times > 0:
                fault.times -= 1
                return fault
        return None

    async def _misbehave(self, fault: Fault, request: web.Request, answer: dict[str, Any]) -> web.StreamResponse:
        match fault.kind:
            case "429":
                limited = {"ok": False, "error": "ratelimited"}
                return web.json_response(limited, status=429, headers={"Retry-After": str(fault.retry_after)})
            case "ratelimited":
                return web.json_response({"ok": False, "error": fault.error or "ratelimited"})
            case "error":
                return web.json_response({"ok": False, "error": fault.error})
            case "status":
                headers = {"Retry-After": str(fault.retry_after)}
                return web.Response(status=fault.status, text="", content_type="text/html", headers=headers)
            case "html":
                return web.Response(
                    text=f"<html>{request.headers.get('Authorization')}</html>", content_type="text/html"
                )
            case "garbage":
                return web.Response(text='["not", "an object"', content_type="application/json")
            case "timeout_before" | "timeout_after":
                with contextlib.suppress(TimeoutError):
                    await asyncio.wait_for(self._going.wait(), self._answer_after_s)
                return web.json_response(answer)
            case "drop_before" | "drop_after":
                assert request.transport is not None
                request.transport.abort()
                return web.Response()
        raise AssertionError(f"no such fault: {fault.kind}")

    def _answer(self, method: str, body: dict[str, Any], authorization: str) -> dict[str, Any]:
        methods: dict[str, Callable[[dict[str, Any]], dict[str, Any]]] = {
            "auth.test": self._auth_test,
            "chat.postMessage": self._post,
            "chat.update": self._update,
            "chat.getPermalink": self._permalink,
            "conversations.history": self._history,
            "conversations.replies": self._replies,
        }
        try:
            if not authorization.startswith("Bearer "):
                raise Refused("not_authed")
            if authorization.removeprefix("Bearer ") != self.token:
                raise Refused("invalid_auth")
            if method not in methods:
                raise Refused("unknown_method")
            return {"ok": True, **methods[method](body)}
        except Refused as refused:
            needed = {"needed": "channels:history", "provided": ",".join(self.scopes)}
            return {"ok": False, "error": str(refused), **(needed if str(refused) == "missing_scope" else {})}

    def _auth_test(self, body: dict[str, Any]) -> dict[str, Any]:
        return {"url": "https://fake.slack.example/", "team_id": "T0FAKE", "user_id": "U0BOT", "bot_id": "B0OURS"}

    def _post(self, body: dict[str, Any]) -> dict[str, Any]:
        channel = self._channel_of(body, "chat:write")
        if word := refusal_of(body):
            raise Refused(word)
        thread = str(body.get("thread_ts") or "")
        if thread and not any(message.ts == thread and message.channel == channel for message in self.messages):
            raise Refused("thread_not_found")
        self._count += 1
        posted = Posted(
            channel=channel,
            ts=f"{int(time.time())}.{self._count:06d}",
            text=body.get("text") or "",
            blocks=body.get("blocks") or [],
            metadata=body.get("metadata"),
            thread_ts=thread,
            mentions=mentions_in(body),
        )
        self.messages.append(posted)
        return {"channel": channel, "ts": posted.ts, "message": posted.as_slack(with_metadata=True)}

    def _update(self, body: dict[str, Any]) -> dict[str, Any]:
        channel = self._channel_of(body, "chat:write")
        message = self._message(channel, str(body.get("ts")))
        if message.bot_id != "B0OURS":
            raise Refused("cant_update_message")
        if word := refusal_of(body):
            raise Refused(word)
        message.edits.append({"text": message.text, "blocks": message.blocks, "metadata": message.metadata})
        message.text = body.get("text") or message.text
        message.blocks = body.get("blocks") or []
        message.metadata = body.get("metadata") or message.metadata
        message.mentions = mentions_in(body)
        return {"channel": channel, "ts": message.ts, "text": message.text}

    def _permalink(self, body: dict[str, Any]) -> dict[str, Any]:
        channel = self._channel_of(body, "chat:write")
        message = self._message(channel, str(body.get("message_ts")))
        address = f"https://fake.slack.example/archives/{channel}/p{message.ts.replace('.', '')}"
        return {"channel": channel, "permalink": address}

    def _history(self, body: dict[str, Any]) -> dict[str, Any]:
        channel = self._channel_of(body, "channels:history")
        newest_first = [message for message in reversed(self.messages) if message.channel == channel]
        return self._page(body, [message for message in newest_first if not message.thread_ts])

    def _replies(self, body: dict[str, Any]) -> dict[str, Any]:
        channel = self._channel_of(body, "channels:history")
        parent = self._message(channel, str(body.get("ts")), missing="thread_not_found")
        return self._page(body, [parent, *self.thread_of(parent)])

    def _page(self, body: dict[str, Any], messages: list[Posted]) -> dict[str, Any]:
        limit = min(int(body.get("limit") or 100), 999)
        start = int(body.get("cursor") or 0)
        with_metadata = str(body.get("include_all_metadata", "")).lower() in {"1", "true"}
        page = messages[start : start + limit]
        more = start + limit < len(messages)
        return {
            "messages": [message.as_slack(with_metadata=with_metadata) for message in page],
            "has_more": more,
            "response_metadata": {"next_cursor": str(start + limit) if more else ""},
        }

    def _channel_of(self, body: dict[str, Any], scope: str) -> str:
        if scope not in self.scopes:
            raise Refused("missing_scope")
        channel = str(body.get("channel") or "")
        if channel not in self.channels:
            raise Refused("channel_not_found")
        return channel

    def _message(self, channel: str, ts: str, missing: str = "message_not_found") -> Posted:
        for message in self.messages:
            if (message.channel, message.ts) == (channel, ts):
                return message
        raise Refused(missing)

    async def _show_messages(self, request: web.Request) -> web.Response:
        return web.json_response([asdict(message) for message in self.messages])

    async def _show_requests(self, request: web.Request) -> web.Response:
        return web.json_response(self.requests)

    async def _take_faults(self, request: web.Request) -> web.Response:
        self.faults += [Fault(**fault) for fault in await request.json()]
        return web.json_response({"ok": True})

    async def _take_delete(self, request: web.Request) -> web.Response:
        self.delete(**await request.json())
        return web.json_response({"ok": True})

    def _write_log(self, entry: dict[str, Any]) -> None:
        if self._log is not None:
            with self._log.open("a", encoding="utf-8") as log:
                log.write(json.dumps(entry) + "\n")


async def _body_of(request: web.Request) -> dict[str, Any]:
    if request.method == "GET":
        return dict(request.query)
    if request.content_type == "application/json":
        body = await request.json()
        return body if isinstance(body, dict) else {}
    form = {name: str(value) for name, value in (await request.post()).items()}
    for name in ("blocks", "metadata", "attachments"):
        if name in form:
            form[name] = json.loads(form[name])
    return form


async def serve(port: int, log: Path | None, token: str, channel: str) -> None:
    """Run until SIGTERM or SIGINT."""
    stop = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    async with SlackServer(token=token, channels=(channel,), port=port, log=log) as server:
        print(server.base_url, flush=True)
        await stop.wait()


def main(arguments: list[str]) -> None:
    parser = argparse.ArgumentParser(description="A local server that behaves like Slack's Web API.")
    parser.add_argument("--port", type=int, default=0, help="0 takes a free one; the first line printed names it")
    parser.add_argument("--log", type=Path, help="every request is appended here as a line of JSON")
    parser.add_argument("--token", default=TOKEN)
    parser.add_argument("--channel", default=CHANNEL)
    given = parser.parse_args(arguments)
    asyncio.run(serve(given.port, given.log, given.token, given.channel))


if __name__ == "__main__":
    main(sys.argv[1:])
