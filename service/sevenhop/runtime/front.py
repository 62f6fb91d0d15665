"""The running service, as those see it who bring people's decisions: Slack's door, the local socket, HTTP."""

from __future__ import annotations

from sevenhop.core.effects import Message, Reply
from sevenhop.core.engine import Engine
from sevenhop.core.events import BreakerReset, Decided, Silenced, SwitchSet
from sevenhop.core.incidents.incident import Incident
from sevenhop.core.incidents.labels import outward
from sevenhop.core.remediation import views
from sevenhop.runtime.embedded import Embedded


class ServiceFront:
    """See `channels.door.Front`."""

    def __init__(self, engine: Engine, embedded: Embedded) -> None:
        self._engine = engine
        self._embedded = embedded

    async def ask(self, event: Decided | SwitchSet | BreakerReset) -> Reply:
        return await self._embedded.ask(event)

    async def silence(self, event: Silenced) -> None:
        await self._embedded.emit_stored([event])

    def message(self, incident_id: str) -> Message | None:
        key = incident_id.rpartition("-")[0]
        incident = self._engine.desk.incidents.get(key)
        if incident is None or incident.id != incident_id or not incident.is_open:
            return None
        return _as_last_told(incident)

    def status(self) -> str:
        now = self._embedded.now()
        desk = self._engine.remediation
        said = []
        for row in views.safety(desk, now):
            state = "on" if row["is_on"] else "off"
            by = f", by {row['by']}" if row["is_on"] and row["by"] else ""
            why = f": {row['text']}" if row["is_on"] and row["text"] else ""
            said.append(f"{row['what']} {state}{by}{why}")
        going = [row for row in views.plans(desk, now) if row["stage"] != "over"]
        said += [f"plan {row['plan']} {row['state']}: {row['title']}" for row in going[:10]]
        return "; ".join(said or ["nothing runs"])


def _as_last_told(incident: Incident) -> Message:
    return Message(
        title=incident.heading or incident.title,
        status="firing",
        severity=incident.severity,
        cluster=incident.cluster,
        since=incident.since,
        at=incident.updated_at,
        lines=incident.lines,
        labels=outward({**incident.labels, "cluster": incident.cluster}),
        details=(*incident.details, *incident.history),
    )
