"""The real source on the simulated cluster while virtual time leaps: what the demo is made of."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta

from sevenhop.core.events import Applied, Event, SourceChanged, SyncState
from sevenhop.simulation.clock import VirtualClock
from sevenhop.simulation.cluster import SimulatedCluster, gpu_node
from sevenhop.sources.kubernetes.api import Access, ApiServer
from sevenhop.sources.kubernetes.limits import Limits
from sevenhop.sources.kubernetes.source import KubernetesSource

NOON = datetime(2026, 11, 30, 12, tzinfo=UTC)


async def test_a_leap_of_virtual_time_is_no_silence() -> None:
    """Hours pass within the story in a moment; events carry its time, and no kind goes stale for it."""
    clock = VirtualClock(NOON)
    cluster = SimulatedCluster(clock, bookmark_s=0.6)
    cluster.store.create("Node", gpu_node("n", "NVIDIA-H100-80GB-HBM3", 8))
    heard: list[Event] = []

    async def emit(batch: list[Event]) -> None:
        heard.extend(batch)

    async with cluster.server.serve() as url, ApiServer(Access(base_url=url)) as api:
        source = KubernetesSource(api, clock=clock, limits=Limits(silence_s=2.0))
        running = asyncio.create_task(source.run(emit))
        await _caught_up(source, cluster)
        cluster.advance(timedelta(hours=3))
        pod = {"metadata": {"name": "p"}, "spec": {"containers": [{"name": "c"}]}}
        cluster.store.create("Pod", pod)
        cluster.advance(timedelta(hours=1))
        await _caught_up(source, cluster)
        await asyncio.sleep(0.3)
        running.cancel()
        await asyncio.wait([running])

    last = [e for e in heard if isinstance(e, Applied) and e.kind == "Pod"][-1]
    assert last.at == NOON + timedelta(hours=4)
    states = {e.kind: e.state for e in heard if isinstance(e, SourceChanged)}
    assert set(states.values()) == {SyncState.SYNCED}
    assert not any(isinstance(e, SourceChanged) and e.state is SyncState.STALE for e in heard)


async def _caught_up(source: KubernetesSource, cluster: SimulatedCluster) -> None:
    """Wait until the source has followed every kind up to its newest change."""
    async with asyncio.timeout(30):
        while not all(  # noqa: ASYNC110
            row.state is SyncState.SYNCED and int(row.resource_version) >= cluster.store.last_change(row.kind)
            for row in source.status()
        ):
            await asyncio.sleep(0.01)
