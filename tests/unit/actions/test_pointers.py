"""Patches do what their edits say, on any object, and refuse where the object is another one."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from sevenhop.actions.pointers import operations, relocated, value_at
from sevenhop.core.remediation.action import Edit
from sevenhop.core.remediation.action import Test as Holds
from sevenhop.simulation.patches import PatchError, json_patch

KEYS = st.sampled_from(["a", "b/c", "~d", "annotations"])
VALUES = st.integers(0, 9) | st.text("xyz", max_size=3) | st.booleans()
DOCUMENTS = st.dictionaries(
    KEYS, st.recursive(VALUES, lambda inner: st.dictionaries(KEYS, inner, max_size=3), max_leaves=6), max_size=3
)


@st.composite
def edited(draw: st.DrawFn) -> tuple[dict[str, Any], list[Edit]]:
    """An object and edits of places that exist, and of places that do not; none inside another."""
    data = draw(DOCUMENTS)
    edits: dict[str, Edit] = {}
    for path in draw(st.lists(st.lists(KEYS, min_size=1, max_size=4), max_size=4)):
        pointer = "".join("/" + key.replace("~", "~0").replace("/", "~1") for key in path)
        now = value_at(data, pointer)
        blocked = any(
            not isinstance(value_at(data, pointer[:end]), dict | None)
            for end in range(1, len(pointer))
            if pointer[end] == "/"
        )
        nested = any(pointer.startswith(p + "/") or p.startswith(pointer + "/") for p in edits)
        if not blocked and not nested and not isinstance(now, dict):
            edits[pointer] = Edit(pointer, now, draw(VALUES | st.none()))
    return data, list(edits.values())


@given(edited())
def test_each_field_becomes_what_its_edit_says(case: tuple[dict[str, Any], list[Edit]]) -> None:
    """All of them in one patch, on the way making what was missing, and nothing else."""
    data, edits = case
    before = copy.deepcopy(data)
    after = json_patch(data, operations(data, edits))

    assert data == before
    for edit in edits:
        assert value_at(after, edit.pointer) == edit.after
    back = [Edit(e.pointer, e.after, e.before) for e in edits]
    assert _without_empty(json_patch(after, operations(after, back))) == _without_empty(before)


@given(edited(), VALUES)
def test_an_object_that_moved_is_refused(case: tuple[dict[str, Any], list[Edit]], other: int | str) -> None:
    """Whichever of the fields is another one when the patch arrives."""
    data, edits = case
    patch = operations(data, edits)
    assume(patch)
    for edit in edits:
        if edit.before == edit.after or other == edit.before:
            continue
        moved = json_patch(data, operations(data, [Edit(edit.pointer, edit.before, other)]))
        with pytest.raises(PatchError):
            json_patch(moved, patch)


def _without_empty(value: Any) -> Any:
    if not isinstance(value, dict):
        return value
    kept = {key: _without_empty(inner) for key, inner in value.items()}
    return {key: inner for key, inner in kept.items() if inner != {}}


@pytest.mark.parametrize(
    ("before", "after"),
    [
        pytest.param([], ["x", "y"], id="made"),
        pytest.param(["old"], ["x", "y"], id="changed and made"),
        pytest.param(["a", "b", "c"], ["a"], id="cut"),
        pytest.param(["a"], [], id="emptied"),
    ],
)
def test_lists_are_edited_entry_by_entry(before: list[str], after: list[str]) -> None:
    """As `workersToDelete` is; an order that came in between is seen."""
    data = {"strategy": {"names": before}}
    padded = [*zip(before, after, strict=False)]
    longest = max(len(before), len(after))
    pairs = padded + [
        (before[i] if i < len(before) else None, after[i] if i < len(after) else None)
        for i in range(len(padded), longest)
    ]
    edits = [Edit(f"/strategy/names/{i}", was, now) for i, (was, now) in enumerate(pairs)]
    patch = operations(data, edits)

    assert json_patch(data, patch) == {"strategy": {"names": after}}
    with pytest.raises(PatchError):
        json_patch({"strategy": {"names": [*before, "theirs"] if len(after) > len(before) else ["theirs"]}}, patch)


@pytest.mark.parametrize(
    ("names", "found"),
    [
        pytest.param(["cpu", "gpu"], "/groups/1/replicas", id="moved"),
        pytest.param(["gpu", "cpu"], "/groups/0/replicas", id="where it was"),
        pytest.param(["cpu"], "/groups/0/replicas", id="gone: its test fails"),
        pytest.param(["cpu", "gpu", "gpu"], "/groups/0/replicas", id="twice: its test fails"),
    ],
)
def test_an_entry_is_followed_by_its_name(names: list[str], found: str) -> None:
    """Only where the name says which one it is."""
    data = {"groups": [{"name": name, "replicas": 1} for name in names]}
    edits, tests = relocated(data, [Edit("/groups/0/replicas", 1, 0)], [Holds("/groups/0/name", "gpu")])

    assert edits[0].pointer == found
    assert tests[0].pointer == found.replace("replicas", "name")
