"""Nodes, controllers, policy, services, autoscalers and events."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any

import msgspec

from sevenhop.core.objects.base import (
    Condition,
    LabelSelector,
    Object,
    Quantities,
    Slim,
)
from sevenhop.core.objects.pod import ControllerTemplate


class Taint(Slim):
    key: str = ""
    value: str = ""
    effect: str = ""


class NodeSpec(Slim):
    unschedulable: bool = False
    taints: Sequence[Taint] = ()


class NodeStatus(Slim):
    capacity: Quantities = {}
    allocatable: Quantities = {}
    conditions: Sequence[Condition] = ()


class Node(Object):
    spec: NodeSpec = msgspec.field(default_factory=NodeSpec)
    status: NodeStatus = msgspec.field(default_factory=NodeStatus)


class Namespace(Object):
    pass


class PriorityClass(Object):
    value: int = 0
    preemption_policy: str = "PreemptLowerPriority"


class RuntimeClass(Object):
    overhead: dict[str, Quantities] | None = None
    scheduling: dict[str, Any] | None = None


class ReplicasSpec(Slim):
    """Spec of Deployment, ReplicaSet, StatefulSet, DaemonSet and Job alike."""

    replicas: int | None = None
    selector: LabelSelector | None = None
    template: ControllerTemplate = msgspec.field(default_factory=ControllerTemplate)
    paused: bool = False
    suspend: bool = False
    parallelism: int | None = None
    completions: int | None = None
    service_name: str = ""
    pod_management_policy: str = ""
    strategy: dict[str, Any] | None = None
    update_strategy: dict[str, Any] | None = None
    min_ready_seconds: int = 0
    progress_deadline_seconds: int | None = None
    persistent_volume_claim_retention_policy: dict[str, Any] | None = None


class ReplicasStatus(Slim):
    replicas: int = 0
    ready_replicas: int = 0
    updated_replicas: int = 0
    unavailable_replicas: int = 0
    desired_number_scheduled: int = 0
    observed_generation: int = 0
    current_revision: str = ""
    update_revision: str = ""
    conditions: Sequence[Condition] = ()


class Controller(Object):
    """Deployment, ReplicaSet, StatefulSet, DaemonSet or Job."""

    spec: ReplicasSpec = msgspec.field(default_factory=ReplicasSpec)
    status: ReplicasStatus = msgspec.field(default_factory=ReplicasStatus)


class PdbSpec(Slim):
    min_available: int | str | None = None
    max_unavailable: int | str | None = None
    selector: LabelSelector | None = None
    unhealthy_pod_eviction_policy: str = ""


class PdbStatus(Slim):
    disruptions_allowed: int = 0
    current_healthy: int = 0
    desired_healthy: int = 0


class PodDisruptionBudget(Object):
    spec: PdbSpec = msgspec.field(default_factory=PdbSpec)
    status: PdbStatus = msgspec.field(default_factory=PdbStatus)


class QuotaAmounts(Slim):
    hard: Quantities = {}
    used: Quantities = {}


class _ScopeSelectorShape(Slim):
    match_expressions: Sequence[dict[str, Any]] | None = None


class _QuotaShape(Slim):
    """What of a quota is read as a table or a list must be one."""

    hard: dict[str, Any] | None = None
    scopes: Sequence[str] | None = None
    scope_selector: _ScopeSelectorShape | None = None


class ResourceQuota(Object):
    """`spec` as written; its shape is checked when it is decoded."""

    spec: dict[str, Any] = {}
    status: QuotaAmounts = msgspec.field(default_factory=QuotaAmounts)

    def __post_init__(self) -> None:
        msgspec.convert(self.spec, _QuotaShape)


class _LimitShape(Slim):
    """What of a limit is read as a table must be one."""

    default: dict[str, Any] | None = None
    default_request: dict[str, Any] | None = None
    min: dict[str, Any] | None = None
    max: dict[str, Any] | None = None
    max_limit_request_ratio: dict[str, Any] | None = None


class _LimitsShape(Slim):
    limits: Sequence[_LimitShape] | None = None


class LimitRange(Object):
    """`spec` as written; its shape is checked when it is decoded."""

    spec: dict[str, Any] = {}

    def __post_init__(self) -> None:
        msgspec.convert(self.spec, _LimitsShape)


class ObjectRef(Slim):
    kind: str = ""
    namespace: str = ""
    name: str = ""
    uid: str = ""
    api_version: str = ""
    field_path: str = ""


class ServicePort(Slim):
    name: str = ""
    port: int = 0
    target_port: int | str | None = None


class ServiceSpec(Slim):
    selector: dict[str, str] = {}
    ports: Sequence[ServicePort] = ()
    type: str = ""


class Service(Object):
    spec: ServiceSpec = msgspec.field(default_factory=ServiceSpec)


class EndpointConditions(Slim):
    ready: bool | None = None
    serving: bool | None = None
    terminating: bool | None = None


class Endpoint(Slim):
    addresses: Sequence[str] = ()
    conditions: EndpointConditions = msgspec.field(default_factory=EndpointConditions)
    target_ref: ObjectRef | None = None


class EndpointPort(Slim):
    name: str | None = ""
    port: int | None = None


class EndpointSlice(Object):
    endpoints: Sequence[Endpoint] = ()
    ports: Sequence[EndpointPort] = ()


class ScaleTarget(Slim):
    kind: str = ""
    name: str = ""
    api_version: str = ""


class HpaSpec(Slim):
    scale_target_ref: ScaleTarget = msgspec.field(default_factory=ScaleTarget)
    min_replicas: int | None = None
    max_replicas: int = 0


class HpaStatus(Slim):
    desired_replicas: int = 0
    conditions: Sequence[Condition] = ()


class HorizontalPodAutoscaler(Object):
    spec: HpaSpec = msgspec.field(default_factory=HpaSpec)
    status: HpaStatus = msgspec.field(default_factory=HpaStatus)


class EventSeries(Slim):
    count: int = 0
    last_observed_time: datetime | None = None


class EventSource(Slim):
    component: str = ""


class Event(Object):
    """A Kubernetes Event of either API; evidence, never the only ground for a state."""

    involved_object: ObjectRef = msgspec.field(default_factory=ObjectRef)
    regarding: ObjectRef | None = None
    type: str = ""
    reason: str = ""
    message: str = ""
    note: str = ""
    count: int | None = None
    first_timestamp: datetime | None = None
    last_timestamp: datetime | None = None
    event_time: datetime | None = None
    series: EventSeries | None = None
    source: EventSource | None = None
    reporting_component: str = ""

    @property
    def about(self) -> ObjectRef:
        return self.regarding or self.involved_object

    @property
    def text(self) -> str:
        return self.message or self.note

    @property
    def last_seen(self) -> datetime | None:
        """The newest of the four times that an Event may carry, any of which may be null."""
        series = self.series.last_observed_time if self.series else None
        times = (series, self.last_timestamp, self.event_time, self.first_timestamp)
        known = [t for t in times if t is not None]
        return max(known) if known else self.metadata.creation_timestamp
