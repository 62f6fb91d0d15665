"""A simulated API server over loopback, the real source against it, and what the source said."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from typing import Any

from sevenhop.core.events import Applied, Deleted, Event, SourceChanged, SyncState, Unreadable
from sevenhop.core.objects.kinds import KINDS, Kind
from sevenhop.simulation.server import ApiServerSimulation
from sevenhop.simulation.store import Store
from sevenhop.sources.kubernetes.api import Access, ApiServer
from sevenhop.sources.kubernetes.limits import Limits
from sevenhop.sources.kubernetes.observe import Record
from sevenhop.sources.kubernetes.source import KubernetesSource
from sevenhop.sources.kubernetes.status import KindStatus

PATIENCE_S = 30.0
"""Ends only what never comes true; a loaded machine stays well below it."""

QUICK = Limits(
    page_size=500,
    silence_s=0.6,
    stale_after_silences=2.0,
    watch_s=(20.0, 30.0),
    list_silence_s=2.0,
    connect_s=10.0,
    discovery_s=30.0,
    backoff_base_s=0.01,
    backoff_cap_s=0.05,
    forbidden_retry_s=0.1,
)

POD, NODE, SERVICE, EVENT = KINDS["Pod"], KINDS["Node"], KINDS["Service"], KINDS["Event"]


def now() -> datetime:
    return datetime.now(UTC)


class Heard:
    """Everything a source told, and the level that follows from it."""

    def __init__(self) -> None:
        self.batches: list[list[Event]] = []
        self.events: list[Event] = []
        self.level: dict[tuple[str, str, str], tuple[str, str]] = {}
        self.states: dict[str, SyncState] = {}
        self.details: dict[str, str] = {}

    async def emit(self, batch: list[Event]) -> None:
        self.batches.append(batch)
        for event in batch:
            self._take(event)

    def _take(self, event: Event) -> None:
        self.events.append(event)
        if isinstance(event, Applied):
            meta = event.obj.metadata
            self.level[event.kind, meta.namespace, meta.name] = (meta.uid, meta.resource_version)
        elif isinstance(event, Deleted):
            known = self.level.get((event.kind, event.namespace, event.name))
            if known is not None and event.uid in ("", known[0]):
                del self.level[event.kind, event.namespace, event.name]
        elif isinstance(event, SourceChanged):
            self.states[event.kind] = event.state
            self.details[event.kind] = event.detail

    def of(self, kind: str) -> list[Event]:
        return [
            e for e in self.events if isinstance(e, Applied | Deleted | Unreadable | SourceChanged) and e.kind == kind
        ]

    def changes_of(self, kind: str) -> list[tuple[str, str]]:
        """(event, name@resourceVersion) of every object told."""
        said = []
        for event in self.of(kind):
            if isinstance(event, Applied):
                said.append(("applied", f"{event.obj.metadata.name}@{event.obj.metadata.resource_version}"))
            elif isinstance(event, Deleted):
                said.append(("deleted", f"{event.name}@{event.uid}"))
        return said


class Bench:
    """One server, one source, what it said."""

    def __init__(self, kinds: Iterable[Kind], **server: Any) -> None:
        self.kinds = list(kinds)
        self.store = Store(now, self.kinds, history=5000)
        self.server = ApiServerSimulation(self.store, **{"bookmark_s": 0.2, **server})
        self.faults = self.server.faults
        self.heard = Heard()
        self.source: KubernetesSource

    def pod(self, name: str, **status: Any) -> None:
        self.store.create("Pod", {"metadata": {"name": name}, "spec": {"containers": []}, "status": status})

    def node(self, name: str) -> None:
        self.store.create("Node", {"metadata": {"name": name}})

    def touch(self, name: str, reason: str) -> None:
        self.store.change("Pod", "default", name, lambda pod: {**pod, "status": {**pod["status"], "reason": reason}})

    def status(self, kind: str) -> KindStatus:
        return next(row for row in self.source.status() if row.kind == kind)

    def truth(self) -> dict[tuple[str, str, str], tuple[str, str]]:
        """What the server has, in the form of `Heard.level`."""
        return {
            (kind.name, meta.get("namespace", ""), meta["name"]): (meta["uid"], meta["resourceVersion"])
            for kind in self.store.kinds()
            for meta in (data["metadata"] for data in self.store.all(kind.name))
        }

    async def converges(self, seconds: float = PATIENCE_S) -> None:
        """Wait until the source knows what the server has, and says that it does."""
        await until(lambda: self.heard.level == self.truth() and self._is_synced(), seconds, self._report)

    def _is_synced(self) -> bool:
        return all(self.heard.states.get(kind.name) is SyncState.SYNCED for kind in self.store.kinds())

    def _report(self) -> str:
        missing = self.truth().items() - self.heard.level.items()
        extra = self.heard.level.items() - self.truth().items()
        return f"missing {sorted(missing)[:5]} extra {sorted(extra)[:5]} states {self.heard.states}"


async def until(holds: Callable[[], bool], seconds: float = PATIENCE_S, report: Callable[[], str] = str) -> None:
    """Wait for something to hold; fails with the report after so many seconds."""
    ends_at = asyncio.get_running_loop().time() + seconds
    while not holds():
        assert asyncio.get_running_loop().time() < ends_at, report()
        await asyncio.sleep(0.01)


@asynccontextmanager
async def bench(
    *kinds: Kind,
    limits: Limits = QUICK,
    prepare: Callable[[Bench], None] | None = None,
    source_kinds: Iterable[Kind] | None = None,
    access: Callable[[str], ApiServer] | None = None,
    record: Record | None = None,
    **server: Any,
) -> AsyncIterator[Bench]:
    """A source that runs against a server of these kinds; `prepare` fills it before the source starts."""
    made = Bench(kinds or (POD, NODE), **server)
    if prepare is not None:
        prepare(made)
    async with made.server.serve() as url, (access or _plain)(url) as api:
        made.source = KubernetesSource(
            api, source_kinds or made.kinds, clock=now, limits=limits, rng=random.Random(7), record=record
        )
        running = asyncio.create_task(made.source.run(made.heard.emit))
        try:
            yield made
        finally:
            running.cancel()
            await asyncio.wait([running])
            if not running.cancelled():
                running.result()


def _plain(url: str) -> ApiServer:
    return ApiServer(Access(base_url=url))
