"""
What is read from one pod of a workload: everything that components, nodes and Services sum up.

Most pod events change no row, and what changes no row costs nothing further down.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

import msgspec

from sevenhop.core.hops.diagnosis import Category, Diagnosis
from sevenhop.core.inventory.objects import Key
from sevenhop.core.inventory.ownership import kind_name, owner_of
from sevenhop.core.inventory.workloads import Membership
from sevenhop.core.objects.base import condition
from sevenhop.core.objects.pod import Container, ContainerStatus, Pod


class PodRow(msgspec.Struct, frozen=True, gc=False, kw_only=True):
    """
    Attributes:
        group: Which replica of a multi-pod group; empty otherwise.
        gang: Pods that only work together, as the framework's labels name them; empty otherwise.
        live: Neither finished nor being deleted.
        judged: The scheduler has said that it fits nowhere, or holds it back.
        waits_since: When it said so first; its creation where it never said anything; None for a pod with a node.
        placed_at: When it got its node; None without one, or where no condition tells.
        pending: Why it has no node, as last computed; None while not computed, and for a pod with a node.
        failure: Why a pod with a node is not well; None while it is.
        restarts: Within 10 minutes; None where earlier ones may lie in the window.
        version: Model version and image of the main container: the release unit.
        family, revision: The controller that makes it, and which of its templates it was made from.
        load_overdue: Its engine runs, is not ready, and took longer than loads of its release take.
        unreadable: The object as it is now could not be decoded; the rest is what was known before.
    """

    key: Key
    uid: str
    workload: Key
    component: str
    group: str
    gang: str
    node: str
    phase: str
    live: bool
    terminating: bool
    ready: bool
    started: bool
    judged: bool
    waits_since: datetime | None
    placed_at: datetime | None
    created: datetime | None
    pending: Diagnosis | None
    failure: Diagnosis | None
    gpus: int
    resource: str
    priority: int
    restarts: int | None
    version: str
    image: str
    family: str
    revision: str
    load_overdue: bool
    unreadable: bool

    @property
    def waiting(self) -> bool:
        """Without a node because none takes it: the scheduler said so, or we computed it."""
        if self.waits_since is None or not self.live:
            return False
        return self.judged or (self.pending is not None and self.pending.category is not Category.NONE)


class PodShape(msgspec.Struct, frozen=True, gc=False, kw_only=True):
    """
    What of a pod its status never changes: read once, and again when anything but the status differs.

    Attributes:
        gpus: Accelerators that it asks for, by resource.
        resource: That of which it asks most; empty without any.
        main: Its engine; see `main_container`.
        is_plugin: See `is_plugin`.
        gang, family, revision: As in `PodRow`.
    """

    gpus: dict[str, int]
    resource: str
    main: Container | None
    image: str
    gang: str
    family: str
    revision: str
    is_plugin: bool


def shape_of(pod: Pod, gpus: dict[str, int]) -> PodShape:
    """`gpus` is what it asks for."""
    main = main_container(pod.spec.containers)
    family, revision = made_by(pod)
    return PodShape(
        gpus=gpus,
        resource=max(gpus, key=lambda name: (gpus[name], name), default=""),
        main=main,
        image=main.image if main is not None else "",
        gang=gang_of(pod),
        family=family,
        revision=revision,
        is_plugin=is_plugin(pod),
    )


def pod_row(
    pod: Pod,
    shape: PodShape,
    membership: Membership,
    *,
    pending: Diagnosis | None,
    failure: Diagnosis | None,
    restarts: int | None,
    load_overdue: bool,
    unreadable: bool,
) -> PodRow:
    """Read one pod; `pending`, `failure` and `restarts` are computed by the caller."""
    meta, spec, status = pod.metadata, pod.spec, pod.status
    scheduled = condition(status.conditions, "PodScheduled")
    judged = scheduled is not None and scheduled.status == "False"
    has_node = bool(spec.node_name)
    terminating = pod.is_terminating
    engine = status_of(pod, shape.main)
    return PodRow(
        key=meta.key,
        uid=meta.uid or f"{meta.namespace}/{meta.name}",
        workload=membership.workload,
        component=membership.component,
        group=membership.group,
        gang=shape.gang,
        node=spec.node_name,
        phase=status.phase or "Pending",
        live=not terminating and not pod.is_finished,
        terminating=terminating,
        ready=is_ready(pod),
        started=engine is not None and engine.state.running is not None,
        judged=judged,
        waits_since=None if has_node else _waits_since(pod, judged=judged),
        placed_at=scheduled.last_transition_time if has_node and scheduled is not None else None,
        created=meta.creation_timestamp,
        pending=None if has_node else pending,
        failure=failure,
        gpus=sum(shape.gpus.values()),
        resource=shape.resource,
        priority=spec.priority or 0,
        restarts=restarts,
        version=_version(membership, shape, engine),
        image=shape.image,
        family=shape.family,
        revision=shape.revision,
        load_overdue=load_overdue,
        unreadable=unreadable,
    )


def is_ready(pod: Pod) -> bool:
    """A pod that is being deleted takes no new requests, whatever its condition still says."""
    said = condition(pod.status.conditions, "Ready")
    return said is not None and said.status == "True" and not pod.is_terminating


def main_container(containers: Sequence[Container]) -> Container | None:
    """The engine: the one that asks for accelerators, else the first."""
    for container in containers:
        if any("/" in name for name in (*container.resources.limits, *container.resources.requests)):
            return container
    return containers[0] if containers else None


def status_of(pod: Pod, container: Container | None) -> ContainerStatus | None:
    """What the kubelet says of one of its containers; None while it says nothing."""
    if container is not None:
        for status in pod.status.container_statuses:
            if status.name == container.name:
                return status
    return None


def runs_since(status: ContainerStatus | None) -> datetime | None:
    """Since when a container runs without a break; None while it does not."""
    return status.state.running.started_at if status is not None and status.state.running is not None else None


_REVISIONS: tuple[tuple[str, str], ...] = (
    # (label that names the controller, label that names the template), the outermost controller first: each of its
    # StatefulSets has revisions of its own.
    ("leaderworkerset.sigs.k8s.io/name", "leaderworkerset.sigs.k8s.io/template-revision-hash"),
    ("grove.io/podclique", "grove.io/pod-template-hash"),
    ("storm-service-name", "storm-service-revision"),
    ("ray.io/originated-from-cr-name", "ray.io/cluster"),
)


def made_by(pod: Pod) -> tuple[str, str]:
    """
    (controller as ``Kind/name``, revision), the revision empty where nothing tells.

    Two revisions of one controller among live pods: a rollout.
    """
    labels = pod.metadata.labels
    for name, template in _REVISIONS:
        if labels.get(name) and labels.get(template):
            return f"{name}/{labels[name]}", labels[template]
    owner = owner_of(pod.metadata)
    if owner is None:
        return "", ""
    kind = kind_name(owner)
    template = labels.get("pod-template-hash", "")
    if kind == "ReplicaSet.apps" and template:
        return f"Deployment.apps/{owner.name.removesuffix(f'-{template}')}", template
    return f"{kind}/{owner.name}", labels.get("controller-revision-hash", "")


_GANGS: tuple[str, ...] = (
    "grove.io/podgang",
    "scheduling.k8s.io/group-name",
    "scheduling.volcano.sh/group-name",
    "pod-group-name",
    "scheduling.x-k8s.io/pod-group",
    "kueue.x-k8s.io/pod-group-name",
)
"""Labels or annotations of Grove, Volcano, KAI, coscheduling and Kueue that name the gang."""


def gang_of(pod: Pod) -> str:
    meta = pod.metadata
    return next((found for key in _GANGS if (found := meta.labels.get(key) or meta.annotations.get(key))), "")


PLUGIN = "device-plugin"
_PLUGIN_LABELS = ("app", "name", "k8s-app", "app.kubernetes.io/name", "app.kubernetes.io/component")


def is_plugin(pod: Pod) -> bool:
    """Whether a pod advertises devices to the kubelet: NVIDIA's, AMD's, Intel's and the clouds' own say so by name."""
    meta = pod.metadata
    return PLUGIN in meta.name or any(PLUGIN in meta.labels.get(label, "") for label in _PLUGIN_LABELS)


def _waits_since(pod: Pod, *, judged: bool) -> datetime | None:
    said = condition(pod.status.conditions, "PodScheduled")
    if judged and said is not None and said.last_transition_time is not None:
        return said.last_transition_time
    return pod.metadata.creation_timestamp


def _version(membership: Membership, shape: PodShape, engine: ContainerStatus | None) -> str:
    """What runs, not what was asked for: the digest where the kubelet tells it, the same on every node."""
    image = engine.image_id.rpartition("@")[2] if engine is not None and engine.image_id else shape.image
    return f"{membership.model.version} {image}".strip()
