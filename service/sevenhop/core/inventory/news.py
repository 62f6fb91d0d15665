"""Does a newer version of an object say anything that somebody here reads?"""

from __future__ import annotations

from sevenhop.core.inventory.rows import is_ready
from sevenhop.core.objects.base import Object, condition
from sevenhop.core.objects.cluster import Node
from sevenhop.core.objects.pod import Pod


def is_same_version(before: Object, after: Object) -> bool:
    """`resourceVersion` is identity, never order: the same one is the same object, listed or sent again."""
    version = after.metadata.resource_version
    return bool(version) and before.metadata.resource_version == version and before.metadata.uid == after.metadata.uid


def is_same_but_status(before: Pod, after: Pod) -> bool:
    """Whether nothing but the status, or what nobody here reads, differs."""
    a, b = before.metadata, after.metadata
    return (
        before.spec == after.spec
        and a.labels == b.labels
        and a.annotations == b.annotations
        and a.deletion_timestamp == b.deletion_timestamp
        and a.owner_references == b.owner_references
    )


def says_the_same(before: Pod, after: Pod) -> bool:
    """
    Whether two statuses say the same to whoever reads them.

    Of a pod that runs and is ready only these are read; why one is not well may stand in any field.
    """
    a, b = before.status, after.status
    if a == b:
        return True
    return (
        a.phase == b.phase == "Running"
        and a.container_statuses == b.container_statuses
        and a.init_container_statuses == b.init_container_statuses
        and a.resource_claim_statuses == b.resource_claim_statuses
        and a.extended_resource_claim_status == b.extended_resource_claim_status
        and is_ready(before)
        and condition(a.conditions, "Ready") == condition(b.conditions, "Ready")
        and condition(a.conditions, "PodScheduled") == condition(b.conditions, "PodScheduled")
    )


def is_placed_differently(before: Pod, after: Pod) -> bool:
    """Whether anything changed that placement reads: a pod that becomes ready changes nothing for the others."""
    if not after.spec.node_name or before.spec.node_name != after.spec.node_name:
        return True
    a, b = before.metadata, after.metadata
    return (
        a.deletion_timestamp != b.deletion_timestamp
        or a.labels != b.labels
        or before.spec != after.spec
        or holds_differently(before, after)
    )


def holds_differently(before: Pod, after: Pod) -> bool:
    """The same of a pod on a node, where nothing but its status changed."""
    return (
        before.is_finished != after.is_finished
        or [s.allocated_resources for s in before.status.container_statuses]
        != [s.allocated_resources for s in after.status.container_statuses]
        or before.status.resource_claim_statuses != after.status.resource_claim_statuses
        or before.status.extended_resource_claim_status != after.status.extended_resource_claim_status
    )


def is_heartbeat(before: Node, after: Node) -> bool:
    """Whether a node says no more than that its kubelet is alive."""
    a, b = before.metadata, after.metadata
    return (
        a.labels == b.labels
        and a.annotations == b.annotations
        and before.spec == after.spec
        and before.status.allocatable == after.status.allocatable
        and before.status.capacity == after.status.capacity
        and [(c.type, c.status) for c in before.status.conditions]
        == [(c.type, c.status) for c in after.status.conditions]
    )
