"""What `get` lists of plans: rows of plain values."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from sevenhop.core.remediation.cards import buttons_of, question_of, state_text
from sevenhop.core.remediation.case import Case, lines_of
from sevenhop.core.remediation.desk import RemediationDesk
from sevenhop.core.remediation.planning.words import plan_lines
from sevenhop.core.remediation.shadow import shadow_report

Row = dict[str, Any]


def plans(desk: RemediationDesk, _now: datetime) -> list[Row]:
    """Every plan that is known, what is open first, then the newest."""
    found = sorted(desk.cases, key=lambda case: (case.is_over, -case.plan.proposed_at.timestamp(), case.id))
    return [_plan(case) for case in found]


def runs(desk: RemediationDesk, _now: datetime) -> list[Row]:
    """Plans that were approved: the newest first."""
    found = [case for case in desk.cases if case.started_at is not None]
    return [_run(case) for case in sorted(found, key=lambda case: (-_time(case.started_at), case.id))]


def shadow(desk: RemediationDesk, now: datetime) -> list[Row]:
    """What would have been done, and what happened instead: the oldest first."""
    return [
        {
            "plan": line.plan_id,
            "playbook": line.playbook,
            "incident": line.incident,
            "proposed_at": line.proposed_at,
            "title": line.title,
            "gpus": line.gpus,
            "instead": line.instead or "not known yet",
            "after_s": int(line.took.total_seconds()),
        }
        for line in shadow_report(desk.cases, now)
    ]


def safety(desk: RemediationDesk, _now: datetime) -> list[Row]:
    """The kill switch and the circuit breaker, a row each."""
    switch, breaker = desk.switch, desk.breaker
    by = "the settings" if switch.by_settings else switch.by
    return [
        {"what": "kill switch", "is_on": switch.is_on or switch.by_settings, "by": by, "since": switch.at,
         "text": switch.comment},
        {"what": "circuit breaker", "is_on": breaker.is_open, "by": breaker.closed_by, "since": breaker.opened_at,
         "text": ", ".join(plan_id for _, plan_id in breaker.failures)},
    ]  # fmt: skip


def describe(desk: RemediationDesk, plan_id: str) -> Row | None:
    """Everything about one plan; None if it is not known."""
    case = desk.cases.get(plan_id)
    if case is None:
        return None
    plan = case.plan
    return {
        **_plan(case),
        "hash": plan.hash,
        "question": question_of(case),
        "lines": plan_lines(plan),
        "buttons": [str(verb) for verb in buttons_of(case)],
        "approvals": [{"person": a.person.id, "name": a.person.name, "at": a.at, "via": a.via} for a in case.approvals],
        "considered": [{"who": c.who, "reason": c.reason, "text": c.text} for c in plan.considered],
        "notes": list(plan.notes),
        "history": lines_of(case),
        "progress": case.watch.words if case.watch is not None else "",
        "lease_until": case.lease_until,
        "pods_helped": ["/".join(pod) for pod in plan.need.pods] if plan.need is not None else [],
        "victims": ["/".join(pod) for pod in plan.victims],
    }


def _plan(case: Case) -> Row:
    need = case.plan.need
    return {
        "plan": case.id,
        "state": case.state.value,
        "stage": case.stage.value,
        "playbook": case.plan.playbook,
        "incident": case.plan.incident,
        "title": case.plan.title,
        "for": f"{'/'.join(need.workload)}/{need.component}" if need is not None else "",
        "gpus": case.plan.gpus,
        "proposed_at": case.plan.proposed_at,
        "expires_at": case.plan.expires_at,
        "decided_by": case.decided_by,
        "why": state_text(case),
    }


def _run(case: Case) -> Row:
    return {
        **_plan(case),
        "started_at": case.started_at,
        "applied_at": case.applied_at,
        "progress": case.watch.words if case.watch is not None else "",
        "lease_until": case.lease_until,
        "steps": case.steps,
    }


def _time(at: datetime | None) -> float:
    return at.timestamp() if at is not None else 0.0
