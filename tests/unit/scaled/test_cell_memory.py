"""A worker holds one copy of what the pods of a template have in common, as the embedded runtime does."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from sevenhop.core.engine import Engine
from sevenhop.core.events import Applied
from sevenhop.core.incidents.settings import DeskSettings
from sevenhop.core.inventory.policy import Policy
from sevenhop.runtime.clock import Clock
from sevenhop.runtime.codec import encode, read
from sevenhop.runtime.scaled.cell import Cell, Parts
from sevenhop.stores.redis_fence import Changes, Fence
from tests import builders as b

NOON = datetime(2026, 11, 30, 12, tzinfo=UTC)


@pytest.fixture
def cell() -> Cell:
    parts = Parts(
        build_engine=lambda cluster: Engine(cluster, (), (), Policy(), DeskSettings()),
        channels={},
        clock=Clock(),
        silence=timedelta(minutes=1),
    )

    class Client:
        def register_script(self, _: str) -> None: ...

    return Cell("c", parts, Fence(Client(), "p0"), is_whole=True)  # type: ignore[arg-type]


@pytest.mark.parametrize("way", ["rebuilt", "handled"])
def test_replicas_share_what_they_have_in_common(cell: Cell, way: str) -> None:
    """Each comes in a record of its own; 20 KB a pod would be three times what is needed."""
    for event in b.Feed().applied(b.pod("p-0", node="n"), b.pod("p-1", node="n")):
        found = read(encode("c", event).value).event
        assert isinstance(found, Applied)
        if way == "rebuilt":
            cell.rebuild_from(found, NOON)
        else:
            cell.handle(Changes(), [found], NOON)
    first, second = cell.engine.inventory.state.objects.pods().values()
    assert first.spec.containers is second.spec.containers
