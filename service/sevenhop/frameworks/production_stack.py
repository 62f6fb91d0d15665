"""vLLM production-stack: the operator's VLLMRuntime, and the Helm chart's Deployments with its router."""

from __future__ import annotations

from sevenhop.core.inventory.framework import Candidate, Claim, Found, FrameworkSpec, Place, Reading
from sevenhop.core.inventory.templates import with_intended_zero
from sevenhop.core.inventory.workloads import Component, Framework, Model, ScaleTarget
from sevenhop.core.objects.base import Meta
from sevenhop.core.objects.pod import PodSpec
from sevenhop.frameworks.controllers import place_in_controller, read_controller
from sevenhop.frameworks.engine import Engine, engine_of, model_of_pod
from sevenhop.frameworks.flags import flags_of
from sevenhop.frameworks.model_source import from_reference
from sevenhop.frameworks.reading import flag, number, replicas, spec_of, table, text, words
from sevenhop.frameworks.roles import role_in, stem_of
from sevenhop.frameworks.router import router_of

RUNTIME = "VLLMRuntime.production-stack.vllm.ai"
ROUTER = "VLLMRouter.production-stack.vllm.ai"
_RELEASE = "helm-release-name"
_COMPONENT = "app.kubernetes.io/component"


def read(found: Found) -> Reading:
    if found.ref.kind == RUNTIME:
        return _read_runtime(found)
    if found.ref.kind == ROUTER:
        desired = replicas(spec_of(found.obj), "replicas")
        return Reading(components=(with_intended_zero(Component(name="router", role="router", desired=desired)),))
    return read_controller(found)


def _read_runtime(found: Found) -> Reading:
    spec = spec_of(found.obj)
    deployment = table(spec, "deploymentConfig")
    amounts = table(deployment, "resources")
    flags = flags_of(words(spec, "vllmConfig", "extraArgs"))
    artifact = from_reference(text(spec, "model", "modelURL"))
    model = Model(
        flags.get("served-model-name", "") or artifact.name,
        flags.get("revision", "") or artifact.version,
        artifact.source,
    )
    gpus = number(amounts, "gpu") or 0
    image = table(deployment, "image")
    registry, name = text(image, "registry"), text(image, "name")
    scaling = table(spec, "autoscalingConfig")
    least = replicas(scaling, "minReplicas") if flag(scaling, "enabled") else None
    where = found.ref.namespace
    if least is None:
        scale = ScaleTarget(RUNTIME, where, found.ref.name, "spec.deploymentConfig.replicas", 1, "through /scale")
    else:
        path = "spec.autoscalingConfig.minReplicas"
        scale = ScaleTarget(RUNTIME, where, found.ref.name, path, 1, "with maxReplicas; KEDA rules the count")
    part = Component(
        name="engine",
        role=_kv_role(spec) or "engine",
        desired=replicas(deployment, "replicas"),
        minimum=least,
        gpus_per_replica=gpus,
        gpu_resource=(text(amounts, "gpuType") or "nvidia.com/gpu") if gpus else "",
        model=model,
        image=f"{registry}/{name}" if registry else name,
        scale=scale,
    )
    return Reading(components=(with_intended_zero(part),), model=model)


def _kv_role(spec: dict[str, object]) -> str:
    role = text(spec, "lmCacheConfig", "kvRole") or text(spec, "vllmConfig", "kvRole")
    return {"kv_producer": "prefill", "kv_consumer": "decode"}.get(role, "")


def place(meta: Meta, spec: PodSpec, found: Found) -> Place:
    if found.ref.kind == ROUTER:
        return Place("router", "router")
    return place_in_controller(meta, spec, found)


def claim(candidate: Candidate) -> Claim | str:
    """Deployments of the chart are told by the release's label, its router also by what it runs."""
    labels = {**candidate.labels, **candidate.template.metadata.labels}
    release = labels.get(_RELEASE, "")
    router = router_of(candidate.template.spec)
    is_router = labels.get(_COMPONENT) == "router" and bool(release)
    if is_router or (router is not None and router.role == "router"):
        routes = [f"release/{release}"] if release else []
        routes += [f"label/{label}" for label in (router.labels if router and not release else ())]
        return Claim(role="router", serves=False, routes=tuple(routes), alone=True)
    if not release or "model" not in labels:
        return ""
    engine = engine_of(candidate.template.spec)
    said = engine if isinstance(engine, Engine) else Engine("vllm")
    role = said.role or role_in(labels["model"])
    name = stem_of(labels["model"]) if role in ("prefill", "decode") else labels["model"]
    return Claim(
        role=role or "engine",
        model=said.model,
        folds=(f"release/{release}/{name}",),
        name=name,
        helm=True,
        handles=(f"release/{release}",),
    )


SPEC = FrameworkSpec(
    framework=Framework.PRODUCTION_STACK,
    docs="vLLM production-stack: VLLMRuntime of its operator, or its chart's Deployments, folded by release and model.",
    roots=(RUNTIME, ROUTER),
    claims=("Deployment.apps", "StatefulSet.apps", "Pod"),
    labels=(_RELEASE, "model", _COMPONENT),
    scale="`/scale` of the VLLMRuntime, or of the chart's Deployment; min and max of KEDA's ScaledObject if any.",
    read=read,
    place=place,
    model=model_of_pod,
    claim=claim,
)
