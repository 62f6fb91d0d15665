"""The webhook: a documented body, signed, that Alertmanager's readers understand."""

from __future__ import annotations

import hashlib
import hmac
import json
from collections.abc import AsyncIterator
from datetime import timedelta
from typing import Any

import pytest
from aiohttp import web
from pydantic import ValidationError

from sevenhop.channels.channel import PermanentDeliveryError, RetryableDeliveryError, UncertainDeliveryError
from sevenhop.channels.retry_after import retry_after_s
from sevenhop.channels.webhook.channel import WebhookChannel, status_failure
from sevenhop.channels.webhook.payload import payload_of
from sevenhop.channels.webhook.settings import WebhookSettings
from tests.unit.channels.notifies import NOON, message, notify, resolved


class Listener:
    """Keeps what is posted to it, and answers as told."""

    def __init__(self) -> None:
        self.url = ""
        self.got: list[tuple[dict[str, str], bytes]] = []
        self.answers: list[web.Response] = []

    async def handle(self, request: web.Request) -> web.StreamResponse:
        self.got.append((dict(request.headers), await request.read()))
        return self.answers.pop(0) if self.answers else web.Response(status=204)


@pytest.fixture
async def listener() -> AsyncIterator[Listener]:
    found = Listener()
    app = web.Application()
    app.router.add_route("*", "/{path:.*}", found.handle)
    runner = web.AppRunner(app, shutdown_timeout=0.1)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    found.url = f"http://127.0.0.1:{runner.addresses[0][1]}/hook?token=s3cret"
    yield found
    await runner.cleanup()


def build(url: str, **more: Any) -> WebhookChannel:
    return WebhookChannel(WebhookSettings.model_validate({"type": "webhook", "url": url, **more}), lambda: NOON)


async def test_the_signature_is_over_the_bytes_sent(listener: Listener) -> None:
    """A receiver verifies before it parses."""
    channel = build(listener.url, secret="k3y")
    await channel.deliver(notify(message=message(title="Größe <&>")), uncertain=False)
    await channel.close()

    headers, body = listener.got[0]
    assert headers["X-Sevenhop-Signature"] == "sha256=" + hmac.new(b"k3y", body, hashlib.sha256).hexdigest()


async def test_unsigned_without_a_secret(listener: Listener) -> None:
    """No secret, no header."""
    channel = build(listener.url)
    await channel.deliver(notify(), uncertain=False)
    await channel.close()

    assert "X-Sevenhop-Signature" not in listener.got[0][0]


async def test_every_attempt_has_the_same_id(listener: Listener) -> None:
    """Who must not act twice can tell a second attempt from a second message."""
    channel = build(listener.url)
    for asked, uncertain in ((notify(1), False), (notify(1), True), (notify(2), False)):
        await channel.deliver(asked, uncertain=uncertain)
    await channel.close()

    ids = [(headers["X-Sevenhop-Delivery"], json.loads(body)["incident"]["delivery"]) for headers, body in listener.got]
    assert ids[0] == ids[1] == (notify(1).id, notify(1).id)
    assert ids[2] != ids[0]


@pytest.mark.parametrize(
    ("said", "ends_at"),
    [
        pytest.param(message(), "0001-01-01T00:00:00Z", id="firing"),
        pytest.param(resolved(), "2026-11-30T12:06:00Z", id="resolved"),
    ],
)
def test_the_envelope_is_alertmanagers(said: Any, ends_at: str) -> None:
    """Every key of version 4, with the outward names in the labels."""
    body = payload_of(notify(message=said))

    assert {"version", "groupKey", "truncatedAlerts", "status", "receiver", "groupLabels", "commonLabels"} <= set(body)
    (alert,) = body["alerts"]
    assert set(alert) == {
        "status", "labels", "annotations", "startsAt", "endsAt", "generatorURL", "fingerprint",
    }  # fmt: skip
    assert (alert["startsAt"], alert["endsAt"]) == ("2026-11-30T11:58:00Z", ends_at)
    assert alert["labels"]["inference_workload"] == "llama-70b"
    assert alert["labels"]["alertname"] == "component-short-of-gpus"
    assert alert["annotations"]["runbook_url"] == "https://runbooks.example.com/gpus?a=1&b=2"
    assert body["incident"]["lines"][0]["role"] == "first_broken"


async def test_redirects_are_not_followed(listener: Listener) -> None:
    """A page must not wander to another host, as a GET at that."""
    listener.answers = [web.Response(status=302, headers={"Location": listener.url})]
    channel = build(listener.url)
    with pytest.raises(Exception, match="redirects; give the receiver the final url"):
        await channel.deliver(notify(), uncertain=False)
    await channel.close()

    assert len(listener.got) == 1


async def test_retry_after_as_a_date(listener: Listener) -> None:
    """Both forms of the header are read."""
    listener.answers = [web.Response(status=503, headers={"Retry-After": "Mon, 30 Nov 2026 12:00:40 GMT"})]
    channel = build(listener.url)
    with pytest.raises(RetryableDeliveryError) as caught:
        await channel.deliver(notify(), uncertain=False)
    await channel.close()

    assert caught.value.retry_after == 40


async def test_no_answer_is_uncertain(listener: Listener) -> None:
    """A time-out after the body was sent proves nothing."""
    import asyncio

    release = asyncio.Event()

    async def hang(request: web.Request) -> web.StreamResponse:
        listener.got.append(({}, await request.read()))
        await release.wait()
        return web.Response()

    app = web.Application()
    app.router.add_post("/", hang)
    runner = web.AppRunner(app, shutdown_timeout=0.1)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    channel = build(f"http://127.0.0.1:{runner.addresses[0][1]}/", timeout=timedelta(seconds=2))
    with pytest.raises(UncertainDeliveryError, match="no answer in time"):
        await channel.deliver(notify(), uncertain=False)
    release.set()
    await channel.close()
    await runner.cleanup()

    assert len(listener.got) == 1


@pytest.mark.parametrize(
    "url", ["", "example.com", "ftp://h/x", "https://", "https://h:0x/", "https://h /t0ken", "https://[::1/t0ken"]
)
def test_a_url_that_is_none_is_refused_unshown(url: str) -> None:
    """Found at load; the address may hold a token, so it is not repeated."""
    with pytest.raises(ValidationError) as caught:
        WebhookSettings.model_validate({"type": "webhook", "url": url})

    message = "".join(error["msg"] for error in caught.value.errors(include_input=False, include_url=False))
    assert "expected an address such as https://host/path" in message
    assert "t0ken" not in str(caught.value)


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("5", 5.0),
        (" 5 ", 5.0),
        ("9999999", 3_600.0),
        ("-1", None),
        ("1.5", None),
        ("٣", None),
        ("", None),
        ("x", None),
    ],
)
def test_retry_after(text: str, seconds: float | None) -> None:
    """Whole seconds, never more than an hour; what cannot be read is not there."""
    assert retry_after_s({"retry-after": text}, NOON) == seconds


def test_success_is_any_2xx() -> None:
    """And nothing else."""
    assert [status for status in range(100, 600) if status_failure(status, None) is None] == list(range(200, 300))


@pytest.mark.parametrize("url", ["http://a\\b/t0ken", "http://a..b/t0ken", "http://" + "a" * 300 + "/t0ken"])
async def test_an_address_that_only_the_client_refuses(url: str) -> None:
    """Refused for good and unshown, also in the errors that it came from."""
    channel = build(url)
    with pytest.raises(PermanentDeliveryError, match="its url is not an address") as caught:
        await channel.deliver(notify(), uncertain=False)
    await channel.close()

    assert (caught.value.__cause__, caught.value.__context__) == (None, None)
