"""How a worker hears the edge of a cluster: what is not waited for, and what is our own deafness."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta

from sevenhop.core.engine import Engine
from sevenhop.core.events import SourceChanged, SyncState
from sevenhop.core.incidents.settings import DeskSettings
from sevenhop.core.inventory.policy import Policy
from sevenhop.runtime.acting import Acting
from sevenhop.runtime.clock import Clock
from sevenhop.runtime.scaled.cell import Cell, Parts
from sevenhop.runtime.scaled.remote import Heard
from sevenhop.runtime.scaled.terms import in_term
from sevenhop.stores.redis_fence import Fence

NOON = datetime(2026, 11, 30, 12, tzinfo=UTC)


class At(Clock):
    """Stands still."""

    now = NOON

    def __call__(self) -> datetime:
        return self.now

    def later(self, seconds: float) -> None:
        self.now += timedelta(seconds=seconds)


class Client:
    def register_script(self, _: str) -> None: ...


def test_a_cell_tells_its_hands_how_the_edge_is_heard() -> None:
    """Silence counts from its last word, or from our own start; while Redis is away it is ours, and no edge's."""
    clock, fence = At(), Fence(Client(), "p0")  # type: ignore[arg-type]
    told: list[Callable[[], Heard]] = []

    def build_acting(_cluster: str, _engine: Engine, heard: Callable[[], Heard]) -> Acting | None:
        told.append(heard)
        return None

    parts = Parts(
        build_engine=lambda cluster: Engine(cluster, (), (), Policy(), DeskSettings()),
        channels={},
        clock=clock,
        silence=timedelta(minutes=1),
        build_acting=build_acting,
    )
    cell = Cell("c", parts, fence, is_whole=True)
    [heard] = told

    clock.later(9)
    assert heard() == Heard(silent_s=9.0, term=0)
    cell.sight.take(in_term(SourceChanged(at=clock(), epoch=1, seq=1, kind="Pod", state=SyncState.SYNCED), 5), clock())
    clock.later(2)
    assert heard() == Heard(silent_s=2.0, term=5)
    clock.later(60)
    fence.stalled = "Redis: gone"
    assert heard() == Heard(silent_s=0.0, term=5)
    fence.stalled = ""
    assert heard() == Heard(silent_s=62.0, term=5)
