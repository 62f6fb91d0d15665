"""NVIDIA Dynamo: DynamoGraphDeployment, v1beta1 (components) and v1alpha1 (services); Grove, Deployment, LWS below."""

from __future__ import annotations

from typing import Any

import msgspec

from sevenhop.core.inventory.framework import Found, FrameworkSpec, Place, Reading, RootRef
from sevenhop.core.inventory.templates import (
    as_pod_spec,
    as_template,
    pod_component,
    read_members,
    repeated,
    with_intended_zero,
)
from sevenhop.core.inventory.workloads import Component, Framework, Model, Registration, ScaleTarget
from sevenhop.core.objects.base import Meta, Object
from sevenhop.core.objects.pod import PodSpec
from sevenhop.frameworks import grove
from sevenhop.frameworks.engine import Engine, engine_of, model_by_flags
from sevenhop.frameworks.reading import flag, number, over, replicas, rows, spec_of, table, text, words

GRAPH = "DynamoGraphDeployment.nvidia.com"
PART = "DynamoComponentDeployment.nvidia.com"
ADAPTER = "DynamoGraphDeploymentScalingAdapter.nvidia.com"

_NAME = "nvidia.com/dynamo-graph-deployment-name"
_COMPONENT = "nvidia.com/dynamo-component"
_TYPE = "nvidia.com/dynamo-component-type"
_SUB_TYPE = "nvidia.com/dynamo-sub-component-type"
_SELECTOR = "nvidia.com/selector"
_ORIGIN = "nvidia.com/dynamo-operator-origin-version"
_GROUP_INDEX = "leaderworkerset.sigs.k8s.io/group-index"
_LWS_SIZE = "leaderworkerset.sigs.k8s.io/size"
_GROVE_GROUP = "grove.io/podcliquescalinggroup"
_GROVE_INDEX = "grove.io/podcliquescalinggroup-replica-index"
_ROLES = {"worker": "worker", "main": "worker", "prefill": "prefill", "decode": "decode", "frontend": "frontend"}
_SERVING = ("worker", "prefill", "decode")


def _role(kind: str, sub_kind: str) -> str:
    """Old manifests say ``worker`` and put prefill or decode into the sub type."""
    word = (sub_kind or kind).lower()
    return _ROLES.get(word, word or "worker")


def _parts(spec: dict[str, Any]) -> list[tuple[str, dict[str, Any], str]]:
    """(name, component, path of its replicas), of either version."""
    newer = [(text(c, "name"), c, f"spec.components[{i}].replicas") for i, c in enumerate(rows(spec, "components"))]
    older = [
        (str(name), service, f"spec.services.{name}.replicas")
        for name, service in sorted(table(spec, "services").items())
        if isinstance(service, dict)
    ]
    return newer or older


def _pod_spec(part: dict[str, Any]) -> PodSpec:
    if "podTemplate" in part:
        return as_template(part["podTemplate"]).spec
    extra = dict(table(part, "extraPodSpec"))
    main = dict(table(extra, "mainContainer"))
    amounts = table(main, "resources")
    main["name"] = "main"
    main["resources"] = {
        side: {**table(amounts, side), **_extended(table(part, "resources", side))} for side in ("requests", "limits")
    }
    main["env"] = [*rows(part, "envs"), *rows(main, "env")]
    extra["containers"] = [main, *rows(extra, "containers")]
    return as_pod_spec(extra)


def _extended(amounts: dict[str, Any]) -> dict[str, Any]:
    """v1alpha1 says ``gpu: "8"`` and, for other vendors, ``gpuType``; all else by its name under ``custom``."""
    found = dict(table(amounts, "custom"))
    count = text(amounts, "gpu")
    if count:
        found[text(amounts, "gpuType") or "nvidia.com/gpu"] = count
    return found


def _component(found: Found, name: str, part: dict[str, Any], path: str) -> Component:
    role = _role(text(part, "type") or text(part, "componentType"), text(part, "subComponentType"))
    nodes = max(1, number(part, "multinode", "nodeCount") or 1)
    pod = _pod_spec(part)
    model = _model_of(pod) if role in _SERVING else Model()
    ref = table(part, "modelRef")
    model = Model(
        name=model.name or text(ref, "name"),
        version=model.version or text(ref, "revision"),
        source=model.source or text(ref, "name"),
    )
    built = pod_component(name, role, repeated(pod, nodes), model, nodes, namespace=found.ref.namespace, get=found.get)
    built = msgspec.structs.replace(
        built,
        desired=replicas(part, "replicas"),
        minimum=number(part, "minAvailable"),
        scale=_scale(found, name, part, path, nodes),
        priority_class=built.priority_class or text(spec_of(found.obj), "priorityClassName"),
    )
    return with_intended_zero(built)


def _model_of(spec: PodSpec) -> Model:
    engine = engine_of(spec)
    return engine.model if isinstance(engine, Engine) and engine.model.name else model_by_flags(spec)


def _scale(found: Found, name: str, part: dict[str, Any], path: str, nodes: int) -> ScaleTarget:
    adapter = f"{found.ref.name}-{name.lower()}"
    has_adapter = "scalingAdapter" in part and (
        "enabled" not in table(part, "scalingAdapter") or flag(part, "scalingAdapter", "enabled")
    )
    if has_adapter or found.get(ADAPTER, found.ref.namespace, adapter) is not None:
        return ScaleTarget(ADAPTER, found.ref.namespace, adapter, "spec.replicas", nodes, "through /scale")
    return ScaleTarget(found.ref.kind, found.ref.namespace, found.ref.name, path, nodes)


def read(found: Found) -> Reading:
    spec = spec_of(found.obj)
    if found.ref.kind == PART:
        inner = spec if "name" in spec or "podTemplate" in spec else {**spec}
        name = text(inner, "name") or text(inner, "serviceName") or found.ref.name
        components = [_component(found, name, inner, "spec.replicas")]
    else:
        components = [_component(found, name, part, path) for name, part, path in _parts(spec) if name]
    serving = [c.model for c in components if c.role in _SERVING and c.model.name]
    model = serving[0] if serving else _from_request(found)
    picks = any(c.role == "epp" for c in components)
    return Reading(
        components=tuple(components), model=model, registers=Registration.POOL if picks else Registration.DYNAMO
    )


def _read_below(found: Found) -> Reading:
    """A graph that is not visible, from its DynamoComponentDeployments, its PodCliqueSet, or its Deployments."""
    parts = [m.obj for m in found.members if m.kind == PART]
    if parts:
        components = [
            _component(found, text(spec_of(o), "name") or text(spec_of(o), "serviceName"), spec_of(o), "")
            for o in parts
        ]
        return _below(components)
    sets = [m.obj for m in found.members if m.kind == grove.ROOT]
    if sets:
        reading = grove.read(found._replace(obj=sets[0]))
        roles = _roles_in(spec_of(sets[0]))
        renamed = []
        for part in reading.components:
            name, role = roles.get(part.name, (part.name, part.role))
            renamed.append(msgspec.structs.replace(part, name=name, role=role))
        return _below(renamed)
    return read_members(SPEC, found)


def _below(components: list[Component]) -> Reading:
    """What is below is made anew from the graph at once: there is nothing to scale."""
    components = [msgspec.structs.replace(part, scale=None) for part in components]
    return Reading(components=tuple(components), model=next((c.model for c in components if c.model.name), Model()))


def _roles_in(spec: dict[str, Any]) -> dict[str, tuple[str, str]]:
    """Name of a clique, or of a scaling group, to Dynamo's component and our role."""
    known = {}
    for clique in rows(spec, "template", "cliques"):
        labels = table(clique, "labels")
        name = text(labels, _COMPONENT)
        if name:
            known[text(clique, "name")] = (name, _role(text(labels, _TYPE), text(labels, _SUB_TYPE)))
    for group in rows(spec, "template", "podCliqueScalingGroups"):
        named = [known[clique] for clique in words(group, "cliqueNames") if clique in known]
        if named:
            known[text(group, "name")] = named[0]
    return known


def _from_request(found: Found) -> Model:
    """A graph that a DynamoGraphDeploymentRequest made serves the model that was asked for."""
    labels = found.obj.metadata.labels if found.obj is not None else {}
    name = labels.get("dgdr.nvidia.com/name", "")
    if not name:
        return Model()
    space = labels.get("dgdr.nvidia.com/namespace", found.ref.namespace)
    asked = text(spec_of(found.get("DynamoGraphDeploymentRequest.nvidia.com", space, name)), "model")
    return over(Model(), name=asked, source=asked)


def place(meta: Meta, spec: PodSpec, found: Found) -> Place:
    labels = meta.labels
    name = labels.get(_COMPONENT) or _env(spec, "DYN_COMPONENT") or found.ref.name
    role = _role(labels.get(_TYPE, ""), labels.get(_SUB_TYPE, ""))
    if _GROUP_INDEX in labels:
        size = meta.annotations.get(_LWS_SIZE, "")
        lws = labels.get("leaderworkerset.sigs.k8s.io/name", "")
        return Place(name, role, f"{lws}-{labels[_GROUP_INDEX]}", int(size) if size.isdecimal() else 1)
    if _GROVE_GROUP in labels:
        return Place(name, role, f"{labels[_GROVE_GROUP]}-{labels.get(_GROVE_INDEX, '0')}")
    return Place(name, role)


def _env(spec: PodSpec | None, name: str) -> str:
    containers = spec.containers if spec is not None else ()
    return next((e.value for c in containers for e in c.env if e.name == name), "")


def join(meta: Meta, spec: PodSpec | None) -> RootRef | None:
    name = meta.labels.get(_NAME)
    if name:
        return RootRef(GRAPH, meta.namespace, name)
    if _COMPONENT in meta.labels:
        # A component deployed on its own has no graph; its pods still say whose they are.
        name = meta.labels.get(_SELECTOR) or _env(spec, "DYN_PARENT_DGD_K8S_NAME")
        return RootRef(PART, meta.namespace, name) if name else None
    return None


def refuse(ref: RootRef, obj: Object) -> str:
    if ref.kind != PART:
        return ""
    annotations = table(spec_of(obj), "podTemplate", "metadata", "annotations")
    if _ORIGIN in annotations and not obj.metadata.owner_references:
        return "part of a DynamoGraphDeployment that it does not name"
    return ""


def model(meta: Meta, spec: PodSpec) -> Model:
    """A frontend or an endpoint picker serves no model of its own."""
    role = _role(meta.labels.get(_TYPE, ""), meta.labels.get(_SUB_TYPE, ""))
    said = _model_of(spec) if role in _SERVING else Model()
    return over(
        said, name=said.name or (meta.labels.get("nvidia.com/dynamo-base-model", "") if role in _SERVING else "")
    )


SPEC = FrameworkSpec(
    framework=Framework.DYNAMO,
    docs="NVIDIA Dynamo: a graph of frontend, prefill, decode and planner components, told by object or labels.",
    roots=(GRAPH, PART),
    below=("PodCliqueSet.grove.io", "PodCliqueScalingGroup.grove.io", "PodClique.grove.io"),
    aside=(
        ("DynamoGraphDeploymentRequest.nvidia.com", "a request: the DynamoGraphDeployment it makes is the workload"),
    ),
    labels=(_NAME, _COMPONENT, _TYPE, _SUB_TYPE),
    registers=Registration.DYNAMO,
    scale=(
        "`spec.replicas` of the component's DynamoGraphDeploymentScalingAdapter where it has one, else the component's "
        "replicas in the DynamoGraphDeployment; never the objects below."
    ),
    read=read,
    read_below=_read_below,
    place=place,
    model=model,
    join=join,
    refuse=refuse,
)
