"""Every framework and every way to set it up that can be scaled, on the test bed, with their real CRDs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from sevenhop.core.objects.kinds import KINDS
from tests.testbed import build, crds, operators
from tests.testbed.build import Component
from tests.testbed.build.dynamo import component_labels
from tests.testbed.client import ApiError, Client, Object
from tests.testbed.waiting import eventually

MODEL = "org/model"
FRONTEND = Component(name="Frontend", type="frontend")

# Of Knative there is no CRD in the shared data.  What is patched there is metadata, whose schema is the API server's.
_REVISIONS = """
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: revisions.serving.knative.dev}
spec:
  group: serving.knative.dev
  names: {kind: Revision, plural: revisions, singular: revision, listKind: RevisionList}
  scope: Namespaced
  versions:
    - name: v1
      served: true
      storage: true
      schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}
"""


def decode(**more: Any) -> Component:
    return Component(name="decode", type="decode", replicas=2, gpus=1, model=MODEL, **more)


def create_all(client: Client, namespace: str, folder: Path) -> int:
    """Create everything, and return how many pods it makes."""
    (folder / "revisions.yaml").write_text(_REVISIONS)
    crds.install_folder(client, folder)
    return (
        _dynamo(client, namespace)
        + _ray(client, namespace)
        + _kserve(client, namespace)
        + _llm(client, namespace)
        + _others(client, namespace)
    )


def _dynamo(client: Client, namespace: str) -> int:
    for name, component, grove in (
        ("dyn-plain", decode(), False),
        ("dyn-adapter", decode(scaling_adapter=True), False),
        ("dyn-grove", decode(), True),
        ("dyn-grove-multi", decode(nodes=2), True),
    ):
        operators.create_dynamo(
            client, build.dgd(name, namespace, [FRONTEND, component]), [FRONTEND, component], grove=grove
        )
    multi = decode(nodes=2)
    graph = client.create(build.dgd("dyn-lws", namespace, [multi]))
    (part,) = build.dynamo_component_deployments(graph, [multi])
    labels = component_labels(graph, multi)
    below = build.leader_worker_set("dyn-lws-decode", namespace, MODEL, replicas=2, size=2, gpus=1, labels=labels)
    operators.create_lws(client, build.owned_by(below, client.create(part)))
    return 3 + 3 + 3 + 5 + 4


def _ray(client: Client, namespace: str) -> int:
    client.create(build.ray_cluster("ray-plain", namespace, workers=2))
    client.create(build.ray_cluster("ray-hosts", namespace, workers=2, hosts=2))
    fixed = build.ray_cluster("ray-fixed", namespace, workers=2)
    fixed["spec"]["workerGroupSpecs"][0] |= {"minReplicas": 2, "scaleStrategy": {"workersToDelete": ["long-gone"]}}
    client.create(fixed)
    auto = build.ray_cluster("ray-auto", namespace, workers=2)
    auto["spec"]["enableInTreeAutoscaling"] = True
    client.create(auto)
    client.create(build.ray_service("ray-serve", namespace, MODEL, workers=2))
    return 3 + 5 + 3 + 3 + 3


def _kserve(client: Client, namespace: str) -> int:
    for by, least, most in (("hpa", 2, 4), ("keda", 2, 2), ("none", 2, 2), ("external", 2, 2)):
        service = build.inference_service(
            f"isvc-{by}", namespace, f"hf://{MODEL}", min_replicas=least, max_replicas=most, autoscaler=by
        )
        operators.create_kserve(client, service)
    service = build.inference_service("isvc-knative", namespace, f"hf://{MODEL}")
    service["metadata"]["annotations"] = {"serving.kserve.io/deploymentMode": "Knative"}
    parent = client.create(service)
    parts = {"predictor": {"latestReadyRevision": "isvc-knative-predictor-00001"}}
    status = {"components": parts, "deploymentMode": "Knative"}
    client.patch(
        "serving.kserve.io/v1beta1", "InferenceService", "isvc-knative", namespace, {"status": status},
        subresource="status",
    )  # fmt: skip
    revision: Object = {
        "apiVersion": "serving.knative.dev/v1",
        "kind": "Revision",
        "metadata": {
            "name": "isvc-knative-predictor-00001",
            "namespace": namespace,
            "annotations": {"autoscaling.knative.dev/min-scale": "2"},
        },
        "spec": {},
    }
    made = client.create(build.owned_by(revision, parent))
    labels = {"serving.kserve.io/inferenceservice": "isvc-knative", "component": "predictor"}
    child = _engine("isvc-knative-predictor-00001-deployment", namespace, labels)
    client.create(build.owned_by(child, made))
    return 2 + 2 + 2 + 2 + 2


def _llm(client: Client, namespace: str) -> int:
    pods: Object = {"containers": [{"name": "main", "image": "vllm/vllm-openai:v0.11.0"}]}
    model = {"uri": f"hf://{MODEL}", "name": MODEL}
    scaling = {"minReplicas": 1, "maxReplicas": 4, "wva": {"hpa": {}}}
    specs: dict[str, Object] = {
        "llm-replicas": {"replicas": 2, "prefill": {"replicas": 2, "template": pods}},
        "llm-scaling": {"scaling": scaling, "prefill": {"scaling": scaling, "template": pods}},
        "llm-child": {},
    }
    count = 0
    for name, spec in specs.items():
        manifest: Object = {
            "apiVersion": "serving.kserve.io/v1alpha2",
            "kind": "LLMInferenceService",
            "metadata": {"name": name, "namespace": namespace},
            "spec": {"model": model, "template": pods, **spec},
        }
        parent = client.create(manifest)
        halves = ("", "-prefill") if "prefill" in spec else ("",)
        for half in halves:
            role = {"": "decode" if len(halves) == 2 else "both", "-prefill": "prefill"}[half]
            labels = {
                "app.kubernetes.io/name": name,
                "app.kubernetes.io/part-of": "llminferenceservice",
                "app.kubernetes.io/component": f"llminferenceservice-workload{half}",
                "llm-d.ai/role": role,
            }
            client.create(build.owned_by(_engine(f"{name}-kserve{half}", namespace, labels), parent))
            count += 2
    return count


def _others(client: Client, namespace: str) -> int:
    operators.create_lws(client, build.leader_worker_set("lws", namespace, MODEL, replicas=2, size=2, gpus=1))
    labels = {"llm-d.ai/inference-serving": "true", "llm-d.ai/model": "m", "llm-d.ai/role": "decode"}
    client.create(_engine("ms-decode", namespace, labels, "llm-d/llm-d-cuda:v0.9"))
    grouped = build.leader_worker_set("mg-decode", namespace, MODEL, replicas=2, size=2, gpus=1, labels=labels)
    grouped["metadata"]["labels"] = labels
    operators.create_lws(client, grouped)
    for name, spec in (
        ("nim", {"replicas": 2}),
        ("nim-hpa", {"scale": {"enabled": True, "hpa": {"minReplicas": 2, "maxReplicas": 4}}}),
    ):
        parent = client.create(_nim(name, namespace, spec))
        labels = {"app.kubernetes.io/name": name, "app.kubernetes.io/part-of": "nim-service"}
        client.create(build.owned_by(_engine(name, namespace, labels), parent))
    client.create(build.vllm_deployment("plain", namespace, MODEL, replicas=2))
    stateful = build.vllm_deployment("plain-set", namespace, MODEL, replicas=2)
    client.create(stateful | {"kind": "StatefulSet", "spec": {**stateful["spec"], "serviceName": "plain-set"}})
    return 4 + 2 + 4 + 2 + 2 + 2 + 2


def _nim(name: str, namespace: str, spec: Object) -> Object:
    return {
        "apiVersion": "apps.nvidia.com/v1alpha1",
        "kind": "NIMService",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {
            "image": {"repository": "nvcr.io/nim/meta/llama-3.2-1b-instruct", "tag": "1.12.0"},
            "authSecret": "ngc-api-secret",
            "storage": {"nimCache": {"name": "meta"}},
            "resources": {"limits": {"nvidia.com/gpu": 1}},
            "expose": {"service": {"type": "ClusterIP", "port": 8000}},
            **spec,
        },
    }


def _engine(name: str, namespace: str, labels: dict[str, str], image: str = "vllm/vllm-openai:v0.11.0") -> Object:
    """Two replicas of vLLM whose pods carry these labels."""
    more: Object = {"replicas": 2, "labels": labels, "selector": {"sevenhop-test": name}, "image": image}
    return build.vllm_deployment(name, namespace, MODEL, **more)


def name_replicas(client: Client, namespace: str) -> None:
    """Label the hosts of one replica as KubeRay does from 1.6 on (RayMultiHostIndexing); 1.5 tells nothing."""
    pods = client.list("v1", "Pod", namespace, labels="ray.io/cluster=ray-hosts,ray.io/node-type=worker")
    for number, pod in enumerate(sorted(pods, key=lambda pod: str(pod["metadata"]["name"]))):
        labels = {"ray.io/worker-group-replica-name": f"gpu-group-{number // 2}"}
        client.patch("v1", "Pod", pod["metadata"]["name"], namespace, {"metadata": {"labels": labels}})


def read_all(client: Client, namespace: str) -> list[Object]:
    """Every object of the namespace, each kind in the first version that is served, as the service reads it."""
    found = []
    for row in KINDS.values():
        for version in row.versions:
            try:
                api = f"{row.group}/{version}" if row.group else version
                found += client.list(api, row.kind, namespace if row.namespaced else "")
            except (LookupError, ApiError) as error:
                if isinstance(error, ApiError) and error.status != 404:
                    raise
                continue
            break
    return found


def wait_until_ready(client: Client, namespace: str, pods: int) -> None:
    """Until exactly so many pods are there and Ready, and every Deployment has said so."""

    def look() -> bool:
        found = client.list("v1", "Pod", namespace)
        deployments = client.list("apps/v1", "Deployment", namespace)
        return (
            len(found) == pods
            and all(_is_ready(pod) for pod in found)
            and all(d.get("status", {}).get("availableReplicas") == d["spec"]["replicas"] for d in deployments)
        )

    eventually(look, what=f"{pods} ready pods", timeout=90)


def _is_ready(pod: Object) -> bool:
    return any(c["type"] == "Ready" and c["status"] == "True" for c in pod.get("status", {}).get("conditions", []))
