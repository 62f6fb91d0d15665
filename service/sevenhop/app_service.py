"""The embedded runtime with all that stands around it: what watches, who may ask and decide, what is measured."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from sevenhop.app import build_dcgm, build_doors, build_embedded, build_gpu_push, build_web, reviewer, trail_of
from sevenhop.core.engine import Engine
from sevenhop.rulebook.load import Rulebook
from sevenhop.runtime.clock import Clock
from sevenhop.runtime.control import Control
from sevenhop.runtime.deciding import Deciding
from sevenhop.runtime.doctor import doctor_report
from sevenhop.runtime.embedded import Source
from sevenhop.runtime.front import ServiceFront
from sevenhop.runtime.garbage import keep_pauses_short
from sevenhop.runtime.listening import Listener, Listening, Writable, why_not_ready, why_unhealthy
from sevenhop.runtime.reload import Reloader
from sevenhop.runtime.watched import Watched
from sevenhop.settings import Settings
from sevenhop.sources.dcgm.source import Dcgm
from sevenhop.sources.gpu_push.receiver import GpuPush
from sevenhop.sources.kubernetes.api import ApiServer
from sevenhop.sources.kubernetes.limits import Limits
from sevenhop.sources.kubernetes.observe import Record
from sevenhop.sources.kubernetes.source import KubernetesSource
from sevenhop.stores.sqlite import SqliteStore, StoreError
from sevenhop.telemetry.meter import Meter

if TYPE_CHECKING:
    from sevenhop.stores.redis import RedisStore

log = logging.getLogger("sevenhop")


class Service:
    """
    What `sevenhop run` runs in one process: made, `start`ed, `run` until it is cancelled, and `close`d in any case.

    Args:
        record: Takes all that the sources see.
        holding: What has to go on while it runs, such as the renewing of a Lease.

    Raises:
        StoreError: The state cannot be used.
    """

    def __init__(
        self,
        settings: Settings,
        rulebook: Rulebook,
        engine: Engine,
        store: SqliteStore | RedisStore,
        api: ApiServer,
        clock: Clock,
        *,
        record: Record | None = None,
        holding: Sequence[Source] = (),
    ) -> None:
        self._settings = settings
        self._rulebook = rulebook
        self._store = store
        self._api = api
        self._clock = clock
        self._holding = holding
        meter = Meter(engine.remediation.cluster)
        self._embedded = embedded = build_embedded(settings, engine, store, clock, api=api, meter=meter)
        limits = Limits(
            silence_s=settings.kubernetes.silence_limit.total_seconds(),
            discovery_s=settings.kubernetes.discovery_interval.total_seconds(),
        )
        self._source = source = KubernetesSource(api, clock=clock, limits=limits, record=record)
        push = build_gpu_push(settings, api, embedded.emit, clock, observe=record)
        self._dcgm = build_dcgm(settings, clock, observe=record)
        self._gpu_sources: list[GpuPush | Dcgm] = [*([push] if push is not None else []), *self._dcgm]
        self._watched = Watched(settings.telemetry, meter, embedded, source, store, push=push, dcgm=self._dcgm)
        review = reviewer(api, clock)
        front = ServiceFront(engine, embedded)
        local = Deciding(front, review, clock, takes_peers=True, via="terminal")
        self._control = Control(
            engine, embedded.emit_stored, clock, self._report, audit=lambda: trail_of(store), posts=local.routes()
        )
        doors = build_doors(settings, engine, front, clock)
        writable = Writable(store.why_not_writable)
        self._server = build_web(
            settings, front, review, clock, doors, ready=lambda: why_not_ready(source, embedded, writable),
            healthy=lambda: why_unhealthy(embedded), gets=self._watched.routes(), push=push,
        )  # fmt: skip
        self._listeners: list[Listener] = [*doors, self._watched.heartbeat]
        if self._server is not None:
            self._listeners.append(self._server)
        self._tidying: asyncio.Task[None] | None = None

    async def start(self) -> None:
        """
        Open the doors.

        Raises:
            StoreError: There can be no socket in the state's folder.
            WebError: The address is taken, or a certificate cannot be used.
        """
        settings = self._settings
        self._tidying = asyncio.create_task(keep_pauses_short(lambda: is_listed(self._source)))
        try:
            await self._control.start(settings.state)
        except OSError as error:
            why = error.strerror or error
            raise StoreError(f"{settings.state}: no socket there: {why}; choose another --state") from None
        log.info(
            "watching %s (%s) with %d rules; state in %s; receivers: %s",
            self._embedded.engine.remediation.cluster, self._api.base_url, len(self._rulebook.rules), settings.state,
            ", ".join(settings.receivers),
        )  # fmt: skip
        if self._server is not None:
            await self._server.start()

    async def run(self) -> None:
        """
        Watch and tell until cancelled, or until a part fails.

        Raises:
            ExceptionGroup: Of what failed.
        """
        reloader = Reloader(self._settings, self._rulebook, self._embedded)
        beside = map(Listening, self._listeners)
        await self._embedded.run([self._source, reloader, *beside, *self._dcgm, *self._holding])

    async def close(self) -> None:
        """Whether or not it was started."""
        if self._tidying is not None:
            self._tidying.cancel()
        await self._control.close()
        for each in self._listeners:
            await each.close()
        await self._embedded.close()
        self._watched.close()

    def _report(self) -> dict[str, Any]:
        """For `sevenhop doctor`."""
        return {
            **doctor_report(self._embedded, self._source, self._store, self._settings, self._clock()),
            **self._watched.report(),
            "gpu_sources": [each.report() for each in self._gpu_sources],
        }


def is_listed(source: KubernetesSource) -> bool:
    """Whether every kind was listed once, or cannot be."""
    return all(row.state.value != "not_synced" for row in source.status())
