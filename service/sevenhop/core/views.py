"""What `get` lists: rows of plain values, the same from the running service and from one look at a cluster."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import datetime
from typing import Any

from sevenhop.core.alerts.rule import Rule
from sevenhop.core.engine import Engine
from sevenhop.core.explanations import explanation_of as explanation_of
from sevenhop.core.explanations import history_of as history_of
from sevenhop.core.explanations import hops_of
from sevenhop.core.facts.schema import Unknown
from sevenhop.core.hops.findings import Finding, findings
from sevenhop.core.hops.report import HopReport
from sevenhop.core.inventory.pools import capacity, reclaimable_of
from sevenhop.core.inventory.rows import PodRow
from sevenhop.core.inventory.state import State, component_subject
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
                "gpus": state.ledger.held_in(state.pool_of.get((key, name), "")).get((key, name), (0, 0))[0],
                "reclaimable": reclaimable_of(state, (key, name)),
                "waiting": _plain(facts.get("component.waiting")),
                "cause": context.diagnosis.cause if context and context.diagnosis else "",
                "first_broken": _first_broken(context.report if context else None),
                "hops": hops_of(context.report if context else None),
                "alerts": firing.get(subject, []),
            }


def pods(engine: Engine, _now: datetime) -> list[Row]:
    """One row per pod of a workload."""
    state = engine.inventory.state
    return [
        {**_pod(row), "straggler": _plain_or_none(state.stragglers.told.get(key, False))}
        for key, row in sorted(state.rows.items())
    ]


def nodes(engine: Engine, _now: datetime) -> list[Row]:
    """
    One row per node and GPU pool; nodes without GPUs have one row without a pool.

    `visible` is what the driver sees, of the whole node; None where no agent tells.
    """
    state = engine.inventory.state
    rows: list[Row] = []
    for pool in sorted(state.ledger.pools()):
        unhealthy = state.ledger.unhealthy_of(pool)
        rows += [
            {
                "node": free.name,
                "product": pool,
                "expected": _plain_or_none(_node_fact(state, free.name, "gpu.expected")),
                "visible": _plain_or_none(_node_fact(state, free.name, "gpu.visible")),
                "allocatable": free.allocatable,
                "bound": free.bound,
                "releasing": free.releasing,
                "free": free.free,
                "unhealthy": unhealthy[free.name],
                "trouble": _troubles(state, free.name),
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


def gpus(engine: Engine, _now: datetime) -> list[Row]:
    """One row per GPU or MIG instance that an agent tells of; what it does not tell is None."""
    state = engine.inventory.state
    rows: list[Row] = []
    for node, agent in sorted(state.gpus.agents.items()):
        for gpu in sorted(agent.gpus.values(), key=lambda g: (g.index, g.uuid)):
            facts = state.facts.get(Subject(SubjectKind.GPU, "", gpu.uuid))
            if facts is None:
                continue
            names = (
                "present", "xid", "xid_class", "xid_repeats_24h", "throttle", "utilization_ratio", "sm_active_ratio",
                "sm_occupancy_ratio", "mem_used_ratio", "remap_failed", "held_without_pod", "trouble", "hits",
            )  # fmt: skip
            present = facts["gpu.present"]
            unknown = next((facts[n] for n in ("gpu.present", "gpu.xid") if isinstance(facts[n], Unknown)), "")
            rows.append(
                {
                    "node": node,
                    "index": gpu.index if gpu.index >= 0 else None,
                    "gpu": gpu.uuid,
                    "product": str(facts["product"]),
                    "profile": gpu.profile,
                    "pci": gpu.pci,
                    "state": _gpu_state(state, node, gpu.uuid, present),
                    "unknown": str(unknown),
                    **{name: getattr(gpu.reading, name, None) for name in _READ},
                    "pods": ["/".join(pod) for pod in gpu.pods()],
                    **{name: _plain_or_none(facts[f"gpu.{name}"]) for name in names},
                }
            )
    return rows


_READ = (
    "temperature_c", "power_w", "nvlinks_down", "processes", "ecc_uncorrected", "ecc_corrected",
    "remap_pending",
)  # fmt: skip
"""What a reading says beside the facts."""


def _gpu_state(state: State, node: str, uuid: str, present: object) -> str:
    """`ok`, `bad`, `lost`, or `unknown`."""
    judged = state.gpu_states[node][uuid]
    if present is False:
        return "lost"
    if judged.is_bad and judged.unknown is None:
        return "bad"
    return "unknown" if isinstance(present, Unknown) else "ok"


def _troubles(state: State, node: str) -> str:
    health = state.gpu_health.get(node)
    return "; ".join(words for _, words in health.bad) if health is not None else ""


def _node_fact(state: State, node: str, name: str) -> object:
    return state.facts.get(Subject(SubjectKind.NODE, "", node), {}).get(f"node.{name}")


def _plain_or_none(value: object) -> Any:
    return None if isinstance(value, Unknown) else _plain(value)


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
        "reserved": pool.reserved,
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


def _plain(value: object) -> Any:
    return value if isinstance(value, bool | int | float | str | None) else str(value)
