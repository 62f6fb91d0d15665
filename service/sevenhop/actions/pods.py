"""Removing one pod, whose owner makes it again."""

from __future__ import annotations

from sevenhop.actions._writer import Writer
from sevenhop.actions.errors import ChangedError, GoneError
from sevenhop.actions.standing import Standing
from sevenhop.core.remediation.action import EvictPod


async def apply(writer: Writer, action: EvictPod) -> str:
    """
    Evict it; one that is gone, going, or made anew under its name, is done.

    Raises:
        RefusedError: A PodDisruptionBudget keeps it.
        ActError: See `Writer`.
    """
    stands, words = await look(writer, action)
    if stands is Standing.AFTER:
        return words
    try:
        await writer.evict(action.pod)
    except GoneError:
        return f"{action.pod} is gone already"
    except ChangedError:
        # A conflict is either another incarnation, which is what was wanted, or something to say.
        stands, words = await look(writer, action)
        if stands is Standing.AFTER:
            return words
        raise
    return f"{action.pod} evicted; its owner makes it again"


async def look(writer: Writer, action: EvictPod) -> tuple[Standing, str]:
    """Whether that incarnation is gone, or going."""
    try:
        live = await writer.read(action.pod)
    except GoneError:
        return Standing.AFTER, f"{action.pod} is gone already"
    if live["metadata"].get("deletionTimestamp"):
        return Standing.AFTER, f"{action.pod} is going already"
    return Standing.BEFORE, f"{action.pod} is still there"
