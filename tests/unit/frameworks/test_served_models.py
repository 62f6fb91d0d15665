"""Under which name, and in how many versions, a model is served: one row per way of saying it."""

from __future__ import annotations

from typing import Any

import pytest

from sevenhop.core.inventory.discovery import Discovery
from sevenhop.core.inventory.workloads import Component, Workload
from sevenhop.frameworks import FRAMEWORKS
from tests.unit.frameworks.running import Manifest, container, obj, objects_of, template

_LABEL = "model.aibrix.ai/name"


def only(*manifests: Manifest) -> Workload:
    discovery = Discovery(objects_of(manifests), FRAMEWORKS)
    discovery.settle()
    (workload,) = discovery.workloads.values()
    return workload


def deployment(
    *args: str, image: str, command: tuple[str, ...] = (), labels: dict[str, str] | None = None, **spec: Any
) -> Manifest:
    made = container(image=image, args=list(args), command=list(command), **spec.pop("container", {}))
    return obj(
        "apps/v1",
        "Deployment",
        "d",
        labels=labels,
        spec={"replicas": 1, "template": template({"a": "d"}, made, **spec)},
    )


HOOK = {"lifecycle": {"postStart": {"exec": {"command": ["sh", "-c", "sleep 5; ollama pull llama3.2:3b"]}}}}
PULLS = [{"name": "pull", "image": "ollama/ollama", "command": ["sh", "-c", "ollama serve & ollama pull phi3:mini"]}]


@pytest.mark.parametrize(
    ("workload", "name", "version"),
    [
        pytest.param(
            deployment("--model-id", "org/m", "--revision", "r2", image="ghcr.io/predibase/lorax:main"),
            "org/m", "r2", id="lorax by image",
        ),
        pytest.param(
            deployment("--model-id=org/m", image="local/base", command=("lorax-launcher",)),
            "org/m", "", id="lorax by command",
        ),
        pytest.param(
            deployment(image="ollama/ollama:0.5.7", container=HOOK), "llama3.2:3b", "3b", id="ollama pulls in its hook"
        ),
        pytest.param(
            deployment(image="ollama/ollama:rocm", initContainers=PULLS), "phi3:mini", "mini", id="ollama pulls before"
        ),
        pytest.param(
            deployment("ollama serve & ollama pull qwen2.5; wait", image="ollama/ollama", command=("sh", "-c")),
            "qwen2.5", "", id="ollama pulls beside it",
        ),
        pytest.param(
            deployment("ollama run qwen2.5:latest", image="ollama/ollama", command=("sh", "-c")),
            "qwen2.5:latest", "", id="latest is no version",
        ),
        pytest.param(deployment(image="ollama/ollama"), "", "", id="ollama that is told nothing"),
        pytest.param(
            deployment("--model", "o/M", "--served-model-name=org/m", image="vllm/vllm-openai", labels={_LABEL: "m"}),
            "org/m", "", id="AIBrix, the flag says more than a label can",
        ),
        pytest.param(
            deployment("--model", "/models/M", image="vllm/vllm-openai", labels={_LABEL: "m"}),
            "m", "", id="AIBrix, no flag names it",
        ),
    ],
)  # fmt: skip
def test_names_and_versions(workload: Manifest, name: str, version: str) -> None:
    """The name that requests use, and the release where one is stated."""
    model = only(workload).model

    assert (model.name, model.version) == (name, version)


def nim(**multi_node: Any) -> Component:
    spec = {"image": {"repository": "nvcr.io/nim/x/y", "tag": "1"}, "replicas": 2, "multiNode": multi_node}
    (part,) = only(obj("apps.nvidia.com/v1alpha1", "NIMService", "n", spec=spec)).components
    return part


@pytest.mark.parametrize(
    ("multi_node", "pods", "gpus"),
    [
        pytest.param(
            {"parallelism": {"pipeline": 2, "tensor": 8}}, 2, 16, id="tensor parallelism gives each pod its GPUs"
        ),
        pytest.param({"parallelism": {"pipeline": 3}}, 3, 3, id="one each where nothing says"),
        pytest.param({"size": 2, "gpusPerPod": 4}, 2, 8, id="the operator's first version"),
    ],
)
def test_a_nim_over_several_nodes_without_resources(multi_node: dict[str, Any], pods: int, gpus: int) -> None:
    """The operator fills in GPUs that nobody asks for."""
    part = nim(**multi_node)

    assert (part.pods_per_replica, part.gpus_per_replica, part.desired) == (pods, gpus, 2)


def predictor(*, percent: int | None = None, traffic: tuple[int, ...] = ()) -> Component:
    part: dict[str, Any] = {"model": {"modelFormat": {"name": "huggingface"}, "storageUri": "hf://o/m:v2"}}
    if percent is not None:
        part["canaryTrafficPercent"] = percent
    status = {"components": {"predictor": {"traffic": [{"percent": share} for share in traffic]}}}
    isvc = obj("serving.kserve.io/v1beta1", "InferenceService", "q", spec={"predictor": part}, status=status)
    return only(isvc).components[0]


@pytest.mark.parametrize(
    ("said", "is_canary"),
    [
        pytest.param({"percent": 10}, True, id="a share is stated"),
        pytest.param({"traffic": (90, 10)}, True, id="Knative splits"),
        pytest.param({"percent": 100, "traffic": (100,)}, False, id="rolled out"),
        pytest.param({"percent": 0}, False, id="nothing yet"),
        pytest.param({"traffic": (0, 100)}, False, id="the one before gets nothing"),
        pytest.param({}, False, id="no canary"),
    ],
)
def test_a_canary_of_kserve(said: dict[str, Any], is_canary: bool) -> None:
    """Two versions that share the traffic are there on purpose."""
    assert predictor(**said).canary is is_canary
