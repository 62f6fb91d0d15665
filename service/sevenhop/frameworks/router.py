"""Routers in front of engines, and endpoint pickers: recognised by command, image, port and flags."""

from __future__ import annotations

import re
from functools import lru_cache

import msgspec

from sevenhop.core.objects.pod import PodSpec
from sevenhop.frameworks import shell
from sevenhop.frameworks.content import content_of, only_waits
from sevenhop.frameworks.flags import flags_of
from sevenhop.frameworks.model_source import image_name

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


def router_of(spec: PodSpec) -> Router | None:
    """The router or endpoint picker among a pod's containers."""
    for container in spec.containers:
        found = router_in(*content_of(container))
        if found is not None:
            return found
    return None


@lru_cache(maxsize=8192)
def router_in(
    image: str,
    command: tuple[str, ...],
    args: tuple[str, ...],
    env_items: tuple[tuple[str, str], ...],
    ports: tuple[int, ...],
) -> Router | None:
    """The router or endpoint picker that one container is; takes its `Content`."""
    lines = shell.commands(command, args, dict(env_items))
    flags = {name: value for words in lines for name, value in flags_of(words).items()}
    pool = next((flags[name] for name in _POOL_FLAGS if flags.get(name)), "")
    routes = any(_ROUTER_COMMAND.search(" ".join(words)) for words in lines)
    if pool or {9002, 9003} <= set(ports):
        return Router("epp", pool)
    selector = _selector(flags.get("k8s-label-selector", ""))
    if routes or (_ROUTER_IMAGE.search(image_name(image)) and not only_waits(lines or [["serve"]])):
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
