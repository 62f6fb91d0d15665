"""What a worker takes of its stream: each record once, in order, also where a partition goes back in between."""

from __future__ import annotations

from collections.abc import AsyncIterator
from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any

import pytest
from msgspec.structs import replace
from pydantic import SecretStr

from sevenhop.core.effects import Reply
from sevenhop.core.events import Event, SwitchSet, Tick
from sevenhop.core.remediation.person import Person
from sevenhop.runtime.codec import Answered, Record, RecordError, encode
from sevenhop.runtime.scaled import worker as worker_module
from sevenhop.runtime.scaled.kept_switch import kept
from sevenhop.runtime.scaled.partition import Incoming, Partition, PoisonError
from sevenhop.runtime.scaled.signing import Sign, edge_key, signing_as_edge, signing_as_worker, unsigned
from sevenhop.runtime.scaled.topics import partition_of, topics_of
from sevenhop.runtime.scaled.worker import Worker
from sevenhop.settings_scaled import KafkaSettings, RuntimeSettings

KAFKA = KafkaSettings(servers=["unused:9092"])
TOPICS = topics_of(KAFKA)
NUMBER = partition_of("prod", KAFKA.partitions)


class Takes:
    """A partition that stands at offset 5."""

    def __init__(self) -> None:
        self.number = NUMBER
        self.is_ready = True
        self.next = {TOPICS.objects: 5, TOPICS.signals: 5}
        self.skipped: set[tuple[str, int]] = set()
        self.taken: list[int] = []
        self.events: list[Event | None] = []

    async def put(self, item: Incoming) -> None:
        self.next[item.topic] = item.offset + 1
        self.taken.append(item.offset)
        self.events.append(item.event)


def record(offset: int) -> Any:
    value = encode("prod", Tick(at=datetime(2026, 11, 30, tzinfo=UTC))).value
    return SimpleNamespace(offset=offset, key=None, value=value, headers=[])


@pytest.fixture
def partition() -> Takes:
    return Takes()


@pytest.fixture
def worker(partition: Takes) -> Worker:
    parts: Any = None
    made = Worker(KAFKA, RuntimeSettings(), TOPICS, parts, parts, lambda _why: None)
    made.partitions[NUMBER] = partition  # type: ignore[assignment]
    return made


@pytest.mark.parametrize("goes_back", [False, True])
async def test_a_gap_is_read_unless_the_partition_went_back(
    worker: Worker, partition: Takes, monkeypatch: pytest.MonkeyPatch, goes_back: bool
) -> None:
    """Rebuilt while the gap is read it stands earlier again, and the stream is sought there: nothing is passed over."""

    async def read_range(_kafka: object, _topic: str, _number: int, start: int, end: int) -> AsyncIterator[list[Any]]:
        for offset in range(start, end):
            yield [record(offset)]
            if goes_back and offset == 6:
                partition.next[TOPICS.objects] = 2

    monkeypatch.setattr(worker_module, "read_range", read_range)
    await worker.take(TOPICS.objects, NUMBER, record(9))
    assert partition.taken == ([5, 6] if goes_back else [5, 6, 7, 8, 9])


async def test_what_was_taken_is_not_taken_again(worker: Worker, partition: Takes) -> None:
    """A batch that was fetched before a pause is delivered after it."""
    await worker.take(TOPICS.objects, NUMBER, record(4))
    await worker.take(TOPICS.objects, NUMBER, record(5))
    assert partition.taken == [5]


NOON = datetime(2026, 11, 30, tzinfo=UTC)
STOP = SwitchSet(at=NOON, request_id="r1", person=Person(id="slack:U-ann"), is_on=True)


async def test_a_stop_that_is_kept_is_not_taken_for_a_new_one(worker: Worker, partition: Takes) -> None:
    """The topic of objects brings it after whoever has resumed since; a decision comes by that of signals."""
    stop = SimpleNamespace(offset=5, key=b"prod|switch||", value=encode("prod", STOP).value, headers=[])
    await worker.take(TOPICS.objects, NUMBER, stop)
    await worker.take(TOPICS.signals, NUMBER, stop)
    assert partition.events == [None, STOP]


@pytest.mark.parametrize(("event", "told"), [(STOP, ["r1"]), (Tick(at=NOON), [])], ids=["decision", "tick"])
async def test_whoever_decided_what_the_engine_fails_on_is_told(
    worker: Worker, monkeypatch: pytest.MonkeyPatch, event: Event, told: list[str]
) -> None:
    """Once it is buried: else they send it again, and each time the partition is rebuilt."""
    nothing: Any = None
    replies: list[Reply] = []
    buried: list[str] = []

    async def bury(_topic: str, _record: object, reason: str) -> None:
        buried.append(reason)

    partition = Partition(NUMBER, nothing, TOPICS, nothing, nothing)
    partition.observers.append(lambda _cluster, step: replies.extend(step.replies))
    monkeypatch.setattr(worker, "_stream", SimpleNamespace(pause=lambda _number: None))
    found = Incoming(TOPICS.signals, 4, "prod", event)
    poison = PoisonError("prod", [found], ZeroDivisionError("a fault of ours"))
    await worker._isolate(partition, SimpleNamespace(bury=bury), poison)  # type: ignore[arg-type]
    assert len(buried) == 1
    assert [(reply.request_id, reply.accepted) for reply in replies] == [(each, False) for each in told]


KEY = "a key of the workers"
RESUME = SwitchSet(at=datetime(2026, 11, 30, tzinfo=UTC), request_id="r", person=Person(id="unix:eve"), is_on=False)


def newer(_cluster: str, record: Record) -> Record:
    return replace(record, value=(record.value or b"").replace(b'"v":1', b'"v":9'))


@pytest.mark.parametrize(
    ("sign", "why"),
    [
        pytest.param(unsigned, "unsigned: ", id="of nobody"),
        pytest.param(signing_as_edge(edge_key(KEY, "lab")), "unsigned: ", id="of the edge of another cluster"),
        pytest.param(signing_as_worker("another key"), "unsigned: ", id="with another key"),
        pytest.param(newer, "format 9, ", id="of a format to come"),
    ],
)
def test_a_switch_that_somebody_forged_among_the_objects(sign: Sign, why: str) -> None:
    """A rebuild reads what is kept as strictly as the stream is read: else a stop could be taken out there."""
    parts: Any = None
    made = Worker(KAFKA, RuntimeSettings(decision_key=SecretStr(KEY)), TOPICS, parts, parts, lambda _why: None)
    beside = made._beside(NUMBER)
    good = signing_as_worker(KEY)("prod", kept("prod", RESUME))
    assert beside.read(SimpleNamespace(value=good.value, headers=good.headers)).event == RESUME
    forged = sign("prod", kept("prod", RESUME))
    with pytest.raises(RecordError, match=why):
        beside.read(SimpleNamespace(value=forged.value, headers=forged.headers))


@pytest.mark.parametrize(
    "sign", [unsigned, signing_as_edge(edge_key(KEY, "lab"))], ids=["of nobody", "of another edge"]
)
async def test_an_answer_that_is_not_of_the_clusters_edge(
    partition: Takes, monkeypatch: pytest.MonkeyPatch, sign: Sign
) -> None:
    """It is a dead letter, answers nobody, and whoever waits in vain is told that it came; the true one counts."""
    parts: Any = None
    made = Worker(KAFKA, RuntimeSettings(decision_key=SecretStr(KEY)), TOPICS, parts, parts, lambda _why: None)
    made.partitions[NUMBER] = partition  # type: ignore[assignment]
    buried: list[str] = []

    async def bury(*where: object, **_: object) -> None:
        buried.append(str(where[-1]))

    monkeypatch.setattr(made, "_dead", SimpleNamespace(put=bury))
    asked = made.answers.expect("w-1", "a seal")
    answer = Answered(at=NOON, request_id="w-1", order="a seal", outcome="good")
    for offset, signing in enumerate((sign, signing_as_edge(edge_key(KEY, "prod"))), 5):
        sent = signing("prod", encode("prod", answer))
        assert not asked.answer.done()
        message = SimpleNamespace(offset=offset, key=None, value=sent.value, headers=sent.headers)
        await made.take(TOPICS.signals, NUMBER, message)
    assert [why[:20] for why in buried] == ["unsigned: an answer "]
    assert "an answer without the edge's signature was refused" in asked.doubt
    assert asked.answer.result() == answer
    assert partition.events == [None, None]
