"""Which root is above each object, and what is below each root?"""

from __future__ import annotations

from collections.abc import Iterator

from sevenhop.core.inventory.framework import Member, RootRef
from sevenhop.core.inventory.objects import Key, Objects
from sevenhop.core.inventory.templates import LWS, is_leader
from sevenhop.core.objects.base import Object
from sevenhop.core.objects.pod import PodTemplate

ObjectKey = tuple[str, Key]
_NO_KEYS: frozenset[Key] = frozenset()


class Roots:
    """
    Both ways in step; `Rooting` finds out, this remembers.

    Attributes:
        of: Object to its root.
    """

    def __init__(self, objects: Objects) -> None:
        self._objects = objects
        self.of: dict[ObjectKey, RootRef] = {}
        self._members: dict[RootRef, set[ObjectKey]] = {}
        self._pods: dict[RootRef, set[Key]] = {}
        self._in_namespace: dict[str, set[RootRef]] = {}

    def __len__(self) -> int:
        """Of everything remembered: 0 once nothing is below any root."""
        return sum(len(index) for index in (self.of, self._members, self._pods, self._in_namespace))

    def move(self, kind: str, key: Key, to: RootRef | None) -> None:
        """This object is below that root now; None for no root at all."""
        before = self.of.pop((kind, key), None)
        if before is not None:
            if kind == "Pod":
                self._pods.get(before, set()).discard(key)
            else:
                self._members.get(before, set()).discard((kind, key))
        if to is None:
            return
        self.of[(kind, key)] = to
        if kind == "Pod":
            self._pods.setdefault(to, set()).add(key)
        else:
            self._members.setdefault(to, set()).add((kind, key))
        self._in_namespace.setdefault(to.namespace, set()).add(to)

    def forget(self, root: RootRef) -> None:
        """Nothing is below it any more."""
        here = self._in_namespace.get(root.namespace, set())
        here.discard(root)
        if not here:
            self._in_namespace.pop(root.namespace, None)
        self._pods.pop(root, None)
        self._members.pop(root, None)

    def exists(self, root: RootRef) -> bool:
        """Not whether an object of this name is there: that one may belong to another root."""
        return bool(self._pods.get(root) or self._members.get(root))

    def object(self, root: RootRef) -> Object | None:
        """The root itself, if it is visible and not rather part of another root."""
        obj = self._objects.get(root.kind, root.namespace, root.name)
        return obj if self.of.get((root.kind, root.key)) == root else None

    def is_visible(self, root: RootRef) -> bool:
        return self.object(root) is not None

    def in_namespace(self, namespace: str) -> set[RootRef]:
        """Do not change the set."""
        return self._in_namespace.get(namespace, set())

    def pods(self, root: RootRef) -> set[Key] | frozenset[Key]:
        """Pods below it; do not change the set."""
        return self._pods.get(root, _NO_KEYS)

    def members(self, root: RootRef) -> Iterator[Member]:
        """What is below it beside pods, in order."""
        for kind, key in sorted(self._members.get(root, ())):
            obj = self._objects.get(kind, *key)
            if obj is not None and (kind, key) != (root.kind, root.key):
                yield Member(kind, obj)

    def template_from_pods(self, root: RootRef) -> PodTemplate | None:
        """What its pods are made from, told from one of them; None where there is none."""
        pods = self._objects.pods()
        key = min((k for k in self._pods.get(root, ()) if k in pods), default=None)
        if key is None:
            return None
        if root.kind == LWS:
            leaders = [k for k in self._pods[root] if is_leader(pods[k])]
            key = min(leaders, default=key)
        return PodTemplate(metadata=pods[key].metadata, spec=pods[key].spec)
