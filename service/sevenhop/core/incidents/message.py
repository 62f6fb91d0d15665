"""
The message of one incident, in the order in which it is read (docs/howto/read-an-alert.md).

Built anew from the state of the moment; nothing in it grows with time alone, so equal states give equal messages.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

import msgspec

from sevenhop.core.alerts.render import render
from sevenhop.core.effects import Line, Message, Role
from sevenhop.core.hops.report import HopReport
from sevenhop.core.incidents import message_parts as parts
from sevenhop.core.incidents.cause import MAINTENANCE
from sevenhop.core.incidents.context import Contexts, SubjectContext
from sevenhop.core.incidents.incident import Incident
from sevenhop.core.incidents.labels import common, outward
from sevenhop.core.incidents.members import Member
from sevenhop.core.incidents.plans import NO_WORDS, PlanWords
from sevenhop.core.incidents.settings import DeskSettings
from sevenhop.core.incidents.silences import Silence
from sevenhop.core.incidents.text import clock, counted, listed, plain, shorten, unique
from sevenhop.core.subject import Subject, SubjectKind

TITLE_MOST = 119
_DETAILS_MOST = 60
_UNCONFIRMED, _ENDING, _SILENCED, _FLAPPING = "Unconfirmed", "Ending", "Silenced", "Flapping"
_NOTES = (_UNCONFIRMED, _ENDING, _SILENCED, _FLAPPING)
_LOOKED_AT = 8
"""Members whose context is asked for when the leading one cannot tell which hop broke."""

ENDINGS: dict[str, str] = {
    "recovered": "recovered",
    "subject_gone": "ended because it is gone, which is not the same as recovered",
    "rule_changed": "ended because the rule was changed; whether it recovered is unknown",
    "rule_removed": "ended because the rule was removed; whether it recovered is unknown",
    "blind": "given up: it could not be confirmed for too long",
    "explained": "not an incident of its own any more: another one explains it",
    "state_lost": "our state was lost, and nothing of it fires now; when and why it ended is unknown",
}
"""Reason of the end → what people read; only the first is green."""


class Situation(msgspec.Struct, frozen=True, kw_only=True):
    """
    What holds of an incident now, beside itself.

    Attributes:
        causes, symptoms: Its alerts; the causes first those that lead.
        silence: The one that covers all of it.
        is_unseen: Nothing that causes it can be seen now, or is true now: what was last written of it still stands.
        is_flapping: Opened so often lately that it is told by edits only.
        elsewhere: Title of the incident that explains what this one was about.
        plan: What is said of plans.
    """

    causes: tuple[Member, ...] = ()
    symptoms: tuple[Member, ...] = ()
    silence: Silence | None = None
    is_flapping: bool = False
    is_unseen: bool = False
    elsewhere: str = ""
    plan: PlanWords = NO_WORDS


def build_message(
    incident: Incident, situation: Situation, contexts: Contexts, now: datetime, settings: DeskSettings
) -> tuple[Message, str]:
    """
    An open incident as it stands.

    Args:
        situation: With at least one cause.

    Returns:
        (the message, its title without counts)
    """
    if situation.is_unseen and incident.lines:
        return _as_last_seen(incident, situation, contexts, now, settings), incident.title
    causes = in_order(situation.causes)
    lead, context = _who_can_tell([*causes, *in_order(situation.symptoms)], contexts, now)
    labels = common([member.alert.labels for member in causes])
    title = title_of(incident, causes, lead)
    lines = [
        *_hops(context, lead),
        *_impact(causes, situation, lead, context),
        *_pool(incident, context, contexts, now, settings),
        *_outlook(causes, lead, context, situation, settings),
        *_notes(incident, situation, now, settings),
    ]
    message = Message(
        title=_with_count(title, causes, lead, context),
        status="firing",
        severity=incident.severity,
        cluster=incident.cluster,
        since=incident.since,
        at=now,
        lines=tuple(line for line in lines if line.text),
        labels=outward({**labels, "cluster": incident.cluster}),
        details=tuple(
            [*parts.evidence_lines(context), *_alerts(situation), *incident.history, *situation.plan.history][
                :_DETAILS_MOST
            ]
        ),
        plan=situation.plan.card,
    )
    return message, title


def build_resolved(incident: Incident, situation: Situation, contexts: Contexts, now: datetime) -> Message:
    """A resolved incident: how it ended, and what it was about, from what was last written of it."""
    ended = ENDINGS.get(incident.end_reason, incident.end_reason)
    if situation.elsewhere:
        ended += f": {situation.elsewhere}"
    if incident.orphans:
        still = counted(incident.orphans, "symptom")
        ended += f"; {still} still fired and went on as an incident of its own"
    until = clock(incident.resolved_at or now, incident.since)
    kept = (Role.FIRST_BROKEN, Role.WHY, Role.CHANGED, Role.OWNER, Role.LINK)
    context = contexts.context(incident.cause, now) if incident.cause.kind is SubjectKind.COMPONENT else None
    hit = parts.hit_text(context, ()) if context is not None else ""
    lines = [Line(Role.NOTE, "Ended", f"{until} UTC, {ended}"), Line(Role.HIT, "Now", hit)]
    lines += [line for line in incident.lines if line.role in kept]
    lines += situation.plan.lines
    return Message(
        title=incident.title or plain(str(incident.cause), TITLE_MOST),
        status="resolved",
        severity=incident.severity,
        cluster=incident.cluster,
        since=incident.since,
        at=now,
        lines=tuple(line for line in lines if line.text),
        labels=outward({**incident.labels, "cluster": incident.cluster}),
        details=tuple([*incident.details, *incident.history, *situation.plan.history][-_DETAILS_MOST:]),
        end_reason=incident.end_reason,
        plan=situation.plan.card,
    )


def _as_last_seen(
    incident: Incident, situation: Situation, contexts: Contexts, now: datetime, settings: DeskSettings
) -> Message:
    lead = in_order(situation.causes)[0]
    command = parts.command_text(lead.alert.subject, contexts.context(lead.alert.subject, now, brief=True), lead.hop)
    # What was written stands, but a command that names a pod which is gone helps nobody.
    lines = [
        msgspec.structs.replace(line, text=command) if line.role is Role.COMMAND else line
        for line in incident.lines
        if line.label not in _NOTES and not (line.role is Role.PLAN and situation.plan.lines)
    ]
    # Where they stood: a line that only moves would be an edit about nothing.
    place = next((at for at, line in enumerate(lines, 1) if line.role is Role.OWNER), len(lines))
    lines[place:place] = situation.plan.lines
    return Message(
        title=incident.heading or incident.title,
        status="firing",
        severity=incident.severity,
        cluster=incident.cluster,
        since=incident.since,
        at=now,
        lines=tuple(line for line in (*lines, *_notes(incident, situation, now, settings)) if line.text),
        labels=outward({**incident.labels, "cluster": incident.cluster}),
        details=incident.details,
        plan=situation.plan.card,
    )


def in_order(members: Sequence[Member]) -> list[Member]:
    """The one that leads first: the loudest, of the most valuable workload, the longest."""
    return sorted(
        members,
        key=lambda m: (
            -m.severity.rank,
            parts.tier_rank(m.alert.labels.get("tier", "")),
            m.alert.subject.kind in (SubjectKind.POOL, SubjectKind.NODE),
            m.alert.since,
            m.alert.fingerprint,
        ),
    )


def title_of(incident: Incident, causes: Sequence[Member], lead: Member) -> str:
    """What, for whom, in under 120 characters."""
    if incident.family == MAINTENANCE:
        if lead.hits_users:
            tail = f" ({incident.cause.name} is under maintenance)"
            return shorten(summary_of(lead), TITLE_MOST - len(tail)) + tail
        folded = f"{counted(len(causes), 'alert')} folded"
        return shorten(f"{incident.cause.name} is under maintenance, {folded}", TITLE_MOST)
    first = lead if lead in causes else causes[0]
    subjects = unique(_who(member) for member in causes if member.alert.subject.kind is not SubjectKind.POOL)
    more = f" (and {len(subjects) - 1} more)" if len(subjects) > 1 else ""
    return shorten(summary_of(first), TITLE_MOST - len(more)) + more


def _with_count(title: str, causes: Sequence[Member], lead: Member, context: SubjectContext | None) -> str:
    """The title, and how many replicas of the one component that it names are left."""
    if context is None or context.ready is None or context.desired is None or lead not in causes:
        return title
    if len({member.alert.subject for member in causes}) > 1:
        return title
    count = f" · {context.ready}/{context.desired} ready"
    return shorten(title, TITLE_MOST - len(count)) + count


def summary_of(member: Member) -> str:
    """The rule's own summary of one alert, on one line."""
    alert = member.alert
    template = member.rule.annotations.get("summary", "") if member.rule is not None else ""
    if not template:
        return plain(f"{alert.rule_id} on {alert.subject}", TITLE_MOST)
    return plain(render(template, alert.labels, alert.values))


def _who_can_tell(members: Sequence[Member], contexts: Contexts, now: datetime) -> tuple[Member, SubjectContext | None]:
    """The first member whose hop report says what broke, else the first that has a context, else the first."""
    seen: list[tuple[Member, SubjectContext]] = []
    for member in members[:_LOOKED_AT]:
        context = contexts.context(member.alert.subject, now)
        if context is None:
            continue
        if context.report is not None and context.report.first_broken is not None:
            return member, context
        seen.append((member, context))
    return seen[0] if seen else (members[0], None)


def _hops(context: SubjectContext | None, lead: Member) -> list[Line]:
    report: HopReport | None = context.report if context is not None else None
    if report is None:
        where = str(lead.hop) if lead.hop is not None else "none: this is about Sevenhop itself"
        return [Line(Role.FIRST_BROKEN, "First broken hop", where)]
    return [Line(Role.FIRST_BROKEN, "First broken hop", parts.first_broken_text(report))]


def _impact(
    causes: Sequence[Member],
    situation: Situation,
    lead: Member,
    context: SubjectContext | None,
) -> list[Line]:
    everybody = [*causes, *situation.symptoms]
    own = _workload(lead)
    others = unique(_workload(member) for member in everybody if _workload(member) != own)
    hit = parts.hit_text(context, others) if context is not None else listed([own, *others], 4, ", ")
    lines = [Line(Role.HIT, "Who is hit", hit or "unknown (no workload is named)")]
    if context is not None and (context.report is not None or context.diagnosis is not None):
        lines.append(Line(Role.WHY, "Why", parts.why_text(context.diagnosis, lead.hop)))
        if context.diagnosis is not None:
            lines.append(Line(Role.NOT_PREEMPTED, "Not preempted", plain(context.diagnosis.not_preempted, 240)))
    else:
        lines.append(Line(Role.WHY, "Why", summary_of(causes[0])))
    if situation.symptoms:
        folded = [summary_of(member) for member in in_order(situation.symptoms)]
        text = listed([shorten(text, 100) for text in folded], 3)
        lines.append(Line(Role.SYMPTOMS, f"{counted(len(folded), 'symptom')} folded", text))
    return lines


def _pool(
    incident: Incident,
    context: SubjectContext | None,
    contexts: Contexts,
    now: datetime,
    settings: DeskSettings,
) -> list[Line]:
    lines = []
    if context is not None:
        lines.append(_changed_before(incident, context, settings))
    pool = context.pool if context is not None else None
    about_a_pool = incident.cause.kind is SubjectKind.POOL
    if about_a_pool and (pool is None or pool.product != incident.cause.name):
        of_pool = contexts.context(incident.cause, now)
        pool = of_pool.pool if of_pool is not None else None
    short = context is not None and context.diagnosis is not None and context.diagnosis.cause in parts.SHORTAGES
    if pool is not None and (about_a_pool or short):
        lines.append(Line(Role.CAPACITY, "Capacity", parts.capacity_text(pool)))
        lines.append(Line(Role.CAPACITY, "Held by", parts.holders_text(pool)))
        for tier, text in parts.waiting_texts(pool.waiting, incident.since):
            lines.append(Line(Role.WAITING, f"Waiting, {plain(tier, 20)}", text))
    elif about_a_pool:
        lines.append(Line(Role.CAPACITY, "Capacity", "unknown (the pool cannot be seen)"))
    return lines


def _changed_before(incident: Incident, context: SubjectContext, settings: DeskSettings) -> Line:
    """What is known of it now, else what was written before: a restart of ours forgets it, and it stays true."""
    line = Line(
        Role.CHANGED,
        "Changed before",
        parts.changed_text(context.changes, incident.since, settings.changed_before, context.watching_since),
    )
    if parts.changes_before(context.changes, incident.since, settings.changed_before):
        return line
    is_ours = any(told.opening == incident.opening for told in incident.told)
    return next((known for known in incident.lines if known.role is Role.CHANGED and is_ours), line)


def _outlook(
    causes: Sequence[Member],
    lead: Member,
    context: SubjectContext | None,
    situation: Situation,
    settings: DeskSettings,
) -> list[Line]:
    owners = unique(plain(member.alert.labels.get("owner", ""), 60) for member in causes)
    lines = [
        Line(Role.IF_NOTHING, "If you do nothing", parts.if_nothing_text(context, lead.rule)),
        Line(Role.OWNER, "Owner", listed(owners, 4, ", ") or "unknown (no annotation sevenhop.dev/owner)"),
    ]
    if situation.plan.lines:
        lines += situation.plan.lines
    elif context is not None:
        label, text = parts.plan_text(context, lead.alert.labels.get("tier", ""))
        lines.append(Line(Role.PLAN, label, text))
    if context is not None and context.report is not None:
        lines.append(Line(Role.NOTE, "Not seen", parts.unseen_text(context.report)))
    hop = context.report.first_broken if context is not None and context.report is not None else lead.hop
    subject = lead.alert.subject
    lines.append(Line(Role.COMMAND, "Look", parts.command_text(subject, context, hop)))
    lines.append(Line(Role.LINK, "Runbook", settings.link))
    return lines


def _notes(incident: Incident, situation: Situation, now: datetime, settings: DeskSettings) -> list[Line]:
    lines = []
    blind = [m for m in in_order(situation.causes) if is_told_blind(m, now, settings)]
    if blind:
        first = blind[0].alert
        confirmed = (
            f"last confirmed {clock(first.confirmed_at, incident.since)}" if first.confirmed_at else "never seen"
        )
        missing = listed([plain(text, 100) for text in first.missing], 2, "; ") or "a source is silent"
        of_all = counted(len(situation.causes), "alert")
        some = "" if len(blind) == len(situation.causes) else f" ({len(blind)} of {of_all})"
        lines.append(Line(Role.NOTE, _UNCONFIRMED, f"{confirmed}{some}; since then unknown: {missing}"))
    ending = [m.alert.false_since for m in situation.causes if m.alert.false_since is not None]
    if ending and len(ending) == len(situation.causes) and now >= max(ending) + settings.ending_grace:
        since = clock(max(ending), incident.since)
        lines.append(Line(Role.NOTE, _ENDING, f"not true any more since {since} UTC; it ends unless it comes back"))
    if situation.silence is not None:
        silence = situation.silence
        until = clock(silence.expires_at, incident.since)
        said = f": {plain(silence.comment, 120)}" if silence.comment else ""
        lines.append(Line(Role.NOTE, _SILENCED, f"by {plain(silence.author, 60)} until {until} UTC{said}"))
    if situation.is_flapping:
        often = f"opened {counted(len(incident.openings), 'time')} lately; told by edits until it stays"
        lines.append(Line(Role.NOTE, _FLAPPING, often))
    return lines


def is_told_blind(member: Member, now: datetime, settings: DeskSettings) -> bool:
    """Whether an alert has been unconfirmed for long enough to say so."""
    since = member.alert.blind_since
    return since is not None and now >= since + settings.blind_grace


def _alerts(situation: Situation) -> list[str]:
    lines = [f"alert {m.alert.rule_id}: {shorten(summary_of(m), 160)}" for m in in_order(situation.causes)[:8]]
    return lines + [
        f"symptom {m.alert.rule_id}: {shorten(summary_of(m), 160)}" for m in in_order(situation.symptoms)[:8]
    ]


def _workload(member: Member) -> str:
    return plain(member.alert.labels.get("workload", ""), 60)


def _who(member: Member) -> str:
    labels = member.alert.labels
    subject: Subject = member.alert.subject
    return f"{labels.get('namespace', '')}/{labels['workload']}" if labels.get("workload") else str(subject)
