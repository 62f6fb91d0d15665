"""The four ways to change an object of the Kubernetes API, on plain data; arguments are never changed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

_MERGE_KEYS = {
    "containers": ("name",),
    "initContainers": ("name",),
    "env": ("name",),
    "volumes": ("name",),
    "volumeMounts": ("mountPath",),
    "ports": ("containerPort", "port"),
    "conditions": ("type",),
    "taints": ("key",),
    "ownerReferences": ("uid",),
    "schedulingGates": ("name",),
    "topologySpreadConstraints": ("topologyKey",),
    "imagePullSecrets": ("name",),
    "resourceClaims": ("name",),
}
"""List to the keys of its elements, as the ``patchMergeKey`` tags of kubernetes/api say; other lists are replaced."""


class PatchError(Exception):
    """The patch does not apply to this object."""


def merge_patch(target: Any, patch: Any) -> Any:
    """JSON merge patch, RFC 7386: null removes, lists are replaced."""
    if not isinstance(patch, Mapping):
        return patch
    result = dict(target) if isinstance(target, Mapping) else {}
    for key, value in patch.items():
        if value is None:
            result.pop(key, None)
        else:
            result[key] = merge_patch(result.get(key), value)
    return result


def strategic_patch(target: Any, patch: Any, field: str = "") -> Any:
    """
    Merge patch in which the lists of `_MERGE_KEYS` are merged by key, with ``$patch: delete`` and ``replace``.

    Directives for primitive lists and for order (``$deleteFromPrimitiveList``, ``$setElementOrder``) are dropped.
    """
    if isinstance(patch, Mapping):
        if patch.get("$patch") == "replace":
            return {k: v for k, v in patch.items() if k != "$patch"}
        result = dict(target) if isinstance(target, Mapping) else {}
        for key, value in patch.items():
            if key.startswith("$"):
                continue
            if value is None:
                result.pop(key, None)
            else:
                result[key] = strategic_patch(result.get(key), value, key)
        return result
    if isinstance(patch, list) and field in _MERGE_KEYS and all(isinstance(e, Mapping) for e in patch):
        return _merge_list(target if isinstance(target, list) else [], patch, _MERGE_KEYS[field])
    return patch


def _merge_list(target: list[Any], patch: list[Any], keys: tuple[str, ...]) -> list[Any]:
    result = list(target)
    for element in patch:
        if element.get("$patch") == "replace":
            return [e for e in patch if "$patch" not in e]
        key = next((k for k in keys if k in element), keys[0])
        at = next((i for i, e in enumerate(result) if e.get(key) == element.get(key)), None)
        if element.get("$patch") == "delete":
            if at is not None:
                del result[at]
        elif at is None:
            result.append(element)
        else:
            result[at] = strategic_patch(result[at], element)
    return result


def json_patch(target: Any, patch: Any) -> Any:
    """
    JSON patch, RFC 6902.

    Raises:
        PatchError: A test that fails, a path that is not there, or an operation that does not exist.
    """
    if not isinstance(patch, list):
        raise PatchError("expected a list of operations")
    for operation in patch:
        if not isinstance(operation, Mapping) or not isinstance(operation.get("path"), str):
            raise PatchError("expected operations with op and path")
        target = _operate(target, operation)
    return target


def _operate(target: Any, operation: Mapping[str, Any]) -> Any:
    name, path = operation.get("op"), _steps(operation["path"])
    if name == "add":
        return _put(target, path, operation.get("value"), must_exist=False)
    if name == "replace":
        _find(target, path)
        return _put(target, path, operation.get("value"), must_exist=True)
    if name == "remove":
        _find(target, path)
        return _remove(target, path)
    if name == "test":
        if operation.get("value") is None and _is_absent(target, path):
            return target  # not in the RFC, but in the API server's library: gopkg.in/evanphx/json-patch.v4
        if _find(target, path) != operation.get("value"):
            raise PatchError(f"testing value {operation['path']} failed")
        return target
    if name in ("copy", "move"):
        source = _steps(str(operation.get("from", "")))
        value = _find(target, source)
        if name == "move":
            target = _remove(target, source)
        return _put(target, path, value, must_exist=False)
    raise PatchError(f"unknown operation {name!r}")


def _steps(pointer: str) -> list[str]:
    if pointer and not pointer.startswith("/"):
        raise PatchError(f"expected a path that begins with /, got {pointer!r}")
    return [step.replace("~1", "/").replace("~0", "~") for step in pointer.split("/")[1:]]


def _find(target: Any, path: list[str]) -> Any:
    for step in path:
        if isinstance(target, Mapping) and step in target:
            target = target[step]
        elif isinstance(target, list) and step.isdecimal() and int(step) < len(target):
            target = target[int(step)]
        else:
            raise PatchError(f"no such path: /{'/'.join(path)}")
    return target


def _is_absent(target: Any, path: list[str]) -> bool:
    parent = _find(target, path[:-1])
    return bool(path) and isinstance(parent, Mapping) and path[-1] not in parent


def _put(target: Any, path: list[str], value: Any, *, must_exist: bool) -> Any:
    if not path:
        return value
    step, rest = path[0], path[1:]
    if isinstance(target, Mapping):
        if rest and step not in target:
            raise PatchError(f"no such path: {step}")
        return {**target, step: _put(target.get(step), rest, value, must_exist=must_exist)}
    if isinstance(target, list):
        at = len(target) if step == "-" else int(step) if step.isdecimal() else -1
        if not 0 <= at <= len(target) - (1 if rest or must_exist else 0):
            raise PatchError(f"no such index: {step}")
        if rest or must_exist:
            return [*target[:at], _put(target[at], rest, value, must_exist=must_exist), *target[at + 1 :]]
        return [*target[:at], value, *target[at:]]
    raise PatchError(f"no such path: {step}")


def _remove(target: Any, path: list[str]) -> Any:
    if not path:
        return None
    step, rest = path[0], path[1:]
    if isinstance(target, list):
        at = int(step)
        middle = [_remove(target[at], rest)] if rest else []
        return [*target[:at], *middle, *target[at + 1 :]]
    if rest:
        return {**target, step: _remove(target[step], rest)}
    return {key: value for key, value in target.items() if key != step}
