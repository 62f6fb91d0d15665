"""What the simulated API server knows: objects, versions, and the changes that watches are served from."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Mapping
from datetime import datetime, timedelta
from typing import Any

import msgspec

from sevenhop.core.objects.kinds import KINDS, Kind

Data = dict[str, Any]
Key = tuple[str, str]
"""(namespace, name)"""

_NAME_LETTERS = "bcdfghjklmnpqrstvwxz2456789"
"""Letters of generated names, those of k8s.io/apimachinery/pkg/util/rand."""


class StoreError(Exception):
    """
    A refusal in the API's words.

    Attributes:
        status: HTTP status.
        reason: As meta/v1 StatusReason: ``NotFound``, ``Conflict``, ``AlreadyExists``, ``Expired``, ``Invalid``.
        causes: Messages of ``details.causes``.
    """

    def __init__(self, status: int, reason: str, message: str, causes: tuple[str, ...] = ()) -> None:
        super().__init__(message)
        self.causes = causes
        self.status = status
        self.reason = reason


class Change(msgspec.Struct, frozen=True):
    """One entry of a kind's watch cache; `before` is what stood there, None for an addition."""

    revision: int
    type: str
    data: Data
    before: Data | None


class _Table:
    """Objects and recent changes of one kind."""

    def __init__(self, kind: Kind) -> None:
        self.kind = kind
        self.objects: dict[Key, Data] = {}
        self.changes: list[Change] = []
        self.forgotten = 0  # the newest revision that is no longer in `changes`


class Store:
    """
    Objects by kind, as plain data that is replaced and never changed in place.

    Deterministic: time comes from `clock`, uids and generated names from a counter.  One caller at a time.

    Args:
        clock: Gives creation and deletion their times.
        kinds: What is served at first; `KINDS` if not given.
        history: Changes kept per kind: a watch that wants older ones is answered 410.
    """

    def __init__(
        self, clock: Callable[[], datetime], kinds: Iterable[Kind] | None = None, *, history: int = 2000
    ) -> None:
        self._clock = clock
        self._history = history
        self._tables: dict[str, _Table] = {}
        self._counter = 0
        self.revision = 1
        self.listeners: list[Callable[[str], None]] = []
        """Called with the kind's name after each change."""
        for kind in KINDS.values() if kinds is None else kinds:
            self.serve(kind)

    # Kinds ------------------------------------------------------------------------------------------------------------

    def kinds(self) -> list[Kind]:
        return [table.kind for table in self._tables.values()]

    def serve(self, kind: Kind) -> None:
        """Begin to serve a kind, as if its CRD was created."""
        self._tables.setdefault(kind.name, _Table(kind))

    def withdraw(self, kind: str) -> None:
        """No longer serve a kind: its objects are deleted, then it is unknown."""
        for namespace, name in list(self._table(kind).objects):
            self._drop(kind, (namespace, name))
        del self._tables[kind]
        self._notify(kind)

    def serves(self, kind: str) -> bool:
        return kind in self._tables

    # Reading ----------------------------------------------------------------------------------------------------------

    def get(self, kind: str, namespace: str, name: str) -> Data:
        """
        One object; do not change it.

        Raises:
            StoreError: 404.
        """
        table = self._table(kind)
        try:
            return table.objects[namespace, name]
        except KeyError:
            raise StoreError(404, "NotFound", f'{_resource(table.kind)} "{name}" not found') from None

    def find(self, kind: str, namespace: str, name: str) -> Data | None:
        """One object or None; do not change it."""
        table = self._tables.get(kind)
        return None if table is None else table.objects.get((namespace, name))

    def all(self, kind: str, namespace: str = "") -> list[Data]:
        """All objects of a kind by namespace and name, as a server lists them; do not change them."""
        objects = self._table(kind).objects
        return [objects[key] for key in sorted(objects) if not namespace or key[0] == namespace]

    def changes_since(self, kind: str, revision: int) -> list[Change]:
        """
        Changes after `revision`, oldest first.

        Raises:
            StoreError: 410, they are no longer known; 404, the kind is not served.
        """
        table = self._table(kind)
        if revision < table.forgotten:
            raise StoreError(410, "Expired", f"too old resource version: {revision} ({table.forgotten + 1})")
        changes = table.changes
        at = len(changes)
        while at and changes[at - 1].revision > revision:
            at -= 1
        return changes[at:]

    def last_change(self, kind: str) -> int:
        """Revision of the newest change of a kind; 0 if there was none."""
        table = self._table(kind)
        return table.changes[-1].revision if table.changes else table.forgotten

    def forget_history(self, kind: str) -> None:
        """Forget all changes so far, as a restart of the API server does: older watches get 410."""
        table = self._table(kind)
        table.changes.clear()
        table.forgotten = self.revision

    # Writing ----------------------------------------------------------------------------------------------------------

    def create(self, kind: str, data: Mapping[str, Any], *, dry_run: bool = False) -> Data:
        """
        Add an object; fills in uid, times, versions, and what the API server would default.

        Raises:
            StoreError: 409 it exists; 422 it has no name; 404 the kind is not served.
        """
        table = self._table(kind)
        meta = dict(data.get("metadata") or {})
        if not meta.get("name"):
            if not meta.get("generateName"):
                raise StoreError(422, "Invalid", f"{kind}: name or generateName is required")
            meta["name"] = f"{meta['generateName']}{self._suffix()}"
        if table.kind.namespaced:
            meta["namespace"] = meta.get("namespace") or "default"
        else:
            meta.pop("namespace", None)
        key = (meta.get("namespace", ""), meta["name"])
        if key in table.objects:
            raise StoreError(409, "AlreadyExists", f'{_resource(table.kind)} "{meta["name"]}" already exists')
        self._counter += 1
        meta.setdefault("uid", f"00000000-0000-4000-8000-{self._counter:012x}")
        meta.setdefault("creationTimestamp", _time(self._clock()))
        meta["generation"] = 1
        meta["resourceVersion"] = str(self.revision + 1)
        new: Data = {"apiVersion": _api_version(table.kind), "kind": table.kind.kind, **data, "metadata": meta}
        new["apiVersion"] = _api_version(table.kind)
        new = self._with_defaults(kind, new)
        if not dry_run:
            self.revision += 1
            table.objects[key] = new
            self._log(table, "ADDED", new, None)
        return new

    def update(self, kind: str, data: Mapping[str, Any], *, dry_run: bool = False) -> Data:
        """
        Replace an object.  With a resourceVersion or uid, only if they still hold.  No change makes no version.

        An object being deleted is gone as soon as its last finalizer is.

        Raises:
            StoreError: 404; 409 another version or incarnation.
        """
        table = self._table(kind)
        meta = dict(data.get("metadata") or {})
        key = (meta.get("namespace", "") if table.kind.namespaced else "", str(meta.get("name", "")))
        before = self.get(kind, *key)
        old = before["metadata"]
        for field in ("uid", "resourceVersion"):
            if meta.get(field) and meta[field] != old[field]:
                raise StoreError(
                    409,
                    "Conflict",
                    f'Operation cannot be fulfilled on {_resource(table.kind)} "{key[1]}": '
                    "the object has been modified; please apply your changes to the latest version and try again",
                )
        meta |= {k: old[k] for k in ("uid", "creationTimestamp", "generation", "resourceVersion") if k in old}
        new: Data = {**data, "apiVersion": before["apiVersion"], "kind": before["kind"], "metadata": meta}
        if new == before:
            return before
        if _desired(new) != _desired(before):
            meta["generation"] = old["generation"] + 1
        meta["resourceVersion"] = str(self.revision + 1)
        if dry_run:
            return new
        if meta.get("deletionTimestamp") and old.get("finalizers") and not meta.get("finalizers"):
            self._drop(kind, key)
            return new
        self.revision += 1
        table.objects[key] = new
        self._log(table, "MODIFIED", new, before)
        return new

    def change(self, kind: str, namespace: str, name: str, by: Callable[[Data], Mapping[str, Any]]) -> Data:
        """Replace an object by what `by` makes of it; errors as `update`."""
        return self.update(kind, by(self.get(kind, namespace, name)))

    def delete(
        self,
        kind: str,
        namespace: str,
        name: str,
        *,
        grace_s: int | None = None,
        uid: str = "",
        resource_version: str = "",
        dry_run: bool = False,
    ) -> Data:
        """
        Delete an object: a bound pod terminates for its grace period first, an object with finalizers waits for them.

        Raises:
            StoreError: 404; 409 a precondition does not hold.
        """
        before = self.get(kind, namespace, name)
        meta = before["metadata"]
        for wanted, field in ((uid, "uid"), (resource_version, "resourceVersion")):
            if wanted and wanted != meta[field]:
                raise StoreError(
                    409,
                    "Conflict",
                    f"Precondition failed: {field} in precondition: {wanted}, in object meta: {meta[field]}",
                )
        spec = before.get("spec") or {}
        grace = 0
        if (
            kind == "Pod"
            and spec.get("nodeName")
            and (before.get("status") or {}).get("phase") in ("Pending", "Running")
        ):
            grace = int(spec.get("terminationGracePeriodSeconds", 30) if grace_s is None else grace_s)
        if dry_run:
            return before
        if grace or meta.get("finalizers"):
            if meta.get("deletionTimestamp") and grace >= meta.get("deletionGracePeriodSeconds", 0):
                return before  # asked again: only a shorter grace counts
            ends_at = _time(self._clock() + timedelta(seconds=grace))
            terminating = {**meta, "deletionTimestamp": ends_at, "deletionGracePeriodSeconds": grace}
            return self.update(kind, {**before, "metadata": terminating})
        self._drop(kind, (namespace, name))
        return before

    # Inside -----------------------------------------------------------------------------------------------------------

    def _table(self, kind: str) -> _Table:
        try:
            return self._tables[kind]
        except KeyError:
            raise StoreError(404, "NotFound", "the server could not find the requested resource") from None

    def _drop(self, kind: str, key: Key) -> None:
        table = self._table(kind)
        before = table.objects.pop(key)
        self.revision += 1
        # A deletion is told with the revision at which it happened, as etcd's is.
        meta = {**before["metadata"], "resourceVersion": str(self.revision)}
        self._log(table, "DELETED", {**before, "metadata": meta}, before)

    def _log(self, table: _Table, change: str, data: Data, before: Data | None) -> None:
        table.changes.append(Change(self.revision, change, data, before))
        if len(table.changes) > 2 * self._history:
            cut = len(table.changes) - self._history
            table.forgotten = table.changes[cut - 1].revision
            del table.changes[:cut]
        self._notify(table.kind.name)

    def _notify(self, kind: str) -> None:
        for listener in self.listeners:
            listener(kind)

    def _suffix(self) -> str:
        self._counter += 1
        digest = hashlib.sha256(str(self._counter).encode()).digest()
        return "".join(_NAME_LETTERS[b % len(_NAME_LETTERS)] for b in digest[:5])

    def _with_defaults(self, kind: str, data: Data) -> Data:
        if kind != "Pod":
            return data
        spec = {
            "restartPolicy": "Always",
            "schedulerName": "default-scheduler",
            "terminationGracePeriodSeconds": 30,
            **(data.get("spec") or {}),
        }
        named = spec.get("priorityClassName")
        if "priority" not in spec:
            found = self.find("PriorityClass.scheduling.k8s.io", "", named) if named else None
            spec["priority"] = (found or {}).get("value", 0)
        status = {"phase": "Pending", **(data.get("status") or {})}
        return {**data, "spec": spec, "status": status}


def _api_version(kind: Kind) -> str:
    return f"{kind.group}/{kind.versions[0]}" if kind.group else kind.versions[0]


def _resource(kind: Kind) -> str:
    return f"{kind.plural}.{kind.group}" if kind.group else kind.plural


def _desired(data: Mapping[str, Any]) -> Data:
    """What a person asked for: everything but metadata and status."""
    return {k: v for k, v in data.items() if k not in ("metadata", "status")}


def _time(at: datetime) -> str:
    return at.strftime("%Y-%m-%dT%H:%M:%SZ")
