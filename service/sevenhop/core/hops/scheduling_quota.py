"""ResourceQuota and LimitRange against a pod that is still to be made, as admission computes them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from decimal import Decimal
from typing import Any, cast

import msgspec

from sevenhop.core.hops.scheduling_words import amount
from sevenhop.core.inventory.objects import Key, Objects
from sevenhop.core.objects.base import Meta
from sevenhop.core.objects.cluster import LimitRange, ResourceQuota
from sevenhop.core.objects.pod import Container, Pod, PodSpec, Resources
from sevenhop.core.objects.quantity import parse as parse_quantity
from sevenhop.core.placement.requests import Amounts, amounts, pod_requests
from sevenhop.core.words import counted

_MUST_SPECIFY = ("cpu", "memory", "requests.cpu", "requests.memory", "limits.cpu", "limits.memory")
"""Names in a quota that make every container state the amount (Kubernetes quota evaluator for pods)."""


class Refusal(msgspec.Struct, frozen=True, gc=False):
    """
    Attributes:
        cause: Slug of the published list.
        source: The object that refuses.
        text: One sentence with the numbers.
    """

    cause: str
    source: str
    text: str


def limit_refusals(objects: Objects, namespace: str, spec: PodSpec) -> list[Refusal]:
    """What LimitRanges of the namespace have against the pod, after their own defaults were filled in."""
    out: list[Refusal] = []
    completed = with_defaults(objects, namespace, spec)
    for name, item in _limit_items(objects, namespace):
        source = f"limitrange/{name}"
        if item.get("type") == "Container":
            for container in (*completed.init_containers, *completed.containers):
                requests, limits = _stated(container)
                out += _check(source, f"container {container.name}", item, requests, limits)
        elif item.get("type") == "Pod":
            requests, limits = _pod_amounts(completed, of=_requests), _pod_amounts(completed, of=_limits)
            out += _check(source, "the pod", item, requests, limits)
    for container in (*completed.init_containers, *completed.containers):
        requests, limits = _stated(container)
        for resource, limit in limits.items():
            if requests.get(resource, 0) > limit:
                text = (
                    f"container {container.name} asks for {amount(resource, requests[resource])}, "
                    f"more than the limit of {amount(resource, limit)} that the LimitRange fills in"
                )
                out.append(Refusal("limit-range", _first_limit_source(objects, namespace), text))
    return out


def quota_refusals(objects: Objects, namespace: str, spec: PodSpec) -> list[Refusal]:
    """What ResourceQuotas of the namespace have against one more such pod."""
    out: list[Refusal] = []
    completed = with_defaults(objects, namespace, spec)
    usage = _usage(completed)
    for key, quota in sorted(cast("Mapping[Key, ResourceQuota]", objects.of("ResourceQuota")).items()):
        if key[0] != namespace or not _in_scope(quota, completed):
            continue
        hard = amounts_of_quota(quota.status.hard or quota.spec.get("hard") or {})
        used = amounts_of_quota(quota.status.used)
        source = f"resourcequota/{key[1]}"
        for container in (*completed.init_containers, *completed.containers):
            missing = [r for r in _MUST_SPECIFY if r in hard and not _specifies(container, r)]
            if missing:
                text = f"quota {key[1]} demands {', '.join(missing)}, which container {container.name} does not state"
                out.append(Refusal("resource-quota", source, text))
        for resource, limit in hard.items():
            wanted = usage.get(resource, 0)
            if wanted and used.get(resource, 0) + wanted > limit:
                text = (
                    f"quota {key[1]} allows {_show(resource, limit)}, with {_show(resource, used.get(resource, 0))} "
                    f"in use; the pod asks for {_show(resource, wanted)}"
                )
                out.append(Refusal("resource-quota", source, text))
    return out


def with_defaults(objects: Objects, namespace: str, spec: PodSpec) -> PodSpec:
    """The pod as LimitRanger completes it: a missing limit, then a missing request."""
    items = [item for _, item in _limit_items(objects, namespace) if item.get("type") == "Container"]
    if not items:
        return spec

    def completed(container: Container) -> Container:
        requests, limits = dict(container.resources.requests), dict(container.resources.limits)
        for name, value in container.resources.limits.items():
            requests.setdefault(name, value)  # the API server's own default comes first
        for item in items:
            for name, value in (item.get("default") or {}).items():
                limits.setdefault(name, value)
            for name, value in (item.get("defaultRequest") or {}).items():
                requests.setdefault(name, value)
        for name, value in limits.items():
            requests.setdefault(name, value)
        return msgspec.structs.replace(container, resources=Resources(requests=requests, limits=limits))

    return msgspec.structs.replace(
        spec,
        containers=tuple(completed(c) for c in spec.containers),
        init_containers=tuple(completed(c) for c in spec.init_containers),
    )


def amounts_of_quota(quantities: Mapping[str, Any]) -> Amounts:
    """Amounts by the quota's own names; ``requests.cpu`` counts in thousandths as ``cpu`` does."""
    out: Amounts = {}
    for name, text in quantities.items():
        plain = name.removeprefix("requests.").removeprefix("limits.")
        out[name] = amounts({plain: text}).get(plain, 0)
    return out


def _show(resource: str, value: int) -> str:
    plain = resource.removeprefix("requests.").removeprefix("limits.")
    if resource in ("pods", "count/pods"):
        return counted(value, "pod")
    return amount(plain, value).replace(plain, resource)


def _requests(container: Container) -> Amounts:
    return _stated(container)[0]


def _limits(container: Container) -> Amounts:
    return _stated(container)[1]


def _stated(container: Container) -> tuple[Amounts, Amounts]:
    limits = amounts(container.resources.limits)
    return {**limits, **amounts(container.resources.requests)}, limits


def _specifies(container: Container, quota_name: str) -> bool:
    requests, limits = _stated(container)
    if quota_name.startswith("limits."):
        return quota_name.removeprefix("limits.") in limits
    return quota_name.removeprefix("requests.") in requests


def _pod_amounts(spec: PodSpec, *, of: Callable[[Container], Amounts]) -> Amounts:
    """As for scheduling: all containers together, or the largest init container."""
    containers = [_only(c, of(c)) for c in spec.containers]
    starting = [_only(c, of(c)) for c in spec.init_containers]
    return pod_requests(Pod(spec=PodSpec(containers=containers, init_containers=starting)))


def _only(container: Container, held: Amounts) -> Container:
    as_text = {name: f"{value}m" if name == "cpu" else value for name, value in held.items()}
    return Container(
        name=container.name, restart_policy=container.restart_policy, resources=Resources(requests=dict(as_text))
    )


def _usage(spec: PodSpec) -> Amounts:
    requests = pod_requests(Pod(metadata=Meta(), spec=spec))
    limits = _pod_amounts(spec, of=_limits)
    out: Amounts = {"pods": 1, "count/pods": 1}
    for name, value in requests.items():
        out[f"requests.{name}"] = value
        if "/" not in name:
            out[name] = value
    for name, value in limits.items():
        out[f"limits.{name}"] = value
    return out


def _in_scope(quota: ResourceQuota, spec: PodSpec) -> bool:
    """Whether the quota counts such a pod; what we cannot tell counts."""
    best_effort = not any(c.resources.requests or c.resources.limits for c in (*spec.containers, *spec.init_containers))
    wanted: list[Mapping[str, Any]] = [{"scopeName": s, "operator": "Exists"} for s in quota.spec.get("scopes") or ()]
    wanted += (quota.spec.get("scopeSelector") or {}).get("matchExpressions") or ()
    for scope in wanted:
        values = scope.get("values") or ()
        match scope.get("scopeName"):
            case "BestEffort":
                inside = best_effort
            case "NotBestEffort":
                inside = not best_effort
            case "Terminating":
                inside = False  # controllers of servers set no active deadline
            case "PriorityClass":
                named = spec.priority_class_name
                inside = {
                    "In": named in values,
                    "NotIn": named not in values,
                    "Exists": bool(named),
                    "DoesNotExist": not named,
                }.get(str(scope.get("operator")), True)
            case _:
                inside = True
        if not inside:
            return False
    return True


def _limit_items(objects: Objects, namespace: str) -> Iterable[tuple[str, Mapping[str, Any]]]:
    for key, found in sorted(cast("Mapping[Key, LimitRange]", objects.of("LimitRange")).items()):
        if key[0] == namespace:
            for item in found.spec.get("limits") or ():
                yield key[1], item


def _first_limit_source(objects: Objects, namespace: str) -> str:
    return next((f"limitrange/{name}" for name, _ in _limit_items(objects, namespace)), f"namespace/{namespace}")


def _check(source: str, whose: str, item: Mapping[str, Any], requests: Amounts, limits: Amounts) -> list[Refusal]:
    out: list[Refusal] = []
    for resource, least in amounts(item.get("min") or {}).items():
        if requests.get(resource, 0) < least or limits.get(resource, least) < least:
            out.append(_limit(source, f"{whose} must have at least {amount(resource, least)}"))
    for resource, most in amounts(item.get("max") or {}).items():
        if resource not in limits:
            out.append(_limit(source, f"{whose} must state a limit for {resource}, at most {amount(resource, most)}"))
        elif max(limits[resource], requests.get(resource, 0)) > most:
            has = amount(resource, max(limits[resource], requests.get(resource, 0)))
            out.append(_limit(source, f"{whose} may have at most {amount(resource, most)}, and has {has}"))
    for resource, text in (item.get("maxLimitRequestRatio") or {}).items():
        ratio = _decimal(text)
        if ratio is not None and limits.get(resource, 0) > ratio * requests.get(resource, 0):
            out.append(_limit(source, f"{whose}: the limit of {resource} may be at most {ratio} times its request"))
    return out


def _limit(source: str, text: str) -> Refusal:
    return Refusal("limit-range", source, text)


def _decimal(text: object) -> Decimal | None:
    try:
        return parse_quantity(str(text))
    except ValueError:
        return None
