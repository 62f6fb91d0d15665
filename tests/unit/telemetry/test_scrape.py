"""GET /metrics, as Prometheus asks for it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

import aiohttp
import pytest
from hypothesis import given
from hypothesis import strategies as st
from prometheus_client.openmetrics.parser import text_string_to_metric_families as open_metrics
from prometheus_client.parser import text_string_to_metric_families as text_form

from sevenhop.core.engine import Step
from sevenhop.core.events import Tick
from sevenhop.telemetry.levels import Sample
from sevenhop.telemetry.meter import Meter
from sevenhop.telemetry.scrape import MOST_AT_ONCE, Scrape, families
from sevenhop.telemetry.table import METRICS, MetricType
from sevenhop.telemetry.times import StepTimes
from sevenhop.web.server import WebServer
from tests.builders import NOON, at

SAMPLES: list[Sample] = [
    ("sevenhop_rules", ("c",), 3),
    ("sevenhop_notify_decisions_total", ("c", "resolved"), 2),
    ("sevenhop_pods_disagreeing", ("c",), 1),
    ("sevenhop_scheduler_disagreements_total", ("c",), 4),
]


@asynccontextmanager
async def serving(scrape: Scrape) -> AsyncIterator[str]:
    server = WebServer("127.0.0.1:0", gets={"/metrics": scrape.serve})
    await server.start()
    try:
        yield f"{server.address}/metrics"
    finally:
        await server.close()


async def got(url: str, accept: str = "") -> tuple[int, str, str]:
    """(status, type, text)"""
    async with aiohttp.ClientSession() as session, session.get(url, headers={"Accept": accept}) as answer:
        return answer.status, answer.headers["Content-Type"], await answer.text()


def counted() -> Meter:
    meter = Meter("c")
    meter.stepped([Tick(at=NOON)], Step(), StepTimes(at(0), at(1), 0.1, 0.1))
    return meter


async def samples() -> Sequence[Sample]:
    return SAMPLES


@pytest.mark.parametrize(
    ("accept", "kind", "parse"),
    [
        pytest.param("", "text/plain", text_form, id="text"),
        pytest.param("application/openmetrics-text; version=1.0.0", "application/openmetrics-text", open_metrics,
                     id="openmetrics"),
    ],
)  # fmt: skip
async def test_both_forms_can_be_read(accept: str, kind: str, parse: object) -> None:
    """What is counted and what is read at the moment stand on one page, each metric once, with its type."""
    async with serving(Scrape(counted().registry, samples)) as url:
        status, content_type, text = await got(url, accept)

    found = {family.name: family for family in parse(text)}  # type: ignore[operator]
    assert (status, content_type.partition(";")[0]) == (200, kind)
    assert found["sevenhop_rules"].samples[0].value == 3
    assert found["sevenhop_notify_decisions"].type == "counter"
    assert found["sevenhop_events"].samples[0].value == 1
    assert text.count("# TYPE sevenhop_rules ") == 1
    assert "_created" not in text


async def test_a_crowd_is_turned_away() -> None:
    """A few scrapes at once are served in turn; more are refused instead of queueing without end."""
    begin = asyncio.Event()

    async def slow() -> Sequence[Sample]:
        await begin.wait()
        return SAMPLES

    async with serving(Scrape(counted().registry, slow)) as url:
        asking = [asyncio.create_task(got(url)) for _ in range(MOST_AT_ONCE + 2)]
        done, _ = await asyncio.wait(asking, timeout=30, return_when=asyncio.FIRST_COMPLETED)
        begin.set()
        statuses = sorted([(await task)[0] for task in asking])

    assert next(iter(done)).result()[0] == 429
    assert statuses == [200] * MOST_AT_ONCE + [429] * 2


LEVELS = [name for name, row in METRICS.items() if row.type is not MetricType.HISTOGRAM]


@given(
    st.lists(st.tuples(st.sampled_from(LEVELS), st.lists(st.text(max_size=300), min_size=9, max_size=9)), max_size=40)
)
def test_no_word_makes_an_open_set_of_a_closed_one(rows: list[tuple[str, list[str]]]) -> None:
    """Whatever comes in, a closed label has only values of its set, and an open one is never long."""
    taken: list[Sample] = [(name, tuple(words[: len(METRICS[name].labels)]), 1.0) for name, words in rows]
    for family in families(taken):
        for sample in family.samples:
            for label in METRICS[sample.name].labels:
                shown = sample.labels[label.name]
                assert len(shown) <= 200 if label.values is None else shown in label.values


def test_what_becomes_other_is_summed_up() -> None:
    """Two series of the same name and labels would make the whole page unreadable to Prometheus."""
    (family,) = families([("sevenhop_plans", ("c", "new"), 1.0), ("sevenhop_plans", ("c", "newer"), 2.0)])

    assert [(s.labels["state"], s.value) for s in family.samples] == [("other", 3.0)]
