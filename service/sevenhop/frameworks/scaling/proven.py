"""Which versions of a kind somebody has looked at; anything else is refused with words."""

from __future__ import annotations

from collections.abc import Sequence

from sevenhop.core.inventory.workloads import Component, Framework, Workload
from sevenhop.core.objects.base import Custom, Object
from sevenhop.core.objects.pod import Pod
from sevenhop.core.remediation.action import Action, ObjectRef
from sevenhop.core.remediation.reduction import Conflict, ConflictReason, Ruler, ScalingSpec, View
from sevenhop.frameworks.scaling.way import called

Seen = Object | Conflict


def look(view: View, kind: str, namespace: str, name: str, versions: Sequence[str] = ()) -> Seen:
    """
    An object in a version that is proven, or why it cannot be built on.

    Args:
        versions: Proven ones of a custom kind; none for kinds of Kubernetes itself.
    """
    obj = view.get(kind, namespace, name)
    ref = ObjectRef(kind, namespace, name)
    if obj is None:
        return Conflict(ConflictReason.NO_TARGET, f"{called(ref)} is not there")
    if obj.metadata.deletion_timestamp is not None:
        return Conflict(ConflictReason.NO_TARGET, f"{called(ref)} is being deleted")
    if versions:
        version = version_of(obj)
        if version not in versions:
            return Conflict(
                ConflictReason.NOT_PROVEN,
                f"{called(ref)} is of version {version or 'unknown'}; proven: {', '.join(versions)}",
            )
    return obj


def version_of(obj: Object) -> str:
    """Without the group; empty if the object does not say."""
    return obj.api_version.rpartition("/")[2] if isinstance(obj, Custom) else ""


def made_by_another(kind: str, obj: Object) -> Conflict | None:
    """What somebody else makes, somebody else sets back."""
    owner = obj.metadata.controller()
    if owner is None:
        return None
    ref = ObjectRef(kind, *obj.metadata.key)
    return Conflict(
        ConflictReason.NOT_PROVEN, f"{called(ref)} is made by {owner.kind} {owner.name}, which may set it back"
    )


def not_proven(framework: Framework, why: str) -> ScalingSpec:
    """
    A framework that nothing is reduced of, until its path is proven.

    Args:
        why: What would be patched, and what is not known of it.
    """

    def rule(_view: View, workload: Workload, component: Component, _pods: Sequence[Pod]) -> Ruler | Conflict:
        return Conflict(
            ConflictReason.NOT_PROVEN, f"{workload.name}/{component.name}: reducing {framework} is not proven: {why}"
        )

    def actions(
        view: View, workload: Workload, component: Component, _ruler: Ruler, _after: int, victims: Sequence[Pod]
    ) -> tuple[Action, ...] | Conflict:
        refused = rule(view, workload, component, victims)
        assert isinstance(refused, Conflict)
        return refused

    return ScalingSpec(framework=framework, docs=f"Refused: {why}.", patches=(), rule=rule, actions=actions)
