"""Who else sets the replicas is found by what it scales, and told by name."""

from __future__ import annotations

import msgspec
import pytest

from sevenhop.core.inventory.scalers import SCALERS, scaled_by
from sevenhop.core.objects.base import Custom
from sevenhop.core.objects.kinds import kind_of
from sevenhop.core.remediation.reduction import ConflictReason, Ruler
from tests.unit.frameworks import running
from tests.unit.frameworks.running import Manifest
from tests.unit.scaling import scenes
from tests.unit.scaling.case import GRAPH, Case, beside, check, lws, touched
from tests.unit.scaling.test_floors import elsewhere
from tests.unit.scaling.world import other

R = ConflictReason
ISVC_OWNER = running.kserve_standard().objects[0]
plain, dynamo, isvc = scenes.plain, scenes.dynamo, scenes.isvc


def hpa(kind: str, name: str, version: str = "apps/v1", owner: Manifest | None = None) -> Manifest:
    spec = {"scaleTargetRef": {"apiVersion": version, "kind": kind, "name": name}, "minReplicas": 2, "maxReplicas": 8}
    return other("autoscaling/v2", "HorizontalPodAutoscaler", "web-hpa", owner=owner, spec=spec)


def scaled_object(name: str, *, owner: Manifest | None = None, **notes: str) -> Manifest:
    annotations = {f"autoscaling.keda.sh/{key.replace('_', '-')}": value for key, value in notes.items()}
    spec = {"scaleTargetRef": {"name": name}, "minReplicaCount": 0, "maxReplicaCount": 6}
    return other("keda.sh/v1alpha1", "ScaledObject", "web-so", owner=owner, annotations=annotations, spec=spec)


AUTOSCALED = [
    Case(
        "hpa", beside(plain, hpa("Deployment", "summarizer")), "engine", R.AUTOSCALED, ("web-hpa", "2–8", "summarizer")
    ),
    Case("hpa elsewhere", beside(plain, elsewhere(hpa("Deployment", "summarizer"))), "engine", None),
    Case("hpa of another", beside(plain, hpa("Deployment", "other")), "engine", None),
    Case("hpa of another kind", beside(plain, hpa("StatefulSet", "summarizer")), "engine", None),
    Case(
        "hpa on a pair's other half",
        beside(lambda: scenes.world(running.plain_pair), hpa("Deployment", "qwen-decode")),
        "prefill",
        None,
    ),
    Case("keda", beside(plain, scaled_object("summarizer")), "engine", R.AUTOSCALED, ("ScaledObject web-so",)),
    Case(
        "keda with its hpa",
        beside(plain, keda := scaled_object("summarizer"), hpa("Deployment", "summarizer", owner=keda)),
        "engine",
        R.AUTOSCALED,
        ("ScaledObject web-so",),
    ),
    Case(
        "keda paused, its hpa still there",
        beside(plain, held := scaled_object("summarizer", paused="true"), hpa("Deployment", "summarizer", owner=held)),
        "engine",
        R.AUTOSCALED,
        ("web-hpa",),
    ),
    Case("keda paused", beside(plain, scaled_object("summarizer", paused="true")), "engine", None),
    Case(
        "keda paused at a number",
        beside(plain, scaled_object("summarizer", paused="true", paused_replicas="4")),
        "engine",
        R.AUTOSCALED,
        ("paused at 4",),
    ),
    Case(
        "keda may not scale in",
        beside(plain, scaled_object("summarizer", paused_scale_in="true")),
        "engine",
        R.AUTOSCALED,
    ),
    Case(
        "aibrix autoscaler",
        beside(
            plain,
            other(
                "autoscaling.aibrix.ai/v1alpha1",
                "PodAutoscaler",
                "apa",
                spec={
                    "maxReplicas": 5,
                    "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "summarizer"},
                },
            ),
        ),
        "engine",
        R.AUTOSCALED,
        ("PodAutoscaler apa",),
    ),
    Case(
        "variant autoscaling",
        beside(
            lambda: scenes.world(running.llm_d),
            other(
                "llmd.ai/v1alpha1",
                "VariantAutoscaling",
                "va",
                spec={"scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "ms-decode"}},
            ),
        ),
        "decode",
        R.AUTOSCALED,
        ("VariantAutoscaling va",),
    ),
    Case(
        "hpa on an LWS",
        beside(lws, hpa("LeaderWorkerSet", "llama-405b", "leaderworkerset.x-k8s.io/v1")),
        "engine",
        R.AUTOSCALED,
    ),
    Case(
        "hpa on the adapter",
        beside(scenes.dynamo_adapted, hpa(scenes.ADAPTER, "llama-70b-vllmdecodeworker", "nvidia.com/v1beta1")),
        "VllmDecodeWorker",
        R.AUTOSCALED,
        ("web-hpa",),
    ),
    Case(
        "hpa below a graph",
        beside(dynamo, hpa("Deployment", "llama-70b-vllmdecodeworker")),
        "VllmDecodeWorker",
        R.AUTOSCALED,
    ),
    Case("KServe's own hpa", beside(isvc, hpa("Deployment", "qwen-predictor", owner=ISVC_OWNER)), "predictor", None),
    Case("another hpa below KServe", beside(isvc, hpa("Deployment", "qwen-predictor")), "predictor", R.AUTOSCALED),
    Case(
        "KServe's own keda",
        beside(
            lambda: isvc("keda"),
            so := scaled_object("qwen-predictor", owner=ISVC_OWNER),
            hpa("Deployment", "qwen-predictor", owner=so),
        ),
        "predictor",
        None,
    ),
    Case(
        "external with hpa",
        beside(lambda: isvc("external"), hpa("Deployment", "qwen-predictor")),
        "predictor",
        R.AUTOSCALED,
    ),
    Case(
        "planner",
        lambda: scenes.dynamo_with(lambda parts: parts.append({"name": "Planner", "type": "planner", "replicas": 1})),
        "VllmDecodeWorker",
        R.AUTOSCALED,
        ("Planner",),
    ),
    Case(
        "planner at 0",
        lambda: scenes.dynamo_with(lambda parts: parts.append({"name": "Planner", "type": "planner", "replicas": 0})),
        "VllmDecodeWorker",
        None,
    ),
    Case(
        "older planner",
        touched(
            scenes.dynamo_older,
            *GRAPH,
            spec={
                "services": {
                    **scenes.dynamo_older().manifest(*GRAPH)["spec"]["services"],
                    "Planner": {"componentType": "Planner"},
                }
            },
        ),
        "VllmDecodeWorker",
        R.AUTOSCALED,
        ("Planner",),
    ),
]


@pytest.mark.parametrize("case", AUTOSCALED, ids=lambda case: case.id)
def test_autoscalers(case: Case) -> None:
    """
    An autoscaler refuses what it would set back, and nothing else.
    """
    check(case)


@pytest.mark.parametrize("mode", ["Off", "Initial", "Auto", "Recreate", "InPlaceOrRecreate"])
def test_whoever_sizes_pods_does_not_count_them(mode: str) -> None:
    """A VerticalPodAutoscaler sets what a pod asks for: it is not read, and its target is no scale target."""
    target = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "summarizer"}
    manifest: Manifest = {
        "apiVersion": "autoscaling.k8s.io/v1",
        "kind": "VerticalPodAutoscaler",
        "metadata": {"name": "web-vpa", "namespace": "prod"},
        "spec": {"targetRef": target, "updatePolicy": {"updateMode": mode}},
    }
    assert kind_of(manifest["apiVersion"], manifest["kind"]) is None
    assert not any("autoscaling.k8s.io" in kind for kind in SCALERS)
    # Were it read one day, its field has another name than that of whoever scales.
    assert scaled_by(msgspec.convert(manifest, Custom)) is None
    assert isinstance(plain().rule("engine"), Ruler)
