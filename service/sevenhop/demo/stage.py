"""
The stage: a simulated cluster behind a loopback API server, and around it what production runs.

    SimulatedCluster ─HTTP─► KubernetesSource ─► Embedded (engine, SQLite, outbox) ─► console channel
            ▲                                               │
            └──── approved steps: dry run, patch, Event ◄───┘

Time is virtual and moves only in `advance`, from one due moment to the next, and never ahead of anyone: so a slow
machine tells the same story, to the second.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, TextIO

from sevenhop.app import build_embedded, build_engine, build_rulebook
from sevenhop.core.effects import Reply
from sevenhop.core.engine import Engine, Step
from sevenhop.core.events import Decided, SyncState, Tick
from sevenhop.demo.cast import ONCALL, PLAYBOOK
from sevenhop.demo.endpoints import EndpointSlices
from sevenhop.demo.manifests import GPU, Item, with_owner_uids
from sevenhop.demo.story import Action, Create, KillPods, Patch
from sevenhop.demo.world import World
from sevenhop.runtime.clock import Clock
from sevenhop.runtime.embedded import Embedded
from sevenhop.settings import Settings, load_settings
from sevenhop.simulation.clock import VirtualClock
from sevenhop.simulation.cluster import SimulatedCluster
from sevenhop.simulation.controllers import is_ready
from sevenhop.simulation.operators import KServe
from sevenhop.simulation.patches import merge_patch
from sevenhop.sources.kubernetes.api import Access, ApiServer
from sevenhop.sources.kubernetes.source import KubernetesSource
from sevenhop.stores.sqlite import SqliteStore

LOAD_S = 50.0
"""Seconds from running to Ready of a pod with GPUs: a model loads."""

LOADS_S = {"llama-70b": 95.0}
"""The same, of models that are larger than the others; by the name they are served under."""

BUILT_BEFORE = timedelta(hours=3)
"""The world is that old when the story begins, so that nothing of it counts as a recent change."""

REMEDIATION = {"playbooks": {PLAYBOOK: {"mode": "approve", "approvers": [f"kubernetes-group:{ONCALL}"]}}}
"""All that the demo sets beside the defaults: one playbook asks, and the group on call may answer."""

_LONGEST_MOVE = timedelta(seconds=10)
"""Time passes in moves that can be watched."""

_SETTLED_WITHIN_S = 20.0
_LOOK_EVERY_S = 0.002
_NEVER_S = 3600.0

Pace = Callable[[datetime], Awaitable[None]]
"""Waits in real time before virtual time moves to a moment."""


class StageError(Exception):
    """The demo itself is broken; one line."""


class StageClock(Clock):
    """
    The stage's time for the runtime.  Nobody is woken by it: the stage tells the time after each move, once the
    cluster's changes have been told.  Woken before them, on a busy machine, the engine would look too early.
    """

    def __init__(self, virtual: VirtualClock) -> None:
        super().__init__(virtual())
        self._virtual = virtual

    def __call__(self) -> datetime:
        return self._virtual()

    def real_s(self, seconds: float) -> float:
        return max(seconds, _NEVER_S)


class Stage:
    """
    Attributes:
        engine, embedded: The very ones of production.
        clock: Virtual time, UTC.
    """

    def __init__(
        self,
        cluster: SimulatedCluster,
        engine: Engine,
        embedded: Embedded,
        source: KubernetesSource,
        state: SqliteStore,
    ) -> None:
        self.state = state
        self.cluster = cluster
        self.clock: VirtualClock = cluster.clock
        self.engine = engine
        self.embedded = embedded
        self._source = source
        self._due: datetime | None = None
        self._running: asyncio.Task[None] | None = None
        embedded.observers.append(self._heard)

    def _heard(self, step: Step) -> None:
        self._due = step.next_wake

    async def advance(
        self,
        until: datetime,
        pace: Pace,
        look: Callable[[datetime], None],
        *,
        enough: Callable[[], bool] = lambda: False,
    ) -> None:
        """
        Let time pass, stopping wherever something is due.

        Args:
            pace: Awaited before each move, with the time that will be.
            look: Called after each move, when everyone has caught up.
            enough: Ends it before `until`.
        """
        while True:
            due = self.cluster.settle()
            await self.settle()
            now = self.clock()
            look(now)
            if now >= until or enough():
                return
            moments = (until, due, self._due, now + _LONGEST_MOVE)
            at = max(now, min(moment for moment in moments if moment is not None))
            await pace(at)
            self.clock.advance_to(at)
            self.cluster.settle()
            await self.settle()
            # The engine wakes by a timer of real time otherwise; told the time, it does what is due by now.
            await self.embedded.emit([Tick(at=at)])

    async def settle(self) -> None:
        """
        Wait until the source has told every change, and the runtime has handled, stored and delivered all of it.

        Raises:
            StageError: A part has failed, or does not come to rest.
        """
        quiet = 0
        try:
            async with asyncio.timeout(_SETTLED_WITHIN_S):
                while quiet < 2:
                    if self._running is not None and self._running.done():
                        await self._running
                        raise StageError("the service has ended in the middle of the story")
                    quiet = quiet + 1 if self._has_caught_up() and self.embedded.is_idle else 0
                    await asyncio.sleep(0 if quiet else _LOOK_EVERY_S)
        except TimeoutError:
            raise StageError(f"no rest within {_SETTLED_WITHIN_S:g} s; failing: {self._failing()}") from None

    async def ask(self, request: Decided) -> Reply:
        """Hand on a person's decision; the answer is for that person alone."""
        reply = await self.embedded.ask(request)
        await self.settle()
        return reply

    def act(self, action: Action) -> None:
        """Do what somebody does to the cluster."""
        perform(self.cluster, action)

    def _has_caught_up(self) -> bool:
        store = self.cluster.store
        return all(
            row.state is SyncState.SYNCED and int(row.resource_version) >= store.last_change(row.kind)
            for row in self._source.status()
        )

    def _failing(self) -> str:
        rows = [f"{row.kind}: {row.state} {row.detail}" for row in self._source.status() if row.state != "synced"]
        return "; ".join([*rows[:3], *self.embedded.outbox_failures().values()]) or "nothing says so"

    def run(self) -> asyncio.Task[None]:
        self._running = asyncio.create_task(self.embedded.run([self._source]), name="sevenhop")
        return self._running


@asynccontextmanager
async def open_stage(
    world: World, begins: datetime, folder: Path, stream: TextIO, settings: Settings | None = None
) -> AsyncIterator[Stage]:
    """
    Build the world, and watch it from `begins` on.

    Args:
        folder: Empty; the state is kept there.
        stream: Where the console channel writes.
        settings: Such as other rules; None takes the defaults of production.

    Raises:
        StageError: A part of ours failed, in one line.
    """
    cluster = open_cluster(world, begins)
    clock = cluster.clock
    settings = settings or settings_of(world, folder)
    rulebook = build_rulebook(settings)
    if rulebook.problems:
        raise StageError(f"the shipped rules have problems: {rulebook.problems[0]}")
    engine = build_engine(settings, rulebook, world.cluster)
    store = SqliteStore(folder)
    try:
        async with cluster.server.serve() as url, ApiServer(Access(base_url=url)) as api:
            embedded = build_embedded(settings, engine, store, StageClock(clock), stream, api)
            stage = Stage(cluster, engine, embedded, KubernetesSource(api, clock=clock), store)
            running = stage.run()
            try:
                await stage.settle()
                yield stage
            finally:
                running.cancel()
                await asyncio.wait([running])
    finally:
        store.close()


def open_cluster(world: World, begins: datetime) -> SimulatedCluster:
    """
    The world as it stands when the story begins, with the operators that follow changes from then on.

    Raises:
        StageError: It does not come to stand.
    """
    clock = VirtualClock(begins - BUILT_BEFORE)
    cluster = SimulatedCluster(clock, load_s=_load_s, controllers=(EndpointSlices,))
    build(cluster, world)
    # Operators act on changes: what is built stands as they would have left it.
    cluster.add(KServe)
    cluster.advance(begins - clock())
    return cluster


def settings_of(world: World, folder: Path) -> Settings:
    """The defaults of production, whatever the reader's environment says."""
    return load_settings(None, environ={}, cluster=world.cluster, state=folder, remediation=REMEDIATION)


def build(cluster: SimulatedCluster, world: World) -> None:
    """
    Let a world come into being, round after round.

    Raises:
        StageError: A round does not come to rest with all its pods Ready.
    """
    uids: dict[tuple[str, str, str], str] = {}
    for number, now in enumerate(world.rounds):
        for item in now.items:
            _create(cluster, item, uids)
        for (namespace, name), replicas in now.replicas.items():
            perform(cluster, Patch("Deployment.apps", namespace, name, {"spec": {"replicas": replicas}}))
        cluster.advance(timedelta(minutes=5))
        waiting = [pod["metadata"]["name"] for pod in cluster.store.all("Pod") if not is_ready(pod)]
        if waiting:
            raise StageError(f"round {number} of the world leaves pods that are not Ready: {', '.join(waiting)}")


def _create(cluster: SimulatedCluster, item: Item, uids: dict[tuple[str, str, str], str]) -> None:
    made = cluster.store.create(item.kind, with_owner_uids(item.manifest, uids))
    meta = made["metadata"]
    uids[made["kind"], meta.get("namespace", ""), meta["name"]] = meta["uid"]


def perform(cluster: SimulatedCluster, action: Action) -> None:
    """
    What an action does to a simulated cluster.

    Raises:
        StageError: There is no such pod.
    """
    store = cluster.store
    if isinstance(action, Patch):
        store.change(action.kind, action.namespace, action.name, lambda data: _merged(data, action))
        return
    if isinstance(action, Create):
        store.create(action.item.kind, action.item.manifest)
        return
    victims = [pod["metadata"]["name"] for pod in store.all("Pod", action.namespace) if _is_meant(action, pod)]
    if not victims:
        raise StageError(f"no pod in {action.namespace} is {dict(action.labels)} on node {action.node or '(none)'}")
    for name in victims:
        store.delete("Pod", action.namespace, name, grace_s=0)


def _merged(data: dict[str, Any], action: Patch) -> dict[str, Any]:
    merged = merge_patch(data, action.patch)
    if not isinstance(merged, dict):
        raise StageError(f"the patch leaves nothing of {action.kind} {action.name}")
    return merged


def _is_meant(action: KillPods, pod: dict[str, Any]) -> bool:
    labels = pod["metadata"].get("labels") or {}
    return pod["spec"].get("nodeName", "") == action.node and action.labels.items() <= labels.items()


def _load_s(pod: dict[str, Any]) -> float:
    containers = pod["spec"]["containers"]
    if not any(GPU in each.get("resources", {}).get("limits", {}) for each in containers):
        return 3.0
    words = [word for each in containers for word in each.get("args", ())]
    return next((LOADS_S[word] for word in words if word in LOADS_S), LOAD_S)
