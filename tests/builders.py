"""
Small builders of typed objects and events for unit tests: only what a test says differs from a healthy default.

Times are UTC; `NOON` is when everything began, so that a test says ``at(90)`` for a minute and a half later.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from itertools import count
from typing import Any

import msgspec

from sevenhop.core import events as e
from sevenhop.core.alerts.rule import Severity
from sevenhop.core.effects import Message, Notify
from sevenhop.core.objects import cluster as c
from sevenhop.core.objects import pod as p
from sevenhop.core.objects.base import Condition, Custom, LabelSelector, Meta, Object, OwnerRef
from sevenhop.core.objects.kinds import KINDS, kind_of

NOON = datetime(2026, 11, 30, 12, tzinfo=UTC)
H100 = "NVIDIA-H100-80GB-HBM3"
GPU = "nvidia.com/gpu"
VLLM = "vllm/vllm-openai:v0.11.0"


def at(seconds: float) -> datetime:
    return NOON + timedelta(seconds=seconds)


def owner(obj: Object, kind: str) -> OwnerRef:
    """`kind` is as in `KINDS`."""
    row = KINDS[kind]
    version = f"{row.group}/{row.versions[0]}" if row.group else row.versions[0]
    return OwnerRef(kind=row.kind, name=obj.metadata.name, uid=obj.metadata.uid, api_version=version, controller=True)


def meta(
    name: str,
    namespace: str = "prod",
    *,
    uid: str = "",
    labels: Mapping[str, str] | None = None,
    annotations: Mapping[str, str] | None = None,
    owners: Sequence[OwnerRef] = (),
    created: datetime = NOON,
    generation: int = 0,
) -> Meta:
    return Meta(
        name=name,
        namespace=namespace,
        uid=uid or f"uid-{namespace}-{name}",
        labels=dict(labels or {}),
        annotations=dict(annotations or {}),
        owner_references=tuple(owners),
        creation_timestamp=created,
        generation=generation,
    )


def container(
    image: str = VLLM,
    *,
    gpus: int = 0,
    args: Sequence[str] = (),
    name: str = "main",
    resource: str = GPU,
    port: int = 8000,
) -> p.Container:
    amounts: dict[str, str | int | float] = {"cpu": "1", "memory": "1Gi"}
    if gpus:
        amounts[resource] = str(gpus)
    return p.Container(
        name=name,
        image=image,
        args=tuple(args),
        ports=(p.ContainerPort(container_port=port, name="http"),),
        resources=p.Resources(requests=amounts, limits={k: v for k, v in amounts.items() if "/" in k}),
    )


def pod(
    name: str,
    namespace: str = "prod",
    *,
    uid: str = "",
    labels: Mapping[str, str] | None = None,
    owners: Sequence[OwnerRef] = (),
    node: str = "",
    gpus: int = 0,
    image: str = VLLM,
    args: Sequence[str] = ("--model", "meta-llama/Llama-3.1-70B"),
    phase: str = "",
    ready: bool | None = None,
    unschedulable: str | None = None,
    since: datetime = NOON,
    created: datetime = NOON,
    waiting: str = "",
    message: str = "",
    restarts: int = 0,
    last_end: datetime | None = None,
    exit_code: int = 1,
    priority: int | None = None,
    priority_class: str = "",
    selector: Mapping[str, str] | None = None,
    deleted: datetime | None = None,
    gates: Sequence[str] = (),
    image_id: str = "",
) -> p.Pod:
    """
    A pod: Pending without a node, Running and Ready with one, unless said otherwise.

    Args:
        unschedulable: The scheduler's words; the condition PodScheduled=False stands since `since`.
        waiting: Reason of the main container's waiting state, `message` its message.
        last_end: When the last run of the main container ended, with `exit_code`.
    """
    ready = bool(node) and not waiting and phase in ("", "Running") if ready is None else ready
    phase = phase or ("Running" if node and not waiting else "Pending")
    conditions: list[Condition] = []
    if node:
        conditions.append(Condition(type="PodScheduled", status="True", last_transition_time=since))
        conditions.append(Condition(type="Ready", status=str(ready), last_transition_time=since))
    elif gates:
        conditions.append(
            Condition(type="PodScheduled", status="False", reason="SchedulingGated", last_transition_time=since)
        )
    elif unschedulable is not None:
        conditions.append(
            Condition(
                type="PodScheduled",
                status="False",
                reason="Unschedulable",
                message=unschedulable,
                last_transition_time=since,
            )
        )
    statuses: tuple[p.ContainerStatus, ...] = ()
    if node:
        state = (
            p.ContainerState(waiting=p.Waiting(reason=waiting, message=message))
            if waiting
            else p.ContainerState(running=p.Running(started_at=since))
        )
        ended = p.Terminated(exit_code=exit_code, reason="Error", finished_at=last_end, started_at=created)
        last = p.ContainerState(terminated=ended) if last_end is not None else p.ContainerState()
        statuses = (
            p.ContainerStatus(
                name="main",
                ready=ready,
                restart_count=restarts,
                image=image,
                image_id=image_id,
                state=state,
                last_state=last,
            ),
        )
    built = p.Pod(
        metadata=meta(name, namespace, uid=uid, labels=labels, owners=owners, created=created),
        spec=p.PodSpec(
            node_name=node,
            containers=(container(image, gpus=gpus, args=args),),
            node_selector=dict(selector or {}),
            priority=priority,
            priority_class_name=priority_class,
            scheduling_gates=tuple(p.Named(name=gate) for gate in gates),
        ),
        status=p.PodStatus(phase=phase, conditions=tuple(conditions), container_statuses=statuses),
    )
    built.metadata.deletion_timestamp = deleted
    return built


def node(
    name: str,
    *,
    gpus: int = 0,
    capacity: int | None = None,
    product: str = H100,
    ready: bool | None = True,
    cordoned: bool = False,
    taints: Sequence[c.Taint] = (),
    labels: Mapping[str, str] | None = None,
    annotations: Mapping[str, str] | None = None,
    resource: str = GPU,
    pods: int = 110,
) -> c.Node:
    """A ready node with 64 CPUs; with `gpus` it advertises that many, of `capacity` (the same) that it has."""
    allocatable: dict[str, str | int | float] = {"cpu": "64", "memory": "512Gi", "pods": pods}
    has = dict(allocatable)
    named: dict[str, str] = {"kubernetes.io/hostname": name}
    if gpus or capacity:
        allocatable[resource] = gpus
        has[resource] = gpus if capacity is None else capacity
        named |= {"nvidia.com/gpu.present": "true", "nvidia.com/gpu.product": product}
    conditions = () if ready is None else (Condition(type="Ready", status=str(ready), last_transition_time=NOON),)
    return c.Node(
        metadata=meta(name, "", labels={**named, **(labels or {})}, annotations=annotations),
        spec=c.NodeSpec(unschedulable=cordoned, taints=tuple(taints)),
        status=c.NodeStatus(capacity=has, allocatable=allocatable, conditions=conditions),
    )


def deployment(
    name: str,
    namespace: str = "prod",
    *,
    replicas: int = 1,
    updated: int | None = None,
    total: int | None = None,
    gpus: int = 0,
    image: str = VLLM,
    args: Sequence[str] = ("--model", "meta-llama/Llama-3.1-70B"),
    labels: Mapping[str, str] | None = None,
    annotations: Mapping[str, str] | None = None,
    generation: int = 1,
    observed: int | None = None,
    strategy: dict[str, Any] | None = None,
    priority_class: str = "",
    selector: Mapping[str, str] | None = None,
) -> c.Controller:
    """A Deployment whose rollout is done, unless `updated` and `total` say otherwise."""
    own = {"app": name, **(labels or {})}
    total = replicas if total is None else total
    return c.Controller(
        metadata=meta(name, namespace, labels=own, annotations=annotations, generation=generation),
        spec=c.ReplicasSpec(
            replicas=replicas,
            selector=LabelSelector(match_labels={"app": name}),
            template=_template(
                own,
                p.PodSpec(
                    containers=(container(image, gpus=gpus, args=args),),
                    priority_class_name=priority_class,
                    node_selector=dict(selector or {}),
                ),
            ),
            strategy=strategy or {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": "25%"}},
        ),
        status=c.ReplicasStatus(
            replicas=total,
            updated_replicas=total if updated is None else updated,
            observed_generation=generation if observed is None else observed,
        ),
    )


def _template(labels: Mapping[str, str], spec: p.PodSpec) -> p.ControllerTemplate:
    return msgspec.convert(
        {"metadata": {"labels": dict(labels)}, "spec": msgspec.to_builtins(spec)}, p.ControllerTemplate
    )


def replicaset(
    of: c.Controller,
    revision: str = "aaaa",
    *,
    replicas: int | None = None,
    created: int | None = None,
    number: int = 1,
) -> c.Controller:
    """The ReplicaSet of a Deployment's template; `created` of its `replicas` exist, `number` is its revision."""
    wanted = (of.spec.replicas or 0) if replicas is None else replicas
    template = of.spec.template
    labels = {**template.metadata.labels, "pod-template-hash": revision}
    return c.Controller(
        metadata=meta(
            f"{of.metadata.name}-{revision}",
            of.metadata.namespace,
            labels=labels,
            annotations={"deployment.kubernetes.io/revision": str(number)},
            owners=(owner(of, "Deployment.apps"),),
            generation=1,
        ),
        spec=c.ReplicasSpec(
            replicas=wanted,
            selector=LabelSelector(match_labels=labels),
            template=_template(labels, template.spec),
        ),
        status=c.ReplicasStatus(replicas=wanted if created is None else created, observed_generation=1),
    )


def pod_of(of: c.Controller, suffix: str, **changes: Any) -> p.Pod:
    """A pod of a ReplicaSet, with what `pod` takes."""
    template = of.spec.template
    main = template.spec.containers[0]
    gpus = int(main.resources.limits.get(GPU, 0))
    defaults: dict[str, Any] = {
        "labels": template.metadata.labels,
        "owners": (owner(of, "ReplicaSet.apps"),),
        "gpus": gpus,
        "image": main.image,
        "args": main.args,
        "selector": template.spec.node_selector,
        "priority_class": template.spec.priority_class_name,
    }
    return pod(f"{of.metadata.name}-{suffix}", of.metadata.namespace, **{**defaults, **changes})


def dynamo(
    name: str,
    namespace: str = "prod",
    *,
    decode: int = 4,
    prefill: int = 0,
    gpus: int = 2,
    annotations: Mapping[str, str] | None = None,
    model: str = "meta-llama/Llama-3.1-70B",
    generation: int = 1,
) -> Custom:
    """A DynamoGraphDeployment (v1alpha1) with decode workers, and prefill workers if any."""

    def worker(kind: str, replicas: int) -> dict[str, Any]:
        return {
            "componentType": "worker",
            "subComponentType": kind,
            "replicas": replicas,
            "resources": {"limits": {"gpu": str(gpus)}},
            "extraPodSpec": {
                "mainContainer": {
                    "image": "nvcr.io/nvidia/ai-dynamo/vllm-runtime:0.7.0",
                    "args": ["--model", model],
                }
            },
        }

    services = {"decode": worker("decode", decode)}
    if prefill:
        services["prefill"] = worker("prefill", prefill)
    return Custom(
        kind="DynamoGraphDeployment",
        api_version="nvidia.com/v1alpha1",
        metadata=meta(name, namespace, annotations=annotations, generation=generation),
        spec={"services": services},
        status={"observedGeneration": generation},
    )


def dynamo_pod(of: Custom, component: str, suffix: str, **changes: Any) -> p.Pod:
    """A worker pod of a DynamoGraphDeployment, with what `pod` takes."""
    name = of.metadata.name
    labels = {
        "nvidia.com/dynamo-graph-deployment-name": name,
        "nvidia.com/dynamo-component": component,
        "nvidia.com/dynamo-component-type": "worker",
        "nvidia.com/dynamo-sub-component-type": component,
    }
    defaults: dict[str, Any] = {
        "labels": labels,
        "gpus": 2,
        "image": "nvcr.io/nvidia/ai-dynamo/vllm-runtime:0.7.0",
        "owners": (owner(of, "DynamoGraphDeployment.nvidia.com"),),
    }
    return pod(f"{name}-{component}-{suffix}", of.metadata.namespace, **{**defaults, **changes})


def service(
    name: str, namespace: str = "prod", *, selector: Mapping[str, str], target: int | str = "http"
) -> c.Service:
    return c.Service(
        metadata=meta(name, namespace),
        spec=c.ServiceSpec(selector=dict(selector), ports=(c.ServicePort(port=80, target_port=target),)),
    )


def endpoint_slice(of: c.Service, pods: Iterable[p.Pod]) -> c.EndpointSlice:
    """One address per pod, ready as the pod is."""
    key = of.metadata.key
    endpoints = tuple(
        c.Endpoint(
            addresses=(f"10.0.0.{index + 1}",),
            conditions=c.EndpointConditions(ready=each.status.container_statuses[0].ready),
            target_ref=c.ObjectRef(kind="Pod", namespace=key[0], name=each.metadata.name),
        )
        for index, each in enumerate(pods)
    )
    return c.EndpointSlice(
        metadata=meta(f"{key[1]}-abcde", key[0], labels={"kubernetes.io/service-name": key[1]}), endpoints=endpoints
    )


def kube_event(
    about: p.Pod, reason: str, text: str, *, seen: datetime = NOON, component: str = "", name: str = ""
) -> c.Event:
    """A Kubernetes Event about a pod."""
    return c.Event(
        metadata=meta(name or f"{about.metadata.name}.{reason.lower()}", about.metadata.namespace, created=seen),
        involved_object=c.ObjectRef(
            kind="Pod", namespace=about.metadata.namespace, name=about.metadata.name, uid=about.metadata.uid
        ),
        reason=reason,
        message=text,
        last_timestamp=seen,
        reporting_component=component,
    )


def kind_name(obj: Object) -> str:
    """The name in `KINDS` of an object that a builder made."""
    if isinstance(obj, Custom):
        found = kind_of(obj.api_version, obj.kind)
        assert found is not None, f"{obj.api_version} {obj.kind} is not in KINDS"
        return found.name
    if isinstance(obj, c.Controller):
        is_replicaset = any(ref.kind == "Deployment" for ref in obj.metadata.owner_references)
        return "ReplicaSet.apps" if is_replicaset else "Deployment.apps"
    names = [name for name, row in KINDS.items() if row.struct is type(obj)]
    assert len(names) == 1, f"{type(obj).__name__} is {names}"
    return names[0]


class Feed:
    """Events of one source in order: every object at the next sequence number."""

    def __init__(self, epoch: int = 1) -> None:
        self.epoch = epoch
        self._seq = count(1)

    def applied(self, *objects: Object, seconds: float = 0) -> list[e.Event]:
        """The objects as they are now: later changes to them do not reach the events."""
        return [
            e.Applied(at=at(seconds), epoch=self.epoch, seq=self._next(), kind=kind_name(o), obj=copy_of(o))
            for o in objects
        ]

    def deleted(self, *objects: Object, seconds: float = 0) -> list[e.Event]:
        return [
            e.Deleted(
                at=at(seconds),
                epoch=self.epoch,
                seq=self._next(),
                kind=kind_name(o),
                namespace=o.metadata.namespace,
                name=o.metadata.name,
                uid=o.metadata.uid,
            )
            for o in objects
        ]

    def synced(self, *kinds: str, state: e.SyncState = e.SyncState.SYNCED, seconds: float = 0) -> list[e.Event]:
        """All kinds are known; with `kinds`, those are in `state`."""
        return [
            e.SourceChanged(at=at(seconds), epoch=self.epoch, seq=self._next(), kind=kind, state=state)
            for kind in (kinds or KINDS)
        ]

    def _next(self) -> int:
        return next(self._seq)


def copy_of(obj: Object) -> Object:
    """A deep copy, so that a test may go on changing what it built."""
    return msgspec.convert(msgspec.to_builtins(obj), type(obj))


def notify(
    revision: int = 1,
    *,
    incident: str = "i-1",
    receiver: str = "slack",
    status: str = "firing",
    anew: bool = False,
) -> Notify:
    """A message that a receiver is to be sent; only what the outbox reads matters."""
    message = Message(
        title="t", status=status, severity=Severity.WARNING, cluster="c", since=NOON, at=NOON, lines=(), labels={}
    )
    return Notify(
        id=f"{incident}/{receiver}/{revision}",
        incident=incident,
        key=incident,
        episode=1,
        receiver=receiver,
        revision=revision,
        anew=anew,
        reason="changed",
        message=message,
    )
