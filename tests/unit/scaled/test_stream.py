"""What Faust is told beside its settings: where its folders go, and that no partition waits for the others' answer."""

from __future__ import annotations

from pathlib import Path

import pytest

from sevenhop.runtime.scaled.stream import FETCH_WAIT_MS, Stream
from sevenhop.runtime.scaled.topics import topics_of
from sevenhop.settings_scaled import KafkaSettings

KAFKA = KafkaSettings(servers=["127.0.0.1:1"], partitions=2)


class Nobody:
    """Takes nothing."""

    def revoked(self) -> None: ...

    async def assigned(self, numbers: set[int]) -> None: ...

    def next_offsets(self, number: int) -> dict[str, int]:
        return {}

    async def take(self, topic: str, number: int, message: object) -> None: ...


@pytest.fixture
def stream() -> Stream:
    return Stream(KAFKA, topics_of(KAFKA), Nobody())


async def test_nothing_is_written_where_we_run(stream: Stream, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The root file system of the image is read-only, and nobody wants a folder in theirs."""
    here, elsewhere = tmp_path / "here", tmp_path / "elsewhere"
    here.mkdir()
    elsewhere.mkdir()
    monkeypatch.chdir(here)
    app = stream._build(str(elsewhere))
    app.finalize()
    app._create_directories()
    assert list(here.iterdir()) == []
    assert list(elsewhere.iterdir()) != []


async def test_a_partition_does_not_wait_for_the_answer_about_others(stream: Stream, tmp_path: Path) -> None:
    """Faust's own 1.5 s would be added to each takeover, and now and then to a change."""
    app = stream._build(str(tmp_path))
    app.finalize()
    consumer = app.consumer._new_consumer_thread()._create_worker_consumer(app.transport)
    waits_ms = consumer._fetch_max_wait_ms
    await consumer.stop()
    assert waits_ms == FETCH_WAIT_MS < 500
