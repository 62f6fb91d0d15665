"""Plain dictionaries of custom resources, read without trusting their shape: what is not there is empty."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sevenhop.core.inventory.workloads import Model
from sevenhop.core.objects.base import Custom, Meta, Object
from sevenhop.core.words import whole

Table = Mapping[str, Any]


def table(data: Any, *path: str) -> dict[str, Any]:
    """The dictionary under a path of keys; empty where there is none."""
    for step in path:
        data = data.get(step) if isinstance(data, dict) else None
    return data if isinstance(data, dict) else {}


def rows(data: Any, *path: str) -> list[dict[str, Any]]:
    """The dictionaries of the list under a path of keys."""
    *most, last = path
    found = table(data, *most).get(last)
    return [row for row in found if isinstance(row, dict)] if isinstance(found, list) else []


def text(data: Any, *path: str) -> str:
    """The text, or the number as text, under a path of keys; empty where there is none."""
    *most, last = path
    found = table(data, *most).get(last)
    if isinstance(found, str):
        return found
    return str(found) if isinstance(found, int | float) and not isinstance(found, bool) else ""


def number(data: Any, *path: str) -> int | None:
    """The whole number under a path of keys, also where it is written as text; None where there is none."""
    *most, last = path
    found = table(data, *most).get(last)
    if isinstance(found, bool):
        return None
    if isinstance(found, int):
        return found
    if isinstance(found, float) and found.is_integer():
        return int(found)
    return whole(found) if isinstance(found, str) else None


def flag(data: Any, *path: str) -> bool:
    """Whether a switch is on; YAML's ``true`` or the text of it."""
    *most, last = path
    found = table(data, *most).get(last)
    return found is True or (isinstance(found, str) and found.lower() == "true")


def words(data: Any, *path: str) -> list[str]:
    """The texts of the list under a path of keys."""
    *most, last = path
    found = table(data, *most).get(last)
    return [str(word) for word in found] if isinstance(found, list) else []


def spec_of(obj: Object | None) -> dict[str, Any]:
    return obj.spec if isinstance(obj, Custom) else {}


def status_of(obj: Object | None) -> dict[str, Any]:
    return obj.status if isinstance(obj, Custom) else {}


def meta_of(obj: Object | None) -> Meta:
    return obj.metadata if obj is not None else Meta()


def replicas(data: Any, *path: str, default: int = 1) -> int:
    """A replica count; what Kubernetes reads nothing as, where there is none."""
    found = number(data, *path)
    return default if found is None else max(0, found)


def over(model: Model, *, name: str = "", version: str = "", source: str = "") -> Model:
    """A model with what is stated elsewhere put over what it says itself."""
    return Model(name=name or model.name, version=version or model.version, source=source or model.source)


def is_queued(obj: Object | None) -> bool:
    """Kueue holds what it manages by suspending it."""
    meta = meta_of(obj)
    return "kueue.x-k8s.io/queue-name" in meta.labels


def suspended(obj: Object | None, *path: str) -> str:
    """``queued`` or ``suspended`` where the switch under the path is on; empty otherwise."""
    if not flag(spec_of(obj), *path):
        return ""
    return "queued" if is_queued(obj) else "suspended"
