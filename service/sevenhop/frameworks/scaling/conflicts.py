"""What stands against reducing a component, whatever framework it is of; looked for before anybody is asked."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from sevenhop.core.inventory.scalers import SCALERS
from sevenhop.core.inventory.workloads import Component, Workload
from sevenhop.core.objects.base import Object
from sevenhop.core.objects.pod import Pod
from sevenhop.core.remediation.action import Edit, ObjectRef
from sevenhop.core.remediation.reduction import Chooser, Conflict, ConflictReason, View
from sevenhop.frameworks.scaling.autoscalers import autoscaled
from sevenhop.frameworks.scaling.budgets import BUDGET, no_room
from sevenhop.frameworks.scaling.consent import borrowed, in_git, opted_out, reverted_by
from sevenhop.frameworks.scaling.queues import queued
from sevenhop.frameworks.scaling.quota import WORKLOAD
from sevenhop.frameworks.scaling.rollouts import rolling
from sevenhop.frameworks.scaling.volumes import lost_volumes
from sevenhop.frameworks.scaling.way import Change, Way, called, line_of, ref_of

READS: tuple[str, ...] = (
    *SCALERS, BUDGET, WORKLOAD, "Namespace", "ReplicaSet.apps", "Deployment.apps", "StatefulSet.apps",
)  # fmt: skip
"""Kinds that are looked at for every framework."""


def conflict_of(
    view: View, workload: Workload, component: Component, way: Way, pods: Sequence[Pod]
) -> Conflict | tuple[str, ...]:
    """
    The first conflict, those that only the owner can end before those that pass; else notes for the plan.

    Args:
        pods: All live pods of the component.
    """
    ruler = way.ruler
    line = line_of(view, pods)
    if line.strangers:
        return Conflict(
            ConflictReason.NOT_PROVEN,
            f"{component.name} is made by {', '.join(line.strangers)}, which may set its replicas back: not proven",
        )
    seen = dict(_stated(view, way))
    for (kind, _), obj in line.objects.items():
        seen.setdefault(ref_of(kind, obj), obj)
    objects = list(seen.items())
    written = _written(way)
    namespace = view.get("Namespace", "", workload.namespace)
    spoken: list[tuple[ObjectRef, Object]] = [*objects, *((ref_of("Pod", pod), pod) for pod in pods)]
    if namespace is not None:
        spoken.append((ref_of("Namespace", namespace), namespace))
    if namespace is not None and namespace.metadata.deletion_timestamp is not None:
        text = (
            f"Namespace {workload.namespace} is being deleted: its pods go by themselves, and none could be given back"
        )
        return Conflict(ConflictReason.NO_TARGET, text)
    queue = queued(view, ruler.target, objects, pods)
    scaled = {(ref.kind, ref.name) for ref in seen}
    found = (
        opted_out(spoken)
        or borrowed(objects)
        or in_git([(ref, obj) for ref, obj in objects if ref in written], written)
        or (queue if isinstance(queue, Conflict) else None)
        or autoscaled(view, workload.namespace, scaled, way.obeys)
        or lost_volumes(objects)
        or rolling(objects)
        or _at_its_floor(component, way)
        or no_room(view, pods, ruler.unit_pods, is_choice_known=ruler.chooser is not Chooser.ANY)
    )
    if found is not None:
        return found
    return tuple(note for note in (queue, *reverted_by(objects)) if isinstance(note, str) and note)


def _stated(view: View, way: Way) -> Iterator[tuple[ObjectRef, Object]]:
    """What is patched and marked, and what rules beside them; other roots of the workload are parts of their own."""
    for ref in (way.ruler.target, way.marked, *way.stated):
        obj = view.get(ref.kind, ref.namespace, ref.name)
        if obj is not None:
            yield ref_of(ref.kind, obj), obj


def _written(way: Way) -> dict[ObjectRef, tuple[Edit, ...]]:
    """What one replica fewer would write, by object; the marked one gets at least an annotation."""
    change = way.change(max(0, way.ruler.replicas - 1), ())
    written: dict[ObjectRef, tuple[Edit, ...]] = {way.marked: ()}
    if isinstance(change, Change):
        written |= {ref: edits for ref, edits, _ in change.also}
        written[way.ruler.target] = change.edits
    return written


def _at_its_floor(component: Component, way: Way) -> Conflict | None:
    ruler = way.ruler
    if ruler.replicas > ruler.floor:
        return None
    if ruler.replicas == 0:
        return Conflict(ConflictReason.FLOOR, f"{called(ruler.target)} asks for no replicas of {component.name}")
    return Conflict(
        ConflictReason.FLOOR,
        f"{component.name} has {ruler.replicas}, and {called(ruler.target)} keeps at least {ruler.floor}",
    )
