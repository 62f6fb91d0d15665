"""NVIDIA NIM: NIMService, on its own or on KServe; the image is the model."""

from __future__ import annotations

import msgspec

from sevenhop.core.inventory.framework import Found, FrameworkSpec, Place, Reading, RootRef
from sevenhop.core.inventory.templates import as_pod_spec, pod_component, repeated, with_intended_zero
from sevenhop.core.inventory.workloads import Framework, Model, ScaleTarget
from sevenhop.core.objects.base import Meta
from sevenhop.core.objects.pod import PodSpec
from sevenhop.frameworks.controllers import group_of
from sevenhop.frameworks.engine import Engine, engine_of, model_of_pod
from sevenhop.frameworks.reading import flag, number, replicas, rows, spec_of, table, text

ROOT = "NIMService.apps.nvidia.com"
_PART_OF = "app.kubernetes.io/part-of"
_NAME = "app.kubernetes.io/name"


def read(found: Found) -> Reading:
    spec = spec_of(found.obj)
    repository, tag = text(spec, "image", "repository"), text(spec, "image", "tag")
    image = f"{repository}:{tag}" if tag and "@" not in repository else repository
    parallel = table(spec, "multiNode", "parallelism")
    group = table(spec, "multiNode")
    # `size` and `gpusPerPod` are the names of the operator's first versions.
    nodes = max(1, number(parallel, "pipeline") or number(group, "size") or 1) if group else 1
    pod = as_pod_spec(
        {
            "containers": [
                {
                    "name": "nim",
                    "image": image,
                    "command": spec.get("command"),
                    "args": spec.get("args"),
                    "env": rows(spec, "env"),
                    "resources": table(spec, "resources"),
                }
            ],
            "nodeSelector": table(spec, "nodeSelector"),
            "affinity": table(spec, "affinity"),
        }
    )
    engine = engine_of(pod)
    model = engine.model if isinstance(engine, Engine) else Model(source=image)
    where = found.ref.namespace
    part = pod_component("engine", "engine", repeated(pod, nodes), model, nodes, namespace=where, get=found.get)
    if not part.gpus_per_replica and rows(spec, "draResources"):
        devices = sum(
            replicas(device, "count") for row in rows(spec, "draResources")
            for device in rows(row, "claimCreationSpec", "devices")
        )  # fmt: skip
        if devices:
            part = msgspec.structs.replace(part, gpus_per_replica=devices * nodes, gpu_resource="gpu.nvidia.com")
    if group and not part.gpus_per_replica:
        # Where nobody says how many GPUs a pod gets, the operator gives it as many as tensor parallelism needs.
        per_pod = max(1, number(parallel, "tensor") or number(group, "gpusPerPod") or 1)
        part = msgspec.structs.replace(part, gpus_per_replica=per_pod * nodes, gpu_resource="nvidia.com/gpu")
    if flag(spec, "scale", "enabled"):
        least = number(spec, "scale", "hpa", "minReplicas")
        path, note, desired = "spec.scale.hpa.minReplicas", "with maxReplicas", _running(found) or least or 1
    else:
        least, path, note, desired = None, "spec.replicas", "", replicas(spec, "replicas")
    part = msgspec.structs.replace(
        part,
        desired=desired,
        minimum=least,
        priority_class=text(spec, "priorityClassName"),
        scale=ScaleTarget(ROOT, where, found.ref.name, path, nodes, note),
    )
    return Reading(components=(with_intended_zero(part),), model=model)


def _running(found: Found) -> int | None:
    from sevenhop.core.inventory.templates import replicas_of

    counts = [replicas_of(m.obj) for m in found.members if m.kind == "Deployment.apps"]
    return next((count for count in counts if count is not None), None)


def place(meta: Meta, spec: PodSpec, found: Found) -> Place:  # noqa: ARG001
    group, pods = group_of(meta)
    return Place("engine", "engine", group, pods)


def join(meta: Meta, spec: PodSpec | None) -> RootRef | None:  # noqa: ARG001
    if meta.labels.get(_PART_OF) == "nim-service" and meta.labels.get(_NAME):
        return RootRef(ROOT, meta.namespace, meta.labels[_NAME])
    return None


SPEC = FrameworkSpec(
    framework=Framework.NIM,
    docs="NVIDIA NIM: a NIMService; name and tag of its image are the model and its version.",
    roots=(ROOT,),
    labels=(_PART_OF, _NAME),
    scale="`spec.replicas` of the NIMService, or `spec.scale.hpa.minReplicas` with `maxReplicas`; never what is below.",
    read=read,
    place=place,
    model=model_of_pod,
    join=join,
)
