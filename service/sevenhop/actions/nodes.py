"""Keeping new pods from a node, and letting them on it again."""

from __future__ import annotations

from sevenhop.actions._writer import Writer
from sevenhop.actions.errors import ChangedError, GoneError
from sevenhop.actions.marks import CORDONED, annotations_of, pointer
from sevenhop.actions.pointers import Data, Operation, operations
from sevenhop.actions.standing import Standing
from sevenhop.core.remediation.action import Cordon, Edit

UNSCHEDULABLE = "/spec/unschedulable"


async def apply(writer: Writer, action: Cordon, plan: str) -> str:
    """
    Cordon it, with our mark in the same patch.

    Raises:
        ChangedError: Somebody else has cordoned it already.
        ActError: See `Writer`.
    """
    live = await writer.read(action.node)
    mark = annotations_of(live).get(CORDONED)
    if mark == plan and _is_cordoned(live):
        return f"{action.node} is cordoned"
    if _is_cordoned(live):
        raise ChangedError(f"{action.node} is cordoned already, not by this plan")
    edits = [Edit(UNSCHEDULABLE, _unschedulable(live), True), Edit(pointer(CORDONED), mark, plan)]
    await writer.patch(action.node, operations(live, edits, (), action.node.uid))
    return f"{action.node} cordoned"


async def give_back(writer: Writer, action: Cordon, plan: str, *, uncertain: bool) -> str:
    """Uncordon it, if it is ours to uncordon; `uncertain`: an earlier attempt may have done so."""
    try:
        live = await writer.patch_as_it_is(action.node, lambda live: _back(live, action, plan))
    except GoneError as gone:
        return str(gone)
    if annotations_of(live).get(CORDONED) != plan:
        if uncertain and CORDONED not in annotations_of(live) and not _is_cordoned(live):
            return f"{action.node} is not cordoned any more"
        return f"{action.node} is left as it is: it does not carry our mark"
    return f"{action.node} uncordoned" if _is_cordoned(live) else f"{action.node} was uncordoned by somebody since"


def _back(live: Data, action: Cordon, plan: str) -> list[Operation]:
    if annotations_of(live).get(CORDONED) != plan:
        return []
    edits = [Edit(pointer(CORDONED), plan, None)]
    if _is_cordoned(live):
        edits.append(Edit(UNSCHEDULABLE, True, None))
    return operations(live, edits, (), action.node.uid)


async def look(writer: Writer, action: Cordon, plan: str) -> tuple[Standing, str]:
    """How it stands."""
    try:
        live = await writer.read(action.node)
    except GoneError as gone:
        return Standing.OTHER, str(gone)
    if annotations_of(live).get(CORDONED) != plan:
        return Standing.BEFORE, f"{action.node} does not carry our mark"
    if not _is_cordoned(live):
        return Standing.OTHER, f"{action.node} was uncordoned by somebody since"
    return Standing.AFTER, f"{action.node} is cordoned"


def _unschedulable(live: Data) -> bool | None:
    found = (live.get("spec") or {}).get("unschedulable")
    return None if found is None else bool(found)


def _is_cordoned(live: Data) -> bool:
    return bool(_unschedulable(live))
