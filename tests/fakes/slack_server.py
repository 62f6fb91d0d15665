"""
A local server that behaves like Slack's Web API, for the real slack-sdk.

In a test: ``async with SlackServer() as slack: … slack.base_url … slack.messages``.  On its own, for tests that kill
processes: ``python -m tests.fakes.slack_server --port 0 --log FILE`` prints its base URL as its first line, appends
every request to FILE as a line of JSON, and shows and takes back what it holds over HTTP:

    GET  /_fake/messages        messages of all channels, oldest first, each with its edits
    GET  /_fake/requests        every request so far
    POST /_fake/faults          a list of faults, see `Fault`; they are played in order
    POST /_fake/delete          {"channel", "ts"}: as a person would
    POST /_fake/click           {"user", "action", "ts"?, "option"?}: as a person would, over Socket Mode; with {"to"}
                                posted there and signed, see `ByHttp`; answers what Slack was answered
    POST /_fake/people          {"groups"?, "users"?}: as an administrator would
    GET  /_fake/whispers        what single persons were told, oldest first

People and user groups are given as `People`; `click` and `command` build what Slack sends, `signed` signs it for HTTP.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import hashlib
import hmac
import json
import signal
import sys
import time
import urllib.parse
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from aiohttp import ClientSession, web

from tests.fakes.slack_limits import mentions_in, refusal_of

TOKEN = "xoxb-fake-token"
APP_TOKEN = "xapp-fake-token"
SECRET = "fake-signing-secret"
TEAM = "T0FAKE"
APP = "A0FAKE"
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


@dataclass
class People:
    """
    The workspace's members by id, and its user groups; change them as an administrator would.

    Attributes:
        users: Id to the user object's fields beside the id: ``real_name``, ``email``, ``deleted``, ``is_bot``.
        groups: Id to the ids of its members.
    """

    users: dict[str, dict[str, Any]] = field(default_factory=dict)
    groups: dict[str, list[str]] = field(default_factory=dict)


@dataclass
class ByHttp:
    """
    How a payload is posted: to which address, and what a forger would do otherwise.

    Attributes:
        secret: That it is signed with.
        age_s: How long ago it was signed.
        value: What the button carries, instead of what the message says.
    """

    to: str
    secret: str = SECRET
    age_s: float = 0.0
    value: str = ""


def _everybody() -> People:
    users = {
        "U0KIM": {"real_name": "Kim", "email": "kim@example.com"},
        "U0LEE": {"real_name": "Lee", "email": "lee@example.com"},
        "U0GUEST": {"real_name": "Guest", "email": "guest@example.com"},
    }
    return People(users=users, groups={"S0ONCALL": ["U0KIM", "U0LEE"]})


class SlackServer:
    """One workspace with one app, whose bot token and channels are given."""

    def __init__(
        self,
        *,
        token: str = TOKEN,
        channels: tuple[str, ...] = (CHANNEL,),
        scopes: tuple[str, ...] = (
            "chat:write",
            "channels:history",
            "users:read",
            "users:read.email",
            "usergroups:read",
        ),
        people: People | None = None,
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
        self.people = people or _everybody()
        self.whispers: list[dict[str, Any]] = []
        self.views: list[dict[str, Any]] = []
        self.unanswered: dict[str, dict[str, Any]] = {}  # envelopes that nobody answered yet
        self.answered_after_s: list[float] = []
        self._sockets: list[web.WebSocketResponse] = []
        self._envelopes = 0
        self._sent_at: dict[str, float] = {}
        self._triggers: set[str] = set()
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
        app.router.add_post("/_fake/click", self._take_click)
        app.router.add_post("/_fake/people", self._take_people)
        app.router.add_get("/_fake/whispers", self._show_whispers)
        app.router.add_get("/socket", self._socket)
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
        for socket in list(self._sockets):
            await socket.close()
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
            "chat.postEphemeral": self._whisper,
            "users.info": self._user,
            "bots.info": self._bot,
            "usergroups.users.list": self._group,
            "views.open": self._view,
            "apps.connections.open": self._connection,
        }
        try:
            if not authorization.startswith("Bearer "):
                raise Refused("not_authed")
            wanted = APP_TOKEN if method == "apps.connections.open" else self.token
            if authorization.removeprefix("Bearer ") != wanted:
                raise Refused("invalid_auth")
            if method not in methods:
                raise Refused("unknown_method")
            return {"ok": True, **methods[method](body)}
        except Refused as refused:
            needed = {"needed": "channels:history", "provided": ",".join(self.scopes)}
            return {"ok": False, "error": str(refused), **(needed if str(refused) == "missing_scope" else {})}

    def _auth_test(self, body: dict[str, Any]) -> dict[str, Any]:
        return {"url": "https://fake.slack.example/", "team_id": TEAM, "user_id": "U0BOT", "bot_id": "B0OURS"}

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

    def _whisper(self, body: dict[str, Any]) -> dict[str, Any]:
        channel = self._channel_of(body, "chat:write")
        if word := refusal_of(body):
            raise Refused(word)
        if body.get("user") not in self.people.users:
            raise Refused("user_not_in_channel")
        self.whispers.append({"channel": channel, "user": body["user"], "text": body.get("text", "")})
        return {"message_ts": f"{time.time():.6f}"}

    def _user(self, body: dict[str, Any]) -> dict[str, Any]:
        self._needs("users:read")
        user = str(body.get("user") or "")
        if user not in self.people.users:
            raise Refused("user_not_found")
        known = dict(self.people.users[user])
        profile = {"email": known.pop("email", "")} if "users:read.email" in self.scopes else {}
        return {"user": {"id": user, "team_id": TEAM, "deleted": False, "is_bot": False, "profile": profile, **known}}

    def _bot(self, body: dict[str, Any]) -> dict[str, Any]:
        self._needs("users:read")
        if body.get("bot") != "B0OURS":
            raise Refused("bot_not_found")
        return {"bot": {"id": "B0OURS", "deleted": False, "name": "sevenhop", "app_id": APP, "user_id": "U0BOT"}}

    def _group(self, body: dict[str, Any]) -> dict[str, Any]:
        self._needs("usergroups:read")
        group = str(body.get("usergroup") or "")
        if group not in self.people.groups:
            raise Refused("no_such_subteam")
        return {"users": list(self.people.groups[group])}

    def _view(self, body: dict[str, Any]) -> dict[str, Any]:
        trigger = str(body.get("trigger_id") or "")
        if trigger not in self._triggers:
            raise Refused("expired_trigger_id")
        self._triggers.discard(trigger)
        view = body.get("view") or {}
        title = view.get("title", {}).get("text", "")
        if view.get("type") != "modal" or not 1 <= len(title) <= 24 or len(view.get("blocks", [])) > 100:
            raise Refused("invalid_arguments")
        self.views.append(view)
        return {"view": {"id": "V1"}}

    def _connection(self, body: dict[str, Any]) -> dict[str, Any]:
        return {"url": self.base_url.replace("http://", "ws://").replace("/api/", "/socket?ticket=1")}

    def _needs(self, scope: str) -> None:
        if scope not in self.scopes:
            raise Refused("missing_scope")

    # People who click

    def clicked(
        self,
        user: str,
        action: str,
        *,
        ts: str = "",
        option: str = "",
        team: str = TEAM,
        name: str = "",
        app: str = APP,
    ) -> dict[str, Any]:
        """
        The payload of a click on a button of a message as it stands now.

        Args:
            action: Its `action_id`.
            ts: Of the message; empty takes the newest that has such a button.
            option: Of a select, the duration that its value begins with.
        """
        for message in reversed(self.messages):
            if ts and message.ts != ts:
                continue
            for block in message.blocks:
                for element in block.get("elements", []) if block["type"] == "actions" else []:
                    if element["action_id"] == action:
                        payload = self._payload(user, message, block, element, option, team, name)
                        return {**payload, "api_app_id": app}
        raise AssertionError(f"no message has a button {action}")

    def _payload(
        self,
        user: str,
        message: Posted,
        block: dict[str, Any],
        element: dict[str, Any],
        option: str,
        team: str,
        name: str,
    ) -> dict[str, Any]:
        self._count += 1
        trigger = f"trigger-{self._count}"
        self._triggers.add(trigger)
        action = {
            "type": element["type"],
            "action_id": element["action_id"],
            "block_id": block.get("block_id", "b"),
            "action_ts": f"{time.time():.6f}{self._count}",
        }
        if element["type"] == "static_select":
            action["selected_option"] = next(o for o in element["options"] if o["value"].startswith(option + " "))
        else:
            action["value"] = element.get("value", "")
        return {
            "type": "block_actions",
            "user": {"id": user, "username": user.lower(), "name": name or user.lower(), "team_id": team},
            "token": "deprecated",
            "container": {"type": "message", "message_ts": message.ts, "channel_id": message.channel},
            "trigger_id": trigger,
            "team": {"id": team, "domain": "fake"},
            "enterprise": None,
            "is_enterprise_install": False,
            "channel": {"id": message.channel, "name": "llm-alerts"},
            "message": {"type": "message", "ts": message.ts, "text": message.text, "blocks": message.blocks},
            "state": {"values": {}},
            "response_url": "https://hooks.slack.example/actions/T/1/x",
            "actions": [action],
        }

    def commanded(self, user: str, text: str, *, team: str = TEAM, app: str = APP) -> dict[str, str]:
        """The form of a slash command."""
        self._count += 1
        return {
            "command": "/sevenhop",
            "text": text,
            "user_id": user,
            "user_name": user.lower(),
            "team_id": team,
            "api_app_id": app,
            "channel_id": self.channels[0],
            "trigger_id": f"trigger-{self._count}",
            "response_url": "https://hooks.slack.example/commands/1",
        }

    async def click(self, user: str, action: str, **more: Any) -> dict[str, Any]:
        """Click, over Socket Mode; returns the payload, to send it again."""
        payload = self.clicked(user, action, **more)
        await self.send("interactive", payload)
        return payload

    async def send(self, kind: str, payload: Mapping[str, Any]) -> str:
        """One envelope to one of the connections; returns its id."""
        self._envelopes += 1
        envelope = f"e{self._envelopes}"
        assert self._sockets, "nobody is connected over Socket Mode"
        self.unanswered[envelope] = dict(payload)
        self._sent_at[envelope] = time.monotonic()
        frame = {"envelope_id": envelope, "type": kind, "accepts_response_payload": True, "payload": payload}
        await self._sockets[-1].send_json(frame)
        return envelope

    async def _socket(self, request: web.Request) -> web.WebSocketResponse:
        socket = web.WebSocketResponse()
        await socket.prepare(request)
        await socket.send_json({"type": "hello", "num_connections": 1, "connection_info": {"app_id": APP}})
        self._sockets.append(socket)
        try:
            async for message in socket:
                envelope = json.loads(message.data).get("envelope_id", "") if message.data else ""
                if envelope in self.unanswered:
                    del self.unanswered[envelope]
                    self.answered_after_s.append(time.monotonic() - self._sent_at[envelope])
        finally:
            self._sockets.remove(socket)
        return socket

    @property
    def is_connected(self) -> bool:
        """Whether somebody listens over Socket Mode."""
        return bool(self._sockets)

    async def disconnect(self) -> None:
        """As Slack does when it refreshes a connection."""
        for socket in list(self._sockets):
            await socket.send_json({"type": "disconnect", "reason": "refresh_requested"})
            await socket.close()

    async def _take_click(self, request: web.Request) -> web.Response:
        asked = await request.json()
        how = {name: asked.pop(name) for name in ("to", "secret", "age_s", "value") if name in asked}
        try:
            if how:
                return web.json_response(await self.post(ByHttp(**how), self.clicked(**asked)))
            await self.click(**asked)
        except AssertionError as error:
            return web.json_response({"ok": False, "error": str(error)}, status=409)
        return web.json_response({"ok": True})

    async def post(self, how: ByHttp, payload: dict[str, Any]) -> dict[str, Any]:
        """One click over HTTP; the answer with the seconds that it took, and what was sent, to send it again."""
        if how.value:
            payload["actions"][0]["value"] = how.value
        body, headers = signed({"payload": json.dumps(payload)}, secret=how.secret, at=time.time() - how.age_s)
        began = time.monotonic()
        async with ClientSession() as session, session.post(how.to, data=body, headers=headers) as answer:
            said = {"status": answer.status, "text": await answer.text(), "seconds": time.monotonic() - began}
        return {**said, "body": body.decode(), "headers": headers}

    async def _take_people(self, request: web.Request) -> web.Response:
        changed = await request.json()
        self.people.groups.update(changed.get("groups", {}))
        self.people.users.update(changed.get("users", {}))
        return web.json_response({"ok": True})

    async def _show_whispers(self, request: web.Request) -> web.Response:
        return web.json_response(self.whispers)

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


def signed(form: Mapping[str, str], *, secret: str = SECRET, at: float | None = None) -> tuple[bytes, dict[str, str]]:
    """Body and headers of a request as Slack sends it over HTTP; a payload goes into the field `payload`, as JSON."""
    body = urllib.parse.urlencode(form).encode()
    stamp = str(int(time.time() if at is None else at))
    base = b"v0:" + stamp.encode() + b":" + body
    signature = "v0=" + hmac.new(secret.encode(), base, hashlib.sha256).hexdigest()
    return body, {
        "Content-Type": "application/x-www-form-urlencoded",
        "X-Slack-Request-Timestamp": stamp,
        "X-Slack-Signature": signature,
    }


async def serve(port: int, log: Path | None, token: str, channels: tuple[str, ...]) -> None:
    """Run until SIGTERM or SIGINT."""
    stop = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    async with SlackServer(token=token, channels=channels, port=port, log=log) as server:
        print(server.base_url, flush=True)
        await stop.wait()


def main(arguments: list[str]) -> None:
    parser = argparse.ArgumentParser(description="A local server that behaves like Slack's Web API.")
    parser.add_argument("--port", type=int, default=0, help="0 takes a free one; the first line printed names it")
    parser.add_argument("--log", type=Path, help="every request is appended here as a line of JSON")
    parser.add_argument("--token", default=TOKEN)
    parser.add_argument("--channel", action="append", help="more than once for several; the first one hears commands")
    given = parser.parse_args(arguments)
    asyncio.run(serve(given.port, given.log, given.token, tuple(given.channel or (CHANNEL,))))


if __name__ == "__main__":
    main(sys.argv[1:])
