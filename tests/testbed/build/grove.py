"""Grove below Dynamo: PodCliqueSet → (PodCliqueScalingGroup →) PodClique → Pod.

A multinode component is a scaling group of two cliques, leader and workers.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tests.testbed.build.core import owned_by
from tests.testbed.build.dynamo import Component, component_labels, component_pod_spec
from tests.testbed.client import Object

_API = "grove.io/v1alpha1"


def grove_pod_clique_set(graph: Object, components: Sequence[Component]) -> Object:
    """The PodCliqueSet that Dynamo's operator makes of a graph; it has the graph's name."""
    cliques: list[Object] = []
    groups: list[Object] = []
    for component in components:
        roles = _roles(component)
        for role, pods in roles:
            spec = {
                "roleName": role,
                "replicas": pods,
                "minAvailable": 1,
                "podSpec": component_pod_spec(graph, component),
            }
            cliques.append(
                {
                    "name": role,
                    "labels": component_labels(graph, component),
                    "annotations": dict(component.pod_annotations),
                    "spec": spec,
                }
            )
        if component.nodes > 1:
            groups.append(
                {
                    "name": component.name.lower(),
                    "cliqueNames": [role for role, _ in roles],
                    "replicas": component.replicas,
                    "minAvailable": 1,
                }
            )
    child = {
        "apiVersion": _API,
        "kind": "PodCliqueSet",
        "metadata": _metadata(graph["metadata"]["name"], graph),
        "spec": {
            "replicas": 1,
            "template": {
                "cliqueStartupType": "CliqueStartupTypeAnyOrder",
                "terminationDelay": "15m0s",
                "cliques": cliques,
                "podCliqueScalingGroups": groups,
            },
        },
    }
    return owned_by(child, graph)


def grove_scaling_groups(parent: Object) -> list[Object]:
    """The PodCliqueScalingGroups of a PodCliqueSet, one for each multinode component."""
    name = parent["metadata"]["name"]
    return [
        owned_by(
            {
                "apiVersion": _API,
                "kind": "PodCliqueScalingGroup",
                "metadata": _metadata(f"{name}-0-{group['name']}", parent, _labels(name, "pcs-podcliquescalinggroup")),
                "spec": {key: value for key, value in group.items() if key != "name"},
            },
            parent,
        )
        for group in parent["spec"]["template"].get("podCliqueScalingGroups", [])
    ]


def grove_pod_cliques(parent: Object, groups: Sequence[Object]) -> list[Object]:
    """The PodCliques of a PodCliqueSet, those of `groups` once for each replica of the group."""
    name = parent["metadata"]["name"]
    of_group = {clique: group for group in groups for clique in group["spec"]["cliqueNames"]}
    found = []
    for clique in parent["spec"]["template"]["cliques"]:
        group = of_group.get(clique["name"])
        if group is None:
            found.append(_pod_clique(f"{name}-0-{clique['name']}", parent, name, clique, {}))
            continue
        group_name = group["metadata"]["name"]
        for replica in range(group["spec"]["replicas"]):
            extra = {
                "grove.io/podcliquescalinggroup": group_name,
                "grove.io/podcliquescalinggroup-replica-index": str(replica),
            }
            clique_name = f"{group_name}-{replica}-{clique['name']}"
            found.append(_pod_clique(clique_name, group, name, clique, extra))
    return found


def grove_pods(parent: Object) -> list[Object]:
    """The pods of a PodClique; nothing makes them anew when they are deleted."""
    metadata = parent["metadata"]
    found = []
    for index in range(parent["spec"]["replicas"]):
        labels = metadata["labels"] | {
            "grove.io/podclique": metadata["name"],
            "grove.io/podclique-pod-index": str(index),
        }
        child = {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {
                "generateName": f"{metadata['name']}-",
                "namespace": metadata["namespace"],
                "labels": labels,
                "annotations": dict(metadata.get("annotations", {})),
            },
            "spec": parent["spec"]["podSpec"],
        }
        found.append(owned_by(child, parent))
    return found


def _pod_clique(name: str, parent: Object, clique_set: str, clique: Object, extra: dict[str, str]) -> Object:
    component = "pcsg-podclique" if extra else "pcs-podclique"
    labels = clique["labels"] | _labels(clique_set, component) | extra
    metadata = _metadata(name, parent, labels)
    metadata["annotations"] = dict(clique.get("annotations", {}))
    child = {
        "apiVersion": _API,
        "kind": "PodClique",
        "metadata": metadata,
        "spec": clique["spec"],
    }
    return owned_by(child, parent)


def _labels(clique_set: str, component: str) -> dict[str, str]:
    return {
        "app.kubernetes.io/managed-by": "grove-operator",
        "app.kubernetes.io/part-of": clique_set,
        "app.kubernetes.io/component": component,
        "grove.io/podcliqueset-replica-index": "0",
        "grove.io/podgang": f"{clique_set}-0",
    }


def _metadata(name: str, like: Object, labels: dict[str, str] | None = None) -> dict[str, Any]:
    return {"name": name, "namespace": like["metadata"]["namespace"], "labels": labels or {}}


def _roles(component: Component) -> list[tuple[str, int]]:
    """Clique names and pod counts of a component."""
    name = component.name.lower()
    if component.nodes == 1:
        return [(name, component.replicas)]
    return [(f"{name}-ldr", 1), (f"{name}-wkr", component.nodes - 1)]
