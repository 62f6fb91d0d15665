"""The message of one moment, and what is remembered of it once it is asked to be sent."""

from __future__ import annotations

from datetime import datetime
from hashlib import sha256

import msgspec

from sevenhop.core.effects import Message, Notify, Role
from sevenhop.core.incidents.context import Contexts
from sevenhop.core.incidents.incident import Incident, NotifyReason, Told
from sevenhop.core.incidents.message import Situation, build_message, build_resolved
from sevenhop.core.incidents.notify import Shown
from sevenhop.core.incidents.settings import DeskSettings
from sevenhop.core.incidents.severity import highest


class Draft:
    """Written when it is first asked for."""

    def __init__(
        self, incident: Incident, situation: Situation, contexts: Contexts, now: datetime, settings: DeskSettings
    ) -> None:
        self._args = (incident, situation, contexts, now, settings)
        self._message: Message | None = None
        self.title = incident.title
        self._shown: Shown | None = None

    @property
    def message(self) -> Message:
        if self._message is None:
            incident, situation, contexts, now, settings = self._args
            if incident.is_open:
                self._message, self.title = build_message(incident, situation, contexts, now, settings)
            else:
                self._message = build_resolved(incident, situation, contexts, now)
        return self._message

    def shown(self) -> Shown:
        if self._shown is None:
            message = self.message
            read = [line for line in message.lines if line.role is not Role.COMMAND]
            content = msgspec.json.encode(
                [message.title, message.status, message.severity, message.since, message.end_reason, read]
            )
            if message.plan is not None:
                content += msgspec.json.encode(message.plan)
            fine = msgspec.json.encode([message.lines, message.details, message.labels], order="sorted")
            self._shown = Shown(_digest(content), _digest(content + fine))
        return self._shown


def _digest(content: bytes) -> str:
    return sha256(content).hexdigest()[:16]


def notify_of(incident: Incident, receiver: str, reason: NotifyReason, message: Message) -> Notify:
    """The effect that tells a receiver; its id follows from the incident's revision, so asked again it is the same."""
    told = incident.told_to(receiver)
    return Notify(
        id=f"{incident.id}/{receiver}/{incident.revision}",
        incident=incident.id,
        key=incident.key,
        episode=incident.episode,
        receiver=receiver,
        revision=incident.revision,
        anew=reason.is_loud,
        reason=str(reason),
        message=message,
        reference=told.reference if told is not None else "",
        adopt=incident.adopt and told is None,
        cause=str(incident.cause),
        family=incident.family,
        causes=incident.rules,
        opened_at=incident.opened_at,
    )


def told_after(
    incident: Incident, notify: Notify, reason: NotifyReason, shown: Shown, now: datetime, asks: str = ""
) -> tuple[Told, ...]:
    """What all receivers were told, with this one's newest."""
    before = incident.told_to(notify.receiver)
    loudest = incident.severity
    if reason is NotifyReason.NEW_CAUSE and before is not None:
        loudest = highest((loudest, before.severity))  # what is left may be less, and the page was for more
    after = Told(
        receiver=notify.receiver,
        revision=notify.revision,
        at=now,
        severity=loudest if reason.is_loud or before is None else before.severity,
        causes=tuple(sorted({*(before.causes if before else ()), *(notify.causes if reason.is_loud else ())})),
        content=shown.content,
        fine=shown.fine,
        reference=before.reference if before is not None else "",
        loud_at=now if reason.is_loud or before is None else before.loud_at,
        opening=incident.opening if reason.is_loud or before is None else before.opening,
        asked=asks if reason.is_loud or before is None else before.asked,
    )
    if before is None:
        return (*incident.told, after)
    return tuple(after if told is before else told for told in incident.told)
