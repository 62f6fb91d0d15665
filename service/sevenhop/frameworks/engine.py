"""
Inference engines, recognised by command, image and port; and what their arguments say of the model.

Command before image: an image of vLLM that only sleeps serves nothing, and ``python -m vllm…`` in a plain Ubuntu image
does.  Flags from the engines' own command lines: vLLM, SGLang, TensorRT-LLM, TGI, Triton, llama.cpp, Ollama, TEI,
Infinity, LMDeploy, LoRAX, Dynamo's workers.
"""

from __future__ import annotations

import json
import posixpath
import re
import shlex
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

import msgspec

from sevenhop.core.inventory.products import is_gpu_resource
from sevenhop.core.inventory.workloads import Model
from sevenhop.core.objects.base import Meta
from sevenhop.core.objects.pod import Container, PodSpec
from sevenhop.core.words import whole
from sevenhop.frameworks import shell
from sevenhop.frameworks.model_source import from_reference, image_digest, image_name, image_version
from sevenhop.frameworks.positional import positional


class Engine(msgspec.Struct, frozen=True, gc=False):
    """
    An engine that a container runs.

    Attributes:
        name: ``vllm``, ``sglang``, …
        role: ``prefill`` or ``decode`` where the arguments say so; empty otherwise.
        ranks: GPUs that tensor and pipeline parallelism of one replica take; 1 if not stated.
        served: The name that requests must use, where a flag states it; empty otherwise.
    """

    name: str
    model: Model = Model()
    role: str = ""
    ranks: int = 1
    served: str = ""


class Router(msgspec.Struct, frozen=True, gc=False):
    """
    Something that routes requests to engines.

    Attributes:
        role: ``epp`` for an endpoint picker, else ``router``.
        pool: The InferencePool that it picks for; empty if it does not say.
        labels: ``key=value`` of the pods that it routes to, any of them; empty if it does not say.
    """

    role: str
    pool: str = ""
    labels: tuple[str, ...] = ()


class _Kind(NamedTuple):
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
) -> _Kind:
    return _Kind(
        name,
        re.compile(command),
        re.compile(image, re.IGNORECASE),
        tuple(served.split()),
        tuple(model.split()),
        tuple(revision.split()),
        tuple(env_model.split()),
        tuple(env_revision.split()),
    )


_ENGINES: tuple[_Kind, ...] = (
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

_IDLE = frozenset(
    ("sleep", "tail", "wait", "true", "cat", "echo", "trap", "hostname", "nvidia-smi", "while", "do", "done", "exit")
)

_OTHER = re.compile(
    r"vllm (bench|run-batch|collect-env)|benchmark_\w+|sglang\.bench_\w+|trtllm-(bench|build|eval)"
    r"|lm[_-]eval|genai-perf|aiperf|guidellm"
    r"|lmcache\w*_(server|controller)|huggingface-cli|hf download|(^|[ /])jupyter|-m http\.server|-m pytest"
)
"""What else people run in the image of an engine."""

_VARIABLES = (
    ("VLLM_", "vllm"),
    ("SGLANG_", "sglang"),
    ("SGL_", "sglang"),
    ("TRTLLM_", "tensorrt-llm"),
    ("NIM_", "nim"),
)

_ROUTER_COMMAND = re.compile(
    r"-m vllm_router\.app|(^|[ /])vllm-router\b|(^|[ /])trtllm-serve disaggregated\b"
    r"|-m sglang_router\.|(^|[ /])sglang-router\b|(^|[ /])epp\b"
)
_ROUTER_IMAGE = re.compile(
    r"lmstack-router|vllm-router|(^|/)(lw)?epp$|endpoint-picker|llm-d-inference-scheduler|sglang-router"
    r"|gateway-api-inference-extension/\w*epp|production-stack/router",
    re.IGNORECASE,
)
_POOL_FLAGS = ("pool-name", "poolname")


def engine_of(spec: PodSpec) -> Engine | str | None:
    """
    The engine among a pod's containers, those with accelerators first.

    Returns:
        None where nothing looks like one; a reason where something does at first sight, and is not.
    """
    reason: str | None = None
    for container in _likely_first(spec):
        found = _engine_in(*_content(container), _wants_gpus(container))
        if isinstance(found, Engine):
            return _with_pulled(found, spec) if found.name == "ollama" and not found.model.name else found
        reason = reason or found
    return reason


def _with_pulled(engine: Engine, spec: PodSpec) -> Engine:
    """Ollama is told no model when it starts: what the pod pulls, before or beside it, is what it serves."""
    for container in (*spec.containers, *spec.init_containers):
        _, command, args, env, _ = _content(container)
        hook = container.lifecycle.post_start.exec.command if container.lifecycle else ()
        for line in (*shell.commands(command, args, dict(env)), *shell.commands(hook, (), dict(env))):
            pulled = re.search(r"(?:^|[ /])ollama (?:pull|run|preload) ([^\s-]\S*)", " ".join(line))
            if pulled and _known(pulled.group(1)):
                return msgspec.structs.replace(engine, model=from_reference(f"ollama://{pulled.group(1)}"))
    return engine


def router_of(spec: PodSpec) -> Router | None:
    """The router or endpoint picker among a pod's containers."""
    for container in spec.containers:
        found = _router_in(*_content(container))
        if found is not None:
            return found
    return None


def model_of_pod(meta: Meta, spec: PodSpec) -> Model:  # noqa: ARG001
    """What a pod serves, as its own containers say; empty if they do not."""
    engine = engine_of(spec)
    return engine.model if isinstance(engine, Engine) else Model()


def model_by_flags(spec: PodSpec) -> Model:
    """
    The model that any container's flags name, whatever it runs: for pods that are known to be engines.

    The order is Dynamo's own: ``--served-model-name``, ``--model-name``, ``--model``.
    """
    for container in spec.containers:
        image, command, args, env_items, _ = _content(container)
        env = dict(env_items)
        for words in shell.commands(command, args, env):
            flags = flags_of(words)
            artifact = from_reference(_flag(flags, ("model", "model-path", "model-id")))
            name = _first_word(_flag(flags, ("served-model-name", "model-name"))) or artifact.name
            if name:
                version = flags.get("revision", "") or artifact.version or image_digest(image)
                return Model(_known(name), _known(version), _known(artifact.source))
    return Model()


def flags_of(words: Sequence[str]) -> dict[str, str]:
    """
    ``--flag value``, ``--flag=value`` and ``-flag value``; dashes for underscores, the last of equal ones.

    >>> flags_of(["--served_model_name=x", "--enforce-eager", "--port", "8000"])
    {'served-model-name': 'x', 'enforce-eager': '', 'port': '8000'}
    """
    found: dict[str, str] = {}
    for at, word in enumerate(words):
        if not word.startswith("-") or word.strip("-") == "" or re.match(r"^-\d", word):
            continue
        name, equals, value = word.lstrip("-").partition("=")
        if not equals and at + 1 < len(words) and not re.match(r"^-{1,2}[A-Za-z]", words[at + 1]):
            value = words[at + 1]
        found[name.replace("_", "-").lower()] = value
    return found


def _likely_first(spec: PodSpec) -> list[Container]:
    sidecars = [c for c in spec.init_containers if c.restart_policy == "Always"]
    return sorted([*spec.containers, *sidecars], key=lambda c: not _wants_gpus(c))


def _wants_gpus(container: Container) -> bool:
    """Whether accelerators are asked for; how many, and whether that is a number at all, is another question."""
    amounts = (container.resources.limits, container.resources.requests)
    return any(is_gpu_resource(name) and str(amount) != "0" for side in amounts for name, amount in side.items())


_Content = tuple[str, tuple[str, ...], tuple[str, ...], tuple[tuple[str, str], ...], tuple[int, ...]]


def _content(container: Container) -> _Content:
    return (
        container.image,
        tuple(container.command),
        tuple(container.args),
        tuple((e.name, e.value) for e in container.env if e.value),
        tuple(port.container_port for port in container.ports),
    )


@lru_cache(maxsize=8192)
def _engine_in(
    image: str,
    command: tuple[str, ...],
    args: tuple[str, ...],
    env_items: tuple[tuple[str, str], ...],
    ports: tuple[int, ...],
    has_gpu: bool,
) -> Engine | str | None:
    env = dict(env_items)
    lines = shell.commands(command, args, env)
    path = image_name(image)
    for kind in _ENGINES:
        for words in lines:
            if kind.command.search(" ".join(words)):
                return _read(kind, words, env, image)
    if _router_in(image, command, args, env_items, ports) is not None:
        return None
    for kind in _ENGINES:
        if kind.image.search(path):
            if command and _only_waits(lines):
                return f"image of {kind.name}, but its command only waits"
            other = next((m.group(0).strip() for words in lines if (m := _OTHER.search(" ".join(words)))), "")
            if other:
                return f"image of {kind.name}, but it runs {other}"
            return _read(kind, lines[-1] if lines else [], env, image)
    name = _by_environment(env)
    if name and ports and has_gpu and not _only_waits(lines or [["serve"]]):
        kind = next(k for k in _ENGINES if k.name == name)
        return _read(kind, lines[-1] if lines else [], env, image)
    return None


def _by_environment(env: Mapping[str, str]) -> str:
    """An engine under an image and a command that nobody knows still has the engine's own variables set."""
    return next((name for prefix, name in _VARIABLES if any(key.startswith(prefix) for key in env)), "")


def _only_waits(lines: Sequence[Sequence[str]]) -> bool:
    return all(posixpath.basename(words[0]) in _IDLE for words in lines if words)


def _read(kind: _Kind, words: Sequence[str], env: Mapping[str, str], image: str) -> Engine:
    more = env.get("VLLM_ADDITIONAL_ARGS", "")
    words = [*words, *(_split(shell.substitute(more, env)) if more else ())]
    flags = flags_of(words)
    served = _first_word(_flag(flags, kind.served))
    reference = _flag(flags, kind.model) or positional(words) or _first(env, kind.env_model)
    artifact = from_reference(reference) if reference else Model()
    version = _flag(flags, kind.revision) or _first(env, kind.env_revision) or artifact.version
    name = served or artifact.name
    source = artifact.source
    if kind.name == "nim":
        name = name or image_name(image).removeprefix("nim/")
        version = version or image_version(image)
        source = source or image
    if kind.name == "triton":
        source = flags.get("model-repository", "") or flags.get("model-store", "")
    if not version and not _is_hub_name(artifact.source):
        version = image_digest(image)  # weights that come with the image are released with it
    model = Model(name=_known(name), version=_known(version), source=_known(source))
    return Engine(kind.name, model, _role(flags), _ranks(flags), _known(served))


def _split(text: str) -> list[str]:
    try:
        return shlex.split(text)
    except ValueError:  # a quote that never closes
        return text.split()


def _is_hub_name(source: str) -> bool:
    return bool(source) and not source.startswith(("/", "./", "$"))


def _known(text: str) -> str:
    """A value with a variable in it that nobody filled in is not known."""
    return "" if re.search(r"\$[({\w]|\{\{", text) else text


def _first_word(text: str) -> str:
    """``--served-model-name`` takes a list; the first one labels the metrics."""
    return text.split()[0] if text.split() else ""


def _flag(flags: Mapping[str, str], names: Sequence[str]) -> str:
    return next((flags[name] for name in names if flags.get(name)), "")


def _first(env: Mapping[str, str], names: Sequence[str]) -> str:
    return next((env[name] for name in names if env.get(name)), "")


_KV_ROLES = {"kv_producer": "prefill", "kv_consumer": "decode"}
_MODES = {"prefill": "prefill", "decode": "decode", "context": "prefill", "generation": "decode"}


def _role(flags: Mapping[str, str]) -> str:
    for flag in ("disaggregation-mode", "server-role"):
        role = _MODES.get(flags.get(flag, "").lower())
        if role:
            return role
    if "is-prefill-worker" in flags:
        return "prefill"
    if "is-decode-worker" in flags:
        return "decode"
    dotted = _KV_ROLES.get(flags.get("kv-transfer-config.kv-role", ""), "")
    return dotted or _kv_role(flags.get("kv-transfer-config", ""))


def _kv_role(text: str) -> str:
    """The first connector that only produces or only consumes; MultiConnector hides it inside."""
    if not text:
        return ""
    try:
        found = _values_of(json.loads(text), "kv_role")
    except (ValueError, RecursionError):  # nested deeper than anything that means something
        words = sorted(set(re.findall(r"kv_producer|kv_consumer", text)))
        return _KV_ROLES[words[0]] if len(words) == 1 else ""
    roles = {_KV_ROLES[role] for role in found if role in _KV_ROLES}
    return roles.pop() if len(roles) == 1 else ""


def _values_of(data: Any, key: str) -> list[str]:
    if isinstance(data, dict):
        own: list[str] = [data[key]] if isinstance(data.get(key), str) else []
        return own + [found for value in data.values() for found in _values_of(value, key)]
    if isinstance(data, list):
        return [found for value in data for found in _values_of(value, key)]
    return []


def _ranks(flags: Mapping[str, str]) -> int:
    tensor = _number(flags, ("tensor-parallel-size", "tp", "tp-size", "num-shard"))
    pipeline = _number(flags, ("pipeline-parallel-size", "pp", "pp-size"))
    return tensor * pipeline


def _number(flags: Mapping[str, str], names: Sequence[str]) -> int:
    text = _flag(flags, names)
    number = whole(text)
    return number if number is not None and number > 0 else 1


@lru_cache(maxsize=8192)
def _router_in(
    image: str,
    command: tuple[str, ...],
    args: tuple[str, ...],
    env_items: tuple[tuple[str, str], ...],
    ports: tuple[int, ...],
) -> Router | None:
    lines = shell.commands(command, args, dict(env_items))
    flags = {name: value for words in lines for name, value in flags_of(words).items()}
    pool = next((flags[name] for name in _POOL_FLAGS if flags.get(name)), "")
    routes = any(_ROUTER_COMMAND.search(" ".join(words)) for words in lines)
    if pool or {9002, 9003} <= set(ports):
        return Router("epp", pool)
    selector = _selector(flags.get("k8s-label-selector", ""))
    if routes or (_ROUTER_IMAGE.search(image_name(image)) and not _only_waits(lines or [["serve"]])):
        is_picker = re.search(r"epp|picker|inference-scheduler", image_name(image)) is not None
        return Router("epp" if is_picker else "router", labels=selector)
    return None


def _selector(text: str) -> tuple[str, ...]:
    """
    >>> _selector("app in (prefill,decode)"), _selector("a=b, environment=test")
    (('app=prefill', 'app=decode'), ('a=b', 'environment=test'))
    """
    either = re.match(r"^\s*([\w./-]+)\s+in\s+\(([^)]*)\)", text)
    if either:
        return tuple(f"{either.group(1)}={value.strip()}" for value in either.group(2).split(","))
    return tuple(part.strip().replace("==", "=") for part in text.split(",") if "=" in part and "!=" not in part)
