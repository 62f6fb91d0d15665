"""What one cluster's API server last told us, by kind, with the indexes that diagnosis needs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import cast

from sevenhop.core.events import SyncState
from sevenhop.core.objects.base import Custom, Object
from sevenhop.core.objects.cluster import Node
from sevenhop.core.objects.kinds import KINDS
from sevenhop.core.objects.pod import Pod

Key = tuple[str, str]
"""(namespace, name)"""

_NOTHING: Mapping[Key, Object] = {}


class Objects:
    """
    Objects by kind and key.

    Mutable, owned by one caller; readers see the newest state.  Used live and for a file of objects alike.
    `states` says how much of each kind is known; a kind that is not `SYNCED` or `ABSENT` answers what it has.
    """

    def __init__(self) -> None:
        self._by_kind: dict[str, dict[Key, Object]] = {}
        # Keys, not objects: most updates change no index, and then touch none.
        self._by_uid: dict[str, tuple[str, Key]] = {}
        self._pods_on: dict[str, dict[Key, None]] = {}
        self._children: dict[str, dict[tuple[str, Key], None]] = {}
        self.states: dict[str, SyncState] = dict.fromkeys(KINDS, SyncState.NOT_SYNCED)
        self.details: dict[str, str] = {}

    def put(self, kind: str, obj: Object) -> Object | None:
        """Keep `obj`; returns what stood in its place."""
        key = obj.metadata.key
        of_kind = self._by_kind.get(kind)
        if of_kind is None:
            of_kind = self._by_kind[kind] = {}
        before = of_kind.get(key)
        of_kind[key] = obj
        if before is None or not _is_indexed_alike(before, obj):
            if before is not None:
                self._unindex(kind, key, before)
            self._index(kind, key, obj)
        return before

    def drop(self, kind: str, key: Key) -> Object | None:
        """Forget an object; returns it, or None if it was not known."""
        before = self._by_kind.get(kind, {}).pop(key, None)
        if before is not None:
            self._unindex(kind, key, before)
        return before

    def get(self, kind: str, namespace: str, name: str) -> Object | None:
        return self._by_kind.get(kind, _NOTHING).get((namespace, name))

    def at(self, kind: str, key: Key) -> Object | None:
        return self._by_kind.get(kind, _NOTHING).get(key)

    def of(self, kind: str) -> Mapping[Key, Object]:
        """All objects of a kind; do not keep the mapping over a `put`."""
        return self._by_kind.get(kind, _NOTHING)

    def pods(self) -> Mapping[Key, Pod]:
        return cast("Mapping[Key, Pod]", self.of("Pod"))

    def nodes(self) -> Mapping[Key, Node]:
        return cast("Mapping[Key, Node]", self.of("Node"))

    def custom(self, kind: str) -> Mapping[Key, Custom]:
        return cast("Mapping[Key, Custom]", self.of(kind))

    def pods_on(self, node: str) -> Iterable[Pod]:
        """Pods bound to a node, finished and terminating ones too."""
        pods = self.pods()
        return [pods[key] for key in self._pods_on.get(node, ())]

    def by_uid(self, uid: str) -> tuple[str, Object] | None:
        """(kind, object)"""
        found = self._by_uid.get(uid)
        return None if found is None else (found[0], self._by_kind[found[0]][found[1]])

    def children(self, uid: str) -> Iterable[tuple[str, Object]]:
        """(kind, object) of what this uid controls."""
        return [(kind, self._by_kind[kind][key]) for kind, key in self._children.get(uid, ())]

    def is_known(self, kind: str) -> bool:
        """Whether an object of this kind that is not here does not exist."""
        return self.states.get(kind) in (SyncState.SYNCED, SyncState.ABSENT)

    def _index(self, kind: str, key: Key, obj: Object) -> None:
        if obj.metadata.uid:
            self._by_uid[obj.metadata.uid] = (kind, key)
        if isinstance(obj, Pod) and obj.spec.node_name:
            self._pods_on.setdefault(obj.spec.node_name, {})[key] = None
        owner = obj.metadata.controller()
        if owner is not None and owner.uid:
            self._children.setdefault(owner.uid, {})[(kind, key)] = None

    def _unindex(self, kind: str, key: Key, obj: Object) -> None:
        uid = obj.metadata.uid
        if uid and self._by_uid.get(uid) == (kind, key):
            del self._by_uid[uid]
        if isinstance(obj, Pod) and obj.spec.node_name:
            there = self._pods_on.get(obj.spec.node_name, {})
            there.pop(key, None)
            if not there:
                self._pods_on.pop(obj.spec.node_name, None)
        owner = obj.metadata.controller()
        if owner is not None and owner.uid in self._children:
            siblings = self._children[owner.uid]
            siblings.pop((kind, key), None)
            if not siblings:
                del self._children[owner.uid]


def _is_indexed_alike(before: Object, after: Object) -> bool:
    """Whether `after` takes the very places of `before` in every index, as in nearly all updates."""
    a, b = before.metadata, after.metadata
    if a.uid != b.uid or a.owner_references != b.owner_references:
        return False
    return not isinstance(before, Pod) or (isinstance(after, Pod) and before.spec.node_name == after.spec.node_name)
