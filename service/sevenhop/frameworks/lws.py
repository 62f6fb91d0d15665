"""LeaderWorkerSet and DisaggregatedSet: groups of pods that are one replica."""

from __future__ import annotations

from typing import Any

import msgspec

from sevenhop.core.inventory.framework import Candidate, Claim, Found, FrameworkSpec, Place, Reading, RootRef
from sevenhop.core.inventory.templates import LWS, as_template, pod_component, repeated, with_intended_zero
from sevenhop.core.inventory.workloads import Component, Framework, Model, ScaleTarget
from sevenhop.core.objects.base import Meta
from sevenhop.core.objects.pod import PodSpec
from sevenhop.frameworks.controllers import group_of, read_controller
from sevenhop.frameworks.engine import Engine, engine_of, model_of_pod
from sevenhop.frameworks.reading import number, replicas, rows, spec_of, table, text
from sevenhop.frameworks.roles import role_in

SET = "DisaggregatedSet.disaggregatedset.x-k8s.io"
SCALER = "DisaggregatedSetRoleScaler.disaggregatedset.x-k8s.io"
_NAME = "leaderworkerset.sigs.k8s.io/name"
_SET_NAME = "disaggregatedset.x-k8s.io/name"
_SET_ROLE = "disaggregatedset.x-k8s.io/role"


def claim(candidate: Candidate) -> Claim:
    """Every LeaderWorkerSet that no other framework takes: it exists for models that need more than one node."""
    engine = engine_of(candidate.template.spec)
    said = engine if isinstance(engine, Engine) else Engine("")
    return Claim(role=said.role or role_in(candidate.ref.name) or "engine", model=said.model)


def read(found: Found) -> Reading:
    return _read_set(found) if found.ref.kind == SET else read_controller(found)


def _read_set(found: Found) -> Reading:
    spec = spec_of(found.obj)
    slices = replicas(spec, "slices")
    components = [_role(found, role, at, slices) for at, role in enumerate(rows(spec, "roles"))]
    models = [part.model for part in components if part.model.name]
    return Reading(components=tuple(components), model=models[0] if models else Model())


def _role(found: Found, role: dict[str, Any], at: int, slices: int) -> Component:
    name = text(role, "name")
    group = table(role, "spec", "leaderWorkerTemplate")
    size = max(1, number(group, "size") or 1)
    worker = as_template(group.get("workerTemplate"))
    leader = as_template(group.get("leaderTemplate") or group.get("workerTemplate"))
    specs = [leader.spec, *repeated(worker.spec, size - 1)]
    where, ref = found.ref.namespace, found.ref
    model = model_of_pod(leader.metadata, leader.spec)
    part = pod_component(name, role_in(name) or "worker", specs, model, size, namespace=where, get=found.get)
    if text(role, "scaling", "mode") == "External":
        scale = ScaleTarget(SCALER, where, f"{ref.name}-{name}", "spec.replicas", size, "through /scale")
    else:
        note = "0 for all roles or for none"
        scale = ScaleTarget(SET, where, ref.name, f"spec.roles[{at}].spec.replicas", size, note)
    # Each slice has every role.
    desired = replicas(role, "spec", "replicas") * slices
    return with_intended_zero(msgspec.structs.replace(part, desired=desired, scale=scale))


def place(meta: Meta, spec: PodSpec, found: Found) -> Place:  # noqa: ARG001
    group, pods = group_of(meta)
    name = meta.labels.get(_SET_ROLE) or "engine"
    return Place(name, role_in(name) or ("worker" if found.ref.kind == SET else "engine"), group, pods)


def join(meta: Meta, spec: PodSpec | None) -> RootRef | None:  # noqa: ARG001
    name = meta.labels.get(_SET_NAME)
    return RootRef(SET, meta.namespace, name) if name else None


SPEC = FrameworkSpec(
    framework=Framework.LWS,
    docs="LeaderWorkerSet: every one is a workload, a group is one replica; a DisaggregatedSet has one per role.",
    roots=(SET,),
    claims=(LWS,),
    labels=(
        _NAME,
        "leaderworkerset.sigs.k8s.io/group-index",
        "leaderworkerset.sigs.k8s.io/worker-index",
        _SET_NAME,
        _SET_ROLE,
    ),
    scale="`/scale` of the LeaderWorkerSet (the highest group goes first), a role of a DisaggregatedSet or its scaler.",
    read=read,
    place=place,
    model=model_of_pod,
    join=join,
    claim=claim,
)
