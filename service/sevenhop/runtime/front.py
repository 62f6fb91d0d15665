"""The running service, as those see it who bring people's decisions: Slack's door, the local socket, HTTP."""

from __future__ import annotations

from sevenhop.core.effects import Message, Reply
from sevenhop.core.engine import Engine
from sevenhop.core.events import BreakerReset, Decided, Silenced, SwitchSet
from sevenhop.runtime.answers import status_of, told_of
from sevenhop.runtime.embedded import Embedded


class ServiceFront:
    """See `channels.door.Front`."""

    def __init__(self, engine: Engine, embedded: Embedded) -> None:
        self._engine = engine
        self._embedded = embedded

    async def ask(self, event: Decided | SwitchSet | BreakerReset, cluster: str = "") -> Reply:
        own = self._engine.remediation.cluster
        if cluster and cluster != own:
            text = f"this service watches {own}, not {cluster[:80]}; nothing was done"
            return Reply(request_id=event.request_id, accepted=False, text=text)
        return await self._embedded.ask(event)

    async def silence(self, event: Silenced) -> None:
        await self._embedded.emit_stored([event])

    async def message(self, incident_id: str) -> Message | None:
        return told_of(self._engine, incident_id)

    async def status(self) -> str:
        return status_of(self._engine, self._embedded.now())
