"""Facts of one component of a workload."""

from __future__ import annotations

from functools import partial

from sevenhop.core.facts.schema import FactSpec, FactType
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
        doc="Below this it is broken: policy, the owner's minimum, a PodDisruptionBudget, else desired − 1 and at least 1.",
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
        doc="Two versions on purpose: the workload is annotated sevenhop.dev/canary.",
        source="the workload's root",
        not_applicable=False,
    ),
)
