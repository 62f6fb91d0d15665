"""A small scene for tests of the desk: rules, alerts, what the inventory would say, and a store."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from msgspec.structs import replace

from sevenhop.core.alerts.alert import Alert, AlertChanged, AlertState, ChangeReason
from sevenhop.core.alerts.rule import Evaluation, Rule, SeverityPolicy, Verdict
from sevenhop.core.effects import Notify, Row
from sevenhop.core.events import Outcome, Recalled
from sevenhop.core.facts.schema import LABELS, Facts, FactValue
from sevenhop.core.hops.cover import report
from sevenhop.core.hops.diagnosis import Category, Confidence, Diagnosis
from sevenhop.core.hops.report import HopLine, HopReport, HopState
from sevenhop.core.incidents.context import SubjectContext
from sevenhop.core.incidents.desk import IncidentDesk
from sevenhop.core.incidents.incident import incident_key
from sevenhop.core.incidents.settings import DeskSettings
from sevenhop.core.inventory.capacity import Holding, PoolCapacity, Waiting
from sevenhop.core.keeping import alert_row
from sevenhop.core.subject import HOPS, Hop, Subject, SubjectKind

NOON = datetime(2026, 11, 30, 12, tzinfo=UTC)
H100 = "NVIDIA-H100-80GB-HBM3"
CLUSTER = "prod-eu"


def at(seconds: float) -> datetime:
    return NOON + timedelta(seconds=seconds)


def component(name: str = "llama-70b/decode", namespace: str = "prod") -> Subject:
    return Subject(SubjectKind.COMPONENT, namespace, name)


def node(name: str = "gpu-05") -> Subject:
    return Subject(SubjectKind.NODE, "", name)


def pool(name: str = H100) -> Subject:
    return Subject(SubjectKind.POOL, "", name)


def service(name: str = "llama-70b", namespace: str = "prod") -> Subject:
    return Subject(SubjectKind.SERVICE, namespace, name)


def rule(rule_id: str, hop: Hop | None, subject: SubjectKind = SubjectKind.COMPONENT, **more: Any) -> Rule:
    made = Rule(
        id=rule_id,
        status="stable",
        hop=hop,
        subject=subject,
        expr="true",
        reads=frozenset(),
        evaluate=lambda _: Evaluation(Verdict.TRUE),
        hold=timedelta(0),
        keep_firing=timedelta(0),
        since="",
        severity=SeverityPolicy.BY_TIER,
        cause=subject,
        annotations={"summary": "{{ workload }}/{{ component }}: " + rule_id},
        digest=rule_id,
        description="Replicas are missing. Users may feel it.",
    )
    return replace(made, **more)


SHORT = rule(
    "component-short-of-gpus",
    Hop.SCHEDULING,
    cause=SubjectKind.POOL,
    annotations={"summary": "{{ workload }}/{{ component }} waits for {{ component.waiting.gpus }} × {{ product }}"},
)
LIMITED = rule(
    "scale-out-limited",
    Hop.SCHEDULING,
    SubjectKind.POOL,
    severity=SeverityPolicy.WARNING,
    annotations={"summary": "{{ product }}: no node is coming"},
)
LOAD_FAILS = rule("load-fails", Hop.MODEL)
RESTARTS = rule("worker-restarts", Hop.POD, severity=SeverityPolicy.WARNING)
IMAGE = rule("image-not-pulled", Hop.POD)
NO_ENDPOINTS = rule("no-ready-endpoints", Hop.SERVICE, SubjectKind.SERVICE)
FAILS_HERE = rule("fails-on-one-node", Hop.POD, SubjectKind.NODE, severity=SeverityPolicy.WARNING)
FEWER = rule("node-advertises-fewer-gpus", Hop.DISCOVERY, SubjectKind.NODE, severity=SeverityPolicy.WARNING)
BLIND = rule("source-blind", None, SubjectKind.SOURCE, severity=SeverityPolicy.CRITICAL)
OVERDUE = rule("load-overdue", Hop.MODEL, SubjectKind.POD, severity=SeverityPolicy.WARNING)
RULES = (SHORT, LIMITED, LOAD_FAILS, RESTARTS, IMAGE, NO_ENDPOINTS, FAILS_HERE, FEWER, BLIND, OVERDUE)


def labels_for(subject: Subject, **more: str) -> dict[str, str]:
    """The labels that such a subject carries."""
    found = {**dict.fromkeys(LABELS, ""), "cluster": CLUSTER, "namespace": subject.namespace}
    if subject.kind is SubjectKind.COMPONENT:
        found["workload"], _, found["component"] = subject.name.partition("/")
        found["tier"] = "critical"
        found["product"] = H100
    elif subject.kind is SubjectKind.SERVICE:
        found["service"] = found["workload"] = subject.name
        found["tier"] = "critical"
    elif subject.kind is SubjectKind.NODE:
        found["node"] = subject.name
    elif subject.kind is SubjectKind.POOL:
        found["product"] = subject.name
    return {**found, **more}


def alert(
    of: Rule,
    subject: Subject,
    since: float = 0,
    *,
    values: Mapping[str, FactValue] | None = None,
    state: AlertState = AlertState.FIRING,
    blind_since: datetime | None = None,
    missing: Sequence[str] = (),
    **labels: str,
) -> Alert:
    return Alert(
        rule_id=of.id,
        rule_digest=of.digest,
        cluster=CLUSTER,
        subject=subject,
        state=state,
        since=at(since),
        fired_at=at(since),
        confirmed_at=at(since),
        blind_since=blind_since,
        missing=tuple(missing),
        labels=labels_for(subject, **labels),
        values=dict(values or {"component.waiting.gpus": 2}),
    )


def fires(of: Alert, seconds: float = 0, *, again: bool = False) -> AlertChanged:
    was = AlertState.FIRING if again else AlertState.PENDING
    return AlertChanged(alert=of, was=was, reason=ChangeReason.HELD, at=at(seconds))


def ends(of: Alert, seconds: float, reason: ChangeReason = ChangeReason.CONDITION_FALSE) -> AlertChanged:
    return AlertChanged(
        alert=replace(of, state=AlertState.INACTIVE), was=AlertState.FIRING, reason=reason, at=at(seconds)
    )


def hops(broken: Mapping[Hop, Sequence[str]], *, total: int = 4, unknown: Mapping[Hop, str] | None = None) -> HopReport:
    """A report whose hops are well, but for those named."""
    hidden = {Hop.GATEWAY: "no_source (route source)"} if unknown is None else unknown
    lines = []
    for hop in HOPS:
        if hop in broken:
            pods = tuple(broken[hop])
            lines.append(HopLine(hop=hop, state=HopState.BROKEN, broken=len(pods), total=total, pods=pods))
        elif hop in hidden:
            lines.append(HopLine(hop=hop, state=HopState.UNKNOWN, total=total, reason=hidden[hop]))
        else:
            lines.append(HopLine(hop=hop, state=HopState.OK, total=total))
    return report(lines)


SHORTAGE = Diagnosis(
    hop=Hop.SCHEDULING,
    category=Category.RESOURCE,
    cause="gpu-shortage",
    confidence=Confidence.CERTAIN,
    summary="needs 2 GPUs on one node; 4 nodes have H100s, none has 2 free",
    not_preempted="both use the default PriorityClass",
)


def context(
    subject: Subject,
    broken: Mapping[Hop, Sequence[str]] | None = None,
    *,
    places: Mapping[str, str] | None = None,
    unknown: Mapping[Hop, str] | None = None,
    **more: Any,
) -> SubjectContext:
    """
    What the inventory says of a subject.

    Args:
        broken: Pods that are broken, by hop.
        places: Pod to node; of a node, the pods in trouble on it.
    """
    named = {pod for pods in (broken or {}).values() for pod in pods} | set(places or {})
    where = {pod: (places or {}).get(pod, "") for pod in sorted(named)}
    namespace = subject.namespace or "prod"
    has_report = subject.kind not in (SubjectKind.NODE, SubjectKind.POOL, SubjectKind.SOURCE)
    fields: dict[str, Any] = {
        "labels": labels_for(subject),
        "report": hops(broken or {}, unknown=unknown) if has_report else None,
        "pods": tuple(where.items()),
        "pod_keys": tuple((namespace, pod) for pod in where),
    }
    return SubjectContext(**{**fields, **more})


def capacity(**more: Any) -> PoolCapacity:
    fields: dict[str, Any] = {
        "product": H100,
        "resource": "nvidia.com/gpu",
        "nodes": (),
        "allocatable": 32,
        "bound": 30,
        "releasing": 0,
        "free": 2,
        "cordoned": 0,
        "unhealthy": 0,
        "largest_free_block": 1,
        "holdings": (Holding(("prod", "summarizer"), "batch", 8, 4, reducible=True, gives=6),),
        "waiting": (),
    }
    return PoolCapacity(**{**fields, **more})


def waiting(workload: str, tier: str, gpus: int = 2) -> Waiting:
    return Waiting(workload=("prod", workload), component="decode", tier=tier, pods=1, gpus=gpus, since=NOON)


class Scene:
    """A desk with its contexts and its store."""

    def __init__(self, settings: DeskSettings | None = None, rules: Iterable[Rule] = RULES) -> None:
        self.settings = settings or DeskSettings(receivers=("console",))
        self.rules = tuple(rules)
        self.desk = IncidentDesk(self.settings, CLUSTER, self.rules)
        self.contexts: dict[Subject, SubjectContext] = {}
        self.facts: dict[Subject, Facts] = {}
        self.hidden: set[Subject] = set()
        self.rows: dict[tuple[str, str], bytes] = {}
        self.sent: list[Notify] = []

    def context(self, subject: Subject, now: datetime, *, brief: bool = False) -> SubjectContext | None:
        return self.contexts.get(subject)

    def is_hidden(self, subject: Subject) -> bool:
        return subject in self.hidden

    def step(self, seconds: float, *changes: AlertChanged) -> list[Notify]:
        """One step, stored; returns what is asked for."""
        effects = self.desk.step(changes, self, at(seconds))
        for change in changes:
            self._save(alert_row(change.alert))
        for row in self.desk.dirty():
            self._save(row)
        found = [effect for effect in effects if isinstance(effect, Notify)]
        self.sent += found
        return found

    def until(self, seconds: float) -> list[Notify]:
        """All steps that the desk asks for up to a time."""
        found: list[Notify] = []
        while (wake := self.desk.next_wake) is not None and wake <= at(seconds):
            found += self.step((wake - NOON).total_seconds())
        return found

    def arrives(self, notify: Notify, reference: str = "") -> None:
        """The channel took it."""
        self.desk.hear(Outcome(at=notify.message.at, effect_id=notify.id, delivered=True, reference=reference))

    def restart(self, *, keep: bool = True) -> None:
        """Another process takes over; without `keep`, from an empty store."""
        rows = [Row(table, key, value) for (table, key), value in sorted(self.rows.items())] if keep else []
        self.desk = IncidentDesk(self.settings, CLUSTER, self.rules)
        assert self.desk.load(rows) == []

    def _save(self, row: Row) -> None:
        if row.value is None:
            self.rows.pop((row.table, row.key), None)
        else:
            self.rows[(row.table, row.key)] = row.value


def reasons(sent: Iterable[Notify]) -> list[str]:
    return [notify.reason for notify in sent]


def recalled(**more: object) -> Recalled:
    """Firing, in its third episode, about a pool."""
    fields: dict[str, object] = {
        "at": at(0),
        "receiver": "console",
        "key": incident_key(CLUSTER, pool(), "scheduling"),
        "episode": 3,
        "is_open": True,
        "reference": "C1/9.9",
        "revision": 7,
        "title": "llama-70b/decode waits",
        "severity": "critical",
        "causes": (SHORT.id,),
        "cause": str(pool()),
        "family": "scheduling",
        "opened_at": at(-500),
    }
    return Recalled(**{**fields, **more})  # type: ignore[arg-type]
