"""What rules the replicas, for each framework and each way to set it up."""

from __future__ import annotations

from typing import NamedTuple

import pytest

from sevenhop.core.remediation.reduction import Chooser, Ruler
from tests.unit.frameworks import running
from tests.unit.scaling import scenes
from tests.unit.scaling.world import World


class Case(NamedTuple):
    """What is expected of one component; `edits` are pointer → (before, after) of one replica fewer."""

    id: str
    world: World
    component: str
    target: str
    replicas: int
    floor: int
    edits: dict[str, tuple[object, object]]
    chooser: Chooser = Chooser.REPLICA_SET
    unit: int = 1
    through: str = ""
    marked: str = ""
    also: dict[str, tuple[object, object]] = {}
    version: str = ""


ANY, HIGHEST, NAMED = Chooser.ANY, Chooser.HIGHEST, Chooser.NAMED
GRAPH, ADAPTER = "DynamoGraphDeployment llama-70b", "DynamoGraphDeploymentScalingAdapter llama-70b-vllmdecodeworker"
GROUP = "/spec/workerGroupSpecs/1"
NAMES = f"{GROUP}/scaleStrategy/workersToDelete"
LIVE, SERVICE = "/spec/workerGroupSpecs/0", "/spec/rayClusterConfig/workerGroupSpecs/0"
SCALING = {"minReplicas": 1, "maxReplicas": 4, "wva": {"hpa": {}}}
HPA = {"enabled": True, "hpa": {"minReplicas": 2, "maxReplicas": 4}}

CASES = [
    Case(
        "dynamo on Deployments", scenes.dynamo(), "VllmDecodeWorker", GRAPH, 2, 1,
        {"/spec/components/1/replicas": (2, 1)}, version="v1beta1",
    ),
    Case(
        "dynamo on Grove", scenes.world(running.dynamo_grove), "VllmDecodeWorker", GRAPH, 2, 1,
        {"/spec/components/1/replicas": (2, 1)}, chooser=ANY, unit=2, version="v1beta1",
    ),
    Case(
        "dynamo on LeaderWorkerSet", scenes.world(running.dynamo_lws), "VllmDecodeWorker", GRAPH, 2, 1,
        {"/spec/components/1/replicas": (2, 1)}, chooser=HIGHEST, unit=2, version="v1beta1",
    ),
    Case(
        "dynamo v1alpha1", scenes.dynamo_older(), "VllmDecodeWorker", GRAPH, 2, 0,
        {"/spec/services/VllmDecodeWorker/replicas": (2, 1)}, version="v1alpha1",
    ),
    Case(
        "dynamo with adapter", scenes.dynamo_adapted(), "VllmDecodeWorker", ADAPTER, 2, 1,
        {"/spec/replicas": (2, 1)}, through="scale", marked=GRAPH,
    ),
    Case(
        "dynamo v1alpha1 with adapter",
        World([
            *scenes.dynamo_older(scalingAdapter={"enabled": True}).manifests.values(),
            scenes.adapter(version="v1alpha1"),
        ]),
        "VllmDecodeWorker", ADAPTER, 2, 0, {"/spec/replicas": (2, 1)}, through="scale", marked=GRAPH,
    ),
    Case(
        "dynamo, replicas not stated", scenes.dynamo_older(replicas=None), "VllmDecodeWorker", GRAPH, 1, 0,
        {"/spec/services/VllmDecodeWorker/replicas": (None, 0)}, version="v1alpha1",
    ),
    Case(
        "RayCluster, fixed", scenes.ray_cluster(), "gpu", "RayCluster batch", 3, 0,
        {f"{GROUP}/replicas": (3, 2), f"{GROUP}/minReplicas": (3, 2), f"{NAMES}/0": (None, "batch-gpu-20")},
        chooser=NAMED,
    ),
    Case(
        "RayCluster, a range", scenes.ray_cluster(minReplicas=1), "gpu", "RayCluster batch", 3, 1,
        {f"{GROUP}/replicas": (3, 2), f"{NAMES}/0": (None, "batch-gpu-20")}, chooser=NAMED,
    ),
    Case(
        "RayCluster, autoscaler", scenes.ray_cluster(autoscaler=True, minReplicas=1), "gpu", "RayCluster batch", 3, 1,
        {
            f"{GROUP}/replicas": (3, 2), f"{GROUP}/maxReplicas": (5, 2),
            f"{NAMES}/0": (None, "batch-gpu-20"),
        },
        chooser=NAMED,
    ),
    Case(
        "RayCluster, several hosts", scenes.ray_cluster(hosts=2), "gpu", "RayCluster batch", 3, 0,
        {
            f"{GROUP}/replicas": (3, 2), f"{GROUP}/minReplicas": (3, 2),
            f"{NAMES}/0": (None, "batch-gpu-20"), f"{NAMES}/1": (None, "batch-gpu-21"),
        },
        chooser=NAMED, unit=2,
    ),
    Case(
        "RayCluster, an earlier order", scenes.ray_cluster(scaleStrategy={"workersToDelete": ["old-1", "old-2"]}),
        "gpu", "RayCluster batch", 3, 0,
        {
            f"{GROUP}/replicas": (3, 2), f"{GROUP}/minReplicas": (3, 2),
            f"{NAMES}/0": ("old-1", "batch-gpu-20"), f"{NAMES}/1": ("old-2", None),
        },
        chooser=NAMED,
    ),
    Case(
        "RayService", scenes.world(running.ray_service), "h100", "RayCluster chat-x7k2p", 2, 1,
        {
            f"{LIVE}/replicas": (2, 1),
            f"{LIVE}/scaleStrategy/workersToDelete/0": (None, "chat-x7k2p-h100-10"),
            f"{LIVE}/scaleStrategy/workersToDelete/1": (None, "chat-x7k2p-h100-11"),
        },
        chooser=NAMED, unit=2, marked="RayService chat", also={f"{SERVICE}/replicas": (2, 1)},
    ),
    Case(
        "KServe hpa, a range", scenes.isvc(), "predictor", "InferenceService qwen", 3, 1,
        {"/spec/predictor/maxReplicas": (4, 2)}, marked="Deployment qwen-predictor",
    ),
    Case(
        "KServe hpa, fixed", scenes.isvc("hpa", least=3, most=3), "predictor", "InferenceService qwen", 3, 1,
        {"/spec/predictor/minReplicas": (3, 2), "/spec/predictor/maxReplicas": (3, 2)},
        marked="Deployment qwen-predictor",
    ),
    Case(
        "KServe hpa, no maximum", scenes.isvc("hpa", least=3, most=None), "predictor", "InferenceService qwen", 3, 1,
        {"/spec/predictor/minReplicas": (3, 2)}, marked="Deployment qwen-predictor",
    ),
    Case(
        "KServe keda", scenes.isvc("keda", least=0, most=3), "predictor", "InferenceService qwen", 3, 0,
        {"/spec/predictor/maxReplicas": (3, 2)}, marked="Deployment qwen-predictor",
    ),
    Case(
        "KServe none", scenes.isvc("none", least=3), "predictor", "InferenceService qwen", 3, 0,
        {"/spec/predictor/minReplicas": (3, 2)}, marked="Deployment qwen-predictor",
    ),
    Case(
        "KServe external", scenes.isvc("external"), "predictor", "Deployment qwen-predictor", 3, 0,
        {"/spec/replicas": (3, 2)}, through="scale",
    ),
    Case(
        "KServe Knative", scenes.knative(min_scale="2", max_scale="5"), "predictor", "Revision qwen-predictor-00002", 2,
        0,
        {
            "/metadata/annotations/autoscaling.knative.dev~1min-scale": ("2", "1"),
            "/metadata/annotations/autoscaling.knative.dev~1max-scale": ("5", "1"),
        },
        marked="Deployment qwen-predictor-00002-deployment",
    ),
    Case(
        "KServe Knative, nothing stated", scenes.knative(), "predictor", "Revision qwen-predictor-00002", 2, 0,
        {"/metadata/annotations/autoscaling.knative.dev~1max-scale": (None, "1")},
        marked="Deployment qwen-predictor-00002-deployment",
    ),
    Case(
        "LLMInferenceService replicas", scenes.llm(), "decode", "LLMInferenceService mixtral", 2, 1,
        {"/spec/replicas": (2, 1)}, version="v1alpha2",
    ),
    Case(
        "LLMInferenceService scaling", scenes.llm(replicas=None, scaling=SCALING), "decode",
        "LLMInferenceService mixtral", 2, 1, {"/spec/scaling/maxReplicas": (4, 1)}, version="v1alpha2",
    ),
    Case(
        "LLMInferenceService child", scenes.llm(replicas=None), "decode", "Deployment mixtral-kserve", 2, 1,
        {"/spec/replicas": (2, 1)}, through="scale", marked="LLMInferenceService mixtral",
    ),
    Case(
        "LeaderWorkerSet", scenes.lws(), "engine", "LeaderWorkerSet llama-405b", 2, 0, {"/spec/replicas": (2, 1)},
        chooser=HIGHEST, unit=2, through="scale",
    ),
    Case(
        "llm-d Deployment", scenes.world(running.llm_d), "decode", "Deployment ms-decode", 2, 1,
        {"/spec/replicas": (2, 1)}, through="scale",
    ),
    Case(
        "llm-d LeaderWorkerSet", scenes.llm_d_groups(), "decode", "LeaderWorkerSet ms-decode", 3, 0,
        {"/spec/replicas": (3, 2)}, chooser=HIGHEST, unit=2, through="scale",
    ),
    Case("NIM", scenes.nim(), "engine", "NIMService llama", 2, 0, {"/spec/replicas": (2, 1)}),
    Case(
        "NIM hpa", scenes.nim(scale=HPA), "engine", "NIMService llama", 2, 1,
        {"/spec/scale/hpa/minReplicas": (2, 1), "/spec/scale/hpa/maxReplicas": (4, 1)},
    ),
    Case(
        "Deployment", scenes.plain(), "engine", "Deployment summarizer", 3, 0, {"/spec/replicas": (3, 2)},
        through="scale",
    ),
    Case(
        "Deployment of a pair", scenes.world(running.plain_pair), "prefill", "Deployment qwen-prefill", 2, 1,
        {"/spec/replicas": (2, 1)}, through="scale",
    ),
    Case(
        "StatefulSet", scenes.world(running.plain_stateful), "engine", "StatefulSet qwen", 2, 0,
        {"/spec/replicas": (2, 1)}, chooser=HIGHEST, through="scale",
    ),
]  # fmt: skip

each_case = pytest.mark.parametrize("case", CASES, ids=[case.id for case in CASES])


@each_case
def test_the_ruler(case: Case) -> None:
    """
    The object that really rules, what it asks for, below what it may not go, and who chooses.
    """
    found = case.world.rule(case.component)

    assert isinstance(found, Ruler), found
    assert f"{found.target.kind.partition('.')[0]} {found.target.name}" == case.target
    assert (found.replicas, found.floor, found.unit_pods) == (case.replicas, case.floor, case.unit)
    assert found.chooser is case.chooser
    assert found.target.uid


@each_case
def test_the_change(case: Case) -> None:
    """
    One replica fewer: what is written, where, with what is there now, and what carries the annotation.
    """
    scale = case.world.scale(case.component, case.replicas - 1)

    assert {edit.pointer: (edit.before, edit.after) for edit in scale.edits} == case.edits
    assert {e.pointer: (e.before, e.after) for _, edits, _ in scale.also for e in edits} == case.also
    assert (scale.subresource, scale.version) == (case.through, case.version)
    assert f"{scale.marked.kind.partition('.')[0]} {scale.marked.name}" == (case.marked or case.target)
    assert (scale.before, scale.after, scale.unit_pods) == (case.replicas, case.replicas - 1, case.unit)
