"""Sizes that somebody mistyped."""

from __future__ import annotations

from typing import Any

import pytest

from sevenhop.core.inventory.discovery import Discovery
from sevenhop.core.inventory.objects import Objects
from sevenhop.core.inventory.templates import repeated
from sevenhop.core.objects.decode import convert
from sevenhop.core.objects.kinds import kind_of
from sevenhop.core.objects.pod import PodSpec
from sevenhop.frameworks import FRAMEWORKS

HUGE = 2_000_000_000
SPEC = {"containers": [{"name": "c", "image": "vllm/vllm-openai:v0.15.1", "args": ["--model", "a/b"]}]}
TEMPLATE = {"spec": SPEC}
ROOTS: dict[str, dict[str, Any]] = {
    "leaderworkerset.x-k8s.io/v1 LeaderWorkerSet": {"leaderWorkerTemplate": {"size": HUGE, "workerTemplate": TEMPLATE}},
    "ray.io/v1 RayCluster": {
        "headGroupSpec": {"template": TEMPLATE},
        "workerGroupSpecs": [{"groupName": "w", "numOfHosts": HUGE, "replicas": 1, "template": TEMPLATE}],
    },
    "nvidia.com/v1beta1 DynamoGraphDeployment": {
        "components": [{"name": "w", "type": "worker", "multinode": {"nodeCount": HUGE}, "podTemplate": TEMPLATE}]
    },
    "serving.kserve.io/v1beta1 InferenceService": {
        "predictor": {
            "model": {"modelFormat": {"name": "huggingface"}, "storageUri": "hf://a/b"},
            "workerSpec": {"tensorParallelSize": HUGE, "pipelineParallelSize": HUGE},
        }
    },
}


@pytest.mark.parametrize("root", ROOTS)
def test_a_group_of_billions_does_not_fill_the_memory(root: str) -> None:
    """
    The workload is kept, known from its pods alone, and the reason says which number is not believed.
    """
    api_version, name = root.split()
    kind = kind_of(api_version, name)
    assert kind is not None
    objects = Objects()
    document = {
        "apiVersion": api_version,
        "kind": name,
        "metadata": {"name": "m", "namespace": "prod"},
        "spec": ROOTS[root],
    }
    objects.put(kind.name, convert(kind, document))

    discovery = Discovery(objects, FRAMEWORKS)
    discovery.settle()

    assert ("prod", "m") in discovery.workloads or discovery.skipped
    assert any("at most 10000 are believed" in reason for _, _, reason in discovery.skipped)


def test_sizes_that_exist() -> None:
    """
    Less than one is none; what groups really have is taken as it is.
    """
    assert repeated(PodSpec(), -1) == []
    assert len(repeated(PodSpec(), 576)) == 576


def test_a_reader_that_stumbles_is_a_reason() -> None:
    """
    A custom resource with a table where a name should be is kept as a workload, and the reason is said.
    """
    kind = kind_of("workloads.x-k8s.io/v1alpha2", "RoleBasedGroup")
    assert kind is not None
    patch: dict[str, Any] = {"spec": {"containers": [{"name": {"k": {}}}]}}
    pattern = {"size": 2, "template": TEMPLATE, "workerTemplatePatch": patch}
    spec = {"roles": [{"name": "w", "replicas": 1, "leaderWorkerPattern": pattern}]}
    objects = Objects()
    objects.put(
        kind.name,
        convert(
            kind,
            {
                "apiVersion": "workloads.x-k8s.io/v1alpha2",
                "kind": "RoleBasedGroup",
                "metadata": {"name": "m", "namespace": "prod"},
                "spec": spec,
            },
        ),
    )

    discovery = Discovery(objects, FRAMEWORKS)
    discovery.settle()

    assert any("cannot be read" in reason for _, _, reason in discovery.skipped)
