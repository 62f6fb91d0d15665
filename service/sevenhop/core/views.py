"""What `get` lists: rows of plain values, the same from the running service and from one look at a cluster."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import datetime
from typing import Any

from sevenhop.core.alerts.rule import Rule
from sevenhop.core.durations import format_duration
from sevenhop.core.engine import Engine
from sevenhop.core.explanations import explanation_of as explanation_of
from sevenhop.core.explanations import history_of as history_of
from sevenhop.core.explanations import hops_of, shown_title
from sevenhop.core.gpu_views import gpus, nodes, plain, plain_or_none, pools
from sevenhop.core.hops.findings import Finding, findings
from sevenhop.core.hops.report import HopReport
from sevenhop.core.inventory.pools import reclaimable_of
from sevenhop.core.inventory.rows import PodRow
from sevenhop.core.inventory.state import Slot, State, component_subject
from sevenhop.core.objects.kinds import KINDS
from sevenhop.core.remediation import views as remediation
from sevenhop.core.subject import Subject, SubjectKind

Row = dict[str, Any]


def workloads(engine: Engine, now: datetime) -> list[Row]:
    """One row per component, in order of name."""
    return list(component_rows(engine, now))


def component_rows(engine: Engine, now: datetime) -> Iterator[Row]:
    """The same one by one: the engine may go on in between, and what has gone by then is left out."""
    state = engine.inventory.state
    firing: dict[Subject, list[str]] = {}
    for alert in engine.alerts.snapshot():
        if alert.fired_at is not None:
            firing.setdefault(alert.subject, []).append(alert.rule_id)
    for key in sorted(state.workloads):
        for name in sorted(state.slots_of.get(key, ())):
            workload = state.workloads.get(key)
            if workload is None or name not in state.slots_of.get(key, ()):
                continue
            subject = component_subject((key, name))
            context = engine.inventory.context(subject, now)
            facts = state.facts.get(subject, {})
            part = workload.component(name)
            yield {
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
                "gpus": _held(state, (key, name)),
                "reclaimable": reclaimable_of(state, (key, name)),
                "waiting": plain(facts.get("component.waiting")),
                "cause": context.diagnosis.cause if context and context.diagnosis else "",
                "first_broken": _first_broken(context.report if context else None),
                "hops": hops_of(context.report if context else None),
                "alerts": firing.get(subject, []),
            }


def _held(state: State, slot: Slot) -> int:
    """GPUs that the pods of a component have, in whatever pools."""
    return sum(hold.total() for pod in state.rows_of.get(slot, ()) if (hold := state.ledger.hold(pod)) is not None)


def pods(engine: Engine, _now: datetime) -> list[Row]:
    """One row per pod of a workload."""
    state = engine.inventory.state
    return [
        {**_pod(state, row), "straggler": plain_or_none(state.stragglers.told.get(key, False))}
        for key, row in sorted(state.rows.items())
    ]


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
                "for": format_duration(rule.hold) if rule else "",
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
            "title": shown_title(engine, i),
            "workloads": list(i.workloads),
            "alerts": len(i.alerts),
            "explains": len(i.symptoms),
            "told": [t.receiver for t in i.told],
        }
        for i in sorted(engine.desk.incidents.values(), key=lambda i: (i.status.value != "open", i.since, i.key))
    ]


def found(engine: Engine, _now: datetime) -> list[Row]:
    """What is wrong with subjects that have no pod to tell it, in order of kind and name."""
    return [_finding(engine, finding) for finding in findings(engine.inventory.state.objects)]


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


def plans(engine: Engine, now: datetime) -> list[Row]:
    """Plans and what became of them."""
    return remediation.plans(engine.remediation, now)


def runs(engine: Engine, now: datetime) -> list[Row]:
    """Plans that were approved, and how far they are."""
    return remediation.runs(engine.remediation, now)


def shadow(engine: Engine, now: datetime) -> list[Row]:
    """What would have been done in shadow mode, and what happened instead."""
    return remediation.shadow(engine.remediation, now)


def safety(engine: Engine, now: datetime) -> list[Row]:
    """The kill switch and the circuit breaker."""
    return remediation.safety(engine.remediation, now)


VIEWS: dict[str, Callable[[Engine, datetime], list[Row]]] = {
    "workloads": workloads,
    "components": workloads,
    "pods": pods,
    "findings": found,
    "nodes": nodes,
    "gpus": gpus,
    "capacity": pools,
    "alerts": alerts,
    "incidents": incidents,
    "silences": silences,
    "sources": sources,
    "plans": plans,
    "runs": runs,
    "shadow": shadow,
    "safety": safety,
}


def find_subjects(engine: Engine, text: str) -> list[Subject]:
    """
    Subjects that a person may mean: ``kind:ns/name`` exactly, also if only its past is known, or any part of the name.

    ``llama-70b/decode``, ``prod/llama-70b``, ``gpu-07``, ``component:prod/llama-70b/decode``
    """
    known = engine.inventory.facts
    if text.partition(":")[0] in {kind.value for kind in SubjectKind}:
        subject = Subject.parse(text)
        return [subject] if subject in known or _had_alerts(engine, subject) else []
    exact = [s for s in known if text in (s.name, f"{s.namespace}/{s.name}")]
    return sorted(exact or [s for s in known if s.kind is not SubjectKind.SOURCE and text in f"{s.namespace}/{s.name}"])


def _had_alerts(engine: Engine, subject: Subject) -> bool:
    return any(engine.alerts.histories.of(rule_id, subject) for rule_id in engine.alerts.rules)


def _pod(state: State, row: PodRow) -> Row:
    why = row.pending or row.failure
    hold = state.ledger.hold(row.key)
    return {
        "namespace": row.key[0],
        "pod": row.key[1],
        "workload": row.workload[1],
        "component": row.component,
        "phase": row.phase,
        "ready": row.ready,
        "node": row.node,
        "gpus": hold.total() if hold is not None else row.gpus,
        "hop": why.hop.value if why and why.hop else "",
        "category": why.category.value if why else "",
        "cause": why.cause if why else "",
        "confidence": why.confidence.value if why else "",
        "summary": why.summary if why else "",
        "waits_since": row.waits_since if row.waiting else None,
    }


def _finding(engine: Engine, finding: Finding) -> Row:
    why, key = finding.diagnosis, (finding.namespace, finding.name)
    discovery = engine.inventory.state.discovery
    kinds = (name for name, kind in KINDS.items() if kind.kind == finding.kind)
    owner = next((of for kind in kinds if (of := discovery.workload_of(kind, key)) is not None), None)
    return {
        "kind": finding.kind,
        "namespace": finding.namespace,
        "name": finding.name,
        "workload": owner[1] if owner is not None else "",
        "hop": why.hop.value if why.hop else "",
        "category": why.category.value,
        "cause": why.cause,
        "confidence": why.confidence.value,
        "summary": why.summary,
        "evidence": [{"source": e.source, "text": e.text} for e in why.evidence],
        "next_steps": list(why.next_steps),
    }


def _first_broken(report: HopReport | None) -> str:
    return report.first_broken.value if report and report.first_broken else ""
