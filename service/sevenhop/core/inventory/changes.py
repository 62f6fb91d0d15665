"""What somebody changed within the last hour: "changed before" is the first line an SRE reads."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Mapping
from datetime import datetime, timedelta
from typing import Any

from sevenhop.core.inventory.capacity import Change
from sevenhop.core.inventory.objects import Key
from sevenhop.core.inventory.products import gpu_resources
from sevenhop.core.objects.base import Custom, Object
from sevenhop.core.objects.cluster import Controller, Node
from sevenhop.core.objects.pod import Container, PodSpec

KEPT_FOR = timedelta(hours=1)
KEPT_MOST = 5_000
"""In a cluster that changes faster, the oldest are forgotten first: bounded by this, not by how busy people are."""

_LONGEST = 120

Found = tuple[str, str, str]
"""(what, before, after), as in `Change`"""


class ChangeLog:
    """Changes of one cluster, the oldest first; idempotent by (object, time, what)."""

    def __init__(self) -> None:
        self._changes: deque[Change] = deque()

    def add(self, change: Change) -> None:
        if change not in self._last_few():
            self._changes.append(change)
        while len(self._changes) > KEPT_MOST:
            self._changes.popleft()

    def forget_before(self, now: datetime) -> None:
        while self._changes and now - self._changes[0].at > KEPT_FOR:
            self._changes.popleft()

    def newest_first(self, now: datetime) -> Iterator[Change]:
        return (change for change in reversed(self._changes) if now - change.at <= KEPT_FOR)

    def __len__(self) -> int:
        return len(self._changes)

    def _last_few(self) -> list[Change]:
        size = len(self._changes)
        return [self._changes[i] for i in range(max(0, size - 8), size)]


def changes_between(before: Object, after: Object) -> list[Found]:
    """
    What a person changed between two versions of one object; what controllers write of themselves is no change.
    """
    if isinstance(after, Node) and isinstance(before, Node):
        return _node_changes(before, after)
    if before.metadata.generation and before.metadata.generation == after.metadata.generation:
        return []  # status only; annotations are not what runs
    if isinstance(after, Controller) and isinstance(before, Controller):
        return _controller_changes(before, after)
    if isinstance(after, Custom) and isinstance(before, Custom) and before.spec != after.spec:
        return list(_custom_changes(before.spec, after.spec))
    return []


def _controller_changes(before: Controller, after: Controller) -> list[Found]:
    found: list[Found] = []
    if before.spec.replicas != after.spec.replicas:
        found.append(("replicas", _text(before.spec.replicas), _text(after.spec.replicas)))
    found.extend(_template_changes(before.spec.template.spec, after.spec.template.spec))
    if not found and before.spec != after.spec:
        found.append(("spec", "", _fields(before.spec, after.spec)))
    return found


def _template_changes(before: PodSpec, after: PodSpec) -> Iterator[Found]:
    old = {container.name: container for container in (*before.init_containers, *before.containers)}
    for container in (*after.init_containers, *after.containers):
        was = old.get(container.name)
        if was is None:
            yield "spec", "", f"container {container.name}"
            continue
        if was.image != container.image:
            yield "image", was.image, container.image
        if (was.command, was.args) != (container.command, container.args):
            yield "args", *_first_difference(_command(was), _command(container))
        if was.resources != container.resources:
            yield "spec", _requests(was), _requests(container)


def _custom_changes(before: Mapping[str, Any], after: Mapping[str, Any]) -> Iterator[Found]:
    # Framework specs differ in everything but how they call these fields.
    for path, old, new in _leaves(before, after, ""):
        last = path.rpartition(".")[2].partition("[")[0].lower()
        if "replicas" in last:
            yield "replicas", f"{path} {_text(old)}", _text(new)
        elif last == "image":
            yield "image", _text(old), _text(new)
        elif last in ("args", "command"):
            yield "args", *_first_difference(_words(old), _words(new))
        else:
            yield "spec", f"{path} {_text(old)}".strip(), _text(new)


def _leaves(before: Any, after: Any, path: str, depth: int = 0) -> Iterator[tuple[str, Any, Any]]:
    if before == after:
        return
    if isinstance(before, dict) and isinstance(after, dict) and depth < 12:
        for key in sorted({*before, *after}, key=str):
            yield from _leaves(before.get(key), after.get(key), f"{path}.{key}" if path else str(key), depth + 1)
    elif (
        isinstance(before, list)
        and isinstance(after, list)
        and len(before) == len(after)
        and not all(isinstance(item, str) for item in (*before, *after))
    ):
        for index, (old, new) in enumerate(zip(before, after, strict=True)):
            yield from _leaves(old, new, f"{path}[{index}]", depth + 1)
    else:
        yield path, before, after


def _node_changes(before: Node, after: Node) -> list[Found]:
    found: list[Found] = []
    if before.spec.unschedulable != after.spec.unschedulable:
        found.append(("cordon", _cordon(before), _cordon(after)))
    old, new = _taints(before), _taints(after)
    if old != new:
        found.append(("taints", " ".join(sorted(old - new)), " ".join(sorted(new - old))))
    if before.metadata.labels != after.metadata.labels:
        keys = sorted(
            key
            for key in {*before.metadata.labels, *after.metadata.labels}
            if before.metadata.labels.get(key) != after.metadata.labels.get(key)
        )
        found.append(("node-labels", _labels(before, keys), _labels(after, keys)))
    was, now = _devices(before), _devices(after)
    if was != now:
        found.append(("allocatable", was, now))
    return found


def _cordon(node: Node) -> str:
    return "cordoned" if node.spec.unschedulable else "schedulable"


def _taints(node: Node) -> set[str]:
    # The cordon's own taint says the same once more.
    return {
        f"{t.key}={t.value}:{t.effect}" if t.value else f"{t.key}:{t.effect}"
        for t in node.spec.taints
        if t.key != "node.kubernetes.io/unschedulable"
    }


def _labels(node: Node, keys: list[str]) -> str:
    return _cut(" ".join(f"{key}={node.metadata.labels[key]}" for key in keys if key in node.metadata.labels))


def _devices(node: Node) -> str:
    try:
        devices = gpu_resources(node.status.allocatable)
    except ValueError:
        return "unreadable"
    return " ".join(f"{name}={amount}" for name, amount in sorted(devices.items())) or "no GPUs"


def _fields(before: Any, after: Any) -> str:
    names = [name for name in before.__struct_fields__ if getattr(before, name) != getattr(after, name)]
    return ", ".join(names)


def _requests(container: Container) -> str:
    asked = {**container.resources.limits, **container.resources.requests}
    return " ".join(f"{name}={amount}" for name, amount in sorted(asked.items()))


def _command(container: Container) -> list[str]:
    return [*container.command, *container.args]


def _words(value: Any) -> list[str]:
    return [str(word) for word in value] if isinstance(value, list) else [_text(value)]


def _first_difference(before: list[str], after: list[str]) -> tuple[str, str]:
    """The words that differ, without what both begin and end with: arguments of engines are long."""
    start = 0
    while start < min(len(before), len(after)) and before[start] == after[start]:
        start += 1
    end = 0
    while end < min(len(before), len(after)) - start and before[-1 - end] == after[-1 - end]:
        end += 1
    # A value says little without the flag before it.
    if start and before[start - 1].startswith("-") and not before[start - 1].count("="):
        start -= 1
    return (
        _cut(" ".join(before[start : len(before) - end])),
        _cut(" ".join(after[start : len(after) - end])),
    )


def _text(value: Any) -> str:
    return "" if value is None else _cut(str(value))


def _cut(text: str) -> str:
    return text if len(text) <= _LONGEST else text[: _LONGEST - 1] + "…"


def changed_object(kind: str, key: Key, found: Found, at: datetime, workload: Key | None, by: str) -> Change:
    """One `Change` from what `changes_between` found."""
    what, before, after = found
    return Change(
        at=at, kind=kind, namespace=key[0], name=key[1], what=what, before=before, after=after, workload=workload, by=by
    )
