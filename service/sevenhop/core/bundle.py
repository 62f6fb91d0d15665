"""
Diagnosis of a set of objects, without a cluster: the document of `sevenhop diagnose`, and of `scan`.

The same inventory and the same diagnosis as in the running service; only the input is a file.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

import msgspec

from sevenhop.core.hops.diagnosis import Category, Confidence, Diagnosis, Evidence
from sevenhop.core.hops.failures import why_not_well
from sevenhop.core.hops.findings import Finding, findings
from sevenhop.core.hops.pods import awaits_node, is_well
from sevenhop.core.hops.scheduling import why_pending
from sevenhop.core.inventory.compare import is_ready
from sevenhop.core.inventory.discovery import Discovery
from sevenhop.core.inventory.dra import gpu_devices
from sevenhop.core.inventory.framework import FrameworkSpec
from sevenhop.core.inventory.ledger import pools
from sevenhop.core.inventory.objects import Key, Objects
from sevenhop.core.inventory.policy import Policy
from sevenhop.core.objects.cluster import Event
from sevenhop.core.objects.pod import Pod
from sevenhop.core.placement.cluster import Cluster
from sevenhop.core.placement.devices import CLAIMS, SLICES

SCHEMA = "sevenhop.dev/diagnosis/v1"


class ModelRow(msgspec.Struct, frozen=True):
    name: str
    version: str


class VersionRow(msgspec.Struct, frozen=True):
    """What some pods of a component run."""

    model: ModelRow
    ready: int
    pods: list[str]


class ComponentRow(msgspec.Struct, frozen=True, kw_only=True):
    """
    Attributes:
        versions: Which pods run which model, where its pods differ in it: a rollout, or a canary.
    """

    name: str
    role: str
    desired: int | None
    ready: int
    gpu_per_replica: int
    pods: list[str]
    model: ModelRow
    versions: list[VersionRow] = []


class WorkloadRow(msgspec.Struct, frozen=True, kw_only=True):
    namespace: str
    name: str
    framework: str
    kind: str
    model: ModelRow
    tier: str | None
    owner: str
    components: list[ComponentRow]


class PodRow(msgspec.Struct, frozen=True, kw_only=True):
    namespace: str
    name: str
    workload: str | None
    component: str | None
    phase: str
    node: str
    hop: str | None
    category: str
    cause: str
    confidence: str
    summary: str
    evidence: list[Evidence]
    next_steps: list[str]
    excluded: dict[str, int]
    would_help: list[str]
    not_preempted: str
    disagreement: str
    unmodelled: list[str]


class SubjectRow(msgspec.Struct, frozen=True):
    kind: str
    namespace: str
    name: str


class FindingRow(msgspec.Struct, frozen=True, kw_only=True):
    subject: SubjectRow
    hop: str | None
    category: str
    cause: str
    confidence: str
    summary: str
    evidence: list[Evidence]
    next_steps: list[str]


class CapacityRow(msgspec.Struct, frozen=True, kw_only=True):
    """
    Attributes:
        free: As `bound`, `releasing` and `largest_free_block`: None where who has the devices was not collected, or not
            all of it could be read.
    """

    product: str
    resource: str
    allocatable: int
    bound: int | None
    releasing: int | None
    free: int | None
    cordoned: int
    unhealthy: int
    largest_free_block: int | None


class Report(msgspec.Struct, frozen=True, kw_only=True):
    """Everything that can be said about the objects."""

    workloads: list[WorkloadRow]
    pods: list[PodRow]
    findings: list[FindingRow]
    capacity: list[CapacityRow]
    skipped: list[tuple[str, str, str, str]]


def diagnose(objects: Objects, frameworks: Sequence[FrameworkSpec], policy: Policy, *, now: datetime | None) -> Report:
    """
    Diagnose what is in `objects`.

    Args:
        now: Time to judge start-up budgets by; None takes the newest time that an object itself carries.
    """
    discovery = Discovery(objects, frameworks, policy)
    discovery.settle()
    cluster = Cluster(objects)
    events = _events_by_pod(objects)
    rows = []
    for key, pod in sorted(objects.pods().items()):
        found = diagnose_pod(cluster, pod, events.get(key, ()), now=now)
        if found is not None:
            rows.append(_pod_row(discovery, key, pod, found))
    return Report(
        workloads=_workload_rows(objects, discovery),
        pods=rows,
        findings=[_finding_row(f) for f in findings(objects)],
        capacity=_capacity_rows(objects, cluster),
        skipped=[(kind, key[0], key[1], reason) for kind, key, reason in discovery.skipped],
    )


def diagnose_pod(cluster: Cluster, pod: Pod, events: Sequence[Event], *, now: datetime | None) -> Diagnosis | None:
    """Why a pod is not well; None if it is."""
    if is_well(pod, now):
        return None
    if awaits_node(pod):
        pending = why_pending(cluster, pod)
        if cluster.order or pending.category is not Category.UNKNOWN:
            return pending
        # A fragment without nodes: its Events may be a kubelet's.
    return why_not_well(pod, events, now=now) or Diagnosis(
        hop=None,
        category=Category.UNKNOWN,
        cause="unknown",
        confidence=Confidence.UNKNOWN,
        summary=f"is {pod.status.phase or 'in no phase'} and not ready; nothing in its status says why",
    )


def _events_by_pod(objects: Objects) -> dict[Key, list[Event]]:
    found: dict[Key, list[Event]] = {}
    for event in objects.of("Event").values():
        if isinstance(event, Event) and event.about.kind == "Pod":
            found.setdefault((event.about.namespace, event.about.name), []).append(event)
    return found


def _capacity_rows(objects: Objects, cluster: Cluster) -> list[CapacityRow]:
    unseen = _held_by_unseen_claims(objects, cluster)
    rows = []
    for pool in pools(objects):
        is_seen = objects.is_known("Pod") and pool.resource not in unseen
        rows.append(
            CapacityRow(
                product=pool.product.removesuffix(f"/{pool.resource}"),
                resource=pool.resource,
                allocatable=pool.allocatable,
                bound=pool.bound if is_seen else None,
                releasing=pool.releasing if is_seen else None,
                free=pool.free if is_seen else None,
                cordoned=pool.cordoned,
                unhealthy=pool.unhealthy,
                largest_free_block=pool.largest_free_block if is_seen else None,
            )
        )
    return rows


def _held_by_unseen_claims(objects: Objects, cluster: Cluster) -> frozenset[str]:
    """Resources of DRA drivers whose devices nobody knows the holders of: ResourceClaims were not collected."""
    if objects.of(CLAIMS) or not objects.of(SLICES) or cluster.absence.counts(CLAIMS):
        return frozenset()
    published = gpu_devices(objects)
    return frozenset(each.resource for _, name in objects.nodes() for each in published.on(name))


def _workload_rows(objects: Objects, discovery: Discovery) -> list[WorkloadRow]:
    pods = objects.pods()
    rows = []
    for key, workload in sorted(discovery.workloads.items()):
        components = []
        for component in workload.components:
            members = sorted(discovery.pods_of(key, component.name))
            ready = discovery.ready(key, component.name)
            components.append(
                ComponentRow(
                    name=component.name,
                    role=component.role,
                    desired=component.desired,
                    ready=ready,
                    gpu_per_replica=component.gpus_per_replica,
                    pods=[name for _, name in members if (_, name) in pods],
                    model=ModelRow(component.model.name, component.model.version),
                    versions=_version_rows(objects, discovery, members),
                )
            )
        rows.append(
            WorkloadRow(
                namespace=workload.namespace,
                name=workload.name,
                framework=workload.framework,
                kind=workload.kind,
                model=ModelRow(workload.model.name, workload.model.version),
                tier=workload.tier,
                owner=workload.owner,
                components=components,
            )
        )
    return rows


def _version_rows(objects: Objects, discovery: Discovery, members: Sequence[Key]) -> list[VersionRow]:
    """By model and version; none where all pods run the same."""
    pods = objects.pods()
    by_model: dict[tuple[str, str], list[Pod]] = {}
    for key in members:
        membership, pod = discovery.membership(key), pods.get(key)
        if membership is not None and pod is not None and not pod.is_finished and membership.model.name:
            by_model.setdefault((membership.model.name, membership.model.version), []).append(pod)
    if len(by_model) < 2:
        return []
    return [
        VersionRow(
            ModelRow(*model),
            sum(is_ready(pod) for pod in found),
            [pod.metadata.name for pod in found],
        )
        for model, found in sorted(by_model.items())
    ]


def _pod_row(discovery: Discovery, key: Key, pod: Pod, d: Diagnosis) -> PodRow:
    membership = discovery.membership(key)
    return PodRow(
        namespace=key[0],
        name=key[1],
        workload=membership.workload[1] if membership else None,
        component=membership.component if membership else None,
        phase=pod.status.phase or "Pending",
        node=pod.spec.node_name,
        hop=d.hop,
        category=d.category,
        cause=d.cause,
        confidence=d.confidence,
        summary=d.summary,
        evidence=list(d.evidence),
        next_steps=list(d.next_steps),
        excluded=dict(d.excluded),
        would_help=list(d.would_help),
        not_preempted=d.not_preempted,
        disagreement=d.disagreement,
        unmodelled=list(d.unmodelled),
    )


def _finding_row(finding: Finding) -> FindingRow:
    d = finding.diagnosis
    return FindingRow(
        subject=SubjectRow(finding.kind, finding.namespace, finding.name),
        hop=d.hop,
        category=d.category,
        cause=d.cause,
        confidence=d.confidence,
        summary=d.summary,
        evidence=list(d.evidence),
        next_steps=list(d.next_steps),
    )
