"""How an object stands towards a change: as before it, as after it, or otherwise."""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum

from sevenhop.actions.errors import ChangedError
from sevenhop.actions.pointers import Data, value_at
from sevenhop.actions.words import changed
from sevenhop.core.remediation.action import Edit, Test, Value


class Standing(StrEnum):
    BEFORE = "before"
    AFTER = "after"
    OTHER = "other"  # somebody else changed it
    HALF = "half"  # some of our requests were carried out, and others not


def deciding(edits: Sequence[Edit]) -> list[Edit]:
    """
    The edits that say how many; all of them where none does.

    Others only go with these: an autoscaler clears `workersToDelete` once the pods are gone.
    """
    return [edit for edit in edits if _is_count(edit.before) or _is_count(edit.after)] or list(edits)


def _is_count(value: Value) -> bool:
    if isinstance(value, str):
        return value.isdecimal()
    return isinstance(value, int) and not isinstance(value, bool)


def standing(live: Data, edits: Sequence[Edit]) -> Standing:
    """
    Of the counts; where the two look the same, as after.
    """
    edits = deciding(edits)
    if all(value_at(live, edit.pointer) == edit.after for edit in edits):
        return Standing.AFTER
    if all(value_at(live, edit.pointer) == edit.before for edit in edits):
        return Standing.BEFORE
    return Standing.OTHER


def expect_before(live: Data, edits: Sequence[Edit], tests: Sequence[Test]) -> None:
    """
    Raises:
        ChangedError: Something is other than what was agreed on; says what was expected and what is there.
    """
    for test in tests:
        if value_at(live, test.pointer) != test.value:
            raise ChangedError(changed(test.pointer, test.value, value_at(live, test.pointer)))
    for edit in edits:
        if value_at(live, edit.pointer) != edit.before:
            raise ChangedError(changed(edit.pointer, edit.before, value_at(live, edit.pointer)))


def reversed_edits(live: Data, edits: Sequence[Edit]) -> list[Edit]:
    """The way back, for what still holds what we put there; nothing if somebody else has set a count since."""
    if any(value_at(live, edit.pointer) not in (edit.before, edit.after) for edit in deciding(edits)):
        return []
    return [
        Edit(edit.pointer, edit.after, edit.before)
        for edit in edits
        if value_at(live, edit.pointer) == edit.after and edit.after != edit.before
    ]
