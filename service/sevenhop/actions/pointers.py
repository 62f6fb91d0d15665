"""RFC 6901 pointers and RFC 6902 patches on plain data; arguments are never changed."""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from typing import Any

from sevenhop.core.remediation.action import Edit, Test

Data = dict[str, Any]
Operation = dict[str, Any]


def escape(key: str) -> str:
    """
    >>> escape("sevenhop.dev/borrowed")
    'sevenhop.dev~1borrowed'
    """
    return key.replace("~", "~0").replace("/", "~1")


def steps(pointer: str) -> list[str]:
    """
    >>> steps("/metadata/annotations/sevenhop.dev~1borrowed")
    ['metadata', 'annotations', 'sevenhop.dev/borrowed']
    """
    return [step.replace("~1", "/").replace("~0", "~") for step in pointer.split("/")[1:]]


def value_at(data: Any, pointer: str) -> Any:
    """What stands there; None if nothing does."""
    return _follow(data, steps(pointer))


def _follow(data: Any, path: Sequence[str]) -> Any:
    for step in path:
        if isinstance(data, Mapping):
            data = data.get(step)
        elif isinstance(data, list) and step.isdecimal() and int(step) < len(data):
            data = data[int(step)]
        else:
            return None
    return data


def operations(live: Data, edits: Sequence[Edit], tests: Sequence[Test] = (), uid: str = "") -> list[Operation]:
    """
    One JSON patch that makes all edits or none: it tests the uid, the tests and every value that is observed now.

    What is missing on the way to a field is made.  That a field is missing is tested with ``null``, which the API
    server's library takes for it (gopkg.in/evanphx/json-patch.v4, `Patch.test`), although RFC 6902 does not say so.
    An edit that changes nothing makes no operation.
    """
    asserted: dict[str, Any] = {"/metadata/uid": uid} if uid else {}
    asserted |= {test.pointer: test.value for test in tests}
    made: list[Operation] = []
    work = copy.deepcopy(live)
    # Removals last and backwards: what is removed from a list moves what stands after it.
    edits = [e for e in edits if e.after is not None] + [e for e in reversed(edits) if e.after is None]
    for edit in edits:
        path, now = steps(edit.pointer), value_at(live, edit.pointer)
        if now == edit.after:
            continue
        if now is not None:
            asserted.setdefault(edit.pointer, now)
        else:
            _assert_absent(live, path, asserted)
        if edit.after is None:
            made.append({"op": "remove", "path": edit.pointer})
            _remove(work, path)
        else:
            made.append(_put(work, path, edit.after))
    if not made:
        return []
    return [*({"op": "test", "path": p, "value": v} for p, v in asserted.items()), *made]


def _assert_absent(live: Data, path: list[str], asserted: dict[str, Any]) -> None:
    depth = _depth(live, path)
    parent = _follow(live, path[:depth])
    if isinstance(parent, list):
        asserted.setdefault(_pointer(path[:depth]), parent)  # whole: an index beyond the end cannot be tested
    else:
        asserted.setdefault(_pointer(path[: depth + 1]), None)


def _depth(data: Any, path: list[str]) -> int:
    """How many steps of the way exist, as something that can hold more."""
    for depth, step in enumerate(path):
        data = _follow(data, [step])
        if not isinstance(data, Mapping | list):
            return depth
    return len(path)


def _put(work: Data, path: list[str], value: Any) -> Operation:
    """The operation that puts a value there, done on `work` as well."""
    depth = _depth(work, path[:-1])
    parent, rest = _follow(work, path[:depth]), path[depth:]
    exists = len(rest) == 1 and _follow(parent, rest) is not None
    for step in reversed(rest[1:]):
        value = [value] if step == "0" else {step: value}
    if isinstance(parent, list) and not exists:
        parent.insert(int(rest[0]), value)
    elif isinstance(parent, list):
        parent[int(rest[0])] = value
    else:
        parent[rest[0]] = value
    return {"op": "replace" if exists else "add", "path": _pointer(path[: depth + 1]), "value": copy.deepcopy(value)}


def _remove(work: Data, path: list[str]) -> None:
    parent = _follow(work, path[:-1])
    if isinstance(parent, list):
        del parent[int(path[-1])]
    else:
        del parent[path[-1]]


def _pointer(path: Sequence[str]) -> str:
    return "".join(f"/{escape(step)}" for step in path)


def relocated(live: Data, edits: Sequence[Edit], tests: Sequence[Test]) -> tuple[tuple[Edit, ...], tuple[Test, ...]]:
    """
    Edits and tests where their list's entry stands now: entries are agreed on by name, and reached by index.

    One whose entry is not found, or found twice, stays as it is, and its test fails.
    """
    for test in tests:
        if value_at(live, test.pointer) == test.value:
            continue
        path = steps(test.pointer)
        at = next((i for i in range(len(path) - 1, -1, -1) if isinstance(_follow(live, path[:i]), list)), None)
        if at is None:
            continue
        entries, rest = _follow(live, path[:at]), path[at + 1 :]
        found = [i for i, entry in enumerate(entries) if _follow(entry, rest) == test.value]
        if len(found) == 1:
            old, new = _pointer(path[: at + 1]) + "/", _pointer([*path[:at], str(found[0])]) + "/"
            edits = [Edit(_moved(e.pointer, old, new), e.before, e.after) for e in edits]
            tests = [Test(_moved(t.pointer, old, new), t.value) for t in tests]
    return tuple(edits), tuple(tests)


def _moved(pointer: str, old: str, new: str) -> str:
    return new + pointer.removeprefix(old) if pointer.startswith(old) else pointer
