"""AIBrix: StormService with roles, RayClusterFleet, and plain Deployments with AIBrix's model label."""

from __future__ import annotations

from typing import Any

import msgspec

from sevenhop.core.inventory.framework import Candidate, Claim, Found, FrameworkSpec, Place, Reading, RootRef
from sevenhop.core.inventory.templates import as_template, pod_component, repeated, template_of, with_intended_zero
from sevenhop.core.inventory.workloads import Component, Framework, Model, ScaleTarget
from sevenhop.core.objects.base import Meta
from sevenhop.core.objects.pod import PodSpec
from sevenhop.frameworks import kuberay
from sevenhop.frameworks.controllers import read_controller
from sevenhop.frameworks.engine import Engine, engine_of, model_of_pod
from sevenhop.frameworks.reading import number, over, replicas, rows, spec_of, table, text
from sevenhop.frameworks.roles import role_in

STORM = "StormService.orchestration.aibrix.ai"
FLEET = "RayClusterFleet.orchestration.aibrix.ai"
_STORM_LABEL = "storm-service-name"
_ROLE = "role-name"
_MODEL = "model.aibrix.ai/name"
_ROLE_REPLICA = "stormservice.orchestration.aibrix.ai/role-replica-index"
_MODE = "autoscaling.aibrix.ai/storm-service-mode"


def read(found: Found) -> Reading:
    if found.ref.kind == STORM:
        return _read_storm(found)
    if found.ref.kind == FLEET:
        return _read_fleet(found)
    return _read_plain(found)


def _read_plain(found: Found) -> Reading:
    """A Deployment, or the like, with AIBrix's label on it or on its pods."""
    reading = read_controller(found)
    template = template_of(found.ref.kind, found.obj) if found.obj is not None else None
    if template is None or found.obj is None:
        return reading
    labels = {**found.obj.metadata.labels, **template.metadata.labels}
    model = _model(msgspec.structs.replace(template.metadata, labels=labels), template.spec)
    parts = tuple(msgspec.structs.replace(part, model=model) for part in reading.components)
    return msgspec.structs.replace(reading, components=parts, model=model)


def _read_storm(found: Found) -> Reading:
    spec = spec_of(found.obj)
    sets = replicas(spec, "replicas")
    roles = rows(spec, "template", "spec", "roles")
    components = [_role(found, role, at, sets) for at, role in enumerate(roles)]
    models = [part.model for part in components if part.model.name]
    return Reading(components=tuple(components), model=models[0] if models else Model())


def _role(found: Found, role: dict[str, Any], at: int, sets: int) -> Component:
    name = text(role, "name")
    size = max(1, number(role, "podGroupSize") or 1)
    template = as_template(role.get("template"))
    model = _model(template.metadata, template.spec)
    where = found.ref.namespace
    part = pod_component(
        name, role_in(name) or _engine_role(template.spec) or "worker", repeated(template.spec, size), model, size,
        namespace=where, get=found.get,
    )  # fmt: skip
    pooled = sets == 1 and f"spec.template.spec.roles[{at}].replicas"
    path = pooled or "spec.replicas"
    note = "one RoleSet" if pooled else "whole RoleSets, every role at once"
    scale = ScaleTarget(STORM, where, found.ref.name, path, size, note)
    return with_intended_zero(msgspec.structs.replace(part, desired=sets * replicas(role, "replicas"), scale=scale))


def _engine_role(spec: PodSpec) -> str:
    engine = engine_of(spec)
    return engine.role if isinstance(engine, Engine) else ""


def _read_fleet(found: Found) -> Reading:
    """A fleet of equal RayClusters: one replica is one cluster, head and workers together."""
    spec = spec_of(found.obj)
    config = table(spec, "template", "spec")
    head = as_template(table(config, "headGroupSpec", "template"))
    specs = [head.spec]
    for group in rows(config, "workerGroupSpecs"):
        count = replicas(group, "replicas") * max(1, number(group, "numOfHosts") or 1)
        specs += repeated(as_template(group.get("template")).spec, count)
    model = _model(msgspec.structs.replace(head.metadata, labels={**_labels(spec), **head.metadata.labels}), head.spec)
    where = found.ref.namespace
    part = pod_component("engine", "engine", specs, model, len(specs), namespace=where, get=found.get)
    scale = ScaleTarget(FLEET, where, found.ref.name, "spec.replicas", len(specs), "through /scale; whole clusters")
    part = with_intended_zero(msgspec.structs.replace(part, desired=replicas(spec, "replicas"), scale=scale))
    return Reading(components=(part,), model=model)


def _labels(spec: dict[str, Any]) -> dict[str, str]:
    return {k: str(v) for k, v in table(spec, "template", "metadata", "labels").items()}


def place(meta: Meta, spec: PodSpec, found: Found) -> Place:
    labels = meta.labels
    if found.ref.kind == FLEET:
        return Place("engine", "engine", labels.get("ray.io/cluster", ""))
    name = labels.get(_ROLE, "")
    if not name:
        return Place("engine", _engine_role(spec) or "engine")
    podset = labels.get("stormservice.orchestration.aibrix.ai/podset-name", "")
    return Place(name, role_in(name) or _engine_role(spec) or "worker", podset)


def join(meta: Meta, spec: PodSpec | None) -> RootRef | None:  # noqa: ARG001
    name = meta.labels.get(_STORM_LABEL)
    return RootRef(STORM, meta.namespace, name) if name else None


def _model(meta: Meta, spec: PodSpec) -> Model:
    """
    The name in requests is what the engine was told to serve under; the label, by which AIBrix's gateway finds the
    pods, must be the same, and names the model where no flag does.
    """
    engine = engine_of(spec)
    served = engine.served if isinstance(engine, Engine) else ""
    return over(model_of_pod(meta, spec), name=served or meta.labels.get(_MODEL, ""))


def claim(candidate: Candidate) -> Claim | str:
    name = candidate.template.metadata.labels.get(_MODEL) or candidate.labels.get(_MODEL)
    if not name:
        return ""
    engine = engine_of(candidate.template.spec)
    role = (engine.role if isinstance(engine, Engine) else "") or "engine"
    labels = {**candidate.labels, **candidate.template.metadata.labels}
    model = _model(msgspec.structs.replace(candidate.template.metadata, labels=labels), candidate.template.spec)
    # Requests reach every pod with this label: several Deployments with it are one served model.
    return Claim(role=role, model=model, folds=(f"aibrix/{name}",), name=name)


SPEC = FrameworkSpec(
    framework=Framework.AIBRIX,
    docs="AIBrix: a StormService with roles, a fleet of RayClusters, or Deployments labelled model.aibrix.ai/name.",
    roots=(STORM, FLEET),
    aside=(("PodAutoscaler.autoscaling.aibrix.ai", "scales a workload, is none itself"),),
    below=("RoleSet.orchestration.aibrix.ai", "PodSet.orchestration.aibrix.ai", kuberay.CLUSTER),
    claims=("Deployment.apps", "StatefulSet.apps", "LeaderWorkerSet.leaderworkerset.x-k8s.io", "Pod"),
    labels=(_STORM_LABEL, _ROLE, _MODEL, _ROLE_REPLICA),
    scale=(
        "`spec.template.spec.roles[i].replicas` of a StormService with one RoleSet, `spec.replicas` of one with more, "
        "never of RoleSet or PodSet.  A PodAutoscaler rules where there is one."
    ),
    read=read,
    place=place,
    model=_model,
    join=join,
    claim=claim,
)
