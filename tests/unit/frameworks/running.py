"""
Frameworks as they look while they run: roots, what they own, and pods with the labels that their controllers write.

Plain manifests, so that a test can take away the roots, the pods, or the order.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

from sevenhop.core.inventory.objects import Key, Objects
from sevenhop.core.objects.base import Object
from sevenhop.core.objects.decode import convert
from sevenhop.core.objects.kinds import kind_of

Manifest = dict[str, Any]
NAMESPACE = "prod"
VLLM = "vllm/vllm-openai:v0.11.0"


class Scene(NamedTuple):
    """
    Attributes:
        pods: Pod name to (workload, component).
        alone: What a pod says where nothing but pods is visible; the same as `pods` if empty.
    """

    name: str
    framework: str
    objects: list[Manifest]
    pods: dict[str, tuple[str, str]]
    alone: dict[str, tuple[str, str]]


def obj(
    api_version: str,
    kind: str,
    name: str,
    *,
    owner: Manifest | None = None,
    labels: dict[str, str] | None = None,
    annotations: dict[str, str] | None = None,
    **body: Any,
) -> Manifest:
    meta: Manifest = {"name": name, "namespace": NAMESPACE, "uid": f"{kind}:{name}"}
    if owner is not None:
        meta["ownerReferences"] = [reference(owner)]
    if labels:
        meta["labels"] = labels
    if annotations:
        meta["annotations"] = annotations
    return {"apiVersion": api_version, "kind": kind, "metadata": meta, **body}


def reference(owner: Manifest) -> Manifest:
    meta = owner["metadata"]
    return {
        "apiVersion": owner["apiVersion"],
        "kind": owner["kind"],
        "name": meta["name"],
        "uid": meta["uid"],
        "controller": True,
    }


def container(name: str = "main", image: str = VLLM, gpus: int = 1, **more: Any) -> Manifest:
    resources = {"limits": {"nvidia.com/gpu": str(gpus)}} if gpus else {}
    return {"name": name, "image": image, "resources": resources, **more}


def template(labels: dict[str, str], *containers: Manifest, **spec: Any) -> Manifest:
    return {"metadata": {"labels": labels}, "spec": {"containers": list(containers) or [container()], **spec}}


def pod(
    name: str,
    owner: Manifest | None,
    labels: dict[str, str],
    *containers: Manifest,
    annotations: dict[str, str] | None = None,
    ready: bool = True,
    **spec: Any,
) -> Manifest:
    status = {"phase": "Running", "conditions": [{"type": "Ready", "status": "True" if ready else "False"}]}
    return obj(
        "v1",
        "Pod",
        name,
        owner=owner,
        labels=labels,
        annotations=annotations,
        spec={"containers": list(containers) or [container()], **spec},
        status=status,
    )


def deployed(
    name: str,
    labels: dict[str, str],
    *containers: Manifest,
    replicas: int = 1,
    owner: Manifest | None = None,
    own_labels: dict[str, str] | None = None,
) -> list[Manifest]:
    """A Deployment, its ReplicaSet, and its pods ``<name>-abc-<n>``."""
    hashed = {**labels, "pod-template-hash": "abc"}
    deployment = obj(
        "apps/v1",
        "Deployment",
        name,
        owner=owner,
        labels=own_labels,
        spec={"replicas": replicas, "template": template(labels, *containers)},
    )
    sets = obj(
        "apps/v1",
        "ReplicaSet",
        f"{name}-abc",
        owner=deployment,
        labels=hashed,
        spec={"replicas": replicas, "template": template(hashed, *containers)},
    )
    return [deployment, sets, *(pod(f"{name}-abc-{n}", sets, hashed, *containers) for n in range(replicas))]


def lws_group(
    lws: Manifest, index: int, size: int, labels: dict[str, str], leader: Manifest, worker: Manifest
) -> list[Manifest]:
    """One group: the leader's StatefulSet is the LeaderWorkerSet's, the workers' is the leader's."""
    name = lws["metadata"]["name"]
    own = {
        **labels,
        "leaderworkerset.sigs.k8s.io/name": name,
        "leaderworkerset.sigs.k8s.io/group-index": str(index),
    }
    notes = {"leaderworkerset.sigs.k8s.io/size": str(size)}
    leaders = obj("apps/v1", "StatefulSet", name, owner=lws, spec={"replicas": 1, "template": template(own, leader)})
    first = pod(
        f"{name}-{index}",
        leaders,
        {**own, "leaderworkerset.sigs.k8s.io/worker-index": "0"},
        leader,
        annotations=notes,
    )
    workers = obj(
        "apps/v1",
        "StatefulSet",
        f"{name}-{index}",
        owner=first,
        spec={"replicas": size - 1, "template": template(own, worker)},
    )
    rest = [
        pod(
            f"{name}-{index}-{n}",
            workers,
            {**own, "leaderworkerset.sigs.k8s.io/worker-index": str(n)},
            worker,
            annotations=notes,
        )
        for n in range(1, size)
    ]
    return [leaders, first, workers, *rest]


def scene(
    name: str,
    framework: str,
    objects: list[Manifest],
    workload: str,
    components: dict[str, str],
    alone: dict[str, tuple[str, str]] | None = None,
) -> Scene:
    """`components` maps the start of a pod's name to its component; the longest start counts."""
    pods = {}
    for manifest in objects:
        if manifest["kind"] == "Pod":
            pod_name = manifest["metadata"]["name"]
            start = max((s for s in components if pod_name.startswith(s)), key=len, default=None)
            if start is not None:
                pods[pod_name] = (workload, components[start])
    return Scene(name, framework, objects, pods, alone if alone is not None else pods)


DYN = "nvidia.com/dynamo-"


def _dynamo_labels(component: str, kind: str, graph: str = "llama-70b") -> dict[str, str]:
    labels = {f"{DYN}graph-deployment-name": graph, f"{DYN}component": component, f"{DYN}component-type": kind}
    if kind in ("prefill", "decode"):
        labels[f"{DYN}sub-component-type"] = kind
    return labels


def _graph(decode_nodes: int = 1) -> Manifest:
    worker = container(command=["python3", "-m", "dynamo.vllm"], args=["--model", "meta-llama/Llama-3.1-70B"])
    decode: Manifest = {
        "name": "VllmDecodeWorker",
        "type": "decode",
        "replicas": 2,
        "minAvailable": 1,
        "podTemplate": template({}, worker),
    }
    if decode_nodes > 1:
        decode["multinode"] = {"nodeCount": decode_nodes}
    frontend = container(image="ai-dynamo/frontend:1", gpus=0, command=["python3", "-m", "dynamo.frontend"])
    parts = [{"name": "Frontend", "type": "frontend", "replicas": 1, "podTemplate": template({}, frontend)}, decode]
    return obj("nvidia.com/v1beta1", "DynamoGraphDeployment", "llama-70b", spec={"components": parts})


def dynamo_grove() -> Scene:
    graph = _graph(decode_nodes=2)
    cliques = obj(
        "grove.io/v1alpha1",
        "PodCliqueSet",
        "llama-70b",
        owner=graph,
        spec={
            "replicas": 1,
            "template": {"cliques": [{"name": "f", "labels": _dynamo_labels("Frontend", "frontend")}]},
        },
    )
    group = obj("grove.io/v1alpha1", "PodCliqueScalingGroup", "llama-70b-0-decode", owner=cliques)
    grove = {"app.kubernetes.io/managed-by": "grove-operator", "app.kubernetes.io/part-of": "llama-70b"}
    objects = [graph, cliques, group]
    front = obj("grove.io/v1alpha1", "PodClique", "llama-70b-0-frontend", owner=cliques)
    objects += [front, pod("llama-70b-0-frontend-x", front, {**grove, **_dynamo_labels("Frontend", "frontend")})]
    for replica in range(2):
        for part in ("ldr", "wkr"):
            clique = obj("grove.io/v1alpha1", "PodClique", f"llama-70b-0-decode-{replica}-{part}", owner=group)
            labels = {
                **grove,
                **_dynamo_labels("VllmDecodeWorker", "decode"),
                "grove.io/podclique": clique["metadata"]["name"],
                "grove.io/podcliquescalinggroup": "llama-70b-0-decode",
                "grove.io/podcliquescalinggroup-replica-index": str(replica),
            }
            objects += [clique, pod(f"llama-70b-0-decode-{replica}-{part}-x", clique, labels)]
    names = {"llama-70b-0-frontend": "Frontend", "llama-70b-0-decode": "VllmDecodeWorker"}
    return scene("dynamo on Grove", "dynamo", objects, "llama-70b", names)


def dynamo_deployments() -> Scene:
    graph = _graph()
    objects = [graph]
    for component, kind, count in (("Frontend", "frontend", 1), ("VllmDecodeWorker", "decode", 2)):
        name = f"llama-70b-{component.lower()}"
        part = obj(
            "nvidia.com/v1beta1",
            "DynamoComponentDeployment",
            name,
            owner=graph,
            spec={"name": component, "type": kind, "replicas": count},
        )
        objects += [part, *deployed(name, _dynamo_labels(component, kind), replicas=count, owner=part)]
    names = {"llama-70b-frontend": "Frontend", "llama-70b-vllmdecodeworker": "VllmDecodeWorker"}
    return scene("dynamo on Deployments", "dynamo", objects, "llama-70b", names)


def dynamo_lws() -> Scene:
    graph = _graph(decode_nodes=2)
    part = obj(
        "nvidia.com/v1beta1",
        "DynamoComponentDeployment",
        "llama-70b-decode-1f",
        owner=graph,
        spec={"name": "VllmDecodeWorker"},
    )
    lws = obj(
        "leaderworkerset.x-k8s.io/v1",
        "LeaderWorkerSet",
        "llama-70b-decode-1f",
        owner=part,
        spec={"replicas": 2, "leaderWorkerTemplate": {"size": 2, "workerTemplate": template({})}},
    )
    objects = [graph, part, lws]
    for index in range(2):
        labels = _dynamo_labels("VllmDecodeWorker", "decode")
        objects += lws_group(lws, index, 2, labels, container(), container())
    return scene(
        "dynamo on LeaderWorkerSet", "dynamo", _unique(objects), "llama-70b", {"llama-70b-decode": "VllmDecodeWorker"}
    )


def _unique(objects: list[Manifest]) -> list[Manifest]:
    """Groups of one LeaderWorkerSet share the leaders' StatefulSet."""
    return list({(o["kind"], o["metadata"]["name"]): o for o in objects}.values())


def ray_service() -> Scene:
    config = {
        "headGroupSpec": {"template": template({}, container("ray-head", "rayproject/ray:2.52.0", 0))},
        "workerGroupSpecs": [
            {
                "groupName": "h100",
                "replicas": 2,
                "minReplicas": 1,
                "maxReplicas": 4,
                "numOfHosts": 2,
                "template": template({}, container("ray-worker", "rayproject/ray-llm:2.52.0", 8)),
            }
        ],
    }
    serve = (
        "applications:\n- args:\n    llm_configs:\n    - model_loading_config: {model_id: qwen, model_source: Qwen/Q}\n"
    )
    service = obj(
        "ray.io/v1",
        "RayService",
        "chat",
        spec={"serveConfigV2": serve, "rayClusterConfig": config},
        status={"activeServiceStatus": {"rayClusterName": "chat-x7k2p"}},
    )
    cluster = obj(
        "ray.io/v1",
        "RayCluster",
        "chat-x7k2p",
        owner=service,
        labels={"ray.io/originated-from-cr-name": "chat", "ray.io/originated-from-crd": "RayService"},
        spec=config,
    )
    base = {"ray.io/cluster": "chat-x7k2p", "ray.io/is-ray-node": "yes"}
    objects = [service, cluster]
    objects.append(
        pod(
            "chat-x7k2p-head",
            cluster,
            {**base, "ray.io/node-type": "head", "ray.io/group": "headgroup"},
            container("ray-head", "rayproject/ray:2.52.0", 0),
        )
    )
    for replica in range(2):
        for host in range(2):
            labels = {
                **base,
                "ray.io/node-type": "worker",
                "ray.io/group": "h100",
                "ray.io/worker-group-replica-name": f"h100-{replica}",
            }
            objects.append(pod(f"chat-x7k2p-h100-{replica}{host}", cluster, labels))
    names = {"chat-x7k2p-head": "headgroup", "chat-x7k2p-h100": "h100"}
    full = scene("RayService", "kuberay", objects, "chat", names)
    # Pods name their cluster only; who made it stands on the cluster.
    alone = {name: ("chat-x7k2p", component) for name, (_, component) in full.pods.items()}
    return full._replace(alone=alone)


def kserve_standard() -> Scene:
    service = obj(
        "serving.kserve.io/v1beta1",
        "InferenceService",
        "qwen",
        spec={
            "predictor": {
                "minReplicas": 1,
                "maxReplicas": 4,
                "model": {
                    "modelFormat": {"name": "huggingface"},
                    "storageUri": "hf://Qwen/Qwen2.5-7B:v1",
                    "resources": {"limits": {"nvidia.com/gpu": "1"}},
                },
            },
            "transformer": {"containers": [container("kserve-container", "my/transformer:1", 0)]},
        },
    )
    base = {"serving.kserve.io/inferenceservice": "qwen"}
    server = container("kserve-container", "kserve/huggingfaceserver:v0.16", args=["--model_name=qwen"])
    objects = [service]
    objects += deployed("qwen-predictor", {**base, "component": "predictor"}, server, replicas=3, owner=service)
    objects += deployed(
        "qwen-transformer", {**base, "component": "transformer"}, container("c", "my/transformer:1", 0), owner=service
    )
    names = {"qwen-predictor": "predictor", "qwen-transformer": "transformer"}
    return scene("KServe standard", "kserve", objects, "qwen", names)


def kserve_knative() -> Scene:
    service = obj(
        "serving.kserve.io/v1beta1",
        "InferenceService",
        "qwen",
        annotations={"serving.kserve.io/deploymentMode": "Knative"},
        spec={"predictor": {"minReplicas": 0, "model": {"storageUri": "s3://models/qwen/v3"}}},
        status={"components": {"predictor": {"latestReadyRevision": "qwen-predictor-00002"}}},
    )
    knative = obj("serving.knative.dev/v1", "Service", "qwen-predictor", owner=service)
    configuration = obj("serving.knative.dev/v1", "Configuration", "qwen-predictor", owner=knative)
    revision = obj("serving.knative.dev/v1", "Revision", "qwen-predictor-00002", owner=configuration)
    labels = {"serving.kserve.io/inferenceservice": "qwen", "component": "predictor"}
    objects = [service, knative, configuration, revision]
    objects += deployed("qwen-predictor-00002-deployment", labels, replicas=2, owner=revision)
    return scene("KServe on Knative", "kserve", objects, "qwen", {"qwen-predictor": "predictor"})


def llm_inference_service() -> Scene:
    service = obj(
        "serving.kserve.io/v1alpha2",
        "LLMInferenceService",
        "mixtral",
        spec={
            "model": {"uri": "hf://mistralai/Mixtral:abc", "name": "mixtral"},
            "replicas": 2,
            "template": {"containers": [container()]},
            "prefill": {"replicas": 1, "template": {"containers": [container()]}},
            "router": {"scheduler": {}},
        },
    )
    base = {"app.kubernetes.io/name": "mixtral", "app.kubernetes.io/part-of": "llminferenceservice"}
    kind = "app.kubernetes.io/component"
    objects = [service]
    objects += deployed(
        "mixtral-kserve",
        {**base, kind: "llminferenceservice-workload", "llm-d.ai/role": "decode"},
        replicas=2,
        owner=service,
    )
    objects += deployed(
        "mixtral-kserve-prefill",
        {**base, kind: "llminferenceservice-workload-prefill", "llm-d.ai/role": "prefill"},
        owner=service,
    )
    objects += deployed(
        "mixtral-kserve-router-scheduler",
        {**base, kind: "llminferenceservice-router-scheduler"},
        container("main", "llm-d/endpoint-picker:1", 0),
        owner=service,
    )
    names = {
        "mixtral-kserve": "decode",
        "mixtral-kserve-prefill": "prefill",
        "mixtral-kserve-router-scheduler": "scheduler",
    }
    return scene("LLMInferenceService", "kserve", objects, "mixtral", names)


def leader_worker_set() -> Scene:
    leader = container(
        command=["sh", "-c", "ray start; vllm serve meta-llama/Llama-3.1-405B --tensor-parallel-size 8"], gpus=8
    )
    worker = container(command=["sh", "-c", "ray start --address=$(LWS_LEADER_ADDRESS)"], gpus=8)
    lws = obj(
        "leaderworkerset.x-k8s.io/v1",
        "LeaderWorkerSet",
        "llama-405b",
        spec={
            "replicas": 2,
            "leaderWorkerTemplate": {
                "size": 2,
                "leaderTemplate": template({}, leader),
                "workerTemplate": template({}, worker),
            },
        },
    )
    objects = [lws]
    for index in range(2):
        objects += lws_group(lws, index, 2, {}, leader, worker)
    return scene("LeaderWorkerSet", "lws", _unique(objects), "llama-405b", {"llama-405b": "engine"})


def replicated_job(name: str, *containers: Manifest, replicas: int = 1, **job: Any) -> Manifest:
    """One entry of a JobSet."""
    return {"name": name, "replicas": replicas, "template": {"spec": {"template": template({}, *containers), **job}}}


def job_set(name: str, *entries: Manifest, **spec: Any) -> list[Manifest]:
    """A JobSet, its Jobs ``<set>-<entry>-<n>``, and their pods ``<job>-<m>``."""
    root = obj("jobset.x-k8s.io/v1alpha2", "JobSet", name, spec={"replicatedJobs": list(entries), **spec})
    found = [root]
    for entry in entries:
        labels = {"jobset.sigs.k8s.io/jobset-name": name, "jobset.sigs.k8s.io/replicatedjob-name": entry["name"]}
        of = entry["template"]["spec"]
        containers = of["template"]["spec"]["containers"]
        for number in range(entry["replicas"]):
            made = {**of, "template": template(labels, *containers)}
            job = obj("batch/v1", "Job", f"{name}-{entry['name']}-{number}", owner=root, labels=labels, spec=made)
            pods = range(of.get("parallelism", 1))
            found += [job, *(pod(f"{job['metadata']['name']}-{n}", job, labels, *containers) for n in pods)]
    return found


def engine_on_hosts() -> Scene:
    serve = container(gpus=8, args=["--model", "org/llama-405b", "--tensor-parallel-size", "8"])
    rest = container("worker", gpus=8, command=["ray", "start"])
    objects = job_set(
        "llama", replicated_job("leader", serve), replicated_job("workers", rest, replicas=2, parallelism=2)
    )
    places = {"llama-leader-": "leader", "llama-workers-": "workers"}
    return scene("JobSet", "plain", objects, "llama", places)


def llm_d() -> Scene:
    base = {"llm-d.ai/inference-serving": "true", "llm-d.ai/model": "opt"}
    engine = container("vllm", "ghcr.io/llm-d/llm-d-cuda:v0.9", command=["vllm", "serve"], args=["facebook/opt-125m"])
    pool = obj("inference.networking.k8s.io/v1", "InferencePool", "opt-pool", spec={"selector": {"matchLabels": base}})
    objects = [pool]
    objects += deployed("ms-decode", {**base, "llm-d.ai/role": "decode"}, engine, replicas=2)
    objects += deployed("ms-prefill", {**base, "llm-d.ai/role": "prefill"}, engine)
    picker = container("epp", "ghcr.io/llm-d/llm-d-router-endpoint-picker:v0.10", 0, args=["--pool-name", "opt-pool"])
    objects += deployed("opt-epp", {"app": "opt-epp"}, picker)
    full = scene("llm-d", "llm-d", objects, "ms", {"ms-decode": "decode", "ms-prefill": "prefill", "opt-epp": "epp"})
    # Without the pool nobody knows what the picker picks for.
    return full._replace(alone={name: place for name, place in full.pods.items() if not name.startswith("opt-epp")})


def kubeai() -> Scene:
    model = obj(
        "kubeai.org/v1",
        "Model",
        "llama-8b",
        spec={
            "url": "hf://meta-llama/Llama-3.1-8B",
            "engine": "VLLM",
            "replicas": 2,
            "minReplicas": 1,
            "maxReplicas": 3,
            "resourceProfile": "nvidia-gpu-h100:2",
        },
    )
    labels = {"model": "llama-8b", "app.kubernetes.io/managed-by": "kubeai", "app": "model"}
    pods = [pod(f"model-llama-8b-{n}", model, labels) for n in range(2)]
    return scene("KubeAI", "kubeai", [model, *pods], "llama-8b", {"model-llama-8b": "engine"})


def aibrix_storm() -> Scene:
    roles = [
        {"name": "prefill", "replicas": 2, "template": template({"model.aibrix.ai/name": "qwen3"})},
        {"name": "decode", "replicas": 1, "podGroupSize": 2, "template": template({"model.aibrix.ai/name": "qwen3"})},
    ]
    storm = obj(
        "orchestration.aibrix.ai/v1alpha1",
        "StormService",
        "pd",
        spec={"replicas": 1, "template": {"spec": {"roles": roles}}},
    )
    sets = obj("orchestration.aibrix.ai/v1alpha1", "RoleSet", "pd-roleset-a", owner=storm)
    podset = obj("orchestration.aibrix.ai/v1alpha1", "PodSet", "pd-decode-0", owner=sets)
    base = {"storm-service-name": "pd", "model.aibrix.ai/name": "qwen3"}
    objects = [storm, sets, podset]
    objects += [pod(f"pd-prefill-{n}", sets, {**base, "role-name": "prefill"}) for n in range(2)]
    grouped = {**base, "role-name": "decode", "stormservice.orchestration.aibrix.ai/podset-name": "pd-decode-0"}
    objects += [pod(f"pd-decode-0-{n}", podset, grouped) for n in range(2)]
    return scene("AIBrix StormService", "aibrix", objects, "pd", {"pd-prefill": "prefill", "pd-decode": "decode"})


def production_stack_chart() -> Scene:
    objects = []
    for role, kv in (("prefill", "kv_producer"), ("decode", "kv_consumer")):
        labels = {
            "helm-release-name": "stack",
            "model": f"llama-{role}",
            "app.kubernetes.io/component": "serving-engine",
        }
        engine = container(
            "vllm",
            "lmcache/vllm-openai:v1",
            command=["vllm", "serve", "meta-llama/Llama-3.1-8B"],
            args=["--kv-transfer-config", f'{{"kv_role":"{kv}"}}'],
        )
        objects += deployed(f"stack-llama-{role}-deployment-vllm", labels, engine)
    router = container("router", "lmcache/lmstack-router:pd", 0)
    objects += deployed(
        "stack-deployment-router", {"helm-release-name": "stack", "app.kubernetes.io/component": "router"}, router
    )
    names = {"stack-llama-prefill": "prefill", "stack-llama-decode": "decode", "stack-deployment-router": "router"}
    return scene("production-stack chart", "production-stack", objects, "llama", names)


def production_stack_operator() -> Scene:
    runtime = obj(
        "production-stack.vllm.ai/v1alpha1",
        "VLLMRuntime",
        "llama",
        spec={
            "model": {"modelURL": "meta-llama/Llama-3.1-8B"},
            "deploymentConfig": {"replicas": 2, "resources": {"gpu": "1"}, "image": {"name": "lmcache/vllm-openai:v1"}},
        },
    )
    engine = container("vllm", "lmcache/vllm-openai:v1", args=["--model", "meta-llama/Llama-3.1-8B"])
    objects = [runtime, *deployed("llama", {"app": "llama"}, engine, replicas=2, owner=runtime)]
    return scene("production-stack operator", "production-stack", objects, "llama", {"llama": "engine"})


def role_based_group() -> Scene:
    roles = [
        {"name": "prefill", "replicas": 1, "standalonePattern": {"template": template({})}},
        {"name": "decode", "replicas": 1, "leaderWorkerPattern": {"size": 2, "template": template({})}},
    ]
    group = obj("workloads.x-k8s.io/v1alpha2", "RoleBasedGroup", "pd", spec={"roles": roles})
    labels = {"rbg.workloads.x-k8s.io/group-name": "pd"}
    role = "rbg.workloads.x-k8s.io/role-name"
    sets = obj(
        "apps/v1", "StatefulSet", "pd-prefill", owner=group, spec={"template": template({**labels, role: "prefill"})}
    )
    lws = obj(
        "leaderworkerset.x-k8s.io/v1",
        "LeaderWorkerSet",
        "pd-decode",
        owner=group,
        spec={"replicas": 1, "leaderWorkerTemplate": {"size": 2, "workerTemplate": template({})}},
    )
    objects = [group, sets, lws, pod("pd-prefill-0", sets, {**labels, role: "prefill"})]
    objects += lws_group(lws, 0, 2, {**labels, role: "decode"}, container(), container())
    return scene("RoleBasedGroup", "rbg", objects, "pd", {"pd-prefill": "prefill", "pd-decode": "decode"})


def nim_standalone() -> Scene:
    image = {"repository": "nvcr.io/nim/meta/llama-3.1-8b-instruct", "tag": "1.8.4"}
    service = obj(
        "apps.nvidia.com/v1alpha1",
        "NIMService",
        "llama",
        spec={"image": image, "replicas": 2, "resources": {"limits": {"nvidia.com/gpu": 1}}},
    )
    labels = {"app.kubernetes.io/name": "llama", "app.kubernetes.io/part-of": "nim-service"}
    server = container("llama-ctr", "nvcr.io/nim/meta/llama-3.1-8b-instruct:1.8.4")
    objects = [service, *deployed("llama", labels, server, replicas=2, owner=service)]
    return scene("NIM", "nim", objects, "llama", {"llama": "engine"})


def nim_on_kserve() -> Scene:
    image = {"repository": "nvcr.io/nim/meta/llama-3.1-8b-instruct", "tag": "1.8.4"}
    service = obj(
        "apps.nvidia.com/v1alpha1",
        "NIMService",
        "llama",
        spec={
            "image": image,
            "replicas": 1,
            "inferencePlatform": "kserve",
            "resources": {"limits": {"nvidia.com/gpu": 1}},
        },
    )
    inference = obj("serving.kserve.io/v1beta1", "InferenceService", "llama", owner=service, spec={"predictor": {}})
    labels = {
        "app.kubernetes.io/name": "llama",
        "app.kubernetes.io/part-of": "nim-service",
        "serving.kserve.io/inferenceservice": "llama",
        "component": "predictor",
    }
    server = container("llama-ctr", "nvcr.io/nim/meta/llama-3.1-8b-instruct:1.8.4")
    objects = [service, inference, *deployed("llama-predictor", labels, server, owner=inference)]
    return scene("NIM on KServe", "nim", objects, "llama", {"llama-predictor": "engine"})


def plain_pair() -> Scene:
    objects = []
    for role, kv in (("prefill", "kv_producer"), ("decode", "kv_consumer")):
        engine = container(
            command=["vllm", "serve"], args=["Qwen/Qwen3-32B", "--kv-transfer-config", f'{{"kv_role":"{kv}"}}'], gpus=2
        )
        objects += deployed(f"qwen-{role}", {"app": f"qwen-{role}"}, engine, replicas=2)
    return scene(
        "plain prefill and decode", "plain", objects, "qwen", {"qwen-prefill": "prefill", "qwen-decode": "decode"}
    )


def plain_stateful() -> Scene:
    engine = container(
        "sglang", "lmsysorg/sglang:v0.5", args=["python3", "-m", "sglang.launch_server", "--model-path", "Qwen/Q"]
    )
    sets = obj("apps/v1", "StatefulSet", "qwen", spec={"replicas": 2, "template": template({"app": "qwen"}, engine)})
    pods = [pod(f"qwen-{n}", sets, {"app": "qwen"}, engine) for n in range(2)]
    return scene("plain StatefulSet", "plain", [sets, *pods], "qwen", {"qwen": "engine"})


def plain_pod() -> Scene:
    one = pod(
        "tgi",
        None,
        {"app": "tgi"},
        container("tgi", "ghcr.io/huggingface/text-generation-inference:3.0", args=["--model-id", "a/b"]),
    )
    return scene("bare pod", "plain", [one], "tgi", {"tgi": "engine"})


def grove() -> Scene:
    cliques = [
        {"name": "router", "spec": {"replicas": 1, "podSpec": {"containers": [container(gpus=0)]}}},
        {"name": "ldr", "spec": {"replicas": 1, "podSpec": {"containers": [container()]}}},
        {"name": "wkr", "spec": {"replicas": 1, "podSpec": {"containers": [container()]}}},
    ]
    groups = [{"name": "decode", "cliqueNames": ["ldr", "wkr"], "replicas": 1}]
    root = obj(
        "grove.io/v1alpha1",
        "PodCliqueSet",
        "pd",
        spec={"replicas": 1, "template": {"cliques": cliques, "podCliqueScalingGroups": groups}},
    )
    base = {"app.kubernetes.io/managed-by": "grove-operator", "app.kubernetes.io/part-of": "pd"}
    front = obj("grove.io/v1alpha1", "PodClique", "pd-0-router", owner=root)
    group = obj("grove.io/v1alpha1", "PodCliqueScalingGroup", "pd-0-decode", owner=root)
    objects = [root, front, group, pod("pd-0-router-x", front, {**base, "grove.io/podclique": "pd-0-router"})]
    for part in ("ldr", "wkr"):
        clique = obj("grove.io/v1alpha1", "PodClique", f"pd-0-decode-0-{part}", owner=group)
        labels = {
            **base,
            "grove.io/podclique": f"pd-0-decode-0-{part}",
            "grove.io/podcliquescalinggroup": "pd-0-decode",
            "grove.io/podcliquescalinggroup-replica-index": "0",
        }
        objects += [clique, pod(f"pd-0-decode-0-{part}-x", clique, labels)]
    return scene("Grove", "grove", objects, "pd", {"pd-0-router": "router", "pd-0-decode": "decode"})


def kaito_workspace() -> Scene:
    space = obj(
        "kaito.sh/v1beta1",
        "Workspace",
        "phi",
        resource={"instanceType": "Standard_NC24ads_A100_v4"},
        inference={"preset": {"name": "phi-4"}},
    )
    labels = {"kaito.sh/workspace": "phi"}
    sets = obj("apps/v1", "StatefulSet", "phi", owner=space, spec={"replicas": 1, "template": template(labels)})
    return scene("KAITO", "kaito", [space, sets, pod("phi-0", sets, labels)], "phi", {"phi": "inference"})


SCENES: tuple[Scene, ...] = (
    dynamo_grove(),
    dynamo_deployments(),
    dynamo_lws(),
    ray_service(),
    kserve_standard(),
    kserve_knative(),
    llm_inference_service(),
    leader_worker_set(),
    llm_d(),
    kubeai(),
    aibrix_storm(),
    production_stack_chart(),
    production_stack_operator(),
    role_based_group(),
    nim_standalone(),
    nim_on_kserve(),
    plain_pair(),
    plain_stateful(),
    plain_pod(),
    engine_on_hosts(),
    grove(),
    kaito_workspace(),
)


def read(manifest: Manifest) -> tuple[str, Object]:
    kind = kind_of(manifest["apiVersion"], manifest["kind"])
    assert kind is not None, manifest["kind"]
    return kind.name, convert(kind, manifest)


def objects_of(manifests: Iterable[Manifest]) -> Objects:
    objects = Objects()
    for manifest in manifests:
        objects.put(*read(manifest))
    return objects


def key(name: str) -> Key:
    return (NAMESPACE, name)
