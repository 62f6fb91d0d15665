"""What the desk keeps over a restart, as rows: incidents, the count of episodes, silences."""

from __future__ import annotations

from datetime import datetime

import msgspec

from sevenhop.core.effects import Row
from sevenhop.core.incidents.incident import Incident
from sevenhop.core.incidents.silences import Silence

INCIDENTS = "incidents"
EPISODES = "episodes"
SILENCES = "silences"
BEGAN = "began"
"""One row: when the desk began without any memory; for a while after that, channels may remember more than we do."""
EPISODES_KEPT = 10_000
"""Keys whose count of episodes is kept, the longest unused forgotten first."""


class KeptIncident(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """
    Attributes:
        explained: Fingerprint of a symptom → of the alerts that explain it.
        folded: Fingerprint of an alert → the node under maintenance that it is folded under.
    """

    incident: Incident
    explained: dict[str, tuple[str, ...]] = {}
    folded: dict[str, str] = {}


class Episode(msgspec.Struct, frozen=True, gc=False):
    """How often a key was opened, and when last."""

    count: int
    at: datetime


_incidents = msgspec.json.Decoder(KeptIncident)
_episodes = msgspec.json.Decoder(Episode)
_silences = msgspec.json.Decoder(Silence)
_times = msgspec.json.Decoder(datetime)


def incident_row(key: str, kept: KeptIncident | None) -> Row:
    return Row(INCIDENTS, key, None if kept is None else msgspec.json.encode(kept, order="deterministic"))


def episode_row(key: str, episode: Episode | None) -> Row:
    return Row(EPISODES, key, None if episode is None else msgspec.json.encode(episode))


def silence_row(key: str, silence: Silence | None) -> Row:
    return Row(SILENCES, key, None if silence is None else msgspec.json.encode(silence))


def began_row(at: datetime) -> Row:
    return Row(BEGAN, "", msgspec.json.encode(at))


def read_row(row: Row) -> KeptIncident | Episode | Silence | datetime | None:
    """
    The inverse; None for a row of another table, or one that forgets.

    Raises:
        msgspec.MsgspecError: The row is of another version, or damaged.
    """
    if row.value is None:
        return None
    if row.table == INCIDENTS:
        return _incidents.decode(row.value)
    if row.table == EPISODES:
        return _episodes.decode(row.value)
    if row.table == SILENCES:
        return _silences.decode(row.value)
    if row.table == BEGAN:
        return _times.decode(row.value)
    return None
