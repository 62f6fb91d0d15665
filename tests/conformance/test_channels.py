"""What every channel must do; one that is added to the table is found by itself."""

from __future__ import annotations

import io
import re
import traceback
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from datetime import timedelta
from typing import Any

import pytest
from aiohttp import web
from pydantic import BaseModel, SecretStr, TypeAdapter, ValidationError

from sevenhop.channels import CHANNELS, build_channel
from sevenhop.channels.channel import (
    Channel,
    Delivery,
    DeliveryError,
    PermanentDeliveryError,
    RetryableDeliveryError,
    UncertainDeliveryError,
)
from sevenhop.channels.spec import ChannelSpec
from sevenhop.core.effects import Line, Message, Notify, Role
from sevenhop.settings import Receiver
from tests.fakes.pagerduty_server import PagerDutyServer
from tests.fakes.slack_server import SlackServer
from tests.unit.channels.notifies import NOON, message, notify, resolved

NOTHING_DONE = {408, 425, 429, 503}
"""Statuses after which the receiver surely has nothing."""

HOSTILE = "<!channel> <@U1> [bold] {{ 7 }} %s ${HOME} \x1b[31m\x00\r\n\u202e\ud800 \U0001f600"

STATUSES = [*range(201, 227), *range(300, 309), *range(400, 452), *range(500, 512), 599]


@pytest.fixture(params=sorted(CHANNELS))
def spec(request: pytest.FixtureRequest) -> ChannelSpec:
    return CHANNELS[request.param]


@pytest.fixture(params=sorted(name for name, spec in CHANNELS.items() if spec.addresses))
def remote(request: pytest.FixtureRequest) -> ChannelSpec:
    """A channel that talks to somebody over the network."""
    return CHANNELS[request.param]


def build(spec: ChannelSpec, address: str = "", stream: io.StringIO | None = None, **more: Any) -> Channel:
    given = {**spec.example, **dict.fromkeys(spec.addresses, address), **more}
    if not spec.addresses:
        given = dict(spec.example)
    return build_channel(spec.settings.model_validate(given), clock=lambda: NOON, stream=stream)


def secrets_of(settings: BaseModel) -> Iterator[str]:
    for name in type(settings).model_fields:
        value = getattr(settings, name)
        if isinstance(value, SecretStr):
            yield value.get_secret_value()


class Answering:
    """Answers everything with one status."""

    def __init__(self, status: int, body: str = "no", content_type: str = "text/plain") -> None:
        self.status = status
        self.body = body
        self.content_type = content_type
        self.address = ""

    async def __aenter__(self) -> Answering:
        app = web.Application()
        app.router.add_route("*", "/{path:.*}", self._answer)
        self._runner = web.AppRunner(app, shutdown_timeout=0.1)
        await self._runner.setup()
        await web.TCPSite(self._runner, "127.0.0.1", 0).start()
        # The path is where a webhook has its token: it must not show either.
        self.address = f"http://127.0.0.1:{self._runner.addresses[0][1]}/path-t0ken/"
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._runner.cleanup()

    async def _answer(self, request: web.Request) -> web.Response:
        headers = {"Retry-After": "17"}
        return web.Response(status=self.status, text=self.body, content_type=self.content_type, headers=headers)


def test_the_settings_know_every_channel() -> None:
    """A channel in the table can be configured, and the other way round."""
    schema = TypeAdapter(Receiver).json_schema()

    assert set(schema["discriminator"]["mapping"]) == set(CHANNELS)


def test_the_example_is_complete(spec: ChannelSpec) -> None:
    """It can be copied into a settings file; a misspelt key in it would be an error."""
    settings = spec.settings.model_validate(dict(spec.example))

    assert spec.example["type"] == spec.name
    assert spec.summary.endswith(".")
    with pytest.raises(ValidationError):
        spec.settings.model_validate({**spec.example, "unknown": 1})
    assert not [secret for secret in secrets_of(settings) if secret in repr(settings) + settings.model_dump_json()]


@pytest.mark.parametrize("status", STATUSES)
async def test_every_status_is_told_apart(remote: ChannelSpec, status: int) -> None:
    """
    A status that says "nothing done" is retried, with the receiver's patience; after a server's failure nobody knows;
    a refusal is for good.  No error shows a secret or the address.
    """
    async with Answering(status) as server:
        channel = build(remote, server.address)
        try:
            outcome = await delivered(channel, notify())
        finally:
            await channel.close()

    if 200 <= status < 300:
        # An answer that is none of the receiver's own is no proof for a channel that reads it.
        assert outcome is None or type(outcome) is UncertainDeliveryError
    elif status in NOTHING_DONE:
        assert type(outcome) is RetryableDeliveryError
        assert outcome.retry_after == 17
    elif status >= 500:
        assert type(outcome) is UncertainDeliveryError
    else:
        assert isinstance(outcome, PermanentDeliveryError)
    if outcome is not None:
        assert_shows_no_secret(outcome, remote, "path-t0ken")


@pytest.mark.parametrize("body", ["", "<html>", "[]", '"x"', "{", "null", '{"ok": false}', "\ud83d"])
async def test_an_answer_that_is_rubbish(remote: ChannelSpec, body: str) -> None:
    """Whatever a proxy puts into a 200, a delivery ends in one of its own errors, or well."""
    text = body.encode("utf-8", "replace").decode()
    for content_type in ("application/json", "text/html"):
        async with Answering(200, text, content_type) as server:
            channel = build(remote, server.address)
            try:
                outcome = await delivered(channel, notify())
            finally:
                await channel.close()
        assert outcome is None or isinstance(outcome, DeliveryError)


@pytest.mark.parametrize("address", ["http://127.0.0.1:1/path-t0ken", "http://no-such-host.invalid/path-t0ken"])
async def test_nobody_there(remote: ChannelSpec, address: str) -> None:
    """Without a connection nothing arrived; the traceback shows no secret."""
    channel = build(remote, address, timeout=timedelta(seconds=5))
    try:
        outcome = await delivered(channel, notify())
    finally:
        await channel.close()

    assert type(outcome) is RetryableDeliveryError
    assert_shows_no_secret(outcome, remote, "path-t0ken")


async def delivered(channel: Channel, asked: Notify) -> Any:
    """The error of a delivery, None if it arrived."""
    try:
        assert isinstance(await channel.deliver(asked, uncertain=False), Delivery)
    except DeliveryError as error:
        return error
    return None


def assert_shows_no_secret(error: BaseException, spec: ChannelSpec, *more: str) -> None:
    """Neither its own text nor any error that it came from, as a log with tracebacks would show it."""
    settings = spec.settings.model_validate(dict(spec.example))
    shown = ""
    following: BaseException | None = error
    while following is not None:
        shown += "".join(traceback.format_exception(following)) + repr(following)
        following = following.__cause__ or following.__context__
    assert not [secret for secret in (*secrets_of(settings), *more) if secret in shown]


class Watched:
    """A channel, and what people see of it: one entry per message that stands there, as it reads now."""

    def __init__(self, channel: Channel, seen: Any) -> None:
        self.channel = channel
        self.seen = seen


@asynccontextmanager
async def watched(spec: ChannelSpec) -> AsyncIterator[Watched]:
    """A channel with a working other end; a new channel in the table needs one here."""
    match spec.name:
        case "console":
            stream = io.StringIO()
            heads = re.compile(r"^\d\d:\d\d:\d\d .*", re.MULTILINE)
            yield Watched(build(spec, stream=stream), lambda: heads.findall(stream.getvalue()))
        case "slack":
            async with SlackServer(token=spec.example["token"], channels=(spec.example["channel"],)) as slack:
                channel = build(spec, slack.base_url)
                yield Watched(channel, lambda: [parent.shown for parent in slack.parents])
                await channel.close()
        case "pagerduty":
            async with PagerDutyServer() as pagerduty:
                channel = build(spec, pagerduty.base_url)
                words = {"triggered": "CRITICAL", "acknowledged": "CRITICAL", "resolved": "RECOVERED"}
                yield Watched(channel, lambda: [words[each.status] for each in pagerduty.incidents])
                await channel.close()
        case "webhook":
            got: dict[str, str] = {}

            async def take(request: web.Request) -> web.Response:
                # As a receiver that remembers ids does.
                got.setdefault(request.headers["Idempotency-Key"], str(await request.json()))
                return web.Response(status=202)

            app = web.Application()
            app.router.add_post("/", take)
            runner = web.AppRunner(app, shutdown_timeout=0.1)
            await runner.setup()
            await web.TCPSite(runner, "127.0.0.1", 0).start()
            channel = build(spec, f"http://127.0.0.1:{runner.addresses[0][1]}/")
            yield Watched(channel, lambda: list(got.values()))
            await channel.close()
            await runner.cleanup()
        case _:
            raise NotImplementedError(f"no other end for {spec.name}: write one here")


async def test_the_same_revision_twice_is_seen_once(spec: ChannelSpec) -> None:
    """However often it is delivered, and whatever is known of the attempt before."""
    async with watched(spec) as there:
        for uncertain in (False, False, True):
            await there.channel.deliver(notify(), uncertain=uncertain)

        assert len(there.seen()) == 1


async def test_the_end_is_seen(spec: ChannelSpec) -> None:
    """After the end of an incident its last word is that it has ended, also if it is said twice."""
    async with watched(spec) as there:
        first = await there.channel.deliver(notify(1), uncertain=False)
        end = notify(2, message=resolved(), reference=first.reference)
        for uncertain in (False, True):
            await there.channel.deliver(end, uncertain=uncertain)
        last = there.seen()[-1]

        assert "RECOVERED" in last or "'recovered'" in last
        assert "CRITICAL" not in last


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("x" * 60_000, id="long"),
        pytest.param("&<>" * 5_000, id="all to be escaped"),
        pytest.param(HOSTILE, id="hostile"),
        pytest.param("", id="empty"),
    ],
)
async def test_any_text_is_delivered(spec: ChannelSpec, text: str) -> None:
    """No text from a cluster keeps a page from arriving."""
    said: Message = message(
        title=text,
        cluster=text,
        lines=tuple(Line(role, text, text) for role in Role),
        details=(text,) * 5,
        labels={"inference_workload": text},
    )
    async with watched(spec) as there:
        await there.channel.deliver(notify(message=said, causes=(text,), cause=text), uncertain=False)

        assert there.seen()


async def test_closed_twice(spec: ChannelSpec) -> None:
    """Closing is for the end of the process, whatever happened before."""
    channel = build(spec, "http://127.0.0.1:1/", stream=io.StringIO())
    await channel.close()
    await channel.close()
