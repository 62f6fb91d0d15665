"""What cannot be seen, what does not work, and what would mend it: the report behind `sevenhop doctor` and `scan`."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import Any

from sevenhop.core.alerts.inert import inert
from sevenhop.core.alerts.rule import Rule
from sevenhop.core.engine import Engine
from sevenhop.core.events import SyncState
from sevenhop.core.facts.schema import Unknown, UnknownReason
from sevenhop.core.facts.table import FACTS
from sevenhop.core.inventory.gpu_agent import AGENT
from sevenhop.core.subject import HOPS, Hop
from sevenhop.runtime.embedded import Embedded
from sevenhop.settings import Settings
from sevenhop.sources.kubernetes.source import KubernetesSource
from sevenhop.stores.store import Store

_SEEN_BY: dict[Hop, str] = {
    Hop.GPU: "GPU agents, or dcgm-exporter",
    Hop.DISCOVERY: "Node objects; GPU agents add what the driver sees",
    Hop.SCHEDULING: "Pod, Node and the kinds that placement reads",
    Hop.POD: "Pod status and Events",
    Hop.MODEL: "Pod status; a probe or engine metrics would add serving (not part of this version)",
    Hop.SERVICE: "Service and EndpointSlice",
    Hop.GATEWAY: "access logs, metrics or a probe (not part of this version)",
}

_NEEDS: dict[Hop, tuple[str, ...]] = {
    Hop.GPU: (),
    Hop.DISCOVERY: ("Node",),
    Hop.SCHEDULING: ("Pod", "Node"),
    Hop.POD: ("Pod", "Event"),
    Hop.MODEL: ("Pod",),
    Hop.SERVICE: ("Service", "EndpointSlice.discovery.k8s.io"),
    Hop.GATEWAY: (),
}


def available_facts(engine: Engine) -> set[str]:
    """
    Facts that some source of this installation can make known: all but those that nothing tells of.

    What is told of one subject is available, though of others nobody tells it: a node without an agent beside one that
    has one.
    """
    told: set[str] = set()
    untold: set[str] = set()
    for facts in engine.inventory.facts.values():
        for name, value in facts.items():
            is_untold = isinstance(value, Unknown) and value.reason is UnknownReason.NO_SOURCE
            (untold if is_untold else told).add(name)
    never = {name for name, spec in FACTS.items() if spec.subject.value in ("gpu", "route")}
    return set(FACTS) - ((untold | never) - told)


def coverage(engine: Engine) -> list[dict[str, Any]]:
    """One row per hop: what sees it, and whether it is blind, and why."""
    states, details = engine.inventory.state.objects.states, engine.inventory.state.objects.details
    rows = []
    for hop in HOPS:
        missing = [
            f"{kind}: {states[kind].value}{' (' + details[kind] + ')' if details.get(kind) else ''}"
            for kind in _NEEDS[hop]
            if states.get(kind) not in (SyncState.SYNCED, SyncState.ABSENT)
        ]
        blind = not _NEEDS[hop] or bool(missing)
        if hop is Hop.GPU:
            blind, missing = _gpus_missing(engine)
        rows.append({"hop": hop.value, "seen": not blind, "by": _SEEN_BY[hop], "missing": missing})
    return rows


def _gpus_missing(engine: Engine) -> tuple[bool, list[str]]:
    """Whether no GPU is seen at all, and of which nodes with GPUs nothing is heard."""
    state = engine.inventory.state
    nodes = {node.name for pool in state.ledger.pools() for node in state.ledger.nodes_of(pool)}
    heard = {node for node, agent in state.gpus.agents.items() if agent.sampled_at is not None} - state.silent_agents
    unheard = sorted(nodes - heard)
    if not heard:
        return True, [f"{AGENT}: none is heard; docs/howto/gpu-agent.md says how to install it"]
    if not unheard:
        return False, []
    return False, [f"{AGENT}: {len(unheard)} of {len(nodes)} nodes with GPUs are not heard, such as {unheard[0]}"]


def inert_rules(engine: Engine, rules: Iterable[Rule]) -> list[dict[str, str]]:
    """Rules that cannot fire here, those that are off included, and what would arm them."""
    available = available_facts(engine)
    found = []
    for rule in sorted((*rules, *engine.alerts.off), key=lambda rule: rule.id):
        why = inert(rule, available, FACTS)
        if not rule.enabled:
            why = "; ".join(part for part in ("needs `enabled: true` in its file", why.removeprefix("needs ")) if part)
        if why:
            found.append({"rule": rule.id, "hop": rule.hop.value if rule.hop else "", "why": why})
    return found


def trouble(engine: Engine) -> list[dict[str, str]]:
    """Kinds that are served and cannot be seen, and objects that could not be decoded."""
    state = engine.inventory.state
    rows = [
        {"kind": kind, "state": s.value, "detail": state.objects.details.get(kind, "")}
        for kind, s in state.objects.states.items()
        if s not in (SyncState.SYNCED, SyncState.ABSENT)
    ]
    rows += [
        {"kind": kind, "state": "unreadable", "detail": f"{'/'.join(key)}: {why}"}
        for kind, unreadable in state.unreadable.items()
        for key, why in unreadable.items()
    ]
    return rows


def engine_report(engine: Engine) -> dict[str, Any]:
    """The part of the report that one look at a cluster can give."""
    return {
        "coverage": coverage(engine),
        "trouble": trouble(engine),
        "inert_rules": inert_rules(engine, engine.alerts.rules.values()),
        "broken_rules": [{"rule": b.rule_id, "why": str(b)} for b in engine.alerts.broken()],
    }


def doctor_report(
    embedded: Embedded, source: KubernetesSource, store: Store, settings: Settings, now: datetime
) -> dict[str, Any]:
    """The report of a running service."""
    waiting, oldest = store.waiting()
    return {
        **engine_report(embedded.engine),
        "sources": [s for s in source.status() if s.state is not SyncState.ABSENT],
        "discovery_error": source.discovery_error,
        "outbox": {
            "waiting": waiting,
            "oldest_due_s": max(0, round(now.timestamp() - oldest)) if oldest is not None else 0,
            "failing": embedded.outbox_failures(),
            "unclaimed": embedded.unclaimed(),
        },
        "stalled": embedded.stalled,
        "state": str(settings.state),
        "receivers": sorted(settings.receivers),
        "at": now,
    }
