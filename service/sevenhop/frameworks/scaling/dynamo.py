"""
NVIDIA Dynamo: the scaling adapter of a component where it has one, else the graph itself.

Dynamo's webhook refuses replicas in the graph from anybody but its own planner once there is an adapter
(deploy/operator/internal/webhook/common.go, CanModifyDGDReplicas), and everything below is made anew from the graph.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sevenhop.core.inventory.workloads import Component, Framework, Workload
from sevenhop.core.objects.base import Object
from sevenhop.core.objects.pod import Pod
from sevenhop.core.remediation.action import Edit, ObjectRef, Test
from sevenhop.core.remediation.reduction import Conflict, ConflictReason, Ruler, ScalingSpec, View
from sevenhop.frameworks.dynamo import ADAPTER, GRAPH
from sevenhop.frameworks.reading import flag, number, rows, spec_of, table, text
from sevenhop.frameworks.scaling.choosers import chooser_of, makers_of
from sevenhop.frameworks.scaling.controllers import pair_floor
from sevenhop.frameworks.scaling.proven import look, version_of
from sevenhop.frameworks.scaling.row import row
from sevenhop.frameworks.scaling.way import Change, Way, called, pointer, ref_of

VERSIONS = ("v1beta1", "v1alpha1")


def find(view: View, workload: Workload, component: Component, pods: Sequence[Pod]) -> Way | Conflict:
    kind, key = workload.roots[0]
    if kind != GRAPH:
        return Conflict(
            ConflictReason.NOT_PROVEN,
            f"{called(ObjectRef(kind, *key))} stands without a DynamoGraphDeployment, which is not proven",
        )
    graph = look(view, GRAPH, *key, VERSIONS)
    if isinstance(graph, Conflict):
        return graph
    planner = _planner(graph)
    if planner:
        return Conflict(
            ConflictReason.AUTOSCALED,
            f"{planner}, the planner of {called(ref_of(GRAPH, graph))}, scales it; set its replicas to 0 first",
        )
    place = _place(graph, component.name)
    if place is None:
        return Conflict(ConflictReason.NO_TARGET, f"{called(ref_of(GRAPH, graph))} has no component {component.name}")
    part, field, tests = place
    # With Grove and without: fewer than minAvailable is refused, and a breach of it ends the whole gang.
    floor = max(number(part, "minAvailable") or 0, pair_floor(workload, component))
    stated = number(part, "replicas")
    replicas = 1 if stated is None else stated
    nodes = max(1, number(part, "multinode", "nodeCount") or 1)

    adapter_name = f"{key[1]}-{component.name.lower()}"
    adapter = view.get(ADAPTER, key[0], adapter_name)
    if _wants_adapter(part) or adapter is not None:
        return _through_adapter(view, graph, component, adapter_name, replicas, _ruling(floor, nodes, pods))

    def change(after: int, _victims: Sequence[Pod]) -> Change:
        edits = (Edit(pointer(*field, "replicas"), stated, after),) if after != replicas else ()
        return Change(edits, tests)

    target = ref_of(GRAPH, graph)
    ruler = Ruler(target=target, replicas=replicas, **_ruling(floor, nodes, pods))
    return Way(ruler=ruler, marked=target, change=change, version=version_of(graph))


def _through_adapter(
    view: View, graph: Object, component: Component, name: str, in_graph: int, ruling: dict[str, Any]
) -> Way | Conflict:
    adapter = look(view, ADAPTER, graph.metadata.namespace, name, VERSIONS)
    if isinstance(adapter, Conflict):
        return adapter
    target = ref_of(ADAPTER, adapter)
    spec = spec_of(adapter)
    meant = text(spec, "dgdRef", "componentName") or text(spec, "dgdRef", "serviceName")
    if (text(spec, "dgdRef", "name"), meant) != (graph.metadata.name, component.name):
        return Conflict(ConflictReason.NOT_PROVEN, f"{called(target)} does not name {component.name} as what it scales")
    replicas = number(spec, "replicas")
    if replicas is None:
        return Conflict(ConflictReason.UNKNOWN, f"the replicas of {called(target)} cannot be read")
    if replicas != in_graph:
        return Conflict(
            ConflictReason.ROLLOUT,
            f"{called(target)} asks for {replicas} and the graph still for {in_graph}; wait until they agree",
        )

    def change(after: int, _victims: Sequence[Pod]) -> Change:
        return Change((Edit("/spec/replicas", replicas, after),) if after != replicas else ())

    return Way(
        ruler=Ruler(target=target, replicas=replicas, **ruling),
        marked=ref_of(GRAPH, graph),
        change=change,
        subresource="scale",
    )


def _ruling(floor: int, nodes: int, pods: Sequence[Pod]) -> dict[str, Any]:
    return {"floor": floor, "unit_pods": nodes, "chooser": chooser_of(pods), "makers": makers_of(pods)}


def _planner(graph: Object) -> str:
    """Name of a planner that is meant to run; empty if there is none."""
    for name, part in _parts(graph):
        kind = text(part, "type") or text(part, "componentType")
        wanted = number(part, "replicas")
        if kind.lower() == "planner" and (wanted is None or wanted > 0):
            return name
    return ""


def _parts(graph: Object) -> list[tuple[str, dict[str, Any]]]:
    spec = spec_of(graph)
    newer = [(text(part, "name"), part) for part in rows(spec, "components")]
    older = [(str(name), part) for name, part in table(spec, "services").items() if isinstance(part, dict)]
    return newer or older


def _place(graph: Object, name: str) -> tuple[dict[str, Any], tuple[str | int, ...], tuple[Test, ...]] | None:
    """(component, path of it, tests); a list is reached by index, so its entry's name is tested."""
    spec = spec_of(graph)
    if version_of(graph) == "v1alpha1":
        part = table(spec, "services").get(name)
        return (part, ("spec", "services", name), ()) if isinstance(part, dict) else None
    listed = spec.get("components")
    for at, part in enumerate(listed if isinstance(listed, list) else []):
        if text(part, "name") == name:
            field = ("spec", "components", at)
            return part, field, (Test(pointer(*field, "name"), name),)
    return None


def _wants_adapter(part: dict[str, Any]) -> bool:
    """In v1beta1 that it is there means on; v1alpha1 has a switch in it."""
    return "scalingAdapter" in part and (
        "enabled" not in table(part, "scalingAdapter") or flag(part, "scalingAdapter", "enabled")
    )


DYNAMO: ScalingSpec = row(
    Framework.DYNAMO,
    "`/scale` of the component's DynamoGraphDeploymentScalingAdapter where it has one, else its `replicas` in the "
    "DynamoGraphDeployment. Refused where a planner runs. `minAvailable`, and one each of prefill and decode, stay.",
    ((ADAPTER, "scale"), (GRAPH, "")),
    find,
    (GRAPH, ADAPTER),
)
