"""The store's objects as the core's structs, kept current: what a scheduler's informers would hold."""

from __future__ import annotations

from sevenhop.core.events import SyncState
from sevenhop.core.inventory.objects import Objects
from sevenhop.core.objects.decode import UndecodableError, convert
from sevenhop.core.objects.kinds import KINDS
from sevenhop.core.placement.cluster import Cluster
from sevenhop.simulation.store import Change, Store, StoreError


class Mirror:
    """
    Attributes:
        objects: Current after `sync`.
        cluster: The same for placement, current after `sync`.
    """

    def __init__(self, store: Store) -> None:
        self._store = store
        self._seen: dict[str, int] = {}
        self._dirty = {kind.name for kind in store.kinds()}
        self.objects = Objects()
        self.cluster = Cluster(self.objects)
        store.listeners.append(self._dirty.add)
        self._note_states()

    def sync(self) -> bool:
        """Take over what changed; whether anything did."""
        dirty, changed = sorted(self._dirty), False
        self._dirty.clear()
        if dirty:
            self._note_states()
        for kind in dirty:
            for change in self._changes(kind):
                self._take(kind, change)
                changed = True
        return changed

    def _note_states(self) -> None:
        """What is not here does not exist: a scheduler starts only once its informers are synced."""
        for kind in self.objects.states:
            self.objects.states[kind] = SyncState.SYNCED if self._store.serves(kind) else SyncState.ABSENT

    def _changes(self, kind: str) -> list[Change]:
        seen = self._seen.get(kind, 0)
        self._seen[kind] = self._store.revision
        try:
            return self._store.changes_since(kind, seen)
        except StoreError as error:
            known = list(self.objects.of(kind))
            for key in known:
                self.objects.drop(kind, key)
                self.cluster.update(kind, key)
            if error.status == 404:
                return []
            # Its history is gone, as after many changes at once: begin with what is there.
            return [Change(seen, "ADDED", data, None) for data in self._store.all(kind)]

    def _take(self, kind: str, change: Change) -> None:
        meta = change.data["metadata"]
        key = (meta.get("namespace", ""), meta["name"])
        if change.type == "DELETED":
            self.objects.drop(kind, key)
        else:
            try:
                self.objects.put(kind, convert(KINDS[kind], change.data))
            except UndecodableError:
                self.objects.drop(kind, key)  # a real scheduler's informer would not hold it either
        self.cluster.update(kind, key)
