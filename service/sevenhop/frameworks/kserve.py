"""KServe: InferenceService (Standard, Knative, multi-node) and LLMInferenceService."""

from __future__ import annotations

from typing import Any

import msgspec

from sevenhop.core.inventory.framework import Found, FrameworkSpec, Place, Reading, RootRef
from sevenhop.core.inventory.products import pod_gpus
from sevenhop.core.inventory.templates import LWS, as_pod_spec, pod_component, repeated, replicas_of, with_intended_zero
from sevenhop.core.inventory.workloads import Component, Framework, Model, Registration, ScaleTarget
from sevenhop.core.objects.base import Meta
from sevenhop.core.objects.cluster import Controller
from sevenhop.core.objects.pod import PodSpec
from sevenhop.frameworks.engine import Engine, engine_of, model_of_pod
from sevenhop.frameworks.flags import flags_of
from sevenhop.frameworks.model_source import from_uri, image_version
from sevenhop.frameworks.reading import meta_of, number, over, rows, spec_of, status_of, table, text, words

ISVC = "InferenceService.serving.kserve.io"
LLM = "LLMInferenceService.serving.kserve.io"
CONFIG = "LLMInferenceServiceConfig.serving.kserve.io"
RUNTIME, CLUSTER_RUNTIME = "ServingRuntime.serving.kserve.io", "ClusterServingRuntime.serving.kserve.io"
KSVC = "Service.serving.knative.dev"

_ISVC_LABEL = "serving.kserve.io/inferenceservice"
_STOP = "serving.kserve.io/stop"
_MODE = "serving.kserve.io/deploymentMode"
_SCALER = "serving.kserve.io/autoscalerClass"
_SOURCE = "internal.serving.kserve.io/storage-initializer-sourceuri"
_COMPONENT = "component"
_PART_OF = "app.kubernetes.io/part-of"
_NAME = "app.kubernetes.io/name"
_LLM_COMPONENT = "app.kubernetes.io/component"
_LLM_ROLE = "llm-d.ai/role"
_PARTS = ("predictor", "transformer", "explainer")
_OLD_FORMATS = (
    "sklearn", "xgboost", "tensorflow", "pytorch", "triton", "onnx", "huggingface", "pmml", "lightgbm", "paddle",
    "vllm",
)  # fmt: skip


# InferenceService


def _read_isvc(found: Found) -> Reading:
    spec = spec_of(found.obj)
    stopped = "stopped" if meta_of(found.obj).annotations.get(_STOP, "").lower() == "true" else ""
    model, server = _isvc_model(found, table(spec, "predictor"))
    components = []
    for name in _PARTS:
        part = table(spec, name)
        if part:
            components.append(_isvc_part(found, name, part, model if name == "predictor" else Model(), server, stopped))
    return Reading(components=tuple(components), model=model)


def _server(predictor: dict[str, Any]) -> dict[str, Any]:
    """The container-like part that names format and storage: ``model``, or a format's own key in older manifests."""
    if table(predictor, "model"):
        return table(predictor, "model")
    return next((table(predictor, key) for key in _OLD_FORMATS if key in predictor), {})


def _isvc_model(found: Found, predictor: dict[str, Any]) -> tuple[Model, dict[str, Any]]:
    server = _server(predictor)
    uri = text(server, "storageUri") or _storage(server) or _first_of(rows(predictor, "storageUris"))
    model = from_uri(uri) if uri else Model()
    flags = flags_of([word for word in words(server, "args") if word])
    served = next((flags[f] for f in ("model-name", "served-model-name") if flags.get(f)), "")
    own = engine_of(_predictor_pod(predictor, server)) if rows(predictor, "containers") else None
    if isinstance(own, Engine) and not server:
        env = _env(rows(predictor, "containers"), "STORAGE_URI") or uri
        artifact = from_uri(env) if env else Model()
        version = own.model.version or artifact.version
        return Model(own.model.name or found.ref.name, version, artifact.source or own.model.source), server
    identifier = next((flags[f] for f in ("model-id",) if flags.get(f)), "")
    # The runtimes that KServe ships serve under the InferenceService's name unless told otherwise.
    return Model(
        name=served or found.ref.name,
        version=flags.get("model-revision", "") or flags.get("revision", "") or model.version,
        source=model.source or identifier,
    ), server


def _storage(server: dict[str, Any]) -> str:
    """``storage: {key, path}`` names a path in a bucket that a Secret names."""
    path = text(server, "storage", "path")
    return f"s3://{text(server, 'storage', 'parameters', 'bucket') or 'default'}/{path}" if path else ""


def _first_of(uris: list[dict[str, Any]]) -> str:
    """Of several sources the one that is mounted where the runtimes look for the model."""
    main = [row for row in uris if text(row, "mountPath") in ("", "/mnt/models")]
    return text((main or uris or [{}])[0], "uri")


def _env(containers: list[dict[str, Any]], name: str) -> str:
    return next((text(e, "value") for c in containers for e in rows(c, "env") if text(e, "name") == name), "")


def _predictor_pod(predictor: dict[str, Any], server: dict[str, Any]) -> PodSpec:
    data = {k: v for k, v in predictor.items() if k not in ("model", "workerSpec", *_OLD_FORMATS)}
    if server and not rows(predictor, "containers"):
        keep = ("args", "command", "env", "resources", "image", "ports")
        data["containers"] = [{"name": "kserve-container", **{k: server[k] for k in keep if k in server}}]
    return as_pod_spec(data)


def _isvc_part(
    found: Found, name: str, part: dict[str, Any], model: Model, server: dict[str, Any], stopped: str
) -> Component:
    pod = _predictor_pod(part, server if name == "predictor" else {})
    runtime = _runtime(found, server) if name == "predictor" else {}
    worker = {**table(runtime, "workerSpec"), **table(part, "workerSpec")} if table(part, "workerSpec") else {}
    pods = _nodes(part, runtime, pod) if worker else 1
    built = pod_component(name, name, repeated(pod, pods), model, pods, namespace=found.ref.namespace, get=found.get)
    if not built.gpus_per_replica and runtime:
        default = as_pod_spec({"containers": rows(runtime, "containers")})
        built = _with_gpus(built, pod_component(name, name, repeated(default, pods), model, pods), default)
    if worker and not built.gpus_per_replica:
        # KServe gives each node of a multi-node predictor one GPU where nobody says how many.
        total = _ranks(part, runtime)
        built = msgspec.structs.replace(built, gpus_per_replica=total, gpu_resource="nvidia.com/gpu")
    least = number(part, "minReplicas")
    live = [
        count
        for m in found.members
        if isinstance(m.obj, Controller) and m.kind == "Deployment.apps" and _is_live(m.obj, name)
        if (count := replicas_of(m.obj)) is not None
    ]
    desired = sum(live) if live and not worker else (1 if least is None else least)
    built = msgspec.structs.replace(
        built,
        desired=desired,
        minimum=least,
        image=built.image or text(runtime, "image"),
        canary=_splits_traffic(found, name, part),
        scale=_isvc_scale(found, name, bool(worker)),
    )
    return with_intended_zero(built, stopped)


def _splits_traffic(found: Found, name: str, part: dict[str, Any]) -> bool:
    """Whether requests go to two revisions: a share is stated, or Knative still sends some to the one before."""
    stated = number(part, "canaryTrafficPercent")
    shares = [number(row, "percent") for row in rows(status_of(found.obj), "components", name, "traffic")]
    return (stated is not None and 0 < stated < 100) or sum(bool(share) for share in shares) > 1


def _is_live(obj: Controller, name: str) -> bool:
    labels = obj.spec.template.metadata.labels
    return labels.get(_COMPONENT, "predictor") == name and not obj.metadata.name.endswith("-worker")


def _with_gpus(built: Component, default: Component, pod: PodSpec) -> Component:
    return msgspec.structs.replace(
        built,
        gpus_per_replica=default.gpus_per_replica,
        gpu_resource=default.gpu_resource,
        image=built.image or (pod.containers[0].image if pod.containers else ""),
    )


def _ranks(part: dict[str, Any], runtime: dict[str, Any]) -> int:
    own, default = table(part, "workerSpec"), table(runtime, "workerSpec")
    pipeline = number(own, "pipelineParallelSize") or number(default, "pipelineParallelSize") or 1
    tensor = number(own, "tensorParallelSize") or number(default, "tensorParallelSize") or 1
    return pipeline * tensor


def _nodes(part: dict[str, Any], runtime: dict[str, Any], pod: PodSpec) -> int:
    per_pod = sum(pod_gpus(pod).values()) or 1
    return max(1, -(-_ranks(part, runtime) // per_pod))


def _runtime(found: Found, server: dict[str, Any]) -> dict[str, Any]:
    name = text(server, "runtime") or text(status_of(found.obj), "servingRuntimeName")
    cluster_name = text(server, "runtime") or text(status_of(found.obj), "clusterServingRuntimeName")
    own = found.get(RUNTIME, found.ref.namespace, name) if name else None
    return spec_of(own or (found.get(CLUSTER_RUNTIME, "", cluster_name) if cluster_name else None))


def _is_knative(found: Found) -> bool:
    mode = meta_of(found.obj).annotations.get(_MODE, "") or text(status_of(found.obj), "deploymentMode")
    return mode in ("Knative", "Serverless") or any(m.kind == KSVC for m in found.members)


def _isvc_scale(found: Found, name: str, is_multi_node: bool) -> ScaleTarget | None:
    if is_multi_node:
        return None  # cannot be split: only the stop annotation helps
    where = found.ref.namespace
    scaler = meta_of(found.obj).annotations.get(_SCALER, "hpa")
    path = f"spec.{name}.minReplicas"
    if _is_knative(found):
        revision = text(status_of(found.obj), "components", name, "latestReadyRevision")
        if revision:
            annotation = "metadata.annotations.autoscaling.knative.dev/min-scale"
            return ScaleTarget("Revision.serving.knative.dev", where, revision, annotation, 1, "with max-scale; hot")
        return ScaleTarget(ISVC, where, found.ref.name, path, 1, "with maxReplicas; makes a new Revision")
    if scaler == "external":
        target = f"{found.ref.name}-{name}"
        return ScaleTarget("Deployment.apps", where, target, "spec.replicas", 1, "or the external scaler")
    note = "" if scaler == "none" else "with maxReplicas"
    return ScaleTarget(ISVC, where, found.ref.name, path, 1, note)


# LLMInferenceService


def _read_llm(found: Found) -> Reading:
    spec = _merged(found)
    stopped = "stopped" if meta_of(found.obj).annotations.get(_STOP, "").lower() == "true" else ""
    uri = text(spec, "model", "uri")
    artifact = from_uri(uri) if uri else Model()
    prefill = table(spec, "prefill")
    main = "decode" if prefill else "engine"
    shared = over(artifact, name=text(spec, "model", "name") or found.ref.name)
    components = [_llm_part(found, main, spec, shared, "", stopped)]
    if prefill:
        components.append(_llm_part(found, "prefill", prefill, shared, "prefill.", stopped))
    scheduler = table(spec, "router").get("scheduler")
    if isinstance(scheduler, dict) and not table(scheduler, "pool", "ref"):
        desired = number(scheduler, "replicas")
        components.append(
            with_intended_zero(
                Component(name="scheduler", role="epp", desired=1 if desired is None else desired), stopped
            )
        )
    registers = Registration.POOL if isinstance(scheduler, dict) else Registration.ENDPOINTS
    return Reading(components=tuple(components), model=shared, registers=registers)


def _merged(found: Found) -> dict[str, Any]:
    """The spec over the configurations that it names, the later over the earlier, as KServe merges them."""
    own = spec_of(found.obj)
    merged: dict[str, Any] = {}
    for ref in rows(own, "baseRefs"):
        name = text(ref, "name")
        base = found.get(CONFIG, found.ref.namespace, name) or found.get(CONFIG, "kserve", name)
        merged = _merge(merged, spec_of(base))
    return table(_merge(merged, own))


def _merge(base: Any, over_it: Any) -> Any:
    if isinstance(base, dict) and isinstance(over_it, dict):
        return {
            k: _merge(base[k], over_it[k]) if k in base and k in over_it else {**base, **over_it}[k]
            for k in {**base, **over_it}
        }
    if isinstance(base, list) and isinstance(over_it, list) and _are_named(base) and _are_named(over_it):
        named = {item["name"]: item for item in base}
        for item in over_it:
            named[item["name"]] = _merge(named.get(item["name"], {}), item)
        return list(named.values())
    return over_it


def _are_named(items: list[Any]) -> bool:
    return all(isinstance(item, dict) and "name" in item for item in items)


def _llm_part(found: Found, name: str, part: dict[str, Any], shared: Model, prefix: str, stopped: str) -> Component:
    leader = as_pod_spec(table(part, "template"))
    engine = engine_of(leader)
    said = engine.model if isinstance(engine, Engine) else Model()
    model = Model(
        shared.name,
        said.version if not shared.version and said.source != "/mnt/models" else shared.version,
        shared.source,
    )
    worker = as_pod_spec(table(part, "worker")) if table(part, "worker") else None
    pods = _llm_pods(part) if worker is not None else 1
    specs = [leader, *repeated(worker or leader, pods - 1)]
    built = pod_component(name, name, specs, model, pods, namespace=found.ref.namespace, get=found.get)
    least, desired, scale = _llm_scale(found, part, prefix, pods)
    return with_intended_zero(msgspec.structs.replace(built, desired=desired, minimum=least, scale=scale), stopped)


def _llm_pods(part: dict[str, Any]) -> int:
    """Pods of one group, as KServe sizes its LeaderWorkerSet: data / dataLocal, else pipeline."""
    sizes = table(part, "parallelism")
    data, local = number(sizes, "data"), number(sizes, "dataLocal")
    if data and local:
        return max(1, data // local)
    return max(1, number(sizes, "pipeline") or 1)


def _llm_scale(
    found: Found, part: dict[str, Any], prefix: str, pods: int
) -> tuple[int | None, int | None, ScaleTarget]:
    where = found.ref.namespace
    child, kind = _llm_child(found, prefix, pods)
    live = found.get(kind, where, child)
    if table(part, "scaling"):
        least = number(part, "scaling", "minReplicas")
        target = ScaleTarget(LLM, where, found.ref.name, f"spec.{prefix}scaling.minReplicas", pods, "with maxReplicas")
        running = replicas_of(live) if live is not None else None
        return least, (running if running is not None else (1 if least is None else least)), target
    stated = number(part, "replicas")
    if stated is not None:
        return None, stated, ScaleTarget(LLM, where, found.ref.name, f"spec.{prefix}replicas", pods)
    running = replicas_of(live) if live is not None else 1
    return None, running, ScaleTarget(kind, where, child, "spec.replicas", pods, "preserved by KServe")


def _llm_child(found: Found, prefix: str, pods: int) -> tuple[str, str]:
    suffix = "-prefill" if prefix else ""
    if pods > 1:
        return f"{found.ref.name}-kserve-mn{suffix}", LWS
    return f"{found.ref.name}-kserve{suffix}", "Deployment.apps"


# Both


def read(found: Found) -> Reading:
    return _read_llm(found) if found.ref.kind == LLM else _read_isvc(found)


def place(meta: Meta, spec: PodSpec, found: Found) -> Place:  # noqa: ARG001
    labels = meta.labels
    if found.ref.kind == LLM:
        return _place_llm(meta, found)
    name = labels.get(_COMPONENT, "predictor")
    generation = labels.get("isvc.generation", "")
    is_multi_node = bool(generation) or "worker" in labels.get("multinode/role", "")
    return Place(name, name, f"{found.ref.name}-{generation}" if is_multi_node else "")


def _place_llm(meta: Meta, found: Found) -> Place:
    labels = meta.labels
    component = labels.get(_LLM_COMPONENT, "")
    index = labels.get("leaderworkerset.sigs.k8s.io/group-index")
    size = meta.annotations.get("leaderworkerset.sigs.k8s.io/size", "")
    if "router" in component or "scheduler" in component:
        return Place("scheduler", "epp")
    role = labels.get(_LLM_ROLE, "")
    if component.endswith("-prefill") or role == "prefill":
        name = "prefill"
    else:
        name = "decode" if role == "decode" or "prefill" in spec_of(found.obj) else "engine"
    group = f"{labels.get('leaderworkerset.sigs.k8s.io/name', name)}-{index}" if index is not None else ""
    return Place(name, name, group, int(size) if size.isdecimal() else 1)


def join(meta: Meta, spec: PodSpec | None) -> RootRef | None:  # noqa: ARG001
    labels = meta.labels
    if labels.get(_PART_OF) == "llminferenceservice" and labels.get(_NAME):
        return RootRef(LLM, meta.namespace, labels[_NAME])
    name = labels.get(_ISVC_LABEL)
    return RootRef(ISVC, meta.namespace, name) if name else None


def model(meta: Meta, spec: PodSpec) -> Model:
    """From the storage initializer's annotation, the modelcar's image, else the container's arguments."""
    said = model_of_pod(meta, spec)
    uri = meta.annotations.get(_SOURCE, "") or _initializer(spec)
    if uri:
        artifact = from_uri(uri)
        return Model(_served(said, meta) or artifact.name, artifact.version, artifact.source)
    car = next((c.image for c in (*spec.init_containers, *spec.containers) if c.name == "modelcar"), "")
    if car:
        return Model(_served(said, meta), image_version(car), f"oci://{car}")
    return over(said, name=_served(said, meta))


def _served(said: Model, meta: Meta) -> str:
    own = said.name if said.source != "/mnt/models" or said.name != "models" else ""
    return own or meta.labels.get(_ISVC_LABEL, "")


def _initializer(spec: PodSpec) -> str:
    for container in spec.init_containers:
        if container.name == "storage-initializer" and container.args:
            return container.args[0]
    return ""


_NOT_A_WORKLOAD = "a template that services name, no workload by itself"

SPEC = FrameworkSpec(
    framework=Framework.KSERVE,
    docs="KServe: an InferenceService with predictor, transformer and explainer, or an LLMInferenceService.",
    roots=(LLM, ISVC),
    below=(KSVC, "Configuration.serving.knative.dev", "Revision.serving.knative.dev"),
    aside=((RUNTIME, _NOT_A_WORKLOAD), (CLUSTER_RUNTIME, _NOT_A_WORKLOAD), (CONFIG, _NOT_A_WORKLOAD)),
    labels=(_ISVC_LABEL, _COMPONENT, _PART_OF, _NAME, _LLM_COMPONENT, _LLM_ROLE),
    scale=(
        "`spec.predictor.minReplicas` with `maxReplicas` of the InferenceService (on Knative the live Revision's "
        "annotations), `spec.replicas` or `spec.scaling` of the LLMInferenceService; a multi-node predictor only stops."
    ),
    read=read,
    place=place,
    model=model,
    join=join,
)
