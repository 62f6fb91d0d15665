"""What a worker and an edge say of themselves: when they are well, and which numbers they serve."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import datetime, timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import aiohttp
import pytest

from sevenhop.core.engine import Step
from sevenhop.core.events import Tick
from sevenhop.runtime import codec
from sevenhop.runtime.listening import MAY_TAKE_S
from sevenhop.runtime.scaled import watched as watched_module
from sevenhop.runtime.scaled import worker as worker_module
from sevenhop.runtime.scaled.dead_letters import word_of
from sevenhop.runtime.scaled.watched import Watched, WatchedEdge, WatchedWorker
from sevenhop.runtime.shared import door_of_waiting
from sevenhop.settings import Settings
from sevenhop.sources.gpu_push.receiver import STATUS, _answer
from sevenhop.sources.gpu_push.senders import Refusal
from sevenhop.telemetry.levels import Sample
from sevenhop.telemetry.settings import TelemetrySettings
from sevenhop.telemetry.table import METRICS, OTHER, DeadLetterReason, DeliveryOutcome, HeartbeatOutcome, OrderRefusal
from sevenhop.telemetry.times import StepTimes
from tests.builders import NOON, at
from tests.unit.telemetry.pages import value


class Clock:
    def __init__(self) -> None:
        self.now = NOON

    def __call__(self) -> datetime:
        return self.now


def cell(cluster: str, *, blind: bool = False) -> Any:
    """As much of a cell as is looked at."""
    outbox = SimpleNamespace(waiting_since={}, failures={}, receivers=("slack",), watches=[])
    store = SimpleNamespace(waiting_for=dict)
    sight = SimpleNamespace(is_blind=blind, heard_at=at(-7), stale_records=2)
    return SimpleNamespace(cluster=cluster, engine=None, outbox=outbox, store=store, sight=sight)


def partition(*cells: Any, ready: bool = True) -> Any:
    return SimpleNamespace(
        is_ready=ready, cells={each.cluster: each for each in cells}, fence=SimpleNamespace(forgotten=0), waiting=3,
        watches=[], on_cell=[],
    )  # fmt: skip


def worker(**partitions: Any) -> Any:
    """As much of a worker as is looked at; partitions by ``p<number>``."""
    return SimpleNamespace(
        partitions={int(name[1:]): each for name, each in partitions.items()}, stalled="", on_partition=[], reports=[],
        kept=0, rebuilds=1, dead_letters={"engine": 2}, lag=lambda: {0: 5},
        keys=SimpleNamespace(doubt=lambda cluster: "another key" if cluster == "miskeyed" else ""),
    )  # fmt: skip


class PodLevels:
    """Stands for the levels of an engine with three pods."""

    def __init__(self, _engine: object, _statuses: object, _now: object, *, pod_limit: int) -> None:
        self.pod_limit = pod_limit

    async def samples(self) -> list[Sample]:
        return [("sevenhop_pod_info", ("",) * 9, 1.0)] * min(3, self.pod_limit)


@pytest.fixture(autouse=True)
def levels(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watched_module, "Levels", PodLevels)


def watching(made: Any, clock: Clock | None = None, **settings: Any) -> tuple[Watched, WatchedWorker]:
    process = Watched(TelemetrySettings.model_validate(settings), clock or Clock())
    return process, process.worker(made, partitions=24)


def test_a_worker_is_not_well_while_a_partition_stays_unserved() -> None:
    """A rebuild takes seconds; one that takes over a minute is no rebuild, and one that ended is forgotten."""
    clock, one = Clock(), partition(ready=False)
    _, its = watching(worker(p0=partition(), p3=one), clock)
    said = []
    for is_ready, later_s in ((False, 0), (False, MAY_TAKE_S), (True, 1), (False, 0), (False, MAY_TAKE_S), (False, 1)):
        one.is_ready = is_ready
        clock.now += timedelta(seconds=later_s)
        said.append(its.why_not_well())

    assert said == [""] * 5 + ["partitions are not rebuilt: 3"]


def test_a_worker_whose_state_is_not_stored_is_not_well() -> None:
    """Then nobody is told of anything, so no heartbeat is sent."""
    made = worker(p0=partition())
    _, its = watching(made)
    made.stalled = "Redis: no answer"
    assert "Redis" in its.why_not_well()


def test_only_clusters_that_are_seen_are_served() -> None:
    """Not those of a partition that is rebuilt, nor those whose edge is silent."""
    made = worker(p0=partition(cell("seen"), cell("silent", blind=True)), p1=partition(cell("later"), ready=False))
    _, its = watching(made)
    assert its.served() == ["seen"]


async def test_a_partition_that_is_rebuilt_has_no_lag_that_anybody_knows() -> None:
    """Its series is absent, not 0; of the others it counts what was not brought and what was not handled."""
    process, _ = watching(worker(p0=partition(), p1=partition(ready=False)))
    found = {(name, labels): number for name, labels, number in await process.samples()}

    assert found["sevenhop_partition_lag_records", ("0",)] == 8
    assert ("sevenhop_partition_lag_records", ("1",)) not in found
    assert (found["sevenhop_partition_ready", ("0",)], found["sevenhop_partition_ready", ("1",)]) == (1, 0)


async def test_reasons_that_never_happened_are_zero() -> None:
    """Else the first record that is put aside would be no increase, and no alert."""
    process, _ = watching(worker())
    found = {labels[0]: n for name, labels, n in await process.samples() if name == "sevenhop_dead_letters_total"}

    assert found == {reason: 2 if reason is DeadLetterReason.ENGINE else 0 for reason in DeadLetterReason}


async def test_whose_edge_has_a_key_that_does_not_fit() -> None:
    """Where it does the series is 0, so that an alert can end."""
    process, _ = watching(worker(p0=partition(cell("eu"), cell("miskeyed"))))
    found = {labels[0]: n for name, labels, n in await process.samples() if name == "sevenhop_edge_key_differs"}
    assert found == {"eu": 0, "miskeyed": 1}


@pytest.mark.parametrize(("limit", "shown"), [(10, 6), (4, 4), (0, 0)])
async def test_one_page_has_one_limit_of_pods(limit: int, shown: int) -> None:
    """However many clusters a worker has."""
    process, _ = watching(worker(p0=partition(cell("a"), cell("b"))), pod_info_limit=limit)
    assert sum(name == "sevenhop_pod_info" for name, *_ in await process.samples()) == shown


async def test_what_happens_is_counted_by_cluster() -> None:
    """Steps of several clusters in one write, and deliveries of each."""
    made = worker()
    process, _ = watching(made)
    begun, of = partition(), cell("eu")
    for tell in made.on_partition:
        tell(begun)
    for tell in begun.on_cell:
        tell(of)
    steps = {"eu": Step(), "us": Step()}
    begun.watches[0]({"eu": [Tick(at=NOON)]}, steps, StepTimes(NOON, NOON, 0.01, 0.02))
    of.outbox.watches[0]("slack", None, DeliveryOutcome.DELIVERED, 0.1)

    meter = process.meter
    assert value(meter, "sevenhop_events_total", cluster="eu", event="tick", kind="") == 1
    assert value(meter, "sevenhop_deliveries_total", cluster="eu", receiver="slack", outcome="delivered") == 1
    assert value(meter, "sevenhop_step_duration_seconds_count", part="store") == 1


async def test_a_replica_that_waits_says_little() -> None:
    """That it waits, and what it sent before: neither sources nor a heartbeat that nobody would miss."""
    process = Watched(TelemetrySettings(), Clock())
    its: WatchedEdge = process.edge("eu", None)
    edge: Any = SimpleNamespace(sent=40, buffered=1, stalled="")
    source: Any = SimpleNamespace(status=list)
    its.begin(edge, source, ())
    working = {name for name, *_ in await process.samples()}
    its.end()
    waiting = {name: number for name, _, number in await process.samples()}

    assert {"sevenhop_edge_stalled", "sevenhop_heartbeat_configured"} <= working
    assert waiting == {
        "sevenhop_leading": 0, "sevenhop_edge_events_sent_total": 40, "sevenhop_edge_orders_refused_total": 0,
    }  # fmt: skip


async def test_both_roles_in_one_process_have_one_heartbeat_to_look_at() -> None:
    """No series stands for two things, which a page would add up; the heartbeat that is missing longest is shown."""
    clock = Clock()
    process, its = watching(worker(p0=partition(cell("eu"))), clock, heartbeat={"url": "http://127.0.0.1:1/"})
    edge: WatchedEdge = process.edge("eu", None)
    edge.begin(SimpleNamespace(sent=0, buffered=0, stalled=""), SimpleNamespace(status=list), ())  # type: ignore[arg-type]
    shown = []
    for of_worker, of_edge in ((None, None), (at(5), None), (at(5), at(3)), (at(5), at(9))):
        its.heartbeat.last_success_at, edge.heartbeat.last_success_at = of_worker, of_edge
        found = [(name, labels) for name, labels, _ in await process.samples() if name != "sevenhop_pod_info"]
        assert len(found) == len(set(found))
        shown.append([number for name, _, number in await process.samples() if "heartbeat" in name])

    assert shown == [[1.0, last] for last in (0.0, 0.0, at(3).timestamp(), at(5).timestamp())]


@pytest.mark.parametrize("part", ["worker", "edge"])
async def test_a_process_beats_for_all_of_its_parts(part: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """While one of them is not well neither heartbeat is sent: who listens cannot tell them apart."""
    made, edge = worker(p0=partition()), SimpleNamespace(sent=0, buffered=0, stalled="")
    process, its = watching(made, heartbeat={"url": "http://127.0.0.1:1/"})
    watched: WatchedEdge = process.edge("eu", None)
    watched.begin(edge, SimpleNamespace(status=list), ())  # type: ignore[arg-type]
    both = (its.heartbeat, watched.heartbeat)
    for heartbeat in both:
        monkeypatch.setattr(heartbeat, "_post", _taken)
    before = [await heartbeat.beat() for heartbeat in both]
    (made if part == "worker" else edge).stalled = "no answer"

    assert before == [HeartbeatOutcome.SENT] * 2
    assert [await heartbeat.beat() for heartbeat in both] == [HeartbeatOutcome.WITHHELD] * 2


async def _taken(_address: str) -> str:
    return ""


async def test_orders_that_an_edge_refused_are_counted_by_their_reason() -> None:
    """Over all its terms; those of a kind that never came are there too, or the first would be no increase."""
    process, _ = watching(worker())
    edge = process.edge("eu", None)
    for reason in (OrderRefusal.FORGED, OrderRefusal.FORGED, OrderRefusal.LATE):
        edge.order_refused(reason)
        edge.end()
    found = {
        labels: number
        for name, labels, number in await process.samples()
        if name == "sevenhop_edge_orders_refused_total"
    }
    counts = {OrderRefusal.FORGED: 2, OrderRefusal.LATE: 1}
    assert found == {("eu", reason): counts.get(reason, 0) for reason in OrderRefusal}


def test_every_refusal_of_samples_has_its_word() -> None:
    """The table of metrics stands below the sources, so it names them itself."""
    words = METRICS["sevenhop_gpu_push_refused_total"].labels[-1].values
    assert words is not None
    assert {reason.value for reason in Refusal} == words - {OTHER}


def test_every_reason_of_a_record_has_its_word() -> None:
    """What is raised when a record cannot be used; only what a decoder says of an event's content is `unreadable`."""
    texts = [
        text
        for module in (codec, worker_module)
        for text in re.findall(r'RecordError\(f?"([^"]+)"', Path(module.__file__ or "").read_text("utf-8"))
    ]
    assert len(texts) >= 7
    plain = {text: word_of(text.replace("{wire.v}", "9")) for text in texts}
    unreadable = [text for text, word in plain.items() if word is DeadLetterReason.UNREADABLE]
    assert sorted(unreadable) == [
        "{type(event).__name__}: {name} is a time without its zone",
        "{wire.event[:80]}: {error}",
    ]


@pytest.mark.parametrize("reason", Refusal, ids=lambda reason: reason.value)
def test_only_who_is_to_ask_again_loses_the_connection(reason: Refusal) -> None:
    """A Service chooses a replica by connection: one that is turned away for now has to make another."""
    closes = _answer(STATUS[reason], {}).keep_alive is False
    assert closes == (STATUS[reason] == 503)


async def test_what_a_waiting_embedded_replica_answers() -> None:
    """Healthy, ready unless Redis is awaited, its own metric; whoever posts is turned away and loses the connection."""
    settings = Settings.model_validate({"web": {"listen": "127.0.0.1:0"}})
    problem = [""]
    why_not: Callable[[], str] = lambda: problem[0]  # noqa: E731
    async with door_of_waiting(settings, "eu", why_not) as address, aiohttp.ClientSession(address) as session:
        statuses = [await _status(session, path) for path in ("/healthz", "/readyz")]
        problem[0] = "Redis: no answer"
        statuses += [await _status(session, path) for path in ("/healthz", "/readyz")]
        async with session.get("/metrics") as answer:
            page = await answer.text()
        async with session.post("/v1/anything/at/all", data=b"{}") as answer:
            turned_away = (answer.status, answer.headers["Connection"])

    assert statuses == [200, 200, 200, 503]
    assert 'sevenhop_leading{cluster="eu"} 0.0' in page
    assert turned_away == (503, "close")


async def _status(session: aiohttp.ClientSession, path: str) -> int:
    async with session.get(path) as answer:
        return answer.status
