"""The labels that every subject carries, "" where it has none; short names, as rules, routes and silences use them."""

from __future__ import annotations

from sevenhop.core.facts.schema import LABELS
from sevenhop.core.inventory.workloads import Component, Workload

_NONE: dict[str, str] = dict.fromkeys(LABELS, "")


def labels(cluster: str, **known: str) -> dict[str, str]:
    """All labels, those that are not `known` empty."""
    return {**_NONE, "cluster": cluster, **known}


def of_workload(cluster: str, workload: Workload, *, tier: str, owner: str) -> dict[str, str]:
    return labels(
        cluster,
        namespace=workload.namespace,
        workload=workload.name,
        framework=str(workload.framework),
        model=workload.model.name,
        model_version=workload.model.version,
        tier=tier,
        owner=owner,
    )


def of_component(of_its_workload: dict[str, str], part: Component, *, product: str) -> dict[str, str]:
    """`product` is the pool that it runs in or waits for."""
    return {
        **of_its_workload,
        "component": part.name,
        "role": part.role,
        "product": product,
        "model": part.model.name or of_its_workload["model"],
        "model_version": part.model.version or of_its_workload["model_version"],
    }


def of_pod(of_its_component: dict[str, str], name: str, *, node: str, model_version: str) -> dict[str, str]:
    return {
        **of_its_component,
        "pod": name,
        "node": node,
        "model_version": model_version or of_its_component["model_version"],
    }
