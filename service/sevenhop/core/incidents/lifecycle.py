"""How an incident opens, goes on, ends and comes back: from one value to the next."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta

from msgspec.structs import replace

from sevenhop.core.alerts.alert import ChangeReason
from sevenhop.core.incidents.incident import Incident, IncidentStatus
from sevenhop.core.incidents.labels import common
from sevenhop.core.incidents.members import Home, Member
from sevenhop.core.incidents.notify import is_flapping
from sevenhop.core.incidents.settings import DeskSettings
from sevenhop.core.incidents.severity import highest
from sevenhop.core.incidents.text import counted, unique

RECOVERED = "recovered"
EXPLAINED = "explained"
STATE_LOST = "state_lost"

HISTORY_KEPT = 20
_OPENINGS_KEPT = 20


def opened(
    key: str, cluster: str, home: Home, episode: int, now: datetime, wait: timedelta, *, adopt: bool
) -> Incident:
    """A new episode, still without members."""
    return Incident(
        key=key,
        episode=episode,
        cluster=cluster,
        cause=home.cause,
        family=home.family,
        status=IncidentStatus.OPEN,
        severity=highest(()),
        opened_at=now,
        updated_at=now,
        since=now,
        openings=(now,),
        tell_at=now + wait,
        adopt=adopt,
        history=(f"{now:%H:%M:%S} opened",),
    )


def is_same_episode(ended: Incident, now: datetime, settings: DeskSettings) -> bool:
    """Whether what comes back now is the episode that ended: it came back at once, or does so again and again."""
    if ended.resolved_at is None:
        return True
    return now - ended.resolved_at <= settings.reopen_within or is_flapping((*ended.openings, now), now, settings)


def reopened(ended: Incident, now: datetime, wait: timedelta) -> Incident:
    """The same episode again."""
    return replace(
        ended,
        status=IncidentStatus.OPEN,
        resolved_at=None,
        end_reason="",
        orphans=0,
        since=now,
        severity=highest(()),
        opening=ended.opening + 1,
        openings=(*ended.openings, now)[-_OPENINGS_KEPT:],
        tell_at=now + wait,
        history=_noted(ended, now, "came back"),
    )


def with_members(incident: Incident, causes: Sequence[Member], symptoms: Sequence[Member], now: datetime) -> Incident:
    """
    The open incident with its alerts as they are now; equal to before where nothing changed.

    Args:
        causes: At least one, in any order.
    """
    first = min(member.alert.since for member in causes)
    has_members = bool(incident.alerts)
    after = replace(
        incident,
        alerts=tuple(sorted(member.alert.fingerprint for member in causes)),
        symptoms=tuple(sorted(member.alert.fingerprint for member in symptoms)),
        severity=highest(member.severity for member in (*causes, *symptoms)),
        since=min(incident.since, first) if has_members else first,
        workloads=tuple(sorted(unique(_workload(member) for member in (*causes, *symptoms)))),
        labels=common([member.alert.labels for member in causes]),
        rules=_rules(incident, causes),
    )
    if after == incident:
        return incident
    for news in _news(incident, after) if has_members else ():
        after = replace(after, history=_noted(after, now, news))
    return replace(after, updated_at=now)


def resolved(incident: Incident, reasons: Iterable[str], now: datetime, *, orphans: int = 0) -> Incident:
    """
    The incident after its last alert.

    Args:
        reasons: Why the last ones ended; only if all recovered it is "recovered".
        orphans: Symptoms of it that still fire, from now on as incidents of their own.
    """
    others = sorted({reason for reason in reasons if reason != ChangeReason.CONDITION_FALSE})
    ended = incident.end_reason or (others[0] if others else RECOVERED)
    return replace(
        incident,
        status=IncidentStatus.RESOLVED,
        severity=highest([incident.severity, *(told.severity for told in incident.told)]),
        resolved_at=now,
        updated_at=now,
        end_reason=ended,
        alerts=(),
        symptoms=(),
        orphans=orphans,
        history=_noted(incident, now, f"ended: {ended.replace('_', ' ')}"),
    )


def _rules(incident: Incident, causes: Sequence[Member]) -> tuple[str, ...]:
    new = {member.alert.rule_id for member in causes} - set(incident.rules)
    if not new:
        return incident.rules
    loudest_first = sorted(causes, key=lambda m: (-m.severity.rank, m.alert.since, m.alert.rule_id))
    return tuple(unique([*incident.rules, *(member.alert.rule_id for member in loudest_first)]))


def _news(before: Incident, after: Incident) -> list[str]:
    news = []
    if before.severity is not after.severity:
        news.append(f"severity {before.severity} → {after.severity}")
    joined, left = set(after.alerts) - set(before.alerts), set(before.alerts) - set(after.alerts)
    if joined:
        news.append(f"{counted(len(joined), 'alert')} joined, {len(after.alerts)} in all")
    if left:
        news.append(f"{counted(len(left), 'alert')} ended or left, {len(after.alerts)} remain")
    symptoms = len(set(after.symptoms) - set(before.symptoms))
    if symptoms:
        news.append(f"{counted(symptoms, 'symptom')} folded")
    return news


def _noted(incident: Incident, now: datetime, text: str) -> tuple[str, ...]:
    return (*incident.history, f"{now:%H:%M:%S} {text}")[-HISTORY_KEPT:]


def _workload(member: Member) -> str:
    labels = member.alert.labels
    workload = labels.get("workload", "")
    return f"{labels.get('namespace', '')}/{workload}" if workload else ""
