"""What `get` lists: rows of plain values, the same from the running service and from one look at a cluster."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import Any

from sevenhop.core.alerts.rule import Rule
from sevenhop.core.engine import Engine
from sevenhop.core.facts.schema import Unknown
from sevenhop.core.hops.report import HopReport
from sevenhop.core.incidents.incident import Incident
from sevenhop.core.inventory.pools import capacity
from sevenhop.core.inventory.rows import PodRow
from sevenhop.core.inventory.state import State, component_subject
from sevenhop.core.subject import Subject, SubjectKind

Row = dict[str, Any]


def workloads(engine: Engine, now: datetime) -> list[Row]:
    """One row per component, in order of name."""
    state = engine.inventory.state
    rows: list[Row] = []
    for key, workload in sorted(state.workloads.items()):
        for name in sorted(state.slots_of.get(key, ())):
            subject = component_subject((key, name))
            context = engine.inventory.context(subject, now)
            facts = state.facts.get(subject, {})
            part = workload.component(name)
            firing = [a for a in engine.alerts.snapshot() if a.subject == subject and a.fired_at is not None]
            rows.append(
                {
                    "namespace": key[0],
                    "workload": key[1],
                    "component": name,
                    "role": part.role if part else "",
                    "framework": workload.framework.value,
                    "model": (part.model.name if part else "") or workload.model.name,
                    "model_version": (part.model.version if part else "") or workload.model.version,
                    "tier": state.tier(workload).value,
                    "owner": state.owner(workload),
                    "ready": context.ready if context else None,
                    "desired": context.desired if context else None,
                    "minimum": context.minimum if context else None,
                    "gpus_per_replica": part.gpus_per_replica if part else 0,
                    "pool": state.pool_of.get((key, name), ""),
                    "waiting": _plain(facts.get("component.waiting")),
                    "cause": context.diagnosis.cause if context and context.diagnosis else "",
                    "first_broken": _first_broken(context.report if context else None),
                    "hops": _hops(context.report if context else None),
                    "alerts": [alert.rule_id for alert in firing],
                }
            )
    return rows


def pods(engine: Engine, _now: datetime) -> list[Row]:
    """One row per pod of a workload."""
    return [_pod(row) for _, row in sorted(engine.inventory.state.rows.items())]


def nodes(engine: Engine, _now: datetime) -> list[Row]:
    """One row per node and GPU pool; nodes without GPUs have one row without a pool."""
    state = engine.inventory.state
    rows: list[Row] = []
    for pool in sorted(state.ledger.pools()):
        rows += [
            {
                "node": free.name,
                "product": pool,
                "allocatable": free.allocatable,
                "bound": free.bound,
                "releasing": free.releasing,
                "free": free.free,
                "ready": free.ready,
                "cordoned": free.cordoned,
            }
            for free in state.ledger.nodes_of(pool)
        ]
    with_gpus = {row["node"] for row in rows}
    rows += [
        {"node": name, "product": "", "allocatable": 0, "bound": 0, "releasing": 0, "free": 0}
        for _, name in sorted(state.objects.nodes())
        if name not in with_gpus
    ]
    return rows


def pools(engine: Engine, _now: datetime) -> list[Row]:
    """One row per GPU product: who has it, who waits, who could give."""
    state = engine.inventory.state
    return [_pool(state, name) for name in sorted({*state.ledger.pools(), *state.waiting_in})]


def alerts(engine: Engine, now: datetime) -> list[Row]:
    """Alerts that are pending or firing, the loudest first."""
    rows = []
    for alert in engine.alerts.snapshot():
        rule: Rule | None = engine.alerts.rules.get(alert.rule_id)
        rows.append(
            {
                "rule": alert.rule_id,
                "subject": str(alert.subject),
                "state": alert.state.value,
                "since": alert.since,
                "for": str(rule.hold) if rule else "",
                "age_s": int((now - alert.since).total_seconds()),
                "fired_at": alert.fired_at,
                "unknown": list(alert.missing),
                "fingerprint": alert.fingerprint,
            }
        )
    return sorted(rows, key=lambda row: (row["state"] != "firing", row["rule"], row["subject"]))


def incidents(engine: Engine, _now: datetime) -> list[Row]:
    """Open incidents, and those that were resolved lately."""
    return [
        {
            "incident": f"{i.key}-{i.episode}",
            "status": i.status.value,
            "severity": i.severity.value,
            "cause": str(i.cause),
            "family": i.family,
            "since": i.since,
            "resolved_at": i.resolved_at,
            "title": i.title,
            "workloads": list(i.workloads),
            "alerts": len(i.alerts),
            "explains": len(i.symptoms),
            "told": [t.receiver for t in i.told],
        }
        for i in sorted(engine.desk.incidents.values(), key=lambda i: (i.status.value != "open", i.since, i.key))
    ]


def silences(engine: Engine, now: datetime) -> list[Row]:
    """Silences in force."""
    return [
        {
            "id": s.id,
            "matchers": [str(m) for m in s.matchers],
            "author": s.author,
            "comment": s.comment,
            "expires_at": s.expires_at,
        }
        for s in engine.desk.silences(now)
    ]


def sources(engine: Engine, _now: datetime) -> list[Row]:
    """Each kind and how much of it is known."""
    objects = engine.inventory.state.objects
    return [
        {"kind": kind, "state": state.value, "detail": objects.details.get(kind, ""), "objects": len(objects.of(kind))}
        for kind, state in objects.states.items()
    ]


VIEWS: dict[str, Callable[[Engine, datetime], list[Row]]] = {
    "workloads": workloads,
    "pods": pods,
    "nodes": nodes,
    "capacity": pools,
    "alerts": alerts,
    "incidents": incidents,
    "silences": silences,
    "sources": sources,
}


def find_subjects(engine: Engine, text: str) -> list[Subject]:
    """
    Subjects that a person may mean: ``kind:ns/name`` exactly, or any part of the name.

    >>> # "llama-70b/decode", "prod/llama-70b", "gpu-07", "component:prod/llama-70b/decode"
    """
    known = engine.inventory.facts
    if text.partition(":")[0] in {kind.value for kind in SubjectKind}:
        subject = Subject.parse(text)
        return [subject]
    exact = [s for s in known if text in (s.name, f"{s.namespace}/{s.name}")]
    return sorted(exact or [s for s in known if s.kind is not SubjectKind.SOURCE and text in f"{s.namespace}/{s.name}"])


def _pod(row: PodRow) -> Row:
    why = row.pending or row.failure
    return {
        "namespace": row.key[0],
        "pod": row.key[1],
        "workload": row.workload[1],
        "component": row.component,
        "phase": row.phase,
        "ready": row.ready,
        "node": row.node,
        "gpus": row.gpus,
        "hop": why.hop.value if why and why.hop else "",
        "category": why.category.value if why else "",
        "cause": why.cause if why else "",
        "confidence": why.confidence.value if why else "",
        "summary": why.summary if why else "",
        "waits_since": row.waits_since if row.waiting else None,
    }


def _pool(state: State, name: str) -> Row:
    pool = capacity(state, name)
    return {
        "product": pool.product or name,
        "resource": pool.resource,
        "allocatable": pool.allocatable,
        "bound": pool.bound,
        "releasing": pool.releasing,
        "free": pool.free,
        "cordoned": pool.cordoned,
        "unhealthy": pool.unhealthy,
        "largest_free_block": pool.largest_free_block,
        "held_by": [
            {"workload": "/".join(h.workload) if h.workload else "", "tier": h.tier, "gpus": h.gpus, "pods": h.pods,
             "could_give": h.reducible, "reason": h.reason}
            for h in pool.holdings
        ],
        "waiting": [
            {"workload": "/".join(w.workload), "component": w.component, "tier": w.tier, "gpus": w.gpus, "pods": w.pods,
             "since": w.since, "cause": w.cause}
            for w in pool.waiting
        ],
    }  # fmt: skip


def _first_broken(report: HopReport | None) -> str:
    return report.first_broken.value if report and report.first_broken else ""


def _hops(report: HopReport | None) -> dict[str, str]:
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


def _plain(value: object) -> Any:
    return value if isinstance(value, bool | int | float | str | None) else str(value)


def explanation_of(engine: Engine, subject: Subject, now: datetime) -> Row:
    """Everything about one subject: facts, rules with their clocks, incidents with the last decisions about them."""
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
            }
            for r in found.rules
        ],
        "diagnosis": found.context.diagnosis if found.context else None,
        "hops": _hops(found.context.report if found.context else None),
        "incidents": [
            {"incident": f"{i.key}-{i.episode}", "status": i.status.value, "cause": str(i.cause), "title": i.title}
            for i in concerned
        ],
        "decisions": [
            {"at": d.at, "incident": d.about, "receiver": d.receiver, "reason": d.reason.value, "detail": d.detail}
            for i in concerned
            for d in engine.desk.decisions.of(f"{i.key}-{i.episode}")
        ],
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


def _concerns(engine: Engine, incident: Incident, subject: Subject) -> bool:
    fingerprints = {*incident.alerts, *incident.symptoms}
    return incident.cause == subject or any(
        a.subject == subject and a.fingerprint in fingerprints for a in engine.alerts.snapshot()
    )
