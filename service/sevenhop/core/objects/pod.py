"""Pods: what the scheduler reads, and what the kubelet says."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any

import msgspec

from sevenhop.core.objects.base import Condition, LabelSelector, Meta, Object, Quantities, Slim
from sevenhop.core.objects.base import SelectorRequirement as SelectorRequirement


class ClaimRef(Slim):
    name: str
    request: str = ""


class Resources(Slim):
    requests: Quantities = {}
    limits: Quantities = {}
    claims: Sequence[ClaimRef] = ()


class ContainerPort(Slim):
    container_port: int = 0
    host_port: int = 0
    host_ip: str = msgspec.field(name="hostIP", default="")
    protocol: str = "TCP"
    name: str = ""


class EnvVar(Slim):
    """Name and literal value; a value that comes from a Secret or ConfigMap is never read."""

    name: str
    value: str = ""


class HttpGet(Slim):
    path: str = ""
    port: int | str = 0


class Probe(Slim):
    initial_delay_seconds: int = 0
    period_seconds: int = 10
    failure_threshold: int = 3
    http_get: HttpGet | None = None

    @property
    def budget_s(self) -> int:
        """Seconds that this probe allows before it gives up."""
        return self.initial_delay_seconds + self.period_seconds * self.failure_threshold


class ExecAction(Slim):
    command: Sequence[str] = ()


class LifecycleHandler(Slim):
    exec: ExecAction = msgspec.field(default_factory=ExecAction)


class Lifecycle(Slim):
    post_start: LifecycleHandler = msgspec.field(default_factory=LifecycleHandler)


class Container(Slim):
    name: str = ""
    image: str = ""
    command: Sequence[str] = ()
    args: Sequence[str] = ()
    env: Sequence[EnvVar] = ()
    ports: Sequence[ContainerPort] = ()
    resources: Resources = msgspec.field(default_factory=Resources)
    restart_policy: str = ""
    startup_probe: Probe | None = None
    readiness_probe: Probe | None = None
    liveness_probe: Probe | None = None
    lifecycle: Lifecycle | None = None


class NodeSelectorTerm(Slim):
    match_expressions: Sequence[SelectorRequirement] = ()
    match_fields: Sequence[SelectorRequirement] = ()


class NodeSelector(Slim):
    node_selector_terms: Sequence[NodeSelectorTerm] = ()


class NodeAffinity(Slim):
    required: NodeSelector | None = msgspec.field(name="requiredDuringSchedulingIgnoredDuringExecution", default=None)


class PodAffinityTerm(Slim):
    topology_key: str = ""
    label_selector: LabelSelector | None = None
    namespaces: Sequence[str] = ()
    namespace_selector: LabelSelector | None = None
    match_label_keys: Sequence[str] = ()
    mismatch_label_keys: Sequence[str] = ()


class PodAffinity(Slim):
    required: Sequence[PodAffinityTerm] = msgspec.field(
        name="requiredDuringSchedulingIgnoredDuringExecution", default=()
    )


class Affinity(Slim):
    node_affinity: NodeAffinity | None = None
    pod_affinity: PodAffinity | None = None
    pod_anti_affinity: PodAffinity | None = None


class Toleration(Slim):
    key: str = ""
    operator: str = "Equal"
    value: str = ""
    effect: str = ""
    toleration_seconds: int | None = None


class TopologySpread(Slim):
    max_skew: int = 1
    topology_key: str = ""
    when_unsatisfiable: str = "DoNotSchedule"
    label_selector: LabelSelector | None = None
    min_domains: int | None = None
    node_affinity_policy: str = "Honor"
    node_taints_policy: str = "Ignore"
    match_label_keys: Sequence[str] = ()


class Named(Slim):
    name: str = ""


class PvcSource(Slim):
    claim_name: str = ""


class EphemeralSource(Slim):
    volume_claim_template: dict[str, Any] = {}


class Volume(Slim):
    name: str = ""
    persistent_volume_claim: PvcSource | None = None
    ephemeral: EphemeralSource | None = None
    csi: dict[str, Any] | None = None
    config_map: dict[str, Any] | None = None
    secret: dict[str, Any] | None = None
    image: dict[str, Any] | None = None


class PodResourceClaim(Slim):
    name: str
    resource_claim_name: str | None = None
    resource_claim_template_name: str | None = None


class PodSpec(Slim):
    node_name: str = ""
    containers: Sequence[Container] = ()
    init_containers: Sequence[Container] = ()
    node_selector: dict[str, str] = {}
    affinity: Affinity | None = None
    tolerations: Sequence[Toleration] = ()
    priority: int | None = None
    priority_class_name: str = ""
    preemption_policy: str = "PreemptLowerPriority"
    scheduler_name: str = "default-scheduler"
    scheduling_gates: Sequence[Named] = ()
    topology_spread_constraints: Sequence[TopologySpread] = ()
    volumes: Sequence[Volume] = ()
    resource_claims: Sequence[PodResourceClaim] = ()
    resources: Resources | None = None
    overhead: Quantities = {}
    runtime_class_name: str = ""
    host_network: bool = False
    restart_policy: str = "Always"
    termination_grace_period_seconds: int = 30
    service_account_name: str = ""
    scheduling_group: dict[str, Any] | None = None


class Waiting(Slim):
    reason: str = ""
    message: str = ""


class Running(Slim):
    started_at: datetime | None = None


class Terminated(Slim):
    exit_code: int = 0
    signal: int = 0
    reason: str = ""
    message: str = ""
    started_at: datetime | None = None
    finished_at: datetime | None = None


class ContainerState(Slim):
    waiting: Waiting | None = None
    running: Running | None = None
    terminated: Terminated | None = None


class ContainerStatus(Slim):
    name: str = ""
    ready: bool = False
    started: bool | None = None
    restart_count: int = 0
    image: str = ""
    image_id: str = msgspec.field(name="imageID", default="")
    state: ContainerState = msgspec.field(default_factory=ContainerState)
    last_state: ContainerState = msgspec.field(default_factory=ContainerState)
    resources: Resources | None = None
    allocated_resources: Quantities = {}


class ResourceClaimStatus(Slim):
    name: str
    resource_claim_name: str | None = None


class PodStatus(Slim):
    phase: str = ""
    reason: str = ""
    message: str = ""
    conditions: Sequence[Condition] = ()
    container_statuses: Sequence[ContainerStatus] = ()
    init_container_statuses: Sequence[ContainerStatus] = ()
    nominated_node_name: str = ""
    start_time: datetime | None = None
    resource_claim_statuses: Sequence[ResourceClaimStatus] = ()
    extended_resource_claim_status: dict[str, Any] | None = None
    resize: str = ""


class Pod(Object):
    spec: PodSpec = msgspec.field(default_factory=PodSpec)
    status: PodStatus = msgspec.field(default_factory=PodStatus)

    @property
    def is_finished(self) -> bool:
        """Finished pods hold nothing and will never run again."""
        return self.status.phase in ("Succeeded", "Failed")

    @property
    def is_terminating(self) -> bool:
        """Being deleted; still holds its resources."""
        return self.metadata.deletion_timestamp is not None


class PodTemplate(Slim):
    metadata: Meta = msgspec.field(default_factory=Meta)
    spec: PodSpec = msgspec.field(default_factory=PodSpec)


class Capabilities(Slim):
    add: Sequence[str] = ()
    drop: Sequence[str] = ()


class SeccompProfile(Slim):
    type: str = ""


class SecurityContext(Slim):
    """Of a pod or a container, as far as Pod Security reads it."""

    privileged: bool = False
    run_as_non_root: bool | None = None
    allow_privilege_escalation: bool | None = None
    capabilities: Capabilities | None = None
    seccomp_profile: SeccompProfile | None = None
    app_armor_profile: SeccompProfile | None = None
    se_linux_options: dict[str, Any] | None = None
    windows_options: dict[str, Any] | None = None
    proc_mount: str = ""
    run_as_user: int | None = None
    sysctls: Sequence[dict[str, Any]] = ()


class TemplateContainer(Container):
    security_context: SecurityContext | None = None


class TemplateVolume(Volume):
    """The kinds that Pod Security speaks of beside those that placement reads."""

    host_path: dict[str, Any] | None = None
    nfs: dict[str, Any] | None = None
    iscsi: dict[str, Any] | None = None
    fc: dict[str, Any] | None = None
    cephfs: dict[str, Any] | None = None
    rbd: dict[str, Any] | None = None
    glusterfs: dict[str, Any] | None = None
    flex_volume: dict[str, Any] | None = None


class TemplateSpec(PodSpec):
    """A pod still to be made: what admission will look at, which no running pod needs to carry in memory."""

    volumes: Sequence[TemplateVolume] = ()

    containers: Sequence[TemplateContainer] = ()
    init_containers: Sequence[TemplateContainer] = ()
    host_ipc: bool = msgspec.field(name="hostIPC", default=False)
    host_pid: bool = msgspec.field(name="hostPID", default=False)
    security_context: SecurityContext | None = None


class ControllerTemplate(PodTemplate):
    spec: TemplateSpec = msgspec.field(default_factory=TemplateSpec)
