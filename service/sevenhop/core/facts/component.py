"""Facts of one component of a workload."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from datetime import UTC, datetime
from functools import partial

import msgspec

from sevenhop.core.facts.pod import BEFORE_WE_LOOKED, failure_class, pending_reason
from sevenhop.core.facts.schema import Facts, FactSpec, FactType, Unknown, UnknownReason
from sevenhop.core.hops.diagnosis import Diagnosis
from sevenhop.core.inventory.rows import PodRow
from sevenhop.core.inventory.workloads import Component
from sevenhop.core.subject import SubjectKind

_row = partial(
    FactSpec,
    subject=SubjectKind.COMPONENT,
    source="Pod",
    unknown_when="pods cannot be seen, or a member was not read",
)
_waiting = partial(_row, source="Pod, Node and what placement reads")

SPECS: tuple[FactSpec, ...] = (
    _row(
        name="component.desired",
        type=FactType.INT,
        unit="replicas",
        doc="Replicas asked for; a multi-node group is one.",
        source="the workload's root",
        unknown_when="nothing that we see states a count (no_source), or the root cannot be seen",
    ),
    _row(
        name="component.min",
        type=FactType.INT,
        unit="replicas",
        doc="Below this it is broken: policy, its own minimum, a PodDisruptionBudget, else desired − 1, at least 1.",
        source="policy, the workload's root, PodDisruptionBudget",
        unknown_when="desired is unknown and nothing else states a floor",
    ),
    _row(
        name="component.ready",
        type=FactType.INT,
        unit="replicas",
        doc="Replicas of which every pod is ready and none is terminating.",
    ),
    _row(
        name="component.serving",
        type=FactType.INT,
        unit="replicas",
        doc="Replicas that answer requests; a component without a ready replica serves with none.",
        source="probe, gateway",
        unknown_when="no probe and no gateway source (no_source)",
    ),
    _waiting(name="component.waiting", type=FactType.INT, unit="pods", doc="Pods that the scheduler cannot place."),
    _waiting(
        name="component.waiting.category",
        type=FactType.STRING,
        doc="Category of `component.waiting.cause`.",
        not_applicable="",
        unknown_when="every waiting pod's is (disagree, window)",
    ),
    _waiting(
        name="component.waiting.cause",
        type=FactType.STRING,
        doc="Why pods wait: the cause of most of them, of the longest waiting where two are equal.",
        not_applicable="",
        unknown_when="every waiting pod's is (disagree, window)",
    ),
    _waiting(
        name="component.waiting.since",
        type=FactType.TIME,
        doc="The earliest PodScheduled=False among its pods, kept while any of them waits.",
        unknown_when="nothing waits: there is no time that says so",
    ),
    _waiting(
        name="component.waiting.gpus",
        type=FactType.INT,
        unit="GPUs",
        doc="GPUs that the waiting pods ask for.",
        not_applicable=0,
    ),
    _row(
        name="component.failing",
        type=FactType.INT,
        unit="pods",
        doc="Pods that have a node and fail: waiting with an error, crashing, failed, not ready past their start-up.",
        source="Pod, Event",
    ),
    _row(
        name="component.failure.class",
        type=FactType.STRING,
        doc="Kind of failure of most failing pods, of the longest failing where two are equal: image-…, config, mount, "
        "runtime, oom-host, probe, device, model-artifact, engine, unknown.",
        source="Pod, Event",
        not_applicable="",
    ),
    _row(
        name="component.failure.cause",
        type=FactType.STRING,
        doc="Cause slug behind `component.failure.class` (docs/reference/causes).",
        source="Pod, Event",
        not_applicable="",
    ),
    _row(
        name="component.failure.hop",
        type=FactType.STRING,
        doc="Hop of that failure.",
        source="Pod, Event",
        not_applicable="",
        values=("gpu", "discovery", "scheduling", "pod", "model", "service", "gateway"),
    ),
    _row(
        name="component.failing_nodes",
        type=FactType.INT,
        unit="nodes",
        doc="Different nodes on which pods fail.",
        source="Pod, Event",
        not_applicable=0,
    ),
    _row(
        name="component.restarts_10m",
        type=FactType.INT,
        unit="restarts in 10 min",
        doc="Container restarts of its pods within 10 minutes.",
        not_applicable=0,
        unknown_when="restarts from before we looked may lie in the window (window)",
    ),
    _row(
        name="component.versions",
        type=FactType.INT,
        unit="versions",
        doc="Different model versions and images among ready pods.",
    ),
    _row(
        name="component.rolling",
        type=FactType.BOOL,
        doc="A rollout is under way: pods of two revisions, or a revision that its controller has not finished.",
        source="Pod, ReplicaSet, Deployment, StatefulSet, the workload's root",
    ),
    _waiting(
        name="component.surge_blocked",
        type=FactType.BOOL,
        doc="A rollout's extra pod waits for what its own old pods hold.",
        unknown_when="every waiting pod's cause is",
    ),
    _row(
        name="component.intended_zero",
        type=FactType.BOOL,
        doc="Nothing is meant to run: scaled to zero, suspended, stopped, or queued.",
        source="the workload's root",
    ),
    _row(
        name="component.scaler_maxed",
        type=FactType.BOOL,
        doc="Its autoscaler wants more than its maximum allows.",
        source="HorizontalPodAutoscaler",
        not_applicable=False,
        unknown_when="autoscalers cannot be seen",
    ),
    _row(
        name="component.queue_waiting",
        type=FactType.INT,
        unit="requests",
        doc="Requests that wait in its engines.",
        source="engine metrics",
        unknown_when="no metrics source (no_source)",
    ),
    _row(
        name="component.kv_used_ratio",
        type=FactType.DOUBLE,
        unit="ratio",
        doc="KV cache in use.",
        source="engine metrics",
        unknown_when="no metrics source (no_source)",
    ),
    _row(
        name="component.drift",
        type=FactType.BOOL,
        doc="No rollout is under way, and a ready pod runs another image than is declared.",
        not_applicable=False,
    ),
    _row(
        name="component.canary",
        type=FactType.BOOL,
        doc="Two versions on purpose: annotated sevenhop.dev/canary, or traffic that its framework splits.",
        source="the workload's root",
        not_applicable=False,
    ),
)

NO_METRICS = Unknown(UnknownReason.NO_SOURCE, "engine metrics")
NO_PROBE = Unknown(UnknownReason.NO_SOURCE, "probe or gateway")
NO_COUNT = Unknown(UnknownReason.NO_SOURCE, "nothing that we see states a replica count")
NOTHING_WAITS = Unknown(UnknownReason.NO_SOURCE, "nothing waits")

_FROM_PODS = (
    "component.ready", "component.serving", "component.waiting", "component.waiting.category",
    "component.waiting.cause", "component.waiting.since", "component.waiting.gpus", "component.failing",
    "component.failure.class", "component.failure.cause", "component.failure.hop", "component.failing_nodes",
    "component.restarts_10m", "component.versions", "component.rolling", "component.surge_blocked", "component.drift",
)  # fmt: skip
_FROM_ROOT = ("component.desired", "component.min", "component.intended_zero", "component.drift")


class NotCreated(msgspec.Struct, frozen=True, gc=False):
    """Pods that a controller, as ``Kind/name``, asks for and the API server refuses: they wait without existing."""

    controller: str
    pods: int
    gpus: int
    since: datetime | None
    diagnosis: Diagnosis


def derive(
    part: Component,
    rows: Sequence[PodRow],
    *,
    missing: Sequence[NotCreated] = (),
    since: datetime | None,
    rolling: bool,
    minimum: int | None,
    scaler_maxed: bool | Unknown,
    canary: bool,
    pods_unknown: Unknown | None = None,
    root_unknown: Unknown | None = None,
) -> Facts:
    """
    Facts of one component from what its pods and its root say.

    Args:
        missing: What cannot be created, beside the pods that exist.
        since: Of its spell of waiting; None while nothing waits.
        minimum: Stated by policy or a PodDisruptionBudget; None where they are silent.
        pods_unknown, root_unknown: Why pods, or the workload's root, cannot be seen; facts from them are then this.
    """
    waiting = [row for row in rows if row.waits_since is not None and row.waiting]
    waiting.sort(key=_age)  # where none can be told, the oldest says why
    failing = [row for row in rows if row.failure is not None and not row.waiting]
    ready_pods = [row for row in rows if row.ready]
    ready = ready_replicas(part, ready_pods)
    desired: int | Unknown = NO_COUNT if part.desired is None else part.desired
    if isinstance(desired, Unknown) and part.intended_zero:
        desired = 0
    reason = waiting_reason(waiting, missing)
    failure = failure_reason(failing)
    versions = {row.version for row in ready_pods}
    facts: Facts = {
        "component.desired": desired,
        "component.min": floor(part, desired, minimum),
        "component.ready": ready,
        "component.serving": 0 if not ready and not ready_pods else NO_PROBE,
        "component.waiting": len(waiting) + sum(m.pods for m in missing),
        "component.waiting.category": reason if isinstance(reason, Unknown) else reason[0],
        "component.waiting.cause": reason if isinstance(reason, Unknown) else reason[1],
        "component.waiting.since": NOTHING_WAITS if since is None else since,
        "component.waiting.gpus": sum(row.gpus for row in waiting) + sum(m.gpus for m in missing),
        "component.failing": len(failing),
        "component.failure.class": failure_class(failure) if failure else "",
        "component.failure.cause": failure.cause if failure else "",
        "component.failure.hop": str(failure.hop or "") if failure else "",
        "component.failing_nodes": len({row.node for row in failing if row.node}),
        "component.restarts_10m": restarts_of(rows),
        "component.versions": len(versions),
        "component.rolling": rolling,
        "component.surge_blocked": surge_blocked(waiting),
        "component.intended_zero": bool(part.intended_zero),
        "component.scaler_maxed": scaler_maxed,
        "component.queue_waiting": NO_METRICS,
        "component.kv_used_ratio": NO_METRICS,
        "component.drift": not rolling and bool(part.image) and any(row.image != part.image for row in ready_pods),
        "component.canary": canary,
    }
    if root_unknown is not None:
        facts.update(dict.fromkeys(_FROM_ROOT, root_unknown))
    if pods_unknown is not None:
        facts.update(dict.fromkeys(_FROM_PODS, pods_unknown))
    return facts


def ready_replicas(part: Component, rows: Sequence[PodRow]) -> int:
    """Replicas of which all pods are ready; pods without a group are counted off in full replicas."""
    size = max(1, part.pods_per_replica)
    if size == 1:
        return len([row for row in rows if row.ready])
    groups: Counter[str] = Counter(row.group for row in rows if row.ready)
    ungrouped = groups.pop("", 0)
    return sum(1 for count in groups.values() if count >= size) + ungrouped // size


def floor(part: Component, desired: int | Unknown, stated: int | None) -> int | Unknown:
    """
    Replicas below which the component is broken.

    With nothing stated one may be missing, but never the last: a component without any replica serves nobody.
    """
    if stated is not None:
        return stated
    if part.minimum is not None:
        return part.minimum
    if isinstance(desired, Unknown):
        return desired
    return max(min(desired, 1), desired - 1)


def waiting_reason(waiting: Sequence[PodRow], missing: Sequence[NotCreated]) -> tuple[str, str] | Unknown:
    """(category, cause) of most waiting pods; unknown only where that of every one is."""
    if not waiting and not missing:
        return ("", "")
    votes: Counter[tuple[str, str]] = Counter()
    oldest: dict[tuple[str, str], datetime] = {}
    unknown: Unknown | None = None
    for row in waiting:
        said = pending_reason(row)
        if isinstance(said, Unknown):
            unknown = unknown or said
            continue
        _vote(votes, oldest, said, 1, row.waits_since)
    for blocked in missing:
        said = (str(blocked.diagnosis.category), blocked.diagnosis.cause)
        _vote(votes, oldest, said, blocked.pods, blocked.since)
    if votes:
        return min(votes, key=lambda said: (-votes[said], oldest.get(said, _LATEST), said))
    return unknown or ("", "")


def _vote(
    votes: Counter[tuple[str, str]],
    oldest: dict[tuple[str, str], datetime],
    said: tuple[str, str],
    pods: int,
    since: datetime | None,
) -> None:
    votes[said] += pods
    if since is not None:
        oldest[said] = min(since, oldest.get(said, since))


def failure_reason(failing: Sequence[PodRow]) -> Diagnosis | None:
    """The failure of most failing pods, of the oldest pod where two are equal."""
    if not failing:
        return None
    votes: Counter[str] = Counter()
    first: dict[str, PodRow] = {}
    for row in failing:
        if row.failure is None:
            continue
        cause = row.failure.cause
        votes[cause] += 1
        if cause not in first or _age(row) < _age(first[cause]):
            first[cause] = row
    if not votes:
        return None
    cause = min(votes, key=lambda slug: (-votes[slug], _age(first[slug])))
    return first[cause].failure


def surge_blocked(waiting: Sequence[PodRow]) -> bool | Unknown:
    """Whether a waiting pod waits for its own rollout's old pods."""
    said = [pending_reason(row) for row in waiting]
    if any(not isinstance(reason, Unknown) and reason[1] == "rollout-surge" for reason in said):
        return True
    if said and all(isinstance(reason, Unknown) for reason in said):
        return next(reason for reason in said if isinstance(reason, Unknown))
    return False


def restarts_of(rows: Sequence[PodRow]) -> int | Unknown:
    """Unknown where one pod's is, and the others alone do not settle it: a sum has no part that may be left out."""
    known = [row.restarts for row in rows if row.restarts is not None]
    return sum(known) if len(known) == len(rows) else BEFORE_WE_LOOKED


def _age(row: PodRow) -> tuple[datetime, str]:
    return (row.created or _LATEST, row.key[1])


_LATEST = datetime.max.replace(tzinfo=UTC)
