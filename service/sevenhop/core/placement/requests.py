"""What a pod asks of a node, and what it holds there, as the scheduler counts it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from sevenhop.core.objects.base import Quantities, condition
from sevenhop.core.objects.pod import Container, ContainerStatus, Pod
from sevenhop.core.objects.quantity import units

Amounts = dict[str, int]
"""Resource name to units: thousandths for ``cpu``, whole numbers (bytes, devices) for all others."""


def amounts(quantities: Mapping[str, Any]) -> Amounts:
    """Quantities in the units the scheduler counts in; what is no quantity counts as nothing."""
    out: Amounts = {}
    for name, text in quantities.items():
        try:
            out[name] = units(name, text)
        except (TypeError, ValueError):  # a table or a list is no quantity either
            continue
    return out


def pod_requests(pod: Pod, *, bound: bool = False) -> Amounts:
    """
    What the scheduler adds up for one pod (k8s.io/component-helpers `resource.PodRequests`).

    The larger of all containers plus sidecars and of each init container plus the sidecars started before it;
    then pod-level values replace theirs; then the runtime class' overhead is added.  Zero requests are left out.

    Args:
        bound: The pod has a node.  A resize in flight then counts the maximum of spec, status and allocated,
            and one that the node cannot meet counts what the container really has.
    """
    spec = pod.spec
    statuses = _statuses(pod) if bound else {}
    infeasible = bool(statuses) and _resize_is_infeasible(pod)
    if not (spec.init_containers or spec.overhead or spec.resources or statuses) and len(spec.containers) == 1:
        return {k: v for k, v in _asked(spec.containers[0]).items() if v}  # the usual pod, and there are 150,000

    running: Amounts = {}
    for container in spec.containers:
        _add(running, _requests(container, statuses.get(container.name), infeasible=infeasible))
    sidecars: Amounts = {}
    starting: Amounts = {}
    for container in spec.init_containers:
        is_sidecar = container.restart_policy == "Always"
        status = statuses.get(container.name) if is_sidecar else None  # only sidecars can be resized
        own = _requests(container, status, infeasible=infeasible)
        if is_sidecar:
            _add(sidecars, own)
            _raise_to(starting, sidecars)
        else:
            _raise_to(starting, _sum(sidecars, own))
    _add(running, sidecars)
    _raise_to(running, starting)

    if spec.resources is not None:
        for name, value in _with_defaults(spec.resources.requests, spec.resources.limits).items():
            if name in ("cpu", "memory") or name.startswith("hugepages-"):
                running[name] = value
    _add(running, amounts(spec.overhead))
    return {name: value for name, value in running.items() if value}


def _asked(container: Container) -> Amounts:
    return _with_defaults(container.resources.requests, container.resources.limits)


def _with_defaults(requests: Quantities, limits: Quantities) -> Amounts:
    # The API server fills this in for what it stores; a manifest that was never sent lacks it.
    out = amounts(requests)
    for name, value in amounts(limits).items():
        out.setdefault(name, value)
    return out


def _requests(container: Container, status: ContainerStatus | None, *, infeasible: bool) -> Amounts:
    asked = _asked(container)
    if status is None or status.resources is None:
        return asked
    actual = amounts(status.resources.requests)
    if infeasible:
        # The kubelet refused the resize: what the container has is what it will keep.
        return _maximum(actual, amounts(status.allocated_resources))
    return _maximum(asked, _maximum(actual, amounts(status.allocated_resources)))


def _statuses(pod: Pod) -> dict[str, ContainerStatus]:
    status = pod.status
    found: Iterable[ContainerStatus] = (*status.container_statuses, *status.init_container_statuses)
    return {s.name: s for s in found if s.resources is not None}


def _resize_is_infeasible(pod: Pod) -> bool:
    pending = condition(pod.status.conditions, "PodResizePending")
    return pod.status.resize == "Infeasible" or (pending is not None and pending.reason == "Infeasible")


def _add(into: Amounts, more: Mapping[str, int]) -> None:
    for name, value in more.items():
        into[name] = into.get(name, 0) + value


def _sum(left: Mapping[str, int], right: Mapping[str, int]) -> Amounts:
    out = dict(left)
    _add(out, right)
    return out


def _raise_to(into: Amounts, least: Mapping[str, int]) -> None:
    for name, value in least.items():
        if value > into.get(name, 0):
            into[name] = value


def _maximum(left: Mapping[str, int], right: Mapping[str, int]) -> Amounts:
    out = dict(left)
    _raise_to(out, right)
    return out
