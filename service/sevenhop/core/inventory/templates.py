"""What a template of pods, or a pod, says of a component: accelerators, product, priority, image."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeVar

import msgspec

from sevenhop.core.inventory.framework import Found, FrameworkSpec, Lookup, Reading
from sevenhop.core.inventory.products import pod_gpus, wanted_product
from sevenhop.core.inventory.workloads import Component, Model
from sevenhop.core.objects.base import Custom, Meta, Object
from sevenhop.core.objects.cluster import Controller
from sevenhop.core.objects.devices import ResourceClaim, ResourceClaimTemplate
from sevenhop.core.objects.pod import Pod, PodSpec, PodTemplate
from sevenhop.core.words import counted

LWS = "LeaderWorkerSet.leaderworkerset.x-k8s.io"
JOBSET = "JobSet.jobset.x-k8s.io"
JOBSET_NAME = "jobset.sigs.k8s.io/jobset-name"
LWS_NAME = "leaderworkerset.sigs.k8s.io/name"
WORKER_INDEX = "leaderworkerset.sigs.k8s.io/worker-index"

GPU_DEVICE_CLASSES = ("gpu.nvidia.com", "mig.nvidia.com", "vfio.gpu.nvidia.com", "gpu.amd.com", "gpu.intel.com")
"""DRA device classes that count as accelerators; an IMEX channel does not."""

_Pod = TypeVar("_Pod", PodSpec, PodTemplate)

_MOST_PODS = 10_000
"""Of one replica; the largest that are known have some hundred."""


def as_template(data: Any) -> PodTemplate:
    """
    A pod template out of a custom resource; empty for what is none.

    Raises:
        msgspec.ValidationError: A field has a type that no reading of it accepts.
    """
    if not isinstance(data, dict):
        return PodTemplate()
    return msgspec.convert(without_nulls(data), PodTemplate, strict=False)


def as_pod_spec(data: Any) -> PodSpec:
    """
    The same for a bare pod spec.

    Raises:
        msgspec.ValidationError: As `as_template`.
    """
    return msgspec.convert(without_nulls(data), PodSpec, strict=False) if isinstance(data, dict) else PodSpec()


def without_nulls(data: Any) -> Any:
    """Nulls mean absent."""
    if isinstance(data, dict):
        return {str(k): without_nulls(v) for k, v in data.items() if v is not None}
    if isinstance(data, list):
        return [without_nulls(v) for v in data if v is not None]
    return data


def template_of(kind: str, obj: Object) -> PodTemplate | None:
    """
    The pods of an object; a LeaderWorkerSet's leader, a JobSet's first; None without any, or any that can be read.
    """
    if isinstance(obj, Pod):
        return PodTemplate(metadata=obj.metadata, spec=obj.spec)
    if isinstance(obj, Controller):
        return obj.spec.template
    if kind == JOBSET and isinstance(obj, Custom):
        return _first_of_set(obj)
    if kind == LWS and isinstance(obj, Custom):
        template = obj.spec.get("leaderWorkerTemplate")
        if isinstance(template, dict):
            try:
                return as_template(template.get("leaderTemplate") or template.get("workerTemplate"))
            except msgspec.ValidationError:
                return None  # listed with the reason "no pod template"
    return None


def _first_of_set(obj: Custom) -> PodTemplate | None:
    """Of a JobSet's first replicated job; the others are its framework's to read."""
    entries = obj.spec.get("replicatedJobs")
    data: Any = entries[0] if isinstance(entries, list) and entries else None
    for step in ("template", "spec", "template"):
        data = data.get(step) if isinstance(data, dict) else None
    if data is None:
        return None
    try:
        return as_template(data)
    except msgspec.ValidationError:
        return None


def metas_of(kind: str, obj: Object) -> list[tuple[Meta, PodSpec | None]]:
    """Everything of an object that may carry joining labels: itself, and the templates of its pods."""
    if isinstance(obj, Pod):
        return [(obj.metadata, obj.spec)]
    found: list[tuple[Meta, PodSpec | None]] = [(obj.metadata, None)]
    template = template_of(kind, obj)
    if template is not None:
        found.append((pod_meta(template.metadata, obj.metadata.namespace), template.spec))
    elif kind == "PodCliqueSet.grove.io" and isinstance(obj, Custom):
        cliques = obj.spec.get("template", {}).get("cliques", []) if isinstance(obj.spec.get("template"), dict) else []
        for clique in cliques if isinstance(cliques, list) else []:
            labels = clique.get("labels") if isinstance(clique, dict) else None
            if isinstance(labels, dict):
                plain = {str(k): str(v) for k, v in labels.items()}
                found.append((Meta(namespace=obj.metadata.namespace, labels=plain), None))
    return found


def is_leader(pod: Pod) -> bool:
    """Whether this pod leads its group; a pod of no group leads itself."""
    return pod.metadata.labels.get(WORKER_INDEX, "0") == "0"


def repeated(pod: _Pod, count: int) -> list[_Pod]:
    """
    `count` equal pods of one replica; none for less than one.

    Raises:
        ValueError: More than any group has: a number that somebody mistyped must not fill the memory.
    """
    if count > _MOST_PODS:
        raise ValueError(f"a replica of {counted(count, 'pod')}; at most {_MOST_PODS} are believed")
    return [pod] * count


def gpu_need(specs: Sequence[PodSpec], namespace: str, get: Lookup | None) -> tuple[str, int]:
    """
    (resource, amount) that these pods need together; the resource they need most of, "" and 0 without any.

    Claims of DRA are counted where they, or their templates, are visible; the resource is then the device class.

    Raises:
        ValueError: A quantity that is none.
    """
    total: dict[str, int] = {}
    for spec in specs:
        need = pod_gpus(spec) or (_claimed(spec, namespace, get) if get is not None else {})
        for name, amount in need.items():
            total[name] = total.get(name, 0) + amount
    if not total:
        return "", 0
    name = min(total, key=lambda resource: (-total[resource], resource))
    return name, total[name]


def _claimed(spec: PodSpec, namespace: str, get: Lookup) -> dict[str, int]:
    total: dict[str, int] = {}
    for claim in spec.resource_claims:
        if claim.resource_claim_template_name:
            found = get("ResourceClaimTemplate.resource.k8s.io", namespace, claim.resource_claim_template_name)
        else:
            found = get("ResourceClaim.resource.k8s.io", namespace, claim.resource_claim_name or "")
        if isinstance(found, ResourceClaimTemplate):
            requests = found.spec.spec.devices.requests
        elif isinstance(found, ResourceClaim):
            requests = found.spec.devices.requests
        else:
            continue
        for request in requests:
            wanted = request.exactly or (request.first_available[0] if request.first_available else request)
            if wanted.device_class_name in GPU_DEVICE_CLASSES:
                total[wanted.device_class_name] = total.get(wanted.device_class_name, 0) + wanted.count
    return total


def pod_component(
    name: str,
    role: str,
    specs: Sequence[PodSpec],
    model: Model,
    pods: int = 1,
    *,
    namespace: str = "",
    get: Lookup | None = None,
) -> Component:
    """
    A component as the pods of one replica tell it.

    Args:
        specs: Of all pods of one replica.

    Raises:
        ValueError: A quantity that is none.
    """
    resource, gpus = gpu_need(specs, namespace, get)
    first = next((spec for spec in specs if pod_gpus(spec)), specs[0] if specs else PodSpec())
    return Component(
        name=name,
        role=role,
        pods_per_replica=max(1, pods),
        gpus_per_replica=gpus,
        gpu_resource=resource,
        product=wanted_product(first),
        priority_class=first.priority_class_name,
        model=model,
        image=main_image(first),
    )


def main_image(spec: PodSpec) -> str:
    """The image of the container that asks for accelerators, else of the first."""
    if not spec.containers:
        return ""
    needy = (c for c in spec.containers if pod_gpus(PodSpec(containers=[c])))
    return next(needy, spec.containers[0]).image


def pod_meta(labels: Meta, namespace: str) -> Meta:
    """A template's metadata, in the namespace that its pods will have."""
    return msgspec.structs.replace(labels, namespace=namespace)


def read_members(spec: FrameworkSpec, found: Found) -> Reading:
    """
    A workload whose root is not visible, from the Deployments and the like that belong to it.

    Raises:
        ValueError: A quantity that is none.
    """
    parts: dict[str, Component] = {}
    seen = {member.obj.metadata.uid for member in found.members if member.obj.metadata.uid}
    for kind, obj in found.members:
        template = template_of(kind, obj)
        replicas = replicas_of(obj)
        if template is None or _is_counted_above(obj, seen):
            continue
        meta = pod_meta(template.metadata, obj.metadata.namespace)
        place = spec.place(meta, template.spec, found)
        specs = specs_of(kind, obj)
        model = spec.model(meta, template.spec)
        part = pod_component(
            place.component, place.role, specs, model, len(specs), namespace=found.ref.namespace, get=found.get
        )
        before = parts.get(part.name)
        total = (before.desired or 0) + (replicas or 0) if before else replicas
        parts[part.name] = msgspec.structs.replace(before or part, desired=total)
    components = tuple(with_intended_zero(parts[name]) for name in sorted(parts))
    models = [part.model for part in components if part.model.name]
    return Reading(components=components, model=models[0] if models else Model())


def _is_counted_above(obj: Object, seen: set[str]) -> bool:
    """A ReplicaSet of a Deployment that is here, and the StatefulSets of a LeaderWorkerSet, are not counted again."""
    owner = obj.metadata.controller()
    return owner is not None and (owner.uid in seen or owner.kind in ("Pod", "LeaderWorkerSet"))


def replicas_of(obj: Object) -> int | None:
    """What a controller is asked for; Kubernetes reads nothing as 1."""
    if isinstance(obj, Controller):
        return 1 if obj.spec.replicas is None else obj.spec.replicas
    if isinstance(obj, Custom):
        replicas = obj.spec.get("replicas", 1)
        return replicas if isinstance(replicas, int) else None
    return None


def specs_of(kind: str, obj: Object) -> list[PodSpec]:
    """The pod specs of one replica: of a LeaderWorkerSet the whole group, of anything else one pod."""
    template = template_of(kind, obj)
    if template is None:
        return []
    if kind != LWS or not isinstance(obj, Custom):
        return [template.spec]
    group = obj.spec.get("leaderWorkerTemplate", {})
    size = group.get("size", 1)
    worker = as_template(group.get("workerTemplate")).spec
    return [template.spec, *repeated(worker, (size if isinstance(size, int) else 1) - 1)]


def with_intended_zero(part: Component, why: str = "") -> Component:
    """Why nothing should run, if nothing should."""
    why = why or ("scaled_to_zero" if part.desired == 0 else "")
    return msgspec.structs.replace(part, intended_zero=why) if why else part
