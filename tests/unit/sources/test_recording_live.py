"""A recording made by the real source says what the source said."""

from __future__ import annotations

from pathlib import Path

import pytest

from sevenhop.core.events import Event
from sevenhop.sources.kubernetes.api import Access, ApiServer
from sevenhop.sources.kubernetes.source import KubernetesSource
from sevenhop.sources.recording import Recorder, Recording, RecordingError
from tests.unit.sources.harness import NODE, POD, QUICK, Bench, Heard, bench, now


async def test_what_was_told_is_what_is_recorded(tmp_path: Path) -> None:
    """Every event of every kind is in the recording, in the order of its kind, deletions and states included."""
    path = tmp_path / "a.gz"
    with Recorder(path, cluster="test", started_at=now()) as record:
        async with bench(prepare=lambda b: b.pod("a"), record=record) as b:
            await b.converges()
            b.touch("a", "x")
            b.node("n")
            b.store.create("Pod", {"metadata": {"name": "odd"}, "spec": {"containers": 5}})
            b.store.delete("Pod", "default", "a")
            b.store.delete("Pod", "default", "odd")
            await b.converges()
            heard = b.heard

    recorded = list(Recording(path))
    for kind in ("Pod", "Node"):
        assert [e for e in recorded if getattr(e, "kind", "") == kind] == heard.of(kind)


async def test_a_recorder_that_fails_ends_the_source() -> None:
    """A recording with a hole would be worse than none: the source ends with the recorder's error."""

    def full(_event: Event, _raw: object) -> None:
        raise RecordingError("disk full")

    b = Bench([POD, NODE])
    b.pod("a")
    async with b.server.serve() as url, ApiServer(Access(base_url=url)) as api:
        source = KubernetesSource(api, [POD, NODE], clock=now, limits=QUICK, record=full)
        with pytest.raises(RecordingError, match="disk full"):
            await source.run(Heard().emit)
