"""
How each inference engine is told, and which of its flags and variables name the model.

Flags from the engines' own command lines: vLLM, SGLang, TensorRT-LLM, TGI, Triton, llama.cpp, Ollama, TEI, Infinity,
LMDeploy, LoRAX, Dynamo's workers.
"""

from __future__ import annotations

import re
from typing import NamedTuple


class EngineKind(NamedTuple):
    """How one engine is told; patterns over a command's words joined by blanks, and over the image's path."""

    name: str
    command: re.Pattern[str]
    image: re.Pattern[str]
    served: tuple[str, ...]
    model: tuple[str, ...]
    revision: tuple[str, ...] = ("revision",)
    env_model: tuple[str, ...] = ()
    env_revision: tuple[str, ...] = ()


def _kind(
    name: str,
    command: str,
    image: str,
    served: str,
    model: str,
    *,
    revision: str = "revision",
    env_model: str = "",
    env_revision: str = "",
) -> EngineKind:
    return EngineKind(
        name,
        re.compile(command),
        re.compile(image, re.IGNORECASE),
        tuple(served.split()),
        tuple(model.split()),
        tuple(revision.split()),
        tuple(env_model.split()),
        tuple(env_revision.split()),
    )


ENGINES: tuple[EngineKind, ...] = (
    # Flags are compared with dashes for underscores: --served_model_name is --served-model-name.
    _kind(
        "dynamo",
        r"-m dynamo\.(vllm|sglang|trtllm|mocker|llama_cpp)\b",
        r"(^|/)ai-dynamo/\w+-runtime$",
        "served-model-name model-name",
        "model model-path",
    ),
    _kind(
        "tensorrt-llm",
        r"(^|[ /])trtllm-serve\b(?! disaggregated\b)|-m tensorrt_llm\.(commands\.serve|serve)",
        r"(^|/)(tensorrt-llm|tensorrt_llm|trtllm)([-/]|$)",
        "served-model-name",
        "model",
    ),
    _kind(
        "sglang",
        r"-m sglang[._]\S*(launch_server|server)|(^|[ /])sglang serve\b",
        r"(^|/)sglang(-|$)|lmsysorg/sglang",
        "served-model-name",
        "model-path model",
        env_model="SGLANG_MODEL_PATH",
    ),
    _kind(
        "vllm",
        r"(^|[ /])vllm serve\b|vllm[./]entrypoints[./]\S*(api_server|launcher)|-m vllm\.entrypoints\.cli\.main serve"
        r"|(^|[ /])llm-serve\b|(^|[ /])vllm/inference_api\.py\b",
        r"(^|/)vllm(server)?(?!-?(router|exporter|metrics|proxy|dashboard|operator|bench))(-[\w.]+)*$"
        r"|lmcache/vllm-openai|rocm/vllm|llm-d(-cuda|-rocm|-xpu|-cpu|-hpu|-aws|-gb200)?$|rayproject/ray-llm",
        "served-model-name",
        "model",
        env_model="VLLM_MODEL MODEL_ID",
    ),
    _kind(
        "huggingfaceserver",
        r"-m huggingfaceserver\b",
        r"(^|/)huggingfaceserver",
        "model-name",
        "model-id model-dir",
        revision="model-revision revision",
        env_model="MODEL_ID",
    ),
    _kind(
        "tgi",
        r"(^|[ /])text-generation-launcher\b",
        r"(^|/)(text-generation-inference|tgi(-gaudi)?)$",
        "",
        "model-id",
        env_model="MODEL_ID",
        env_revision="REVISION",
    ),
    _kind(
        "lorax",
        r"(^|[ /])lorax-launcher\b",
        r"(^|/)lorax$",
        "",
        "model-id",
        env_model="MODEL_ID",
        env_revision="REVISION",
    ),
    _kind(
        "tei",
        r"(^|[ /])text-embeddings-router\b",
        r"(^|/)text-embeddings-(inference|router)",
        "served-model-name",
        "model-id",
        env_model="MODEL_ID",
        env_revision="REVISION",
    ),
    _kind("triton", r"(^|[ /])tritonserver\b", r"(^|/)tritonserver$", "", "", env_model=""),
    _kind(
        "llama.cpp",
        r"(^|[ /])(llama-server|llama\.cpp/server)\b|-m llama_cpp\.server",
        r"(^|/)llama\.cpp$|llama-cpp",
        "alias",
        "hf-repo hf hfr model m",
        env_model="LLAMA_ARG_HF_REPO LLAMA_ARG_MODEL",
    ),
    _kind("ollama", r"(^|[ /])ollama serve\b", r"(^|/)ollama$", "", "", env_model="OLLAMA_MODEL"),
    _kind("infinity", r"(^|[ /])infinity_emb\b", r"(^|/)infinity(-emb)?$", "served-model-name", "model-id"),
    _kind("lmdeploy", r"(^|[ /])lmdeploy serve api_server\b", r"(^|/)lmdeploy$", "model-name", "model-path"),
    _kind(
        "nim",
        r"(^|[ /])(start_server\.sh|nim-llm)\b",
        r"^nim/|(^|/)nim/",
        "served-model-name",
        "model",
        env_model="NIM_SERVED_MODEL_NAME NIM_MODEL_NAME",
    ),
    _kind(
        "mlserver",
        r"(^|[ /])mlserver start\b|-m (sklearnserver|xgbserver|lgbserver|paddleserver|pmmlserver)",
        r"(^|/)(mlserver|torchserve(-\w+)*|sklearnserver|xgbserver)$",
        "model-name",
        "model-dir",
    ),
)
"""In the order in which they are asked: the first whose pattern fits has it."""

OTHER = re.compile(
    r"vllm (bench|run-batch|collect-env)|benchmark_\w+|sglang\.bench_\w+|trtllm-(bench|build|eval)"
    r"|lm[_-]eval|genai-perf|aiperf|guidellm"
    r"|lmcache\w*_(server|controller)|huggingface-cli|hf download|(^|[ /])jupyter|-m http\.server|-m pytest"
)
"""What else people run in the image of an engine."""

VARIABLES = (
    ("VLLM_", "vllm"),
    ("SGLANG_", "sglang"),
    ("SGL_", "sglang"),
    ("TRTLLM_", "tensorrt-llm"),
    ("NIM_", "nim"),
)
"""How the names of an engine's own environment variables begin, and which engine it is."""
