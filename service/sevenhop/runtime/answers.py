"""
What one cluster's engine answers to people, whichever door they ask at: the local socket, or a worker elsewhere.

Each answers `Said`: a status as HTTP has it, and plain values; a refusal is ``{"error": one line}``.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from hashlib import sha256
from typing import Annotated, Any

import msgspec

from sevenhop.core import views
from sevenhop.core.effects import Message
from sevenhop.core.engine import Engine
from sevenhop.core.events import Silenced
from sevenhop.core.incidents.incident import Incident
from sevenhop.core.incidents.labels import outward
from sevenhop.core.incidents.matchers import parse_matchers
from sevenhop.core.remediation import views as remediation

MOST_SUBJECTS = 10


class Said(msgspec.Struct, frozen=True):
    """An answer to a person."""

    data: Any
    status: int = 200


class SilenceRequest(msgspec.Struct, forbid_unknown_fields=True):
    """`cluster` is needed where several can be meant."""

    matchers: list[str]
    author: str
    comment: str
    expires_at: Annotated[datetime, msgspec.Meta(tz=True)]
    cluster: str = ""


def refused(status: int, text: str) -> Said:
    return Said({"error": text}, status)


def listing(engine: Engine, view: str, now: datetime) -> Said:
    """Rows of one listing."""
    found = views.VIEWS.get(view)
    if found is None:
        return refused(404, f"no such listing; there are {', '.join(views.VIEWS)}")
    return Said(found(engine, now))


def explained(engine: Engine, query: Mapping[str, str], now: datetime) -> Said:
    """Everything about ``subject``, now or at the moment ``at``."""
    text = query.get("subject", "")
    try:
        subjects = views.find_subjects(engine, text)
    except ValueError as error:
        return refused(400, str(error))
    if not subjects:
        return refused(404, f"nothing is called {text!r}; `sevenhop get workloads` lists what is known")
    at = query.get("at", "")
    if not at:
        return Said([views.explanation_of(engine, subject, now) for subject in subjects[:MOST_SUBJECTS]])
    try:
        moment = datetime.fromisoformat(at)
    except ValueError:
        return refused(400, f"at: expected a time such as 2026-11-30T03:02:05Z, got {at!r}")
    return Said([views.history_of(engine, subject, moment) for subject in subjects[:MOST_SUBJECTS]])


def described(engine: Engine, wanted: str, failing: str = "") -> Said:
    """
    Everything about one plan; a prefix of its id will do.

    Args:
        failing: Why steps in the cluster are not done now.
    """
    desk = engine.remediation
    found = [case.id for case in desk.cases if case.id.startswith(wanted)]
    if not found:
        return refused(404, f"no plan {wanted}; `sevenhop get plans` lists them")
    if len(found) > 1:
        return refused(409, f"{len(found)} plans begin with {wanted}: {', '.join(sorted(found)[:5])}")
    case, row = desk.cases.get(found[0]), remediation.describe(desk, found[0])
    is_under_way = case is not None and case.asked is not None
    return Said({**(row or {}), "failing": failing if is_under_way else ""})


def silence_of(wanted: SilenceRequest, now: datetime) -> Silenced:
    """
    The event of a silence that is asked for.

    Raises:
        ValueError: A matcher cannot be read.
    """
    parse_matchers(wanted.matchers)
    place = "\0".join([*wanted.matchers, wanted.author, now.isoformat()])
    return Silenced(
        at=now,
        silence_id=sha256(place.encode()).hexdigest()[:8],
        matchers={},
        where=tuple(wanted.matchers),
        author=wanted.author,
        comment=wanted.comment,
        expires_at=wanted.expires_at,
    )


def expiry_of(engine: Engine, silence_id: str, now: datetime) -> Silenced | None:
    """The event that ends a silence now; None if none of that id is in force."""
    found = next((silence for silence in engine.desk.silences(now) if silence.id == silence_id), None)
    if found is None:
        return None
    return Silenced(
        at=now,
        silence_id=found.id,
        matchers={},
        where=tuple(str(matcher) for matcher in found.matchers),
        author=found.author,
        comment=found.comment,
        expires_at=now,
    )


def no_silence(silence_id: str) -> str:
    return f"no silence {silence_id} is in force; `sevenhop silence list` lists them"


def told_of(engine: Engine, incident_id: str) -> Message | None:
    """The incident as it was last told; None if it is not known (any more)."""
    key = incident_id.rpartition("-")[0]
    incident = engine.desk.incidents.get(key)
    if incident is None or incident.id != incident_id or not incident.is_open:
        return None
    return _as_last_told(incident)


def status_of(engine: Engine, now: datetime) -> str:
    """One paragraph on the switch, the breaker and what runs."""
    desk = engine.remediation
    said = []
    for row in remediation.safety(desk, now):
        state = "on" if row["is_on"] else "off"
        by = f", by {row['by']}" if row["is_on"] and row["by"] else ""
        why = f": {row['text']}" if row["is_on"] and row["text"] else ""
        said.append(f"{row['what']} {state}{by}{why}")
    going = [row for row in remediation.plans(desk, now) if row["stage"] != "over"]
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
