"""What Deployments, StatefulSets, LeaderWorkerSets and bare pods have in common, whoever claims them."""

from __future__ import annotations

import msgspec

from sevenhop.core.inventory.framework import Found, Place, Reading
from sevenhop.core.inventory.templates import (
    LWS,
    pod_component,
    pod_meta,
    replicas_of,
    specs_of,
    template_of,
    with_intended_zero,
)
from sevenhop.core.inventory.workloads import Model, ScaleTarget
from sevenhop.core.objects.base import Meta
from sevenhop.core.objects.pod import Pod, PodSpec
from sevenhop.frameworks.engine import model_of_pod
from sevenhop.frameworks.reading import over

_SCALABLE = (LWS, "Deployment.apps", "StatefulSet.apps", "ReplicaSet.apps")
_GROUP_INDEX = "leaderworkerset.sigs.k8s.io/group-index"
_SIZE = "leaderworkerset.sigs.k8s.io/size"
_MODEL_LABELS = ("model.aibrix.ai/name", "llm-d.ai/model")


def read_controller(found: Found) -> Reading:
    """
    One component: the pods of this controller.  Its name and role are given where it is claimed.

    Raises:
        ValueError: A quantity that is none, or a template that cannot be read.
    """
    assert found.obj is not None  # without it discovery reads the members
    template = template_of(found.ref.kind, found.obj)
    if template is None:
        return Reading()
    meta = pod_meta(template.metadata, found.ref.namespace)
    model = model_of_controller(meta, template.spec)
    specs = specs_of(found.ref.kind, found.obj)
    part = pod_component("engine", "engine", specs, model, len(specs), namespace=found.ref.namespace, get=found.get)
    desired = 1 if isinstance(found.obj, Pod) else replicas_of(found.obj)
    part = msgspec.structs.replace(part, desired=desired, scale=scale_of(found, len(specs)))
    return Reading(components=(with_intended_zero(part),), model=model)


def model_of_controller(meta: Meta, spec: PodSpec) -> Model:
    """The model by arguments; a label of llm-d or AIBrix names it where they do not."""
    said = model_of_pod(meta, spec)
    label = next((meta.labels[key] for key in _MODEL_LABELS if meta.labels.get(key)), "")
    return said if said.name else over(said, name=label)


def scale_of(found: Found, pods: int) -> ScaleTarget | None:
    """The controller itself, unless an autoscaler rules it; bare pods, Jobs and DaemonSets have no count."""
    kind, namespace, name = found.ref
    if kind not in _SCALABLE:
        return None
    scaler = found.scaler(kind, name)
    if scaler is None:
        return ScaleTarget(kind, namespace, name, "spec.replicas", pods, "through /scale")
    path = "spec.minReplicaCount" if scaler.kind == "ScaledObject.keda.sh" else "spec.minReplicas"
    maximum = "maxReplicaCount" if scaler.kind == "ScaledObject.keda.sh" else "maxReplicas"
    return ScaleTarget(scaler.kind, namespace, scaler.name, path, pods, f"with {maximum}; it rules {name}")


def place_in_controller(meta: Meta, spec: PodSpec, found: Found) -> Place:  # noqa: ARG001
    group, pods = group_of(meta)
    return Place("engine", "engine", group, pods)


def group_of(meta: Meta) -> tuple[str, int]:
    """(group, pods in it) of a pod of a LeaderWorkerSet; ("", 1) for any other."""
    index = meta.labels.get(_GROUP_INDEX)
    if index is None:
        return "", 1
    size = meta.annotations.get(_SIZE, "")
    name = meta.labels.get("leaderworkerset.sigs.k8s.io/name", "")
    return f"{name}-{index}", int(size) if size.isdecimal() else 1
