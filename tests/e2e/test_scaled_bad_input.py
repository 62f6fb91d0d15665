"""What must not stop a worker: each record that cannot be used is buried with its reason, and the others are told."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from sevenhop.runtime.codec import encode
from sevenhop.runtime.scaled.reader import ends_of, read_range
from sevenhop.runtime.scaled.terms import in_term
from sevenhop.runtime.scaled.topics import TopicsError, partition_of, prepare, topics_of
from sevenhop.settings_scaled import KafkaSettings
from tests import builders as b
from tests.e2e.scaled_stage import PARTITIONS, ROOT, Stage, stage, wait_until
from tests.testbed.kafka import Kafka
from tests.testbed.redis import Redis

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(300)]

CLUSTER = "alpha"


@pytest.fixture(scope="module")
def kafka() -> Iterator[Kafka]:
    with Kafka(1) as running:
        yield running


@pytest.fixture(scope="module")
def at(tmp_path_factory: pytest.TempPathFactory, kafka: Kafka) -> Iterator[Stage]:
    """One worker, one cluster with three nodes."""
    folder = tmp_path_factory.mktemp("bad")
    with Redis() as redis, stage(folder, kafka, redis, "bad", [CLUSTER]) as playing:
        playing.add_worker()
        playing.edges[CLUSTER].list_all(dict.fromkeys(("n0", "n1", "n2"), True))
        wait_until("served", playing.served, 60, playing.logs)
        yield playing


async def produce(settings: KafkaSettings, topic: str, partition: int, value: bytes | None, **more: Any) -> None:
    from aiokafka import AIOKafkaProducer

    producer = AIOKafkaProducer(bootstrap_servers=settings.servers)
    await producer.start()
    try:
        await producer.send_and_wait(topic, value, partition=partition, **more)
    finally:
        await producer.stop()


async def buried(settings: KafkaSettings) -> list[tuple[bytes | None, str]]:
    """(value, reason) of the dead letters."""
    topic = topics_of(settings).dead
    first, end = await ends_of(settings, topic, 0)
    found = []
    async for batch in read_range(settings, topic, 0, first, end):
        found += [(record.value, dict(record.headers)["reason"].decode()) for record in batch]
    return found


def elsewhere() -> tuple[bytes, int]:
    """A good record of our cluster in a partition where it does not belong."""
    record = encode(CLUSTER, in_term(b.Feed().applied(b.node("lost"))[0], 9))
    assert record.value is not None
    return record.value, (partition_of(CLUSTER, PARTITIONS) + 1) % PARTITIONS


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        pytest.param(b"\xff\xfe", "not a record of sevenhop", id="bytes"),
        pytest.param(b'{"v":9,"cluster":"alpha","event":"Tick","data":{}}', "format 9", id="future version"),
        pytest.param(None, "does not say of what", id="a foreign tombstone"),
        pytest.param(elsewhere()[0], "wrong partition", id="wrong partition"),
    ],
)
def test_a_bad_record_is_buried_and_the_next_one_is_told(at: Stage, value: bytes | None, reason: str) -> None:
    """The stream goes on behind it, nothing of it is lost, and its reason stands with it."""
    settings = at.kafka_settings
    partition = elsewhere()[1] if reason == "wrong partition" else partition_of(CLUSTER, PARTITIONS)
    asyncio.run(produce(settings, topics_of(settings).objects, partition, value, key=b"bad"))
    told = len(at.inbox.ids())
    at.edges[CLUSTER].set_ready("n0", ready=False)
    wait_until("told", lambda: len(at.inbox.ids()) > told, 30, at.logs)
    at.edges[CLUSTER].set_ready("n0", ready=True)
    wait_until("told again", lambda: len(at.inbox.ids()) > told + 1, 30, at.logs)

    wait_until("buried", lambda: any(why.find(reason) >= 0 for _, why in asyncio.run(buried(settings))), 30, at.logs)
    assert (value, reason) in [(v, reason) for v, why in asyncio.run(buried(settings)) if reason in why]


def test_topics_that_do_not_fit_are_said(at: Stage, kafka: Kafka) -> None:
    """Another number of partitions would tear clusters from their state: nothing starts, and the fix is named."""
    wrong = at.kafka_settings.model_copy(update={"partitions": PARTITIONS + 1})
    with pytest.raises(TopicsError, match=f"has {PARTITIONS} partitions, kafka.partitions says {PARTITIONS + 1}"):
        asyncio.run(prepare(wrong))


def test_a_worker_does_not_start_on_topics_with_too_few_partitions(kafka: Kafka, tmp_path: Path) -> None:
    """The process ends at once, as for any wrong setting, with a line for each topic and what to set."""
    kafka_settings = {"servers": kafka.servers.split(","), "prefix": "few", "replicas": 1}
    asyncio.run(prepare(KafkaSettings.model_validate(kafka_settings | {"partitions": 2})))
    config = tmp_path / "sevenhop.yaml"
    config.write_text(json.dumps({"kafka": kafka_settings, "redis": {"url": "redis://127.0.0.1:1/0"}}))
    command = [sys.executable, "-m", "sevenhop.cli.main", "run", "--role", "worker", "--config", str(config)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=90, check=False)

    lines = [line for line in done.stderr.splitlines() if "has 2 partitions, kafka.partitions says 24" in line]
    assert done.returncode == 2, done.stderr
    assert sorted(line.partition("few.")[2].partition(":")[0] for line in lines) == ["objects", "orders", "signals"]


def test_topics_that_are_missing_are_said(kafka: Kafka) -> None:
    """Where they are not to be made, each is named."""
    absent = KafkaSettings(servers=kafka.servers.split(","), prefix="absent", replicas=1, create_topics=False)
    with pytest.raises(TopicsError, match=r"absent\.objects") as caught:
        asyncio.run(prepare(absent))
    assert len(str(caught.value).splitlines()) == 4


def test_a_broker_that_is_not_there_is_said() -> None:
    """One line with the key to look at."""
    with pytest.raises(TopicsError, match=r"check kafka\.servers"):
        asyncio.run(prepare(KafkaSettings(servers=["127.0.0.1:1"], replicas=1)))
