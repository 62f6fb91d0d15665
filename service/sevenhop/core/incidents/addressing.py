"""Whom an incident concerns, and who asked for quiet about it: routes and silences over all its members."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from datetime import datetime

from sevenhop.core.alerts.rule import Severity
from sevenhop.core.incidents.incident import Incident
from sevenhop.core.incidents.members import Member
from sevenhop.core.incidents.message import in_order
from sevenhop.core.incidents.routing import receivers_of
from sevenhop.core.incidents.settings import DeskSettings
from sevenhop.core.incidents.severity import highest, with_severity
from sevenhop.core.incidents.silences import Silence, silencing


def labels_of(member: Member, key: str, severity: Severity) -> dict[str, str]:
    """
    What routes and silences match on: the alert's labels, and what the incident adds (`labels.ABOUT_THE_INCIDENT`).

    Args:
        key: Of the incident in which the alert counts.
        severity: Of the incident, not of the member: a symptom pages with its cause.
    """
    return {
        **with_severity(member.alert.labels, severity),
        "rule": member.alert.rule_id,
        "hop": str(member.hop) if member.hop is not None else "",
        "incident": key,
        "cause": str(member.home.cause),
        "family": member.home.family,
    }


def receivers_for(incident: Incident, members: Sequence[Member], settings: DeskSettings) -> list[str]:
    """
    Where any member is routed to, in the order of the settings, and everybody who was told before.

    The loudest severity that was told stands: an incident that calms down is no first message for somebody else.
    """
    found: dict[str, None] = {}
    loudest = highest([incident.severity, *(told.severity for told in incident.told)])
    for member in members:
        labels = labels_of(member, incident.key, loudest)
        for receiver in receivers_of(settings.route, labels, settings.receivers):
            found[receiver] = None
    known = [receiver for receiver in settings.receivers if receiver in found]
    told = [told.receiver for told in incident.told if told.receiver in settings.receivers]
    return list(dict.fromkeys([*known, *found, *told]))


def silence_over(
    incident: Incident, members: Sequence[Member], silences: Collection[Silence], now: datetime
) -> Silence | None:
    """The first to end of those that cover every member; None where one member is not covered: it keeps all loud."""
    first: Silence | None = None
    for member in in_order(members) if silences else ():
        covering = silencing(silences, labels_of(member, incident.key, incident.severity), now)
        if covering is None:
            return None
        first = covering if first is None or covering.expires_at < first.expires_at else first
    return first
