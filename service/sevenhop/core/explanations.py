"""What `explain` says of one subject: its facts, its rules with their clocks, and what people are told, or why not."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

from sevenhop.core.engine import Engine
from sevenhop.core.facts.schema import Unknown
from sevenhop.core.hops.report import HopReport
from sevenhop.core.incidents.decisions import Noted
from sevenhop.core.incidents.desk import Standing
from sevenhop.core.incidents.incident import Incident, NotifyReason
from sevenhop.core.incidents.notify import is_flapping
from sevenhop.core.incidents.text import counted, plain
from sevenhop.core.subject import Subject, SubjectKind

Row = dict[str, Any]

_MOST_AROUND = 20


def explanation_of(engine: Engine, subject: Subject, now: datetime) -> Row:
    """
    Everything about one subject.

    ``standing`` of a rule is None unless its alert fires; ``around`` are alerts of other subjects that are about the
    same thing; ``problems`` are what the desk could not make sense of.
    """
    found = engine.explain(subject, now)
    concerned = [i for i in engine.desk.incidents.values() if _concerns(engine, i, subject)]
    return {
        "subject": str(subject),
        "at": now,
        "labels": found.labels,
        "facts": {name: str(value) if isinstance(value, Unknown) else value for name, value in found.facts.items()},
        "rules": [
            {
                "rule": r.rule_id,
                "state": r.state.value,
                "verdict": r.verdict.value,
                "why": r.why,
                "facts": dict(r.facts),
                "dropped_by": list(r.dropped_by),
                "due": r.due,
                "standing": standing_of(engine, r.rule_id, subject, now),
            }
            for r in found.rules
        ],
        "around": _around(engine, subject, found.labels),
        "diagnosis": found.context.diagnosis if found.context else None,
        "hops": hops_of(found.context.report if found.context else None),
        "incidents": [
            {"incident": i.id, "status": i.status.value, "cause": str(i.cause), "title": shown_title(engine, i)}
            for i in concerned
        ],
        "decisions": [_decision(d) for i in concerned for d in engine.desk.decisions.of(i.id)],
        "problems": list(engine.desk.problems),
    }


def history_of(engine: Engine, subject: Subject, at: datetime) -> Row:
    """What was known of a subject's alerts at a past moment, from the kept transitions."""
    rows = []
    for rule in sorted(engine.alerts.rules.values(), key=lambda rule: rule.id):
        if rule.subject is subject.kind:
            found = engine.alerts.histories.at(rule.id, subject, at)
            if found is not None:
                rows.append({"rule": rule.id, "transition": found})
    return {"subject": str(subject), "at": at, "rules": rows}


def _around(engine: Engine, subject: Subject, labels: dict[str, str]) -> list[Row]:
    """
    Alerts of a workload's components, of a pod's component and workload, of what stands on a node or wants a pool.

    Rules look at components more than at anything else, and people ask about a workload or a pod.
    """
    if subject.kind is SubjectKind.NODE:
        key, about = "node", {"node": subject.name}
    elif subject.kind is SubjectKind.POOL:
        key, about = "product", {"product": subject.name}
    else:
        key = "workload"
        about = {name: labels[name] for name in ("workload", "component") if name in labels}
        about["namespace"] = subject.namespace
    rows = [
        {"rule": alert.rule_id, "subject": str(alert.subject), "state": alert.state.value}
        for alert in engine.alerts.snapshot()
        if alert.subject != subject
        and about.get(key)
        and alert.labels.get(key) == about[key]
        and all(alert.labels.get(name, value) == value for name, value in about.items())
    ]
    return sorted(rows, key=lambda row: (row["state"] != "firing", row["rule"], row["subject"]))[:_MOST_AROUND]


def standing_of(engine: Engine, rule_id: str, subject: Subject, now: datetime) -> Row | None:
    """
    In which incident a firing alert counts, and what was decided about it; None for one that does not fire.

    ``reasons`` are in order of weight; each names its `NotifyReason`, the receiver where it is about one, and says it
    in a sentence.  An alert that the desk has not seen yet has no incident and no reasons.
    """
    alert = engine.alerts.alert(rule_id, subject)
    if alert is None or alert.fired_at is None:
        return None
    found = engine.desk.standing(alert.fingerprint, now)
    incident = found.incident
    return {
        "incident": incident.id if incident is not None else "",
        "title": incident.title if incident is not None else "",
        "status": incident.status.value if incident is not None else "",
        "is_cause": found.is_cause,
        "explained_by": list(found.explained_by),
        "maintained_node": found.maintained_node,
        "silence": {
            "id": found.silence.id,
            "author": found.silence.author,
            "comment": found.silence.comment,
            "expires_at": found.silence.expires_at,
        }
        if found.silence is not None
        else None,
        "reasons": _reasons(engine, found, now) if incident is not None else [],
    }


def hops_of(report: HopReport | None) -> dict[str, str]:
    """Hop to its state in a few words."""
    if report is None:
        return {}
    return {
        line.hop.value: f"broken {line.broken}/{line.total}"
        if line.state.value == "broken"
        else f"{line.state.value} ({line.reason})"
        if line.reason
        else line.state.value
        for line in report.lines
    }


def shown_title(engine: Engine, incident: Incident) -> str:
    """An incident's title; until its first message is written, the rules that it is about."""
    if incident.title:
        return incident.title
    rules = sorted({alert.rule_id for alert in engine.alerts.snapshot() if alert.fingerprint in incident.alerts})
    return f"{', '.join(rules)} (nobody was told yet)" if rules else ""


def _reasons(engine: Engine, standing: Standing, now: datetime) -> list[Row]:
    """Why this alert is quiet by itself, then what was last decided for each receiver of its incident."""
    incident = standing.incident
    assert incident is not None  # the caller looked
    rows: list[Row] = []
    if not standing.is_cause:
        by = ", ".join(standing.explained_by) or "an alert that is no more"
        text = f"folded under incident {incident.id} ({plain(incident.title, 120)}): explained by {by}"
        rows.append(_reason(NotifyReason.NOT_DUE_INHIBITED, "", text))
    if standing.maintained_node:
        text = f"folded under node {standing.maintained_node}, which is under maintenance"
        rows.append(_reason(NotifyReason.NOT_DUE_MAINTENANCE, "", text))
    last: dict[str, Noted] = {}
    for noted in standing.decisions:
        last[noted.receiver] = noted
    for receiver, noted in sorted(last.items()):
        rows.append(_reason(noted.reason, receiver, _said(engine, incident, standing, noted, now)))
    for told in incident.told:
        if told.loud_at is not None:
            text = f"last told aloud at {told.loud_at:%H:%M:%S}, revision {told.revision} since {told.at:%H:%M:%S}"
            rows.append({"reason": "told", "receiver": told.receiver, "text": text})
    return rows


def _said(engine: Engine, incident: Incident, standing: Standing, noted: Noted, now: datetime) -> str:
    """One decision as a sentence."""
    settings = engine.desk.settings
    reason, silence = noted.reason, standing.silence
    if reason is NotifyReason.NOT_DUE_SILENCED and silence is not None:
        comment = f": {plain(silence.comment, 120)}" if silence.comment else ""
        until = f"{silence.expires_at:%Y-%m-%d %H:%M:%S}"
        return f"silence {silence.id} by {plain(silence.author, 60)} until {until} UTC{comment}"
    if reason is NotifyReason.NOT_DUE_GROUP_WAIT and incident.tell_at is not None:
        return f"the first message waits for group_wait, until {incident.tell_at:%H:%M:%S}: symptoms come before causes"
    if reason is NotifyReason.NOT_DUE_FLAPPING or (
        reason is NotifyReason.CHANGED and is_flapping(incident.openings, now, settings)
    ):
        often = sum(at > now - settings.flap_window for at in incident.openings)
        within = counted(settings.flap_window // timedelta(minutes=1), "minute")
        return f"flapping: opened {counted(often, 'time')} within {within}; told by edits until it stays"
    if reason is NotifyReason.NOT_DUE_REFUSED:
        return f"the receiver refuses: {noted.detail}" if noted.detail else "the receiver refuses; tried again later"
    return _IN_WORDS.get(reason, noted.detail)


_IN_WORDS: dict[NotifyReason, str] = {
    NotifyReason.FIRST_FIRING: "told for the first time",
    NotifyReason.SEVERITY_UP: "posted anew: it is louder than what was told",
    NotifyReason.NEW_CAUSE: "posted anew: something else broke too",
    NotifyReason.CHANGED: "edited in place, which notifies nobody",
    NotifyReason.RESOLVED: "told that it ended",
    NotifyReason.REPEAT_INTERVAL_ELAPSED: "told again, because it is still open",
    NotifyReason.REOPENED: "told that it came back",
    NotifyReason.NOT_DUE_NOTHING_NEW: "what was told still holds",
    NotifyReason.NOT_DUE_MAINTENANCE: "its node is under maintenance",
    NotifyReason.NOT_DUE_INHIBITED: "another alert explains it",
    NotifyReason.NOT_DUE_SILENCED: "a silence covers all of it",
    NotifyReason.NOT_DUE_NEVER_TOLD: "it ended before anybody was told",
    NotifyReason.NOT_DUE_EDIT_INTERVAL: "it changed again so soon that the edits become one",
    NotifyReason.DECISION_WANTED: "posted anew: a plan waits for a decision, or its run has failed",
    NotifyReason.NOT_DUE_OWN_CHANGE: "what was changed under approval explains it, for a while",
    NotifyReason.NOT_DUE_UNSEEN: "read back from a channel, and not looked at again yet",
}


def _reason(reason: NotifyReason, receiver: str, text: str) -> Row:
    return {"reason": reason.value, "receiver": receiver, "text": text}


def _decision(noted: Noted) -> Row:
    return {
        "at": noted.at,
        "incident": noted.about,
        "receiver": noted.receiver,
        "reason": noted.reason.value,
        "detail": noted.detail,
    }


def _concerns(engine: Engine, incident: Incident, subject: Subject) -> bool:
    fingerprints = {*incident.alerts, *incident.symptoms}
    return incident.cause == subject or any(
        a.subject == subject and a.fingerprint in fingerprints for a in engine.alerts.snapshot()
    )
