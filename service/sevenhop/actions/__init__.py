"""
What may be done in a cluster.  One row here and one module beside it make an action; `executor` carries them out.

The rows drive docs/reference/actions.md and the role of the service.
"""

from __future__ import annotations

from collections.abc import Iterable

from sevenhop.actions.copies import DEPLOYMENT, REPLICA_SET
from sevenhop.actions.spec import ActionSpec, Patched, Permission, permission


def _scaling(patched: Iterable[Patched]) -> tuple[Permission, ...]:
    """What frameworks patch, the owner among it: that is where the annotation goes."""
    found: set[Permission] = set()
    for kind, subresource in patched:
        found.add(permission(kind, subresource, "get", "patch"))
        if kind == DEPLOYMENT:
            found.add(permission(REPLICA_SET, "", "get", "list", "patch"))  # copies of the annotation
    return (*sorted(found), _EVENTS)


_EVENTS = Permission("events.k8s.io", "events", ("create",))

ACTIONS: dict[str, ActionSpec] = {
    spec.name: spec
    for spec in (
        ActionSpec(
            name="scale",
            touches="The replicas of one component, through the object that rules them, and the annotation "
            "`sevenhop.dev/borrowed` on that object or its owner.",
            dry_run="Each patch with `dryRun=All`: schema, admission and permissions speak before anything is done.",
            undo="Each field that still holds our value gets back what stood there; a later change of somebody else "
            "stays. The annotation is removed.",
            verify="The fields hold the new numbers and the owner carries our annotation.",
            permissions=_scaling,
        ),
        ActionSpec(
            name="steer",
            touches="The annotations `controller.kubernetes.io/pod-deletion-cost` and `sevenhop.dev/steered` of the "
            "pods that are to go first.",
            dry_run="Each patch with `dryRun=All`.",
            undo="On pods that are still there the cost gets back what stood there, unless somebody has set it since.",
            verify="With the scale that it stands before.",
            permissions=lambda _: (permission("Pod", "", "get", "patch"), _EVENTS),
        ),
        ActionSpec(
            name="evict-pod",
            touches="One pod, through its eviction subresource: PodDisruptionBudgets hold.",
            dry_run="The same eviction with `dryRun: [All]`, which asks the budgets too.",
            undo="Nothing to undo: its owner makes the pod again.",
            verify="The pod with that uid is gone or going.",
            permissions=lambda _: (permission("Pod", "", "get"), permission("Pod", "eviction", "create"), _EVENTS),
        ),
        ActionSpec(
            name="cordon",
            touches="`spec.unschedulable` of one node, and the annotation `sevenhop.dev/cordoned`.",
            dry_run="The patch with `dryRun=All`.",
            undo="Uncordoned, if the node still carries our annotation.",
            verify="The node is unschedulable and carries our annotation.",
            permissions=lambda _: (permission("Node", "", "get", "patch"), _EVENTS),
        ),
    )
}
"""Name to what is said of it."""


def permissions_of(patched: Iterable[Patched]) -> tuple[Permission, ...]:
    """What all actions together need beyond reading, verbs joined, in order."""
    patched = list(patched)
    joined: dict[tuple[str, str], set[str]] = {}
    for spec in ACTIONS.values():
        for needed in spec.permissions(patched):
            joined.setdefault((needed.group, needed.resource), set()).update(needed.verbs)
    return tuple(
        Permission(group, resource, tuple(sorted(verbs))) for (group, resource), verbs in sorted(joined.items())
    )
