"""The service, watched: what it says of its own health, and that it is measured as it is put together."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import aiohttp
import pytest
from prometheus_client.parser import text_string_to_metric_families

from sevenhop.cli.doctor import text_of
from sevenhop.runtime import embedded as embedded_module
from sevenhop.runtime import listening
from sevenhop.runtime.listening import Writable, why_not_ready, why_not_well, why_unhealthy
from sevenhop.runtime.watched import Watched
from sevenhop.sources.kubernetes.api import Access, ApiServer
from sevenhop.sources.kubernetes.source import KubernetesSource
from sevenhop.stores.sqlite import SqliteStore, StoreBusyError
from sevenhop.telemetry.meter import Meter
from sevenhop.telemetry.settings import TelemetrySettings
from sevenhop.web.server import WebServer
from tests.builders import node
from tests.unit.runtime.harness import Plant, Script, quick_clock, running, until


@contextmanager
def refusing(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The store says that the disk is full."""

    def full(*_args: object, **_more: object) -> None:
        raise StoreBusyError("state.db: database or disk is full")

    with monkeypatch.context() as patch:
        patch.setattr(SqliteStore, "commit", full)
        yield


async def test_an_engine_that_waits_for_nothing_is_healthy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """However long nothing happens: only a step that is under way can take too long."""
    monkeypatch.setattr(listening, "MAY_TAKE_S", 0.05)
    async with running(tmp_path, {"slack": Script()}) as plant:
        plant.told.synced(node("n1"))
        await until(lambda: plant.embedded.is_idle)
        await asyncio.sleep(0.15)
        await until(lambda: why_unhealthy(plant.embedded) == "")  # a step of its own may be under way just now


async def test_a_step_that_never_ends_is_not_healthy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever it hangs on, the process answers and does nothing: it is to be started anew."""
    monkeypatch.setattr(listening, "MAY_TAKE_S", 0.05)
    async with running(tmp_path, {"slack": Script()}) as plant:
        async with plant.embedded._stepping:
            plant.told.synced(node("n1"))
            await until(lambda: why_unhealthy(plant.embedded) != "")
            assert "no progress" in why_not_well(plant.embedded)
        await until(lambda: why_unhealthy(plant.embedded) == "" and plant.embedded.is_idle)


async def test_a_full_disk_is_no_reason_to_be_started_anew(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is healthy and not well: a new process would meet the same disk; but no heartbeat is sent."""
    monkeypatch.setattr(embedded_module, "STORE_RETRY_S", 0.01)
    monkeypatch.setattr(listening, "MAY_TAKE_S", 0.05)
    async with running(tmp_path, {"slack": (slack := Script())}) as plant:
        plant.told.synced(node("n1"))
        await until(lambda: plant.embedded.is_idle)
        with refusing(monkeypatch):
            plant.told.node("n1", ready=False)
            await until(lambda: plant.embedded.behind_s > 0.1)
            assert why_unhealthy(plant.embedded) == ""
            assert "disk is full" in why_not_well(plant.embedded)
        await until(lambda: len(slack.messages) == 1 and plant.embedded.is_idle)
        await until(lambda: why_not_well(plant.embedded) == "")


async def test_ready_is_listed_and_writable(tmp_path: Path) -> None:
    """It says which kinds were not listed yet; a file that takes no write is said even in a quiet cluster."""
    async with running(tmp_path, {"slack": Script()}) as plant:
        source = KubernetesSource(ApiServer(Access(base_url="http://127.0.0.1:1")), clock=quick_clock())
        assert why_not_ready(source, plant.embedded, plant.store.why_not_writable).startswith("not listed yet: Pod")
        plant.store._db.execute("pragma query_only = on")
        assert "state cannot be stored" in why_not_ready(source, plant.embedded, plant.store.why_not_writable)
        plant.store._db.execute("pragma query_only = off")
        assert plant.store.why_not_writable() == ""


def test_who_asks_often_does_not_make_us_write() -> None:
    """The last answer stands for some seconds, whoever asks."""
    clock, answers = [0.0], iter(["", "full", ""])
    writable = Writable(lambda: next(answers), monotonic=lambda: clock[0])
    said = []
    for clock[0] in (0, 1, listening.TRY_EVERY_S - 0.1, listening.TRY_EVERY_S, listening.TRY_EVERY_S + 1):
        said.append(writable())

    assert said == ["", "", "", "full", "full"]


def watch(plant: Plant, meter: Meter, **settings: object) -> Watched:
    source = KubernetesSource(ApiServer(Access(base_url="http://127.0.0.1:1")), clock=quick_clock())
    return Watched(TelemetrySettings.model_validate(settings), meter, plant.embedded, source, plant.store)


async def test_metrics_of_a_running_service(tmp_path: Path) -> None:
    """Counted events, decisions, deliveries and levels on one page, from the parts as they are put together."""
    meter = Meter("test")
    async with running(tmp_path, {"slack": (slack := Script())}) as plant:
        watched = watch(plant, meter)
        server = WebServer("127.0.0.1:0", gets=watched.routes())
        await server.start()
        plant.told.synced(node("n1"))
        plant.told.node("n1", ready=False)
        await until(lambda: len(slack.messages) == 1 and plant.embedded.is_idle)
        async with aiohttp.ClientSession() as session, session.get(f"{server.address}/metrics") as answer:
            text = await answer.text()
        await server.close()

    found = {
        (s.name, *sorted(s.labels.values())): s.value for f in text_string_to_metric_families(text) for s in f.samples
    }
    assert found["sevenhop_deliveries_total", "delivered", "slack", "test"] == 1
    assert found["sevenhop_notify_decisions_total", "first_firing", "test"] == 1
    assert found["sevenhop_incidents_open", "critical", "test"] == 1
    assert found["sevenhop_outbox_messages", "slack", "test"] == 0
    assert found["sevenhop_heartbeat_configured",] == 0
    assert found["sevenhop_input_stalled",] == 0


async def test_metrics_can_be_turned_off(tmp_path: Path) -> None:
    """Then the path is not served at all."""
    async with running(tmp_path, {"slack": Script()}) as plant:
        assert watch(plant, Meter("test"), metrics=False).routes() == {}


async def test_doctor_says_who_would_notice_our_death(tmp_path: Path) -> None:
    """Nobody, in words, until a heartbeat is configured; then when it was last taken."""
    empty = {"coverage": [], "inert_rules": [], "trouble": [], "broken_rules": [],
             "outbox": {"waiting": 0, "oldest_due_s": 0, "failing": {}}}  # fmt: skip
    async with running(tmp_path, {"slack": Script()}) as plant:
        alone = watch(plant, Meter("a")).report()
        watched_over = watch(plant, Meter("b"), heartbeat={"url": "https://hooks.example/s3cret"}).report()

    assert "Nobody would notice if Sevenhop died" in text_of({**empty, **alone})
    assert "Heartbeat to a webhook every 60 s: not taken yet" in text_of({**empty, **watched_over})
    assert "s3cret" not in str(watched_over)
