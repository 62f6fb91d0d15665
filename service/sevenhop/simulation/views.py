"""How does an object look through a version or a subresource, and what does a write through one change?"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from sevenhop.simulation.selectors import Selection
from sevenhop.simulation.store import Change, Data, StoreError
from sevenhop.simulation.target import Target


def view(data: Data, target: Target) -> Data:
    """An object, or its scale, in the version asked for."""
    if target.subresource != "scale":
        return data if data.get("apiVersion") == target.api_version else {**data, "apiVersion": target.api_version}
    spec, status, meta = data.get("spec") or {}, data.get("status") or {}, data["metadata"]
    kept = ("name", "namespace", "uid", "resourceVersion", "creationTimestamp")
    labels = ((spec.get("selector") or {}) if isinstance(spec.get("selector"), dict) else {}).get("matchLabels") or {}
    return {
        "kind": "Scale",
        "apiVersion": "autoscaling/v1",
        "metadata": {k: meta[k] for k in kept if k in meta},
        "spec": {"replicas": spec.get("replicas", 0)},
        "status": {
            "replicas": status.get("replicas", 0),
            "selector": ",".join(f"{k}={v}" for k, v in sorted(labels.items())),
        },
    }


def written(before: Data, body: Mapping[str, Any], target: Target) -> Data:
    """What a write through a (sub)resource makes of an object: only its part changes."""
    meta = body.get("metadata") or {}
    guards = {k: meta[k] for k in ("uid", "resourceVersion") if meta.get(k)}
    if target.subresource == "scale":
        replicas = (body.get("spec") or {}).get("replicas", 0)
        if not isinstance(replicas, int) or replicas < 0:
            raise StoreError(422, "Invalid", "spec.replicas: Invalid value: must be greater than or equal to 0")
        spec = {**(before.get("spec") or {}), "replicas": replicas}
        return {**before, "spec": spec, "metadata": {**before["metadata"], **guards}}
    if target.subresource == "status":
        return {**before, "status": body.get("status") or {}, "metadata": {**before["metadata"], **guards}}
    kept = {"status": before["status"]} if "status" in before else {}
    fixed = ("name", "namespace", "creationTimestamp", "generation", "deletionTimestamp", "deletionGracePeriodSeconds")
    merged = {**meta, **{k: before["metadata"][k] for k in fixed if k in before["metadata"]}}
    return {**{k: v for k, v in body.items() if k != "status"}, **kept, "metadata": merged}


def managed(data: Data, manager: str, operation: str) -> Data:
    """The object with the entry of one field manager, which names no fields."""
    meta = data["metadata"]
    others = [m for m in meta.get("managedFields") or () if (m["manager"], m["operation"]) != (manager, operation)]
    entry = {"manager": manager, "operation": operation, "apiVersion": data.get("apiVersion", "")}
    return {**data, "metadata": {**meta, "managedFields": [*others, entry]}}


def placed(data: Data, target: Target) -> Data:
    """
    The object with the namespace and name of the path.

    Raises:
        StoreError: 400, it names others.
    """
    meta = dict(data.get("metadata") or {})
    if (
        target.the_kind.namespaced
        and target.namespace
        and meta.setdefault("namespace", target.namespace) != target.namespace
    ):
        raise StoreError(400, "BadRequest", "the namespace of the object does not match the namespace of the request")
    if target.name and meta.setdefault("name", target.name) != target.name:
        raise StoreError(400, "BadRequest", "the name of the object does not match the name on the URL")
    return {**data, "metadata": meta}


def encode(data: Data, target: Target) -> bytes:
    """The JSON of `view`."""
    return msgspec.json.encode(view(data, target))


def line(change: str, data: Data, target: Target) -> bytes:
    """One line of a watch."""
    return b'{"type":"' + change.encode() + b'","object":' + encode(data, target) + b"}\n"


def lines_of(changes: list[Change], selection: Selection, target: Target) -> list[bytes]:
    """Changes as this watch sees them: an object that no longer matches is deleted, one that begins to is added."""
    lines = []
    for change in changes:
        if target.namespace and change.data["metadata"].get("namespace", "") != target.namespace:
            continue
        was = change.before is not None and selection.selects(change.before)
        is_in = change.type != "DELETED" and selection.selects(change.data)
        if is_in:
            lines.append(line("MODIFIED" if was else "ADDED", change.data, target))
        elif was:
            lines.append(line("DELETED", change.data, target))
    return lines


def bookmark(revision: int, target: Target) -> bytes:
    """The line that says how far a watch is where nothing of its kind changed."""
    data = {
        "kind": target.the_kind.kind,
        "apiVersion": target.api_version,
        "metadata": {"resourceVersion": str(revision), "creationTimestamp": None},
    }
    return b'{"type":"BOOKMARK","object":' + msgspec.json.encode(data) + b"}\n"
