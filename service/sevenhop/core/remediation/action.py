"""
One small reversible change, as data.  What it touches, how it is tried, undone and verified stands in the table of
actions (`sevenhop.actions`); here is only what a person agrees to and what the executor needs.
"""

from __future__ import annotations

import msgspec

Value = int | str | bool | None


class ObjectRef(msgspec.Struct, frozen=True, gc=False, order=True):
    """`kind` is a name in `KINDS`; the uid says which incarnation is meant, empty if it is not known."""

    kind: str
    namespace: str
    name: str
    uid: str = ""

    def __str__(self) -> str:
        place = f"{self.namespace}/" if self.namespace else ""
        return f"{self.kind.partition('.')[0]} {place}{self.name}"


class Edit(msgspec.Struct, frozen=True, gc=False):
    """
    One field of one object.

    Attributes:
        pointer: RFC 6901, from the object's root: ``/spec/workerGroupSpecs/0/replicas``.  What is missing on the way to
            it is made; an entry of a list has its own edit, as in ``/…/workersToDelete/0``.
        before: What is observed there now, and tested by the patch; None if the field is absent.
        after: What it becomes; None removes it.
    """

    pointer: str
    before: Value
    after: Value


class Test(msgspec.Struct, frozen=True, gc=False):
    """A place that must still hold this value, such as the name of a list's entry: lists are reached by index."""

    pointer: str
    value: Value


class Scale(msgspec.Struct, frozen=True, kw_only=True, gc=False, tag="scale", tag_field="action"):
    """
    Give one component fewer replicas, through the object that rules them.

    Attributes:
        target: The object that is patched.
        subresource: ``scale`` or empty.
        edits: Applied in one patch, or none of them.
        tests: Tested in the same patch.
        also: Edits of further objects that only make the change last (RayService above its live RayCluster).
        marked: The object that carries `sevenhop.dev/borrowed`; the target, or its parent where the target is derived.
        workload, component: Whose replicas they are.
        before, after: Replicas in the component's own unit.
        unit_pods, unit_gpus: Pods and GPUs of one replica.
        version: The target's API version that the pointers were read in, such as ``v1alpha1``: another version has its
            fields elsewhere, so the patch goes through this one.
    """

    target: ObjectRef
    subresource: str = ""
    version: str = ""
    edits: tuple[Edit, ...]
    tests: tuple[Test, ...] = ()
    also: tuple[tuple[ObjectRef, tuple[Edit, ...], tuple[Test, ...]], ...] = ()
    marked: ObjectRef
    workload: tuple[str, str]
    component: str
    before: int
    after: int
    unit_pods: int = 1
    unit_gpus: int = 0


class Steer(msgspec.Struct, frozen=True, kw_only=True, gc=False, tag="steer", tag_field="action"):
    """Tell a ReplicaSet which of its pods to remove first, by `controller.kubernetes.io/pod-deletion-cost`."""

    pods: tuple[ObjectRef, ...]
    cost: int = -2147483647  # the lowest that is not the field's own limit


class EvictPod(msgspec.Struct, frozen=True, kw_only=True, gc=False, tag="evict-pod", tag_field="action"):
    """Remove one pod through the eviction subresource; its owner makes it again."""

    pod: ObjectRef


class Cordon(msgspec.Struct, frozen=True, kw_only=True, gc=False, tag="cordon", tag_field="action"):
    """Keep new pods from one node."""

    node: ObjectRef


Action = Scale | Steer | EvictPod | Cordon

ACTION_NAMES: tuple[str, ...] = ("scale", "steer", "evict-pod", "cordon")
"""What a playbook's `steps` may name: the tag of each kind of action."""


def name_of(action: Action) -> str:
    """The action's name in playbooks and in the table of actions."""
    return str(action.__struct_config__.tag)
