"""
Clicks over HTTP: Slack posts to us, signed.

Docs: docs.slack.dev, verifying requests from Slack.  The signature covers the raw body and a time; what is older than
five minutes, or was seen before, is refused.  What Slack itself sends again, because it saw no answer in three seconds,
is answered and not taken twice.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Callable
from datetime import datetime
from typing import Any
from urllib.parse import parse_qs

from aiohttp import web
from pydantic import SecretStr
from slack_sdk.signature import Clock as SignatureClock
from slack_sdk.signature import SignatureVerifier

from sevenhop.channels.body import read_body

log = logging.getLogger("sevenhop.channels.slack")

WINDOW_S = 300
"""Slack's own: older requests may be replays."""

MAX_BODY = 512 * 1024
REMEMBERED = 10_000

RETRY = "X-Slack-Retry-Num"
"""1, 2 or 3; not signed, so it only decides what is answered to what was taken before."""


class _Time(SignatureClock):
    def __init__(self, clock: Callable[[], datetime]) -> None:
        self._clock = clock

    def now(self) -> float:
        return self._clock().timestamp()


class SlackEndpoint:
    """
    Attributes:
        refused: Requests that were not Slack's, or were replays.
    """

    def __init__(self, secret: SecretStr, take: Callable[[str, Any], str], clock: Callable[[], datetime]) -> None:
        self._verifier = SignatureVerifier(secret.get_secret_value(), clock=_Time(clock))
        self._take = take
        self._clock = clock
        self._seen: dict[str, float] = {}
        self.refused = 0

    async def actions(self, request: web.Request) -> web.Response:
        """POST with one form field `payload`, JSON."""
        form = await self._verified(request)
        if isinstance(form, web.Response):
            return form
        try:
            payload = json.loads(form.get("payload", ""))
        except (ValueError, RecursionError):
            return web.Response(status=400, text="the payload is not JSON")
        self._take("interactive", payload)
        return web.Response()

    async def commands(self, request: web.Request) -> web.Response:
        """POST of a slash command's form."""
        form = await self._verified(request)
        if isinstance(form, web.Response):
            return form
        return web.Response(text=self._take("slash_commands", form))

    async def _verified(self, request: web.Request) -> dict[str, str] | web.Response:
        """The form; the answer where there is nothing to take: not from Slack, too old, or taken before."""
        try:
            body = await read_body(request, MAX_BODY)
            form = self._read(body, request.headers)
        except (ValueError, TypeError, UnicodeError, TimeoutError) as error:
            # The verifier raises on hostile input instead of answering no.
            log.warning("slack: refused a request: %s", type(error).__name__)
            form = None
        if form is None:
            self.refused += 1
            return web.Response(status=401, text="not a request of Slack's")
        if not self._is_first(request.headers["X-Slack-Signature"]):
            return self._again(request)
        return form

    def _again(self, request: web.Request) -> web.Response:
        """A retry is told that it has arrived, for else the person sees a failure; nothing is done for it."""
        if request.headers.get(RETRY, "").isdecimal():
            log.info("slack: sent again, and taken before")
            return web.Response()
        log.warning("slack: refused a request: it was seen before")
        self.refused += 1
        return web.Response(status=401, text="not a request of Slack's")

    def _read(self, body: bytes, headers: Any) -> dict[str, str] | None:
        signature = headers.get("X-Slack-Signature", "")
        stamp = headers.get("X-Slack-Request-Timestamp", "")
        if len(body) > MAX_BODY or not stamp.isdecimal() or not stamp.isascii():
            return None
        if not self._verifier.is_valid(body=body, timestamp=stamp, signature=signature):
            log.warning("slack: refused a request: its signature or its time is wrong")
            return None
        form = parse_qs(body.decode(), keep_blank_values=True)
        return {name: values[0] for name, values in form.items()}

    def _is_first(self, signature: str) -> bool:
        now = self._clock().timestamp()
        while self._seen and (len(self._seen) > REMEMBERED or next(iter(self._seen.values())) < now - 2 * WINDOW_S):
            self._seen.pop(next(iter(self._seen)))
        if signature in self._seen:
            return False
        self._seen[signature] = now
        return True
