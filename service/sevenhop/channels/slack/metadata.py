"""What we write with each message for ourselves, so that it is found and understood again after a crash."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import msgspec

from sevenhop.channels.text import cut, plain
from sevenhop.core.effects import Notify
from sevenhop.core.events import Recalled

INCIDENT = "sevenhop_incident"
DETAILS = "sevenhop_details"

FIRING = "firing"
SUPERSEDED = "superseded"


class Place(msgspec.Struct, frozen=True):
    """
    Where a message is; as text it is the outbox's `reference`.

    Attributes:
        ts: Slack's id of the message within its channel.
        details_ts: Of the reply that holds the details; empty if there is none, or it is not known.
        details_digest: Of what that reply shows, so that it is not edited into itself.
    """

    channel: str
    ts: str
    details_ts: str = ""
    details_digest: str = ""

    def __str__(self) -> str:
        return f"{self.channel}/{self.ts}/{self.details_ts}/{self.details_digest}".rstrip("/")

    @classmethod
    def parse(cls, text: str) -> Place | None:
        """
        Read what `str` wrote; None for anything else.

        >>> str(Place.parse("C1/1700000000.000100"))
        'C1/1700000000.000100'
        """
        parts = text.split("/")
        if not 2 <= len(parts) <= 4 or not all(parts[:2]):
            return None
        return cls(*parts)


class Found(msgspec.Struct, frozen=True, kw_only=True):
    """A message of ours in the channel's history, as its metadata describe it."""

    ts: str
    key: str
    episode: int
    revision: int
    status: str
    receiver: str
    effect: str
    at: str
    title: str = ""
    severity: str = ""
    cause: str = ""
    family: str = ""
    causes: str = ""
    opened_at: str = ""

    def is_of(self, notify: Notify) -> bool:
        """
        Whether this very notify posted it.

        The time belongs to it: where our state was lost, numbers begin again and name another transition.
        """
        return (self.effect, self.at) == (notify.id, _iso(notify.message.at))

    def recalled(self, *, receiver: str, channel: str, at: datetime) -> Recalled:
        """The event that tells an emptied store of it."""
        opened = datetime.fromisoformat(self.opened_at) if self.opened_at else datetime.fromisoformat(self.at)
        return Recalled(
            at=at,
            receiver=receiver,
            key=self.key,
            episode=self.episode,
            is_open=self.status == FIRING,
            reference=str(Place(channel, self.ts)),
            revision=self.revision,
            title=self.title,
            severity=self.severity,
            causes=tuple(filter(None, self.causes.split(","))),
            cause=self.cause,
            family=self.family,
            opened_at=opened,
        )


def describe(notify: Notify, *, status: str = "") -> dict[str, Any]:
    """
    Metadata of a message; Slack takes 8 kB of them.

    Args:
        status: Other than the message's own: a superseded one.
    """
    message = notify.message
    payload = {
        "key": notify.key,
        "episode": notify.episode,
        "revision": notify.revision,
        "status": status or message.status,
        "receiver": notify.receiver,
        "effect": "" if status else notify.id,  # nobody posted the older message by this
        "at": _iso(message.at),
        "cluster": cut(plain(message.cluster), 200),
        "title": cut(plain(message.title), 150),
        "severity": str(message.severity),
        "cause": cut(notify.cause, 500),
        "family": cut(notify.family, 100),
        "causes": ",".join(notify.causes) if len(",".join(notify.causes)) <= 1_000 else "",
        "opened_at": _iso(notify.opened_at) if notify.opened_at else "",
    }
    return {"event_type": INCIDENT, "event_payload": payload}


_NEEDED = frozenset(("key", "episode", "revision", "status", "receiver", "effect", "at", "opened_at"))


def in_short(metadata: dict[str, Any]) -> dict[str, Any]:
    """Without all that a message can be found again without."""
    kept = {name: value for name, value in metadata["event_payload"].items() if name in _NEEDED}
    return {**metadata, "event_payload": kept}


def describe_details(notify: Notify) -> dict[str, Any]:
    return {"event_type": DETAILS, "event_payload": {"key": notify.key, "episode": notify.episode}}


def found_in(message: dict[str, Any]) -> Found | None:
    """What a message of the history says of itself; None if it is not one of ours, or of a newer kind."""
    metadata = message.get("metadata") or {}
    if not isinstance(metadata, dict) or metadata.get("event_type") != INCIDENT:
        return None
    try:
        return msgspec.convert({**metadata.get("event_payload", {}), "ts": message.get("ts")}, Found, strict=False)
    except (msgspec.ValidationError, TypeError):
        return None


def _iso(moment: datetime) -> str:
    return moment.astimezone(UTC).isoformat()
