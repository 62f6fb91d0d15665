"""The four kinds of patch."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from sevenhop.simulation.patches import PatchError, json_patch, merge_patch, strategic_patch


@pytest.mark.parametrize(
    ("target", "patch", "expected"),
    [
        pytest.param({"a": "b"}, {"a": "c"}, {"a": "c"}, id="replace"),
        pytest.param({"a": "b"}, {"b": "c"}, {"a": "b", "b": "c"}, id="add"),
        pytest.param({"a": "b", "b": "c"}, {"a": None}, {"b": "c"}, id="null removes"),
        pytest.param({"a": ["b"]}, {"a": ["c"]}, {"a": ["c"]}, id="lists are replaced"),
        pytest.param({"a": {"b": "c"}}, {"a": {"b": "d", "c": None}}, {"a": {"b": "d"}}, id="nested"),
        pytest.param({}, {"a": {"bb": {"ccc": None}}}, {"a": {"bb": {}}}, id="null in something new"),
    ],
)
def test_merge_patch(target: Any, patch: Any, expected: Any) -> None:
    """As the examples of RFC 7386."""
    before = copy.deepcopy(target)

    assert merge_patch(target, patch) == expected
    assert target == before


@pytest.mark.parametrize(
    ("operations", "expected"),
    [
        pytest.param([{"op": "add", "path": "/b", "value": 1}], {"a": [1, 2], "b": 1}, id="add"),
        pytest.param([{"op": "add", "path": "/a/1", "value": 9}], {"a": [1, 9, 2]}, id="insert"),
        pytest.param([{"op": "add", "path": "/a/-", "value": 9}], {"a": [1, 2, 9]}, id="append"),
        pytest.param([{"op": "remove", "path": "/a/0"}], {"a": [2]}, id="remove"),
        pytest.param([{"op": "replace", "path": "/a/0", "value": 7}], {"a": [7, 2]}, id="replace"),
        pytest.param([{"op": "test", "path": "/a/0", "value": 1}], {"a": [1, 2]}, id="test"),
        pytest.param([{"op": "move", "from": "/a/0", "path": "/b"}], {"a": [2], "b": 1}, id="move"),
        pytest.param([{"op": "copy", "from": "/a", "path": "/b"}], {"a": [1, 2], "b": [1, 2]}, id="copy"),
        pytest.param([{"op": "add", "path": "/x~1y~0", "value": 1}], {"a": [1, 2], "x/y~": 1}, id="escapes"),
    ],
)
def test_json_patch(operations: Any, expected: Any) -> None:
    """As RFC 6902, without changing the target."""
    target = {"a": [1, 2]}

    assert json_patch(target, operations) == expected
    assert target == {"a": [1, 2]}


@pytest.mark.parametrize(
    "operations",
    [
        pytest.param([{"op": "test", "path": "/a/0", "value": 2}], id="a test that fails"),
        pytest.param([{"op": "remove", "path": "/b"}], id="nothing to remove"),
        pytest.param([{"op": "replace", "path": "/a/5", "value": 1}], id="no such index"),
        pytest.param([{"op": "add", "path": "/b/c", "value": 1}], id="no such parent"),
        pytest.param([{"op": "dance", "path": "/a"}], id="no such operation"),
        pytest.param([{"op": "add", "path": "a", "value": 1}], id="not a path"),
        pytest.param({"op": "add"}, id="not a list"),
    ],
)
def test_json_patches_that_do_not_apply(operations: Any) -> None:
    """A patch applies as a whole or not at all."""
    with pytest.raises(PatchError):
        json_patch({"a": [1, 2]}, operations)


@pytest.mark.parametrize(
    ("patch", "expected"),
    [
        pytest.param({"containers": [{"name": "b", "image": "2"}]}, ["a:1", "b:2"], id="one by its key"),
        pytest.param({"containers": [{"name": "c", "image": "3"}]}, ["a:1", "b:1", "c:3"], id="a new one"),
        pytest.param({"containers": [{"name": "a", "$patch": "delete"}]}, ["b:1"], id="delete"),
        pytest.param({"containers": [{"$patch": "replace"}, {"name": "z", "image": "9"}]}, ["z:9"], id="replace"),
    ],
)
def test_strategic_patch(patch: Any, expected: list[str]) -> None:
    """Lists with a key are merged by it."""
    target = {"containers": [{"name": "a", "image": "1"}, {"name": "b", "image": "1"}]}

    assert [f"{c['name']}:{c['image']}" for c in strategic_patch(target, patch)["containers"]] == expected
