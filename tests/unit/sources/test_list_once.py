"""One look at a cluster, without a watch."""

from __future__ import annotations

import asyncio

import pytest

from sevenhop.core.events import Applied, SourceChanged, SyncState
from sevenhop.core.objects.kinds import KINDS
from sevenhop.simulation import faults as f
from sevenhop.sources.kubernetes.api import Access, ApiServer, ConnectError
from sevenhop.sources.kubernetes.source import ListProgress, list_once
from tests.unit.sources.harness import NODE, POD, QUICK, SERVICE, Bench, now


async def test_every_kind_ends_in_a_state() -> None:
    """Objects, then for each kind whether it is known; what is forbidden, broken or absent stops nothing else."""
    b = Bench([POD, NODE, SERVICE])
    for n in range(750):
        b.pod(f"p{n}")
    b.faults.add(f.Refuse(plural="services", status=403, times=None))
    b.faults.add(f.Refuse(plural="nodes", status=500, message="etcd", times=None))
    seen: list[ListProgress] = []
    kinds = [POD, NODE, SERVICE, KINDS["RayService.ray.io"]]
    async with b.server.serve() as url, ApiServer(Access(base_url=url)) as api:
        events = [e async for e in list_once(api, kinds, clock=now, limits=QUICK, progress=seen.append)]

    assert sum(isinstance(e, Applied) for e in events) == 750
    states = {e.kind: (e.state, e.detail) for e in events if isinstance(e, SourceChanged)}
    assert states["Pod"] == (SyncState.SYNCED, "")
    assert states["RayService.ray.io"] == (SyncState.ABSENT, "")
    assert states["Service"][0] is SyncState.FORBIDDEN
    assert states["Node"][0] is SyncState.NOT_SYNCED
    assert "500: etcd" in states["Node"][1]
    assert (seen[-1].objects, seen[-1].objects_in_all, seen[-1].kinds) == (750, 750, 4)
    assert [p.objects for p in seen] == sorted(p.objects for p in seen)
    assert not [path for _, path in b.server.requests if "watch" in path]


async def test_a_fault_that_passes_is_tried_again() -> None:
    """A busy moment of the server does not make a kind unknown."""
    b = Bench([POD])
    b.pod("a")
    b.faults.add(f.Refuse(plural="pods", status=429, retry_after="0", times=2))
    async with b.server.serve() as url, ApiServer(Access(base_url=url)) as api:
        events = [e async for e in list_once(api, [POD], clock=now, limits=QUICK)]

    assert isinstance(events[-1], SourceChanged)
    assert events[-1].state is SyncState.SYNCED


async def test_no_discovery_is_an_error() -> None:
    """Where not even discovery works, the caller gets the error instead of an empty cluster."""
    b = Bench([POD])
    b.faults.add(f.Refuse(verbs=["discovery"], status=401, times=None))
    async with b.server.serve() as url, ApiServer(Access(base_url=url)) as api:
        with pytest.raises(ConnectError, match=r"401.*log in again"):
            _ = [e async for e in list_once(api, [POD], clock=now)]


async def test_a_reader_that_stops_early() -> None:
    """Whoever has seen enough leaves nothing running."""
    b = Bench([POD])
    for n in range(2000):
        b.pod(f"p{n}")
    async with b.server.serve() as url, ApiServer(Access(base_url=url)) as api:
        events = list_once(api, [POD], clock=now)
        await anext(events)
        await events.aclose()  # type: ignore[attr-defined]

        assert {t for t in asyncio.all_tasks() if "feed" in str(t.get_coro())} == set()
