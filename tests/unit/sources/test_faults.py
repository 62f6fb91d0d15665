"""The real source against a server that misbehaves on purpose: what it knows converges to what is true."""

from __future__ import annotations

from sevenhop.core.events import SyncState
from tests.unit.sources.harness import bench


async def test_a_healthy_server() -> None:
    """Without any fault, additions, changes and deletions arrive once each."""
    async with bench(prepare=lambda b: b.pod("a")) as b:
        await b.converges()
        b.pod("b")
        b.touch("b", "x")
        b.store.delete("Pod", "default", "a")
        b.node("n")
        await b.converges()
        assert b.heard.states["Pod"] is SyncState.SYNCED
        assert [what for what, _ in b.heard.changes_of("Pod")] == ["applied", "applied", "applied", "deleted"]
