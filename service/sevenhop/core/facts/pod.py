"""Facts of one pod that belongs to an inference workload."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from sevenhop.core.facts.schema import Facts, FactSpec, FactType, Unknown, UnknownReason
from sevenhop.core.gpu_sample import ContainerUsage
from sevenhop.core.hops.diagnosis import Category, Diagnosis
from sevenhop.core.inventory.rows import PodRow
from sevenhop.core.subject import SubjectKind

_row = partial(
    FactSpec, subject=SubjectKind.POD, source="Pod", unknown_when="pods cannot be seen, or this one not read"
)
_agent = partial(
    _row, source="gpu agent", unknown_when="no agent on the node (no_source), or one that is silent for 60 s (stale)"
)

SPECS: tuple[FactSpec, ...] = (
    _row(
        name="pod.phase",
        type=FactType.STRING,
        doc="The pod's phase.",
        values=("Pending", "Running", "Succeeded", "Failed", "Unknown"),
    ),
    _row(name="pod.terminating", type=FactType.BOOL, doc="It is being deleted, and still holds what it has."),
    _row(
        name="pod.unschedulable_since",
        type=FactType.TIME,
        doc="When the scheduler first said that it fits nowhere.",
        unknown_when="it does not wait for a node: the question does not arise, and there is no time that says so",
    ),
    _row(
        name="pod.pending.category",
        type=FactType.STRING,
        doc="Category of why it is pending (docs/reference/causes); none where it fits.",
        source="Pod, Node and what placement reads",
        not_applicable="",
        unknown_when="not yet computed (window), or our verdict contradicts the scheduler's (disagree)",
    ),
    _row(
        name="pod.pending.cause",
        type=FactType.STRING,
        doc="Cause slug of why it is pending (docs/reference/causes); fits where it fits.",
        source="Pod, Node and what placement reads",
        not_applicable="",
        unknown_when="not yet computed (window), or our verdict contradicts the scheduler's (disagree)",
    ),
    _row(
        name="pod.pending.agrees",
        type=FactType.BOOL,
        doc="Our verdict and the scheduler's words do not contradict each other.",
        not_applicable=True,
        unknown_when="not yet computed (window)",
    ),
    _row(
        name="pod.gpu.count",
        type=FactType.INT,
        unit="GPUs",
        doc="GPUs, or slices of them, that it asks for.",
        not_applicable=0,
    ),
    _row(
        name="pod.failure.class",
        type=FactType.STRING,
        doc="Kind of its failure: image-…, config, mount, runtime, oom-host, probe, device, model-artifact, engine.",
        source="Pod, Event",
        not_applicable="",
    ),
    _row(
        name="pod.failure.cause",
        type=FactType.STRING,
        doc="Cause slug of its failure (docs/reference/causes).",
        source="Pod, Event",
        not_applicable="",
    ),
    _row(
        name="pod.failure.hop",
        type=FactType.STRING,
        doc="Hop of its failure.",
        source="Pod, Event",
        not_applicable="",
        values=("gpu", "discovery", "scheduling", "pod", "model", "service", "gateway"),
    ),
    _row(
        name="pod.restarts_10m",
        type=FactType.INT,
        unit="restarts in 10 min",
        doc="Container restarts within 10 minutes.",
        not_applicable=0,
        unknown_when="restarts from before we looked may lie in the window (window)",
    ),
    _row(name="pod.ready", type=FactType.BOOL, doc="The Ready condition is True."),
    _row(
        name="pod.model_loaded",
        type=FactType.BOOL,
        doc="The model is loaded: a ready pod's is; a pod whose engine has not started has none.",
        unknown_when="the engine runs and is not ready: only a probe or its metrics can tell (no_source)",
    ),
    _row(
        name="pod.registered",
        type=FactType.BOOL,
        doc="Its framework's router knows it.",
        source="framework",
        unknown_when="no source reads the framework's registry (no_source)",
    ),
    _row(
        name="pod.load_overdue",
        type=FactType.BOOL,
        doc="Not ready for longer than twice the 95th percentile of the release's loads, 45 min before 3 were seen.",
        source="Pod, history",
        not_applicable=False,
    ),
    _row(
        name="pod.in_endpoints",
        type=FactType.BOOL,
        doc="An EndpointSlice of one of its workload's Services lists it as ready.",
        source="EndpointSlice",
        not_applicable=False,
        unknown_when="EndpointSlices cannot be seen",
    ),
    _agent(
        name="pod.cpu_throttled_ratio",
        type=FactType.DOUBLE,
        unit="ratio",
        doc="Share of periods in which a container of it was throttled, of the worst one.",
    ),
    _agent(
        name="pod.mem_used_ratio",
        type=FactType.DOUBLE,
        unit="ratio",
        doc="Memory in use, of its limit, of the worst container; 0 without a limit.",
    ),
    _agent(
        name="pod.straggler",
        type=FactType.BOOL,
        doc="The SMs of its GPUs work less than half as much as its component's other pods' (median), which are busy, "
        "over two minutes.",
        not_applicable=False,
        unknown_when="no agent on its node or on most of the others' (no_source), a silent one (stale), a GPU that "
        "tells no SM activity or is shared (no_source), not read for long enough (window); with fewer than 3 other "
        "ready pods there is nothing to compare",
    ),
    _row(
        name="pod.aborted_on_stop_10m",
        type=FactType.INT,
        unit="requests in 10 min",
        doc="Requests that ended because it stopped.",
        source="gateway",
        not_applicable=0,
        unknown_when="no gateway source (no_source)",
    ),
)

NO_AGENT = Unknown(UnknownReason.NO_SOURCE, "gpu agent")
NOT_READ = Unknown(UnknownReason.NO_SOURCE, "gpu agent: it cannot read this")
NO_GATEWAY = Unknown(UnknownReason.NO_SOURCE, "gateway")
NO_REGISTRY = Unknown(UnknownReason.NO_SOURCE, "the framework's registry")
NO_ENGINE_METRICS = Unknown(UnknownReason.NO_SOURCE, "probe or engine metrics")
HAS_A_NODE = Unknown(UnknownReason.NO_SOURCE, "does not wait for a node")
NOT_COMPUTED = Unknown(UnknownReason.WINDOW, "computed at most every 100 ms")
BEFORE_WE_LOOKED = Unknown(UnknownReason.WINDOW, "restarts from before we looked may lie in the window")

_FROM_AGENT = ("pod.cpu_throttled_ratio", "pod.mem_used_ratio")


def derive(
    row: PodRow,
    *,
    in_endpoints: bool | Unknown,
    pods_unknown: Unknown | None = None,
    usage: Facts | None = None,
    straggler: bool | Unknown = False,
) -> Facts:
    """
    Facts of one pod.

    Args:
        in_endpoints: Whether a Service of its workload lists it as ready.
        pods_unknown: Why pods, or this one, cannot be seen; every fact is then this.
        usage: Of those that the agent tells, what it told; see `usage_facts`.
        straggler: Whether it lags behind its peers; False where there is nothing to compare.
    """
    if pods_unknown is not None:
        return {spec.name: pods_unknown for spec in SPECS}
    reason = pending_reason(row)
    failure = row.failure
    loaded: bool | Unknown = True if row.ready else NO_ENGINE_METRICS if row.started else False
    facts: Facts = {
        "pod.phase": row.phase,
        "pod.terminating": row.terminating,
        "pod.unschedulable_since": row.waits_since if row.waiting and row.waits_since is not None else HAS_A_NODE,
        "pod.pending.category": reason if isinstance(reason, Unknown) else reason[0],
        "pod.pending.cause": reason if isinstance(reason, Unknown) else reason[1],
        "pod.pending.agrees": _agrees(row),
        "pod.gpu.count": row.gpus,
        "pod.failure.class": failure_class(failure) if failure is not None else "",
        "pod.failure.cause": failure.cause if failure is not None else "",
        "pod.failure.hop": str(failure.hop or "") if failure is not None else "",
        "pod.restarts_10m": BEFORE_WE_LOOKED if row.restarts is None else row.restarts,
        "pod.ready": row.ready,
        "pod.model_loaded": loaded,
        "pod.registered": NO_REGISTRY,
        "pod.load_overdue": row.load_overdue,
        "pod.in_endpoints": in_endpoints,
        "pod.straggler": straggler,
        "pod.aborted_on_stop_10m": NO_GATEWAY,
    }
    facts.update(dict.fromkeys(_FROM_AGENT, NO_AGENT))
    facts.update(usage or {})
    return facts


def usage_facts(usage: Sequence[ContainerUsage], unknown: Unknown | None = None) -> Facts:
    """
    What the agent tells of a pod's containers, rounded to a hundredth: a level that trembles is no news.

    Args:
        unknown: Why it does not tell now.
    """
    if unknown is not None:
        return {"pod.cpu_throttled_ratio": unknown, "pod.mem_used_ratio": unknown}
    throttled = [each.cpu_throttled for each in usage if each.cpu_throttled is not None]
    read = [each for each in usage if each.memory_bytes is not None]
    used = [_of_limit(each) for each in read]
    return {
        "pod.cpu_throttled_ratio": round(max(throttled), 2) if throttled else NOT_READ,
        "pod.mem_used_ratio": round(max(used), 2) if used else NOT_READ,
    }


def _of_limit(usage: ContainerUsage) -> float:
    if not usage.memory_limit_bytes or usage.memory_bytes is None:
        return 0.0
    return usage.memory_bytes / usage.memory_limit_bytes


def pending_reason(row: PodRow) -> tuple[str, str] | Unknown:
    """(category, cause) of why a pod has no node; two empty words for one that has, or that is on its way out."""
    if row.waits_since is None or not row.live:
        return ("", "")
    if row.pending is None:
        return NOT_COMPUTED
    if row.pending.category is Category.UNKNOWN:
        return Unknown(UnknownReason.DISAGREE, row.pending.disagreement or row.pending.summary)
    return (str(row.pending.category), row.pending.cause)


def _agrees(row: PodRow) -> bool | Unknown:
    if row.waits_since is None or not row.live:
        return True
    return NOT_COMPUTED if row.pending is None else not row.pending.disagreement


def failure_class(failure: Diagnosis) -> str:
    """
    The kind of a failure, coarser than its cause; rules go by it.

    Images keep their cause (``image-not-found``); a volume that cannot be mounted is told from other configuration, and
    memory of the host from other ends of a process.
    """
    category, cause = failure.category, failure.cause
    if category is Category.IMAGE:
        return cause if cause.startswith("image-") else f"image-{cause}"
    if category is Category.CONFIG:
        return "mount" if any(word in cause for word in ("mount", "volume", "attach")) else "config"
    if category is Category.RUNTIME:
        return "oom-host" if "oom" in cause else "runtime"
    return str(category)
