"""Live objects as a plan's steps name them: values at JSON pointers, marks, pods of a component."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

import msgspec

from sevenhop.core.facts.schema import Unknown
from sevenhop.core.inventory.objects import Key
from sevenhop.core.inventory.state import Slot, State, component_subject
from sevenhop.core.objects.base import Object
from sevenhop.core.objects.cluster import Node
from sevenhop.core.objects.pod import Pod
from sevenhop.core.remediation.action import Action, Cordon, Edit, EvictPod, ObjectRef, Scale, Value
from sevenhop.core.remediation.borrowed import BORROWED, decode_borrow
from sevenhop.core.remediation.plan import Plan

DELETION_COST: Final = "controller.kubernetes.io/pod-deletion-cost"

_CAMEL = re.compile(r"(?<!^)(?=[A-Z])")


class Unseen(msgspec.Struct, frozen=True, gc=False):
    """A place whose value our structs do not hold: neither there nor absent, as far as we can tell."""


UNSEEN: Final = Unseen()


def object_of(state: State, ref: ObjectRef) -> Object | None:
    """The live object at this place, whatever its incarnation."""
    return state.objects.get(ref.kind, ref.namespace, ref.name)


def sight_of(state: State, ref: ObjectRef) -> Unknown | None:
    """Why the object cannot be seen now; None while it can, or is seen to be gone."""
    return state.gate(ref.kind) or state.unreadable_gate(ref.kind, (ref.namespace, ref.name))


def is_gone(state: State, ref: ObjectRef) -> bool:
    """Whether this very incarnation is seen to be no more."""
    if sight_of(state, ref) is not None:
        return False
    found = object_of(state, ref)
    return found is None or bool(ref.uid and found.metadata.uid and found.metadata.uid != ref.uid)


def value_at(obj: Object, pointer: str) -> Value | Unseen:
    """
    What stands at an RFC 6901 pointer of an object; None where an object that we hold in full lacks it.

    >>> from sevenhop.core.objects.base import Custom
    >>> value_at(Custom(spec={"workers": [{"replicas": 3}]}), "/spec/workers/0/replicas")
    3
    """
    found: Any = obj
    for raw in pointer.removeprefix("/").split("/"):
        step = raw.replace("~1", "/").replace("~0", "~")
        if isinstance(found, Mapping):
            if step not in found:
                return None
            found = found[step]
        elif isinstance(found, Sequence) and not isinstance(found, str):
            if not step.isdigit() or int(step) >= len(found):
                return None
            found = found[int(step)]
        elif isinstance(found, msgspec.Struct):
            name = _CAMEL.sub("_", step).lower()
            if name not in found.__struct_fields__:
                return UNSEEN
            found = getattr(found, name)
        else:
            return UNSEEN
    if found is None or isinstance(found, bool | int | str):
        return found
    return UNSEEN


class Held(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """
    How the places that a plan edits look now.

    Attributes:
        ours: Places that hold what we set.
        before: Places that hold what was there before us.
        others: What somebody else set, a line each.
        gone: Targets that are no more.
        unseen: Places of which nothing can be told.
    """

    ours: int = 0
    before: int = 0
    others: tuple[str, ...] = ()
    gone: tuple[str, ...] = ()
    unseen: int = 0


def held(state: State, plan: Plan) -> Held:
    """Compare the edited places of all scale steps with the cluster."""
    ours = before = unseen = 0
    others: list[str] = []
    gone: list[str] = []
    for scale in plan.scales:
        if is_gone(state, scale.target):
            lasting = _lasting(state, scale)
            ours += lasting
            if not lasting:
                gone.append(str(scale.target))
            continue
        obj = object_of(state, scale.target)
        if obj is None or sight_of(state, scale.target) is not None:
            unseen += 1
            continue
        if any(value_at(obj, test.pointer) != test.value for test in scale.tests):
            unseen += 1  # lists are reached by index, and its entries have moved
            continue
        for edit in deciding(scale.edits):
            value = value_at(obj, edit.pointer)
            if isinstance(value, Unseen):
                unseen += 1
            elif _same(value, edit.after):
                ours += 1
            elif _same(value, edit.before):
                before += 1
            else:
                others.append(f"{scale.target}: {edit.pointer} is {value!r}, and we set {edit.after!r}")
    return Held(ours=ours, before=before, others=tuple(others), gone=tuple(gone), unseen=unseen)


def _lasting(state: State, scale: Scale) -> int:
    """
    Places of further objects that hold what we set, where the target itself is gone.

    What is made anew is made from these, as the next RayCluster is from its RayService: until they are set back its
    owner has not got back what it gave.
    """
    found = 0
    for ref, edits, tests in scale.also:
        obj = object_of(state, ref)
        if obj is None or is_gone(state, ref) or any(value_at(obj, test.pointer) != test.value for test in tests):
            continue
        for edit in deciding(edits):
            value = value_at(obj, edit.pointer)
            found += not isinstance(value, Unseen) and _same(value, edit.after)
    return found


def deciding(edits: Sequence[Edit]) -> list[Edit]:
    """
    The edits that say how many; all of them where none does.

    Others only go with these: an autoscaler clears `workersToDelete` once the pods are gone.
    """
    return [edit for edit in edits if _is_count(edit.before) or _is_count(edit.after)] or list(edits)


def marked_by(state: State, plan: Plan) -> bool:
    """Whether a donor carries the mark of this very plan."""
    for scale in plan.scales:
        obj = object_of(state, scale.marked)
        mark = obj.metadata.annotations.get(BORROWED) if obj is not None else None
        borrow = decode_borrow(mark) if mark is not None else ""
        if not isinstance(borrow, str) and borrow.plan == plan.id:
            return True
    return False


def done_of(state: State, plan: Plan) -> int:
    """How many of the plan's steps hold already, in order: what a crash in the middle of the patch has left to do."""
    if not marked_by(state, plan):
        return 0
    done = 0
    for action in plan.actions:
        if not _holds(state, plan, action):
            break
        done += 1
    return done


def _holds(state: State, plan: Plan, action: Action) -> bool:
    if isinstance(action, Scale):
        found = held(state, msgspec.structs.replace(plan, actions=(action,)))
        return found.ours > 0 and not found.before and not found.others
    if isinstance(action, EvictPod):
        return is_gone(state, action.pod)
    if isinstance(action, Cordon):
        node = object_of(state, action.node)
        return isinstance(node, Node) and node.spec.unschedulable
    pods = [object_of(state, ref) for ref in action.pods]
    cost = str(action.cost)
    return all(
        pod is None or pod.metadata.annotations.get("controller.kubernetes.io/pod-deletion-cost") == cost
        for pod in pods
    )


def lacking(state: State, slot: Slot) -> int:
    """Replicas that a component asks for and that are not ready, as far as that is known."""
    facts = state.facts.get(component_subject(slot), {})
    desired, ready = facts.get("component.desired"), facts.get("component.ready")
    return desired - ready if isinstance(desired, int) and isinstance(ready, int) else 0


def live_pods(state: State, workload: Key, component: str) -> list[Pod]:
    """Pods of a component as objects, neither finished nor being deleted, in order of name."""
    found = []
    for key, row in sorted(state.rows_of.get((workload, component), {}).items()):
        pod = state.objects.pods().get(key)
        if pod is not None and row.live:
            found.append(pod)
    return found


def donors(plan: Plan) -> Iterator[tuple[Key, str]]:
    """(workload, component) of everybody who gives."""
    for scale in plan.scales:
        yield scale.workload, scale.component


def _is_count(value: Value) -> bool:
    if isinstance(value, str):
        return value.isdecimal()
    return isinstance(value, int) and not isinstance(value, bool)


def _same(a: Value, b: Value) -> bool:
    """Equal as JSON: true is not 1."""
    return a == b and type(a) is type(b)
