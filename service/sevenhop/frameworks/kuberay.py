"""KubeRay: RayService, RayJob, RayCluster."""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from typing import Any

import msgspec
import yaml

from sevenhop.core.inventory.framework import Found, FrameworkSpec, Place, Reading, RootRef
from sevenhop.core.inventory.products import normalise
from sevenhop.core.inventory.templates import as_template, pod_component, repeated, with_intended_zero
from sevenhop.core.inventory.workloads import Component, Framework, Model, Registration, ScaleTarget
from sevenhop.core.objects.base import Meta, Object
from sevenhop.core.objects.pod import PodSpec
from sevenhop.frameworks.engine import model_of_pod
from sevenhop.frameworks.model_source import from_reference
from sevenhop.frameworks.reading import (
    number,
    replicas,
    rows,
    spec_of,
    status_of,
    suspended,
    table,
    text,
)

SERVICE, JOB, CLUSTER = "RayService.ray.io", "RayJob.ray.io", "RayCluster.ray.io"
_CLUSTER_LABEL = "ray.io/cluster"
_NODE_TYPE = "ray.io/node-type"
_GROUP = "ray.io/group"
_FROM = "ray.io/originated-from-cr-name"
_FROM_KIND = "ray.io/originated-from-crd"
_HEAD_GROUP = "headgroup"
_ROLE_WORDS = ("prefill", "decode")


def read(found: Found) -> Reading:
    spec = spec_of(found.obj)
    config, live = _cluster_config(found)
    halted = suspended(found.obj, "suspend") or suspended(live, "suspend")
    applications = _applications(text(spec, "serveConfigV2"))
    models = [model for application in applications for model in _models(application)]
    model = models[0] if models else Model()
    accelerators = {normalise(name) for application in applications for name in _accelerators(application)}
    hint = accelerators.pop() if len(accelerators) == 1 else ""
    components = [_head(found, config, halted)]
    components += [
        _workers(found, group, at, model, hint, halted, live)
        for at, group in enumerate(rows(config, "workerGroupSpecs"))
    ]
    return Reading(components=tuple(components), model=model)


def _cluster_config(found: Found) -> tuple[dict[str, Any], Object | None]:
    """The configuration that counts: the live cluster's, where visible, since autoscaler and people patch that."""
    spec = spec_of(found.obj)
    if found.ref.kind == CLUSTER:
        return spec, found.obj
    status = status_of(found.obj)
    name = text(status, "activeServiceStatus", "rayClusterName") or text(status, "rayClusterName")
    live = found.get(CLUSTER, found.ref.namespace, name) if name else None
    if live is None:
        clusters = [m.obj for m in found.members if m.kind == CLUSTER]
        live = clusters[0] if len(clusters) == 1 else None
    stated = table(spec, "rayClusterConfig") or table(spec, "rayClusterSpec")
    return (spec_of(live) if live is not None else stated), live


def _head(found: Found, config: dict[str, Any], halted: str) -> Component:
    pod = as_template(table(config, "headGroupSpec", "template")).spec
    part = pod_component(_HEAD_GROUP, "head", [pod], Model(), namespace=found.ref.namespace, get=found.get)
    return with_intended_zero(msgspec.structs.replace(part, desired=1, minimum=1), halted)


def _workers(
    found: Found, group: dict[str, Any], at: int, model: Model, hint: str, halted: str, live: Object | None
) -> Component:
    hosts = max(1, number(group, "numOfHosts") or 1)
    pod = as_template(table(group, "template")).spec
    name = text(group, "groupName") or f"worker-{at}"
    role = next((word for word in _ROLE_WORDS if word in name.lower()), "worker")
    part = pod_component(name, role, repeated(pod, hosts), model, hosts, namespace=found.ref.namespace, get=found.get)
    least = replicas(group, "minReplicas", default=0)
    most = number(group, "maxReplicas")
    wanted = number(group, "replicas")
    desired = max(least, least if wanted is None else wanted)
    desired = desired if most is None else min(desired, most)
    owner = live if live is not None and found.ref.kind == SERVICE else found.obj
    part = msgspec.structs.replace(
        part,
        desired=desired,
        minimum=number(group, "minReplicas"),
        product=part.product or (hint if part.gpus_per_replica else ""),
        priority_class=part.priority_class
        or (owner.metadata.labels.get("ray.io/priority-class-name", "") if owner else ""),
        scale=_scale(found, at, hosts, live),
    )
    group_halted = "suspended" if group.get("suspend") is True else ""
    return with_intended_zero(part, halted or group_halted)


def _scale(found: Found, at: int, hosts: int, live: Object | None) -> ScaleTarget | None:
    field = f"workerGroupSpecs[{at}].replicas"
    where = found.ref.namespace
    if found.ref.kind == CLUSTER:
        return ScaleTarget(CLUSTER, where, found.ref.name, f"spec.{field}", hosts, "with minReplicas")
    if found.ref.kind == JOB:
        return None  # a job cannot be reduced, only suspended
    if live is not None:
        note = "with minReplicas; lower Serve's num_replicas first; the same in the RayService for good"
        return ScaleTarget(CLUSTER, where, live.metadata.name, f"spec.{field}", hosts, note)
    note = "has no effect on a live cluster; its name is not known"
    return ScaleTarget(SERVICE, where, found.ref.name, f"spec.rayClusterConfig.{field}", hosts, note)


@lru_cache(maxsize=1024)
def _parsed(config: str) -> Any:
    try:
        return yaml.load(config, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))  # noqa: S506  # both are safe
    except yaml.YAMLError:
        return None  # Ray refuses it too, and says so in the RayService's status


def _applications(config: str) -> list[dict[str, Any]]:
    return rows(_parsed(config), "applications") if config else []


def _llm_configs(application: dict[str, Any]) -> Iterator[dict[str, Any]]:
    arguments = table(application, "args")
    yield from rows(arguments, "llm_configs")
    for key in ("llm_config", "prefill_config", "decode_config"):
        if table(arguments, key):
            yield table(arguments, key)


def _models(application: dict[str, Any]) -> Iterator[Model]:
    for config in _llm_configs(application):
        loading = table(config, "model_loading_config")
        source = text(loading, "model_source") or text(loading, "model_source", "bucket_uri")
        artifact = from_reference(source or text(loading, "model_id"))
        yield Model(
            name=text(loading, "model_id") or artifact.name,
            version=text(config, "engine_kwargs", "revision") or artifact.version,
            source=artifact.source,
        )
    arguments = table(application, "args")
    name = text(arguments, "model") or text(arguments, "model_id")
    if name and not list(_llm_configs(application)):
        yield from_reference(name)


def _accelerators(application: dict[str, Any]) -> Iterator[str]:
    for config in _llm_configs(application):
        if text(config, "accelerator_type"):
            yield text(config, "accelerator_type")


def place(meta: Meta, spec: PodSpec, found: Found) -> Place:  # noqa: ARG001
    labels = meta.labels
    kind = labels.get(_NODE_TYPE, "")
    if kind == "head":
        return Place(labels.get(_GROUP, _HEAD_GROUP), "head")
    if kind == "worker":
        name = labels.get(_GROUP, "worker")
        role = next((word for word in _ROLE_WORDS if word in name.lower()), "worker")
        return Place(name, role, labels.get("ray.io/worker-group-replica-name", ""))
    return Place(kind or "submitter", kind or "submitter")


def join(meta: Meta, spec: PodSpec | None) -> RootRef | None:  # noqa: ARG001
    name, kind = meta.labels.get(_FROM), meta.labels.get(_FROM_KIND)
    if name and kind in ("RayService", "RayJob", "RayCluster"):
        return RootRef(f"{kind}.ray.io", meta.namespace, name)
    cluster = meta.labels.get(_CLUSTER_LABEL)
    return RootRef(CLUSTER, meta.namespace, cluster) if cluster else None


def model(meta: Meta, spec: PodSpec) -> Model:
    """Ray's pods carry no model: Serve tells it to them later."""
    return Model() if _CLUSTER_LABEL in meta.labels else model_of_pod(meta, spec)


SPEC = FrameworkSpec(
    framework=Framework.KUBERAY,
    docs="KubeRay: a head and groups of workers; the model stands in the Serve configuration of a RayService.",
    roots=(SERVICE, JOB, CLUSTER),
    labels=(_CLUSTER_LABEL, _NODE_TYPE, _GROUP, _FROM, _FROM_KIND),
    registers=Registration.RAY,
    scale=(
        "Worker group of the live RayCluster (`replicas` with `minReplicas`), and the same in the RayService for good; "
        "a RayJob can only be suspended."
    ),
    read=read,
    place=place,
    model=model,
    join=join,
)
