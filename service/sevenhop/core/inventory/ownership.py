"""Who owns whom, upward: from a pod to the topmost object that anybody still names."""

from __future__ import annotations

from typing import NamedTuple

from sevenhop.core.inventory.objects import Objects
from sevenhop.core.objects.base import Meta, Object, OwnerRef
from sevenhop.core.objects.kinds import kind_of

LONGEST_CHAIN = 16
"""Pod, StatefulSet, Pod, StatefulSet, LeaderWorkerSet, … DynamoGraphDeployment is nine; a cycle ends here too."""


class Link(NamedTuple):
    """
    One object on the way up.

    Attributes:
        kind: As in `KINDS`, or ``Kind.group`` for a kind that we do not read.
        obj: None where it is not visible: gone, forbidden, or of a kind that we do not read.
    """

    kind: str
    namespace: str
    name: str
    uid: str
    obj: Object | None


Chain = tuple[Link, ...]


class Owners:
    """
    Owner chains, cached by the owner's uid until `forget`.

    All pods of a ReplicaSet share one chain, so that 150,000 pods walk some thousand chains.
    """

    def __init__(self, objects: Objects) -> None:
        self._objects = objects
        self._chains: dict[str, Chain] = {}

    def above(self, meta: Meta) -> Chain:
        """
        The owners of an object, the nearest first.

        Passes Pod → StatefulSet → Pod → StatefulSet → LeaderWorkerSet; an owner that is not visible ends the chain,
        named by its reference.  A cycle ends where it closes.
        """
        owner = owner_of(meta)
        if owner is None:
            return ()
        if not owner.uid:
            return self._walk(owner, meta.namespace)
        cached = self._chains.get(owner.uid)
        if cached is None:
            cached = self._chains[owner.uid] = self._walk(owner, meta.namespace)
        return cached

    def forget(self, uid: str) -> None:
        """The object of this uid came, went, or has other owners."""
        self._chains.pop(uid, None)

    def _walk(self, owner: OwnerRef | None, namespace: str) -> Chain:
        chain: list[Link] = []
        seen: set[tuple[str, str]] = set()
        while owner is not None and len(chain) < LONGEST_CHAIN:
            kind = kind_name(owner)
            if (kind, owner.name) in seen:
                break
            seen.add((kind, owner.name))
            found = self._find(owner, kind, namespace)
            chain.append(Link(kind, namespace, owner.name, owner.uid, found))
            owner = owner_of(found.metadata) if found is not None else None
        return tuple(chain)

    def _find(self, owner: OwnerRef, kind: str, namespace: str) -> Object | None:
        if owner.uid:
            known = self._objects.by_uid(owner.uid)
            return known[1] if known is not None else None
        # Manifests that were never applied have no uids; the name is then the identity.
        return self._objects.get(kind, namespace, owner.name)


def owner_of(meta: Meta) -> OwnerRef | None:
    """The controlling owner; the only owner where none says that it controls."""
    owner = meta.controller()
    if owner is None and len(meta.owner_references) == 1:
        return meta.owner_references[0]
    return owner


def kind_name(owner: OwnerRef) -> str:
    """
    The kind that a reference means, as `KINDS` names it.

    >>> kind_name(OwnerRef(kind="ReplicaSet", api_version="apps/v1"))
    'ReplicaSet.apps'
    >>> kind_name(OwnerRef(kind="Foo", api_version="x.io/v1"))
    'Foo.x.io'
    """
    known = kind_of(owner.api_version, owner.kind)
    if known is not None:
        return known.name
    group = owner.api_version.rpartition("/")[0]
    return f"{owner.kind}.{group}" if group else owner.kind
