"""Engines by command, image and environment."""

from __future__ import annotations

from typing import Any

import pytest

from sevenhop.core.inventory.templates import as_pod_spec
from sevenhop.core.objects.pod import PodSpec
from sevenhop.frameworks.engine import Engine, engine_of
from sevenhop.frameworks.flags import flags_of
from sevenhop.frameworks.router import Router, router_of

GPU = {"limits": {"nvidia.com/gpu": "1"}}


def spec(image: str = "vllm/vllm-openai:v0.11", **more: Any) -> PodSpec:
    return as_pod_spec({"containers": [{"name": "main", "image": image, "resources": GPU, **more}]})


def ports(*numbers: int) -> list[dict[str, int]]:
    return [{"containerPort": number} for number in numbers]


def env(**values: str) -> list[dict[str, str]]:
    return [{"name": name, "value": value} for name, value in values.items()]


@pytest.mark.parametrize(
    ("pod", "name", "model"),
    [
        pytest.param(spec(args=["--model", "a/b"]), "vllm", "a/b", id="vllm image"),
        pytest.param(spec(args=["a/b", "--port", "1"]), "vllm", "a/b", id="vllm image, model first"),
        pytest.param(spec("my.io/x:1", command=["vllm", "serve", "a/b"]), "vllm", "a/b", id="vllm serve"),
        pytest.param(spec("my.io/x:1", command=["vllm", "serve"], args=["--model=a/b"]), "vllm", "a/b", id="--model="),
        pytest.param(
            spec(
                "ubuntu", command=["bash", "-c", "pip install x && python3 -m vllm.entrypoints.api_server --model a/b"]
            ),
            "vllm",
            "a/b",
            id="vllm in a script",
        ),
        pytest.param(spec("corp/vllm-custom:7", args=["--model", "a/b"]), "vllm", "a/b", id="somebody's vllm"),
        pytest.param(
            spec("corp/llm:7", ports=[{"containerPort": 8000}], env=env(VLLM_MODEL="a/b")),
            "vllm",
            "a/b",
            id="by environment",
        ),
        pytest.param(
            spec("lmsysorg/sglang:v0.5", command=["python3", "-m", "sglang.launch_server", "--model-path", "a/b"]),
            "sglang",
            "a/b",
            id="sglang",
        ),
        pytest.param(spec("x/trt", command=["trtllm-serve", "a/b", "--port", "1"]), "tensorrt-llm", "a/b", id="trtllm"),
        pytest.param(spec("x/trt", command=["trtllm-serve", "serve", "a/b"]), "tensorrt-llm", "a/b", id="trtllm serve"),
        pytest.param(
            spec("ghcr.io/huggingface/text-generation-inference:3", args=["--model-id", "a/b"]), "tgi", "a/b", id="tgi"
        ),
        pytest.param(
            spec("ghcr.io/huggingface/text-generation-inference:3", env=env(MODEL_ID="a/b")),
            "tgi",
            "a/b",
            id="tgi by env",
        ),
        pytest.param(
            spec("ghcr.io/huggingface/text-embeddings-inference:1", args=["--model-id=a/b"]), "tei", "a/b", id="tei"
        ),
        pytest.param(
            spec("nvcr.io/nvidia/tritonserver:25.01", command=["tritonserver", "--model-repository=s3://b/repo"]),
            "triton",
            "",
            id="triton",
        ),
        pytest.param(
            spec("ghcr.io/ggml-org/llama.cpp:server", args=["-hf", "a/b-GGUF", "--alias", "b"]),
            "llama.cpp",
            "b",
            id="llama.cpp",
        ),
        pytest.param(spec("ollama/ollama:0.5"), "ollama", "", id="ollama"),
        pytest.param(spec("michaelf34/infinity:1", args=["v2", "--model-id", "a/b"]), "infinity", "a/b", id="infinity"),
        pytest.param(
            spec("openmmlab/lmdeploy:1", command=["lmdeploy", "serve", "api_server", "a/b"]),
            "lmdeploy",
            "a/b",
            id="lmdeploy",
        ),
        pytest.param(spec("nvcr.io/nim/meta/llama-8b:1.2"), "nim", "meta/llama-8b", id="nim"),
        pytest.param(
            spec("x/d", command=["python3", "-m", "dynamo.vllm", "--model", "a/b"]), "dynamo", "a/b", id="dynamo"
        ),
        pytest.param(
            spec(command=["vllm", "serve", "--port", "8000", "a/b"]), "vllm", "a/b", id="flags before the model"
        ),
        pytest.param(
            spec(command=["vllm", "serve", "--enable-auto-tool-choice", "a/b"]), "vllm", "a/b", id="a switch before it"
        ),
        pytest.param(
            spec(command=["vllm", "serve", "--max-model-len", "-1", "--trust-remote-code", "--", "a/b"]),
            "vllm",
            "a/b",
            id="a negative number and two dashes before it",
        ),
        pytest.param(
            spec(command=["vllm", "serve", "--served-model-name", "x", "y", "--port", "1"]), "vllm", "x", id="no model"
        ),
        pytest.param(spec(command=["vllm", "serve", "--port", "1"]), "vllm", "", id="a port is no model"),
        pytest.param(
            spec(command=["sh", "-c", "vllm serve --config /c.yaml --sizes 1 2 2>&1 | tee /log"]),
            "vllm",
            "",
            id="neither are more numbers, and where the output goes",
        ),
        pytest.param(
            spec("x/trt", command=["trtllm-serve", "serve", "--backend", "pytorch", "a/b"]),
            "tensorrt-llm",
            "a/b",
            id="trtllm, flags before the model",
        ),
        pytest.param(spec(args=["--host", "0.0.0.0", "a/b"]), "vllm", "a/b", id="vllm image, flags before the model"),
        pytest.param(
            spec(command=["sh", "-c", "export M=a/b; vllm serve $M"]), "vllm", "a/b", id="a variable of the script"
        ),
        pytest.param(
            spec("x", command=["tini", "--", "bash", "-euo", "pipefail", "-c", "vllm serve a/b"]),
            "vllm",
            "a/b",
            id="a script behind a wrapper",
        ),
        pytest.param(
            spec("kaito", command=["/bin/sh", "-c", "python3 /workspace/vllm/inference_api.py --model=a/b"]),
            "vllm",
            "a/b",
            id="kaito's vllm",
        ),
    ],
)
def test_engine(pod: PodSpec, name: str, model: str) -> None:
    """
    An engine is told by what runs, else by the image, else by its own variables; its model by its own flags.
    """
    engine = engine_of(pod)

    assert isinstance(engine, Engine)
    assert (name, model) == (engine.name, engine.model.name)


@pytest.mark.parametrize(
    ("pod", "reason"),
    [
        pytest.param(spec("nginx:1"), None, id="web server"),
        pytest.param(spec("gpu-burn", command=["gpu_burn", "300"]), None, id="burns GPUs"),
        pytest.param(spec("pytorch/pytorch", command=["torchrun", "train.py"]), None, id="training"),
        pytest.param(spec(command=["sleep", "infinity"]), "image of vllm, but its command only waits", id="sleeps"),
        pytest.param(
            spec(command=["sh", "-c"], args=["sleep 6000"]),
            "image of vllm, but its command only waits",
            id="sleeps in sh",
        ),
        pytest.param(
            spec(command=["vllm", "bench", "serve", "--model", "a/b"]),
            "image of vllm, but it runs vllm bench",
            id="benchmark",
        ),
        pytest.param(
            spec(command=["lmcache_experimental_server", "x"]),
            "image of vllm, but it runs lmcache_experimental_server",
            id="cache",
        ),
        pytest.param(spec("corp/vllm-router:1"), None, id="router"),
        pytest.param(
            spec("nvcr.io/nvidia/tensorrt-llm/release:1", command=["trtllm-serve", "disaggregated", "-c", "/c.yaml"]),
            None,
            id="trtllm's router",
        ),
        pytest.param(
            spec("lmsysorg/sglang:v1", command=["python3", "-m", "sglang.bench_serving", "--model", "a/b"]),
            "image of sglang, but it runs sglang.bench_serving",
            id="sglang's benchmark",
        ),
        pytest.param(
            spec("nvcr.io/nvidia/tensorrt-llm/release:1", command=["trtllm-bench", "--model", "a/b"]),
            "image of tensorrt-llm, but it runs trtllm-bench",
            id="trtllm's benchmark",
        ),
        pytest.param(spec("corp/x", env=env(VLLM_MODEL="a/b")), None, id="variables, but no port"),
    ],
)
def test_no_engine(pod: PodSpec, reason: str | None) -> None:
    """
    What serves no model is not called an engine; where it looks like one the reason is told.
    """
    assert reason == engine_of(pod)


@pytest.mark.parametrize(
    ("args", "role"),
    [
        pytest.param(["--kv-transfer-config", '{"kv_role":"kv_producer"}'], "prefill", id="producer"),
        pytest.param(["--kv_transfer_config", '{"kv_role":"kv_consumer"}'], "decode", id="consumer"),
        pytest.param(["--kv-transfer-config", '{"kv_role":"kv_both"}'], "", id="both"),
        pytest.param(
            ["--kv-transfer-config", '{"kv_role":"kv_both","x":{"connectors":[{"kv_role":"kv_consumer"}]}}'],
            "decode",
            id="hidden in a MultiConnector",
        ),
        pytest.param(["--kv-transfer-config", "{kv_role: kv_producer"], "prefill", id="not quite JSON"),
        pytest.param(["--kv-transfer-config", '[{"kv_role":"kv_consumer"},' + "[" * 9_999], "decode", id="bottomless"),
        pytest.param(["--kv-transfer-config", "[" * 900 + "]" * 900], "", id="deep"),
        pytest.param(["--kv-transfer-config.kv_role=kv_producer"], "prefill", id="dotted"),
        pytest.param(["--disaggregation-mode", "prefill"], "prefill", id="mode"),
        pytest.param(["--disaggregation-mode", "null"], "", id="no mode"),
        pytest.param(["--server_role", "GENERATION"], "decode", id="TensorRT-LLM"),
    ],
)
def test_role(args: list[str], role: str) -> None:
    """
    Prefill and decode by the engine's own arguments.
    """
    engine = engine_of(spec(args=["--model", "a/b", *args]))

    assert isinstance(engine, Engine)
    assert role == engine.role


@pytest.mark.parametrize(
    ("pod", "version"),
    [
        pytest.param(spec(args=["--model", "a/b", "--revision", "r7"]), "r7", id="--revision"),
        pytest.param(spec(args=["--model", "a/b@r8"]), "r8", id="@revision"),
        pytest.param(spec(args=["--model", "a/b"]), "", id="the engine's tag is not the model's version"),
        pytest.param(
            spec("vllm/vllm-openai@sha256:ab", args=["--model", "a/b"]), "", id="nor is its digest, from the hub"
        ),
        pytest.param(
            spec("corp/vllm@sha256:ab", args=["--model", "/models/x"]), "sha256:ab", id="weights in the image"
        ),
        pytest.param(spec("nvcr.io/nim/meta/llama:1.2"), "1.2", id="NIM's tag is"),
        pytest.param(spec(args=["--model", "$(NOT_KNOWN)", "--revision", "$REV"]), "", id="unfilled variable"),
    ],
)
def test_version(pod: PodSpec, version: str) -> None:
    """
    A version is only what names a release of the model.
    """
    engine = engine_of(pod)

    assert isinstance(engine, Engine)
    assert version == engine.model.version


def test_the_first_served_name_counts() -> None:
    """
    vLLM takes several names, and labels its metrics with the first.
    """
    engine = engine_of(spec(args=["--model", "a/b", "--served-model-name", "one", "two"]))

    assert isinstance(engine, Engine)
    assert engine.model.name == "one"
    assert engine.model.source == "a/b"


def test_additional_arguments() -> None:
    """
    KServe passes arguments on in a variable.
    """
    engine = engine_of(
        spec(args=["--model", "/mnt/models"], env=env(VLLM_ADDITIONAL_ARGS="--served-model-name x --tp 8"))
    )

    assert isinstance(engine, Engine)
    assert engine.model.name == "x"


def test_the_container_with_gpus_counts() -> None:
    """
    A sidecar in front of the engine is not the engine.
    """
    pod = as_pod_spec(
        {
            "containers": [
                {"name": "proxy", "image": "x", "command": ["vllm", "serve", "wrong/one"]},
                {"name": "vllm", "image": "y", "command": ["vllm", "serve", "right/one"], "resources": GPU},
            ]
        }
    )
    engine = engine_of(pod)

    assert isinstance(engine, Engine)
    assert engine.model.name == "right/one"


@pytest.mark.parametrize(
    ("pod", "expected"),
    [
        pytest.param(spec("x/lwepp:main", args=["--pool-name", "p"]), Router("epp", "p"), id="picker"),
        pytest.param(spec("x/y", args=["-poolName", "p"]), Router("epp", "p"), id="older picker"),
        pytest.param(
            spec("u", command=["sh", "-c", "python -m vllm_router.app --k8s-label-selector='app in (a,b)'"]),
            Router("router", "", ("app=a", "app=b")),
            id="production-stack",
        ),
        pytest.param(spec("lmcache/lmstack-router:1"), Router("router"), id="router image"),
        pytest.param(spec("corp/x:7", ports=ports(9003, 9090, 9002)), Router("epp"), id="a picker's two ports"),
        pytest.param(spec("corp/x:7", ports=ports(9002, 9090)), None, id="one of them alone"),
        pytest.param(spec("nginx"), None, id="another proxy"),
    ],
)
def test_router(pod: PodSpec, expected: Router | None) -> None:
    """
    Routers and pickers say what they route to.
    """
    assert expected == router_of(pod)


def test_a_negative_number_is_a_value() -> None:
    """
    ``--seed -1`` is a flag with a value, not two flags.
    """
    assert flags_of(["--seed", "-1", "--eager", "--x=1=2"]) == {"seed": "-1", "eager": "", "x": "1=2"}
