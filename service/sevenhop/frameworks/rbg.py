"""RoleBasedGroup: roles of one serving group, single pods or leader and workers."""

from __future__ import annotations

from typing import Any

import msgspec

from sevenhop.core.inventory.framework import Found, FrameworkSpec, Place, Reading, RootRef
from sevenhop.core.inventory.templates import as_template, pod_component, repeated, with_intended_zero
from sevenhop.core.inventory.workloads import Component, Framework, Model, ScaleTarget
from sevenhop.core.objects.base import Meta
from sevenhop.core.objects.pod import PodSpec, PodTemplate
from sevenhop.frameworks.controllers import group_of
from sevenhop.frameworks.engine import model_of_pod
from sevenhop.frameworks.reading import flag, number, replicas, rows, spec_of, table, text
from sevenhop.frameworks.roles import role_in

ROOT = "RoleBasedGroup.workloads.x-k8s.io"
ADAPTER = "RoleBasedGroupScalingAdapter.workloads.x-k8s.io"
_GROUP = ("rbg.workloads.x-k8s.io/group-name", "rolebasedgroup.workloads.x-k8s.io/name")
_ROLE = ("rbg.workloads.x-k8s.io/role-name", "rolebasedgroup.workloads.x-k8s.io/role")
_INSTANCE = ("rbg.workloads.x-k8s.io/role-instance-name", "rbg.workloads.x-k8s.io/component-index")


def read(found: Found) -> Reading:
    spec = spec_of(found.obj)
    shared = {text(row, "name"): table(row, "template") for row in rows(spec, "roleTemplates")}
    components = [_role(found, role, at, shared) for at, role in enumerate(rows(spec, "roles"))]
    models = [part.model for part in components if part.model.name]
    return Reading(components=tuple(components), model=models[0] if models else Model())


def _role(found: Found, role: dict[str, Any], at: int, shared: dict[str, dict[str, Any]]) -> Component:
    name = text(role, "name")
    pods = _pods(role, shared)
    lead = pods[0] if pods else PodTemplate()
    model = model_of_pod(lead.metadata, lead.spec)
    where, size = found.ref.namespace, len(pods)
    part = pod_component(
        name, role_in(name) or "worker", [pod.spec for pod in pods], model, size, namespace=where, get=found.get
    )
    if flag(role, "scalingAdapter", "enable"):
        # The controller names the adapter it makes after group and role; people may have made one of another name.
        scale = ScaleTarget(ADAPTER, where, f"{found.ref.name}-{name}", "spec.replicas", size, "through /scale")
    else:
        scale = ScaleTarget(ROOT, where, found.ref.name, f"spec.roles[{at}].replicas", size)
    return with_intended_zero(msgspec.structs.replace(part, desired=replicas(role, "replicas"), scale=scale))


def _pods(role: dict[str, Any], shared: dict[str, dict[str, Any]]) -> list[PodTemplate]:
    """The pods of one replica; v1alpha2 names a pattern, v1alpha1 has template, size and components at the role."""
    custom = rows(role, "customComponentsPattern", "components") or rows(role, "components")
    if custom:
        return [pod for part in custom for pod in repeated(as_template(part.get("template")), _size(part))]
    grouped = table(role, "leaderWorkerPattern")
    pattern = grouped or table(role, "standalonePattern") or role
    template = table(pattern, "template") or shared.get(text(pattern, "templateRef", "name"), {})
    size = number(grouped, "size") or number(role, "leaderWorkerSet", "size") or 1
    lead = _patched(
        template, table(grouped, "leaderTemplatePatch") or table(role, "leaderWorkerSet", "patchLeaderTemplate")
    )
    worker = _patched(
        template, table(grouped, "workerTemplatePatch") or table(role, "leaderWorkerSet", "patchWorkerTemplate")
    )
    return [lead, *repeated(worker, size - 1)]


def _size(part: dict[str, Any]) -> int:
    return max(1, number(part, "size") or 1)


def _patched(template: dict[str, Any], patch: dict[str, Any]) -> PodTemplate:
    return as_template(_over(template, patch))


def _over(base: Any, patch: Any) -> Any:
    """A strategic merge: dictionaries by key, containers and variables by name, all else replaced."""
    if isinstance(base, dict) and isinstance(patch, dict):
        return {**base, **{k: _over(base.get(k), v) for k, v in patch.items()}}
    if isinstance(base, list) and isinstance(patch, list):
        named = {item["name"]: item for item in base if isinstance(item, dict) and "name" in item}
        if named and all(isinstance(item, dict) and "name" in item for item in patch):
            return list({**named, **{i["name"]: _over(named.get(i["name"]), i) for i in patch}}.values())
    return patch


def _label(meta: Meta, keys: tuple[str, ...]) -> str:
    return next((meta.labels[key] for key in keys if meta.labels.get(key)), "")


def place(meta: Meta, spec: PodSpec, found: Found) -> Place:  # noqa: ARG001
    name = _label(meta, _ROLE) or "engine"
    group, pods = group_of(meta)
    return Place(name, role_in(name) or "worker", group or _label(meta, _INSTANCE[:1]), pods)


def join(meta: Meta, spec: PodSpec | None) -> RootRef | None:  # noqa: ARG001
    name = _label(meta, _GROUP)
    return RootRef(ROOT, meta.namespace, name) if name else None


SPEC = FrameworkSpec(
    framework=Framework.RBG,
    docs="RoleBasedGroup: roles such as prefill and decode; a role's replica may be a leader with workers.",
    roots=(ROOT,),
    aside=((ADAPTER, "scales a role of a RoleBasedGroup"),),
    labels=(_GROUP[0], _ROLE[0]),
    scale="`spec.roles[i].replicas`, or the role's RoleBasedGroupScalingAdapter through `/scale`.",
    read=read,
    place=place,
    model=model_of_pod,
    join=join,
)
