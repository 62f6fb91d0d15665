"""
The same recorded events in, the same effects out, in the same order per incident: embedded with SQLite, and Kafka with
Redis.  What both say is in a golden file as well; `SEVENHOP_GOLDEN=write` writes it anew.
"""

from __future__ import annotations

import json
import os
import random
from collections.abc import Iterator
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from sevenhop.app import build_rulebook
from sevenhop.core.effects import Notify
from sevenhop.core.events import Event
from sevenhop.rulebook.load import Rulebook
from sevenhop.settings import Settings
from tests.conformance.runtimes import Chunk, Runtime, embedded, scaled
from tests.golden.day_faults import events_of
from tests.golden.healthy_day import MIDNIGHT, healthy_day, with_fault
from tests.shared import missing
from tests.testbed.binaries import BuildFailed
from tests.testbed.kafka import Kafka
from tests.testbed.redis import Redis

pytestmark = pytest.mark.timeout(300)

GOLDEN = Path(__file__).with_name("runtimes.golden.json")
NOON = MIDNIGHT + timedelta(hours=12)
UNTIL = NOON + timedelta(minutes=75)
FAULTS = ("component-short-of-gpus", "crashes-unexplained", "no-ready-endpoints", "load-fails", "worker-restarts")
"""Faults of the day, by rule."""

COARSE, FINE = timedelta(minutes=30), timedelta(seconds=20)


@pytest.fixture(scope="module")
def rulebook() -> Rulebook:
    return build_rulebook(Settings())


@pytest.fixture(scope="module")
def story(rulebook: Rulebook) -> list[Chunk]:
    """The morning of a healthy day in large pieces, then an hour of faults in small ones."""
    known = {rule.id for rule in rulebook.rules}
    events = healthy_day()
    for rule in FAULTS:
        assert rule in known
        events = with_fault(events, events_of(rule, NOON), until=UNTIL)
    chunks: list[Chunk] = []
    now = MIDNIGHT
    # The day and each fault count by themselves; told by one source they are one sequence.
    left = [replace(event, epoch=1, seq=seq) for seq, event in enumerate(events, 1) if event.at <= UNTIL]
    while now < UNTIL:
        now += COARSE if now < NOON else FINE
        taken = [event for event in left if event.at <= now]
        left = left[len(taken) :]
        chunks.append((now, taken))
    return chunks


@pytest.fixture(scope="module")
def servers() -> Iterator[tuple[Kafka, Redis]]:
    """Real ones; where they cannot be had the cases are skipped, but not in CI."""
    try:
        with Redis(remembers=False) as redis, Kafka(1) as kafka:
            yield kafka, redis
    except BuildFailed as failure:
        missing(str(failure))


async def play(runtime: Runtime, story: list[Chunk], *, rebalance_at: int = -1, reload_at: int = -1) -> list[Notify]:
    """The story to its end; at some pieces of it something else happens."""
    rules = build_rulebook(Settings()).rules
    for number, (now, events) in enumerate(story):
        if number == rebalance_at:
            await runtime.rebalance()
        if number == reload_at:
            await runtime.reload(rule for rule in rules if rule.id != FAULTS[0])
        await runtime.take(now, events)
    return list(runtime.told)


def by_incident(told: list[Notify]) -> dict[str, list[Any]]:
    """Incident to what was told of it, in order: everything but the channel's own reference."""
    found: dict[str, list[Any]] = {}
    for notify in told:
        found.setdefault(notify.incident, []).append(replace(notify, reference=""))
    return found


def assert_same(told: list[Notify], expected: list[Notify]) -> None:
    """Word for word; the first difference is shown alone, for the whole is long."""
    ours, theirs = by_incident(told), by_incident(expected)
    assert outline(told) == outline(expected)
    for incident, messages in theirs.items():
        for message, other in zip(messages, ours[incident], strict=True):
            assert other == message


def outline(told: list[Notify]) -> dict[str, list[str]]:
    """The same in words, for the golden file."""
    return {
        incident: [
            f"{notify.message.at:%H:%M:%S} {notify.message.status} r{notify.revision} "
            f"{'anew ' if notify.anew else ''}{notify.reason}: {notify.message.title}"
            for notify in messages
        ]
        for incident, messages in sorted(by_incident(told).items())
    }


def turns(told: list[Notify]) -> dict[str, list[str]]:
    """What wakes somebody: each change of an incident's state; edits in between only differ in what they quote."""
    found: dict[str, list[str]] = {}
    for notify in told:
        states = found.setdefault(notify.incident, [])
        if not states or states[-1] != notify.message.status:
            states.append(notify.message.status)
    return found


@pytest.fixture(scope="module")
def start() -> datetime:
    return MIDNIGHT


@pytest.fixture
async def expected(
    tmp_path: Path, rulebook: Rulebook, story: list[Chunk], start: datetime, monkeypatch: pytest.MonkeyPatch
) -> list[Notify]:
    """What the embedded runtime tells."""
    async with embedded(tmp_path / "embedded", rulebook, start, monkeypatch) as runtime:
        return await play(runtime, story)


async def test_the_story_is_the_golden_one(expected: list[Notify]) -> None:
    """What is told of this day does not change by accident."""
    told = outline(expected)
    if os.environ.get("SEVENHOP_GOLDEN") == "write":
        GOLDEN.write_text(json.dumps(told, indent=1, ensure_ascii=False) + "\n")
    assert len(expected) > 5
    assert told == json.loads(GOLDEN.read_text())


@pytest.mark.e2e
async def test_the_same_effects_on_kafka_and_redis(
    expected: list[Notify], servers: tuple[Kafka, Redis], rulebook: Rulebook, story: list[Chunk], start: datetime
) -> None:
    """Each message, word for word, in the same order per incident."""
    kafka, redis = servers
    async with scaled(kafka.servers, redis.url, "same", rulebook, start) as runtime:
        told = await play(runtime, story)

    assert_same(told, expected)


@pytest.mark.e2e
@pytest.mark.parametrize("trouble", ["twice", "late", "a piece again"])
async def test_what_comes_twice_or_late_changes_nothing(
    expected: list[Notify],
    servers: tuple[Kafka, Redis],
    rulebook: Rulebook,
    story: list[Chunk],
    start: datetime,
    trouble: str,
) -> None:
    """At-least-once and out of date is the same as once."""
    kafka, redis = servers
    noisy = _noisy(story, trouble)
    async with scaled(kafka.servers, redis.url, f"noisy-{trouble.replace(' ', '-')}", rulebook, start) as runtime:
        told = await play(runtime, noisy)

    assert_same(told, expected)


def _noisy(story: list[Chunk], trouble: str) -> list[Chunk]:
    chance = random.Random(7)
    noisy: list[Chunk] = []
    past: list[Event] = []
    for now, events in story:
        if trouble == "twice":
            noisy.append((now, [event for event in events for _ in range(2)]))
        elif trouble == "late":
            late = chance.sample(past, min(20, len(past))) if past else []
            noisy.append((now, [*late, *events]))
        else:
            noisy.append((now, [*events, *events]))
        past += events
    return noisy


@pytest.mark.e2e
async def test_a_rebalance_in_the_middle_tells_nothing_twice(
    expected: list[Notify], servers: tuple[Kafka, Redis], rulebook: Rulebook, story: list[Chunk], start: datetime
) -> None:
    """Another worker takes over while incidents are open: the same incidents, the same turns, and no id twice."""
    kafka, redis = servers
    middle = next(number for number, (now, _) in enumerate(story) if now > NOON + timedelta(minutes=20))
    async with scaled(kafka.servers, redis.url, "rebalance", rulebook, start) as runtime:
        told = await play(runtime, story, rebalance_at=middle)
        assert runtime.rebuilds

    assert turns(told) == turns(expected)
    assert len({notify.id for notify in told}) == len(told)


@pytest.mark.e2e
async def test_a_reload_in_the_middle_is_the_same_on_both(
    tmp_path: Path,
    servers: tuple[Kafka, Redis],
    rulebook: Rulebook,
    story: list[Chunk],
    start: datetime,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A rule that goes while it fires ends its incident in the same words."""
    kafka, redis = servers
    middle = next(number for number, (now, _) in enumerate(story) if now > NOON + timedelta(minutes=20))
    async with embedded(tmp_path / "reload", rulebook, start, monkeypatch) as runtime:
        expected = await play(runtime, story, reload_at=middle)
    async with scaled(kafka.servers, redis.url, "reload", rulebook, start) as other:
        told = await play(other, story, reload_at=middle)

    assert_same(told, expected)
