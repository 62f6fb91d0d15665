"""
KServe's LLMInferenceService: its replicas, its scaling, or its child where neither is stated.

What is stated is written to the child again at every reconcile; where nothing is, the child's count is preserved
(pkg/controller/v1alpha2/llmisvc).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sevenhop.core.inventory.templates import LWS, replicas_of
from sevenhop.core.inventory.workloads import Component, Workload
from sevenhop.core.objects.base import Object
from sevenhop.core.objects.pod import Pod
from sevenhop.core.remediation.action import Edit
from sevenhop.core.remediation.reduction import Conflict, ConflictReason, Ruler, View
from sevenhop.frameworks.kserve import CONFIG, LLM
from sevenhop.frameworks.reading import number, rows, spec_of, table, text
from sevenhop.frameworks.scaling.choosers import chooser_of, makers_of
from sevenhop.frameworks.scaling.controllers import DEPLOYMENT, LWS_VERSIONS, pair_floor, through_scale
from sevenhop.frameworks.scaling.proven import look, version_of
from sevenhop.frameworks.scaling.way import Change, Range, Way, called, ref_of

VERSIONS = ("v1alpha2", "v1alpha1")


def find(view: View, workload: Workload, component: Component, pods: Sequence[Pod]) -> Way | Conflict:
    key = workload.roots[0][1]
    service = look(view, LLM, *key, VERSIONS)
    if isinstance(service, Conflict):
        return service
    ref = ref_of(LLM, service)
    if component.role == "epp":
        return Conflict(ConflictReason.NOT_PROVEN, f"{called(ref)}: its scheduler is not scaled")
    prefix = ("prefill",) if component.name == "prefill" else ()
    part = table(spec_of(service), *prefix)
    elsewhere = _in_a_config(view, service, prefix)
    if elsewhere and not table(part, "scaling") and number(part, "replicas") is None:
        return Conflict(
            ConflictReason.NOT_PROVEN,
            f"the replicas of {component.name} stand in LLMInferenceServiceConfig {elsewhere}, which others may share; "
            f"state them in {called(ref)}",
        )
    child = _child(view, service, component, bool(prefix))
    if isinstance(child, Conflict):
        return child
    floor = pair_floor(workload, component)
    field = "/".join(("/spec", *prefix))
    if table(part, "scaling"):
        return _scaled(service, part, child, component, pods, f"{field}/scaling", floor)
    stated = number(part, "replicas")
    if stated is not None:
        return _stated(service, stated, child, component, pods, f"{field}/replicas", floor)
    kind, obj = child
    note = f"{called(ref)} states no replicas, and keeps those of its {kind.partition('.')[0]}"
    way = through_scale(kind, obj, pods, marked=ref, floor=floor, notes=(note,))
    return way if isinstance(way, Conflict) else way._replace(stated=(ref,))


def _in_a_config(view: View, service: Object, prefix: tuple[str, ...]) -> str:
    """Name of a base configuration that states replicas, or that cannot be seen; empty if none does."""
    for row in rows(spec_of(service), "baseRefs"):
        name = text(row, "name")
        base = view.get(CONFIG, service.metadata.namespace, name) or view.get(CONFIG, "kserve", name)
        part = table(spec_of(base), *prefix)
        if base is None or table(part, "scaling") or number(part, "replicas") is not None:
            return name
    return ""


def _child(view: View, service: Object, component: Component, is_prefill: bool) -> tuple[str, Object] | Conflict:
    suffix = "-prefill" if is_prefill else ""
    name, namespace = service.metadata.name, service.metadata.namespace
    if component.pods_per_replica > 1:
        group = look(view, LWS, namespace, f"{name}-kserve-mn{suffix}", LWS_VERSIONS)
        return group if isinstance(group, Conflict) else (LWS, group)
    child = look(view, DEPLOYMENT, namespace, f"{name}-kserve{suffix}")
    return child if isinstance(child, Conflict) else (DEPLOYMENT, child)


def _scaled(
    service: Object,
    part: dict[str, Any],
    child: tuple[str, Object],
    component: Component,
    pods: Sequence[Pod],
    field: str,
    floor: int,
) -> Way | Conflict:
    ref, live = ref_of(LLM, service), ref_of(*child)
    scaling = table(part, "scaling")
    limits = Range(number(scaling, "minReplicas"), number(scaling, "maxReplicas"))
    replicas = replicas_of(child[1])
    if replicas is None or limits.is_left(replicas):
        return Conflict(ConflictReason.ROLLOUT, f"{called(ref)} asks for {limits} and has {replicas} so far")
    lowest = max(floor, 1, (_idle(scaling) or 0) + 1)

    def change(after: int, _victims: Sequence[Pod]) -> Change:
        edits = limits.edits(after, f"{field}/minReplicas", f"{field}/maxReplicas") if after < replicas else ()
        return Change(edits)

    ruler = Ruler(
        target=ref,
        replicas=replicas,
        floor=limits.floor(replicas, lowest),
        unit_pods=component.pods_per_replica,
        chooser=chooser_of(pods),
        makers=makers_of(pods),
        notes=(f"until it is given back its autoscaler cannot go above the new number ({limits} before)",),
    )
    return Way(ruler=ruler, marked=ref, change=change, version=version_of(service), obeys=(ref,), stated=(live,))


def _idle(scaling: dict[str, Any]) -> int | None:
    """The schema wants idleReplicaCount below minReplicas."""
    own = number(scaling, "keda", "idleReplicaCount")
    return own if own is not None else number(scaling, "wva", "keda", "idleReplicaCount")


def _stated(
    service: Object,
    stated: int,
    child: tuple[str, Object],
    component: Component,
    pods: Sequence[Pod],
    where: str,
    floor: int,
) -> Way | Conflict:
    ref, live = ref_of(LLM, service), ref_of(*child)
    if replicas_of(child[1]) != stated:
        return Conflict(
            ConflictReason.ROLLOUT, f"{called(ref)} asks for {stated}, {called(live)} does not have that yet"
        )

    def change(after: int, _victims: Sequence[Pod]) -> Change:
        return Change((Edit(where, stated, after),) if after != stated else ())

    ruler = Ruler(
        target=ref,
        replicas=stated,
        floor=floor,
        unit_pods=component.pods_per_replica,
        chooser=chooser_of(pods),
        makers=makers_of(pods),
    )
    return Way(ruler=ruler, marked=ref, change=change, version=version_of(service), stated=(live,))
