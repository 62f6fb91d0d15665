"""The dead man's switch: told while we are well, and only then."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from datetime import datetime, timedelta
from typing import Any

import pytest
from aiohttp import web
from pydantic import SecretStr

from sevenhop.telemetry import heartbeat as heartbeat_module
from sevenhop.telemetry.heartbeat import Heartbeat
from sevenhop.telemetry.meter import Meter
from sevenhop.telemetry.settings import HeartbeatSettings
from sevenhop.telemetry.table import HeartbeatOutcome
from tests.builders import NOON, at
from tests.unit.runtime.harness import until
from tests.unit.telemetry.pages import value


class Listener:
    """Takes heartbeats, or answers by a script."""

    def __init__(self, *statuses: int, after_s: float = 0) -> None:
        self._after_s = after_s
        self._statuses = list(statuses)
        self.taken: list[tuple[str, Any]] = []

    async def take(self, request: web.Request) -> web.Response:
        await asyncio.sleep(self._after_s)
        status = self._statuses.pop(0) if self._statuses else 200
        self.taken.append((request.path, await request.json()))
        headers = {"Location": "http://127.0.0.1:1/elsewhere"} if 300 <= status < 400 else {}
        return web.Response(status=status, text="token-of-the-answer", headers=headers)


@asynccontextmanager
async def listening(listener: Listener) -> AsyncIterator[str]:
    app = web.Application()
    app.router.add_route("*", "/{path:.*}", listener.take)
    runner = web.AppRunner(app, shutdown_timeout=0.1)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    try:
        yield f"http://127.0.0.1:{runner.addresses[0][1]}"
    finally:
        await runner.cleanup()


def beating(
    url: str, *, unwell: Callable[[], str] = lambda: "", meter: Meter | None = None, now: datetime = NOON, **more: Any
) -> Heartbeat:
    settings = HeartbeatSettings(url=SecretStr(url) if url else None, **more)
    return Heartbeat(settings, "prod-eu", meter or Meter("prod-eu"), unwell, lambda: now)


async def test_a_webhook_is_told_that_we_live() -> None:
    """With who, when and how often, so that it knows when to worry."""
    listener = Listener()
    async with listening(listener) as base:
        heart = beating(f"{base}/ping/abc")
        assert await heart.beat() is HeartbeatOutcome.SENT
        await heart.close()

    ((path, body),) = listener.taken
    assert path == "/ping/abc"
    assert (body["cluster"], body["status"], body["every_s"]) == ("prod-eu", "alive", 60)
    assert heart.last_success_at == NOON


@pytest.mark.parametrize("base", ["", "/", "/api/v2/alerts"])
async def test_an_alertmanager_keeps_an_alert_that_ends_by_itself(base: str) -> None:
    """It fires until four heartbeats are missed; with the base address or the whole path."""
    listener = Listener()
    async with listening(listener) as url:
        heart = beating(url + base, type="alertmanager")
        await heart.beat()
        await heart.close()

    ((path, (alert,)),) = listener.taken
    assert path == "/api/v2/alerts"
    assert alert["labels"] == {"alertname": "SevenhopAlive", "cluster": "prod-eu", "severity": "none"}
    assert alert["startsAt"] == "2026-11-30T12:00:00.000000Z"
    assert alert["endsAt"] == "2026-11-30T12:04:00.000000Z"


async def test_an_alertmanager_is_told_of_each_cluster_that_a_worker_serves() -> None:
    """One alert for each, which another worker goes on with; a cluster that nobody serves any more ends."""
    listener, served = Listener(), ["prod-eu", "prod-us"]
    async with listening(listener) as url:
        settings = HeartbeatSettings.model_validate({"url": url, "type": "alertmanager"})
        heart = Heartbeat(settings, "", Meter(""), lambda: "", lambda: NOON, role="worker", clusters=lambda: served)
        await heart.beat()
        served.remove("prod-us")
        await heart.beat()
        await heart.close()

    told = [[alert["labels"].get("cluster") for alert in alerts] for _, alerts in listener.taken]
    assert told == [[None, "prod-eu", "prod-us"], [None, "prod-eu"]]
    assert {alert["labels"]["role"] for _, alerts in listener.taken for alert in alerts} == {"worker"}


async def test_it_is_withheld_while_we_are_ill() -> None:
    """Who cannot store or makes no progress tells nobody of anything: that somebody shall notice."""
    listener = Listener()
    async with listening(listener) as base:
        heart = beating(base, unwell=lambda: "state is not stored: disk full")
        assert await heart.beat() is HeartbeatOutcome.WITHHELD
        await heart.close()

    assert listener.taken == []
    assert "disk full" in heart.status().text


@pytest.mark.parametrize("status", [301, 400, 401, 404, 429, 500, 503])
async def test_only_a_good_answer_counts(status: int) -> None:
    """A redirect or a refusal is no heartbeat, and says which answer it was."""
    async with listening(Listener(status)) as base:
        heart = beating(base)
        assert await heart.beat() is HeartbeatOutcome.FAILED
        await heart.close()

    assert heart.last_success_at is None
    assert heart.problem == f"HTTP {status}"


async def test_one_of_several_replicas_is_enough() -> None:
    """Alertmanagers tell each other; the one that does not answer is still named."""
    async with listening(Listener(500)) as ill, listening(listener := Listener()) as well:
        heart = beating(ill, also=[SecretStr(well)])
        assert await heart.beat() is HeartbeatOutcome.SENT
        await heart.close()

    assert len(listener.taken) == 1
    assert heart.problem == "HTTP 500"


async def test_no_failure_shows_the_address(caplog: pytest.LogCaptureFixture) -> None:
    """It may hold a token: neither log, nor doctor, nor an error's text shows it."""
    caplog.set_level(logging.DEBUG)
    heart = beating("http://127.0.0.1:1/ping/s3cr3t-token")
    assert await heart.beat() is HeartbeatOutcome.FAILED
    await heart.close()

    assert "s3cr3t-token" not in caplog.text + repr(heart.status()) + repr(heart.__dict__)
    assert "cannot be reached" in caplog.text


async def test_a_receiver_that_hangs_is_left() -> None:
    """Within its time limit, and the next one is tried."""
    async with listening(Listener(after_s=5)) as base:
        heart = beating(base, timeout=timedelta(milliseconds=50))
        assert await heart.beat() is HeartbeatOutcome.FAILED
        await heart.close()

    assert heart.problem == "no answer in time"


async def test_what_fails_is_tried_again_soon_and_counted(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Sooner than the next would be due; both the trouble and its end are said once."""
    monkeypatch.setattr(heartbeat_module, "FIRST_RETRY_S", 0.001)
    caplog.set_level(logging.INFO)
    meter, listener = Meter("prod-eu"), Listener(500, 500)
    async with listening(listener) as base:
        heart = beating(base, meter=meter)
        task = asyncio.create_task(heart.run())
        await until(lambda: heart.last_success_at is not None)
        task.cancel()
        await asyncio.wait([task])
        await heart.close()

    assert value(meter, "sevenhop_heartbeats_total", outcome="failed") == 2
    assert [r.message for r in caplog.records if r.name == "sevenhop.heartbeat"] == [
        "heartbeat: HTTP 500", "heartbeat is taken again",
    ]  # fmt: skip


async def test_without_an_address_nobody_is_told_and_doctor_says_so() -> None:
    """In words, because this is what people forget."""
    heart = beating("")
    await asyncio.wait_for(heart.run(), 30)

    assert heart.status().configured is False
    assert "Nobody would notice if Sevenhop died" in heart.status().text


def test_doctor_says_when_it_was_last_taken() -> None:
    """The first question after a false alarm."""
    heart = beating("http://localhost/x")
    assert "not taken yet" in heart.status().text
    heart.last_success_at = at(61)
    assert "last taken at 2026-11-30T12:01:01Z" in heart.status().text


@pytest.mark.parametrize(
    ("given", "said"),
    [
        pytest.param({"url": "ftp://x"}, "expected an address", id="no web address"),
        pytest.param({"url": "https://"}, "expected an address", id="no host"),
        pytest.param({"also": ["https://b"]}, "beside `url`", id="further ones alone"),
        pytest.param({"url": "https://a", "every": "1s"}, "at least 5s", id="too often"),
        pytest.param({"url": "https://a", "every": "60"}, "expected a duration", id="no unit"),
    ],
)
def test_settings_that_make_no_heartbeat(given: dict[str, Any], said: str) -> None:
    """Refused at the start with what to write, and without showing the address."""
    with pytest.raises(ValueError, match=said) as caught:
        HeartbeatSettings.model_validate(given)

    assert "https://a" not in str(caught.value)
