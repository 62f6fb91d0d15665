"""
The table of metrics: what /metrics serves, what docs/reference/metrics.md says, and what bounds each label.

Names follow prometheus.io/docs/practices/naming: base units, ``_total`` on counters, ``_info`` on what is always 1.
Nothing here can hold text that a person or a container wrote: no prompt, no log line, no secret.
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum

import msgspec

from sevenhop.core.alerts.alert import AlertState, ChangeReason
from sevenhop.core.alerts.rule import Severity
from sevenhop.core.events import Event, StepResult, SyncState
from sevenhop.core.facts.schema import UnknownReason
from sevenhop.core.facts.source import OUTBOX, RULEBOOK
from sevenhop.core.incidents.incident import NotifyReason
from sevenhop.core.objects.kinds import KINDS
from sevenhop.core.remediation.audit import What
from sevenhop.core.remediation.permit import GuardName
from sevenhop.core.remediation.plan import NoPlanReason
from sevenhop.core.remediation.states import PlanState
from sevenhop.core.subject import SubjectKind

GPU_AGENT = "gpu-agent"
"""The source that the agents on GPU nodes are together; see `core.events.SourceChanged`."""

OTHER = "other"
"""Stands for a value that its label's closed set does not have: a new word never makes a new series by itself."""


class MetricType(StrEnum):
    COUNTER = "counter"
    GAUGE = "gauge"
    HISTOGRAM = "histogram"


class DeliveryOutcome(StrEnum):
    """What came of one call of a receiver."""

    DELIVERED = "delivered"
    REFUSED = "refused"  # for good; told again when something changes
    RETRIED = "retried"  # surely did not arrive; again later
    UNCERTAIN = "uncertain"  # nobody knows; the receiver is asked first
    FAULT = "fault"  # an error of ours


class HeartbeatOutcome(StrEnum):
    SENT = "sent"
    FAILED = "failed"
    WITHHELD = "withheld"  # we are not well, so somebody shall notice


class DeadLetterReason(StrEnum):
    """Why a record of the stream could not be used."""

    NOT_A_RECORD = "not_a_record"
    NEWER_FORMAT = "newer_format"
    UNADDRESSED = "unaddressed"  # names no cluster, or no object
    UNKNOWN_CLUSTER = "unknown_cluster"
    WRONG_PARTITION = "wrong_partition"
    UNKNOWN_KIND = "unknown_kind"
    UNREADABLE = "unreadable"  # a record of ours whose content does not decode
    ENGINE = "engine"  # the engine fails on it
    LATE = "late"  # a decision that nobody waits for any more
    UNSIGNED = "unsigned"  # a decision, or an answer, that no door nor the edge of the cluster signed


class OrderRefusal(StrEnum):
    """Why an edge did not take what a worker is said to have written for it."""

    UNREADABLE = "unreadable"
    NEWER_FORMAT = "newer_format"
    UNSIGNED = "unsigned"  # there is a key, and it has no signature
    FORGED = "forged"  # its signature is not that of a worker for this cluster: changed, another's, another key
    REPLAYED = "replayed"  # it came before
    LATE = "late"  # nobody waits for it any more
    NOT_A_REQUEST = "not_a_request"  # of no kind that is sent to an API server


class Claim(StrEnum):
    """What became of a partition when the workers shared them anew."""

    KEPT = "kept"  # nobody else had it meanwhile
    REBUILT = "rebuilt"


class Label(msgspec.Struct, frozen=True):
    """
    Attributes:
        values: All that it can be, with `OTHER` for the rest; None where it is open, and `bound` says by what.
        bound: For people.
    """

    name: str
    bound: str
    values: frozenset[str] | None = None


class Metric(msgspec.Struct, frozen=True, kw_only=True):
    """
    One row.

    Attributes:
        name: As it is served; of a histogram without ``_bucket``.
        buckets: Upper bounds, in the unit of the name.
    """

    name: str
    type: MetricType
    doc: str
    labels: tuple[Label, ...] = ()
    buckets: tuple[float, ...] = ()

    @property
    def label_names(self) -> tuple[str, ...]:
        return tuple(label.name for label in self.labels)

    def values(self, given: Iterable[str]) -> list[str]:
        """Label values as they may leave: those of a closed set, else `OTHER`; open ones cut to `MOST_TEXT`."""
        return [
            value[:MOST_TEXT] if label.values is None else value if value in label.values else OTHER
            for label, value in zip(self.labels, given, strict=True)
        ]


MOST_TEXT = 200
"""Characters of a label's value."""


def event_name(event: type[Event]) -> str:
    """
    The word for a type of event.

    >>> from sevenhop.core.events import GpusSampled
    >>> event_name(GpusSampled)
    'gpus_sampled'
    """
    return "".join(f"_{c.lower()}" if c.isupper() else c for c in event.__name__).lstrip("_")


def _closed(name: str, values: Iterable[str]) -> Label:
    found = sorted(values)
    shown = ", ".join(found) if len(found) <= 8 else f"{len(found)} words"
    return Label(name, shown, frozenset((*found, OTHER)))


CLUSTER = Label("cluster", "clusters of the process")
RECEIVER = Label("receiver", "receivers in the settings")
PARTITION = Label("partition", "kafka.partitions")
_KIND = Label("kind", "kinds.md", frozenset((*KINDS, RULEBOOK, OUTBOX, GPU_AGENT, "", OTHER)))
_SOURCE = (CLUSTER, _KIND)

_PUSH_REFUSALS = (
    "no_token", "unknown_token", "other_account", "not_bound", "other_node", "unreadable", "unanswered", "behind",
)  # fmt: skip
"""Those of `sources.gpu_push.senders.Refusal`, which stands in a layer above; a test compares."""

_SHORT = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0)
_LONG = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0)


def _row(kind: MetricType, name: str, doc: str, *labels: Label, buckets: tuple[float, ...] = ()) -> Metric:
    return Metric(name=f"sevenhop_{name}", type=kind, doc=doc, labels=labels, buckets=buckets)


_C, _G, _H = MetricType.COUNTER, MetricType.GAUGE, MetricType.HISTOGRAM

_ROWS = (
    _row(_G, "build_info", "Always 1; the version that runs.", Label("version", "one"), Label("python", "one")),
    # What comes in
    _row(_C, "events_total", "Events handled, by type and by the kind of object they are about.",
         CLUSTER, _closed("event", (event_name(each) for each in Event.__subclasses__())), _KIND),
    _row(_H, "event_lag_seconds", "From the observation of the oldest event of a step until the step is stored.",
         CLUSTER, buckets=_LONG),
    _row(_H, "step_duration_seconds", "Time that one step took in the engine, and in the store.",
         _closed("part", ("engine", "store")), buckets=_SHORT),
    _row(_G, "leading", "1 if this replica works, 0 while it waits for the Lease that another one has.", CLUSTER),
    _row(_G, "inbox_batches", "Batches that wait for the engine; full at 256, then the sources wait too."),
    _row(_G, "engine_behind_seconds", "How long the step in hand has taken so far; 0 while nothing waits."),
    _row(_G, "input_stalled", "1 while the store refuses, so that input waits."),
    _row(_G, "source_state", "1 for the state that a kind is in; kinds that are not served are left out.",
         *_SOURCE, _closed("state", SyncState)),
    _row(_G, "source_staleness_seconds",
         "Since the API server last said anything about a kind: line, bookmark or list; since our start, if never.",
         *_SOURCE),
    _row(_G, "source_objects", "Objects of a kind that are known.", *_SOURCE),
    _row(_G, "source_unreadable_objects", "Objects of a kind that exist and could not be decoded.", *_SOURCE),
    _row(_C, "source_errors_total", "Requests that failed and streams that broke.", *_SOURCE),
    _row(_C, "source_lists_total", "Complete lists; more than one means that a watch had to start over.", *_SOURCE),
    _row(_C, "gpu_push_events_total", "Samples and XIDs taken from GPU agents.", CLUSTER),
    _row(_C, "gpu_push_refused_total", "Requests of GPU agents that were refused.",
         CLUSTER, _closed("reason", _PUSH_REFUSALS)),
    _row(_G, "dcgm_failing_addresses", "Addresses of dcgm-exporter or Prometheus that cannot be read now.", CLUSTER),
    _row(_G, "dcgm_nameless_series", "Series of the last look that name no node or no GPU.", CLUSTER),
    # The stream, at an edge
    _row(_G, "edge_buffered_events", "Events that wait for Kafka; bounded by runtime.buffered_events.", CLUSTER),
    _row(_C, "edge_events_sent_total", "Events that Kafka has stored.", CLUSTER),
    _row(_G, "edge_stalled", "1 while Kafka does not take what the edge sees.", CLUSTER),
    _row(_C, "edge_orders_refused_total", "Orders for this cluster, and answers to decisions, that the edge refused.",
         CLUSTER, _closed("reason", OrderRefusal)),
    # The stream, at a worker
    _row(_G, "partitions", "Partitions of the stream, all workers together."),
    _row(_G, "partition_ready", "1 once a partition of this worker is rebuilt and takes records.", PARTITION),
    _row(_G, "partition_lag_records", "Records of a partition that are there and were not handled yet.", PARTITION),
    _row(_C, "partition_claims_total", "Partitions claimed, by whether they had to be rebuilt.",
         _closed("how", Claim)),
    _row(_C, "store_forgotten_total", "How often Redis was found to have forgotten what it had promised.", PARTITION),
    _row(_C, "dead_letters_total", "Records that could not be used, kept in the topic of dead letters.",
         _closed("reason", DeadLetterReason)),
    _row(_G, "edge_silence_seconds", "Since the edge of a cluster last said anything to its worker.", CLUSTER),
    _row(_G, "edge_silent", "1 while that is longer than runtime.edge_silence, so that what is known is stale.",
         CLUSTER),
    _row(_G, "edge_key_differs", "1 while the edge of a cluster shows a key that does not belong to the workers'.",
         CLUSTER),
    _row(_C, "edge_stale_records_total", "Records of an earlier edge, left out because a later one speaks.", CLUSTER),
    # What is known
    _row(_G, "unknown_facts", "Facts that are unknown now, by subject and reason.",
         CLUSTER, _closed("subject", SubjectKind), _closed("reason", UnknownReason)),
    _row(_G, "rules", "Rules in force.", CLUSTER),
    _row(_G, "rules_broken", "Rules whose expression fails although every fact is there; their alerts are frozen.",
         CLUSTER),
    _row(_G, "rulebook_problems", "Problems in the files of rules; with any, the earlier rulebook stays in force.",
         CLUSTER),
    _row(_G, "pods_disagreeing", "Pods for which our verdict contradicts the scheduler's, now.", CLUSTER),
    _row(_C, "scheduler_disagreements_total", "Verdicts of ours that came to contradict the scheduler's.", CLUSTER),
    # What is decided
    _row(_G, "alerts", "Alerts that are pending or firing.", CLUSTER, _closed("state", AlertState)),
    _row(_C, "alert_changes_total", "Alerts that went into another state, and why.",
         CLUSTER, _closed("state", AlertState), _closed("reason", ChangeReason)),
    _row(_G, "incidents_open", "Open incidents by severity.", CLUSTER, _closed("severity", Severity)),
    _row(_C, "notify_decisions_total",
         "Decisions to tell a receiver, or not to; one that only repeats the last one is not counted again.",
         CLUSTER, _closed("reason", NotifyReason)),
    _row(_G, "incidents_without_plan", "Open incidents for which no plan is offered, and why.",
         CLUSTER, _closed("reason", NoPlanReason)),
    _row(_G, "plans", "Plans that are known, by state.", CLUSTER, _closed("state", PlanState)),
    _row(_C, "guard_refusals_total", "Steps in the cluster that the guards did not let pass.",
         CLUSTER, _closed("guard", GuardName)),
    _row(_C, "action_steps_total", "Steps in the cluster whose end is known, by what came of them.",
         CLUSTER, _closed("result", StepResult)),
    _row(_C, "audit_records_total", "Records of the audit trail.", CLUSTER, _closed("what", What)),
    _row(_G, "kill_switch_on", "1 while nothing new may be changed in the cluster.", CLUSTER),
    _row(_G, "circuit_breaker_open", "1 while too many runs have failed; a person closes it.", CLUSTER),
    # What goes out
    _row(_G, "outbox_messages", "Messages and steps that wait.", CLUSTER, RECEIVER),
    _row(_G, "outbox_age_seconds",
         "How long something has waited for a receiver that took nothing meanwhile; 0 while nothing waits.",
         CLUSTER, RECEIVER),
    _row(_G, "outbox_failing", "1 while the last call of a receiver failed.", CLUSTER, RECEIVER),
    _row(_C, "deliveries_total", "Calls of receivers by what came of them; `cluster` are steps in the cluster.",
         CLUSTER, RECEIVER, _closed("outcome", DeliveryOutcome)),
    _row(_H, "delivery_duration_seconds", "Time that one call took.", RECEIVER, buckets=_LONG),
    # The dead man's switch
    _row(_G, "heartbeat_configured", "1 if somebody is told that we live; 0 means that nobody notices our death."),
    _row(_C, "heartbeats_total", "Heartbeats by what came of them.", _closed("outcome", HeartbeatOutcome)),
    _row(_G, "heartbeat_last_success_timestamp_seconds", "When one was last taken; 0 for never."),
    # For joining
    _row(_G, "pod_info", "Always 1, for each pod of a workload; joins your own series on pods with what they serve.",
         CLUSTER, *(Label(name, "telemetry.pod_info_limit") for name in (
             "namespace", "pod", "node", "inference_workload", "inference_workload_component", "model",
             "model_version", "tier"))),
    _row(_G, "pod_info_left_out", "Pods that `sevenhop_pod_info` leaves out, because of its limit.", CLUSTER),
)  # fmt: skip

METRICS: dict[str, Metric] = {row.name: row for row in _ROWS}
"""By name, in the order of the page."""
