"""
Inference engines, recognised by command, image and port; and what their arguments say of the model.

Command before image: an image of vLLM that only sleeps serves nothing, and ``python -m vllm…`` in a plain Ubuntu image
does.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping, Sequence
from functools import lru_cache

import msgspec

from sevenhop.core.inventory.products import is_gpu_resource
from sevenhop.core.inventory.workloads import Model
from sevenhop.core.objects.base import Meta
from sevenhop.core.objects.pod import Container, PodSpec
from sevenhop.frameworks import shell
from sevenhop.frameworks.content import content_of, only_waits
from sevenhop.frameworks.engine_kinds import ENGINES, OTHER, VARIABLES, EngineKind
from sevenhop.frameworks.engine_layout import role_of
from sevenhop.frameworks.flags import first_word, flags_of, value_of
from sevenhop.frameworks.model_source import from_reference, image_digest, image_name, image_version
from sevenhop.frameworks.positional import positional
from sevenhop.frameworks.router import router_in


class Engine(msgspec.Struct, frozen=True, gc=False):
    """
    An engine that a container runs.

    Attributes:
        name: ``vllm``, ``sglang``, …
        role: ``prefill`` or ``decode`` where the arguments say so; empty otherwise.
        served: The name that requests must use, where a flag states it; empty otherwise.
    """

    name: str
    model: Model = Model()
    role: str = ""
    served: str = ""


def engine_of(spec: PodSpec) -> Engine | str | None:
    """
    The engine among a pod's containers, those with accelerators first.

    Returns:
        None where nothing looks like one; a reason where something does at first sight, and is not.
    """
    reason: str | None = None
    for container in _likely_first(spec):
        found = _engine_in(*content_of(container), _wants_gpus(container))
        if isinstance(found, Engine):
            return _with_pulled(found, spec) if found.name == "ollama" and not found.model.name else found
        reason = reason or found
    return reason


def _with_pulled(engine: Engine, spec: PodSpec) -> Engine:
    """Ollama is told no model when it starts: what the pod pulls, before or beside it, is what it serves."""
    for container in (*spec.containers, *spec.init_containers):
        _, command, args, env, _ = content_of(container)
        hook = container.lifecycle.post_start.exec.command if container.lifecycle else ()
        for line in (*shell.commands(command, args, dict(env)), *shell.commands(hook, (), dict(env))):
            pulled = re.search(r"(?:^|[ /])ollama (?:pull|run|preload) ([^\s-]\S*)", " ".join(line))
            if pulled and _known(pulled.group(1)):
                return msgspec.structs.replace(engine, model=from_reference(f"ollama://{pulled.group(1)}"))
    return engine


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
        image, command, args, env_items, _ = content_of(container)
        env = dict(env_items)
        for words in shell.commands(command, args, env):
            flags = flags_of(words)
            artifact = from_reference(value_of(flags, ("model", "model-path", "model-id")))
            name = first_word(value_of(flags, ("served-model-name", "model-name"))) or artifact.name
            if name:
                version = flags.get("revision", "") or artifact.version or image_digest(image)
                return Model(_known(name), _known(version), _known(artifact.source))
    return Model()


def _likely_first(spec: PodSpec) -> list[Container]:
    sidecars = [c for c in spec.init_containers if c.restart_policy == "Always"]
    return sorted([*spec.containers, *sidecars], key=lambda c: not _wants_gpus(c))


def _wants_gpus(container: Container) -> bool:
    """Whether accelerators are asked for; how many, and whether that is a number at all, is another question."""
    amounts = (container.resources.limits, container.resources.requests)
    return any(is_gpu_resource(name) and str(amount) != "0" for side in amounts for name, amount in side.items())


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
    for kind in ENGINES:
        for words in lines:
            if kind.command.search(" ".join(words)):
                return _read(kind, words, env, image)
    if router_in(image, command, args, env_items, ports) is not None:
        return None
    for kind in ENGINES:
        if kind.image.search(path):
            if command and only_waits(lines):
                return f"image of {kind.name}, but its command only waits"
            other = next((m.group(0).strip() for words in lines if (m := OTHER.search(" ".join(words)))), "")
            if other:
                return f"image of {kind.name}, but it runs {other}"
            return _read(kind, lines[-1] if lines else [], env, image)
    name = _by_environment(env)
    if name and ports and has_gpu and not only_waits(lines or [["serve"]]):
        kind = next(k for k in ENGINES if k.name == name)
        return _read(kind, lines[-1] if lines else [], env, image)
    return None


def _by_environment(env: Mapping[str, str]) -> str:
    """An engine under an image and a command that nobody knows still has the engine's own variables set."""
    return next((name for prefix, name in VARIABLES if any(key.startswith(prefix) for key in env)), "")


def _read(kind: EngineKind, words: Sequence[str], env: Mapping[str, str], image: str) -> Engine:
    more = env.get("VLLM_ADDITIONAL_ARGS", "")
    words = [*words, *(_split(shell.substitute(more, env)) if more else ())]
    flags = flags_of(words)
    served = first_word(value_of(flags, kind.served))
    reference = value_of(flags, kind.model) or positional(words) or _first(env, kind.env_model)
    artifact = from_reference(reference) if reference else Model()
    version = value_of(flags, kind.revision) or _first(env, kind.env_revision) or artifact.version
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
    return Engine(kind.name, model, role_of(flags), _known(served))


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


def _first(env: Mapping[str, str], names: Sequence[str]) -> str:
    return next((env[name] for name in names if env.get(name)), "")
