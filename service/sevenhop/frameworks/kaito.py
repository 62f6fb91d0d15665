"""KAITO: Workspace, InferenceSet, MultiRoleInference; GPUs are asked for as cloud instances."""

from __future__ import annotations

from typing import Any

import msgspec

from sevenhop.core.inventory.framework import Found, FrameworkSpec, Place, Reading, RootRef
from sevenhop.core.inventory.products import gpus_of_instance, product_of_instance
from sevenhop.core.inventory.templates import as_template, pod_component, repeated, with_intended_zero
from sevenhop.core.inventory.workloads import Component, Framework, Model, ScaleTarget
from sevenhop.core.objects.base import Meta, Object, Workspace
from sevenhop.core.objects.pod import PodSpec
from sevenhop.frameworks.engine import Engine, engine_of, model_of_pod
from sevenhop.frameworks.reading import number, over, replicas, rows, spec_of, table, text
from sevenhop.frameworks.roles import role_in

SET, WORKSPACE, MULTI = "InferenceSet.kaito.sh", "Workspace.kaito.sh", "MultiRoleInference.kaito.sh"
_WORKSPACE_LABEL = "kaito.sh/workspace"
_SET_LABELS = ("inferenceset.kaito.sh/created-by", "kaito.sh/inferenceset")
_ROLE = "kaito.sh/inference-role"


def read(found: Found) -> Reading:
    if found.ref.kind == MULTI:
        return _read_roles(found)
    if found.ref.kind == SET:
        spec = spec_of(found.obj)
        template = table(spec, "template")
        scale = ScaleTarget(SET, found.ref.namespace, found.ref.name, "spec.replicas", 1, "through /scale")
        return _single(
            found, table(template, "resource"), table(template, "inference"), replicas(spec, "replicas"), scale
        )
    workspace = found.obj if isinstance(found.obj, Workspace) else Workspace()
    return _single(found, workspace.resource, workspace.inference, 1, None)


def _single(
    found: Found, resource: dict[str, Any], inference: dict[str, Any], desired: int, scale: ScaleTarget | None
) -> Reading:
    template = as_template(inference.get("template"))
    engine = engine_of(template.spec)
    preset = text(inference, "preset", "name")
    said = engine.model if isinstance(engine, Engine) else Model()
    model = over(said, name=preset, source=preset and (said.source or preset))
    nodes = max(1, number(resource, "count") or 1)
    part = pod_component(
        "inference",
        "engine",
        repeated(template.spec, nodes),
        model,
        nodes,
        namespace=found.ref.namespace,
        get=found.get,
    )
    part = _on_instances(part, text(resource, "instanceType"), nodes)
    part = with_intended_zero(msgspec.structs.replace(part, desired=desired, scale=scale))
    return Reading(components=(part,), model=model)


def _on_instances(part: Component, instance: str, nodes: int) -> Component:
    """KAITO brings nodes of this type and gives a workspace all their GPUs."""
    if part.gpus_per_replica:
        return part
    gpus = gpus_of_instance(instance) * nodes
    return msgspec.structs.replace(
        part,
        gpus_per_replica=gpus,
        gpu_resource="nvidia.com/gpu" if gpus else "",
        product=part.product or product_of_instance(instance),
    )


def _read_roles(found: Found) -> Reading:
    spec = spec_of(found.obj)
    name = text(spec, "model", "name")
    model = Model(name=name, source=name)
    components = []
    for at, role in enumerate(rows(spec, "roles")):
        kind = text(role, "type")
        scale = ScaleTarget(MULTI, found.ref.namespace, found.ref.name, f"spec.roles[{at}].replicas")
        part = Component(
            name=kind, role=role_in(kind) or kind, desired=replicas(role, "replicas"), model=model, scale=scale
        )
        components.append(with_intended_zero(_on_instances(part, text(role, "instanceType"), 1)))
    return Reading(components=tuple(components), model=model)


def refuse(ref: RootRef, obj: Object) -> str:
    if ref.kind == WORKSPACE and isinstance(obj, Workspace) and not obj.inference:
        return "a workspace for tuning, not for inference"
    return ""


def place(meta: Meta, spec: PodSpec, found: Found) -> Place:  # noqa: ARG001
    role = meta.labels.get(_ROLE, "")
    if role:
        return Place(role, role_in(role) or role)
    return Place("inference", "engine")


def join(meta: Meta, spec: PodSpec | None) -> RootRef | None:  # noqa: ARG001
    labels = meta.labels
    made_by = next((labels[key] for key in _SET_LABELS if labels.get(key)), "")
    if made_by:
        return RootRef(SET, meta.namespace, made_by)
    name = labels.get(_WORKSPACE_LABEL)
    return RootRef(WORKSPACE, meta.namespace, name) if name else None


SPEC = FrameworkSpec(
    framework=Framework.KAITO,
    docs="KAITO: a Workspace with a preset model, an InferenceSet of such, or a MultiRoleInference.",
    roots=(MULTI, SET, WORKSPACE),
    labels=(_WORKSPACE_LABEL, _ROLE),
    scale="`/scale` of an InferenceSet; a Workspace has no count.",
    read=read,
    place=place,
    model=model_of_pod,
    join=join,
    refuse=refuse,
)
