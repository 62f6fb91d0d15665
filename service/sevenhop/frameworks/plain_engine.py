"""Engines without a framework: whatever runs vLLM, SGLang, TensorRT-LLM, TGI, Triton, … by itself."""

from __future__ import annotations

import re

from sevenhop.core.inventory.framework import Candidate, Claim, Found, FrameworkSpec, Place, Reading
from sevenhop.core.inventory.templates import JOBSET, JOBSET_NAME, read_members
from sevenhop.core.inventory.workloads import Framework
from sevenhop.core.objects.base import Meta
from sevenhop.core.objects.pod import PodSpec
from sevenhop.frameworks import jobset
from sevenhop.frameworks.controllers import model_of_controller, place_in_controller, read_controller
from sevenhop.frameworks.engine import Engine, engine_of
from sevenhop.frameworks.roles import role_in, stem_of
from sevenhop.frameworks.router import router_of

_INSTANCE = "app.kubernetes.io/instance"


def claim(candidate: Candidate) -> Claim | str:
    if candidate.ref.kind == JOBSET:
        return jobset.claim(candidate)
    spec = candidate.template.spec
    labels = {**candidate.labels, **candidate.template.metadata.labels}
    instance = labels.get(_INSTANCE, "")
    engine = engine_of(spec)
    if not isinstance(engine, Engine):
        router = router_of(spec)
        if router is not None:
            routes = [f"pool/{router.pool}"] if router.pool else [f"label/{label}" for label in router.labels]
            if instance and not routes:
                routes = [f"instance/{instance}"]
            return Claim(role=router.role, serves=False, routes=tuple(routes))
        if candidate.pools:
            # Whoever made the pool says that these serve a model, whatever they run.
            return Claim(role=role_in(candidate.ref.name) or "engine")
        return engine or ""
    if candidate.ref.kind == "Job.batch":
        return f"a Job that runs {engine.name}, and serves nobody"
    # Names are a hint of prefill and decode only where the arguments say nothing.
    role = engine.role or _role_by_name(candidate)
    what = engine.model.source or engine.model.name
    folds = []
    if instance and what:
        folds.append(f"instance/{instance}/{what}")
    if role in ("prefill", "decode"):
        folds.append(f"stem/{_stem(candidate)}/{what}")
    handles = [f"label/{key}={value}" for key, value in candidate.template.metadata.labels.items()]
    return Claim(
        role=role or "engine",
        model=model_of_controller(candidate.template.metadata, spec),
        folds=tuple(folds),
        name=_name(candidate, role, instance, engine.model.name),
        helm=bool(instance) and labels.get("app.kubernetes.io/managed-by") == "Helm",
        handles=(*handles, f"instance/{instance}") if instance else tuple(handles),
    )


def _role_by_name(candidate: Candidate) -> str:
    role = role_in(candidate.ref.name) or role_in(candidate.labels.get("app.kubernetes.io/component", ""))
    return role if role in ("prefill", "decode") else ""


def _stem(candidate: Candidate) -> str:
    """What a name has beside prefill and decode; empty for a Deployment that is just called ``decode``."""
    stem = stem_of(candidate.ref.name)
    return "" if stem == candidate.ref.name and role_in(stem) == stem else stem


def _name(candidate: Candidate, role: str, instance: str, model: str) -> str:
    """Of several folded ones: what their names share, else the Helm release, else the model."""
    if role in ("prefill", "decode") and _stem(candidate):
        return _stem(candidate)
    return instance or re.sub(r"[^a-z0-9.-]+", "-", model.rpartition("/")[2].lower()).strip("-.")


def read(found: Found) -> Reading:
    return jobset.read(found) if found.ref.kind == JOBSET else read_controller(found)


def read_below(found: Found) -> Reading:
    return jobset.read_below(found) if found.ref.kind == JOBSET else read_members(SPEC, found)


def place(meta: Meta, spec: PodSpec, found: Found) -> Place:
    return (jobset.place if found.ref.kind == JOBSET else place_in_controller)(meta, spec, found)


SPEC = FrameworkSpec(
    framework=Framework.PLAIN,
    docs="An engine without a framework, recognised by command and image; prefill and decode of one model are folded. "
    "A JobSet is one where some of its pods run an engine: each replicated job is a component, its replicas are pods.",
    claims=("Deployment.apps", "StatefulSet.apps", "DaemonSet.apps", "ReplicaSet.apps", JOBSET, "Job.batch", "Pod"),
    labels=(_INSTANCE, JOBSET_NAME, jobset.ENTRY),
    scale="`/scale` of the Deployment or StatefulSet, or the autoscaler that rules it; a bare pod has no count, and a "
    "running JobSet stays as it is.",
    read=read,
    read_below=read_below,
    place=place,
    model=model_of_controller,
    claim=claim,
)
