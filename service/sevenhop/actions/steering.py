"""Which pods of a ReplicaSet go first, by their deletion cost."""

from __future__ import annotations

from sevenhop.actions._writer import Writer
from sevenhop.actions.errors import ChangedError, GoneError
from sevenhop.actions.marks import DELETION_COST, STEERED, annotations_of, pointer
from sevenhop.actions.pointers import Data, Operation, operations
from sevenhop.core.remediation.action import Edit, ObjectRef, Steer


async def apply(writer: Writer, steer: Steer, plan: str) -> None:
    """
    Put the cost on each pod, and beside it what stood there.

    Raises:
        ChangedError: Another plan steers one of them.
        ActError: See `Writer`.
    """
    for pod in steer.pods:
        live = await writer.read(pod)
        found = annotations_of(live)
        mark, cost = found.get(STEERED), found.get(DELETION_COST)
        if mark is not None and mark.partition(" ")[0] != plan:
            raise ChangedError(f"{pod} is steered by another plan")
        if mark is None:
            edits = [
                Edit(pointer(DELETION_COST), cost, str(steer.cost)),
                Edit(pointer(STEERED), None, f"{plan} {cost or ''}"),
            ]
            await writer.patch(pod, operations(live, edits, (), pod.uid))


async def take_back(writer: Writer, steer: Steer, plan: str) -> None:
    """Set the cost back on pods that are still there, unless somebody else has set it since."""
    for pod in steer.pods:
        try:
            await writer.patch_as_it_is(pod, lambda live, pod=pod: _back(live, pod, steer, plan))  # type: ignore[misc]
        except GoneError:
            continue  # it went, as was meant


def _back(live: Data, pod: ObjectRef, steer: Steer, plan: str) -> list[Operation]:
    found = annotations_of(live)
    mark = found.get(STEERED)
    if mark is None or mark.partition(" ")[0] != plan:
        return []
    edits = [Edit(pointer(STEERED), mark, None)]
    if found.get(DELETION_COST) == str(steer.cost):
        edits.append(Edit(pointer(DELETION_COST), str(steer.cost), mark.partition(" ")[2] or None))
    return operations(live, edits, (), pod.uid)
